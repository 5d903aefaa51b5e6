"""The keys that a chart shows where the user names none: those that tell the resources apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from perun.errors import UsageError
from perun.view._common.words import is_clocks

if TYPE_CHECKING:
    from perun.view._common.values import Resources

BARS: Final = ("snapshots", "workload", "order", "uid")
LINES: Final = ("snapshots", "structure-unit-size", "workload", "order", "call-order")
POINTS: Final = ("structure-unit-size", "workload", "order", "snapshots", "call-order", "timestamp")
BOXES: Final = ("workload", "uid", "subtype")
"""Keys of the x axis, the first choice first."""
SERIES: Final = ("uid", "subtype")
"""Keys whose values get a series each."""
CLOCK: Final = "subtype"


def varied(resources: Resources, candidates: Sequence[str], but: Collection[str] = ()) -> str:
    """The first candidate with different values among the resources; the first that there is if none has.

    :param but: keys that are shown already.
    """
    found = (key for key in candidates if key not in but and resources.is_varied(key))
    return next(found, next(filter(resources.has, candidates), candidates[0]))


def numeric(resources: Resources, candidates: Sequence[str], option: str) -> str:
    """The first candidate that resources have as a number.

    `snapshots`, which every profile has, counts only where there are several.

    :param option: the option that names another key, for the message.
    :raises UsageError: if the resources have none of them as a number.
    """
    for key in candidates:
        if not resources.has(key) or (key == "snapshots" and not resources.is_varied(key)):
            continue
        try:
            resources.numbers(key, "")
        except UsageError:
            continue
        return key
    others = [key for key in resources.numeric_keys() if key != "snapshots"]
    raise UsageError(
        f"the profile has nothing to show the values along: none of {', '.join(candidates)}",
        f"name a key with {option}; keys with numbers: {', '.join(others) or 'none'}",
    )


def clocks(resources: Resources) -> bool:
    """Whether the resources are times of several clocks, which no chart may add up."""
    return resources.has(CLOCK) and is_clocks(resources.categories(CLOCK, "").names)
