"""What all ways to count have in common: a run, and the end."""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path

import numpy
from numpy.typing import NDArray

from perun.fuzz.coverage.api import Coverage, Execution, Target
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.ways import Way


class Counting(Coverage):
    """A coverage whose :meth:`start` sets the input and the way to run the program; where it was closed, the
    next run starts it again.

    :param scratch: an empty folder.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self.note = ""
        self._target = target
        self._scratch = scratch
        self._given: Input | None = None
        self._way: Way | None = None

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Execution:
        """Run the program on `data`."""
        if self._way is None or self._given is None:
            self.start()
        assert self._way is not None and self._given is not None
        self._given.write(data)
        try:
            ended = self._way.run(data, timeout, until)
        except BaseException:
            self.close()
            raise
        counts = self._counts()
        total = int(numpy.add.reduce(counts))  # as sum(), which takes twice as long for a few counts
        return Execution(ended.outcome, ended.code, total, counts, ended.seconds)

    def close(self) -> None:
        """End the program."""
        if self._way is not None:
            self._way.close()
            self._way = None
        if self._given is not None:
            self._given.close()
            self._given = None

    @abstractmethod
    def _counts(self) -> NDArray[numpy.int64]:
        """A copy of the counts of the last run."""
