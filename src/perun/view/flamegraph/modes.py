"""The numbers that a flame graph can show of a profile: of a memory profile there are several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError, UsageError
from perun.profile.island import TYPE
from perun.profile.memory import SIZES
from perun.view.flamegraph.stacks import COUNT, Stack, stacks_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

AMOUNT: Final = "amount"
_NANOSECONDS: Final = ("trace", "complexity")
"""Collectors whose exclusive times are in nanoseconds, whatever the unit of their amounts."""


class Mode(NamedTuple):
    """What the width of frames stands for.

    :param of: the key of the number in the resources. :param name: what the page calls it.
    """

    of: str
    name: str


MEMORY: Final = (
    Mode("peak", "Peak"),
    Mode("leaked", "Leaked"),
    Mode(AMOUNT, "Allocated"),
    Mode("temporary", "Temporary"),
    Mode(COUNT, "Count"),
)
"""Of memory profiles: sizes, and numbers of allocations."""
ISLAND: Final = (Mode("seconds", "Time"), Mode("calls", "Calls"))
"""Of islands, whose amounts have different units."""
_ISLAND_UNITS: Final = {"seconds": "s", "calls": "calls"}
_BLOCKS: Final = frozenset({"temporary", COUNT})


def default_of(profile: Profile) -> str:
    """The number to show first: of a memory profile what was live at the peak, if it knows that; of an island
    the time."""
    if profile.type == TYPE:
        return ISLAND[0].of
    return "peak" if _knows_peak(profile) else AMOUNT


def modes(profile: Profile, of: str) -> list[Mode]:
    """All that the page can show; one mode is that of the number `of`."""
    found = list(MEMORY) if _knows_peak(profile) else list(ISLAND) if profile.type == TYPE else []
    return found if any(mode.of == of for mode in found) else [Mode(of, of), *found]


def amounts_of(profile: Profile, of: str) -> dict[Stack, float]:
    """The amounts of the call stacks; none where no resource has the number, or none above 0."""
    try:
        return stacks_of(profile, of).amounts
    except (UsageError, ProfileError):
        return {}


def unit_of(profile: Profile, of: str) -> str:
    """The unit of a number of the resources; empty where it is not known."""
    memory = profile.type == "memory"
    if profile.type == TYPE and of in _ISLAND_UNITS:
        return _ISLAND_UNITS[of]
    if memory and of in _BLOCKS:
        return "allocations"
    if of not in (AMOUNT, "exclusive", "timestamp") and not (memory and of in SIZES):
        return "resources" if of == COUNT else ""
    if of == "exclusive" and profile.configuration.collector in _NANOSECONDS:
        return "ns"
    units: Any = profile.get("header", {}).get("units", {})
    if not isinstance(units, dict):
        return ""
    # The header may name a unit for each type of resources, e.g. `mixed(time delta)`.
    return str(units.get(profile.type) or (next(iter(units.values())) if len(units) == 1 else ""))


def _knows_peak(profile: Profile) -> bool:
    return profile.type == "memory" and any(
        "trace" in group.constants and ("peak" in group.columns or "peak" in group.constants)
        for group in profile.groups()
    )
