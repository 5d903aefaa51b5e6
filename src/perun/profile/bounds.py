"""What a profile of bounds says: for each loop and function how often it iterates at most (manual 4.1.4).

Who wants to know how a function grows asks :func:`classes`; :func:`functions_of` tells all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError

if TYPE_CHECKING:
    from perun.profile.factory import Profile

TYPE: Final = "bound"
"""The type of such a profile and of its resources."""
LOCAL: Final = "local bound"
TOTAL: Final = "total bound"
"""Subtypes: the bound of one loop, and that of all loops of a function."""
UNBOUNDED: Final = "O(∞)"
"""The class of what no bound was found of."""
REGION: Final = "bounds"
"""The region of the profile that says what could not be read; see :func:`unreadable`."""

_COUNTING: Final = ("calls", "count")
"""Parameters of the collector that change what a bound says."""
_POLYNOMIAL: Final = re.compile(r"O\((?:1|(?P<n>n(?:\^(?P<degree>\d+(?:\.\d+)?))?)?\s*(?P<log>log n)?)\)")
_EXPONENTIAL: Final = re.compile(r"O\(\d+(?:\.\d+)?\^n\)")


class Growth(NamedTuple):
    """A class of complexity; those that grow faster are greater, and O(∞) is the greatest.

    :param kind: 0 for `n^degree (log n)^logarithms`, 1 for exponential growth, 2 where there is no bound.
    """

    kind: int
    degree: float = 0.0
    logarithms: int = 0

    @classmethod
    def of(cls, text: str) -> Growth:
        """The class that a text as `O(n^2)`, `O(n log n)` or `O(∞)` names.

        :raises ValueError: where it names none.
        """
        text = text.strip()
        if text in (UNBOUNDED, "O(inf)", "inf"):
            return cls(2)
        if _EXPONENTIAL.fullmatch(text):
            return cls(1)
        match = _POLYNOMIAL.fullmatch(text)
        if match is None or text == "O()":
            raise ValueError(f"{text!r} is no class of complexity")
        return cls(0, float(match["degree"] or 1) if match["n"] else 0.0, 1 if match["log"] else 0)

    @property
    def is_bounded(self) -> bool:
        """Whether a bound was found."""
        return self.kind < 2

    def orders_above(self, other: Growth) -> float:
        """How many powers of n this grows faster; 0 where one of them is no power of n."""
        return self.degree - other.degree if self.kind == other.kind == 0 else 0.0


class Bound(NamedTuple):
    """The bound of a loop or, with `is_total`, of a function.

    :param line: 1-based line where the loop begins, or that has the name of the function.
    :param text: the bound as a formula, `inf` where there is none; :param growth_text: its class.
    :param reason: why no bound was found; empty where one was.
    """

    line: int
    is_total: bool
    text: str
    growth_text: str
    growth: Growth
    reason: str = ""


class FunctionBounds(NamedTuple):
    """The bounds of one function: its total, and those of its loops in the order of the text."""

    source: str
    name: str
    total: Bound | None
    loops: tuple[Bound, ...]

    @property
    def line(self) -> int:
        """The line of its name, of its first loop where that is not known."""
        return next((one.line for one in (self.total, *self.loops) if one is not None), 0)


class Unread(NamedTuple):
    """A part of a source that could not be read: `function` is empty where it is no single one."""

    source: str
    line: int
    function: str
    reason: str


def is_of_bounds(profile: Profile) -> bool:
    """Whether it is a profile of bounds."""
    return profile.type == TYPE


def classes(profile: Profile) -> dict[str, Growth]:
    """How each function grows, by its name.

    It is the class of its total bound, without the functions that it calls unless these were asked for. Of
    several functions of one name, in different files, the one that grows fastest counts.

    :raises ProfileError: where it is no profile of bounds.
    """
    found: dict[str, Growth] = {}
    for one in functions_of(profile):
        growth = max(bound.growth for bound in ((one.total,) if one.total else one.loops) if bound)
        found[one.name] = max(growth, found.get(one.name, growth))
    return found


def functions_of(profile: Profile) -> list[FunctionBounds]:
    """The functions of the profile by their places, each with its bounds.

    :raises ProfileError: where it is no profile of bounds, or a resource has no class.
    """
    if not is_of_bounds(profile):
        raise ProfileError(
            f"the profile is of the type {profile.type!r} and has no bounds",
            "collect bounds with: perun collect bounds --source FILE",
        )
    by_function: dict[tuple[str, str], list[Bound]] = {}
    for _, resource in profile.all_resources():
        uid = resource.get("uid")
        if isinstance(uid, Mapping):
            key = str(uid.get("source", "")), str(uid.get("function", ""))
            by_function.setdefault(key, []).append(_bound(resource, uid))
    made = [_function(*key, found) for key, found in by_function.items()]
    return sorted(made, key=lambda one: (one.source, one.line, one.name))


def unreadable(profile: Profile) -> Iterator[Unread]:
    """What of the sources could not be read, as the collector notes it in its region of the profile."""
    region = profile.get(REGION)
    noted = region.get("unreadable") if isinstance(region, Mapping) else None
    for one in noted if isinstance(noted, list) else ():
        if isinstance(one, Mapping):
            line = one.get("line")
            yield Unread(
                str(one.get("source", "")),
                line if isinstance(line, int) else 0,
                str(one.get("function", "")),
                str(one.get("reason", "")),
            )


def analysis_of(profile: Profile) -> str:
    """The version of the analysis that made the profile, and what it was told to count; empty where the
    profile does not say."""
    region = profile.get(REGION)
    version = region.get("analysis") if isinstance(region, Mapping) else None
    params = profile.get("collector_info", {}).get("params")
    told = [f"{name}={params.get(name)}" for name in _COUNTING] if isinstance(params, Mapping) else []
    return " ".join((str(version), *told)) if version else ""


def _function(source: str, name: str, found: list[Bound]) -> FunctionBounds:
    total = next((one for one in found if one.is_total), None)
    # Loops that begin in one line are in the order in which the collector noted them.
    loops = sorted((one for one in found if not one.is_total), key=lambda one: one.line)
    return FunctionBounds(source, name, total, tuple(loops))


def _bound(resource: Mapping[str, Any], uid: Mapping[str, Any]) -> Bound:
    # Older releases have the subtype as the type.
    is_total = TOTAL in (resource.get("subtype"), resource.get("type"))
    line = uid.get("line")
    line = line if isinstance(line, int) and not isinstance(line, bool) else 0
    text = str(resource.get("class", ""))
    try:
        growth = Growth.of(text)
    except ValueError as problem:
        where = f"{uid.get('source', '')}:{uid.get('function', '')}:{line}"
        raise ProfileError(f"the resource {where} has no class: {problem}", "collect it again") from None
    return Bound(
        line + 1 if is_total else line,  # of a function the profile has the 0-based line
        is_total,
        str(resource.get("bound", "")),
        text,
        growth,
        str(resource.get("reason", "")),
    )

