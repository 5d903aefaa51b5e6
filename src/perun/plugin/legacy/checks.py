"""Checks of the documented API: a generator function over two profiles (manual 8.4)."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from perun.errors import PluginError
from perun.plugin.api import CheckContext
from perun.plugin.contract import short_string
from perun.plugin.legacy.calling import errors_as, run_module, short, summary
from perun.plugin.params import FreeParams
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class LegacyCheck:
    """A check that is a function of its module's name.

    The function takes the baseline and the target; more parameters are given by name those of
    `degradation.<name>` in the configuration, and `models_strategy`, the value of `--models-type`.
    """

    accepts_any = True
    Params = FreeParams

    def __init__(self, name: str, loaded: object) -> None:
        function = getattr(run_module(loaded), name, None) if isinstance(loaded, ModuleType) else loaded
        if not callable(function):
            raise PluginError(f"{loaded!r} defines no function {name}()")
        self.name = name
        self.short = short_string(name)
        self.what = f"the check {name!r}"
        described = summary(loaded) if isinstance(loaded, ModuleType) else ""
        self.help = described or (inspect.getdoc(function) or f"The check {name}.").partition("\n")[0]
        self._function: Callable[..., Any] = function

    def compare(
        self, baseline: Profile, target: Profile, params: FreeParams, ctx: CheckContext
    ) -> list[DegradationInfo]:
        """What the function yields.

        :raises PluginError: if it raises, or yields something else than a `DegradationInfo`.
        """
        more = {**params.values, **({"models_strategy": ctx.models_type} if ctx.models_type else {})}
        with errors_as(self.what, PluginError), contextlib.redirect_stdout(sys.stderr):
            changes = self._function(baseline, target, **_extra_arguments(self._function, more))
            if not isinstance(changes, Iterable):
                raise PluginError(f"{self.what} must be a generator, but returns {short(changes)}")
            found = list(changes)
        for change in found:
            if not isinstance(change, DegradationInfo):
                raise PluginError(f"{self.what} must yield DegradationInfo, not {short(change)}")
        return found


def _extra_arguments(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that `function` takes by name beside its first two parameters."""
    parameters = list(inspect.signature(function).parameters.values())
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        first = {one.name for one in parameters[:2]}
        return {name: value for name, value in values.items() if name not in first}
    return {one.name: values[one.name] for one in parameters[2:] if one.name in values}
