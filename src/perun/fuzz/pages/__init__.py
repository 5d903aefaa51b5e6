"""What a campaign looks like: `index.html` and the two time series as PDF, in the folder of its results."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from perun.core import atomic
from perun.core.extras import install_command
from perun.core.regular import read_regular
from perun.core.wording import counted
from perun.fuzz.pages import drawing
from perun.fuzz.pages.drawing import DrawingAxis, DrawnSeries, Mark, chart
from perun.fuzz.patterns import name_of
from perun.fuzz.results import FAULT, GRAPHS, HANG, Campaign, Result, TimeSeries
from perun.pages import CSS, encodable, escape, page, text_beside
from perun.profile.amounts import factor
from perun.profile.amounts import readable as amounts_readable

# The page of a campaign, `index.html`: what was found, how its cost grows, what led there; no script.

# Inputs of programs as HTML: any bytes, long rows of the same shortened, and two of them side by side.

_SHOWN: Final = 4000
"""Bytes of an input that a page shows."""
_LINES: Final = 200
_LONG_LINE: Final = 400
_ROW: Final = re.compile(r"(.)\1{23,}|(..{1,7}?)\2{11,}", re.DOTALL)
"""The same character 24 times, or a few of them 12 times."""

STYLE: Final = """\
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; }
.sides > div { min-width: 0; }
.sides pre, pre.input { background: var(--surface); border: 1px solid var(--line); border-radius: .4rem;
  padding: .4rem .6rem; margin: .2rem 0 .8rem; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 24rem; overflow: auto; unicode-bidi: isolate; }
.sides del, .sides ins { text-decoration: none; border-radius: .2rem; }
.sides del { background: color-mix(in srgb, var(--mark) 30%, transparent); }
.sides ins { background: color-mix(in srgb, var(--accent) 30%, transparent); }
.row { color: var(--muted); border: 1px solid var(--line); border-radius: .3rem; padding: 0 .3rem; }
@media (max-width: 50rem) { .sides { grid-template-columns: 1fr; } }
"""


def shown(data: bytes) -> str:
    """An input as HTML in one `pre`; what is not text is written as `\\xff`."""
    return f'<pre class="input">{_pieces(readable(data[:_SHOWN]))}{_rest(data)}</pre>'


def side_by_side(old: bytes, new: bytes) -> tuple[str, str]:
    """Two inputs as HTML, each with what the other does not have marked.

    Only the first 4,000 bytes and 200 lines of each are compared.
    """
    one, other = (_lines(readable(data[:_SHOWN])) for data in (old, new))
    left, right = [], []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        before, after = "".join(one[a:b]), "".join(other[c:d])
        if kind == "equal":
            left.append(_pieces(before))
            right.append(_pieces(after))
        else:
            left.append(f"<del>{_pieces(before)}</del>" if before else "")
            right.append(f"<ins>{_pieces(after)}</ins>" if after else "")
    return "".join(left) + _rest(old), "".join(right) + _rest(new)


def readable(data: bytes) -> str:
    """Bytes as text: UTF-8, and an escape for what is none and for control characters."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(char if char in "\n\t" or char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _lines(text: str) -> list[str]:
    pieces: list[str] = []
    for line in text.splitlines(keepends=True)[:_LINES]:
        # A long line is compared by words: all of it would be marked for one character.
        pieces += re.findall(r"\s+|\S+", line) if len(line) < _LONG_LINE else [line]
    return pieces


def _pieces(text: str) -> str:
    """Escaped text, with a long row of the same written as what it is and how often it is there."""
    parts, at = [], 0
    for match in _ROW.finditer(text):
        unit = match[1] or match[2]
        times = len(match[0]) // len(unit)
        parts.append(escape(text[at : match.start()]))
        parts.append(f'<span class="row">{times:,} {escape(name_of(unit.encode()))}</span>')
        at = match.start() + times * len(unit)
    return "".join((*parts, escape(text[at:])))


def _rest(data: bytes) -> str:
    more = len(data) - _SHOWN
    return f'<span class="row">{more:,} more bytes</span>' if more > 0 else ""


FILE: Final = "index.html"
_DETAILED: Final = 50
"""Results that are shown with their inputs; the others are rows of the table."""
_RULES: Final = 8
"""The last rules of a result that the ranking has; all are with its input."""
_LISTED: Final = 1000
"""Rows of the table."""
_TITLES: Final = {HANG: "hang", FAULT: "fault"}

Read = Callable[[str], bytes | None]
"""The content of a file of the folder by its path there; None where it cannot be read."""


def index(campaign: Campaign, read: Read) -> str:
    """The whole page.

    :param read: gives the inputs; what it does not give is left out.
    """
    command = " ".join(filter(None, (campaign.program.cmd, campaign.program.args)))
    body = "\n".join(
        (
            "<main>",
            f"<h1>Fuzzing of {escape(command)}</h1>",
            f'<p class="subtitle">{escape(_summary(campaign))}</p>',
            _ranking(campaign.results),
            _course(campaign),
            _rules(campaign),
            _details(campaign, read),
            f"<footer>{escape(_reproduce(campaign))}</footer>",
            "</main>",
        )
    )
    style = CSS + drawing.STYLE + STYLE + text_beside(__file__, "page.css")
    return page(title=f"Fuzzing of {command}", body=body, style=style)


