"""`perun status`."""

from __future__ import annotations

import click

from perun.cli.answers.status import answer
from perun.cli.session import Session
from perun.profile.helpers import ProfileInfo


@click.command()
@click.option("--short", "-s", is_flag=True, help="Leave out the author and the message of the version.")
@click.option(
    "--sort-by",
    "-sb",
    "sort_by",
    type=click.Choice(ProfileInfo.valid_attributes),
    help="Set the order of profiles, and so of tags, from now on.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def status(session: Session, short: bool, sort_by: str | None, as_json: bool) -> None:
    """Show the current version and its profiles.

    Registered profiles have tags such as `0@i`, pending ones such as `0@p`; other commands take these tags.
    `perun -v status` shows ids, too, which do not change with the list.
    """
    if sort_by:
        from perun.porcelain.status import set_sort_key

        set_sort_key(session.repository, sort_by)
        del session.repository
    answer(session, short=short, as_json=as_json)
