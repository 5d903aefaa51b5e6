"""Refuses values of the configuration that the commands which read them would refuse.

`config.schema` says of which kind a value is; it knows neither plugins and what they take, nor how commands
are split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from perun.errors import ConfigError, PerunError
from perun.plugin.params import from_mapping
from perun.plugin.registry import Registry
from perun.porcelain.run.jobs import merge_params, texts
from perun.process.command import Run
from perun.profile.helpers import file_name

_RUNS: Mapping[str, Callable[[str], Run]] = {
    "cmds": Run,
    "execute.pre_run": Run,
    "args": lambda text: Run("program", args=text),
    "workloads": lambda text: Run("program", workload=text),
}
"""Keys whose texts are parts of a command."""
_UNITS: Mapping[str, str] = {"collectors": "collect", "postprocessors": "postprocess"}
"""Keys that name plugins with their parameters, and the family of these."""


def check_setting(key: str, value: Any, registry: Registry) -> None:
    """Raise where a command that reads the key would refuse the value.

    :param value: as :meth:`perun.config.layers.Config.get` gives it.
    :raises ConfigError: names the key, and what is allowed.
    """
    try:
        if key in _RUNS:
            for text in texts(value):
                if text.strip():
                    _RUNS[key](text).command()
        elif key in _UNITS:
            for entry in value:
                _check_unit(_UNITS[key], entry, registry)
        elif key == "degradation.strategies":
            for rule in value:
                for name in filter(None, (rule["method"], rule.get("instead_of"))):
                    registry.get("check", str(name))
        elif key == "vcs.type":
            registry.get("vcs", str(value))
        elif key == "format.output_profile_template":
            _check_template(str(value))
    except PerunError as problem:
        message = problem.message.removeprefix(f"{key}: ")
        raise ConfigError(f"{key}: {message}", problem.hint) from None


def _check_unit(family: str, entry: Any, registry: Registry) -> None:
    name, params = (entry, {}) if isinstance(entry, str) else (str(entry["name"]), entry.get("params"))
    plugin = registry.get(family, name)
    from_mapping(plugin.Params, merge_params(params, name), repr(name))


def _check_template(text: str) -> None:
    file_name(text, {}, now=datetime.now(UTC), counter=0)
