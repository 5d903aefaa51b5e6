"""Runs the programs of the zoo as they are, and with each collector and engine."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from compiling import CompilerCache
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.instructions.collector import ENGINES as COUNTERS
from perun.collect.instructions.collector import InstructionsCollector, InstructionsParams
from perun.collect.island import IslandCollector, IslandParams
from perun.collect.memory.collector import MemoryCollector, MemoryParams
from perun.collect.time import TimeCollector, TimeParams
from perun.collect.trace.collector import TraceCollector, make_engine
from perun.collect.trace.params import TraceParams
from perun.core.errors import PerunError
from perun.core.process.execution import Execution, Output
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from zoo.programs import FOLDER, Program, has

TIMEOUT: Final = 30.0
SLOW: Final = 300.0
"""The time limit of engines that emulate the processor, in seconds."""
NOBODY: Final = 65534


class Plain(NamedTuple):
    """A run without Perun; a program that a signal ended has its negative number as its status."""

    status: int
    out: bytes
    errors: bytes


class Recorded(NamedTuple):
    """A run with a collector: what the program printed, and the profile, or the error of Perun."""

    out: bytes
    errors: bytes
    profile: Profile | None
    refusal: PerunError | None
    notes: list[str]


class Engine(NamedTuple):
    """One way to record: a collector with its parameters, for one program.

    :ivar lacks: why it cannot run on this machine; empty if it can. :ivar suits: what it is made for.
    """

    collect: Callable[[Program], tuple[Any, Any]]
    lacks: Callable[[], str]
    suits: Callable[[Program], bool] = lambda program: True


def _time(program: Program) -> tuple[Any, Any]:
    return TimeCollector(), TimeParams(warmup=0, repeat=1, timeout=TIMEOUT)


def _memory(program: Program) -> tuple[Any, Any]:
    return MemoryCollector(), MemoryParams(timeout=TIMEOUT)


def _memory_of_python(program: Program) -> tuple[Any, Any]:
    return MemoryCollector(), MemoryParams(python=True, timeout=TIMEOUT)


def _island(program: Program) -> tuple[Any, Any]:
    return IslandCollector(), IslandParams(timeout=TIMEOUT)


def _has_functions(program: Program) -> bool:
    """Whether it has functions that are not of Python, or is refused for want of them."""
    return program.source.suffix != ".py" or program.library is not None


def _complexity(program: Program) -> tuple[Any, Any]:
    sources = tuple(str(FOLDER / name) for name in _files(program))
    options = [word for word in program.compiler[1:] if word != "-g"] + _options(program)
    params = ComplexityParams(files=sources, compile_flags=shlex.join(options), timeout=TIMEOUT)
    return ComplexityCollector(), params


def _trace(engine: str) -> Callable[[Program], tuple[Any, Any]]:
    return lambda program: (TraceCollector(), TraceParams(engine=engine, timeout=TIMEOUT, **program.trace))


def _counted(engine: str) -> Callable[[Program], tuple[Any, Any]]:
    params = InstructionsParams(engine=engine, warmup=0, timeout=SLOW)
    return lambda program: (InstructionsCollector(), params)


def _no_tracer(engine: str) -> Callable[[], str]:
    return lambda: ": ".join(filter(None, make_engine(engine, os.environ).unavailable()))


def _no_counter(engine: str) -> Callable[[], str]:
    return lambda: ": ".join(filter(None, COUNTERS[engine](os.environ).unavailable()))


def _always() -> str:
    return ""


ENGINES: Final[Mapping[str, Engine]] = {
    "time": Engine(_time, _always),
    "memory": Engine(_memory, _always),
    "memory --python": Engine(_memory_of_python, _always, lambda program: program.source.suffix == ".py"),
    "island": Engine(_island, _always, lambda program: program.source.suffix == ".py"),
    "complexity": Engine(_complexity, _always, lambda program: program.is_c),
    **{name: Engine(_trace(name), _no_tracer(name), _has_functions) for name in ("ebpf", "uftrace", "stap")},
    **{name: Engine(_counted(name), _no_counter(name), _has_functions) for name in ("callgrind", "perf")},
}


class Compiled(NamedTuple):
    """A program and what it loads, as the compilers made them; or why that cannot be made here."""

    program: Path
    library: Path | None = None
    lacks: str = ""


def compile_program(program: Program, compile_once: CompilerCache) -> Compiled:
    """Compile a program and its library, once for each run of the tests.

    :raises subprocess.CalledProcessError: where the compiler fails.
    """
    compiler = program.compiler[0].split()[0]
    if not shutil.which(compiler):
        return Compiled(program.source, lacks=f"there is no {compiler}; install {program.package}")
    if program.name == "set_user" and os.geteuid():
        return Compiled(program.source, lacks="only root can give a program to another user")
    if program.feature and not has(program.feature):
        return Compiled(program.source, lacks=f"the processor has no {program.feature}")
    made, library = program.source, None
    if program.is_native:
        files = [FOLDER / name for name in _files(program)]
        try:
            made = compile_once(*program.compiler, *files, *_options(program))
        except subprocess.CalledProcessError as failure:
            if "cannot find" not in failure.stderr:
                raise
            return Compiled(program.source, lacks=f"a library is missing; install {program.package}")
    if program.library:
        include = f"-I{sysconfig.get_path('include')}"
        library = compile_once(*program.library.options, include, FOLDER / program.library.source)
    return Compiled(made, library)


def prepare(program: Program, compiled: Compiled, folder: Path) -> Run:
    """Copy what was compiled into a folder, as probes belong to a file; the run of it there."""
    own = Path(shutil.copy(compiled.program, folder / program.source.stem))
    if compiled.library and program.library:
        shutil.copy(compiled.library, folder / program.library.file)
    own.chmod(0o755)
    if program.name == "set_user":
        os.chown(own, NOBODY, NOBODY)
        own.chmod(0o4755)
    # How the dynamic linker is told to start C++ and Python must not depend on who runs the tests.
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "LC_ALL") if name in os.environ}
    command = f"./{own.name}"
    if program.compiler[0] == "python3":
        command = f"{shlex.quote(sys.executable)} {own.name}"
    elif not program.is_native:
        command = f"./{own.name}"
    environ["CC" if program.source.suffix == ".c" else "CXX"] = program.compiler[0]
    return Run(command, program.args, cwd=folder, environ=environ)


def run_plainly(run: Run) -> Plain:
    """Run a command without Perun."""
    command = run.command()
    # Files, as when it is recorded: some programs write other things to a pipe.
    given = run.cwd / command.stdin_file if command.stdin_file else Path(os.devnull)
    with given.open("rb") as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        done = subprocess.run(
            command.argv, stdin=stdin, stdout=out, stderr=errors, cwd=run.cwd, env=dict(run.environ),
            timeout=TIMEOUT, check=False
        )  # fmt: skip
        out.seek(0)
        errors.seek(0)
        return Plain(done.returncode, out.read(), errors.read())


def record(collector: Any, params: Any, run: Run, scratch: Path) -> Recorded:
    """Run a command with a collector, and keep what it prints."""
    notes: list[str] = []
    profile = refusal = None
    context = CollectContext(scratch, note=notes.append, cache=scratch / "cache")
    out, errors = scratch / "out", scratch / "errors"
    with _printing_to(out, errors):
        try:
            profile = collector.collect(run, params, context)
        except PerunError as problem:
            refusal = problem
    return Recorded(out.read_bytes(), errors.read_bytes(), profile, refusal, notes)


@contextlib.contextmanager
def _printing_to(out: Path, errors: Path) -> Iterator[None]:
    """Have commands that collectors run print to these files, also where it would be thrown away."""
    defaults: Any = Execution.__init__.__kwdefaults__
    before = defaults["output"]
    saved = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        for number, path in ((1, out), (2, errors)):
            with path.open("wb") as file:
                os.dup2(file.fileno(), number)
        defaults["output"] = Output.SHOW
        yield
    finally:
        defaults["output"] = before
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), saved, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _files(program: Program) -> list[str]:
    return [program.source.name, *(word for word in program.more if not word.startswith("-"))]


def _options(program: Program) -> list[str]:
    return [word for word in program.more if word.startswith("-")]