def _summary(campaign: Campaign) -> str:
    found = campaign.results
    kinds = [
        counted(sum(one.kind == kind for one in found), noun)
        for kind, noun in (("slow", "slow input"), (HANG, "hang"), (FAULT, "fault"))
    ]
    best = max((one.ratio for one in found if one.ratio is not None), default=None)
    parts = [
        ", ".join(kinds),
        f"{counted(campaign.executions, 'execution')} in {amounts_readable(campaign.seconds, 's')}",
        f"best ratio of executed lines {best:,.2f}" if best is not None else "",
        f"version {campaign.program.version[:12]}" if campaign.program.version else "",
        f"ended: {campaign.ended}" if campaign.ended else "",
    ]
    return "; ".join(filter(None, parts))


def _reproduce(campaign: Campaign) -> str:
    said = f"Random seed {campaign.random_seed}"
    if campaign.program.backend:
        said += f", counted by {campaign.program.backend}"
    return f"{said}. perun fuzz --keep makes workloads of these results, --replay measures them again."


def _ranking(results: Sequence[Result]) -> str:
    if not results:
        return "<p>No slow input was found.</p>"
    head = (("", 1), ("file", 1), ("ratio", 0), ("time ratio", 0), ("size", 0), ("growth", 1), ("rules", 1))
    rows = [_ranked(number, one) for number, one in enumerate(results[:_LISTED], 1)]
    more = len(results) - _LISTED
    note = f'<p class="note">{more:,} more are in results.json.</p>' if more > 0 else ""
    return f"<h2>Ranking</h2>{_table(head, rows)}{note}"


def _ranked(number: int, one: Result) -> list[str]:
    link = f'<a href="#r{number}">{escape(one.file)}</a>' if number <= _DETAILED else escape(one.file)
    return [
        f"{number}{_kind(one)}",
        link,
        "" if one.ratio is None else factor(one.ratio),
        escape(_measured(one)),
        escape(amounts_readable(one.size, "B")),
        escape(_growth_text(one)),
        escape(" ".join((*("…" for _ in one.rules[:-_RULES][:1]), *one.rules[-_RULES:]))),
    ]


def _kind(one: Result) -> str:
    return f' <span class="kind">{_TITLES[one.kind]}</span>' if one.kind in _TITLES else ""


def _measured(one: Result) -> str:
    """The ratio of the times with its interval."""
    said = one.confirmation
    if said is None:
        return ""
    if said.ratio is None:
        return said.change
    return factor(said.ratio, None if said.low is None or said.high is None else (said.low, said.high))


def _growth_text(one: Result) -> str:
    return str((one.growth or {}).get("text") or (one.growth or {}).get("reason") or "")


