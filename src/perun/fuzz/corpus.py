"""The inputs that are mutated: the seeds, and what raised a count."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from perun.core.atomic import PathErrors
from perun.fuzz.results import Confirmation
from perun.profile.changes import PerformanceChange

# The counts that guide the search: which input executes an edge, or a line, most often.
#
# An input that raises the count of any edge is kept, as well as one that executes more lines in all: C.
# Lemieux, R. Padhye, K. Sen, D. Song, PerfFuzz: Automatically Generating Pathological Inputs, ISSTA 2018.

Counts = NDArray[np.int64]

MARGIN: Final = 0.05
"""Share by which a count has to rise. Else each input that is a byte longer would be kept."""


class Compass:
    """The largest count of each edge, and who has it.

    :ivar best: shape (n,). :ivar holders: who has the count, by number; -1 for nobody. :ivar base: the
        largest counts of the seeds.
    """

    def __init__(self) -> None:
        self.best: Counts = np.zeros(0, np.int64)
        self.base: Counts = np.zeros(0, np.int64)
        self.holders: NDArray[np.int64] = np.zeros(0, np.int64)
        self._limits: Counts = np.zeros(0, np.int64)

    def rises(self, counts: Any) -> NDArray[np.intp]:
        """The edges whose count is larger than any before, by a twentieth at least."""
        found = np.asarray(counts)
        self._fit(found.size)
        if found.size < self._limits.size:
            return np.flatnonzero(found > self._limits[: found.size])
        return np.flatnonzero(found > self._limits)

    def larger(self, edges: NDArray[np.intp], counts: Counts) -> tuple[NDArray[np.intp], Counts]:
        """Those of these edges, and their counts, that :meth:`rises` would find."""
        if not edges.size:
            return edges, counts
        self._fit(int(edges.max()) + 1)
        chosen = counts > self._limits[edges]
        return edges[chosen], counts[chosen]

    def take(self, edges: NDArray[np.intp], counts: Sequence[int] | Counts, holder: int) -> None:
        """Note that `holder` has these counts of these edges, where they are larger than those before."""
        values = np.asarray(counts, np.int64)
        if not edges.size:
            return
        self._fit(int(edges.max()) + 1)
        larger = values > self.best[edges]
        edges, values = edges[larger], values[larger]
        self.best[edges] = values
        self.holders[edges] = holder
        self._limits[edges] = values + (values * MARGIN).astype(np.int64)

    def close_base(self) -> None:
        """All seeds have run: what they executed is what counts of others are compared with."""
        self.base = self.best.copy()

    def hottest(self, edges: NDArray[np.intp], counts: Sequence[int] | Counts) -> tuple[int, float]:
        """The edge whose count rose most against the seeds, and by how much; (-1, 0.0) where there is none.

        An edge that no seed executes counts as executed once.
        """
        if not edges.size:
            return -1, 0.0
        base = np.ones(edges.size)
        known = edges < self.base.size
        base[known] = np.maximum(self.base[edges[known]], 1)
        ratios = np.asarray(counts, np.float64) / base
        place = int(ratios.argmax())
        return int(edges[place]), float(ratios[place])

    @property
    def favoured(self) -> list[int]:
        """Who holds the largest count of some edge, in order."""
        found = np.unique(self.holders)
        return [int(one) for one in found if one >= 0]

    def _fit(self, size: int) -> None:
        missing = size - self.best.size
        if missing > 0:
            self.best = np.pad(self.best, (0, missing))
            self._limits = np.pad(self._limits, (0, missing))
            self.holders = np.pad(self.holders, (0, missing), constant_values=-1)


# Choosing the parent of the next mutations: by five intervals of scores with linear weights (manual 9.7).

INTERVALS: Final = 5

T = TypeVar("T")


def choose(members: Sequence[T], score: Callable[[T], float], random: Random) -> T:
    """One of the members: the better its score, the likelier.

    The range of the scores is divided into five intervals of the same width, on a logarithmic scale, as one
    outlier would have an interval of its own and all others share the lowest. The k-th interval from below
    weighs k; within one all are alike. Intervals without a member do not take part.

    :raises IndexError: if there are no members.
    """
    groups = divide(members, score)
    weights = [number for number, group in groups]
    ((_, chosen),) = random.choices(groups, weights)
    return random.choice(chosen)


def divide(members: Sequence[T], score: Callable[[T], float]) -> list[tuple[int, list[T]]]:
    """The intervals that have members, lowest first: their number, 1 to 5, and their members.

    A score below the smallest positive float counts as that.
    """
    levels = [math.log(max(score(one), 5e-324)) for one in members]
    low, high = min(levels, default=0.0), max(levels, default=0.0)
    width = (high - low) / INTERVALS
    groups: dict[int, list[T]] = {}
    for one, level in zip(members, levels, strict=True):
        number = min(int((level - low) / width), INTERVALS - 1) if width > 0 else INTERVALS - 1
        groups.setdefault(number + 1, []).append(one)
    return sorted(groups.items(), key=lambda group: group[0])


# What an input is worth, and from which coverage on it is interesting (manual 9.6 and 9.7).

_STEP: Final = 1.1
"""Factor by which the threshold adapts; the manual names none."""
_LOWEST: Final = 1.01
"""Below, an input would be interesting that executes no more lines than the seeds."""
_DEGRADATIONS: Final = frozenset(
    {
        PerformanceChange.TotalDegradation,
        PerformanceChange.SevereDegradation,
        PerformanceChange.Degradation,
    }
)


def score(icov: float, pcr: float) -> float:
    """The fitness of an input: `icov * (1 + pcr)`.

    :param icov: its executed lines to those of the seeds. :param pcr: share of degradations among the changes
        that were found.
    """
    return icov * (1 + pcr)


def change_rate(changes: list[PerformanceChange]) -> float:
    """The share of degradations among changes (`pcr`); 0 where there are none. Possible ones do not count."""
    return sum(one in _DEGRADATIONS for one in changes) / len(changes) if changes else 0.0


class Threshold:
    """The multiple of the lines of the seeds that an interesting input exceeds.

    It adapts: where many inputs exceed it, it rises, where none does, it falls.

    :param rate: `--coverage-increase-rate`.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def is_exceeded(self, lines: int, base: int) -> bool:
        """Whether so many lines are more than the threshold."""
        return lines > self.rate * base

    def adapt(self, found: int, wanted: int, best: float) -> None:
        """After a phase of gathering: `found` interesting inputs of `wanted`.

        :param best: the best ratio so far; beyond it nothing would be found any more.
        """
        if found >= wanted:
            self.rate = min(self.rate * _STEP, max(best, self.rate))
        elif not found:
            self.rate = max(self.rate / _STEP, min(_LOWEST, self.rate))


