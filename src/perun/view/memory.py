"""Memory view: peak, leaks and temporary allocations of a memory profile, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, ClassVar, Final, TextIO

from perun.core.errors import ProfileError
from perun.core.wording import counted
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.factory import Profile, ResourceGroup, flatten
from perun.profile.memory import LEFT_OUT, is_release, is_summary, notes, number_of
from perun.view._common import command_line
from perun.view._common.screen import printable

# The resources of a memory profile, added up by call stack.

SUMS: Final = ("amount", "count", "peak", "leaked", "leaked-blocks", "temporary")


@dataclass
class CallStack:
    """What one call stack allocated in the whole run.

    :ivar frames: the innermost frame first. :ivar sums: a number for each of :data:`SUMS`, sizes in bytes.
    """

    frames: tuple[str, ...]
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))


def call_stacks(profile: Profile) -> list[CallStack]:
    """The call stacks that allocate, in the order of the profile; none if no resource has a trace.

    A resource without `count`, as older releases and `--raw` write them, is a single allocation.
    """
    found: dict[tuple[str, ...], CallStack] = {}
    for group in profile.groups():
        trace = group.constants.get("trace")
        if not trace or is_release(group.constants) or is_summary(group.constants):
            continue
        frames = tuple(map(_shown, trace)) if isinstance(trace, Sequence) else (str(flatten(trace)),)
        stack = found.setdefault(frames, CallStack(frames))
        for name in SUMS:
            stack.sums[name] += _sum(group, name)
    return list(found.values())


def _sum(group: ResourceGroup, name: str) -> float:
    if name == "count" and not _has(group, "count"):  # single events
        return group.size
    if name == "leaked-blocks" and not _has(group, "count"):
        return sum(map(bool, _numbers(group, "leaked")))
    return sum(_numbers(group, name))


def _has(group: ResourceGroup, name: str) -> bool:
    return name in group.columns or name in group.constants


def _numbers(group: ResourceGroup, name: str) -> Iterator[float]:
    values = group.columns.get(name)
    if values is None:
        values = [group.constants.get(name, 0)] * group.size
    return (number for value in values if (number := number_of(value)) is not None)


def _shown(frame: Any) -> str:
    if not isinstance(frame, Mapping):
        return str(flatten(frame))
    function, source = frame.get("function", "?"), frame.get("source", "")
    if not source or source == "unreachable":
        return str(function)
    return f"{function}  {source}:{frame.get('line', 0)}"


SECTIONS: Final = ("peak", "leaks", "temporary", "allocated")
_TITLES: Final = {
    "peak": "Peak heap: what it was made of",
    "leaks": "Leaks: allocated and never released",
    "temporary": "Temporary: released before anything else was allocated",
    "allocated": "Allocated over the whole run",
}
_BYTES: Final = {"peak": "peak", "leaks": "leaked", "temporary": "", "allocated": "amount"}
_BLOCKS: Final = {"peak": "", "leaks": "leaked-blocks", "temporary": "temporary", "allocated": "count"}
_TOTALS: Final = {"peak": "peak", "leaks": "leaked", "temporary": "temporary", "allocated": "allocated"}
_REACH: Final = ("definitely-lost", "indirectly-lost", "possibly-lost", "still-reachable")
_LONGEST: Final = 120


@dataclass(frozen=True)
class MemoryViewParams:
    """The sections to show, and their size."""

    top: int = param(
        10, short="-n", metavar="<int>", minimum=1, help="The largest number of call stacks in a section."
    )
    depth: int = param(
        4, short="-d", metavar="<int>", minimum=1, help="The number of frames shown of a call stack."
    )
    section: tuple[str, ...] = param(
        (), short="-s", choices=SECTIONS, help="Show only this section; may be repeated."
    )


class MemoryView:
    """Writes the totals of the run, and the call stacks with the largest share of them.

    The sections are the heap at its peak, leaks, temporary allocations (released before the next
    allocation), and all allocations of the run.
    """

    name: ClassVar[str] = "memory"
    help: ClassVar[str] = "Summary of a memory profile: peak, leaks and temporary allocations by call stack."
    Params: ClassVar[type] = MemoryViewParams

    def render(
        self, profile: Profile, params: MemoryViewParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the summary to `out`.

        :raises ProfileError: if the profile is not of the type `memory`.
        """
        if profile.type != "memory":
            raise ProfileError(
                f"the view memory needs a profile of the type 'memory', not {profile.type!r}",
                "collect one with: perun collect memory",
            )
        stacks = call_stacks(profile)
        for line in _head(profile, stacks):
            out.write(line + "\n")
        run = profile.get("memory")
        for section in params.section or SECTIONS:
            if isinstance(run, Mapping) or section == "allocated":
                total = _numbers_of_run(run)(_TOTALS[section]) if isinstance(run, Mapping) else 0.0
                for line in _section(section, stacks, total, params):
                    out.write(line + "\n")


