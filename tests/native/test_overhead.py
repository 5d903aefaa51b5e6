"""Times without the cost of recording have the proportions that callgrind finds, on a real program."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from statistics import quantiles

import pytest

from compiling import CompilerCache
from perun.collect._calls.calibration import PROGRAM
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.complexity.params import ComplexityParams
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.choosing import make_engine
from perun.collect.trace.params import TraceParams
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from traced import PROGRAMS, calls, plain

SOURCE = "trace_proportions.c"
ROUNDS = "60"
FACTOR = 2.5
"""Probes of 12 us for each call make `with_calls` three times as long on a fast machine. What is subtracted
may be wrong by 2 us, of at least 7 us that each function takes there: the cost was measured at another
moment, when the machine was a third slower or faster."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def instructions(compiled_once: CompilerCache, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """How many instructions a call of each function takes, with those that it calls."""
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    out = tmp_path_factory.mktemp("callgrind") / "out"
    command = ["valgrind", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={out}"]
    subprocess.run([*command, plain(compiled_once, SOURCE), ROUNDS], check=True, capture_output=True)
    number: dict[str, int] = {}
    cost: dict[str, int] = {}
    lines = iter(out.read_text().splitlines())
    called = ""
    for line in lines:
        if line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            number[called] = number.get(called, 0) + int(line[6:].split()[0])
            cost[called] = cost.get(called, 0) + int(next(lines).split()[1])
    return {name: cost[name] / number[name] for name in ("little", "much", "with_calls", "leaf")}


def recorded(way: str, compiled_once: CompilerCache, folder: Path, cache: Path) -> Profile:
    (folder / "scratch").mkdir()
    context = CollectContext(folder / "scratch", cache=cache)
    run = Run("./program", ROUNDS, cwd=folder, environ=dict(os.environ))
    if way == "complexity":
        params = ComplexityParams(files=(str(PROGRAMS / SOURCE),), compile_flags="-O1")
        return ComplexityCollector().collect(run, params, context)
    if why := ": ".join(filter(None, make_engine(way, os.environ).unavailable())):
        pytest.skip(why)
    shutil.copy(plain(compiled_once, SOURCE), folder / "program")
    traced = TraceParams(engine=way, output_handling="suppress", timeout=60.0)
    return TraceCollector().collect(run, traced, context)


@pytest.mark.parametrize("way", ["ebpf", "uftrace", "complexity"])
def test_proportions_are_those_of_callgrind(
    instructions: dict[str, float], compiled_once: CompilerCache, tmp_path: Path, cache: Path, way: str
) -> None:
    if not PROGRAM.is_file():
        pytest.skip(f"{PROGRAM.name} was not built")
    profile = recorded(way, compiled_once, tmp_path, cache)
    rounds = int(ROUNDS)
    found = calls(profile)
    expected = {"little": rounds, "much": rounds, "with_calls": rounds, "leaf": 20 * rounds}
    assert {name: found[name] for name in expected} == expected
    times: dict[str, list[float]] = {}
    for _, one in profile.all_resources():
        times.setdefault(str(one["uid"]).partition("(")[0], []).append(one["amount"])
    # The lower quartile: on a busy machine the median call was often interrupted.
    usual = {name: quantiles(own)[0] for name, own in times.items() if len(own) > 1}
    for name in ("little", "with_calls"):
        ratio = (usual[name] / usual["much"]) / (instructions[name] / instructions["much"])
        assert 1 / FACTOR < ratio < FACTOR, (name, usual)
    functions = profile["trace"]["overhead"]["functions"]
    sums = {uid.partition("(")[0]: row for uid, row in functions.items()}
    assert usual["leaf"] < usual["much"] / 5
    assert sums["leaf"]["calls"] == 20 * rounds
    assert not sums["much"]["inclusive"]["below"]
    # What was subtracted of those that make calls is at least what was subtracted of these calls.
    nested = sums["with_calls"]["inclusive"]["subtracted"] - sums["much"]["inclusive"]["subtracted"]
    assert nested > sums["leaf"]["inclusive"]["subtracted"]
