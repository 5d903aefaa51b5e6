"""Views of the documented API: a click command that prints the profile it is given (manual 6.2)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

import click

from perun.errors import PluginError, UsageError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.legacy.calling import run_module, summary
from perun.plugin.legacy.commands import command_of, guarded
from perun.plugin.params import FreeParams, nearest

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
