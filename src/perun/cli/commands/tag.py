"""`perun tag`: make a version of the folder, or go back to one, if the system leaves that to Perun."""

from __future__ import annotations

import click

from perun.cli.completing import complete_version
from perun.cli.options import Option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.plugin.api import MinorVersion, Vcs
from perun.repository.copies import refuse_after_interruption
from perun.repository.repository import Repository


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
    if restore and message:
        raise click.UsageError("--message describes a new snapshot; --restore makes none")
    if restore:
        version, is_dirty = restored(session.repository, name)
        session.say(f"restored {_shown(session, version.checksum, version.subject)}")
        if is_dirty:
            session.note("kept the changes that are in no snapshot")
    else:
        version = snapshot(session.repository, name, message)
        session.say(f"made {_shown(session, version.checksum, version.subject)}")


def snapshot(repo: Repository, name: str, message: str = "") -> MinorVersion:
    """Make a snapshot of the folder as it is, named `name`; profiles of it are stored under its checksum.

    :raises VersionControlError: if the system makes its versions otherwise (git), or refuses.
    """
    refuse_after_interruption(repo)
    return repo.vcs.get_minor_version_info(repo.vcs.snapshot(name, message))


def restored(repo: Repository, name: str) -> tuple[MinorVersion, bool]:
    """Make the folder that of the version `name`.

    :return: the version, and whether files that it shares with the one before have changes, which were left.

    :raises VersionControlError: if files that no version holds would be overwritten; nothing has changed.
    """
    vcs = repo.vcs
    if type(vcs).snapshot is Vcs.snapshot:
        vcs.snapshot(name)  # tells that this is not the way
    refuse_after_interruption(repo)
    checksum = vcs.massage_parameter(name)
    vcs.checkout(checksum)
    return vcs.get_minor_version_info(checksum), vcs.is_dirty()


def _shown(session: Session, checksum: str, subject: str) -> str:
    return f"{session.paint(checksum[:10], 'yellow')} {one_line(subject)}"
