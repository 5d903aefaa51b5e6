"""The changes that were found the last time: what a new version does not touch is not searched again.

They hold for a series as long as its values are those they were found in, with a few new ones behind them
that look like the last level. A level is not left before several versions have left it, so such a series
cannot have changed.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import numpy as np

from perun.measurement.changes import Excursion, Track
from perun.measurement.difference import Rules
from perun.measurement.verdict import Verdict
from perun.models.change_detectors import deviation_of_differences, median
from perun.models.change_points import LevelChange
from perun.repository.repository import Repository

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEW: Final = 12
"""Points that may have come since a search."""
STEADY: Final = (40, 80)
"""As many on a long level that no new points leave, at least and before which number. Of each series it is
another one, so that after no commit all of them are searched."""
LONG: Final = 100
"""Points of a level whose value a few more hardly change."""
BEFORE: Final = 24
"""Points of the level before them that are needed."""
QUIET: Final = 3.2
"""Standard errors that the means of the newest points may differ from the level before them."""
RECENT: Final = 160
"""Points of the last level that are looked at."""
MORE: Final = 0.5
"""Standard errors by which they may have moved further since the last search."""
_WIDTHS: Final = (4, 8, 16)
_OF_NORMAL: Final = 1.4826
_OF_MEDIAN: Final = 1.2533
"""The standard error of a median in those of the mean, of normal values."""


class VersionVerdict(NamedTuple):
    """The verdict on a version against the one before. :param place: the point of the version."""

    place: int
    verdict: Verdict


class SeriesChanges(NamedTuple):
    """What was found in the points of a series.

    :param digest: of the points. :param points: how many there were. :param changes: of lasting levels.
    :param runs: short levels. :param judged: what neighbours say that is no Unknown and no No Change.
    """

    digest: str
    points: int
    changes: tuple[LevelChange, ...]
    runs: tuple[Excursion, ...] = ()
    judged: tuple[VersionVerdict, ...] = ()


class _Kept(NamedTuple):
    """What is kept of a series, with what it was found by."""

    effect: float
    rules: Rules
    found: SeriesChanges


class ChangesCache:
    """The changes of the series of one repository, for one least effect and the rules for words."""

    def __init__(self, repo: Repository, effect: float, rules: Rules) -> None:
        self._cache = repo.store.cache
        self._key = (effect, rules)
        self._new: dict[str, SeriesChanges] = {}
        self._series = self._read()

    def of(self, name: str, track: Track) -> SeriesChanges | None:
        """What holds for the series of that name; None if it is to be searched."""
        known = self.before(name, track)
        values = track.values
        if known is None or len(values) == known.points:
            return known
        new = len(values) - known.points
        last = known.changes[-1].place if known.changes else 0
        if not track.positive:
            return known
        level = np.log(values[last:][-RECENT:])
        before = known.points - last
        if before < BEFORE or (new > NEW and (before < LONG or new > _longest(name))):
            return None
        if new > NEW and not is_steady(level, new, np.log1p(self._key[0]) / 2):
            return None
        return known if quiet(level, new) else None

    def before(self, name: str, track: Track) -> SeriesChanges | None:
        """What was found when the series was shorter; None if that is not known, or it was another one."""
        known = self._series.get(name)
        if known is None or known.points > len(track.values) or digest(track, known.points) != known.digest:
            return None
        return known

    def keep(self, name: str, found: SeriesChanges) -> None:
        """Remember it, until :meth:`save` for this process alone."""
        self._series[name] = self._new[name] = found

    def save(self) -> None:
        """Write what is new; where it cannot be written, it is searched again."""
        import msgspec

        encode = msgspec.msgpack.Encoder().encode
        self._cache.put("found", {name: encode(_Kept(*self._key, one)) for name, one in self._new.items()})

    def _read(self) -> dict[str, SeriesChanges]:
        import msgspec

        decode = msgspec.msgpack.Decoder(_Kept).decode
        read = self._cache.all("found", decode)
        return {name: one.found for name, one in read.items() if one[:2] == self._key}


def _longest(name: str) -> int:
    """How many new points a steady series of that name may have, so that it is not searched."""
    least, end = STEADY
    return least + crc32(name.encode("utf-8", "replace")) % (end - least)


def is_steady(logs: Floats, new: int, most: float) -> bool:
    """Whether the newest of the values of a level, shape (n,), look like those before them wherever several
    of them are taken, and not only at the end as for :func:`quiet`.

    :param most: how far their medians may lie from that level whatever the noise: less than the least change.
    """
    before = logs[:-new]
    level = median(before)
    noise = _noise(before, level)
    for width in _WIDTHS:
        windows = np.lib.stride_tricks.sliding_window_view(logs[-new - width + 1 :], width)
        apart = np.abs(np.sort(windows, axis=1)[:, width // 2 - 1 : width // 2 + 1].mean(axis=1) - level)
        if apart.max() > max(most, QUIET * _error(noise, width, len(before))):
            return False
    return True


def digest(track: Track, points: int | None = None) -> str:
    """What stands for the first points of a series, all if None."""
    data = b"".join(np.ascontiguousarray(one[:points]).tobytes() for one in track)
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def quiet(logs: Floats, new: int) -> bool:
    """Whether the newest of the values of a level, shape (n,), look like those before them.

    :param new: points that have come since the level was last searched. On a slow drift the newest points are
        always a little off: what counts there is that they did not move further away by `MORE`.
    """
    now = unlike(logs)
    return now <= QUIET or now <= unlike(logs[:-new]) + MORE


def unlike(logs: Floats) -> float:
    """How many standard errors the medians of the newest values, of several numbers of them, lie from the
    median of those before, at most."""
    found = 0.0
    for width in _WIDTHS:
        rest = logs[:-width]
        if len(rest) < BEFORE // 2:
            break
        level = median(rest)
        error = _error(_noise(rest, level), width, len(rest))
        found = max(found, abs(median(logs[-width:]) - level) / max(error, 1e-12))
    return found


def _noise(values: Floats, level: float) -> float:
    """The standard deviation around the level, where one step among the values does not count."""
    return max(deviation_of_differences(values), median(np.abs(values - level)) * _OF_NORMAL)


def _error(noise: float, few: int, many: int) -> float:
    """The standard error of the difference of two medians of so many values."""
    return _OF_MEDIAN * noise * math.sqrt(1 / few + 1 / many)
