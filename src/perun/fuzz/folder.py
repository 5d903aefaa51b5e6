"""The folder of results (manual 9.8): the inputs that were found, their differences, the logs,
`results.json`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from html import escape
from pathlib import Path
from typing import Any, Final

from perun import __version__
from perun.core import atomic
from perun.core.errors import ProfileError, UsageError
from perun.fuzz import results
from perun.fuzz.campaign import Campaign
from perun.fuzz.corpus import CorpusMember, name_of, plain
from perun.fuzz.results import FAULT, FOLDERS, HANG, SLOW, Point, Result, TimeSeries

# The difference between an input and its seed as a page that needs nothing else (manual 9.8).
#
# Everything of the inputs is text: markup in them is shown, not followed, and what cannot be printed is
# escaped.

MOST_LINES: Final = 2000
"""Lines that are compared: the comparison takes time by their square at worst."""
MOST_CHARACTERS: Final = 2000
"""Characters of a line that are shown."""
_COMPARED: Final = 300
"""Characters of lines, without what both begin and end with, up to which they are compared one by one."""
_CONTEXT: Final = 3

_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 14px/1.5 sans-serif; margin: 1.5em; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
pre span {{ display: block; min-height: 1.5em; }}
.minus {{ background: #ffebe9; color: #24292f; }} .minus del {{ background: #ffb3ad; }}
.plus {{ background: #e6ffec; color: #24292f; }} .plus ins {{ background: #8ee6a4; }}
ins, del {{ text-decoration: none; }} .skip {{ color: #808080; }}
</style></head><body>
<h1>{title}</h1>
<p>{about}</p>
<pre>{lines}</pre>
</body></html>
"""


def page(title: str, seed_name: str, seed: bytes, found: bytes, rules: Sequence[str]) -> str:
    """The page about an input that was `found`, beside its seed.

    :param rules: labels of the rules between both, in order.
    """
    about = f"Seed {seed_name} ({len(seed):,} bytes) and what was made of it ({len(found):,} bytes)"
    if rules:
        about += f" by {', '.join(rules)}"
    lines = "".join(_lines(_text(seed), _text(found)))
    return _PAGE.format(title=escape(title), about=escape(about), lines=lines)


def _text(data: bytes) -> list[str]:
    """The lines; what is no UTF-8 as `\\xff`."""
    return data.decode("utf-8", "backslashreplace").split("\n")


def _lines(old: list[str], new: list[str]) -> Iterator[str]:
    cut = max(len(old), len(new)) - MOST_LINES
    old, new = old[:MOST_LINES], new[:MOST_LINES]
    matcher = SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield _line("skip", escape(f"@@ line {group[0][1] + 1}, now {group[0][3] + 1} @@"))
        for tag, from_, to, new_from, new_to in group:
            if tag == "equal":
                yield from (_line("", _shown(line)) for line in old[from_:to])
            else:
                yield from _changed(old[from_:to], new[new_from:new_to])
    if cut > 0:
        yield _line("skip", f"... and {cut:,} more lines, which are not compared")


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    """Lines that were replaced; where they are as many, each with what changed in it."""
    if len(old) == len(new) and all(len(line) <= MOST_CHARACTERS for line in (*old, *new)):
        pairs = [_inside(before, after) for before, after in zip(old, new, strict=True)]
        yield from (_line("minus", before) for before, _ in pairs)
        yield from (_line("plus", after) for _, after in pairs)
        return
    yield from (_line("minus", f"<del>{_shown(line, blanks=True)}</del>") for line in old)
    yield from (_line("plus", f"<ins>{_shown(line, blanks=True)}</ins>") for line in new)


def _inside(old: str, new: str) -> tuple[str, str]:
    """Both lines with marks at what only one of them has."""
    head = _same(old, new)
    rest = old[head:], new[head:]
    tail = _same(rest[0][::-1], rest[1][::-1])
    middle = [one[: len(one) - tail] for one in rest]
    before, after = _marked(*middle)
    begin, end = _shown(old[:head]), _shown(rest[0][len(middle[0]) :])
    return f"{begin}{before}{end}", f"{begin}{after}{end}"


