"""Refuses values of the configuration that the commands which read them would refuse.

`config.schema` says of which kind a value is; it knows neither plugins and what they take, nor how commands
are split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perun.errors import ConfigError, NotTrusted, PerunError
from perun.plugin.registry import Registry
from perun.porcelain.run.jobs import PARTS, configured_unit, texts
from perun.porcelain.saving import check_template
from perun.process.command import Run
from perun.wording import without_secrets

_RUNS = {**PARTS, "execute.pre_run": Run}
_UNITS: Mapping[str, str] = {"collectors": "collect", "postprocessors": "postprocess"}
"""Keys that name plugins with their parameters, and the family of these."""


def check_setting(key: str, value: Any, registry: Registry) -> None:
    """Raise where a command that reads the key would refuse the value.

    :param value: as :meth:`perun.config.layers.Config.get` gives it.
    :raises ConfigError: names the key, and what is allowed.
    :raises NotTrusted: if it names a plugin of a repository that the user does not trust.
    """
    try:
        if key in _RUNS:
            for text in texts(value):
                if text.strip():
                    _RUNS[key](text).command()
        elif key in _UNITS:
            for entry in value:
                configured_unit(registry, _UNITS[key], entry)
        elif key == "degradation.strategies":
            for rule in value:
                for name in filter(None, (rule["method"], rule.get("instead_of"))):
                    registry.get("check", str(name))
        elif key in ("remotes", "store.url"):
            shown = without_secrets(text := str(value))
            if shown != text:
                problem = f"a URL has a password or a token in it, which would be shown: {shown}"
                raise ConfigError(problem, "leave it out, see docs/sharing.md")
        elif key == "vcs.type":
            registry.get("vcs", str(value))
        elif key == "format.output_profile_template":
            check_template(str(value))
    except NotTrusted:
        raise
    except PerunError as problem:
        message = problem.message.removeprefix(f"{key}: ")
        raise ConfigError(f"{key}: {message}", problem.hint) from None
