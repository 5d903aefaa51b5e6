"""`perun changes`: which versions changed the level of a series.

`history` walks the versions and reads what each measured, `detecting` finds the steps of each series,
`events` says what they are together: one commit that changed several series, cost that moved from one
function to another, a step that a later one takes back, a function that went away.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from perun.core.errors import ProfileNotFound
from perun.core.wording import listed
from perun.history.changes import history
from perun.history.changes.data import (
    ChangePoint,
    Changes,
    History,
    SeriesEnd,
    SeriesKey,
    VersionChanges,
)
from perun.history.changes.detecting import ChangePointColumns, detect
from perun.history.changes.history import HistoryPoints, possible
from perun.history.changes.remembered import ChangesCache
from perun.history.trend import rank, text_of
from perun.measurement.difference import Rules
from perun.measurement.estimate import Kind
from perun.measurement.many import cancels, renamed
from perun.measurement.series import CPU
from perun.measurement.verdict import sum_of, untold_parts
from perun.models import change_points
from perun.profile.changes import PerformanceChange
from perun.profile.sampled import SAMPLED
from perun.repository import walking
from perun.repository.repository import Repository
from perun.store import changes as changepoint_cache
from perun.store.changes import CachedChangePoint

# What the steps of single series are together.

ABSENT_FOR: Final = 3
"""Versions with profiles of its configuration that a series is missing from before it is said to be gone."""
_SHORT: Final = 7
"""Digits of a checksum."""
TAKEN_BACK: Final = 0.25
"""The largest rest of a step that was taken back, as a share of it."""


def by_version(history: History, steps: Iterable[ChangePointColumns]) -> list[VersionChanges]:
    """The steps by the version that brought them, the oldest first, with what went away or came there."""
    placed = _with_reverts(history, list(steps))
    groups: defaultdict[tuple[int, int], list[ChangePoint]] = defaultdict(list)
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


def _told(steps: Sequence[ChangePoint], known: Container[SeriesKey]) -> list[ChangePoint]:
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


def undecided(found: Sequence[VersionChanges]) -> list[tuple[VersionChanges, ChangePoint]]:
    """The doubtful steps that no later one takes back, the newest first."""
    return [(one, step) for one in reversed(found) for step in one.doubtful if not step.reverted_by]


def deciding(doubtful: Sequence[tuple[VersionChanges, ChangePoint]]) -> str:
    """The command that measures side by side the two versions and the command that most of these steps share;
    of several the newest ones.

    :param doubtful: as :func:`undecided`, one at least.
    """
    shared = Counter((one.version, step.series.configuration) for one, step in doubtful)
    one, step = max(doubtful, key=lambda own: shared[own[0].version, own[1].series.configuration])
    versions = (version.checksum[:_SHORT] for version in (one.since, one.version))
    return shlex.join(["perun", "compare", *versions, *step.series.configuration.options])


def _rank(step: ChangePoint) -> tuple[bool, bool, float]:
    """What stands for a measurement first, degradations before improvements, the largest first."""
    return not step.leads, not step.is_degradation, -step.size


def _with_reverts(history: History, steps: Sequence[ChangePointColumns]) -> list[ChangePointColumns]:
    """Steps that the next step of the same series takes back say so, as does that one.

    What is definite is looked at first: a doubtful step in between takes nothing back of it.
    """
    found = list(steps)
    for doubtful in (False, True):
        by_series: defaultdict[SeriesKey, list[int]] = defaultdict(list)
        for number, one in enumerate(found):
            if not (one.step.reverted_by or one.step.reverts) and (doubtful or one.step.decides):
                by_series[one.step.series].append(number)
        for numbers in by_series.values():
            for first, second in itertools.pairwise(numbers):
                brings, backs = found[first].step, found[second].step
                if brings.reverts or not _is_reverted(brings, backs):
                    continue
                back = history.versions[history.measured[found[second].first]].checksum
                brought = history.versions[history.measured[found[first].first]].checksum
                found[first] = found[first]._replace(step=brings._replace(reverted_by=back))
                found[second] = found[second]._replace(step=backs._replace(reverts=brought))
    return found


def _is_reverted(brings: ChangePoint, backs: ChangePoint) -> bool:
    values = brings.before.value, brings.after.value, backs.after.value
    old, new, now = map(math.log, values) if min(values) > 0 else values
    return old != new and abs(now - old) <= TAKEN_BACK * abs(new - old)


def _moved(steps: Sequence[ChangePoint]) -> list[ChangePoint]:
    """Steps of exclusive costs of one profile that cancel: the cost went from some functions to others.

    Of samples only where the whole did not change; a function whose file was renamed has moved alone.

    A larger step is compared with the sum of those in the other direction; inclusive costs hold what moved
    below them, and move themselves only if the whole did.
    """
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    found = list(steps)
    for number, step in enumerate(found):
        key = step.series
        parts = (key.subtype, key.location.rpartition(" ")[2].strip("[]"))
        if "exclusive" in parts or key.kind is Kind.SAMPLED:
            groups[key.configuration, key.machine, key.type, key.unit].append(number)
    wholes = {(key.configuration, key.machine, key.type, key.unit)
              for key, leads, decides in ((one.series, one.leads, one.decides) for one in steps)
              if key.type == SAMPLED and leads and decides}  # fmt: skip
    for group, every in groups.items():
        numbers = [one for one in every if not _has_other_file(found, every, one)]
        deltas = {number: found[number].after.value - found[number].before.value for number in numbers}
        if group in wholes or not cancels(deltas.values()):
            continue
        for number in numbers:
            others = tuple(
                found[other].series.location for other in numbers if deltas[other] * deltas[number] < 0
            )
            found[number] = found[number]._replace(moved_with=others)
    return found


def _has_other_file(found: list[ChangePoint], numbers: Sequence[int], number: int) -> bool:
    """Whether samples found the function of a step in a file that was renamed; then the step says so."""
    ends = ("before", "after")
    gone, came = (
        {found[one].series.location: one for one in numbers if not getattr(found[one], end).value}
        for end in ends[::-1]
    )
    own = found[number]
    for new, old in renamed(gone, came).items() if own.series.kind is Kind.SAMPLED else ():
        both = found[gone[old]], found[came[new]]
        if own in both and cancels(one.after.value - one.before.value for one in both):
            other = both[own is both[0]].series.location
            found[number] = own._replace(moved_with=(other,))
            return True
    return False


def _gone(history: History) -> dict[tuple[int, int], list[SeriesEnd]]:
    """Series that end or begin while their configuration is measured before and after, by columns."""
    there = np.isfinite(history.values)
    rows: defaultdict[tuple[object, str], list[int]] = defaultdict(list)
    for number, key in enumerate(history.keys):
        rows[key.configuration, key.machine].append(number)
    found: defaultdict[tuple[int, int], list[SeriesEnd]] = defaultdict(list)
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
                found[last, first].append(SeriesEnd(history.keys[number], float(values[last]), False))
            if own[0] >= ABSENT_FOR:
                last, first = int(columns[own[0] - 1]), int(columns[own[0]])
                found[last, first].append(SeriesEnd(history.keys[number], float(values[first]), True))
    return dict(found)


# The verb: changes of level of all series of a history.

Progress = Callable[[str, int, int], None]
"""Called with what is done, `versions` or `series`, how many are done, and of how many."""
READING: Final = "versions"
DETECTING: Final = "series"


def changes(
    repo: Repository,
    revision: str | None = None,
    since: str | None = None,
    *,
    pattern: str = "",
    effect: float = change_points.EFFECT,
    progress: Progress = lambda what, done, total: None,
) -> Changes:
    """The versions along first parents that changed the level of a series, the oldest first.

    :param revision: the newest version, HEAD if None.
    :param since: as :func:`perun.repository.walking.since`.
    :param pattern: which series, as :func:`perun.history.trend.rank`, by `COLLECTOR COMMAND LOCATION`.
    :param effect: the least change, as a share of the level before.
    :raises ProfileNotFound: if there are profiles, and no series matches.
    :raises VersionControlError: if there is no such version.
    """
    read = history.read(repo, revision, lambda done, total: progress(READING, done, total))
    head = repo.version(revision)
    # Of an older version less is known: its steps would take the place of those that are known now.
    keeps = not pattern and effect == change_points.EFFECT
    keeps = keeps and (revision is None or repo.version(None) in {one.checksum for one in read.versions})
    points = history.HistoryPoints(repo, head, (one.checksum for one in read.versions))
    found = found_in(repo, _matching(read, pattern), points, effect, progress, keeps=keeps)
    if since is None:
        return found
    later = {one.checksum for one in walking.since(repo, reversed(read.versions), since)}
    return found._replace(found=[one for one in found.found if one.version.checksum in later])


def found_in(
    repo: Repository, read: History, points: HistoryPoints, effect: float, progress: Progress, *, keeps: bool
) -> Changes:
    """The versions of a history that changed the level of a series, as :func:`changes`.

    :param points: of its versions. :param keeps: keep the steps by version, for lists.
    """
    rules = Rules.of(repo.config.section("degradation"))
    remembered = ChangesCache(repo, effect, rules)
    told = partial(progress, DETECTING)
    found = detect(read, effect, rules, remembered, points, told)
    every = by_version(read, found.steps)
    if keeps:
        changepoint_cache.keep(repo.store.cache, {one.checksum for one in read.versions}, _known(every))
    return Changes(every, read, len(read.keys), found.short, tuple(found.drifts), found.says)


def _known(every: Sequence[VersionChanges]) -> dict[str, list[CachedChangePoint]]:
    """The steps as lists of versions show them."""
    found = {}
    for one in every:
        possible = tuple(version.checksum for version in one.possible)
        steps = [_known_step(step, possible) for step in one.steps]
        if steps:
            found[one.version.checksum] = steps
    return found


def _known_step(step: ChangePoint, possible: tuple[str, ...]) -> CachedChangePoint:
    key = step.series
    return CachedChangePoint(
        key.location, f"{text_of(key.configuration)} ({key.configuration.collector})",
        step.ratio, step.low, step.high, *step.values, key.unit, step.verdict.name, step.leads, possible,
        step.reverted_by, step.reverts,
    )  # fmt: skip


def _matching(read: History, pattern: str) -> History:
    """The history of the series that were measured in it and match the pattern."""
    import numpy as np

    measured = [number for number, row in enumerate(np.isfinite(read.values)) if row.any()]
    texts = {number: _names(read.keys[number])[0] for number in measured}
    ranks = {number: rank(_names(read.keys[number]), pattern) for number in measured}
    best = max(ranks.values(), default=0)
    rows = [number for number, own in ranks.items() if own == best > 0]
    if texts and not rows:
        raise ProfileNotFound(
            f"no series matches {pattern!r}", f"there are: {listed(sorted(texts.values()), 5)}"
        )
    cells = tuple(one[rows] for one in read.cells)
    return read._replace(keys=[read.keys[number] for number in rows], cells=cells)


def _names(key: SeriesKey) -> tuple[str, ...]:
    text, collector = text_of(key.configuration), key.configuration.collector
    return f"{collector} {text} {key.location}", key.location, f"{text} ({collector})"
