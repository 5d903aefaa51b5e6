"""What `perun bisect` answers: the first version with the change or a range of them, as text or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from perun.cli.answers.data import finite, write_json
from perun.cli.answers.measured import SHORT
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.plugin.api import MinorVersion
from perun.porcelain.bisect.choosing import Bounds
from perun.porcelain.bisect.data import Bisected, Like, Ratio, Seen
from perun.profile.amounts import factor, readable_pair
from perun.wording import plural

MOST: Final = 10
"""Versions of a range that are printed."""


def answer(session: Session, found: Bisected) -> None:
    """Print it."""
    if not found.range:
        session.say(_no_difference(found))
        session.note(f"hint: {_next_without(found)}")
        return
    summary = ", ".join(filter(None, (_ratio(found.ratio), *_counts(found))))
    if found.first is not None:
        session.say(f"first {_word(found)} commit: {_version(session, found.first)}, {summary}")
    else:
        session.say(f"the first {_word(found)} commit is one of these {len(found.range)}: {summary}")
        for version in found.range[-MOST:]:
            session.say(f"  {_version(session, version)}")
        if len(found.range) > MOST:
            session.say(f"  and {len(found.range) - MOST} before them")
    if found.what:
        session.say(f"  {one_line(found.what)}{_costs(found.ratio)}")
    if found.merged is not None:
        session.say(f"  it came by the merge {_version(session, found.merged)}")
    if found.why:
        session.note(f"note: {one_line(found.why)}")
    session.note(f"next: {_next(found)}")


def left(found: Bounds) -> str:
    """How many versions are left, as git says it."""
    return (
        f"bisecting: {plural(len(found.open), 'version')} left to look at (roughly "
        f"{plural(found.steps, 'step')})"
    )


def line_of(seen: Seen) -> str:
    """What was found of one version: `4baf672 is bad, 1.31x [1.27, 1.35] of 08ae2d1: Sort by two keys`."""
    name = f"{seen.version.checksum[:SHORT]} is {seen.like.value}"
    if seen.like is Like.SKIPPED:
        return f"{name}: {one_line(seen.why.partition(chr(10))[0])}"
    beside = ""
    if seen.ratio and seen.against:
        word = "from" if seen.ratio.orders else "of"
        beside = f", {_ratio(seen.ratio)} {word} {seen.against[:SHORT]}"
    return f"{name}{beside}: {one_line(seen.version.subject)}"


def write_data(session: Session, found: Bisected) -> None:
    """Write it as JSON, schema `perun.bisect/1`."""
    worse = found.is_degradation
    write_json(
        session.out,
        {
            "schema": "perun.bisect/1",
            "good": found.good.checksum,
            "bad": found.bad.checksum,
            "what": found.what,
            "first": None if found.first is None else _version_data(found.first),
            "parent": None if found.parent is None else found.parent.checksum,
            "merge": None if found.merged is None else found.merged.checksum,
            "degradation": worse,
            "ratio": _ratio_data(found.ratio),
            "confirmed": found.confirmed,
            "measured": found.measured,
            "stored": found.stored,
            "skipped": found.skipped,
            "why": found.why,
            "range": [_version_data(one) for one in found.range],
            "versions": [_seen_data(one) for one in found.seen],
        },
    )


def _version(session: Session, version: MinorVersion) -> str:
    name = session.paint(version.checksum[:SHORT], "yellow")
    return f"{name} {one_line(version.subject)} ({one_line(version.author)})"


def _word(found: Bisected) -> str:
    """What the commit is: slow or fast, of what is no time bad or good."""
    worse = found.is_degradation
    if found.kind in ("time", "instructions", "mixed", "growth") and worse is not None:
        return "slow" if worse else "fast"
    return "good" if worse is False else "bad"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if ratio.orders:
        return _growth(ratio)
    if ratio.value == math.inf:
        return "from nothing"
    known = not ratio.is_exact and ratio.is_finite
    return factor(ratio.value, (ratio.low, ratio.high) if known else None)


def _growth(ratio: Ratio) -> str:
    """The exponents of the two orders: `exponent 1 -> 2`, and the interval of their difference."""
    before, after = (math.log2(cost) for cost in ratio.costs)
    interval = ""
    if not ratio.is_exact and ratio.is_finite:
        interval = f" (by {math.log2(ratio.low):+.2g} to {math.log2(ratio.high):+.2g})"
    return f"exponent {before:.2g} -> {after:.2g}{interval}"


def _costs(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if ratio.orders:
        return f"  {' -> '.join(ratio.orders)}"
    before, after = readable_pair(*ratio.costs, ratio.unit)
    return f"  {before} -> {after}"


def _counts(found: Bisected) -> Iterator[str]:
    yield f"{plural(found.measured, 'version')} measured"
    if found.stored:
        yield f"{found.stored} known from what is stored"
    if found.skipped:
        yield f"{found.skipped} skipped"


def _no_difference(found: Bisected) -> str:
    ends = f"{found.good.checksum[:SHORT]} and {found.bad.checksum[:SHORT]}"
    ratio = f": {_ratio(found.ratio)}{_costs(found.ratio)}" if found.ratio else ""
    return f"{one_line(found.what)}: {found.why.replace('the ends', ends, 1)}{ratio}"


def _next_without(found: Bisected) -> str:
    if "--resume" in found.why:
        return "go on with: perun bisect --resume --budget SECONDS"
    if "certain" in found.why:
        return "give it more time: --budget SECONDS, --max-pairs N; or choose --metric instructions"
    return "name other versions, or another --metric or --location; perun changes shows what is stored"


def _next(found: Bisected) -> str:
    if found.first is not None:
        return f"perun explain {found.first.checksum[:SHORT]}"
    parent = found.parent.checksum[:SHORT] if found.parent else found.good.checksum[:SHORT]
    return f"perun explain {parent}..{found.range[-1].checksum[:SHORT]}"


def _ratio_data(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {
        "value": finite(ratio.value),
        "interval": None if ratio.is_exact else [finite(ratio.low), finite(ratio.high)],
        "exact": ratio.is_exact,
        "before": finite(ratio.costs[0]),
        "after": finite(ratio.costs[1]),
        "unit": ratio.unit,
        "orders": list(ratio.orders) if ratio.orders else None,
    }


def _version_data(version: MinorVersion) -> dict[str, Any]:
    return {
        "version": version.checksum,
        "date": version.date,
        "author": version.author,
        "subject": version.subject,
    }


def _seen_data(seen: Seen) -> dict[str, Any]:
    return {
        **_version_data(seen.version),
        "like": seen.like.value,
        "how": seen.how,
        "ratio": _ratio_data(seen.ratio),
        "against": seen.against,
        "why": seen.why,
    }
