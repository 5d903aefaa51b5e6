"""What a campaign has found so far, and its journal: each addition is on the disk at once, from which it is
restored."""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core import atomic
from perun.core.errors import ProfileError
from perun.core.regular import open_regular
from perun.fuzz.corpus import Compass, Corpus, CorpusMember, Counts, Storage
from perun.fuzz.results import FAULT, HANG, LOGS, Confirmation, Point
from perun.fuzz.seeds import TriedSeed

# What a campaign found, written as it happens, so that it goes on after being killed (`--resume`).
#
# A file of JSON lines that only grows. Each line is written by one call of the system: what another process,
# or a kill, finds there are whole lines and at most one torn one at the end, which is not read.

FILE: Final = f"{LOGS}/campaign.jsonl"
FORMAT: Final = 2
BEGAN: Final = "began"
"""The kind of the line behind those of all seeds."""
_HINT: Final = "begin anew in another folder, or remove this one"


class CampaignJournal:
    """The journal of a campaign, open for writing.

    :param anew: forget what is there. :ivar folder: where it is.
    :raises OSError: if it cannot be written; then, and from each method.
    """

    def __init__(self, folder: Path, *, anew: bool = False) -> None:
        path = folder / FILE
        self.folder = path.parent
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if anew else 0)
        self._path = path
        self._file = os.open(path, flags, 0o666)
        self._end_torn_line()

    def write(self, kind: str, **values: Any) -> None:
        """One line."""
        line = json.dumps({"kind": kind, **values}, separators=(",", ":")).encode() + b"\n"
        with atomic.PathErrors(self._path):
            atomic.write_all(self._file, line)

    def member(self, kind: str, member: CorpusMember, edges: Any = (), counts: Any = ()) -> None:
        """What was found, and the counts that it raised."""
        described = asdict(replace(member, content=b"", confirmation=None))
        del described["content"], described["confirmation"]
        packed = {"data": _packed(member.data)}
        if len(edges):
            packed["edges"] = _packed(np.asarray(edges, np.int64).tobytes())
            packed["counts"] = _packed(np.asarray(counts, np.int64).tobytes())
        self.write(kind, member=described, **packed)

    def confirmed(self, member: CorpusMember) -> None:
        """What a test of a member said."""
        assert member.confirmation is not None
        self.write("confirmed", number=member.number, confirmation=asdict(member.confirmation))

    def close(self) -> None:
        """No more is written."""
        os.close(self._file)

    def _end_torn_line(self) -> None:
        if os.fstat(self._file).st_size:
            os.write(self._file, b"\n")


