"""`perun trend`."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from perun.cli.answers import data
from perun.cli.answers.data import write_json
from perun.cli.options import AnswerOptions, minor_option, series_option, since_option, with_options_of
from perun.cli.session import Session
from perun.cli.table import cut, one_line, width
from perun.core.errors import DamagedStore, UsageError
from perun.core.wording import plural
from perun.history.trend import Trend, TrendPoint, TrendSeries, text_of
from perun.history.trend import trend as run
from perun.profile.amounts import readable
from perun.profile.head import shortest
from perun.repository.repository import open_repository

# What `perun trend` answers: for each series a table with bars, or JSON, or CSV.

LEVELS: Final = "▁▂▃▄▅▆▇█"
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
BAR: Final = 16
"""Columns of the longest bar."""
SPARKS: Final = 60
"""Columns of the longest sparkline: of the newest points."""
WIDE: Final = 110
"""Columns of a terminal from which on dates and intervals are shown."""
CSV: Final = (
    *("collector", "cmd", "args", "workload", "postprocessors", "machine", "metric", "unit"),
    *("version", "date", "subject", "value", "low", "high", "n"),
    *("ratio", "ratio_low", "ratio_high", "verdict", "reason", "decides", "since"),
)


def answer(session: Session, found: Trend) -> None:
    """Print each series as a table, the oldest version first, and what was left out."""
    machines = len({series.key.machine for series in found.series}) > 1
    titles = shortest(one.key.configuration for one in found.series)
    for number, series in enumerate(found.series):
        if number:
            session.say()
        _series(session, series, titles[series.key.configuration], machines)
    empty = found.versions - found.measured
    if not found.series:
        session.say(f"no measured value is registered in {plural(found.versions, 'version')}")
        session.note(
            "hint: measure this version with: perun bench --save CMD; and then those of the past with: "
            "perun run --crawl-parents matrix"
        )
    elif empty:
        session.note(f"note: {empty} of {plural(found.versions, 'version')} have no such profile")
    data.note_unread(session, found.unread)
    shown = [point.judged for series in found.series for point in series.points]
    data.note_marks(session, (*shown, *(series.overall for series in found.series)))
    for message in found.damaged:
        session.warn(message)


def write_data(session: Session, found: Trend) -> None:
    """Write it as JSON, schema `perun.trend/2`."""
    answer = {
        "schema": "perun.trend/2",
        "versions": found.versions,
        "measured": found.measured,
        "unread": found.unread,
        "damaged": found.damaged,
        "series": [_series_data(series) for series in found.series],
    }
    write_json(session.out, answer)


def write_csv(session: Session, found: Trend) -> None:
    """Write each point as a row of CSV."""
    writer = csv.writer(session.out, lineterminator="\n")
    writer.writerow(CSV)
    for series in found.series:
        key = series.key
        configuration = key.configuration
        first = (
            configuration.collector,
            configuration.cmd,
            configuration.args,
            configuration.workload,
            " ".join(configuration.postprocessors),
            key.machine,
            key.metric,
            key.unit,
        )
        for version, one in series.points:
            value = data.value_data(one.value)
            named = {"version": version.checksum, "date": version.date, "subject": version.subject}
            row = {**named, **value, **(data.difference_data(one) or {})}
            writer.writerow((*first, *(row.get(name) for name in CSV[len(first) :])))


def _series_data(series: TrendSeries) -> dict[str, Any]:
    key = series.key
    return {
        **key.configuration._asdict(),
        "machine": key.machine,
        "metric": key.metric,
        "unit": key.unit,
        "larger_is_better": series.overall.value.larger_is_better,
        "difference": data.difference_data(series.overall),
        "points": [
            {
                "version": point.version.checksum,
                "date": point.version.date,
                "subject": point.version.subject,
                **data.judged_data(point.judged),
            }
            for point in series.points
        ],
    }


def _series(session: Session, series: TrendSeries, title: str, with_machine: bool) -> None:
    key, points = series.key, series.points
    drawn = can_draw(session)
    name = session.paint(one_line(title), "bold")
    machine = f", {one_line(key.machine) or 'unknown machine'}" if with_machine else ""
    units = "".join(f", {one_line(unit)}" for unit in key.configuration.postprocessors)
    # Where the processor limits a command, its clock is the one of the values.
    metrics = one_line(", ".join(dict.fromkeys(point.judged.value.metric for point in points)))
    session.say(f"{name}  {metrics} ({one_line(key.configuration.collector)}{units}{machine})")
    values = [point.judged.value.estimate.value for point in points]
    if drawn and len(points) > 1:
        shown = values[-SPARKS:]
        low, high = (readable(limit, key.unit) for limit in (min(shown), max(shown)))
        # Not "low to high": beside a difference that reads as the first and the last value.
        limits = one_line(low if low == high else f"between {low} and {high}")
        session.say(f"{session.paint(sparkline(shown), 'cyan')}  {limits}{_overall(session, series)}")
    for line in _rows(session, points, drawn):
        session.say(line)


def _overall(session: Session, series: TrendSeries) -> str:
    one = series.overall
    if one.verdict is None:
        return ""
    text = session.paint(data.difference(one, interval=False), data.style(one))
    return f", {text} since {one.since[: data.SHORT]}"


def _rows(session: Session, points: Sequence[TrendPoint], drawn: bool) -> Iterator[str]:
    """The lines of the table; on a terminal of 80 columns without dates and intervals."""
    wide = session.columns == 0 or session.columns >= WIDE
    shown = [point.judged for point in points]
    values = [data.value(one.value, counted=wide) for one in shown]
    differences = [data.difference(one, interval=wide) for one in shown]
    sizes = [abs(one.value.estimate.value) for one in shown]
    largest = max(sizes)
    rooms = [max(map(width, texts)) for texts in (values, differences)]
    for point, value, difference, size in zip(points, values, differences, sizes, strict=True):
        paint = partial(session.paint, style=data.style(point.judged))
        cells = [
            session.paint(point.version.checksum[: data.SHORT], "yellow"),
            *([point.version.date[:10]] if wide else []),
            value + " " * (rooms[0] - width(value)),
            paint(difference) + " " * (rooms[1] - width(difference)),
            _bar(size / largest if largest else 0.0, drawn),
        ]
        subject = one_line(point.version.subject)
        if session.columns:
            used = data.SHORT + 12 * wide + sum(rooms) + BAR + 8
            subject = cut(subject, max(session.columns - used, 0))
        yield "  ".join((*cells, subject)).rstrip()


def can_draw(session: Session) -> bool:
    """Whether the output takes characters of blocks."""
    try:
        (LEVELS + EIGHTHS).encode(session.out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def sparkline(values: Sequence[float]) -> str:
    """A character for each value, from the smallest to the largest; in the middle where all are equal."""
    low, high = min(values), max(values)
    if low == high:
        return LEVELS[3] * len(values)
    last = len(LEVELS) - 1
    return "".join(LEVELS[round((value - low) / (high - low) * last)] for value in values)


def _bar(share: float, drawn: bool) -> str:
    """A bar of that share of :data:`BAR` columns, filled up with blanks."""
    eighths = round(share * BAR * 8)
    if not drawn:
        return ("#" * round(share * BAR)).ljust(BAR)
    whole, rest = divmod(eighths, 8)
    return (LEVELS[-1] * whole + (EIGHTHS[rest] if rest else "")).ljust(BAR)


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


FORMATS: Final = {"text": answer, "json": write_data, "csv": write_csv}


@click.command()
@click.argument("series", required=False, default="", shell_complete=complete_series)
@series_option(complete_series, "The same as SERIES.")
@minor_option("End with this version; HEAD by default.", name="revision", formerly=["--minor-version"])
@click.option(
    "--max-count", "-n", type=click.IntRange(min=1), metavar="N",
    help=f"Only the newest N versions with such profiles; {SHOWN} by default, all in JSON and CSV.",
)  # fmt: skip
@since_option()
@click.option("--metric", metavar="NAME", default="", help="Only metrics with this in their name: memory.")
@with_options_of(AnswerOptions, "form", format={"type": click.Choice(tuple(FORMATS))})
@click.option("--csv", "as_csv", is_flag=True, hidden=True)
@click.pass_obj
def trend(
    session: Session,
    /,
    series: str,
    pattern: str,
    revision: str | None,
    max_count: int | None,
    since: str | None,
    metric: str,
    form: AnswerOptions,
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
    perun trend --metric memory --format csv -o memory.csv
    """
    if series and pattern:
        raise UsageError("SERIES and --series are the same", "give one of them")
    if as_csv and form.named not in (None, "csv"):
        raise UsageError(f"--{form.named} and --csv contradict each other", "give one of them")
    name = "csv" if as_csv else form.named or "text"
    limit = SHOWN if max_count is None and name == "text" else max_count
    found = run(session.repository, series or pattern, revision, limit=limit, since=since, metric=metric)
    with form.opened(session):
        FORMATS[name](session, found)
    if name == "csv":
        for message in found.damaged:
            session.warn(message)
    return DamagedStore.exit_code if found.damaged else 0
