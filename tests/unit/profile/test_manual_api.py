"""Every function that the manual documents for plugins and scripts, with its parameters.

Manual 2.2 to 2.4, 8.4, 13.1.1, and the chapters of older releases.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import click
import pytest

from perun.profile.factory import Profile

DOCUMENTED = {
    "perun.profile.factory.Profile": "*args **kwargs",
    "perun.profile.factory.Profile.all_filtered_models": "self models_strategy",
    "perun.profile.factory.Profile.all_models": "self group=model",
    "perun.profile.factory.Profile.all_resources": "self flatten_values=False",
    "perun.profile.factory.Profile.all_snapshots": "self",
    "perun.profile.factory.store_profile_at": "profile file_path",
    "perun.profile.factory.pass_profile": "function",
    "perun.profile.convert.resources_to_pandas_dataframe": "profile",
    "perun.profile.convert.to_flame_graph_format": "profile",
    "perun.profile.convert.to_heap_map_format": "profile",
    "perun.profile.convert.to_heat_map_format": "profile",
    "perun.profile.convert.plot_data_from_coefficients_of": "model",
    "perun.profile.query.all_resources_of": "profile",
    "perun.profile.query.all_items_of": "resource",
    "perun.profile.query.all_resource_fields_of": "profile",
    "perun.profile.query.all_numerical_resource_fields_of": "profile",
    "perun.profile.query.unique_resource_values_of": "profile resource_key",
    "perun.profile.query.all_key_values_of": "resource resource_key",
    "perun.profile.query.all_models_of": "profile",
    "perun.profile.query.unique_model_values_of": "profile model_key",
    "perun.utils.get_supported_module_names": "package",
    "perun.utils.helpers.pass_profile": "function",
    "perun.utils.structs.DegradationInfo": "res loc fb tt t=- rd=0 ct=no cr=0 pi=None rdr=0.0",
    "perun.utils.structs.DegradationInfo.to_storage_record": "self",
    "perun.logic.runner.run_collector_from_cli_context": "ctx collector_name params",
    "perun.logic.runner.run_postprocessor_on_profile": "profile postprocessor_name params",
    "perun.vcs.init": "vcs_init_params",
    "perun.vcs.walk_minor_versions": "head_minor_version",
    "perun.vcs.walk_major_versions": "",
    "perun.vcs.get_minor_head": "",
    "perun.vcs.get_head_major_version": "",
    "perun.vcs.get_minor_version_info": "minor_version",
    "perun.vcs.check_minor_version_validity": "minor_version",
    "perun.vcs.massage_parameter": "parameter parameter_type=None",
    "perun.vcs.is_dirty": "",
    "perun.vcs.save_state": "",
    "perun.vcs.restore_state": "saved state",
    "perun.vcs.checkout": "minor_version",
}
"""Qualified names, and their parameters with the defaults as the manual writes them."""


STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def found(qualified: str) -> Any:
    parts = qualified.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for name in parts[size:]:
            value = getattr(value, name)
        return value
    raise AssertionError(qualified)


@pytest.mark.parametrize("qualified", DOCUMENTED)
def test_signature(qualified: str) -> None:
    parameters = inspect.signature(found(qualified)).parameters.values()
    manual = DOCUMENTED[qualified].split()
    documented = [one.partition("=") for one in manual]
    ours = [(STARS.get(one.kind, "") + one.name, one.default) for one in parameters]
    assert [name for name, _ in ours[: len(manual)]] == [name for name, _, _ in documented]
    for (_, default), (_, given, text) in zip(ours, documented, strict=False):
        assert bool(given) == (default is not inspect.Parameter.empty)
        # 0 and 0.0 are the same default.
        assert not given or str(default) == text or float(default) == float(text)
    # What ours take besides may be left out.
    assert all(default is not inspect.Parameter.empty for _, default in ours[len(manual) :])


@pytest.mark.parametrize("module", ["perun.utils.helpers", "perun.profile.factory"])
def test_pass_profile_gives_the_profile_of_the_context(module: str) -> None:
    @click.command()
    @import_module(module).pass_profile
    def kind(profile: Profile) -> str:
        return profile.type

    profile = Profile(header={"type": "memory"})
    assert kind.main([], standalone_mode=False, obj=profile) == "memory"


def test_no_head_is_a_value_error(tmp_path: Any) -> None:
    import os
    import subprocess

    from perun import vcs
    from perun.vcs.git import Git

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    vcs.use(Git(tmp_path, dict(os.environ)))
    try:
        with pytest.raises(ValueError, match="commit"):
            vcs.get_minor_head()
    finally:
        vcs.use(None)
