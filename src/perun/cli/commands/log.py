"""`perun log`."""

from __future__ import annotations

import click

from perun.cli.answers.log import answer
from perun.cli.options import json_option, since_option, version_argument
from perun.cli.session import Session


@click.command()
@version_argument()
@since_option()
@click.option("--short", "-s", is_flag=True, help="One line for each version, as `format.shortlog` says.")
@click.option("--max-count", "-n", type=click.IntRange(min=0), metavar="N", help="Show N versions at most.")
@click.option("--changes-only", is_flag=True, help="Only versions with stored changes of performance.")
@click.option("--graph", "-g", is_flag=True, help="Draw the branches of the history at the left.")
@json_option()
@click.pass_obj
def log(
    session: Session,
    minor: str | None,
    since: str | None,
    short: bool,
    max_count: int | None,
    changes_only: bool,
    graph: bool,
    as_json: bool,
) -> int:
    """Show the history with what is stored for each version.

    It goes down from VERSION, or HEAD. With `--short` a line has the value of the first configuration that
    was measured, its difference from the nearest ancestor, and how many more configurations there are. Where
    what is stored for a version is damaged, that version is marked; the exit code is 6 then.
    """
    return answer(
        session,
        minor,
        short=short,
        as_json=as_json,
        changes_only=changes_only,
        limit=max_count,
        graph=graph,
        since=since,
    )
