"""`perun status`."""

from __future__ import annotations

import click

from perun.cli.answers.status import answer
from perun.cli.options import json_option, version_argument
from perun.cli.session import Session
from perun.profile.helpers import ProfileInfo


@click.command()
@version_argument("revision")
@click.option("--short", "-s", is_flag=True, help="Leave out the author and the message of the version.")
@click.option(
    "--sort-by",
    "-sb",
    "sort_by",
    type=click.Choice(ProfileInfo.valid_attributes),
    help="Set the order of profiles, and so of tags, from now on.",
)
@json_option()
@click.pass_obj
def status(session: Session, revision: str | None, short: bool, sort_by: str | None, as_json: bool) -> None:
    """Show the current version and its profiles.

    Registered profiles have tags such as `0@i`, pending ones such as `0@p`; other commands take these tags.
    Each has the value that was measured, and its difference from the nearest ancestor with such a profile.
    With VERSION, that version and the profiles registered in it are shown. `perun -v status` shows ids, too,
    which do not change with the list, and the names of files.
    """
    if sort_by:
        from perun.history.status import set_sort_key

        set_sort_key(session.repository, sort_by)
        del session.repository
    answer(session, revision, short=short, as_json=as_json)
