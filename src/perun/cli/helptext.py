"""Makes `help.txt`, what `perun --help` prints without importing click: `python -m perun.cli.helptext`."""

from __future__ import annotations

from pathlib import Path

import click

from perun.cli.main import cli

PATH = Path(__file__).with_name("help.txt")


def render() -> str:
    """The help of the command tree's root, 80 columns wide."""
    context = click.Context(
        cli, info_name="perun", terminal_width=80, max_content_width=80, **cli.context_settings
    )
    return cli.get_help(context) + "\n"


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
