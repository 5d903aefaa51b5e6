"""Real programs, compiled once, run with the recorder and without."""

import functools
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiling import CompilerCache
from perun.collect._calls.calibration import UNCERTAIN_TIMES
from perun.collect.trace import TraceCollector
from perun.collect.trace.params import TraceParams
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from recorded import PROGRAMS, Recorded, read
from traced import Trace, plain

Record = Callable[..., Recorded]


@pytest.fixture
def record(memory_recorder: Path, tmp_path: Path) -> Record:
    """Run a command with the recorder: `record("./list", "argument", unwind="fp", follow=True)`."""
    runs: Counter[str] = Counter()

    def run(
        *command: str | Path, unwind: str = "auto", follow: bool = False, cwd: Path | None = None,
        stdin: bytes = b"", library: Path | None = None, **environ: str
    ) -> Recorded:  # fmt: skip
        runs["run"] += 1
        file = tmp_path / f"recorded{runs['run']}"
        settings = {
            "LD_PRELOAD": str(library or memory_recorder),
            "PERUN_MEMORY_FILE": str(file),
            "PERUN_MEMORY_UNWIND": unwind,
            **({"PERUN_MEMORY_FOLLOW": "1"} if follow else {}),
        }
        done = subprocess.run(
            list(command), env={**os.environ, **settings, **environ}, cwd=cwd, input=stdin,
            capture_output=True, timeout=120, check=False
        )  # fmt: skip
        return read(file, done)

    return run


@pytest.fixture(scope="session")
def program(compiled_once: CompilerCache) -> Callable[..., Path]:
    """Compile one of the programs: `program("list.c", "-fno-omit-frame-pointer")`; once for all tests."""

    def compiled(source: str, *options: str) -> Path:
        compiler = ("c++", "-std=c++17") if source.endswith(".cpp") else ("cc", "-std=gnu11")
        own = ("-O2", "-g", "-fno-builtin", "-pthread", *options)
        return compiled_once(*compiler, *own, PROGRAMS / source, "-ldl")

    return compiled


@pytest.fixture(scope="session")
def counted_by_callgrind(compiled_once, tmp_path_factory) -> Callable[[str, str], Counter[str]]:
    """How often functions of a program are called: `counted_by_callgrind("trace_list.c", "50")`.

    The names are without parameters. What the C library calls may be missing.
    """
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")

    @functools.cache
    def count(source: str, args: str) -> Counter[str]:
        out = tmp_path_factory.mktemp("callgrind") / "out"
        command = ["valgrind", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={out}"]
        subprocess.run([*command, plain(compiled_once, source), args], check=True, capture_output=True)
        counted: Counter[str] = Counter()
        called = ""
        for line in out.read_text().splitlines():
            if line.startswith("cfn="):
                called = re.sub(r"'\d+$", "", line[4:]).partition("(")[0]
            elif line.startswith("calls=") and called:
                counted[called] += int(line[6:].split()[0])
        return counted

    return count


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def compiled(compiled_once: CompilerCache, tmp_path: Path) -> Callable[[str], Path]:
    """Compile one of the programs into the folder of the test: probes belong to a file, which is its own."""

    def build(source: str) -> Path:
        return Path(shutil.copy(plain(compiled_once, source), tmp_path / source.partition(".")[0]))

    return build


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests, so that the cost of recording is measured once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def trace(tmp_path: Path, notes: list[str], cache: Path) -> Trace:
    """Trace a program: `trace(program, "100", engine="uftrace", func=("list_search",))`."""

    def note(text: str) -> None:
        if UNCERTAIN_TIMES not in text:  # which times are, depends on the moment
            notes.append(text)

    def traced(program: Path, args: str = "", **params: Any) -> Profile:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        run = Run(f"./{program.name}", args, cwd=tmp_path, environ=dict(os.environ))
        context = CollectContext(scratch, note=note, cache=cache, logs=tmp_path / "logs")
        given = {"output_handling": "suppress", "timeout": 60.0, **params}
        profile = TraceCollector().collect(run, TraceParams(**given), context)
        assert not list(scratch.iterdir())
        return profile

    return traced
