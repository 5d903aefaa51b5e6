"""What recording a call costs: the complexity collector beside uftrace, same program, same run."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from perun.collect.complexity.collector import LIBRARY, ComplexityCollector
from perun.collect.complexity.params import ComplexityParams
from perun.plugin.api import CollectContext, Run
from report import Place, Row

SOURCE = Path(__file__).with_name("calls.c")
CALLS = 2_000_000
MANY = 10_000_000
INSTRUMENT = ("-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-finstrument-functions")
PROGRAM = """
#include <stdlib.h>
int inner(int n) { return n + 1; }
int outer(int n) { return inner(n) + inner(n + 1); }
int main(int count, char **arguments) {
  volatile int sum = 0;
  for (long left = atol(arguments[1]) / 3; left; left--) sum = outer(sum & 1023);
  return count < 2;
}
"""


def complexity(place: Place) -> Iterator[Row]:
    """Nanoseconds and bytes of a call; then a profile of ten million."""
    if not LIBRARY.is_file():
        raise SystemExit(f"{LIBRARY} was not built")
    folder = place.folder / "complexity"
    folder.mkdir()
    yield from one_call(folder, max(3, place.rounds // 3))
    yield from many_calls(folder)


def one_call(folder: Path, rounds: int) -> Iterator[Row]:
    """CPU time of a call beyond that of the same call in the program alone."""
    plain, instrumented = compiled(folder, "plain"), compiled(folder, "instrumented", *INSTRUMENT)
    calls = folder / "calls"
    settings = [f"LD_PRELOAD={LIBRARY}", f"PERUN_COMPLEXITY_FOLDER={calls}"]
    commands: dict[str, list[str]] = {
        "plain": [plain, str(CALLS)],
        "ours": ["env", *settings, instrumented, str(CALLS)],
    }
    if shutil.which("uftrace"):
        data = ["-d", str(folder / "uftrace"), "--no-libcall"]
        commands["uftrace -P"] = ["uftrace", "record", *data, "-P", "leaf", plain, str(CALLS)]
        profiled = compiled(folder, "profiled", "-pg")
        commands["uftrace, -pg"] = ["uftrace", "record", *data, profiled, str(CALLS)]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            shutil.rmtree(calls, ignore_errors=True)
            calls.mkdir()
            found[name].append(printed(argv))
            if name == "ours":
                size = sum(path.stat().st_blocks * 512 for path in calls.glob("*.calls"))
    best = {name: min(cost for cost, _ in pairs) for name, pairs in found.items()}
    counter = min(counter for pairs in found.values() for _, counter in pairs)
    ours = best["ours"] - best["plain"]
    yield Row("record a call, complexity", ours, 35, "limit", 1, "ns")
    yield Row("record a call, complexity", ours, 2 * counter, "two reads of the counter", None, "ns")
    for name in list(best)[2:]:
        yield Row("record a call, complexity", ours, best[name] - best["plain"], name, 1, "ns")
    yield Row("data of a call, complexity", size / CALLS, 40, "limit", 1, "B")


def many_calls(folder: Path) -> Iterator[Row]:
    """A profile of ten million calls, and the memory that it takes to make it."""
    source = folder / "many.c"
    source.write_text(PROGRAM)
    run = Run("many", str(MANY), cwd=folder, environ=dict(os.environ))
    start = time.perf_counter()
    profile = ComplexityCollector().collect(
        run, ComplexityParams(files=(str(source),)), CollectContext(folder)
    )
    taken = time.perf_counter() - start
    assert profile["trace"]["calls"] == MANY // 3 * 3 + 1
    yield Row(f"profile of {MANY:,} calls, all in all", taken, 20, "limit", 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Row(f"memory for {MANY:,} calls", peak, 1024, "limit", 1, "MB")


def compiled(folder: Path, name: str, *options: str) -> str:
    """The path of the program, compiled with these options."""
    path = str(folder / name)
    subprocess.run(["cc", "-O2", *options, "-o", path, str(SOURCE)], check=True)
    return path


def printed(argv: Sequence[str]) -> tuple[float, float]:
    """Nanoseconds of a call, and of reading the counter."""
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    first, second = done.stdout.split()[:2]
    return float(first), float(second)