# The bytes of inputs that were found: in memory as far as there is room, the others in a file.
#
# A campaign on inputs of ten megabytes keeps thousands of them, which is more than any machine has of memory.

ROOM: Final = 256 * 1024 * 1024
"""Bytes in memory."""


class TemporaryBytes(NamedTuple):
    """Bytes in a file, which has no name and is gone with the process."""

    file: int
    start: int
    size: int

    def read(self) -> bytes:
        """:raises OSError: if they cannot be read."""
        parts: list[bytes] = []
        done = 0
        while done < self.size:
            part = os.pread(self.file, self.size - done, self.start + done)
            if not part:
                raise OSError(f"{self.size - done} bytes of an input are missing in a temporary file")
            parts.append(part)
            done += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Holder(Protocol):
    """Who has the bytes. :ivar content: where they are."""

    content: bytes | TemporaryBytes


class Storage:
    """Moves the bytes of the oldest inputs into a file in `folder`, so that at most `room` are in memory."""

    def __init__(self, folder: Path, room: int = ROOM) -> None:
        self._folder = folder
        self._room = room
        self._held: deque[Holder] = deque()
        self._bytes = 0
        self._known: set[int] = set()
        self._file: int | None = None
        self._end = 0

    def add(self, holder: Holder) -> None:
        """Another one, or one that is known already.

        :raises OSError: if the file cannot be written.
        """
        if isinstance(holder.content, bytes) and id(holder) not in self._known:
            self._known.add(id(holder))
            self._held.append(holder)
            self._bytes += len(holder.content)
        while self._bytes > self._room:
            oldest = self._held.popleft()
            self._known.discard(id(oldest))
            if isinstance(oldest.content, bytes):
                self._bytes -= len(oldest.content)
                oldest.content = self._stored(oldest.content)

    def _stored(self, data: bytes) -> TemporaryBytes:
        if self._file is None:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._file = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._file)
        number, start = self._file, self._end
        done = 0
        with PathErrors(self._folder):
            while done < len(data):
                done += os.pwrite(number, memoryview(data)[done:], start + done)
        self._end += done
        return TemporaryBytes(number, start, len(data))


