"""The engine `callgrind`: Valgrind runs the program on a processor of its own and counts each instruction."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shutil import rmtree, which
from signal import SIGKILL
from typing import ClassVar, Final, NamedTuple

from perun.collect._common.recordings import RecordedFile
from perun.collect._common.runs import has_other_privileges, instead, refuse_sanitizer
from perun.collect.instructions.engines import (
    CountingOptions,
    InstructionCounts,
    InstructionRecording,
    fixed_addresses,
)
from perun.collect.instructions.names import (
    ENVIRONMENT,
    INTERPRETER,
    NO_SYMBOLS,
    Names,
    PythonFunctions,
    is_named,
    skipped,
)
from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.core.process.command import find_executable
from perun.core.process.execution import Execution
from perun.native import callgrind
from perun.native.callgrind import InclusiveCosts
from perun.native.costs import (
    ROOT,
    CostGraph,
    CostTree,
    FunctionFrame,
    InstructionCosts,
    LineCosts,
    grow,
)
from perun.plugin.api import CollectContext, Run
from perun.profile import incomplete


def read(path: Path) -> CostGraph:
    """The call graph of a recording: see :func:`perun.native.callgrind.read`.

    :raises DamagedRecording: where it cannot be read.
    """
    file = RecordedFile(path, "call costs")
    with file.open() as opened:
        return callgrind.read(opened, file.damaged)


INSTALL: Final = "install it with: apt-get install valgrind"
GRACE: Final = 10.0
"""Seconds to write the counts down in, where the run is stopped."""
_COMMAND: Final = re.compile(rb"^==\d+== Command: (.*)$", re.MULTILINE)
_LONGEST_COMMAND: Final = 200
_PROCESS: Final = "process "
_SWITCHES: Final = ("swapcontext", "setcontext")
_SHARES_STACK: Final = ("vfork", "__vfork")
_NO_FILE: Final = "???"
"""In place of the file of code that Valgrind knows none of."""
_SEEN: Final = 100
"""Code of no file is told of from this part of all instructions on."""
_OF_GO: Final = "runtime.morestack"
_PARENT: Final = re.compile(rb"^==\d+== Parent PID: (\d+)$", re.MULTILINE)
_ADVERTISED: Final = "callgrind_control"
_HEAD: Final = 1 << 16
_MAX_LINES: Final = 3
_STUBS: Final = 3
_OPTIONS: Final = (
    "--tool=callgrind",
    # What files and variables of the user say is left aside: it would be another measurement.
    "--command-line-only=yes",
    "--vgdb=no",
    "--trace-children=yes",
    # A call chain is one node, however often a function is in it.
    "--separate-recs=1",
    "--compress-strings=yes",
    "--compress-pos=yes",
    "--demangle=no",
    # A forked process begins with the counts of its parent: they are written down and set to zero before.
    *(f"--dump-before={function}" for function in ("fork", "_Fork", "vfork", "__vfork", "__spawnix")),
    "--combine-dumps=yes",
)


class _Cause(NamedTuple):
    """Why Valgrind could not count: what its log says then, the reason, and what to do about it."""

    said: re.Pattern[bytes]
    reason: str
    hint: str


_CAUSES: Final = (
    _Cause(
        re.compile(rb"debuginfo reader: ensure_valid failed"),
        "Valgrind cannot read its debug information, as releases before 3.20 cannot where that is split",
        "compile it without -gsplit-dwarf, or install Valgrind 3.20 or newer",
    ),
    _Cause(
        re.compile(rb"can not open cache simulation output file|can not create file"),
        "it has changed its user, its root folder or its limits, so that Valgrind could not write the counts",
        "run Perun as the user that it becomes, or let it keep its own while it is counted",
    ),
    _Cause(
        re.compile(rb"unhandled instruction bytes"),
        "Valgrind does not know one of its instructions, and raised SIGILL there",
        "compile it without -march=native, or install a newer Valgrind",
    ),
)


def _cause(text: bytes) -> _Cause | None:
    return next((cause for cause in _CAUSES if cause.said.search(text)), None)


class CallgrindEngine:
    """Counts exactly, 20 to 60 times slower than the program runs; needs no counters of the machine."""

    name: ClassVar[str] = "callgrind"
    exact: ClassVar[bool] = True

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._path = which("valgrind", path=environ.get("PATH", os.defpath)) or ""

    def unavailable(self) -> tuple[str, str]:
        """Why it cannot run here, and what to do about it; empty texts where it can."""
        if not self._path:
            return "valgrind is not installed", INSTALL
        if not self.version():
            return f"{self._path} does not run", f"try it: {self._path} --version"
        return "", ""

    def version(self) -> str:
        """The version of Valgrind, e.g. `valgrind-3.19.0`; empty where it does not run."""
        try:
            done = programs.run([self._path, "--version"], environ=self._environ)
        except OSError:
            return ""
        return done.stdout.decode("utf-8", "replace").strip() if done.code == 0 else ""

    def record(self, run: Run, options: CountingOptions, ctx: CollectContext) -> InstructionRecording:
        """Run the command and record it.

        :raises JobFailed: where it cannot be started, or Valgrind cannot run it.
        """
        self._run = run
        self._options = options
        self._folder = ctx.scratch / "callgrind"
        rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        argv = run.command().argv
        self._program = find_executable(argv[0], run.cwd, run.environ)
        refuse_sanitizer(self._program, "count its instructions")
        self._fixed = fixed_addresses(run.environ)
        if options.python:
            run = run._replace(environ={**run.environ, **ENVIRONMENT})
        prefix = str(self._folder.absolute()).replace("%", "%%")
        words = [
            *self._fixed,
            self._path,
            *_OPTIONS,
            *self._chains(),
            *(["--instr-atstart=no"] if options.marked else []),
            f"--callgrind-out-file={prefix}/out.%p",
            f"--log-file={prefix}/log.%p",
            "--",
            *argv,
        ]
        stdin = run.workload if run.workload.strip().startswith("<") else ""
        counted = run._replace(cmd=shlex.join(words), args="", workload=stdin)
        with Execution(counted, ctx.scratch, options.timeout, single_run=True, grace=GRACE) as execution:
            sample = execution.record()
            self._errors = [line for line in execution.last_errors() if line]
        self._sample = sample
        self._killed = os.WIFSIGNALED(sample.status) and os.WTERMSIG(sample.status) == SIGKILL
        if sample.status and not sample.early:
            logs = self._logs()
            first = self._first(logs)
            if not _has_content(self._folder / f"out.{first}"):
                raise self._nothing(logs.get(first))  # that is not how the command itself ends
        return InstructionRecording(sample, self._errors)

    def counted(self) -> InstructionCounts:
        """What was recorded last.

        :raises JobFailed: where that is nothing.
        """
        python = self._options.python
        logs = self._logs()
        first = self._first(logs)
        wanted = sorted(logs, key=lambda pid: (pid != first, pid)) if self._options.children else [first]
        recorded = {pid: self._folder / f"out.{pid}" for pid in wanted}
        recorded = {pid: path for pid, path in recorded.items() if _has_content(path)}
        if first not in recorded:
            raise self._nothing(logs.get(first))
        names = Names(self._run.cwd, self._environ, python=python)
        inclusive, tree, lines = InclusiveCosts(), CostTree(), LineCosts()
        of_first = PythonFunctions(first) if python else None
        several = len(recorded) > 1
        lost = 0
        notes = [*self._became_another(logs[first])]
        for pid, path in recorded.items():
            graph = read(path)
            notes += _shortcomings(graph)
            base = tree.below(ROOT, _process(graph)) if several else ROOT
            if of_first is not None:
                known = of_first if pid == first else PythonFunctions(pid, of_first)
                graph.functions = [known.named(function) for function in graph.functions]
                base = tree.below(base, INTERPRETER)
            names.learn(graph.functions)
            frames = [names.frame(function) for function in graph.functions]
            grow(tree, graph, frames.__getitem__, base)
            inclusive.add(graph, frames.__getitem__)
            if not python:
                lines.add(graph, frames, names.path)
            lost += graph.lost if graph.expected is not None else 1
            path.unlink()
        lacks = [incomplete.lost(lost, "instructions")] if lost else []
        if len(recorded) < len(wanted):
            lacks.append(incomplete.lost(len(wanted) - len(recorded), "processes"))
            notes += self._lost(logs, [pid for pid in wanted if pid not in recorded])
        if cause := _cause(_text(logs[first])):
            notes.append(f"{self._run}: {cause.reason}; {cause.hint}")
        costs = InstructionCosts(tree, inclusive.sums(tree.inclusive(), tree.exclusive()), inclusive.calls)
        return InstructionCounts(
            costs, len(recorded), lacks, list(dict.fromkeys(self._notes(names) + notes)), lines
        )

    def _chains(self) -> Iterator[str]:
        """The options that say which call chains are told apart."""
        callers = self._options.callers
        if self._options.python:
            # Functions of C are in no chain, but for the stubs that they are called through.
            yield from (f"--fn-skip={pattern}" for pattern in skipped())
            callers *= _STUBS
        yield f"--separate-callers={callers}"

    def _logs(self) -> dict[int, Path]:
        """The logs of Valgrind, by process."""
        return {int(path.suffix[1:]): path for path in self._folder.glob("log.*")}

    def _became_another(self, log: Path) -> Iterator[str]:
        """A note where the process of the command has become another program, whose log this is then."""
        said = _command(log)
        if said and _bare(said) != _bare(" ".join(self._run.command().argv)):
            yield (
                f"the command executed another program, {said[:_LONGEST_COMMAND]!r}: what its process did "
                "before is not counted"
            )

    def _first(self, logs: Mapping[int, Path]) -> int:
        """The process of the command itself: the one that was started from here."""
        for pid, path in sorted(logs.items()):
            parent = _PARENT.search(_text(path))
            if parent and int(parent[1]) == os.getpid():
                return pid
        return min(logs, default=0)

    def _notes(self, names: Names) -> list[str]:
        notes = []
        if not self._fixed:
            notes.append(
                "addresses are random here, as setarch -R does not work: counts of the same program may "
                "differ a little"
            )
        if names.mangled:
            notes.append(
                "functions of C++ are named by their symbols, as c++filt was not found; install it with: "
                "apt-get install binutils"
            )
        return notes

    def _nothing(self, log: Path | None) -> JobFailed:
        """The error where the process of the command left no counts."""
        text = _text(log) if log is not None else b""
        said = [re.sub(r"^==\d+== ?", "", line) for line in text.decode("utf-8", "replace").splitlines()[5:]]
        lines = [line for line in said if line.strip() and _ADVERTISED not in line]
        lines = lines[:_MAX_LINES] or self._errors[-_MAX_LINES:]
        reason = "".join(f"\n  {line}" for line in lines)
        cause = _cause(text + "\n".join(self._errors).encode("utf-8", "replace"))
        what = f"no instructions were counted of {str(self._run)!r}"
        if cause is not None:
            return JobFailed(f"{what}: {cause.reason}{reason}", cause.hint)
        if has_other_privileges(self._program):
            reason = "it runs with other privileges than yours (setuid, capabilities), which Valgrind cannot"
            hint = "count a copy without these privileges, or run Perun as the user of the program"
            return JobFailed(f"{what}: {reason}", hint)
        if self._sample.confined:
            reason = (
                "it forbids itself system calls (seccomp), also those by which Valgrind writes the counts"
            )
            return JobFailed(f"{what}: {reason}", instead(self._sample).removeprefix("; "))
        if self._killed:
            return JobFailed(f"{what}: it was killed by SIGKILL{reason}", "nothing is written down then")
        if any(self._folder.glob("out.*")):
            hint = "let it set no limit to the size of files, and see that the disk has room"
            return JobFailed(f"{what}: the file of the counts could not be written{reason}", hint)
        return JobFailed(f"{what}: Valgrind cannot run it{reason}", f"try it: valgrind {self._run}")

    def _lost(self, logs: Mapping[int, Path], lost: Iterable[int]) -> Iterator[str]:
        """A note that names the programs of which processes left no counts."""
        programs = Counter(_command(logs[pid]) or str(self._run) for pid in lost)
        for command, number in programs.items():
            yield (
                f"{number} of the processes of {command[:_LONGEST_COMMAND]!r} left no counts: killed, still "
                "running when the command had ended, or nothing that Valgrind can run"
            )


def _text(log: Path) -> bytes:
    with log.open("rb") as file:
        return file.read(_HEAD)


def _command(log: Path) -> str:
    """The command line of a process, as Valgrind shows it."""
    found = _COMMAND.search(_text(log))
    return found[1].decode("utf-8", "replace") if found else ""


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _bare(command: str) -> str:
    """A command line without spaces and quotes, which Valgrind shows in its own way."""
    return re.sub(r"[\s\\'\"]", "", command)


def _shortcomings(graph: CostGraph) -> Iterator[str]:
    """Notes on what callgrind cannot tell of the program of a call graph."""
    program = _process(graph).function.removeprefix(_PROCESS)
    own = [one.name for one in graph.functions if os.path.basename(one.object) == program]
    if own and not any(is_named(name) for name in own):
        yield f"{program} has no symbols: its functions are counted together, as {NO_SYMBOLS}"
    in_no_file = sum(
        cost for one, cost in zip(graph.functions, graph.own, strict=True) if one.object in ("", _NO_FILE)
    )
    if in_no_file * _SEEN >= max(1, graph.total):
        yield (
            f"{program}: {in_no_file:,} instructions are of code that Valgrind knows no file of, and have no "
            "functions: of a program without a writable segment, or made while it ran"
        )
    names = {function.name.partition("@")[0] for function in graph.functions}
    if any(name.startswith(_OF_GO) for name in names):
        yield (
            f"{program} is written in Go: a function that makes room on its stack begins anew, and counts as "
            "called twice"
        )
    if not names.isdisjoint(_SHARES_STACK):
        yield (
            f"{program} uses vfork: functions that call it, and those that its children are in then, count "
            "as called more often"
        )
    if not names.isdisjoint(_SWITCHES):
        yield (
            f"{program} switches stacks (swapcontext): functions that are left in their middle count as "
            "called more often, and their inclusive counts are not exact"
        )


def _process(graph: CostGraph) -> FunctionFrame:
    """The frame that the functions of one of several processes lie in."""
    words = graph.command.split()
    return FunctionFrame(f"process {os.path.basename(words[0])}" if words else "process")
