"""Alloclist view: the allocations of a memory profile one by one, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, Final, NamedTuple, TextIO

from perun.core.errors import ProfileError
from perun.core.wording import counted
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.profile.format.grouping import ResourceGroup
from perun.profile.memory import is_release, is_summary, number_of
from perun.profile.uid import flatten
from perun.view._common.screen import printable

MODES: Final = {
    "list": "All allocations in the order of time.",
    "top": "The largest allocations first.",
    "most": "The most frequent allocations first.",
    "sum": "What each function allocates itself, the largest sum first.",
}


@dataclass(frozen=True)
class AllocListParams:
    """Which allocations, in which order."""

    mode: str = param(
        "list",
        choices=tuple(MODES),
        metavar="<mode>",
        argument=True,
        help="list: in the order of time; top: the largest first; most: the most frequent first; sum: summed "
        "up by function.",
    )
    limit: int = param(
        0, short="-l", metavar="<int>", minimum=0, help="List at most so many; 0 lists all of them."
    )


class Allocation(NamedTuple):
    """What one resource allocates: bytes, number of allocations, and where and when."""

    amount: float
    blocks: float
    subtype: str
    uid: Any
    trace: Any
    address: int | None
    snapshot: int
    time: Any


class AllocListView:
    """Lists the allocations of a memory profile with their call stacks, and their total."""

    name: ClassVar[str] = "alloclist"
    help: ClassVar[str] = "List of the allocations of a memory profile, as text."
    Params: ClassVar[type] = AllocListParams

    def render(
        self, profile: Profile, params: AllocListParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the list to `out`.

        :raises ProfileError: if the profile has no allocations.
        """
        found = list(allocations(profile))
        if profile.type != "memory" or not found:
            raise ProfileError(
                "the profile has no allocations to list", "collect one with: perun collect memory"
            )
        listed = list(_by_function(found) if params.mode == "sum" else _entries(found, params.mode))
        for line in listed[: params.limit or None]:
            out.write(line)
        if 0 < params.limit < len(listed):
            out.write(f"and {counted(len(listed) - params.limit, 'other')}\n")
        out.write(f"total: {_amount(sum(one.amount for one in found), sum(one.blocks for one in found))}\n")


def allocations(profile: Profile) -> Iterator[Allocation]:
    """The allocations in the order of the profile; neither releases nor resources that sum others up."""
    for group in profile.groups():
        constants = group.constants
        if is_release(constants) or is_summary(constants):
            continue
        names = ("amount", "count", "subtype", "uid", "trace", "address", "snapshot", "time")
        for amount, count, subtype, uid, trace, address, snapshot, time in zip(
            *(_values(group, name) for name in names), strict=False
        ):
            size = number_of(amount)
            if size is None or is_release({"subtype": subtype}):
                continue
            yield Allocation(
                size,
                1.0 if count is None else number_of(count) or 0.0,
                str(flatten(subtype or "an unknown allocator")),
                uid,
                trace,
                address if type(address) is int else None,
                snapshot if type(snapshot) is int else 0,
                time,
            )


def _values(group: ResourceGroup, name: str) -> Iterable[Any]:
    return group.columns[name] if name in group.columns else repeat(group.constants.get(name), group.size)


def _entries(found: list[Allocation], mode: str) -> Iterator[str]:
    orders = {
        "list": lambda one: (one.snapshot,),
        "top": lambda one: (-one.amount, -one.blocks),
        "most": lambda one: (-one.blocks, -one.amount),
    }
    for one in sorted(found, key=orders[mode]):
        when = f" at {one.time} s" if isinstance(one.time, (int, float)) else ""
        where = f", address {one.address:#x}" if one.address is not None else ""
        head = f"{_amount(one.amount, one.blocks)} by {printable(one.subtype)}, snapshot {one.snapshot}"
        frames = one.trace if isinstance(one.trace, (list, tuple)) and one.trace else [one.uid]
        yield f"{head}{when}{where}\n" + "".join(f"    {_frame(frame)}\n" for frame in frames)


def _by_function(found: list[Allocation]) -> Iterator[str]:
    sums: dict[str, list[float]] = {}
    for one in found:
        uid = one.uid
        name = f"{uid.get('source', '')}:{uid['function']}" if _has_function(uid) else str(flatten(uid))
        own = sums.setdefault(name, [0.0, 0.0])
        own[0] += one.amount
        own[1] += one.blocks
    for name, (amount, count) in sorted(sums.items(), key=lambda entry: (-entry[1][0], entry[0])):
        yield f"{_amount(amount, count)} by {printable(name)}\n"


def _has_function(uid: Any) -> bool:
    return isinstance(uid, Mapping) and bool(uid.get("function"))


def _amount(amount: float, count: float) -> str:
    return f"{readable(amount, 'B')} in {counted(count, 'allocation')}"


def _frame(frame: Any) -> str:
    if not isinstance(frame, Mapping):
        return printable(str(flatten(frame)))
    source = frame.get("source")
    place = f" in {source}:{frame.get('line', 0)}" if source and source != "unreachable" else ""
    return printable(f"{frame.get('function', '?')}{place}")


PLUGIN = AllocListView
