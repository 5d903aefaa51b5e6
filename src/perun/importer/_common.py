"""What importers share: programs that read files for them, and the values of benchmarks."""

from __future__ import annotations

import math
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from perun.core.process import programs
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.suites import PRINTED, BenchmarkValue, NamedBenchmark, profiles_of
from perun.profile.amounts import SIZES, TIMES
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks

_MOST: Final = 1e300
_SECONDS: Final = 5
"""Of CPU time that a program has to read a file, and again for each mebibyte of it."""
_MEMORY: Final = 1 << 30
"""Bytes of address space that it has besides some times the size of the file."""
_TIMES: Final = 8
Unit = tuple[str, str, str, float]
"""Type, subtype and unit of resources, and the factor to that unit."""


class FileReader(programs.Program):
    """A program that reads a file for an importer, in time and memory that the size of the file bounds: such
    programs loop, or ask for all memory, where a file is damaged.

    :param file: a file or folder, not what comes through a pipe. :param streams: as of its base.
    :raises OSError: if it cannot be started.
    """

    def __init__(self, words: Sequence[str], file: ImportFile, ctx: ImportContext, **streams: Any) -> None:
        assert file.path is not None
        paths = file.path.iterdir() if file.path.is_dir() else (file.path,)
        self._size = sum(path.stat().st_size for path in paths)
        self._file = file
        super().__init__(words, environ={**ctx.environ, "LC_ALL": "C.UTF-8"}, **streams)
        self._memory = _MEMORY + _TIMES * self._size
        limits = dict.fromkeys((resource.RLIMIT_AS, resource.RLIMIT_FSIZE), self._memory)
        limits[resource.RLIMIT_CPU] = self.seconds
        with suppress(ProcessLookupError):  # it has ended already
            for what, most in limits.items():
                hard = resource.prlimit(self.pid, what)[1]
                most = most if hard < 0 else min(most, hard)  # who is not root cannot raise it
                resource.prlimit(self.pid, what, (most, most))

    @property
    def seconds(self) -> int:
        """Of CPU time that it has."""
        return _SECONDS * (1 + (self._size >> 20))

    def finish(self, name: str, errors: bytes = b"") -> None:
        """Wait for its end.

        :param name: of the program, as users know it. :param errors: what it said.
        :raises ProfileError: where it could not read the file.
        """
        if not self.wait():
            return
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise self._file.wrong(
            f"{name} cannot read it: {''.join(last) or f'status {self.returncode}'}",
            f"is it whole? {name} has {self.seconds} s of CPU time and {self._memory >> 20} MiB of memory "
            "for it",
        )


def number(value: Any) -> float:
    """A finite number.

    :raises ValueError: where it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r:.60} is no number")
    found = float(value)
    if not math.isfinite(found) or abs(found) > _MOST:
        raise ValueError(f"{value!r:.60} is no number that can be compared")
    return found


def numbers(values: Any) -> tuple[float, ...]:
    """Finite numbers; of an empty list none.

    :raises ValueError: where one is none.
    """
    if not isinstance(values, list):
        raise ValueError(f"{values!r:.60} is no list")
    return tuple(map(number, values))


def unit_of(text: str, name: str = "") -> Unit:
    """What a unit of a benchmark is to resources: a time in seconds, bytes of memory, or what is printed.

    :param name: of the metric; the subtype of what is no time.
    """
    text = text.removesuffix("/op").removesuffix("/iter")
    if text in TIMES:
        return "time", "", "s", TIMES[text]
    if text in SIZES:
        return "memory", name or "bytes", "B", SIZES[text]
    return PRINTED, name or text, text, 1.0


def benchmark(
    collector: str,
    command: str,
    name: str,
    values: Sequence[BenchmarkValue],
    *,
    parameters: str = "",
    version: str = "",
    moment: float | None = None,
    means: bool = False,
) -> Iterator[Imported]:
    """The profiles of one benchmark: see :func:`perun.plugin.suites.profiles_of`, :class:`Imported`.

    Values without samples are left out.
    """
    known = [one for one in values if one.samples]
    for profile in profiles_of(collector, command, NamedBenchmark(name, parameters), known):
        yield Imported(profile, version, moment, means)


def time(*samples: float, subtype: str = "") -> BenchmarkValue:
    """Seconds of a benchmark."""
    return BenchmarkValue("time", subtype, "s", samples)


def note_cut(stacks: SampledStacks, file: ImportFile, ctx: ImportContext) -> None:
    """Tell the user that stacks are not whole."""
    if stacks.cut:
        ctx.note(f"{stacks.cut} frames of {file.name} are left out: its stacks are too deep, or too many")


def of_machine(found: Imported, model: Any, total: Any, architecture: Any) -> Imported:
    """The result with the machine that the file tells; of too little nothing is said, as it would be another
    one than any."""
    if isinstance(model, str) and isinstance(total, int) and isinstance(architecture, str) and model:
        cpu = {"model": model, "total": total}
        found.profile["machine"] = {"cpu": cpu, "architecture": architecture}
    return found


def as_parameters(given: Any) -> str:
    """Parameters as one text: `n=10, kind=a`; those of a list by their values."""
    if isinstance(given, Mapping):
        return ", ".join(f"{key}={value}" for key, value in sorted(given.items()))
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given or "")


def moment_of(text: Any) -> float | None:
    """The seconds since 1970 of a date as ISO 8601 has it; None where it is none."""
    try:
        return datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def located(text: str) -> Frame:
    """A frame as tools write it: `name (source:line)`, `name (source)`, or a name."""
    name, bracket, place = text.rpartition(" (")
    if not bracket or not place.endswith(")"):
        return Frame(text.strip() or "?")
    source, *numbers = place[:-1].rsplit(":", 2)
    while numbers and not (numbers[-1].isdigit() and len(numbers[-1]) < 10):
        numbers.pop()
    return Frame(name, source, int(numbers[0]) if numbers else 0) if numbers else Frame(name, place[:-1])
