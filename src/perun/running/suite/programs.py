"""The suites of a project: which harnesses it has, what these build of a working copy, and how that runs."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from tempfile import TemporaryFile, mkdtemp
from typing import Any, BinaryIO, Final, NamedTuple

from perun.core.errors import ConfigError, JobFailed, UsageError
from perun.core.leftovers import remove_folder
from perun.core.process.command import exit_status
from perun.core.process.execution import Execution
from perun.core.process.layout import copy_anew, padding
from perun.core.wording import listed
from perun.harness._common import one_walk
from perun.plugin.api import Report, Run, silent
from perun.plugin.api import quiet as silent_note
from perun.plugin.loading import errors_of
from perun.plugin.suites import (
    BenchmarkCommand,
    BenchmarkRound,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)
from perun.repository.jobs import PluginConfig, configured_unit, make_unit
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.compare.decide import ARMS, is_parallel
from perun.running.compare.instruments import BudgetSpent
from perun.running.run.pre_run import environment

KEY: Final = "harnesses"
"""Of the configuration: those of the project."""
_MODULES: Final = "PYTHONPATH"
_LEAST: Final = 0.001
"""Seconds that a sample takes, and that a program is given at least: 0 would be without a limit."""
_ROUNDS: Final = 15
"""So many are enough for an answer where benchmarks are quiet, with that which warms up."""
_SHOWN: Final = 8
"""Names that an error lists at most."""
_TOGETHER: Final = 0.2
_LONGEST: Final = 0.025
"""Seconds that the samples of a process take that measures all benchmarks, and those of each at most."""
_SHARE: Final = 0.3
"""Of the budget, that samples may take so that there are so many rounds."""

Seconds = Callable[[], float]


@dataclass(frozen=True)
class SuiteOptions:
    """Which benchmarks are measured.

    :ivar harness: the name of one; empty for all that the project has. :ivar patterns: names, or shell
        patterns, of which a name with its parameters, or without, is one; none for all.
    :ivar seconds: that the samples of one benchmark take in a round at most, see :meth:`sampled`.
    """

    harness: str = ""
    patterns: tuple[str, ...] = ()
    seconds: float = 0.005

    def sampled(self, benchmarks: int, budget: float, *, together: bool = False) -> float:
        """The seconds of the samples with which so many benchmarks have the rounds that can decide within the
        budget: starting programs takes longer than short samples do, and more rounds tell more than longer
        samples.

        :param together: one process measures all: what its start takes, its samples may take as well.
        """
        runs = max(benchmarks, 1) * len(ARMS) * _ROUNDS
        share = min(_TOGETHER / max(benchmarks, 1), _LONGEST) if together else 0.0
        return max(min(max(self.seconds, share), _SHARE * budget / runs), _LEAST)

    def wants(self, benchmark: NamedBenchmark) -> bool:
        """Whether the benchmark is measured."""
        names = {str(benchmark), benchmark.name}
        return not self.patterns or any(
            name == one or fnmatchcase(name, one) for name in names for one in self.patterns
        )

    def require_any(self, benchmarks: Iterable[NamedBenchmark]) -> None:
        """:raises UsageError: where none of those that there are is measured."""
        names = list(dict.fromkeys(benchmarks))
        if any(map(self.wants, names)):
            return
        what = f"no benchmark matches {' '.join(self.patterns)!r}" if names else "there are no benchmarks"
        known = listed([*map(str, names)], _SHOWN) or "none"
        raise UsageError(what, f"there are: {known}")


def harnesses(repo: Repository, folder: Path, wanted: str = "") -> list[PluginConfig]:
    """The harnesses of the benchmarks in a folder: those that are configured, else those that find any.

    :param wanted: the name of the only one.
    :raises UsageError: where there is none. :raises PerunError: where a configured one is wrong.
    """
    entries = repo.config.get(KEY) or []
    configured = [configured_unit(repo.registry, "harness", entry) for entry in entries]
    for name, count in Counter(unit.name for unit in configured).items():
        if count > 1:
            raise ConfigError(f"{KEY}: {name} is there {count} times", "give its parameters in one entry")
    if wanted:
        named = [unit for unit in configured if unit.name == wanted.replace("-", "_")]
        return named or [make_unit(repo, "harness", wanted, {}, "--harness")]
    names = repo.registry.names("harness")
    found = configured or [make_unit(repo, "harness", name, {}, name) for name in detected(repo, folder)]
    if not found:
        raise UsageError(
            f"no benchmarks are found in {folder.name}: they would be those of {', '.join(names)}",
            f"name the harness with --harness, or set it up: perun config set {KEY} '[NAME]'",
        )
    return found


def once(note: Callable[[str], None]) -> Callable[[str], None]:
    """Tells each note once: what is odd about a project is so in each of its versions."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            note(text)

    return tell


def detected(repo: Repository, folder: Path) -> dict[str, int]:
    """The harnesses that find benchmarks in the folder, with the number of files that define them."""
    with one_walk():
        found = {
            name: len(repo.registry.get("harness", name).detect(folder))
            for name in repo.registry.names("harness")
        }
    return {name: files for name, files in found.items() if files}


