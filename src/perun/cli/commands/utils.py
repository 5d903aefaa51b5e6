"""`perun utils`."""

from __future__ import annotations

import click

from perun.cli.lazy import LazyGroup

COMMANDS = {
    "create": ("perun.cli.commands.create:create", "Write a plugin of your own, complete with a test."),
    "stats": ("perun.cli.commands.stats:stats", "Show and delete statistics of versions."),
    "temp": ("perun.cli.commands.temp:temp", "Show and delete temporary files."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def utils() -> None:
    """Commands for developers of plugins: create, stats, temp."""
