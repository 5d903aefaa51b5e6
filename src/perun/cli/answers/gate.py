"""The answer of a gate of continuous integration: the comment, the check, the annotations and the badge.

What is told comes from a :class:`~perun.sharing.gate.Gate`, which may be a stranger's: its texts are code in
Markdown, and the commands that are proposed are made of checksums alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from perun.cli.answers.changes import importance, is_better, is_worse, sides_of
from perun.cli.answers.check.markdown import code
from perun.cli.answers.check.wording import command_of, is_severe, series_of
from perun.cli.table import one_line
from perun.core.errors import NOT_DECIDED
from perun.history.check.report import NOTHING_COMPARED, Comparison, VersionReport
from perun.measurement import present
from perun.measurement.verdict import UNDECIDED
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.running.explain.causes import cause_sentence, without_effects
from perun.running.explain.costs import sentence
from perun.running.explain.data import Cause, Explanation, FunctionChange
from perun.sharing.forge import Annotation, CheckResult
from perun.sharing.gate import MOST, Gate, GateChange, GateReason, short

SHOWN: Final = 3
"""Changes, and reasons, that a comment has; of more it has an ellipsis."""
MARK: Final = "<!-- perun ci -->"
"""What the comment begins with, by which it is found again."""
_SIGNS: Final = {True: ":red_circle:", False: ":green_circle:", None: ":white_circle:"}
_SHORT: Final = 10


def gate_of(
    report: VersionReport, base: str, measured: int, level: str, *, suite: bool, budget: float | None
) -> Gate:
    """The gate of a comparison.

    :param base: checksum. :param measured: the exit code. :param budget: seconds, where the user gave some.
    """
    found: list[tuple[DegradationInfo, Comparison]] = []
    kinds: list[PerformanceChange] = []  # of those that nobody has acknowledged
    for comparison in report.comparisons:
        ways: set[str] = set()
        for change in sorted(comparison.places, key=importance):
            way = _way(change.result)
            if way not in ways:  # the clock that says it best stands for the command
                ways.add(way)
                found.append((change, comparison))
                kinds += [] if change.location in comparison.acknowledged else [change.result]
    found.sort(key=lambda one: importance(one[0]))
    errors = [one.error for one in report.comparisons if one.error is not None]
    reasons = [one.not_compared for one in report.comparisons if not one.same and one.not_compared]
    fields = {
        "schema": "perun.ci/1",
        "code": measured,
        "level": level,
        "base": base,
        "head": report.version.checksum,
        "suite": suite,
        "budget": budget,
        "compared": sum(not one.not_compared for one in report.comparisons),
        "slower": sum(_way(kind) == "slower" for kind in kinds),
        "severe": sum(map(is_severe, kinds)),
        "faster": sum(_way(kind) == "faster" for kind in kinds),
        "undecided": sum(_way(kind) == "undecided" for kind in kinds),
        "changes": tuple(_change(*one) for one in found[:MOST]),
        "why": (),
        "unseen": "",
        "error": short(one_line(errors[0].message if errors else "; ".join(reasons))),
        "hint": short(one_line(errors[0].hint)) if errors else "",
    }
    return msgspec.convert(fields, Gate)


def _way(kind: PerformanceChange) -> str:
    if kind in UNDECIDED:
        return "undecided"
    return "slower" if is_worse(kind) else "faster" if is_better(kind) else "other"


def _change(change: DegradationInfo, comparison: Comparison) -> GateChange:
    before, after = sides_of(change)
    low, high = change.interval or (None, None)
    is_ratio = change.type == "ratio" and change.rate_degradation > 0
    return GateChange(
        short(command_of(comparison.target)),
        short(series_of(change, comparison.target)),
        change.result.name,  # type: ignore[arg-type]
        short(before),
        short(after),
        change.rate_degradation if is_ratio else None,
        low if is_ratio and high is not None and high < 1e12 else None,
        high if is_ratio and high is not None and high < 1e12 else None,
        min(change.sizes) if change.sizes else 0,
        change.confirmed,
        change.location in comparison.acknowledged,
    )


def reasons_of(found: Explanation) -> tuple[GateReason, ...]:
    """What explains a degradation, the worst first: changes of the diff, then functions that no change tells
    of."""
    told: list[tuple[str, Cause | FunctionChange]] = []
    for case in found.cases:
        told += [(cause_sentence(one), one) for one in case.causes if one.share > 0]
        told += [
            (sentence(one), one) for one in without_effects(case) if one.score > 0 and not one.moved_with
        ]
    return tuple(GateReason(short(one_line(text)), short(one.path), one.first) for text, one in told[:MOST])


def title(gate: Gate) -> str:
    """What was found, in a few words: `1 slower (1 severe), 2 not decided`."""
    if gate.code not in (0, 1, NOT_DECIDED, NOTHING_COMPARED):
        return "could not be measured"
    if not gate.compared and gate.code == NOTHING_COMPARED:
        return "nothing was compared"
    severe = f" ({gate.severe} severe)" if gate.severe else ""
    parts = (
        f"{gate.slower} slower{severe}" if gate.slower else "",
        f"{gate.faster} faster" if gate.faster else "",
        f"{gate.undecided} not decided" if gate.undecided else "",
    )
    return ", ".join(filter(None, parts)) or "no change"


def conclusion(gate: Gate) -> str:
    """That of a check: `failure` of what fails, `neutral` of what is not decided only, else `success`."""
    if gate.code:
        return "failure"
    return "neutral" if gate.undecided and not gate.slower + gate.faster else "success"


def comment(gate: Gate, url: str = "", head: str = "") -> str:
    """The comment, as Markdown.

    :param url: of the run. :param head: the commit that people know; the one that was measured by default.
    """
    lines = [MARK, f"### Performance: {title(gate)}", "", *_changes(gate.changes)]
    if gate.error:
        lines += ["", f"**Not measured**: {code(gate.error)}"]
        lines += [f"{code(gate.hint)}"] if gate.hint else []
    if gate.why:
        lines += ["", "**Why**", "", *(f"- {code(one.sentence)}" for one in gate.why[:SHOWN])]
        lines += ["- ..."] if len(gate.why) > SHOWN else []
    if gate.unseen:
        lines += ["", f"**Why** is not known: {code(gate.unseen)}"]
    if gate.undecided and gate.base:
        lines += ["", f"{gate.undecided} not decided; to decide: {code(deciding(gate, head))}"]
    about = []
    if gate.base:
        measured = head or gate.head
        about.append(f"{measured[:_SHORT]} beside {gate.base[:_SHORT]}, measured in turns")
    if url.startswith(("https://", "http://")) and not set(url) & set("()<> \n"):
        about.append(f"[the run]({url})")
    lines += ["", f"<sub>{'; '.join(about)}</sub>"] if about else []
    return "\n".join(lines) + "\n"


def deciding(gate: Gate, head: str = "") -> str:
    """The command that measures longer, made of checksums: a stranger's words are in no command."""
    words = ["perun compare", *(["--suite"] if gate.suite else []), gate.base[:_SHORT]]
    seconds = 2 * (gate.budget or 60 * max(gate.compared, 1))
    return " ".join([*words, (head or gate.head)[:_SHORT], f"--budget {seconds:.0f}"])


