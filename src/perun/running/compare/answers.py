"""Whether two versions of a program answer the same: what is faster and answers differently is no gain."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.process.command import failed
from perun.core.process.execution import Execution, Output
from perun.plugin.api import Run
from perun.running.compare.instruments import FIRST_WORDS

_SHOWN: Final = 60


class OtherLine(NamedTuple):
    """The first line of two outputs that differs: its number, from 1, and what it is in either."""

    number: int
    before: str
    after: str

    def __str__(self) -> str:
        if self.before == self.after:
            return f"line {self.number} ends in another way"
        return f"line {self.number} is {self.after!r} in place of {self.before!r}"


def output_in(run: Run, folder: Path, scratch: Path, seconds: float) -> Path:
    """The file with the standard output of the command in a folder.

    :param scratch: an empty folder that keeps it. :param seconds: after which the run is stopped.
    :raises JobFailed: where the command fails, or takes longer.
    """
    run = run._replace(cwd=folder)
    scratch.mkdir()
    with Execution(run, scratch, seconds, output=Output.KEEP) as execution:
        sample = execution.run()
        if sample.status:
            raise failed(run, sample.status, execution.last_errors(), FIRST_WORDS)
        return execution.output("stdout")


def first_difference(before: Path, after: Path) -> OtherLine | None:
    """Where two outputs differ first; None where they are the same to the last byte."""
    with before.open("rb") as old, after.open("rb") as new:
        for number, (one, other) in enumerate(zip_longest(old, new, fillvalue=b""), 1):
            if one != other:
                return OtherLine(number, _shown(one), _shown(other))
    return None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").rstrip("\n")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
