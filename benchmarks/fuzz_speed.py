"""Executions per second of the fuzzer's backends beside plain runs with gcov, and beside afl-fuzz.

    python benchmarks/fuzz_speed.py [SECONDS]

The same program of 0.1 ms and the same input of 2 KB; all take turns, so that other load hits all. AFL++ is
measured where it is installed (`apt-get install afl++`); it mutates its inputs as well. Beside the rate is
the time of the processor that one execution takes in all processes together.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from perun.fuzz.coverage.api import Coverage, CoverageTarget
from perun.fuzz.coverage.inputs import build_flags
from perun.fuzz.coverage.opening import open_coverage
from report import Measured, Place, Row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzzing"))

from experiments import cpu_seconds

SOURCE = Path(__file__).with_name("fuzzed.c")
INPUT = b"".join(b"word%d other%d\n" % (n % 37, n % 11) for n in range(150))[:2048]
LIMIT = 10.0
SHARE = 0.5
"""Seconds of one turn."""
PLAIN = "gcov --json-format of each run"
AFL = "afl-fuzz"
PERSISTENT = "persistent"
"""... mode of AFL: the program runs its inputs in a loop."""


def fuzz_speed(place: Place) -> Iterator[Row]:
    """Seconds of one execution: both backends with their fork servers, and what one would do without."""
    folder = place.folder / "fuzz_speed"
    folder.mkdir()
    found = {name: one.real for name, one in measure(folder, max(5, place.rounds)).items()}
    gcov, sancov, plain = found["gcov"], found["sancov"], found[PLAIN]
    yield Row("fuzz: one execution, gcov", gcov, plain, PLAIN, 1 / 3)
    yield Row("fuzz: one execution, gcov, no fork server", found["gcov, started"], plain, PLAIN, 1)
    yield Row("fuzz: one execution, sancov", sancov, plain, PLAIN, 1 / 5)
    if AFL in found:
        yield Row("fuzz: one execution, gcov", gcov, found[AFL], AFL, None)
        yield Row("fuzz: one execution, sancov", sancov, found[AFL], AFL, 1)
        theirs = f"{AFL}, {PERSISTENT}"
        yield Row(f"fuzz: one execution, {PERSISTENT}", found[PERSISTENT], found[theirs], theirs, 2)


class Costs(NamedTuple):
    """Seconds of one execution: real time, and that of the processor."""

    real: Measured
    cpu: Measured


def measure(folder: Path, rounds: int) -> dict[str, Costs]:
    """Seconds of one execution of each contestant."""
    started = compiled(folder / "started", "gcc", "-g -O1 --coverage -static")
    backends = {
        "gcov": opened(folder, compiled(folder / "gcov", *with_flags("gcov"))),
        "gcov, started": opened(folder, started),
        "sancov": opened(folder, compiled(folder / "sancov", *with_flags("sancov"))),
    }
    afl = afl_fuzz(folder)
    if afl:
        backends[PERSISTENT] = opened(folder, folder / PERSISTENT)
    contestants: dict[str, Callable[[], None]] = {
        name: lambda coverage=coverage: run(coverage) for name, coverage in backends.items()
    }
    contestants[PLAIN] = plain_runs(folder)
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for name in contestants:
        contestants[name]()
    for _ in range(rounds):
        for name, execute in contestants.items():
            samples[name].append(seconds_of_one(execute))
        for name, run_afl in afl.items():
            samples.setdefault(name, []).append(run_afl())
    for coverage in backends.values():
        coverage.close()
    return {
        name: Costs(*(Measured(list(one)) for one in zip(*turns, strict=True)))
        for name, turns in samples.items()
    }


def seconds_of_one(execute: Callable[[], None]) -> tuple[float, float]:
    """The mean of a turn: real time, and that of the processor."""
    count = 0
    cpu, start = cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < SHARE:
        execute()
        count += 1
    return (time.perf_counter() - start) / count, (cpu_seconds() - cpu) / count


def with_flags(backend: str) -> tuple[str, str]:
    made = build_flags(backend)  # type: ignore[arg-type]
    return made.cc, made.flags


def compiled(program: Path, compiler: str, flags: str) -> Path:
    environ = {**os.environ, "AFL_QUIET": "1"}
    subprocess.run([compiler, *flags.split(), "-o", program, SOURCE], check=True, env=environ)
    return program


def opened(folder: Path, program: Path) -> Coverage:
    scratch = folder / f"scratch-{program.name}"
    scratch.mkdir()
    coverage = open_coverage(CoverageTarget((str(program),), "file", folder, dict(os.environ)), scratch)
    coverage.start()
    return coverage


def run(coverage: Coverage) -> None:
    done = coverage.run(INPUT, LIMIT)
    assert done.outcome == "ok" and done.total > 1000, done


def plain_runs(folder: Path) -> Callable[[], None]:
    """What the manual describes: run the program, have gcov write its report, add up its lines."""
    program = compiled(folder / "plain", *with_flags("gcov"))
    data = folder / f"plain-{SOURCE.stem}.gcda"
    text = folder / "text"
    text.write_bytes(INPUT)

    def execute() -> None:
        data.unlink(missing_ok=True)
        subprocess.run([program, text], check=True, stdout=subprocess.DEVNULL)
        told = subprocess.run(
            ["gcov", "--json-format", "--stdout", data.name], cwd=folder, check=True, capture_output=True
        )
        files = json.loads(told.stdout)["files"]
        assert sum(line["count"] for file in files for line in file["lines"]) > 1000

    return execute


def afl_fuzz(folder: Path) -> dict[str, Callable[[], tuple[float, float]]]:
    """Seconds of one execution of afl-fuzz on the program, with its fork server and in persistent mode, in
    runs of a few seconds; nothing without AFL++."""
    if shutil.which("afl-fuzz") is None or shutil.which("afl-clang-fast") is None:
        return {}
    forked = compiled(folder / "afl", "afl-clang-fast", "-g -O1")
    looping = compiled(folder / PERSISTENT, "afl-clang-fast", "-g -O1 -DPERSISTENT")
    seeds = folder / "seeds"
    seeds.mkdir()
    (seeds / "seed").write_bytes(INPUT)
    environ = {
        **os.environ,
        "AFL_NO_UI": "1",
        "AFL_SKIP_CPUFREQ": "1",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
        "AFL_NO_AFFINITY": "1",
    }

    def execute(program: Path) -> tuple[float, float]:
        cpu, output = cpu_seconds(), folder / "afl-output"
        shutil.rmtree(output, ignore_errors=True)
        subprocess.run(
            ["afl-fuzz", "-V", "5", "-i", seeds, "-o", output, "--", program, "@@"],
            env=environ, check=True, capture_output=True,
        )  # fmt: skip
        lines = (output / "default" / "fuzzer_stats").read_text(encoding="utf-8").splitlines()
        told = dict(line.split(":", 1) for line in lines)
        stats = {key.strip(): value.strip() for key, value in told.items()}
        done = float(stats["execs_done"])
        return float(stats["run_time"]) / done, (cpu_seconds() - cpu) / done

    return {AFL: partial(execute, forked), f"{AFL}, {PERSISTENT}": partial(execute, looping)}


def main() -> None:
    global SHARE
    SHARE = float(sys.argv[1]) if len(sys.argv) > 1 else SHARE
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), 7)
    for name, (real, cpu) in found.items():
        rate = f"{1 / real:,.0f}/s ({1 / real.most:,.0f} to {1 / real.least:,.0f})"
        spent = f"{1e6 * cpu:,.0f} us ({1e6 * cpu.least:,.0f} to {1e6 * cpu.most:,.0f}) of CPU"
        print(f"{name:32} {rate:28} {spent:34} {found[PLAIN].cpu / cpu:.2f} times less than {PLAIN}")


if __name__ == "__main__":
    main()
