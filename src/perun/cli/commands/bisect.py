"""`perun bisect`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import click

from perun.cli.answers.data import SHORT, finite, write_json
from perun.cli.commands.compare import complete_harness, complete_metric
from perun.cli.completing import complete_minor
from perun.cli.options import CommandOptions, json_option, sizes_of, with_options_of
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import NOT_DECIDED, UsageError
from perun.core.wording import plural
from perun.measurement import present
from perun.plugin.api import MinorVersion
from perun.plugin.params import param
from perun.profile.amounts import factor, readable_pair
from perun.repository import bisections
from perun.running.bisect import bisect as verb
from perun.running.bisect.data import (
    MAX_PAIRS,
    SECONDS,
    BisectRequest,
    BisectResult,
    CostRatio,
    VersionEvidence,
    VersionLabel,
)
from perun.running.bisect.judging import Bounds
from perun.running.bisect.within import HunkReport, within
from perun.running.compare.instruments import FREE

# What `perun bisect` answers: the first version with the change or a range of them, as text or JSON.

MOST: Final = 10
"""Versions of a range that are printed."""


def answer(session: Session, found: BisectResult) -> None:
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


def line_of(seen: VersionEvidence) -> str:
    """What was found of one version: `4baf672 is bad, 1.31x [1.27, 1.35] of 08ae2d1: Sort by two keys`."""
    name = f"{seen.version.checksum[:SHORT]} is {seen.like.value}"
    if seen.like is VersionLabel.SKIPPED:
        return f"{name}: {one_line(seen.why.partition(chr(10))[0])}"
    beside = ""
    if seen.ratio and seen.against:
        word = "from" if seen.ratio.orders else "of"
        beside = f", {_ratio(seen.ratio)} {word} {seen.against[:SHORT]}"
    return f"{name}{beside}: {one_line(seen.version.subject)}"


def write_data(session: Session, found: BisectResult) -> None:
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


def _word(found: BisectResult) -> str:
    """What the commit is: slow or fast, of what is no time bad or good."""
    worse = found.is_degradation
    if found.kind in ("time", "instructions", "mixed", "growth") and worse is not None:
        return "slow" if worse else "fast"
    return "good" if worse is False else "bad"


def _ratio(ratio: CostRatio | None) -> str:
    if ratio is None:
        return ""
    if ratio.orders:
        return _growth(ratio)
    if not math.isfinite(ratio.value):
        return "from nothing" if ratio.value == math.inf else ""
    known = not ratio.is_exact and ratio.is_finite
    return factor(ratio.value, (ratio.low, ratio.high) if known else None)


def _growth(ratio: CostRatio) -> str:
    """The exponents of the two orders: `exponent 1 -> 2`, and the interval of their difference."""
    before, after = (math.log2(cost) for cost in ratio.costs)
    interval = ""
    if not ratio.is_exact and ratio.is_finite:
        interval = f" (by {math.log2(ratio.low):+.2g} to {math.log2(ratio.high):+.2g})"
    return f"exponent {before:.2g} -> {after:.2g}{interval}"


def _costs(ratio: CostRatio | None) -> str:
    if ratio is None:
        return ""
    if ratio.orders:
        return f"  {' -> '.join(ratio.orders)}"
    before, after = readable_pair(*ratio.costs, ratio.unit)
    return f"  {before} -> {after}"


def _counts(found: BisectResult) -> Iterator[str]:
    yield f"{plural(found.measured, 'version')} measured"
    if found.stored:
        yield f"{found.stored} known from what is stored"
    if found.skipped:
        yield f"{found.skipped} skipped"


def _no_difference(found: BisectResult) -> str:
    ends = f"{found.good.checksum[:SHORT]} and {found.bad.checksum[:SHORT]}"
    ratio = f": {_ratio(found.ratio)}{_costs(found.ratio)}" if found.ratio else ""
    return f"{one_line(found.what)}: {found.why.replace('the ends', ends, 1)}{ratio}"


def _next_without(found: BisectResult) -> str:
    if "--resume" in found.why:
        return "go on with: perun bisect --resume --budget SECONDS"
    if "certain" in found.why:
        more = "give it more time: --budget SECONDS, --max-pairs N"
        return more if found.benchmark else f"{more}; or choose --metric instructions"
    another = "--metric" if found.benchmark else "--metric or --location"
    return f"name other versions, or another {another}; perun changes shows what is stored"


def _next(found: BisectResult) -> str:
    of_it = f" --benchmark {shlex.quote(found.benchmark)}" if found.benchmark else ""
    if found.first is not None:
        return f"perun explain {found.first.checksum[:SHORT]}{of_it}"
    parent = found.parent.checksum[:SHORT] if found.parent else found.good.checksum[:SHORT]
    return f"perun explain {parent}..{found.range[-1].checksum[:SHORT]}{of_it}"


def _ratio_data(ratio: CostRatio | None) -> dict[str, Any] | None:
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


def _seen_data(seen: VersionEvidence) -> dict[str, Any]:
    return {
        **_version_data(seen.version),
        "like": seen.like.value,
        "how": seen.how,
        "ratio": _ratio_data(seen.ratio),
        "against": seen.against,
        "why": seen.why,
    }


@dataclass(frozen=True)
class BisectOptions(CommandOptions):
    """What is measured, and how long."""

    metric: str = param(
        "",
        metavar="NAME",
        help=f"What to measure: {', '.join(FREE)}, or what a collector records, as instructions or "
        "memory:peak; by default cpu, or instructions where there is a location. With :growth behind it, the "
        "order of growth, as trace:growth.",
    )
    benchmark: str = param(
        "",
        metavar="NAME",
        help="Measure this one of the named benchmarks of the project, in place of a command; a shell "
        "pattern that only one fits will do.",
    )
    harness: str = param("", metavar="NAME", help="The harness of the benchmark, where several have it.")
    location: str = param(
        "",
        metavar="FUNCTION",
        help="Measure only this function, or another place that the collector records.",
    )
    sizes: str = param(
        "",
        formerly=["-s"],
        metavar="N,N,...",
        help="Workloads over which the order of growth is told; without, the sizes of the calls tell it.",
    )
    script: str = param(
        "",
        metavar="CMD",
        help="Measure nothing, but run CMD in each version: 0 is good, 1 to 127 bad, 125 cannot be judged, "
        "128 and more end the bisection, as for git bisect run.",
    )
    budget: float | None = param(
        None, metavar="SECONDS", help=f"Time for measuring; {SECONDS:g} for each version by default."
    )
    max_pairs: int = param(
        MAX_PAIRS,
        minimum=1,
        metavar="N",
        help="Pairs of runs of a version at most, where fewer do not decide.",
    )
    no_pin: bool = param(False, help="Do not keep a program that uses one core on one core.")
    within: str = param(
        "",
        metavar="COMMIT",
        help="Find the hunk of this commit that did it, by instructions where these are counted; . is the "
        "working copy.",
    )
    resume: bool = param(False, help="Go on with the bisection that was interrupted.")
    reset: bool = param(False, help="Forget the bisection that was interrupted.")

    def of(self, good: str | None, bad: str | None) -> BisectRequest:
        """What is asked for.

        :raises click.BadParameter: if the budget is no time. :raises UsageError: if the sizes are none.
        """
        if self.budget is not None and not self.budget > 0:
            raise click.BadParameter(f"{self.budget:g} is no time", param_hint="'--budget'")
        return BisectRequest(
            good, bad, self.cmd, self.args, self.workload, self.metric, self.location, self.script,
            self.budget, self.max_pairs, not self.no_pin, sizes_of(self.sizes), self.benchmark, self.harness,
        )  # fmt: skip


@click.command()
@click.argument("good", metavar="[GOOD]", required=False, shell_complete=complete_minor)
@click.argument("bad", metavar="[BAD]", required=False, shell_complete=complete_minor)
@with_options_of(
    BisectOptions,
    "given",
    metric={"shell_complete": complete_metric},
    harness={"shell_complete": complete_harness},
)
@json_option()
@click.pass_context
def bisect(
    ctx: click.Context, /, good: str | None, bad: str | None, given: BisectOptions, as_json: bool
) -> int:
    """Find the version that changed what a program costs.

    GOOD is a version before the change, BAD one with it, HEAD by default. A single version that `perun
    changes` names stands for its change, and without any it is the newest degradation whose version is not
    known. Few versions are measured, side by side with an end; where what is stored tells enough, none. What
    does not build is skipped: then the answer may be a range. Your files stay as they are.

    \b
    perun bisect v1.0 v2.0 -c './sort big.txt'
    perun bisect v1.0 --metric instructions --location compare
    perun bisect v1.0 --metric growth --location compare --sizes 50,100,200,400,800
    perun bisect v1.0 --benchmark 'parser.BenchmarkParse size=10'
    perun bisect v1.0 v2.0 --script 'sh test.sh'
    perun bisect --within 4baf672 -c './sort big.txt'
    perun bisect --resume
    """
    session: Session = ctx.obj
    asked = given.of(good, bad)
    if given.within:
        return _within(session, given, asked, as_json)
    if given.reset:
        return _reset(session, alone=asked == BisectRequest() and not given.resume)
    if given.resume:
        verb.nothing_to_resume(asked)
    with session.progress(0, "bisecting", enabled=not as_json) as bar, session.writing_to(bar.out):

        def tell(text: str) -> None:
            bar.update(text, 0, 0)

        watcher = verb.ProgressSink(tell, _see(session), lambda text: session.note(f"note: {text}"))
        try:
            found = verb.bisect(session.repository, asked, resume=given.resume, watcher=watcher)
        except KeyboardInterrupt:
            session.note("interrupted: what was measured is kept; go on with: perun bisect --resume")
            raise
    if as_json:
        write_data(session, found)
    else:
        answer(session, found)
    return 0 if found.range else NOT_DECIDED


def _within(session: Session, given: BisectOptions, asked: BisectRequest, as_json: bool) -> int:
    """Name the hunk, and what the commit counts without it.

    :raises UsageError: where more is asked for than a commit and a command.
    """
    more = (asked.good, asked.bad, asked.script, asked.benchmark, asked.sizes, given.resume, given.reset)
    if any(more):
        raise UsageError(
            "--within searches one commit, by what a command costs",
            "leave out all but -c, -a, -w, --metric, --location, --budget and --max-pairs",
        )
    with session.progress(0, "bisecting") as bar:
        found = within(session.repository, given.within, asked, lambda text: bar.update(text, 0, 0))
    if as_json:
        write_json(session.out, _within_data(found))
    else:
        for line in _within_lines(found):
            session.say(line)
        for note in found.notes:
            session.note(f"note: {one_line(note)}")
    return 0 if found.certain or (found.verdict.decides and not found.named) else NOT_DECIDED


def _within_lines(found: HunkReport) -> Iterator[str]:
    before, after = readable_pair(*found.costs, found.unit)
    name = found.commit.checksum[:SHORT] if found.commit else "the working copy"
    whole = f"{name}: {one_line(found.what)} {before} -> {after}"
    yield f"{whole}, {present.difference(found.verdict, found.unit)}"
    if not found.named:
        sure = found.verdict.decides
        yield "no hunk of it changes that" if sure else "that is not certain: give it more time: --budget N"
        return
    numbers = ", ".join(str(one.number) for one in found.named)
    places = ", ".join(one_line(one.place) for one in found.named)
    one = len(found.named) == 1
    which = f"hunk {numbers}" if one else f"together the hunks {numbers}"
    what = "with nothing but" if found.without is None else "without"
    rest = (
        f"; {what} {'it' if one else 'them'} {present.difference(found.rest, found.unit)}"
        if found.rest
        else ""
    )
    costs = present.difference(found.verdict, found.unit)
    word = "" if found.certain else "perhaps "
    yield f"{word}{which} of {found.hunks} ({places}): {costs}{rest}"
    yield f"{plural(found.builds, 'variant')} built"


def _within_data(found: HunkReport) -> dict[str, Any]:
    return {
        "schema": "perun.within/1",
        "commit": found.commit.checksum if found.commit else None,
        "what": found.what,
        "unit": found.unit,
        "verdict": found.verdict.change.name,
        "before": found.costs[0],
        "after": found.costs[1],
        "hunks": found.hunks,
        "named": [
            {"number": one.number, "path": one.new or one.old, "line": one.after[0] if one.after else None}
            for one in found.named
        ],
        "without": found.without,
        "alone": found.alone,
        "certain": found.certain,
        "builds": found.builds,
        "notes": list(found.notes),
    }


def _reset(session: Session, *, alone: bool) -> int:
    """Forget what `--resume` would go on with.

    :raises UsageError: where more is asked for, or there is nothing to forget.
    """
    if not alone:
        raise UsageError("--reset forgets a bisection, and does nothing else", "leave out the rest")
    count = bisections.forget(session.repository)
    if not count:
        raise UsageError("there is no interrupted bisection to forget", "begin one: perun bisect GOOD BAD")
    session.say(f"{plural(count, 'bisection')} forgotten; what was measured stays stored")
    return 0


def _see(session: Session) -> Callable[[VersionEvidence | None, Bounds], None]:
    """Tells of each version what it is like, and as git does, how many are left."""

    def see(seen: VersionEvidence | None, found: Bounds) -> None:
        if seen is not None:
            session.note(line_of(seen))
        if found.open:
            session.note(left(found))

    return see
