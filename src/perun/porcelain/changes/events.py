"""What the steps of single series are together."""

from __future__ import annotations

import itertools
import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Final

import numpy as np

from perun.measurement.series import CPU
from perun.measurement.verdict import sum_of, untold_parts
from perun.porcelain.changes.data import Gone, History, SeriesKey, Step, VersionChanges
from perun.porcelain.changes.detecting import Placed
from perun.porcelain.changes.history import possible
from perun.profile.changes import PerformanceChange

ABSENT_FOR: Final = 3
"""Versions with profiles of its configuration that a series is missing from before it is said to be gone."""
CANCELS: Final = 0.25
"""The largest rest of a cost that moved, as a share of what moved."""
_SHORT: Final = 7
"""Digits of a checksum."""
TAKEN_BACK: Final = 0.25
"""The largest rest of a step that was taken back, as a share of it."""


def by_version(history: History, steps: Iterable[Placed]) -> list[VersionChanges]:
    """The steps by the version that brought them, the oldest first, with what went away or came there."""
    placed = _with_reverts(history, list(steps))
    groups: defaultdict[tuple[int, int], list[Step]] = defaultdict(list)
    for last, first, step in placed:
        groups[last, first].append(step)
    gone = _gone(history)
    known = set(history.keys)
    found = []
    for last, first in sorted(groups.keys() | gone.keys(), key=lambda place: (place[1], place[0])):
        old, new = history.measured[last], history.measured[first]
        own = sorted(_moved(_told(groups.get((last, first), []), known)), key=_rank)
        found.append(
            VersionChanges(
                history.versions[new],
                history.versions[old],
                possible(history, old, new),
                tuple(step for step in own if step.decides),
                tuple(gone.get((last, first), ())),
                tuple(step for step in own if not step.decides),
            )
        )
    return found


def _told(steps: Sequence[Step], known: Container[SeriesKey]) -> list[Step]:
    """The steps without those of parts of the processor time that did not change together with it."""
    words = {step.series: step.verdict for step in steps}
    hidden = {
        key
        for key, word in words.items()
        if (whole := sum_of(key.location))
        and (of_sum := key._replace(location=whole, subtype=CPU)) in known
        and untold_parts({key.location: word, whole: words.get(of_sum, PerformanceChange.NoChange)}, (whole,))
    }
    return [step for step in steps if step.series not in hidden]


def undecided(found: Sequence[VersionChanges]) -> list[tuple[VersionChanges, Step]]:
    """The doubtful steps that no later one takes back, the newest first."""
    return [(one, step) for one in reversed(found) for step in one.doubtful if not step.taken_back]


def deciding(doubtful: Sequence[tuple[VersionChanges, Step]]) -> str:
    """The command that measures side by side the two versions and the command that most of these steps share;
    of several the newest ones.

    :param doubtful: as :func:`undecided`, one at least.
    """
    shared = Counter((one.version, step.series.configuration) for one, step in doubtful)
    one, step = max(doubtful, key=lambda own: shared[own[0].version, own[1].series.configuration])
    versions = (version.checksum[:_SHORT] for version in (one.since, one.version))
    return shlex.join(["perun", "compare", *versions, *step.series.configuration.options])


def _rank(step: Step) -> tuple[bool, bool, float]:
    """What stands for a measurement first, degradations before improvements, the largest first."""
    return not step.leads, not step.is_degradation, -step.size


def _with_reverts(history: History, steps: Sequence[Placed]) -> list[Placed]:
    """Steps that the next step of the same series takes back say so, as does that one.

    What is definite is looked at first: a doubtful step in between takes nothing back of it.
    """
    found = list(steps)
    for doubtful in (False, True):
        by_series: defaultdict[SeriesKey, list[int]] = defaultdict(list)
        for number, one in enumerate(found):
            if not (one.step.taken_back or one.step.takes_back) and (doubtful or one.step.decides):
                by_series[one.step.series].append(number)
        for numbers in by_series.values():
            for first, second in itertools.pairwise(numbers):
                brings, backs = found[first].step, found[second].step
                if brings.takes_back or not _is_taken_back(brings, backs):
                    continue
                back = history.versions[history.measured[found[second].first]].checksum
                brought = history.versions[history.measured[found[first].first]].checksum
                found[first] = found[first]._replace(step=brings._replace(taken_back=back))
                found[second] = found[second]._replace(step=backs._replace(takes_back=brought))
    return found


def _is_taken_back(brings: Step, backs: Step) -> bool:
    values = brings.before.value, brings.after.value, backs.after.value
    old, new, now = map(math.log, values) if min(values) > 0 else values
    return old != new and abs(now - old) <= TAKEN_BACK * abs(new - old)


def _moved(steps: Sequence[Step]) -> list[Step]:
    """Steps of exclusive costs of one profile that cancel: the cost went from some functions to others.

    A larger step is compared with the sum of those in the other direction; inclusive costs hold what moved
    below them, and move themselves only if the whole did.
    """
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    found = list(steps)
    for number, step in enumerate(found):
        key = step.series
        if "exclusive" in (key.subtype, key.location.rpartition(" ")[2].strip("[]")):
            groups[key.configuration, key.machine, key.type, key.unit].append(number)
    for numbers in groups.values():
        deltas = {number: found[number].after.value - found[number].before.value for number in numbers}
        total = sum(abs(delta) for delta in deltas.values())
        rest = abs(sum(deltas.values()))
        if len(deltas) < 2 or rest > CANCELS * total / 2:
            continue
        for number in numbers:
            others = tuple(
                found[other].series.location for other in numbers if deltas[other] * deltas[number] < 0
            )
            found[number] = found[number]._replace(moved_with=others)
    return found


def _gone(history: History) -> dict[tuple[int, int], list[Gone]]:
    """Series that end or begin while their configuration is measured before and after, by columns."""
    there = np.isfinite(history.values)
    rows: defaultdict[tuple[object, str], list[int]] = defaultdict(list)
    for number, key in enumerate(history.keys):
        rows[key.configuration, key.machine].append(number)
    found: defaultdict[tuple[int, int], list[Gone]] = defaultdict(list)
    for numbers in rows.values():
        columns = np.flatnonzero(there[numbers].any(axis=0))
        if len(numbers) < 2 or len(columns) <= ABSENT_FOR:
            continue
        for number in numbers:
            own = np.flatnonzero(there[number][columns])
            if len(own) < ABSENT_FOR:
                continue
            values = history.values[number]
            if len(columns) - 1 - own[-1] >= ABSENT_FOR:
                last, first = int(columns[own[-1]]), int(columns[own[-1] + 1])
                found[last, first].append(Gone(history.keys[number], float(values[last]), False))
            if own[0] >= ABSENT_FOR:
                last, first = int(columns[own[0] - 1]), int(columns[own[0]])
                found[last, first].append(Gone(history.keys[number], float(values[first]), True))
    return dict(found)
