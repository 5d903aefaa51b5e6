"""Groups of commands that are imported only when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from perun.cli.options import add_uniform_names


class LazyGroup(click.Group):
    """A group whose commands are given as `name -> ("module:attribute", one line of help)`.

    Its own help needs none of the modules, which keeps `perun --help` quick.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table: the order of a working day."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is no such name."""
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return add_uniform_names(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands with their one line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, naming the nearest command if there is none of the name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            raise with_nearest(problem, args[0], self.list_commands(ctx)) from None


def with_nearest(problem: click.UsageError, name: str, known: list[str]) -> click.UsageError:
    """The error with the commands whose names are nearest to `name`."""
    import difflib

    close = difflib.get_close_matches(name, known, n=2)
    if not close or "Did you mean" in problem.message:
        return problem
    return click.UsageError(f"{problem.message} Did you mean {' or '.join(close)}?", problem.ctx)
