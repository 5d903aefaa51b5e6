"""The names that the manual documents under `perun.utils` and `perun.logic`."""

from __future__ import annotations

from importlib import import_module

import pytest

from perun.core.errors import UsageError
from perun.plugin.api import FAMILIES
from perun.plugin.registry import Registry

NAMES = {
    "perun.logic.config": ("Config", "load"),
    "perun.logic.config_templates": ("render",),
    "perun.logic.runner": ("run_collector_from_cli_context", "run_postprocessor_on_profile"),
    "perun.logic.store": ("Store",),
    "perun.utils": ("get_supported_module_names",),
    "perun.utils.helpers": ("pass_profile",),
    "perun.utils.structs": (
        "CollectStatus",
        "DegradationInfo",
        "Executable",
        "Job",
        "MajorVersion",
        "MinorVersion",
        "PerformanceChange",
        "PostprocessStatus",
        "Unit",
    ),
}


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