class Suite:
    """One harness of a project, as it is used on working copies.

    :param rng: draws the environments of the programs. :param scratch: an empty folder of its own.
        :ivar name: of the harness. :ivar command: what its users type. :ivar together: whether one process
        measures all benchmarks of a round. :ivar seconds: of the samples of one benchmark in a round.
        :ivar core: the processor that its programs are kept on, None for any. :ivar parallel: whether one of
        the last round used several at once.
    """

    def __init__(
        self, repo: Repository, unit: PluginConfig, rng: Random, seconds: float, scratch: Path
    ) -> None:
        self.name = unit.name
        self.params = unit.params
        self._environ = environment(repo)
        self._built = repo.root / PERUN_FOLDER
        self._folder = scratch
        self._scratch = Path(mkdtemp(dir=scratch))
        self._harness: Any = repo.registry.get("harness", unit.name)
        self.command: str = self._harness.command
        self.together = bool(getattr(self._harness, "together", False))
        self._rng = rng
        self.seconds = seconds
        self.core: int | None = None
        self.parallel = False

    def build(self, folder: Path, scratch: Path, report: Report, note: Callable[[str], None]) -> SuiteBuild:
        """The programs of the working copy in the folder, with the names of their benchmarks.

        :param scratch: an empty folder for what is built.
        :raises PerunError: where they cannot be built, or two of them have a benchmark of one name.
        """
        with self._errors():
            context = HarnessContext(self._runner(lambda: 0.0), scratch, self.seconds, report, note)
            programs = self._harness.build(folder, self.params, context)
        found: dict[NamedBenchmark, SuiteProgram] = {}
        for number, program in enumerate(programs):
            report(f"listing benchmarks of {program.name or self.name}", number, len(programs))
            with self._context(lambda: 0.0, note) as context, self._errors():
                names = self._harness.list(program, self.params, context)
            for name in names:
                if name in found:
                    raise JobFailed(
                        f"{self.command} has two benchmarks called {str(name)!r}",
                        "give them different names, or choose one program in the parameters of the harness",
                    )
                found[name] = program
        return SuiteBuild(folder, found)

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        left: Seconds,
        note: Callable[[str], None],
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """As of the harness, within the seconds that are left.

        :raises BudgetSpent: where it takes longer. :raises PerunError: where it fails as a whole.
        """
        self.parallel = False
        with suppress(OSError):
            if (path := Path(program.argv[0])).is_relative_to(self._built):
                copy_anew(path)
        with self._context(left, note) as context, self._errors():
            found: Mapping[NamedBenchmark, BenchmarkRound] = self._harness.round(
                program, iterations, self.params, context
            )
        return found

    @property
    def runs_one(self) -> bool:
        """Whether it can run a benchmark apart, see :meth:`one`."""
        return callable(getattr(self._harness, "one", None))

    def one(
        self, program: SuiteProgram, benchmark: NamedBenchmark, iterations: int, scratch: Path
    ) -> BenchmarkCommand:
        """As of the harness, with the whole environment. :param scratch: an empty folder for its files.

        :raises PerunError: where it cannot run it so.
        """
        with self._errors():
            context = HarnessContext(self._runner(lambda: 0.0), scratch, self.seconds, silent, silent_note)
            found: BenchmarkCommand = self._harness.one(program, benchmark, iterations, self.params, context)
        environ = {**self._environ, **found.environ}
        if found.environ.get(_MODULES) and self._environ.get(_MODULES):
            environ[_MODULES] = os.pathsep.join((found.environ[_MODULES], self._environ[_MODULES]))
        return found._replace(environ=environ)

    @contextmanager
    def _context(self, left: Seconds, note: Callable[[str], None]) -> Iterator[HarnessContext]:
        try:
            yield HarnessContext(self._runner(left), self._scratch, self.seconds, silent, note)
        finally:
            self._empty_scratch()

    def _empty_scratch(self) -> None:
        """Make it that of the next call: one of each call would take as long as starting a program."""
        try:
            with os.scandir(self._scratch) as entries:
                for entry in list(entries):
                    if entry.is_dir(follow_symlinks=False):
                        remove_folder(Path(entry))
                    else:
                        os.unlink(entry)
        except OSError:  # what still writes there keeps it
            self._scratch = Path(mkdtemp(dir=self._folder))

    def _errors(self) -> Any:
        return errors_of(self._harness, f"the harness {self.name!r}", JobFailed)

    def _runner(self, left: Seconds) -> Callable[[Sequence[str], Path, Mapping[str, str]], ToolOutput]:
        """What runs a program of a harness, each time in an environment of another size."""

        def run(argv: Sequence[str], folder: Path, own: Mapping[str, str]) -> ToolOutput:
            seconds = left()
            command = Run(shlex.join(argv), cwd=folder, environ={**self._environ, **own})
            limit = max(seconds, _LEAST) if seconds else 0.0
            # Files without a name: what still writes to them after the run writes into no other one.
            with TemporaryFile(dir=self._folder) as out, TemporaryFile(dir=self._folder) as errors:
                files = out.fileno(), errors.fileno()
                for file in files:
                    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
                with Execution(
                    command, self._folder, limit, core=self.core, output=files, end_group=True
                ) as execution:
                    execution.set_variable(*padding(self._rng))
                    sample = execution.record()
                self.parallel = self.parallel or is_parallel(sample)
                if sample.interruption is not None:
                    raise sample.interruption
                if sample.early:
                    raise BudgetSpent
                return ToolOutput(exit_status(sample.status), *map(_text_of, (out, errors)))

        return run


def _text_of(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


class SuiteBuild(NamedTuple):
    """What was built of one working copy: its folder, and the program of each benchmark, in their order."""

    folder: Path
    programs: Mapping[NamedBenchmark, SuiteProgram]