def _same(old: str, new: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _marked(old: str, new: str) -> tuple[str, str]:
    if max(len(old), len(new)) > _COMPARED:
        return _mark("del", old), _mark("ins", new)
    before, after = [], []
    for tag, from_, to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            before.append(_shown(old[from_:to]))
            after.append(_shown(new[new_from:new_to]))
        else:
            before.append(_mark("del", old[from_:to]))
            after.append(_mark("ins", new[new_from:new_to]))
    return "".join(before), "".join(after)


def _mark(element: str, text: str) -> str:
    return f"<{element}>{_shown(text, blanks=True)}</{element}>" if text else ""


def _line(kind: str, markup: str) -> str:
    sign = {"minus": "-", "plus": "+"}.get(kind, " ")
    return f'<span class="{kind}">{sign}{markup}</span>'


def _shown(text: str, *, blanks: bool = False) -> str:
    """Escaped; what cannot be printed as its number, and blanks as dots where they are what changed."""
    more = len(text) - MOST_CHARACTERS
    chars = (_character(char, blanks) for char in text[:MOST_CHARACTERS])
    return escape("".join(chars)) + (f" ... {more:,} more characters" if more > 0 else "")


def _character(char: str, blanks: bool) -> str:
    if char == " ":
        return "\u00b7" if blanks else " "
    return char if char.isprintable() else ascii(char)[1:-1]


UNMEASURED: Final = 50
"""Inputs that are kept although nobody measured them, as the time was over: the best ones."""
_ROOM: Final = 4 * 1024 * 1024
"""Bytes that the disk must have left before anything is searched."""


def prepare(folder: Path) -> None:
    """Make the folder, and see that results can be written into it.

    :raises UsageError: where it holds something already, or is no folder. :raises OSError: where it cannot be
        made or written, e.g. as the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--output-dir {folder} is no folder", "give another name") from None
    except FileNotFoundError:  # as in /proc
        raise UsageError(f"--output-dir {folder} cannot be made there", "give another name") from None
    if any(folder.iterdir()):
        hint = "give another folder, or go on with what is there: perun fuzz --resume --output-dir ..."
        raise UsageError(f"--output-dir {folder} is not empty", hint)
    probe(folder)


def probe(folder: Path) -> None:
    """:raises OSError: where no file of a few megabytes can be written, e.g. as the disk is full."""
    path = folder / atomic.temporary_name()
    try:
        with path.open("xb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, _ROOM)
            except OSError as problem:
                if problem.errno != errno.EOPNOTSUPP:
                    problem.filename = str(folder)
                    raise
    finally:
        path.unlink(missing_ok=True)


def write(
    folder: Path,
    campaign: Campaign,
    program: results.Program,
    settings: Mapping[str, Any],
    random_seed: int,
) -> results.Campaign:
    """Write the inputs, their differences, the logs and `results.json`; what was written.

    Nothing of the search is changed, so that it may be called at any time, and again later.

    :raises OSError: if a file cannot be written.
    """
    findings = campaign.found
    found = tuple(_written(folder, campaign))
    whole = results.Campaign(
        program,
        settings,
        random_seed,
        tuple(_seeds(folder, campaign)),
        findings.base,
        found,
        tuple(one.result() for one in campaign.mutator.tallies.values()),
        TimeSeries(tuple(findings.coverage)),
        _degradations(found),
        campaign.executions,
        campaign.iterations,
        len(findings.corpus),
        campaign.seconds,
        campaign.threshold.rate,
        campaign.ended or "interrupted",
        __version__,
    )
    write_logs(folder, whole)
    results.save(folder, whole)
    return whole


def write_logs(folder: Path, campaign: results.Campaign) -> None:
    """The two time series and the results as text, for other programs (manual 9.8)."""
    logs = folder / results.LOGS
    for name, series in (("coverage", campaign.coverage), ("degradation", campaign.degradations)):
        rows = [f"{one.seconds:.3f} {one.executions} {one.value:.6g}" for one in series.points]
        _write_lines(logs / f"{name}_plot_data.txt", ["# seconds executions value", *rows])
    lines = ["# file kind ratio bytes seconds rules"]
    for one in campaign.results:
        ratio = "-" if one.ratio is None else f"{one.ratio:.6g}"
        rules = ",".join(one.rules) or "-"
        lines.append(f"{one.file} {one.kind} {ratio} {one.size} {one.seconds:.6f} {rules}")
    _write_lines(logs / "results_data.txt", lines)


def chosen(campaign: Campaign) -> list[tuple[str, CorpusMember]]:
    """What becomes a result, with its kind: measured degradations and the best of what was not measured, the
    best score first; then hangs and faults as they were found."""
    slow = sorted((one for one in campaign.found.interesting if not one.ending), key=_rank)
    confirmed = [one for one in slow if one.pcr > 0]
    unmeasured = [one for one in slow if one.confirmation is None or one.confirmation.change == "Unknown"]
    unmeasured = [one for one in unmeasured if one.pcr <= 0][:UNMEASURED]
    kept = sorted([*confirmed, *unmeasured], key=_rank)
    failures = [(HANG, one) for one in campaign.found.hangs] + [(FAULT, one) for one in campaign.found.faults]
    return [*((SLOW, one) for one in kept), *failures]


def _rank(member: CorpusMember) -> tuple[float, float, int, int]:
    """Less for what is better: by score, then by the measured ratio, then the smaller one."""
    ratio = member.confirmation.ratio if member.confirmation else None
    return -member.score, -(ratio or 0.0), member.size, member.number


def _written(folder: Path, campaign: Campaign) -> Iterator[Result]:
    earlier = _earlier(folder)
    for kind, member in chosen(campaign):
        file = str(Path(FOLDERS[kind], member.name))
        if not (folder / file).exists():
            atomic.write(folder / file, member.data)
        seed = campaign.found.seeds[member.seed]
        diff = str(Path(results.DIFFS, f"{Path(member.name).stem}-diff.html"))
        if not (folder / diff).exists():
            text = page(member.name, seed.name, seed.data, member.data, member.rules)
            atomic.write(folder / diff, text.encode("utf-8", "replace"))
        made = replace(_result(campaign, kind, member), file=file, diff=diff)
        known = earlier.get(file, made)
        yield replace(made, minimized=known.minimized, growth=known.growth)


def _earlier(folder: Path) -> Mapping[str, Result]:
    """What an earlier part of the campaign has written of its results, by file."""
    try:
        return {one.file: one for one in results.load(folder).results}
    except ProfileError:
        return {}


def _result(campaign: Campaign, kind: str, member: CorpusMember) -> Result:
    counted = kind == SLOW and campaign.settings.coverage
    return Result(
        "",
        kind,
        member.parent,
        member.seed,
        member.rules,
        member.size,
        member.lines if counted else None,
        member.icov if counted else None,
        member.seconds,
        member.at,
        member.execution,
        member.score,
        member.ending,
        hot=f"{campaign.unit[:-1]} {member.hot}" if member.hot >= 0 else "",
        hot_ratio=member.hot_ratio if member.hot >= 0 else None,
        confirmation=member.confirmation,
    )


def _seeds(folder: Path, campaign: Campaign) -> Iterator[results.Seed]:
    """The seeds, a copy of each in the folder: results are compared with them later."""
    taken: set[str] = set()
    for member in campaign.found.seeds.values():
        path = Path(member.name)
        name = plain(path.name)
        if name in taken:
            name = name_of(path, member.data)
        taken.add(name)
        file = str(Path(results.SEEDS, name))
        if not (folder / file).exists():
            atomic.write(folder / file, member.data)
        yield results.Seed(member.name, file, member.size, member.lines, member.seconds)


def _degradations(found: Sequence[Result]) -> TimeSeries:
    """How many inputs there were that are slow, over time."""
    slow = sorted((one for one in found if one.kind == SLOW), key=lambda one: (one.at, one.execution))
    points = [Point(0.0, 0, 0.0)]
    points += [Point(one.at, one.execution, float(count)) for count, one in enumerate(slow, 1)]
    return TimeSeries(tuple(points))


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    atomic.write(path, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
