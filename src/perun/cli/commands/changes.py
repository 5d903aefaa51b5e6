"""`perun changes`."""

from __future__ import annotations

import click

from perun.cli.answers import history as answers
from perun.cli.commands.trend import complete_series
from perun.cli.completing import complete_minor
from perun.cli.session import Session
from perun.errors import DamagedStore, UsageError
from perun.porcelain.changes.finding import changes as run


@click.command()
@click.argument("versions", metavar="[RANGE]", required=False, default="", shell_complete=complete_minor)
@click.option(
    "--series", "-s", metavar="PATTERN", default="", shell_complete=complete_series,
    help="Only series whose collector, command and location contain this, or match it (`*`, `?`, `[`).",
)  # fmt: skip
@click.option(
    "--since", metavar="REV|DATE", shell_complete=complete_minor,
    help="Only versions newer than this one, or not older than a date such as 2026-11-22.",
)  # fmt: skip
@click.option(
    "--effect", type=click.FloatRange(0, 10), default=1.0, show_default=True, metavar="PERCENT",
    help="The least change that is told, in percent of the level before.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="All series that a version changed, however many.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def changes(
    session: Session, versions: str, series: str, since: str | None, effect: float, every: bool, as_json: bool
) -> int:
    """Find the versions that changed the level of what was measured.

    Where `perun check` compares two versions, this looks at each series along first parents: five detectors
    vote on where its level changed, single spikes and the slow drift of a machine do not count, and every
    change has an interval. RANGE is `A..B`, or the newest version; HEAD by default.

    \b
    perun changes
    perun changes v1.0..HEAD
    perun changes --series 'sort*' --since 2026-01-01
    """
    start, dots, end = versions.rpartition("..")
    if dots and since is not None:
        raise UsageError(f"{versions} and --since contradict each other", "give one of them")
    with session.progress(0, "reading versions", enabled=not as_json) as bar:
        found = run(
            session.repository, end or None, start or since, pattern=series, effect=effect / 100,
            progress=lambda what, done, total: bar.update(what, done, total),
        )  # fmt: skip
    if as_json:
        answers.write_data(session, found)
    else:
        answers.answer(session, found, every=every)
    return DamagedStore.exit_code if found.history.damaged else 0