class JournalLine:
    """A line of a journal: `kind`, and the values of it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.kind = str(values["kind"])

    def member(self) -> CorpusMember:
        """The member that a line of :meth:`CampaignJournal.member` holds."""
        described = dict(self.values["member"])
        described["rules"] = tuple(described["rules"])
        return CorpusMember(**described, content=_unpacked(self.values["data"]))

    def counts(self) -> tuple[Counts, Counts]:
        """The edges and their counts of such a line."""
        found = (self.values.get(name) for name in ("edges", "counts"))
        edges, counts = (np.frombuffer(_unpacked(one) if one else b"", np.int64) for one in found)
        return edges, counts

    def confirmation(self) -> Confirmation:
        """What a line of :meth:`CampaignJournal.confirmed` holds."""
        return Confirmation(**self.values["confirmation"])


def read(folder: Path) -> Iterator[JournalLine]:
    """The lines of the journal in `folder`; the first one is of the kind `campaign`.

    :raises ProfileError: if there is none, or it is of another version.
    """
    path = folder / FILE
    hint = "give the folder that was the --output-dir, or fuzz without --resume"
    try:
        file = open_regular(path, sys.maxsize)
    except FileNotFoundError:
        raise ProfileError(f"{folder} holds no campaign to resume: there is no {FILE}", hint) from None
    except OSError as problem:
        raise ProfileError(f"{path} cannot be read: {problem.strerror}", hint) from None
    with file:
        for number, line in enumerate(file, 1):
            try:
                entry = JournalLine(json.loads(line))
            except (ValueError, KeyError, TypeError):
                if number > 1:  # torn by a kill, or empty
                    continue
                entry = JournalLine({"kind": ""})
            if number == 1 and entry.values.get("format") != FORMAT:
                raise ProfileError(f"{path} is no journal of this version of Perun", _HINT)
            yield entry


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


Edges = NDArray[np.intp]

MOST_KEPT: Final = 100
"""Faults, and hangs, that are kept: further ones are counted."""
_SEED: Final = "seed"
_SLOW: Final = "member"
_CONFIRMED: Final = "confirmed"
"""Kinds of lines of the journal, beside those of faults and hangs."""
_NOTHING: Final = np.zeros(0, np.int64)


class Findings:
    """The inputs that matter, and the counts that they hold.

    :ivar corpus: what is mutated: the seeds, and all that raised a count. :ivar seeds: by their names.
    :ivar base: executed lines of the seed that has most. :ivar best: the best ratio to these, and
        :ivar coverage: that over time.
    :ivar interesting: slow inputs, which are to be measured. :ivar faults: and :ivar hangs: the first ones;
        :ivar lost: how many more there were of each.

    :param counted: whether executed lines are; else the ratio is that of times.
    """

    def __init__(self, journal: CampaignJournal, *, counted: bool) -> None:
        self.compass = Compass()
        self.corpus = Corpus(self.compass)
        self.seeds: dict[str, CorpusMember] = {}
        self.base = 0
        self.best = 1.0
        self.coverage: list[Point] = []
        self.interesting: list[CorpusMember] = []
        self.faults: list[CorpusMember] = []
        self.hangs: list[CorpusMember] = []
        self.lost = {FAULT: 0, HANG: 0}
        self._journal = journal
        self._storage = Storage(journal.folder)
        self._counted = counted
        self._numbers = 0
        self._restored: dict[int, CorpusMember] = {}

    def next_number(self) -> int:
        """Of a new member."""
        self._numbers += 1
        return self._numbers

    def ratio(self, lines: int) -> float:
        """So many executed lines to those of the seeds."""
        return lines / self.base if self.base else 1.0

    @property
    def slowest_seed(self) -> float:
        """Seconds of a run."""
        return max((one.seconds for one in self.seeds.values()), default=0.0)

    def add_seeds(self, tried: Sequence[TriedSeed], executions: int) -> None:
        """All seeds that can be used; so many executions it took to know."""
        self.base = max((one.member.lines for one in tried), default=0)
        for seed in tried:
            member = seed.member
            member.number, member.execution = self.next_number(), executions
            member.icov = self.ratio(member.lines)
            self._hold(_SEED, member, seed.edges, seed.counts)
            self._journal.member(_SEED, member, seed.edges, seed.counts)
        self._journal.write(BEGAN, seeds=len(tried))

    def add(self, member: CorpusMember, edges: Edges = _NOTHING, counts: Counts = _NOTHING) -> None:
        """An input that raised these counts, or is interesting."""
        member.hot, member.hot_ratio = self.compass.hottest(edges, counts)
        self._hold(_SLOW, member, edges, counts)
        self._journal.member(_SLOW, member, edges, counts)

    def add_failure(self, kind: str, member: CorpusMember) -> bool:
        """A fault or a hang; whether it is kept: of too many it is only counted."""
        if len(self._failures(kind)) >= MOST_KEPT:
            self.lost[kind] += 1
            return False
        self._hold(kind, member)
        self._journal.member(kind, member)
        return True

    def confirm(self, member: CorpusMember, confirmation: Confirmation) -> None:
        """What measuring said of a member."""
        self._hold_confirmation(member, confirmation)
        self._journal.confirmed(member)

    def restore(self, entry: JournalLine) -> CorpusMember | None:
        """Add what a line of the journal holds; the member of it, if it has a new one."""
        if entry.kind == _CONFIRMED:
            known = self._restored.get(int(entry.values["number"]))
            if known is not None:
                self._hold_confirmation(known, entry.confirmation())
            return None
        if entry.kind not in (_SEED, _SLOW, FAULT, HANG):
            return None
        member = entry.member()
        known = self._restored.setdefault(member.number, member)
        known.ending = member.ending  # a slow one that failed when it was measured has two lines
        self._numbers = max(self._numbers, member.number)
        if entry.kind == _SEED:
            self.base = max(self.base, member.lines)
        self._hold(entry.kind, known, *entry.counts())
        return member

    def _hold(
        self, kind: str, member: CorpusMember, edges: Edges = _NOTHING, counts: Counts = _NOTHING
    ) -> None:
        self._storage.add(member)
        if kind in (FAULT, HANG):
            self._failures(kind).append(member)
            return
        self.compass.take(edges, counts, member.number)
        self.corpus.add(member)
        if kind == _SEED:
            self.seeds[member.name] = member
            self.compass.close_base()
            self.coverage = [Point(0.0, member.execution, 1.0)]
            return
        if member.interesting:
            self.interesting.append(member)
        self._raise_best(member.icov, member)

    def _hold_confirmation(self, member: CorpusMember, confirmation: Confirmation) -> None:
        member.confirmation = confirmation
        member.pcr = confirmation.rate
        if not self._counted and member.pcr > 0 and confirmation.ratio:
            self._raise_best(confirmation.ratio, member)

    def _raise_best(self, ratio: float, member: CorpusMember) -> None:
        if ratio > self.best:
            self.best = ratio
            self.coverage.append(Point(member.at, member.execution, ratio))

    def _failures(self, kind: str) -> list[CorpusMember]:
        return self.faults if kind == FAULT else self.hangs


# What a campaign tells while it runs.


class SeedRuns(NamedTuple):
    """The seeds have run.

    :param base: executed lines, or edges, as :param unit: says. :param notes: what the user should know.
    """

    base: int
    seeds: int
    rules: int
    limit: int
    notes: tuple[str, ...]
    unit: str = "lines"


class InterestingInput(NamedTuple):
    """An input that executes more lines than any before, or a new fault or hang.

    :param kind: one of :data:`perun.fuzz.results.KINDS`.
    """

    kind: str
    member: CorpusMember
    seconds: float


class MemberTest(NamedTuple):
    """What measuring an input said of it.

    :param outcome: `ok`, `fault` or `hang`. :param ending: in words, where it is not `ok`.
    :param confirmation: None where it is not `ok`.
    """

    outcome: str
    confirmation: Confirmation | None = None
    ending: str = ""


class CampaignStatus(NamedTuple):
    """Where the campaign stands.

    :param phase: what it does now. :param seconds: so far, and :param left: until its time is over; None
        where it ends by executions. :param per_second: executions, of late.
    :param edges: lines or edges that some input has executed. :param ratio: the best, to the seeds.
    :param waiting: inputs that were stopped early, and wait for their time. :param rules: the best ones, as
        `T.10 41`.
    """

    phase: str
    seconds: float
    left: float | None
    executions: int
    per_second: float
    corpus: int
    edges: int
    ratio: float
    results: int
    hangs: int
    faults: int
    waiting: int
    rules: tuple[str, ...]


Event = SeedRuns | InterestingInput | CampaignStatus
Test = Callable[[CorpusMember, CorpusMember, float], MemberTest]
"""Measures a member beside its seed, within about so many seconds."""