def _changes(changes: Sequence[GateChange]) -> Iterator[str]:
    told = [one for one in changes if PerformanceChange[one.verdict] not in UNDECIDED] or list(changes)
    for one in told[:SHOWN]:
        kind = PerformanceChange[one.verdict]
        sign = _SIGNS[None if kind in UNDECIDED else not is_better(kind)]
        name = present.name(kind, confirmed=one.confirmed) + (", acknowledged" if one.acknowledged else "")
        where = f"{code(one.command)} {code(one.series)}" if one.series != one.command else code(one.command)
        yield f"- {sign} **{name}** {where}: {code(one.before)} to {code(one.after)}{_size(one)}"
    if len(told) > SHOWN:
        yield "- ..."


def _size(one: GateChange) -> str:
    if one.ratio is None:
        return ""
    low, high = (one.ratio, one.ratio) if one.low is None or one.high is None else (one.low, one.high)
    count = f", n = {one.n}" if one.n else ""
    return f", **{present.share(one.ratio, low, high)}**{count}"


def check(gate: Gate, url: str = "", head: str = "") -> CheckResult:
    """The check on the head commit, with an annotation for each place that explains a degradation."""
    summary = comment(gate, url, head).removeprefix(MARK).strip()
    level = "failure" if gate.code == 1 else "warning"
    return CheckResult(conclusion(gate), title(gate), summary, tuple(_annotations(gate.why, level)))


def _annotations(why: Iterable[GateReason], level: str) -> Iterator[Annotation]:
    for one in why:
        if one.line and _is_inside(one.path):
            yield Annotation(one.path, one.line, level, one_line(one.sentence))


def _is_inside(path: str) -> bool:
    """Whether it is a path of the repository."""
    parts = path.split("/")
    return path.isprintable() and bool(path) and not {"", ".", ".."} & set(parts)


def workflow_commands(gate: Gate) -> Iterator[str]:
    """The annotations as lines that GitHub Actions reads from a log: they need no rights."""

    def escaped(text: str, more: str = "") -> str:
        return "".join(f"%{ord(one):02X}" if one in "%\r\n" + more else one for one in text)

    for one in check(gate).annotations:
        kind = "error" if one.level == "failure" else "warning"
        yield f"::{kind} file={escaped(one.path, ':,')},line={one.line},title=perun::{escaped(one.message)}"


_COLOURS: Final = {"failure": "#c4422e", "neutral": "#7a7a7a", "success": "#3c8c40"}


def badge(gate: Gate) -> str:
    """A badge as SVG, which loads nothing."""
    texts = "performance", title(gate)
    left, right = (12 + 6.6 * len(text) for text in texts)
    colour = _COLOURS[conclusion(gate)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" role="img" '
        f'aria-label="{texts[0]}: {texts[1]}"><title>{texts[0]}: {texts[1]}</title>'
        f'<rect width="{left:.0f}" height="20" fill="#444"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2:.0f}" y="14">{texts[0]}</text>'
        f'<text x="{left + right / 2:.0f}" y="14">{texts[1]}</text></g></svg>\n'
    )
