"""Opens the folder that a run has left: recordings of its processes, log of stops, result; and accounts for
it.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import JobFailed
from perun.core.wording import counted
from perun.island import record
from perun.island import result as results
from perun.island import statistics as accounts
from perun.island.accounting import Stops, no_stops
from perun.island.record import Recording
from perun.island.result import RunResult
from perun.island.statistics import ThreadTime, Usage
from perun.island.stop_log import RULES, StopLog
from perun.island.timeline import CallSpan, Lane

PREFIX: Final = "rec."
"""Start of the names of recordings."""


class UnattributedBytes(NamedTuple):
    """Bytes that the system counted for files and no recorded call; -1 where it does not tell."""

    read: int
    written: int


class Life(NamedTuple):
    """A file or a socket of a process: its name, as in :class:`Usage`, and from when to when it was open.

    Times are ns since the start of the run; `closed` is None where it was open at the end of the process.
    """

    process: int
    kind: str
    object: str
    opened: int
    closed: int | None


class OpenRecording:
    """A run of a program, opened: what its threads used and where their time went.

    :param result: what the supervisor knows. :param recordings: of its processes, that of the program first.
    :param stops: when the program was stopped. :param rule: what of it counts as stopped time.
    """

    def __init__(self, result: RunResult, recordings: list[Recording], stops: Stops, rule: str) -> None:
        self.result = result
        self.recordings = recordings
        self.rule = rule
        self.start = min(recordings[0].started, result.started)
        self.end = result.ended if result.ended >= 0 else max(one.ended for one in recordings)
        self._stops = stops

    @property
    def live(self) -> float:
        """Seconds from the start of the program to its end."""
        return (self.end - self.start) / accounts.SECOND

    @cached_property
    def processes(self) -> list[str]:
        """A name for each process, the same in two runs of the same program."""
        name = os.path.basename(self.result.argv[0]) if self.result.argv else "program"
        return [name, *(f"child of {name} ({number})" for number in range(1, len(self.recordings)))]

    @property
    def usage(self) -> list[Usage]:
        """What each thread used of each thing; the seconds of the rows of a thread sum to its life."""
        return self._accounted[0]

    @property
    def threads(self) -> list[ThreadTime]:
        """The lives of all threads."""
        return self._accounted[1]

    @property
    def lanes(self) -> list[Lane]:
        """The threads, from their beginnings to their ends in ns since the start of the run."""
        return [
            Lane(one.process, one.name, one.created - self.start, one.destroyed - self.start)
            for one in self.threads
        ]

    @property
    def objects(self) -> list[Life]:
        """All files and sockets, in the order in which each process opened them."""
        return [
            Life(
                process, item.kind, accounts.label_of(recording, item.number), item.opened - self.start,
                item.closed - self.start if item.closed >= 0 else None,
            )
            for process, recording in enumerate(self.recordings)
            for item in recording.objects
        ]  # fmt: skip

    @property
    def stops(self) -> list[tuple[int, int]]:
        """When the program was stopped, ns since the start of the run."""
        stops = self._accounted[2]
        return [
            (start - self.start, end - self.start)
            for start, end in zip(stops.starts.tolist(), stops.ends.tolist(), strict=True)
        ]

    @property
    def by_rule(self) -> dict[str, float]:
        """Seconds that count as stopped by each rule, of all threads together."""
        return {rule: sum(one.by_rule[rule] for one in self.threads) for rule in RULES}

    @cached_property
    def unattributed(self) -> UnattributedBytes:
        """Bytes of files that no recorded call accounts for: modules that are imported, C libraries,
        `os.write`.
        """
        ended = self.result.io if min(self.result.io) >= 0 else self.recordings[0].io_end
        began = self.recordings[0].io
        found = [-1, -1]
        for place, resource in enumerate(("fileread", "filewrite")):
            if min(ended[place], began[place]) >= 0:
                recorded = sum(row.physical for row in self.usage if row.resource == resource)
                found[place] = max(0, ended[place] - began[place] - recorded)
        return UnattributedBytes(*found)

    @property
    def notes(self) -> list[str]:
        """What is missing, in sentences."""
        found = [note for one in self.recordings for note in one.notes]
        if self.result.lost_stops:
            found.append(
                f"{counted(self.result.lost_stops, 'stop')} could not be timed, as it was over at once, or "
                "could not be written down for want of room on the disk"
            )
        if self.result.status < 0:
            found.append(
                "the supervisor was killed, so that the end of the program and its last stop are not known"
            )
        return found

    def spans(self) -> Iterator[CallSpan]:
        """All calls in the order of their starts, merged as they are read."""
        first = 0
        streams = []
        for process, recording in enumerate(self.recordings):
            for thread in range(len(recording.threads)):
                streams.append(self._of_thread(process, recording, thread, first + thread))
            first += len(recording.threads)
        return heapq.merge(*streams, key=attrgetter("start"))

    def _of_thread(self, process: int, recording: Recording, thread: int, lane: int) -> Iterator[CallSpan]:
        died = self.threads[lane].destroyed
        for call in recording.of_thread(thread):
            start, end = call.start - self.start, (call.end if call.end >= 0 else died) - self.start
            label = accounts.label_of(recording, call.object)
            yield CallSpan(
                process, lane, recording.apis[call.api], label, start, max(start, end), call.amount
            )

    @cached_property
    def _accounted(self) -> tuple[list[Usage], list[ThreadTime], Stops]:
        # The supervisor is the parent of the program, not of the processes that this starts.
        rows, threads, stops = accounts.of_process(
            0, self.recordings[0], self.end, self._stops, self.rule, self.result.throttled
        )
        for number, recording in enumerate(self.recordings[1:], 1):
            used, lives, _ = accounts.of_process(number, recording, recording.ended, no_stops(), self.rule)
            rows += used
            threads += lives
        return rows, threads, stops


def read(folder: Path, rule: str = "", progress: Callable[[int], None] = lambda _: None) -> OpenRecording:
    """The run that was recorded to this folder.

    :param rule: the rule for stops, in place of the one that the run was started with.
    :param progress: is told of the bytes of recordings that were read, here and later: once for each time
        that their calls are gone through.
    :raises ProfileError: where something in it is damaged or missing.
    :raises JobFailed: where nothing was recorded, since the program never started.
    """
    result = results.read(folder)
    paths = sorted(path for path in folder.iterdir() if path.name.startswith(PREFIX))
    found = [record.read(path, progress) for path in paths]
    found.sort(key=lambda one: (one.pid != result.pid, one.started))
    if not found or found[0].pid != result.pid:
        raise JobFailed(
            f"nothing was recorded of {' '.join(result.argv[:3])!r}: the interpreter ended before it started",
            "check that it is Python 3.9 or newer",
        )
    with StopLog(folder / results.STOPS) as log:
        stops = Stops(*log.columns()) if len(log) else no_stops()
    return OpenRecording(result, found, stops, rule or result.stop_rule)
