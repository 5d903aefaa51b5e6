"""The runtime that records calls under the sanitizers of the compiler."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from compiling import CompilerCache, sanitized
from perun.collect._calls.events import Calls
from perun.collect.complexity.programs import Module, TableFunction, encoded
from perun.collect.complexity.records import Gaps, processes

SOURCES = Path(__file__).parents[2] / "src" / "perun" / "collect" / "complexity" / "native"
PROGRAMS = Path(__file__).with_name("programs")
INSTRUMENT = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-finstrument-functions")


Built = Callable[[str, str], Path]


@pytest.fixture
def built(compiled_once: CompilerCache) -> Built:
    """Compile a program with the runtime in it: `built("trace_list.c", "thread")`."""

    def build(source: str, sanitizer: str) -> Path:
        common = ("cc", "-std=gnu11", "-g", "-O1", "-pthread")
        common = (*common, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
        # The runtime itself is not instrumented: it is compiled apart.
        runtime = [compiled_once(*common, "-c", path) for path in sorted(SOURCES.glob("*.c"))]
        # The linker tells objects from scripts by what is in them.
        return sanitized(compiled_once, *common, *INSTRUMENT, PROGRAMS / source, *runtime)

    return build


# The sanitizer of threads loses track of inlined frames that longjmp leaves.
@pytest.mark.parametrize(
    ("source", "args", "calls", "sanitizer"),
    [
        ("trace_list.c", "300", 602, "address,undefined"),
        pytest.param("trace_list.c", "300", 602, "thread", marks=pytest.mark.slow),
        pytest.param(
            "trace_recursion.c", "3000", 1973 + 11 + 3001 + 1, "address,undefined", marks=pytest.mark.slow
        ),
        pytest.param("trace_recursion.c", "3000", 1973 + 11 + 3001 + 1, "thread", marks=pytest.mark.slow),
        ("trace_threads.c", "500", 4 * (1 + 500 * 4) + 1, "address,undefined"),
        ("trace_threads.c", "500", 4 * (1 + 500 * 4) + 1, "thread"),
        ("trace_longjmp.c", "100", 1 + 100 + 400 + 50 + 150, "address,undefined"),
        ("trace_fork.c", "50", 1 + 2 + 2 + 150, "address,undefined"),
        pytest.param("trace_fork.c", "50", 1 + 2 + 2 + 150, "thread", marks=pytest.mark.slow),
    ],
)
def test_clean(built: Built, tmp_path: Path, source: str, args: str, calls: int, sanitizer: str) -> None:
    process_count = 3 if "fork" in source else 1
    found = recorded(built(source, sanitizer), args, tmp_path, [])
    assert len(found) == process_count
    assert sum(len(made) for _, made in found) == calls
    for gaps, _ in found:
        assert gaps._replace(missed=0) == Gaps()


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
@pytest.mark.parametrize("outer", [1, 3])
@pytest.mark.each_value("outer", "sanitizer")
def test_clean_where_calls_are_left_out(built: Built, tmp_path: Path, outer: int, sanitizer: str) -> None:
    program = built("trace_threads.c", sanitizer)
    every = {"outer": outer, "inner": 7}
    shown = subprocess.run(["nm", "-S", program], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in shown.splitlines() if line.split()[-1] in ("work", "outer", "inner")]
    listed = sorted(
        TableFunction(int(address, 16), int(size, 16), True, every.get(name, 1))
        for address, size, _, name in symbols
    )
    ((gaps, calls),) = recorded(program, "500", tmp_path, listed)
    assert gaps == Gaps()
    per_thread = 1 + -(-500 // outer) + -(-1500 // 7)
    assert len(calls) == 4 * per_thread + 1
    for thread in np.unique(calls.thread):
        own = calls.where(calls.thread == thread)
        assert len(np.unique(own.order)) == len(own)
        if len(own) > 1:  # work, and all that is within, which counts though it is left out
            assert 1 + 500 * 4 - 12 <= int(own.order.max()) < 1 + 500 * 4
            assert (own.start[np.argsort(own.order)][1:] >= own.start[np.argsort(own.order)][:-1]).all()


def recorded(
    program: Path, args: str, folder: Path, listed: Sequence[TableFunction]
) -> list[tuple[Gaps, Calls]]:
    """What each process of the program records, which must end well and without a word of the sanitizer."""
    into = folder / "recorded"
    into.mkdir()
    (folder / "table").write_bytes(encoded([Module(str(program), listed)], only_listed=False))
    settings = {
        "PERUN_COMPLEXITY_FOLDER": str(into),
        "PERUN_COMPLEXITY_TABLE": str(folder / "table"),
        "PERUN_COMPLEXITY_STORAGE": "100",
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    }
    done = subprocess.run(
        [program, args],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer cannot run on this kernel")
    assert (done.returncode, done.stderr) == (0, "")
    found = []
    for process in processes(into):
        calls = Calls.joined(list(process.calls(process.started)))
        found.append((process.gaps, calls))
    return found