def _head(profile: Profile, stacks: Sequence[CallStack]) -> Iterator[str]:
    yield _clean(command_line(profile) or "?")
    run = profile.get("memory")
    if not isinstance(run, Mapping):
        yield f"allocated    {_size(sum(stack.sums['amount'] for stack in stacks))}"
        yield "peak, leaks  not known: an earlier release of Perun wrote the profile"
        return
    number = _numbers_of_run(run)
    yield f"peak heap    {_size(number('peak'))} after {readable(number('peak-time'), 's')}"
    yield (
        f"allocated    {_size(number('allocated'))} in {counted(number('allocations'), 'allocation')}, "
        f"{counted(number('releases'), 'release')}"
    )
    yield f"leaked       {_size(number('leaked'))} in {counted(number('leaked-blocks'), 'block')}" + (
        f" (and {_size(kept)} kept by system libraries or left out by filters)"
        if (kept := number("live-at-end") - number("leaked")) > 0
        else ""
    )
    left_out = run.get(LEFT_OUT)
    if isinstance(left_out, Mapping):
        lacking = _numbers_of_run(left_out)
        yield (
            f"left out     {_size(lacking('peak'))} of the peak and {_size(lacking('allocated'))} in "
            f"{counted(lacking('allocations'), 'allocation')}, by --no-source or --no-func"
        )
    if "definitely-lost" in run:
        yield "at the end   " + ", ".join(
            f"{_size(number(name))} {name.replace('-', ' ')} in {counted(number(f'{name}-blocks'), 'block')}"
            for name in _REACH
        )
    share = 100 * number("temporary") / max(1.0, number("allocations"))
    yield f"temporary    {counted(number('temporary'), 'allocation')} ({share:.1f} %)"
    if run.get("ended") not in (None, "normally"):
        yield _clean(f"ended        {run['ended']}")
    for note in notes(profile):
        yield from _wrapped(f"note         {note}")


def _numbers_of_run(run: Mapping[str, Any]) -> Callable[[str], float]:
    def number(name: str) -> float:
        value = run.get(name, 0)
        return number_of(value) or 0.0

    return number


def _section(
    section: str, stacks: Sequence[CallStack], total: float, params: MemoryViewParams
) -> Iterator[str]:
    """The lines of a section: its largest call stacks with their share of `total`, or of their sum."""
    by = _BYTES[section] or _BLOCKS[section]
    largest = sorted(
        (stack for stack in stacks if stack.sums[by] > 0), key=lambda stack: (-stack.sums[by], stack.frames)
    )
    yield ""
    yield _TITLES[section]
    if not largest:
        yield "  none"
        return
    total = max(total, sum(stack.sums[by] for stack in largest))
    for stack in largest[: params.top]:
        cells = [f"{100 * stack.sums[by] / total:5.1f} %"]
        if _BYTES[section]:
            cells.append(f"{_size(stack.sums[by]):>9}")
        if _BLOCKS[section]:
            cells.append(f"{stack.sums[_BLOCKS[section]]:>11,.0f} x")
        indent = "  ".join(cells)
        for number, frame in enumerate(stack.frames[: params.depth]):
            yield (
                f"  {indent}  {_clean(frame)}" if not number else f"  {' ' * len(indent)}    {_clean(frame)}"
            )
        if len(stack.frames) > params.depth:
            more = counted(len(stack.frames) - params.depth, "more caller")
            yield f"  {' ' * len(indent)}    and {more}"
    if len(largest) > params.top:
        rest = sum(stack.sums[by] for stack in largest[params.top :])
        yield f"  {100 * rest / total:5.1f} %  in {counted(len(largest) - params.top, 'other call stack')}"


def _size(amount: float) -> str:
    """Bytes as people read them, in the units of all views."""
    return readable(amount, "B")


def _wrapped(text: str) -> list[str]:
    """A note in lines that a terminal has room for: a hint at its end must not be cut off."""
    return wrap(printable(text), _LONGEST, subsequent_indent=" " * 13)


def _clean(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


PLUGIN = MemoryView
