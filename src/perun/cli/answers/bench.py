"""What `perun bench` answers: as text, JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO

from perun.cli.answers import measured as values
from perun.cli.answers.data import write_json
from perun.cli.session import Session
from perun.cli.table import clean, one_line, width
from perun.measurement import present
from perun.measurement.estimate import sample_of
from perun.porcelain.bench.bench import Outcome
from perun.porcelain.bench.results import Result, fastest
from perun.porcelain.earlier import Judged
from perun.process.outcome import exit_status
from perun.profile.amounts import factor, readable

_COLUMNS: Final = (
    *("command", "value", "low", "high", "n", "spread", "user", "system", "min", "max"),
    *("ratio", "ratio_low", "ratio_high"),
)
_LEGEND: Final = "since: measured at another time; perun compare measures both in turns, and decides"


def as_text(session: Session, found: Outcome) -> None:
    """Print a line for each command, and below them what several have to do with each other."""
    rows = [_row(session, one) for one in found.results]
    widths = [max((width(row[place]) for row, _ in rows), default=0) for place in range(2)]
    for (title, value), rest in rows:
        first = title + " " * (widths[0] - width(title))
        second = value + " " * (widths[1] - width(value)) if rest else value
        session.say("   ".join(filter(None, (session.paint(first, "bold"), second, rest))))
    if session.verbosity:
        for one in found.results:
            session.say(session.paint(_details(one), "dim"))
    if any(one.ratio for one in found.results):
        _summary(session, found.results)
    if any(map(_since, found.results)):
        session.say(session.paint(_LEGEND, "dim"))


def _row(session: Session, one: Result) -> tuple[tuple[str, str], str]:
    """The title and the value, and what has no column: the difference."""
    value = present.value(one.value, "s")
    return (one_line(one.benchmark.title), value), values.told(session, one.judged) if one.judged else ""


def _since(one: Result) -> Judged | None:
    """The value beside the version before, if there is one."""
    return one.judged if one.judged and one.judged.verdict else None


def _details(one: Result) -> str:
    parts = [f"{name} {readable(amount, 's')}" for name, amount in _others(one).items() if amount is not None]
    return f"  {one_line(one.benchmark.title)}: {', '.join(parts)}"


def _summary(session: Session, results: Sequence[Result]) -> None:
    """The ratios of the slower ones to the fastest, as `1.98x [1.94, 2.02]`."""
    best = fastest(results)
    session.say(f"\n{session.paint(one_line(best.benchmark.title), 'bold')} is the fastest; the others take")
    others = sorted((one for one in results if one.ratio), key=lambda one: one.value.value)
    for one in others:
        session.say(f"  {ratio(one)}  {one_line(one.benchmark.title)}")


def ratio(one: Result) -> str:
    """How many times the fastest a command takes: `1.98x [1.94, 2.02]`; empty for the fastest."""
    if one.ratio is None:
        return ""
    known = one.ratio.high < math.inf
    return factor(one.ratio.difference.ratio, (one.ratio.low, one.ratio.high) if known else None)


def as_json(out: TextIO, found: Outcome) -> None:
    """The answer as JSON, schema `perun.bench/2` (docs/json.md)."""
    write_json(
        out,
        {
            "schema": "perun.bench/2",
            "minor_version": found.version.checksum,
            "uncommitted": found.uncommitted,
            "environment": list(found.conditions),
            "interrupted": found.interruption is not None,
            "benchmarks": [_data(one, found) for one in found.results],
            "saved": [setting.key for setting in found.saved],
        },
    )


def _data(one: Result, found: Outcome) -> dict[str, Any]:
    job = one.benchmark.job
    return {
        "command": one.benchmark.title,
        "cmd": job.cmd,
        "args": job.args,
        "workload": job.workload,
        "parameters": dict(one.benchmark.parameters),
        "measured": {"metric": "real time", **present.value_data(one.value, "s")},
        "precision": None if one.precision is None else 100 * one.precision,
        **_others(one),
        "times": [sample.real for sample in one.samples],
        "exit_codes": [exit_status(sample.status) for sample in one.samples],
        **_ratio_data(one),
        "difference": values.difference_data(one.judged) if one.judged else None,
        "notes": list(one.notes),
        "profile": one.profile or None,
        "registered": bool(one.profile) and not found.uncommitted,
    }


def _ratio_data(one: Result) -> dict[str, float | None]:
    """The ratio to the fastest; null of that itself, and of one command alone."""
    data = {} if one.ratio is None else present.verdict_data(one.ratio)
    return {name: data.get(name) for name in ("ratio", "ratio_low", "ratio_high")}


def as_markdown(out: TextIO, found: Outcome) -> None:
    """A table, as a merge request shows it."""
    several = any(one.ratio for one in found.results)
    since = any(map(_since, found.results))
    titles = ["Command", "Time", "Range", *["Ratio"] * several, *["Since"] * since]
    out.write(f"| {' | '.join(titles)} |\n| :--- |{' ---: |' * (len(titles) - 1)}\n")
    for one in found.results:
        others = _others(one)
        cells = [f"`{_cell(one.benchmark.title)}`", present.value(one.value, "s")]
        cells.append(f"{readable(others['min'], 's')} … {readable(others['max'], 's')}")
        if several:
            cells.append(ratio(one) or "1")
        if since:
            judged = _since(one)
            short = judged.since[: values.SHORT] if judged else ""
            cells.append(f"{values.difference(judged)} since {short}" if judged else "")
        out.write(f"| {' | '.join(cells)} |\n")


def as_csv(out: TextIO, found: Outcome) -> None:
    """One line for each command, times in seconds."""
    parameters = list(dict.fromkeys(name for one in found.results for name in one.benchmark.parameters))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"parameter_{name}" for name in parameters)])
    for one in found.results:
        row = {
            "command": one.benchmark.title, **present.value_data(one.value, "s"), **_others(one),
            **_ratio_data(one),
        }  # fmt: skip
        given = [one.benchmark.parameters.get(name, "") for name in parameters]
        writer.writerow([*(row[name] for name in _COLUMNS), *given])


FORMATS: Final[dict[str, Callable[[TextIO, Outcome], None]]] = {
    "json": as_json,
    "markdown": as_markdown,
    "csv": as_csv,
}
"""What writes the answer in each format but text."""
ENDINGS: Final = {".json": "json", ".md": "markdown", ".csv": "csv"}
"""The format that the name of a file stands for."""


def _others(one: Result) -> dict[str, Any]:
    """What else there is to say of the runs: seconds; no spread of a single one."""
    times = [sample.real for sample in one.samples]
    sample = sample_of(times)
    return {
        "user": sum(sample.user for sample in one.samples) / len(times),
        "system": sum(sample.system for sample in one.samples) / len(times),
        "min": min(times),
        "max": max(times),
        "spread": sample.spread * sample.median if sample and sample.spread is not None else None,
    }


def _cell(text: str) -> str:
    return clean(text, keep="").replace("|", "\\|").replace("`", "'")
