"""The engine `perf`: a counter of the processor counts the instructions, and samples say where they were.

The count is that of `perf stat`, of a run of its own, so that no sampling disturbs it; it is divided among
the call stacks by the samples of a second run.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from pathlib import Path
from shutil import rmtree, which
from typing import ClassVar, Final, NamedTuple

from perun.collect.instructions.engines import (
    CountingOptions,
    InstructionCounts,
    InstructionRecording,
    fixed_addresses,
)
from perun.collect.instructions.names import ENVIRONMENT, INTERPRETER, Names
from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.core.process.command import find_executable
from perun.core.process.execution import Execution, RunSample
from perun.native.costs import (
    MAX_DEPTH,
    ROOT,
    CostTree,
    FunctionFrame,
    InstructionCosts,
    RecordedFunction,
    rounded,
)
from perun.plugin.api import CollectContext, Run

# Reads what perf prints: the counts of `perf stat -x,`, and the samples of `perf script`.

SCRIPT_FIELDS: Final = "pid,event,period,ip,sym,dso"
"""What is asked for of each sample, in this order, by `perf script -F`."""
_SAMPLE: Final = re.compile(r"\s*(?:.*\s)?(\d+)(?:/\d+)?\s+(\d+)\s+[\w:/.\-=,]+:\s*$")
_FRAME: Final = re.compile(r"\s+([0-9a-f]{1,16}) (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)\s*$")
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+$")
_LARGEST: Final = 1 << 64


class StackSample(NamedTuple):
    """One sample: its process, how much it stands for, and its call stack, the innermost function first."""

    pid: int
    period: int
    stack: tuple[RecordedFunction, ...]


def count(text: str, event: str) -> tuple[int | None, str]:
    """What `perf stat -x,` counted of an event; None, and why, where it did not.

    A line is: value, unit, event, and more that is of no interest. The value is a number, or a text such as
    `<not supported>`.
    """
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if event not in fields[1:4]:
            continue
        value = fields[0]
        if re.fullmatch(r"\d{1,20}(\.\d*)?", value):
            return min(ceil(float(value)) if "." in value else int(value), _LARGEST), ""
        return None, value.strip("<>") or "no value"
    return None, "perf printed no count"


def samples(lines: Iterable[str]) -> Iterator[StackSample]:
    """The samples of `perf script`: a line for each, a line for each frame below it, and an empty one.

    Lines that are neither are passed over: newer releases print more than older ones.
    """
    pid = period = -1
    stack: list[RecordedFunction] = []
    for line in lines:
        found = _SAMPLE.match(line)
        frame = None if found else _FRAME.match(line)
        if frame is not None and pid >= 0:
            name = _OFFSET.sub("", frame[2])
            binary = "" if frame[3] in ("[unknown]", "inlined") else frame[3]
            stack.append(RecordedFunction(name, "", binary))
        elif found is not None or not line.strip():
            if pid >= 0:
                yield StackSample(pid, period, _with_binaries(stack))
            pid, period, stack = -1, -1, []
        if found is not None:
            pid, period = int(found[1]), min(int(found[2]), _LARGEST)
    if pid >= 0:
        yield StackSample(pid, period, _with_binaries(stack))


def _with_binaries(stack: list[RecordedFunction]) -> tuple[RecordedFunction, ...]:
    """The stack, in which an inlined function has the binary of the one that it is inlined in."""
    filled: list[RecordedFunction] = []
    binary = ""
    for function in reversed(stack):
        binary = function.object or binary
        filled.append(function if function.object else function._replace(object=binary))
    return tuple(reversed(filled))


EVENT: Final = "instructions:u"
INSTALL: Final = "install it with: apt-get install linux-perf"
SAMPLES: Final = 20_000
"""About so many samples are taken of a run."""
_SHORTEST: Final = 10_007
"""Instructions from one sample to the next, at least; a prime number, so that no loop keeps step with it."""
_ALLOW: Final = "allow counters: sysctl kernel.perf_event_paranoid=2; many virtual machines have none"
_ALL: Final = FunctionFrame("(not sampled)")


class PerfEngine:
    """Counts by the processor: hardly slower than the program runs, but machines in the cloud mostly cannot.

    :param event: the event of perf that is counted.
    """

    name: ClassVar[str] = "perf"
    exact: ClassVar[bool] = False

    def __init__(self, environ: Mapping[str, str], event: str = EVENT) -> None:
        self._environ = environ
        self._event = event
        self._path = which("perf", path=environ.get("PATH", os.defpath)) or ""

    def unavailable(self) -> tuple[str, str]:
        """Why it cannot run here, and what to do about it; empty texts where it can."""
        if not self._path:
            return "perf is not installed", INSTALL
        done = self._ask("stat", "-x,", "-e", self._event, "--", "true")
        value, why = count(done, self._event)
        # Counters that some virtual machines pretend to have never count.
        return ("", "") if value else (f"it cannot count {self._event}: {why or 'it counts none'}", _ALLOW)

    def version(self) -> str:
        """The version of perf, e.g. `perf version 6.1.0`."""
        return self._ask("--version").strip()

    def record(self, run: Run, options: CountingOptions, ctx: CollectContext) -> InstructionRecording:
        """Run the command and count it, then run it again and sample it.

        :raises JobFailed: where it cannot be started.
        """
        self._python = options.python
        self._run = run = run._replace(environ={**run.environ, **(ENVIRONMENT if options.python else {})})
        self._folder = ctx.scratch / "perf"
        rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        argv = run.command().argv
        find_executable(argv[0], run.cwd, run.environ)
        self._fixed = fixed_addresses(run.environ)
        inherit = [] if options.children else ["--no-inherit"]
        counts = self._folder / "counts"
        stat = [self._path, "stat", "-x,", "-e", self._event, "-o", str(counts), *inherit, "--", *argv]
        counted = self._execute(stat, options, ctx)
        text = counts.read_text("utf-8", "replace") if counts.is_file() else ""
        self._count, self._why = count(text, self._event)
        if counted.sample.early or counted.sample.status or not self._count:
            return counted
        period = max(_SHORTEST, self._count // SAMPLES | 1)
        record = [self._path, "record", "-q", "-e", self._event, "-c", str(period), "--call-graph", "dwarf"]
        return self._execute([*record, *inherit, "-o", str(self._data), "--", *argv], options, ctx)

    def counted(self) -> InstructionCounts:
        """What was recorded last.

        :raises JobFailed: where that is nothing.
        """
        if not self._count:
            raise JobFailed(
                f"no instructions were counted of {str(self._run)!r}: {self._why}", "try --engine callgrind"
            )
        names, tree = Names(self._run.cwd, self._environ, python=self._python), CostTree()
        periods: dict[int, int] = {}
        processes: set[int] = set()
        for sample in self._samples():
            names.learn(sample.stack)
            node = tree.below(ROOT, INTERPRETER) if self._python else ROOT
            for function in reversed(sample.stack[:MAX_DEPTH]):
                frame = names.frame(function)
                node = node if frame is None else tree.below(node, frame)
            processes.add(sample.pid)
            if node != ROOT:
                periods[node] = periods.get(node, 0) + sample.period
        whole = sum(periods.values())
        notes = ["the counts of functions come from samples: only their sum is counted"]
        if not whole:
            periods, whole = {tree.below(ROOT, _ALL): 1}, 1
            notes = ["no sample was taken, so only the count of the whole program is known"]
        parts = {node: self._count * one / whole for node, one in periods.items()}
        for node, amount in rounded(parts).items():
            tree.amounts[node] += amount
        tree.amounts[max(periods, key=periods.__getitem__)] += self._count - tree.total
        return InstructionCounts(
            InstructionCosts(tree, tree.inclusive(), {}), max(1, len(processes)), (), notes
        )

    @property
    def _data(self) -> Path:
        return self._folder / "samples"

    def _execute(
        self, words: list[str], options: CountingOptions, ctx: CollectContext
    ) -> InstructionRecording:
        engine = [*self._fixed, *words]
        with Execution(self._run, ctx.scratch, options.timeout, engine=engine) as execution:
            sample: RunSample = execution.record()
            return InstructionRecording(sample, [line for line in execution.last_errors() if line])

    def _samples(self) -> Iterator[StackSample]:
        if not self._data.is_file():
            return
        # perf asks addr2line for each inlined function, which takes minutes.
        words = [self._path, "script", "-i", str(self._data), "--no-inline", "-F", SCRIPT_FIELDS]
        with programs.Program(
            words,
            environ={**self._environ, "LC_ALL": "C"},
            stdout=programs.PIPE,
            stderr=programs.DEVNULL,
        ) as process:
            assert process.stdout
            with io.TextIOWrapper(process.stdout, "utf-8", "replace") as lines:
                yield from samples(lines)

    def _ask(self, *words: str) -> str:
        """What perf prints."""
        try:
            done = programs.run(
                [self._path, *words], environ={**self._environ, "LC_ALL": "C"}, stderr=programs.STDOUT
            )
        except OSError:
            return ""
        return done.stdout.decode("utf-8", "replace")
