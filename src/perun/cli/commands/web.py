"""`perun web`: the dashboard."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

import click

from perun.cli.options import LazyGroup
from perun.core.errors import PluginError
from perun.core.extras import install_command
from perun.core.wording import listed

COMMANDS: Final = {
    "serve": ("perun.cli.commands.web_serve:serve", "Show the dashboard of the project in a browser."),
    "build": ("perun.cli.commands.web_build:build", "Write the dashboard as a folder of files."),
}
_NEEDS: Final = {"serve": ("jinja2", "starlette", "uvicorn"), "build": ("jinja2",)}
"""Libraries of the extra `web`. The first is part of the extra `plots`, too."""


class _WebGroup(LazyGroup):
    """A group whose commands need an extra of Perun."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None if there is no such name.

        :raises PluginError: if the extra is not installed.
        """
        missing = [name for name in _NEEDS.get(cmd_name, ()) if find_spec(name) is None]
        if missing:
            raise PluginError(
                f"perun web {cmd_name} needs what is not installed here: {listed(missing)}",
                f"install it with: {install_command('web')}",
            )
        return super().get_command(ctx, cmd_name)


@click.group(cls=_WebGroup, lazy=COMMANDS)
def web() -> None:
    """Show the dashboard: what got slower, since when and why.

    \b
    perun web serve             in the browser of this machine
    perun web build public      as files, which open from disk and from any web server
    """
