"""How calls are recorded: what both recorders, the one in C and the one in Python, are told of each."""

from __future__ import annotations

TYPE_CHECKING = False  # the module `typing` takes longer to load than all of the recorder
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Describe = Callable[[Any, tuple[Any, ...], dict[str, Any], Any, int], int | None]
    """(self or None, arguments, named ones, result or None, start) -> number of the object, or 0."""

# What the amount of a call is (`enum amount` of native/calls.h).
NOTHING, ONE, RESULT, LENGTH_OF_RESULT, LENGTH_OF_FIRST, NANOSECONDS_OF_FIRST, NESTED, FIRST_OF_RESULT = (
    range(8)
)

OF_SELF = 1
"""The object is the first argument; where it is not known, `describe` is asked, or nothing is recorded."""
RAW = 2
"""It exchanges bytes with the system: what it moves is physical."""
ONLY_LONG = 4
"""It is recorded only where it took at least 1 ms."""
BY_KIND = 8
"""The API is that of the kind of the object: `api` is the first of four."""
CLOSES = 16
"""It closes the object."""
ALWAYS = 32
"""`describe` is asked after each call, not only where the object is unknown or the call took 1 ms."""
WAITS = 64
"""It may wait long: what was recorded before is written to the file first (by the recorder in Python)."""

LONG = 1_000_000


class Rule:
    """How a function or method is recorded; `api` is a position in `layout.APIS`."""

    __slots__ = ("amount", "api", "describe", "rules")

    def __init__(
        self, api: int, amount: int = NOTHING, rules: int = 0, describe: Describe | None = None
    ) -> None:
        self.api = api
        self.amount = amount
        self.rules = rules
        self.describe = describe


class LimitHooks:
    """What is done for the limits: `before` a counted call, `after` any, and where a counted one `failed`."""

    __slots__ = ("after", "before", "failed")

    def __init__(
        self,
        before: Callable[[int], None] | None = None,
        after: Callable[[int, int], int] | None = None,
        failed: Callable[[int], None] | None = None,
    ) -> None:
        self.before = before
        self.after = after
        self.failed = failed
