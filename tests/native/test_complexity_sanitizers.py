"""The runtime that records calls under the sanitizers of the compiler."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from perun.collect.complexity.records import processes
from perun.collect.complexity.table import Module, encoded

SOURCES = Path(__file__).parents[2] / "src" / "perun" / "collect" / "complexity" / "native"
PROGRAMS = Path(__file__).with_name("programs")
INSTRUMENT = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-finstrument-functions")


def built(folder: Path, source: str, sanitizer: str) -> Path:
    """The program with the runtime in it; skips where the compiler lacks the sanitizer."""
    program = folder / "program"
    common = [
        "cc",
        "-std=gnu11",
        "-g",
        "-O1",
        "-pthread",
        f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=all",
    ]
    objects = []
    for path in sorted(SOURCES.glob("*.c")):
        objects.append(folder / f"{path.stem}.o")
        done = subprocess.run(
            [*common, "-c", path, "-o", objects[-1]], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    argv = [*common, *INSTRUMENT, str(PROGRAMS / source), *map(str, objects), "-o", str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        pytest.skip(f"the compiler has no sanitizer: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
@pytest.mark.parametrize(
    ("source", "args", "calls"),
    [
        ("trace_list.c", "300", 602),
        ("trace_recursion.c", "3000", 1973 + 11 + 3001 + 1),
        ("trace_threads.c", "500", 4 * (1 + 500 * 4) + 1),
        ("trace_longjmp.c", "100", 1 + 100 + 400 + 50 + 150),
        ("trace_fork.c", "50", 1 + 2 + 2 + 150),
    ],
)
def test_clean(tmp_path: Path, source: str, args: str, calls: int, sanitizer: str) -> None:
    if sanitizer == "thread" and "longjmp" in source:
        pytest.skip("the sanitizer of threads loses track of inlined frames that longjmp leaves")
    program = built(tmp_path, source, sanitizer)
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    (tmp_path / "table").write_bytes(encoded([Module(str(program))], only_listed=False))
    settings = {
        "PERUN_COMPLEXITY_FOLDER": str(recorded),
        "PERUN_COMPLEXITY_TABLE": str(tmp_path / "table"),
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
    found: Counter[str] = Counter()
    for process in processes(recorded):
        for piece in process.calls(process.started):
            found["calls"] += piece.total
        assert process.gaps._replace(missed=0) == type(process.gaps)()
    assert found["calls"] == calls
