"""Whether two profiles were measured under conditions under which they can be compared.

A program is faster on a faster machine, with another kernel, or built with other flags: a difference between
such profiles tells nothing of the change of the program. What a profile does not say (older releases recorded
less) does not differ from anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from perun.profile.session import are_pairs

if TYPE_CHECKING:
    from perun.profile.factory import Profile

COUNTED: Final = frozenset({"memory", "instructions"})
"""Types of profiles that count: what only makes a machine faster makes no difference to them."""
WITHOUT_RUNS: Final = frozenset({"bound"})
"""Types of profiles for which nothing runs: no machine makes a difference to them."""
_BUSY: Final = 4.0
"""Load of a machine, in multiples of its processors, at which times tell little of a quiet machine."""


class Difference(NamedTuple):
    """What differs, and how it was for each of the two profiles."""

    name: str
    baseline: str
    target: str


def differences(baseline: Profile, target: Profile) -> list[Difference]:
    """What differs of the conditions of the two; none for profiles that were measured side by side,
    or for which nothing ran.

    What is counted, such as allocated bytes, depends on the architecture, the C library and the build only.
    """
    if are_pairs(baseline, target) or {baseline.type, target.type} <= WITHOUT_RUNS:
        return []
    old, new = _mapping(baseline.get("machine")), _mapping(target.get("machine"))
    counted = baseline.type in COUNTED and target.type in COUNTED
    found = []
    for name, of, only_times in _PARTS:
        before, after = of(old), of(new)
        if before and after and before != after and not (counted and only_times):
            found.append(Difference(name, before, after))
    if not counted and (load := _load(old, new)):
        found.append(load)
    return found


def _load(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference | None:
    """The difference of a quiet machine and one on which many programs compete."""
    loads = [_load_of(machine) for machine in (old, new)]
    if None in loads:
        return None
    before, after = (load or 0.0 for load in loads)
    if not (min(before, after) <= 1 and max(before, after) > _BUSY):
        return None
    return Difference("load", f"{before:.2g} per processor", f"{after:.2g} per processor")


def _load_of(machine: Mapping[str, Any]) -> float | None:
    """The load of the last minute for each processor that could be used."""
    load, cpu = machine.get("load"), _mapping(machine.get("cpu"))
    processors = cpu.get("available") or cpu.get("total")
    if not (isinstance(load, list) and load and _is_number(load[0]) and _is_number(processors)):
        return None
    return float(load[0]) / max(float(processors), 1.0)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(*path: str) -> Callable[[Mapping[str, Any]], str]:
    def of(machine: Mapping[str, Any]) -> str:
        value: Any = machine
        for key in path:
            value = _mapping(value).get(key)
        return str(value) if isinstance(value, (str, int)) else ""

    return of


_PARTS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], str], bool], ...]] = (
    ("processor", _text("cpu", "model"), True),
    ("number of processors", _text("cpu", "total"), True),
    ("architecture", _text("architecture"), False),
    ("CPU governor", _text("cpu", "governor"), True),
    ("kernel", _text("release"), True),
    ("C library", _text("libc"), False),
    ("build", _text("build"), False),
)
"""What is compared, how it is read from the description, and whether it matters to times only."""


def conditions(profile: Profile) -> dict[str, str]:
    """The conditions that were noted when the profile was measured, by their names in :class:`Difference`.

    Of what is counted only those that matter to counts.
    """
    machine = _mapping(profile.get("machine"))
    counted = profile.type in COUNTED
    parts = {name: of(machine) for name, of, only_times in _PARTS if not (counted and only_times)}
    return {name: value for name, value in parts.items() if value}
