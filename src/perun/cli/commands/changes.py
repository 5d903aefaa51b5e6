"""`perun changes`."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path

import click

from perun.cli.answers import history as answers
from perun.cli.answers.check import FORMATS, answer_in
from perun.cli.answers.check.page import Page, plain
from perun.cli.answers.history_reports import fails, reports, undecided
from perun.cli.commands.trend import complete_series
from perun.cli.completing import complete_minor
from perun.cli.output import opened
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.errors import DamagedStore, UsageError
from perun.porcelain.acknowledged import Acknowledged
from perun.porcelain.changes.data import Changes
from perun.porcelain.changes.finding import changes as run
from perun.porcelain.check.report import INCONCLUSIVE, LEVELS, NOTHING_COMPARED
from perun.porcelain.ranges import ends_of
from perun.wording import plural

_FORMATS = tuple(name for name in FORMATS if name != "manual")


@click.command()
@click.argument("versions", metavar="[RANGE]", required=False, default="", shell_complete=complete_minor)
@click.option(
    "--series", "-s", metavar="PATTERN", default="", shell_complete=complete_series,
    help="Only series whose collector, command and location contain this, or match it (`*`, `?`, `[`).",
)  # fmt: skip
@click.option(
    "--since", metavar="REV|DATE", shell_complete=complete_minor,
    help="Only versions newer than this one, or not older than a day such as 2026-11-22, local time.",
)  # fmt: skip
@click.option(
    "--effect", type=click.FloatRange(0, 10), default=1.0, show_default=True, metavar="PERCENT",
    help="The least change that is told, in percent of the level before.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True,
    help="All series that a version changed, also of parts such as functions, and doubtful changes.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), help="Format of the answer: text by default, for people."
)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON: short for --format json.")
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path),
    help="Write the answer to FILE, which is replaced once it is complete; - is standard output.",
)  # fmt: skip
@click.option(
    "--fail-on", type=click.Choice(tuple(LEVELS)),
    help="Exit with code 1 on a degradation that no later version takes back, and that is not acknowledged; "
    "maybe: also on a possible one; severe: only on those; inconclusive: and with code "
    f"{INCONCLUSIVE} where the machine changed with it. Any of them: with code {NOTHING_COMPARED} where no "
    "series could be judged.",
)  # fmt: skip
@click.pass_obj
def changes(
    session: Session,
    versions: str,
    series: str,
    since: str | None,
    effect: float,
    every: bool,
    form: str | None,
    as_json: bool,
    output: Path | None,
    fail_on: str | None,
) -> int:
    """Find the versions that changed the level of what was measured.

    Where `perun check` compares two versions, this looks at each series of the whole history along first
    parents: five detectors vote on where its level changed, levels of a few versions count as well, and the
    slow drift of a machine does not; every change has an interval. RANGE is `A..B`, or the newest version;
    HEAD by default.

    \b
    perun changes
    perun changes v1.0..HEAD
    perun changes --series 'sort*' --since 2026-01-01
    perun changes v1.0.. --fail-on degradation --format markdown
    """
    ends = ends_of(versions)
    if ends and since is not None:
        raise UsageError(f"{versions} and --since contradict each other", "give one of them")
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} contradict each other", "give one of them")
    start, end = ends or ("", versions)
    name = "json" if as_json else form or "text"
    acknowledged = Acknowledged.load(session.repository)
    with session.progress(0, "reading versions", enabled=name == "text") as bar:
        found = run(
            session.repository, end or None, start or since, pattern=series, effect=effect / 100,
            progress=lambda what, done, total: bar.update(what, done, total),
        )  # fmt: skip
    to_file = output is not None and str(output) != "-"
    file = opened(output) if output is not None and to_file else nullcontext(session.out)
    command = _command(versions, series, since)
    with file as out, session.writing_to(out):
        _answer(session, found, acknowledged, name, every=every, command=command)
    if to_file:
        count = sum(len(one.steps) for one in found.found)
        session.say(f"{plural(count, 'change')} found; see {one_line(str(output))}")
    if name not in ("text", "json"):
        for message in found.history.damaged:
            session.warn(message)
    return _code(found, acknowledged, fail_on)


def _command(versions: str, series: str, since: str | None) -> str:
    """The command behind `perun` that asks again."""
    words = ["changes", *filter(None, [versions]), *(["--series", series] if series else [])]
    return shlex.join([*words, *(["--since", since] if since else [])])


def _answer(
    session: Session, found: Changes, acknowledged: Acknowledged, name: str, *, every: bool, command: str
) -> None:
    if name == "json":
        answers.write_data(session, found, acknowledged)
    elif name == "text":
        answers.answer(session, found, acknowledged, every=every)
    else:
        answer = answer_in(name, Page(session.out, command, plain, describe=_description))
        for report in reports(found, acknowledged):
            answer.version(report)
        answer.end()


def _description(method: str) -> str:
    return "Finds the versions that changed the level of a series, by the vote of several detectors."


def _code(found: Changes, acknowledged: Acknowledged, fail_on: str | None) -> int:
    """The exit code, as of `perun check`."""
    if fail_on is not None and fails(found, acknowledged, fail_on):
        return 1
    if found.history.damaged:
        return DamagedStore.exit_code
    if fail_on is not None and not found.says:
        return NOTHING_COMPARED
    return INCONCLUSIVE if fail_on == "inconclusive" and undecided(found, acknowledged) else 0
