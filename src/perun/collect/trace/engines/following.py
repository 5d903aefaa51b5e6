"""Plans what to trace in programs that the command executes, while it runs (`--follow-children`).

The loader of the engine `ebpf` stops a process that executes a program which is not traced, and asks for its
probes by a pipe; `native/follow.c` is the other side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Final, Self

from perun.atomic import write_all
from perun.collect.trace.plan import Plan, Probe
from perun.errors import PerunError
from perun.process import threads

ASK: Final = "ask"
ANSWER: Final = "answer"
_READ: Final = 1 << 16


class Following:
    """Answers the loader from entering to leaving the context.

    :ivar probes: of all programs that were followed, in the order of their numbers.
    :ivar refused: paths of programs in which nothing is traced, and why.
    """

    def __init__(
        self,
        folder: Path,
        plan_of: Callable[[str], Plan],
        text_of: Callable[[Sequence[Probe], int], str],
        count: int,
    ) -> None:
        """:param folder: for the pipes and plans. :param plan_of: the plan of the program at a path, or a
        :class:`PerunError`. :param text_of: probes for the loader, with the number of the first one.
        :param count: of the probes that are planned already.
        """
        self.probes: list[Probe] = []
        self.refused: dict[str, str] = {}
        self._folder = folder
        self._plan_of = plan_of
        self._text_of = text_of
        self._count = count
        self._plans = 0
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._serve, name="following", daemon=True)

    def __enter__(self) -> Self:
        for name in (ASK, ANSWER):
            os.mkfifo(self._folder / name, 0o600)
        # Opened for both directions, which waits for nobody.
        self._ask, self._answer = (os.open(self._folder / name, os.O_RDWR) for name in (ASK, ANSWER))
        threads.start(self._thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.write(self._ask, b"\n")
        self._thread.join()
        for file, name in ((self._ask, ASK), (self._answer, ANSWER)):
            os.close(file)
            (self._folder / name).unlink()
        if self._failure is not None and problem is None:
            raise self._failure

    def _serve(self) -> None:
        pending = b""
        while True:
            *lines, pending = (pending + os.read(self._ask, _READ)).split(b"\n")
            for line in lines:
                if not line:
                    return
                write_all(self._answer, self._plan(os.fsdecode(line)) + b"\n")

    def _plan(self, path: str) -> bytes:
        """The path of the plan for a program; empty if nothing of it is traced. The program waits for it."""
        try:
            plan = self._plan_of(path)
            text = self._text_of(plan.probes, self._count + len(self.probes))
            file = self._folder / f"plan.{self._plans}"
            file.write_text(text, "utf-8", "surrogateescape")
        except PerunError as problem:
            self.refused[path] = problem.message
            return b""
        except BaseException as failure:  # raised where the run ends: until then the program must not wait
            self._failure = failure
            return b""
        self._plans += 1
        self.probes += plan.probes
        return os.fsencode(file)
