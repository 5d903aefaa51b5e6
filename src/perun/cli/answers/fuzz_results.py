"""What `perun fuzz --keep` and `perun fuzz --replay` answer, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from perun.cli.table import one_line
from perun.porcelain.fuzz.keep import Kept
from perun.porcelain.fuzz.replay import Replay, Replayed
from perun.profile.amounts import factor
from perun.wording import plural

_STATES: Final = ("worse", "remains", "improved", "repaired", "unknown")


def kept_lines(kept: Kept) -> Iterator[str]:
    """The files, what was added to the job matrix, and what to do next."""
    for one in kept.files:
        said = "kept" if one.is_new else "already there"
        yield f"{said}: {one_line(one.name)}  (from {one_line(one.result)})"
    for setting in kept.settings:
        yield f"added to the job matrix: {setting.key}: {one_line(setting.what)}"
    if not kept.settings:
        yield "the job matrix has them already"
    yield f"{plural(len(kept.files), 'workload')} in {kept.folder}; measure them with: perun run matrix"


def replay_lines(found: Replay) -> Iterator[str]:
    """A line for each result, and how many there are of each state."""
    for one in found.results:
        yield f"{one.state:8}  {one_line(one.result.file)}  {_numbers(one)}"
        yield f"          {one_line(one.reason)}"
    changes = " with uncommitted changes" if found.uncommitted else ""
    counts = [(state, sum(one.state == state for one in found.results)) for state in _STATES]
    listed = ", ".join(f"{count} {state}" for state, count in counts if count)
    yield f"{listed} in {found.version.checksum[:10]}{changes}"


def _numbers(one: Replayed) -> str:
    """The ratios to the seed, then and now."""
    parts = []
    if one.now is not None and one.now.ratio is not None:
        parts.append(f"time {_ratio(one.before)} -> {_ratio(one.now)}")
    if one.lines_now is not None:
        before = "?" if one.lines_before is None else f"{one.lines_before:,.2f}"
        parts.append(f"executed lines {before} -> {one.lines_now:,.2f}")
    return "; ".join(parts)


def _ratio(said: object) -> str:
    ratio, low, high = (getattr(said, name, None) for name in ("ratio", "low", "high"))
    if ratio is None:
        return "?"
    return factor(ratio, None if low is None or high is None else (low, high))
