"""What `perun bench` answers: as text, JSON, Markdown and CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO

from perun.cli.answers import measured as values
from perun.cli.answers.data import write_json
from perun.cli.session import Session
from perun.cli.table import clean, one_line, width
from perun.porcelain.bench.bench import Outcome
from perun.porcelain.bench.results import Result, fastest
from perun.process.outcome import exit_status
from perun.profile.amounts import readable

_COLUMNS: Final = ("command", "mean", "stddev", "median", "user", "system", "min", "max", "runs", "ratio")
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
    if any(one.difference for one in found.results):
        session.say(session.paint(_LEGEND, "dim"))


def _row(session: Session, one: Result) -> tuple[tuple[str, str], str]:
    """The title and the value, and what has no column: the difference."""
    difference = ""
    if one.difference is not None and one.earlier is not None:
        text = values.percent(one.difference)
        painted = session.paint(text, values.style(one.difference, one.measured))
        difference = f"{painted} since {one.earlier.minor_version[: values.SHORT]}"
    return (one_line(one.benchmark.title), values.value(one.measured)), difference


def _details(one: Result) -> str:
    parts = [f"{name} {readable(amount, 's')}" for name, amount in _others(one).items()]
    return f"  {one_line(one.benchmark.title)}: {', '.join(parts)}"


def _summary(session: Session, results: Sequence[Result]) -> None:
    """The ratios of the slower ones to the fastest, as `1.98x [1.94, 2.02]`."""
    best = fastest(results)
    session.say(f"\n{session.paint(one_line(best.benchmark.title), 'bold')} is the fastest; the others take")
    others = sorted((one for one in results if one.ratio), key=lambda one: one.measured.value)
    for one in others:
        session.say(f"  {ratio(one)}  {one_line(one.benchmark.title)}")


def ratio(one: Result) -> str:
    """How many times the fastest a command takes: `1.98x [1.94, 2.02]`; empty for the fastest."""
    if one.ratio is None:
        return ""
    text = f"{_factor(one.ratio.share)}x"
    if one.ratio.low is None or one.ratio.high is None:
        return text
    return f"{text} [{_factor(one.ratio.low)}, {_factor(one.ratio.high)}]"


def _factor(share: float) -> str:
    factor = _ratio_of(share)
    return f"{factor:.2f}" if factor < 100 else f"{factor:,.0f}"


def _ratio_of(share: float) -> float:
    """The ratio that is a share more than one; the interval of few runs may be wider than what there is."""
    return max(0.0, 1 + share)


def as_json(out: TextIO, found: Outcome) -> None:
    """The answer as JSON, schema `perun.bench/1` (docs/json.md)."""
    write_json(
        out,
        {
            "schema": "perun.bench/1",
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
    before = one.earlier
    return {
        "command": one.benchmark.title,
        "cmd": job.cmd,
        "args": job.args,
        "workload": job.workload,
        "parameters": dict(one.benchmark.parameters),
        "measured": values.as_data(one.measured),
        "precision": None if one.precision is None else 100 * one.precision,
        **{name: amount for name, amount in _others(one).items()},
        "times": [sample.real for sample in one.samples],
        "exit_codes": [exit_status(sample.status) for sample in one.samples],
        "ratio": _ratio_data(one),
        "since": None if before is None else before.minor_version,
        "before": None if before is None else values.as_data(before.measured),
        "difference": values.difference_data(one.difference),
        "notes": list(one.notes),
        "profile": one.profile or None,
        "registered": bool(one.profile) and not found.uncommitted,
    }


def _ratio_data(one: Result) -> dict[str, Any] | None:
    if one.ratio is None:
        return None
    low, high = one.ratio.low, one.ratio.high
    interval = None if low is None or high is None else [_ratio_of(low), _ratio_of(high)]
    return {"factor": 1 + one.ratio.share, "interval": interval}


def as_markdown(out: TextIO, found: Outcome) -> None:
    """A table, as a merge request shows it."""
    several = any(one.ratio for one in found.results)
    since = any(one.difference for one in found.results)
    titles = ["Command", "Mean", "Range", *["Ratio"] * several, *["Since"] * since]
    out.write(f"| {' | '.join(titles)} |\n| :--- |{' ---: |' * (len(titles) - 1)}\n")
    for one in found.results:
        others = _others(one)
        cells = [f"`{_cell(one.benchmark.title)}`", values.value(one.measured)]
        cells.append(f"{readable(others['min'], 's')} … {readable(others['max'], 's')}")
        if several:
            cells.append(ratio(one) or "1")
        if since:
            known = one.difference is not None and one.earlier is not None
            named = f" since {one.earlier.minor_version[: values.SHORT]}" if one.earlier is not None else ""
            cells.append(values.percent(one.difference) + named if known else "")
        out.write(f"| {' | '.join(cells)} |\n")


def as_csv(out: TextIO, found: Outcome) -> None:
    """One line for each command, times in seconds."""
    parameters = list(dict.fromkeys(name for one in found.results for name in one.benchmark.parameters))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"parameter_{name}" for name in parameters)])
    for one in found.results:
        others = _others(one)
        spread = one.measured.spread
        given = [one.benchmark.parameters.get(name, "") for name in parameters]
        factor = 1.0 if one.ratio is None else 1 + one.ratio.share
        writer.writerow(
            [one.benchmark.title, one.measured.value, "" if spread is None else spread, others["median"],
             others["user"], others["system"], others["min"], others["max"], len(one.samples), factor, *given]
        )  # fmt: skip


FORMATS: Final[dict[str, Callable[[TextIO, Outcome], None]]] = {
    "json": as_json,
    "markdown": as_markdown,
    "csv": as_csv,
}
"""What writes the answer in each format but text."""
ENDINGS: Final = {".json": "json", ".md": "markdown", ".csv": "csv"}
"""The format that the name of a file stands for."""


def _others(one: Result) -> dict[str, float]:
    """What else there is to say of the runs: seconds."""
    times = sorted(sample.real for sample in one.samples)
    count = len(times)
    return {
        "user": sum(sample.user for sample in one.samples) / count,
        "system": sum(sample.system for sample in one.samples) / count,
        "min": times[0],
        "median": (times[(count - 1) // 2] + times[count // 2]) / 2,
        "max": times[-1],
    }


def _cell(text: str) -> str:
    return clean(text, keep="").replace("|", "\\|").replace("`", "'")
