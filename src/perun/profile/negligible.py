"""Functions that a profile of instructions leaves out because they are too small.

Which these are depends on all the others: where a program executes twice as much, functions that execute what
they did fall below the limit. Their absence says nothing of the program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

REPEATABLE: Final = 1e-4
"""Share of a whole up to which counts of one program may differ from run to run: the number of a process has
more digits, a timestamp is written differently."""
_TYPE: Final = "instructions"
_TOTAL: Final = "total"
_IN_ONE_ONLY: Final = (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget)


def without_negligible(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes, but for functions that only one of the profiles lists, with at most
    :data:`REPEATABLE` of the instructions of either."""
    amounts: list[Counter[str]] = []
    for change in changes:
        if change.result in _IN_ONE_ONLY:
            amounts = amounts or [_amounts(baseline), _amounts(target)]
            own = max(one[change.location] for one in amounts)
            if 0 < own <= REPEATABLE * max(one[_TOTAL] for one in amounts):
                continue
        yield change


def _amounts(profile: Profile) -> Counter[str]:
    """The instructions by uid, and the largest of these as :data:`_TOTAL`; empty for any other profile."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        if group.constants.get("type") == _TYPE:
            column = group.columns.get("amount") or [group.constants.get("amount", 0)]
            numbers = [one for one in column if isinstance(one, (int, float)) and math.isfinite(one)]
            found[str(flatten(group.constants.get("uid", "")))] += sum(numbers)  # type: ignore[assignment]
    found[_TOTAL] = max(found.values(), default=0)
    return found
