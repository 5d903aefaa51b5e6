"""Views of the documented API: a click command that prints the profile it is given (manual 6.2)."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

import click

from perun.core.errors import PluginError, UsageError
from perun.plugin.api import NO_VIEW_CONTEXT, CheckContext, ViewContext
from perun.plugin.legacy.units import command_of, errors_as, guarded, run_module, short, summary
from perun.plugin.loading import short_string
from perun.plugin.params import FreeParams, nearest
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


@dataclass(frozen=True)
class _ProfileHolder:
    """What `pass_profile` finds in `ctx.obj` if a view is not called from the command line."""

    profile: Profile


class LegacyView:
    """A view that is a click command, to be mounted as `command`, or called through :meth:`render`."""

    accepts_any = True
    Params = FreeParams

    def __init__(self, name: str, loaded: object) -> None:
        self.name = name
        self.what = f"the view {name!r}"
        if isinstance(loaded, click.Command):
            command: click.Command | None = guarded(loaded, self.what)
            self.help = ""
        elif isinstance(loaded, ModuleType):
            run = run_module(loaded)
            command = command_of(run, name, self.what)
            self.help = summary(loaded, run)
        else:
            raise PluginError(f"{loaded!r} is neither a module nor a click command")
        if command is None:
            raise PluginError(f"{loaded!r} defines no click command {name}")
        self.command = command
        self.help = self.help or command.get_short_help_str() or f"The view {name}."

    def render(
        self, profile: Profile, params: FreeParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Run the command with `params` as its options and arguments; what it prints goes to `out`.

        It knows of no context.

        :raises UsageError: if the command has no such option, or does not take its value.
        :raises PluginError: if the command fails.
        """
        self._refuse_unknown(params.values)
        try:
            with (
                contextlib.redirect_stdout(out),
                self.command.make_context(
                    self.name, [], obj=_ProfileHolder(profile), default_map=dict(params.values)
                ) as context,
            ):
                self.command.invoke(context)
        except click.ClickException as problem:
            raise UsageError(f"{self.what}: {problem.format_message()}") from problem
        except click.exceptions.Exit as ending:
            if ending.exit_code:
                raise PluginError(f"{self.what} ended with status {ending.exit_code}") from ending

    def _refuse_unknown(self, values: Mapping[str, Any]) -> None:
        known = [parameter.name for parameter in self.command.params if parameter.name]
        for key in values:
            if key not in known:
                raise UsageError(f"{self.what} has no parameter {key!r}", nearest(key, known))


# Checks of the documented API: a generator function over two profiles (manual 8.4).


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