MOST: Final = 2000
"""Members from which on those are dropped that hold no count and have a low score."""
_KEPT: Final = 500
"""Members that stay for their score alone."""
_BY_SCORE: Final = 0.5
"""Share of parents that are chosen by score; the others hold a largest count."""
_STEM: Final = 80


@dataclass(eq=False)
class CorpusMember:
    """An input and what it did.

    :ivar number: in order of finding. :ivar name: of its file. :ivar content: its bytes, or where they are;
        :attr:`data` reads them. :ivar parent: the name of what it was mutated
        from, empty for a seed. :ivar seed: the name of the seed that it comes from.
    :ivar rules: labels of all rules since the seed. :ivar lines: executed lines, 0 where it did not end.
    :ivar icov: `lines` to those of the seeds. :ivar at: seconds since the beginning.
    :ivar hot: the edge that rose most against the seeds, -1 for none.
    :ivar interesting: it exceeded the threshold when it was found, so that it is to be measured.
    """

    number: int
    name: str
    content: bytes | TemporaryBytes
    parent: str
    seed: str
    rules: tuple[str, ...]
    lines: int = 0
    icov: float = 0.0
    seconds: float = 0.0
    at: float = 0.0
    execution: int = 0
    hot: int = -1
    hot_ratio: float = 0.0
    interesting: bool = False
    pcr: float = 0.0
    confirmation: Confirmation | None = None
    ending: str = ""

    @property
    def data(self) -> bytes:
        """Its bytes.

        :raises OSError: if they cannot be read from where they are stored.
        """
        return self.content if isinstance(self.content, bytes) else self.content.read()

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.size

    @property
    def score(self) -> float:
        """The fitness (manual 9.6)."""
        return score(self.icov, self.pcr)


def name_of(path: Path, data: bytes) -> str:
    """The name of the file of an input that comes from the seed `path`: `words-<32 digits>.txt` (manual 9.8).

    The digits are those of its content, so that the same input has the same name in each campaign.
    """
    digits = hashlib.blake2b(data, digest_size=16).hexdigest()
    return f"{plain(path.stem)[:_STEM] or 'seed'}-{digits}{plain(path.suffix)[: _STEM // 4]}"


def plain(name: str) -> str:
    """`name` as a part of the name of a file that can be written, and shown, everywhere."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(char if char.isprintable() and char not in '/\\"' else "_" for char in text).lstrip("-")


class Corpus:
    """The members, and the choice of the next parent."""

    def __init__(self, compass: Compass) -> None:
        self._compass = compass
        self._members: dict[int, CorpusMember] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[CorpusMember]:
        return iter(self._members.values())

    def add(self, member: CorpusMember) -> None:
        """Another member, which may be chosen from now on."""
        self._members[member.number] = member
        if len(self._members) > MOST:
            self._prune()

    def choose(self, random: Random, slowest: float = math.inf) -> CorpusMember:
        """The next parent: by its score (manual 9.7), or as often one that holds the largest count of an
        edge.

        :param slowest: seconds that it takes at most, if there is such a one.
        """
        members = [one for one in self if one.seconds <= slowest] or list(self)
        favoured = set(self._compass.favoured)
        holders = [one for one in members if one.number in favoured]
        if holders and random.random() >= _BY_SCORE:
            return random.choice(holders)
        return choose(members, lambda one: one.score, random)

    def others(self, random: Random, count: int) -> list[bytes]:
        """Contents of some members, for rules that take parts of others."""
        members = list(self._members.values())
        return [one.data for one in random.sample(members, min(count, len(members)))]

    def _prune(self) -> None:
        kept = set(self._compass.favoured)
        best = sorted(self._members.values(), key=lambda one: (-one.score, one.number))
        kept.update(one.number for one in best[:_KEPT])
        self._members = {
            number: one for number, one in self._members.items() if number in kept or not one.parent
        }
