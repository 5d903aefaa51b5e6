"""The click command that a plugin of the documented API brings along."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

import click

from perun.errors import PerunError, PluginError
from perun.plugin.failing import failure

_RUNNER = "perun.logic.runner"
_PASSING = (PerunError, click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)


def command_of(module: ModuleType, name: str, what: str) -> click.Command | None:
    """The command called `name` in the module, else the only one that it has, made safe."""
    named = getattr(module, name, None)
    if isinstance(named, click.Command):
        return guarded(named, what)
    found = {id(value): value for value in vars(module).values() if isinstance(value, click.Command)}
    return guarded(next(iter(found.values())), what) if len(found) == 1 else None


def guarded(command: click.Command, what: str) -> click.Command:
    """A copy of `command` that turns what its code raises into a :class:`~perun.errors.PluginError`.

    What Perun itself raises, called by the command, stays as it is.

    :param what: the plugin, for the message.
    """
    safe = copy.copy(command)
    for method in ("parse_args", "invoke"):  # the first runs callbacks of options
        vars(safe)[method] = _guarded(getattr(command, method), what)
    return safe


def _guarded(method: Callable[..., Any], what: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except _PASSING:
            raise
        except (Exception, SystemExit) as problem:
            if _from_runner(problem.__traceback__):
                raise
            raise failure(what, PluginError, problem) from problem

    return call


def _from_runner(step: TracebackType | None) -> bool:
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == _RUNNER:
            return True
        step = step.tb_next
    return False
