"""Islands inside of one process: code that is evaluated in a context of one's own, with its calls recorded.

    from perun.island.island import Island

    island = Island("total = sum(len(line) for line in open(path))", "count")
    context = island.evaluate({"path": "/etc/hosts"})
    print(context["total"], island.consumption)

The first evaluation begins to record the whole process, once; whatever runs outside of islands is the island
`program`. A thread that is started in an island belongs to it, also after the evaluation. To record a whole
program from outside, see `python -m perun.island`.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from types import CodeType
from typing import Any, Final

from perun.island import hooks, record, statistics
from perun.island.accounting import no_stops
from perun.island.limits import Limits
from perun.island.record import Call, Recording
from perun.island.recorder import Recorder, open_recorder
from perun.island.statistics import Consumption, Usage


class ProcessRecorder:
    """The recording of this process, from now until it ends.

    :param limits: hold for the whole process.
    :param native: record by the library in C; None: where it is there.
    """

    def __init__(self, limits: Limits | None = None, native: bool | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="perun-island-"))
        self.recorder: Recorder = open_recorder(str(self._folder), native=native)
        hooks.install(self.recorder, limits or None)
        atexit.register(self._end)

    def recording(self) -> Recording:
        """What was recorded so far."""
        return record.read(Path(self.recorder.path))

    def _end(self) -> None:
        self.recorder.close()
        shutil.rmtree(self._folder, ignore_errors=True)


_lock: Final = Lock()
_here: ProcessRecorder | None = None


def record_here(limits: Limits | None = None, native: bool | None = None) -> ProcessRecorder:
    """The recording of this process, which begins now unless it did before.

    :param limits, native: see :class:`ProcessRecorder`; of a recording that has begun they stay what they
        were.
    """
    global _here
    with _lock:
        if _here is None:
            _here = ProcessRecorder(limits, native)
        return _here


class Island:
    """Code that can be evaluated in any context, and what its evaluations used.

    :param code: source, or a code object of it. :param name: names it in totals and timelines; several may
        have one name.
    :raises SyntaxError: where the source is wrong.
    """

    def __init__(self, code: str | CodeType, name: str) -> None:
        self.name = name
        self._code = (
            compile(code, f"<island {name}>", "exec", dont_inherit=True) if isinstance(code, str) else code
        )
        self._number = 0

    def evaluate(self, context: dict[str, Any]) -> dict[str, Any]:
        """Run the code with `context` as its globals, which is also the answer; calls are recorded until it
        returns.

        What it raises passes through.
        """
        here = record_here()
        with _lock:
            self._number = self._number or here.recorder.island(self.name)
        before = here.recorder.enter(self._number)
        try:
            exec(self._code, context)
        finally:
            here.recorder.enter(before)
        return context

    @property
    def usage(self) -> list[Usage]:
        """What all evaluations so far used, and the threads that they started."""
        if not self._number:
            return []
        recording = record_here().recording()
        rows, _, _ = statistics.of_process(0, recording, time.monotonic_ns(), no_stops(), "exact")
        name = statistics.unique_names(recording.islands)[self._number]
        return [row for row in rows if row.island == name]

    @property
    def consumption(self) -> list[Consumption]:
        """Where the time of all evaluations so far went: of each thread, and of all together."""
        return statistics.consumption(self.usage)

    def calls(self) -> Iterator[Call]:
        """The calls of all evaluations so far in the order of their starts."""
        if self._number:
            yield from (call for call in record_here().recording().calls() if call.island == self._number)
