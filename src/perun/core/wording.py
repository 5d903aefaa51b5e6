"""Words that messages of all parts of Perun have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_USER: Final = re.compile(r"([A-Za-z][\w+.-]*)://([^/\s:]*)(:[^/\s]*)?@")
_OPTION: Final = re.compile(
    r"([?&][\w-]*(?:password|secret|token|key|sig|signature)[\w-]*=)[^&\s'\"]+", re.IGNORECASE
)
_WITH_USERS: Final = ("ssh", "postgresql")
"""Schemes of URLs in which the name of a user is no secret."""


def without_secrets(text: str) -> str:
    """The text with `***` for what may be a password or a token in its URLs.

    A token is often the name of the user there, so names are left only where they are no secret.
    """
    return _OPTION.sub(r"\1***", _USER.sub(_hidden, text)) if "://" in text else text


def _hidden(found: re.Match[str]) -> str:
    scheme, user, password = found.groups()
    user = user if scheme.partition("+")[0].lower() in _WITH_USERS and "@" not in user else "***"
    return f"{scheme}://{user}{':***' if password else ''}@"


def counted(number: float, noun: str) -> str:
    """The number and the noun in its singular or plural: `1 call`, `1,234 calls`."""
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


def plural(count: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """The first names, and how many more there are: `a, b, c and 2 more`, or `a; b; c; and 2 more`."""
    more = f"{between.strip(', ')} and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


_AGES = (
    (365.25 * 86400, "year"),
    (30.44 * 86400, "month"),
    (7 * 86400, "week"),
    (86400, "day"),
    (3600, "h"),
    (60, "min"),
    (1, "s"),
)
_SKEW = 60


def ago(seconds: float) -> str:
    """An age as people say it: `12 s ago`, `3 min ago`, `5 days ago`, `2 years ago`, rounded down.

    What is a little in the future, as another machine's clock may say, is `just now`.
    """
    if -_SKEW < seconds < 1:
        return "just now"
    size, unit = next((step for step in _AGES if abs(seconds) >= step[0]), _AGES[-1])
    count = int(abs(seconds) / size)
    text = plural(count, unit) if len(unit) > 3 or unit == "day" else f"{count} {unit}"
    return f"{text} ago" if seconds > 0 else f"in {text}"