def _table(head: Iterable[tuple[str, int]], rows: Iterable[Sequence[str]]) -> str:
    """A table; :param head: titles, each with whether its column is text; :param rows: HTML."""
    kinds = [' class="text"' if is_text else "" for _, is_text in head]
    titles = "".join(f"<th{kind}>{escape(title)}</th>" for (title, _), kind in zip(head, kinds, strict=True))
    lines = ("".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _course(campaign: Campaign) -> str:
    """The two time series with the places of their quartiles (manual 9.8)."""
    charts = [
        _time_series("Executed lines over time", "ratio to the seeds", campaign.coverage),
        _time_series("Slow inputs over time", "slow inputs", campaign.degradations),
    ]
    shown = [f"<div>{one}</div>" for one in charts if one]
    if not shown:
        return ""
    note = "Dashed: when a quarter, half and three quarters of the way to the last value were done."
    return f'<h2>Course</h2><div class="charts">{"".join(shown)}</div><p class="note">{note}</p>'


def _time_series(title: str, label: str, series: TimeSeries) -> str:
    if not series.points:
        return ""
    names = ("Q1", "median", "Q3")
    marks = [Mark(name, one.seconds) for name, one in zip(names, series.quartiles(), strict=False)]
    x, y = [one.seconds for one in series.points], [one.value for one in series.points]
    return chart(
        title, DrawingAxis("time", "s"), DrawingAxis(label), [DrawnSeries(label, "steps", x, y)], marks
    )


def _rules(campaign: Campaign) -> str:
    worked = [one for one in campaign.rules if one.applied]
    if not worked:
        return ""
    worked.sort(key=lambda one: (-one.degradations, -one.increases, -one.applied))
    head = (("rule", 1), ("what it does", 1), ("applied", 0), ("increases", 0), ("slow", 0))
    rows = [
        [escape(one.label), escape(one.description)]
        + [f"{number:,}" for number in (one.applied, one.increases, one.degradations)]
        for one in worked
    ]
    return f"<h2>Rules</h2>{_table(head, rows)}"


def _details(campaign: Campaign, read: Read) -> str:
    seeds = {one.name: one.path for one in campaign.seeds}
    parts = [
        _detail(number, one, read, seeds.get(one.seed, ""))
        for number, one in enumerate(campaign.results[:_DETAILED], 1)
    ]
    more = len(campaign.results) - _DETAILED
    note = f'<p class="note">The inputs of {more:,} more are in the folder.</p>' if more > 0 else ""
    return f"<h2>Inputs</h2>{''.join(parts)}{note}" if parts else ""


def _detail(number: int, one: Result, read: Read, seed: str) -> str:
    growth = one.growth or {}
    facts = [
        f"Seed {one.seed}, mutated from {one.parent}",
        f"by the rules {' '.join(one.rules)}" if one.rules else "",
        f"found after {amounts_readable(one.at, 's')}, execution {one.execution:,}",
        one.ending,
        f"{one.hot} was executed {one.hot_ratio:,.1f} times as often" if one.hot and one.hot_ratio else "",
        _minimizing(growth.get("minimizing")),
    ]
    said = _growth_text(one)
    return "".join(
        (
            f'<details id="r{number}"{" open" if number <= 3 else ""}>',
            f"<summary>{number}. {escape(one.file)}{_kind(one)}</summary>",
            f'<p class="growth">{escape(said[:1].upper() + said[1:])}</p>' if said else "",
            f'<p class="note">{escape("; ".join(filter(None, facts)))}.</p>',
            f'<div class="charts">{_growth_charts(growth)}</div>',
            _sides(one, read, seed),
            f'<p><a href="{_address(one.diff)}">The whole difference</a></p>' if one.diff else "",
            "</details>",
        )
    )


def _minimizing(facts: Any) -> str:
    if not isinstance(facts, Mapping):
        return ""
    tests = sum(int(one["tests"]) for one in facts["stages"])
    ended = "" if facts["complete"] else ", as far as the time allowed"
    return f"minimised from {facts['before']:,} to {facts['after']:,} bytes in {counted(tests, 'run')}{ended}"


def _growth_charts(growth: Mapping[str, Any]) -> str:
    points = growth.get("points") or ()
    label = f"number of {growth['pattern']['name']}" if growth.get("pattern") else ""
    parts = []
    for order in growth.get("orders") or ():
        unit, key = ("s", "seconds") if order["of"] == "time" else ("", "cost")
        x = [float(one["times"]) for one in points]
        series = [DrawnSeries("measured", "points", x, [float(one[key]) for one in points])]
        if len(order["curve"]) == len(x):
            series.append(DrawnSeries(order["name"], "line", x, [float(value) for value in order["curve"]]))
        log = order["form"] != "b^n"
        axes = DrawingAxis(label, log=log), DrawingAxis(order["of"], unit, log=True)
        title = f"Growth of {order['of']}"
        parts.append(f"<div>{chart(title, *axes, series)}</div>")
    return "".join(parts)


def _sides(one: Result, read: Read, seed: str) -> str:
    """The seed beside the smallest form of the result, or beside the result where there is none."""
    path, title = (one.minimized, "minimised") if one.minimized else (one.file, "found")
    new = read(path)
    if new is None:
        return ""
    old = read(seed) if seed else None
    heading = f'<a href="{_address(path)}">{title}</a>, {amounts_readable(len(new), "B")}'
    if old is None:
        return f"<p>{heading}</p>{shown(new)}"
    left, right = side_by_side(old, new)
    return (
        f'<div class="sides"><div>seed, {amounts_readable(len(old), "B")}<pre>{left}</pre></div>'
        f"<div>{heading}<pre>{right}</pre></div></div>"
    )


def _address(path: str) -> str:
    """A relative address: also where the path begins as `javascript:` does."""
    return escape("./" + quote(path.encode("utf-8", "replace")))


_MOST_BYTES = 64 * 1024 * 1024


def write(folder: Path, campaign: Campaign, *, plots: bool = True) -> tuple[str, ...]:
    """Write `index.html`, and the time series as PDF unless without `plots`.

    :return: notes for the user: that matplotlib is not installed, and how it is.
    :raises OSError: if a file cannot be written.
    """

    def read(name: str) -> bytes | None:
        # A name of a file that a stranger wrote must not lead out of the folder, not by a link either.
        try:
            path = Path(os.path.realpath(folder / name))
            inside = path.is_relative_to(os.path.realpath(folder))
            return read_regular(path, _MOST_BYTES) if inside else None
        except (OSError, ValueError):
            return None

    atomic.write(folder / FILE, encodable(index(campaign, read)).encode())
    return _write_graphs(folder / GRAPHS, campaign) if plots else ()


def _write_graphs(folder: Path, campaign: Campaign) -> tuple[str, ...]:
    try:
        for name, title, label, series in (
            ("coverage", "Executed lines", "ratio of executed lines", campaign.coverage),
            ("degradations", "Slow inputs", "slow inputs", campaign.degradations),
        ):
            atomic.write(folder / drawing.FILES[name], drawing.time_series(series, title, label))
    except ImportError:
        return (
            "the time series are not written as PDF, as matplotlib is not installed; install it with: "
            f"{install_command('fuzz')}; index.html has them",
        )
    return ()
