"""The journal of a batch: written to disk before and after each step, so that the batch can be resumed after
any interruption, such as Ctrl-C, `kill -9` or a power failure.

A journal is a file of `.perun/batches` as :mod:`perun.repository.journal` has it: the plan of the
batch, and then one line for each step of one task.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from perun.core.errors import NotPerunRepository
from perun.repository import journal as journal_file
from perun.repository.jobs import Job
from perun.repository.journal import JournalFile
from perun.running.run.schedule import Shares, VersionSlot, described


class StepLog:
    """Gets the steps of the tasks of a batch; this one keeps nothing, so that the batch cannot be resumed."""

    @property
    def finished(self) -> frozenset[int]:
        """The tasks that had a complete profile before."""
        return frozenset()

    def end(self) -> None:
        """The batch has come to its end."""

    def close(self) -> None:
        """Release what is held."""

    def __enter__(self) -> StepLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def saving(self, number: int, sha1: str) -> None:
        """The profile of the task will be written to a pending file with these bytes."""

    def saved(self, number: int, name: str) -> None:
        """It was written, and the file has this name."""

    def done(self, number: int) -> None:
        """The profile is at its final place."""

    def incomplete(self, number: int, why: str) -> None:
        """The profile of the task, which will be written next, lacks a part of its run."""

    def failed(self, number: int, why: str) -> None:
        """The task gave no profile."""

    def leased(self, number: int, machine: str) -> None:
        """The machine of that name is given the task."""

    def added(self, slots: Sequence[VersionSlot]) -> None:
        """Another round is run, which was not planned."""

    def shared(self, jobs: Mapping[int, Job], shares: Shares) -> None:
        """It is known what versions share. :param jobs: by identity."""

    def listed(self, jobs: Sequence[Job], slots: Sequence[VersionSlot]) -> None:
        """These benchmarks were found in the versions, and are measured in these visits."""

    def measured(self, rows: Sequence[Sequence[Any]]) -> None:
        """A visit has measured benchmarks. :param rows: the number of the task, and what was measured."""

    def stored(self) -> None:
        """All that benchmarks have measured is at its final place."""


class UnfinishedTask(NamedTuple):
    """A task whose profile may be on the disk, but whose end is not in the journal; `name` may be empty."""

    number: int
    sha1: str
    name: str


class BatchJournal(StepLog):
    """The journal of one batch, which this process has for itself; use :func:`create` or :func:`newest`.

    :ivar machines: where each task was measured, or is, that a pool was given.
    :ivar added_stops: the stops of rounds that were not planned, as the plan has its own.
    :ivar shares: what versions share: the version, the number of the job, the version that is measured, and
        why; None where that is not known yet.
    :ivar benchmarks: the ones of suites, as jobs after those of the plan: their texts, collectors, arguments
        and workloads; None where they are not known yet. :ivar readings: what was measured of them, and is
        not stored yet.
    """

    def __init__(self, file: JournalFile) -> None:
        self.plan = file.plan
        self.ended = False
        self.damaged_line = file.damaged_line
        self._file = file
        self._last: dict[int, str] = {}
        self._unfinished: dict[int, UnfinishedTask] = {}
        self._incomplete: set[int] = set()
        self.names: set[str] = set()
        self.machines: dict[int, str] = {}
        self.added_stops: list[list[Any]] = []
        self.shares: list[list[Any]] | None = None
        self.benchmarks: list[list[str]] | None = None
        self.readings: list[list[Any]] = []
        for line in file.lines:
            self._apply(line)

    @property
    def path(self) -> Path:
        """Its file."""
        return self._file.path

    @property
    def finished(self) -> frozenset[int]:
        """The tasks that have their profile, a complete one."""
        done = (number for number, step in self._last.items() if step == "done")
        return frozenset(done) - self._incomplete

    @property
    def unfinished(self) -> list[UnfinishedTask]:
        """The tasks during whose last step the batch ended, or that step failed."""
        return list(self._unfinished.values())

    def saving(self, number: int, sha1: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("saving", number, sha1)

    def saved(self, number: int, name: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("saved", number, name)

    def done(self, number: int) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("done", number)

    def incomplete(self, number: int, why: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("incomplete", number, why)

    def failed(self, number: int, why: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("failed", number, why)

    def leased(self, number: int, machine: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("leased", number, machine)

    def added(self, slots: Sequence[VersionSlot]) -> None:
        """As :class:`StepLog`, written at once."""
        for stop in self._stops(slots, self.benchmarks or ()):
            self._write_step("added", stop)

    def _stops(self, slots: Sequence[VersionSlot], benchmarks: Sequence[Sequence[str]]) -> list[list[Any]]:
        texts = [*self.plan["jobs"], *(text for text, *_ in benchmarks)]
        places = {text: place for place, text in enumerate(texts)}

        def tasks(slot: VersionSlot) -> list[list[int]]:
            return [[one.number, places[described(one.job)]] for one in slot.tasks]

        return [[slot.version.checksum, slot.round, tasks(slot)] for slot in slots]

    def listed(self, jobs: Sequence[Job], slots: Sequence[VersionSlot]) -> None:
        """As :class:`StepLog`, written at once."""
        rows = [[described(job), job.collector.name, job.args, job.workload] for job in jobs]
        self._write_step("listed", rows, self._stops(slots, rows))

    def measured(self, rows: Sequence[Sequence[Any]]) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("measured", list(map(list, rows)))

    def stored(self) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("stored")

    def shared(self, jobs: Mapping[int, Job], shares: Shares) -> None:
        """As :class:`StepLog`, written at once."""
        texts = self.plan["jobs"]
        rows = [
            [version, texts.index(described(jobs[key])), *share] for (version, key), share in shares.items()
        ]
        self._write_step("shared", rows)

    def resumed(self) -> None:
        """The batch goes on from now, after an interruption."""
        self._write_step("resumed", time.time())

    def end(self) -> None:
        """The batch has come to its end. Where something failed or is incomplete, the journal is kept, to try
        that again."""
        if self._incomplete or "failed" in self._last.values():
            self._write_step("ended")
        else:
            self._file.remove()

    def close(self) -> None:
        """Release the lock."""
        self._file.close()

    def _write_step(self, *line: Any) -> None:
        self._file.append(*line)
        self._apply(list(line))

    def _apply(self, line: list[Any]) -> None:
        match line:
            case ["incomplete", int(number), str()]:
                pass  # it is the profile that is saved next
            case ["saving", int(number), str(sha1)]:
                if self._last.get(number) == "incomplete":
                    self._incomplete.add(number)
                else:
                    self._incomplete.discard(number)
                self._unfinished[number] = UnfinishedTask(number, sha1, "")
            case ["saved", int(number), str(name)] if number in self._unfinished:
                self._unfinished[number] = self._unfinished[number]._replace(name=name)
                self.names.add(name)
            case ["done", int(number)]:
                self._unfinished.pop(number, None)
            case ["failed", int(number), str()]:
                pass
            case ["added", [str(), int(), list()] as stop]:
                self.added_stops.append(stop)
                self.ended = False
                return
            case ["shared", list() as rows]:
                self.shares = rows
                return
            case ["listed", list() as rows, list() as stops]:
                self.benchmarks = rows
                self.added_stops += stops
                return
            case ["measured", list() as rows]:
                self.readings += rows
                self._last |= {number: "done" for number, *_ in rows}
                self.ended = False
                return
            case ["stored"]:
                self.readings = []
                return
            case ["leased", int(number), str(machine)]:
                self.machines[number] = machine
                self.ended = False
                return
            case ["ended"]:
                self.ended = True
                return
            case _:
                return  # of a later release, or damaged
        self.ended = False
        self._last[number] = line[0]


def create(folder: Path, plan: Mapping[str, Any]) -> BatchJournal:
    """Create a journal; removes the oldest of those without a process.

    :raises NotPerunRepository: if the file system has no locks.
    """
    return BatchJournal(journal_file.create(folder, plan))


def newest(folder: Path, *, to_read: bool = False) -> BatchJournal | None:
    """The journal to resume, locked unless it is only read: the newest of a batch that was interrupted, else
    the newest of one that came to its end but had failures; None if there is neither."""
    failed: BatchJournal | None = None
    for file in journal_file.unlocked(folder, to_read=to_read):
        journal = BatchJournal(file)
        if not journal.ended:
            if failed is not None:
                failed.close()
            return journal
        if failed is None:
            failed = journal
        else:
            journal.close()
    return failed


def interrupted(folder: Path) -> BatchJournal | None:
    """The newest journal of a batch that was interrupted, to read only."""
    journal = None
    with suppress(NotPerunRepository):  # a file system without locks is no reason not to look
        journal = newest(folder, to_read=True)
    return journal if journal is not None and not journal.ended else None
