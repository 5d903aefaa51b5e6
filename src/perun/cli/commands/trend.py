"""`perun trend`."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import click

from perun.cli.answers import trend as answers
from perun.cli.completing import complete_minor
from perun.cli.session import Session
from perun.errors import DamagedStore, UsageError
from perun.porcelain.repository import open_repository
from perun.porcelain.trend import text_of
from perun.porcelain.trend import trend as run

SHOWN = 50
"""Versions that the table shows unless it is told how many."""


def complete_series(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Commands of the profiles in the newest versions."""
    try:
        repo = open_repository(Path.cwd(), dict(os.environ))
        versions = itertools.islice(repo.vcs.walk_subjects("HEAD"), 50)
        entries = [
            entry
            for version in versions
            if repo.store.indexes.has(version.checksum)
            for entry in repo.store.indexes.read(version.checksum)
        ]
        names = dict.fromkeys(text_of(entry.head.configuration) for entry in entries)
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("series", required=False, default="", shell_complete=complete_series)
@click.option(
    "--minor-version", "-m", "revision", metavar="REV", shell_complete=complete_minor,
    help="End with this version; HEAD by default.",
)  # fmt: skip
@click.option(
    "--max-count", "-n", type=click.IntRange(min=1), metavar="N",
    help=f"Only the newest N versions with such profiles; {SHOWN} by default, all in JSON and CSV.",
)  # fmt: skip
@click.option(
    "--since", metavar="REV|DATE", shell_complete=complete_minor,
    help="Only versions newer than this one, or not older than a day such as 2026-11-22, local time.",
)  # fmt: skip
@click.option("--metric", metavar="NAME", default="", help="Only metrics with this in their name: memory.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Answer as CSV, one line for each value.")
@click.pass_obj
def trend(
    session: Session,
    series: str,
    revision: str | None,
    max_count: int | None,
    since: str | None,
    metric: str,
    as_json: bool,
    as_csv: bool,
) -> int:
    """Show how measured values developed over the versions.

    A series is a command with its arguments and workload, measured by one collector on one kind of machine.
    Each that contains SERIES, or matches it where that has `*`, `?` or `[`, is a table: the versions along
    first parents, the oldest first, with the value, its difference from the version before, and a bar that
    begins at zero. The line above goes from the smallest to the largest value. Without SERIES all are shown.

    \b
    perun trend
    perun trend 'sort*large.txt' -n 20
    perun trend --metric memory --csv > memory.csv
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv contradict each other", "give one of them")
    limit = SHOWN if max_count is None and not (as_json or as_csv) else max_count
    found = run(session.repository, series, revision, limit=limit, since=since, metric=metric)
    if as_json:
        answers.write_data(session, found)
    elif as_csv:
        answers.write_csv(session, found)
        for message in found.damaged:
            session.warn(message)
    else:
        answers.answer(session, found)
    return DamagedStore.exit_code if found.damaged else 0
