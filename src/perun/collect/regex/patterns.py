"""Regular expressions for values, and what they find in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

GROUPS: Final = ("value", "name", "unit", "size")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)")


class Pattern(NamedTuple):
    """An expression with the group `value`.

    `name` and `unit` are for values of which no group finds them; `suffix` is appended to the name.
    """

    regex: re.Pattern[str]
    name: str = ""
    unit: str = ""
    suffix: str = ""


class Patterns(NamedTuple):
    """Expressions that belong together.

    The name, unit or size that a heading finds holds for the values after it, until another heading finds
    one. With `under_heading`, values before the first heading are ignored.
    """

    patterns: Sequence[Pattern]
    headings: Sequence[re.Pattern[str]] = ()
    under_heading: bool = False


class Metric(NamedTuple):
    """One value and the `pattern` that found it; `name`, `unit` and `size` are empty if not found."""

    pattern: Pattern
    value: str
    name: str
    unit: str
    size: str


def compiled(what: str, expression: str, wanted: Sequence[str]) -> re.Pattern[str]:
    """Compile an expression, in which `^` and `$` match at line ends.

    :param what: the parameter that has it, for messages. :param wanted: groups of which it needs at least
        one.
    :raises ValueError: where it is no regular expression, has none of these groups, or an unknown one.
    """
    try:
        regex = re.compile(expression, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ValueError(f"{what} {expression!r} is not a regular expression: {problem}") from None
    for name in regex.groupindex:
        if name not in GROUPS:
            raise ValueError(
                f"{what} {expression!r} has the unknown group {name!r}; groups are {', '.join(GROUPS)}"
            )
    if not set(wanted) & set(regex.groupindex):
        groups = " or ".join(f"(?P<{name}>...)" for name in wanted)
        raise ValueError(f"{what} {expression!r} needs the group {groups}")
    return regex


def plain(text: str) -> str:
    """The text without escape sequences of terminals, and with line feeds as line ends."""
    return _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def find(text: str, patterns: Patterns) -> Iterator[Metric]:
    """All values in the order of the text."""
    found: list[tuple[int, Pattern | None, re.Match[str]]] = []
    for heading in patterns.headings:
        found += [(match.start(), None, match) for match in heading.finditer(text)]
    for pattern in patterns.patterns:
        found += [(match.start(), pattern, match) for match in pattern.regex.finditer(text)]
    held: dict[str, str] = {}
    seen = not patterns.under_heading
    for _, by, match in sorted(found, key=lambda one: one[0]):
        groups = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
        if by is None:
            held |= groups
            seen = True
        elif seen and "value" in groups:
            known = {"name": by.name, "unit": by.unit, "size": "", **held, **groups}
            yield Metric(by, known["value"], known["name"] + by.suffix, known["unit"], known["size"])


def number(text: str) -> float | None:
    """The number that a text such as `1,234.5` or `1e-3` is, or the seconds of `h:mm:ss`; or None."""
    clock = _CLOCK.fullmatch(text)
    if clock:
        hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return hours * 3600 + minutes * 60 + seconds
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if abs(value) < float("inf") else None
    return None


def is_clock(text: str) -> bool:
    """Whether the text is a time such as `h:mm:ss` or `m:ss`."""
    return _CLOCK.fullmatch(text) is not None
