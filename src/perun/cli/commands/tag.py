"""`perun tag`."""

from __future__ import annotations

import click

from perun.cli.completing import complete_version
from perun.cli.options import Option
from perun.cli.session import Session
from perun.cli.table import one_line


@click.command()
@click.argument("name", shell_complete=complete_version)
@click.option(
    "--message", cls=Option, formerly=["-m"], metavar="TEXT", default="", help="Description of the snapshot."
)
@click.option("--restore", "-r", is_flag=True, help="Restore the folder from the snapshot NAME.")
@click.pass_obj
def tag(session: Session, name: str, message: str, restore: bool) -> None:
    """Make a snapshot of a folder that is under tagit.

    NAME names the snapshot from now on, wherever a version is asked for. All files are in it but those that
    `.tagitignore` leaves out. For folders under git this command is not: there, commits are the versions.
    """
    from perun.repository import copies

    if restore and message:
        raise click.UsageError("--message describes a new snapshot; --restore makes none")
    if restore:
        version, is_dirty = copies.restore(session.repository, name)
        session.say(f"restored {_shown(session, version.checksum, version.subject)}")
        if is_dirty:
            session.note("kept the changes that are in no snapshot")
    else:
        version = copies.tag(session.repository, name, message)
        session.say(f"made {_shown(session, version.checksum, version.subject)}")


def _shown(session: Session, checksum: str, subject: str) -> str:
    return f"{session.paint(checksum[:10], 'yellow')} {one_line(subject)}"
