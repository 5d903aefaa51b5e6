"""Whether two profiles were measured under conditions under which they can be compared.

A program is faster on a faster machine, with another kernel, or built with other flags: a difference between
such profiles tells nothing of the change of the program. What a profile does not say (older releases recorded
less) does not differ from anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from perun.profile import session

if TYPE_CHECKING:
    from perun.profile.factory import Profile

COUNTED: Final = frozenset({"memory", "instructions"})
"""Types of profiles that count: what only makes a machine faster makes no difference to them."""
WITHOUT_RUNS: Final = frozenset({"bound"})
"""Types of profiles for which nothing runs: no machine makes a difference to them."""
_BUSY: Final = 4.0
"""Load of a machine, in multiples of its processors, at which times tell little of a quiet machine."""
_QUIET: Final = "at most 1 per processor"
_LOADED: Final = f"more than {_BUSY:.0f} per processor"
Conditions = tuple[tuple[str, str], ...]
"""Names of conditions, as of :class:`Difference`, and their values."""


class Difference(NamedTuple):
    """What differs, and how it was for each of the two profiles."""

    name: str
    baseline: str
    target: str


def differences(baseline: Profile, target: Profile) -> list[Difference]:
    """What differs of the conditions of the two; none for profiles of one session, as they were measured side
    by side."""
    sessions = session.of(baseline), session.of(target)
    if sessions[0] and sessions[1] and sessions[0].id == sessions[1].id:
        return []
    return unlike(conditions(baseline), conditions(target))


def unlike(baseline: Conditions, target: Conditions) -> list[Difference]:
    """What differs of conditions that both name."""
    if baseline == target:
        return []
    new = dict(target)
    return [Difference(name, old, new[name]) for name, old in baseline if new.get(name, old) != old]


def refused(found: Sequence[Difference]) -> str:
    """Why nothing is said of two measurements whose conditions differ."""
    names = ", ".join(one.name for one in found)
    return f"not comparable, as these differ: {names}; compare nevertheless with perun check --force"


def conditions(profile: Profile) -> Conditions:
    """The conditions that were noted when the profile was measured; none where nothing ran.

    Of what is counted only those that matter to counts: the architecture, the C library and the build.
    """
    if profile.type in WITHOUT_RUNS:
        return ()
    machine = _mapping(profile.get("machine"))
    counted = profile.type in COUNTED
    parts = ((name, of(machine)) for name, of, only_times in _PARTS if not (counted and only_times))
    return tuple((name, value) for name, value in parts if value)


def _load(machine: Mapping[str, Any]) -> str:
    """Whether the machine was quiet in the minute before, or many programs competed; empty in between."""
    load, cpu = machine.get("load"), _mapping(machine.get("cpu"))
    processors = cpu.get("available") or cpu.get("total")
    if not (isinstance(load, list) and load and _is_number(load[0]) and _is_number(processors)):
        return ""
    each = float(load[0]) / max(float(processors), 1.0)
    return _QUIET if each <= 1 else _LOADED if each > _BUSY else ""


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
    ("load", _load, True),
)
"""What is compared, how it is read from the description, and whether it matters to times only."""
