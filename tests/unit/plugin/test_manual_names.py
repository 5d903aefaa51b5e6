"""The names and functions that the manual documents for plugins and scripts, with their parameters."""

import inspect
from importlib import import_module
from typing import Any

import click
import pytest

from perun.core.errors import UsageError
from perun.plugin.loading import FAMILIES
from perun.plugin.registry import Registry
from perun.profile.factory import Profile

NAMES = {
    "perun.logic.config": ("Config", "load"),
    "perun.logic.config_templates": ("render",),
    "perun.logic.runner": ("run_collector_from_cli_context", "run_postprocessor_on_profile"),
    "perun.logic.store": ("Store",),
    "perun.utils": ("get_supported_module_names",),
    "perun.utils.helpers": ("pass_profile",),
    "perun.utils.structs": (
        "CollectStatus", "DegradationInfo", "Executable", "Job", "MajorVersion", "MinorVersion",
        "PerformanceChange", "PostprocessStatus", "Unit"
    ),
}  # fmt: skip


@pytest.mark.parametrize("module", sorted(NAMES))
def test_documented_names(module: str) -> None:
    for name in NAMES[module]:
        assert hasattr(import_module(module), name)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_supported_modules(family: str) -> None:
    from perun.utils import get_supported_module_names

    assert get_supported_module_names(family) == Registry().names(family)


def test_an_unknown_family() -> None:
    from perun.utils import get_supported_module_names

    with pytest.raises(UsageError, match="'collector'") as caught:
        get_supported_module_names("collector")
    assert "collect" in caught.value.hint


def test_an_executable_is_its_command_line() -> None:
    from perun.utils.structs import Executable

    assert str(Executable("./bin", "-a", "< in.txt")) == "./bin -a < in.txt"
    assert str(Executable("./bin")) == "./bin"


def test_types_are_those_of_perun() -> None:
    from perun.plugin import api
    from perun.profile import changes
    from perun.utils import structs

    assert structs.MinorVersion is api.MinorVersion
    assert structs.DegradationInfo is changes.DegradationInfo
    assert structs.CollectStatus.OK.value == structs.PostprocessStatus.OK.value == 0


def test_plugins_have_their_errors_from_the_documented_path() -> None:
    from perun import errors
    from perun.core import errors as own

    names = {name for name, value in vars(own).items() if isinstance(value, type) and name[0] != "_"}
    assert len(names) > 10
    assert {name for name in names if getattr(errors, name) is not getattr(own, name)} == set()


# -- functions and their parameters --------------------------------------------------------------------------


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

    assert kind.main([], standalone_mode=False, obj=Profile(header={"type": "memory"})) == "memory"


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
