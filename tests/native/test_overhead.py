"""The cost of recording is subtracted of each call of a real program."""

import os
import shutil
from pathlib import Path

import pytest

from compiling import CompilerCache
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.trace import TraceCollector
from perun.collect.trace.collector import make_engine
from perun.collect.trace.params import TraceParams
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from traced import PROGRAMS, calls, plain

SOURCE = "trace_proportions.c"
ROUNDS = "60"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


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
def test_recording_is_subtracted_of_each_call(compiled_once, tmp_path: Path, cache: Path, way: str) -> None:
    """How right the times are then depends on the machine: `benchmarks/calibration.py` measures it."""
    profile = recorded(way, compiled_once, tmp_path, cache)
    rounds = int(ROUNDS)
    found = calls(profile)
    expected = {"little": rounds, "much": rounds, "with_calls": rounds, "leaf": 20 * rounds}
    assert {name: found[name] for name in expected} == expected
    times: dict[str, list[float]] = {}
    for _, one in profile.all_resources():
        times.setdefault(str(one["uid"]).partition("(")[0], []).append(one["amount"])
    assert min(map(min, times.values())) >= 0
    # No load makes a call faster, and of so many calls one was not interrupted: a twentieth takes less.
    assert max(min(times["leaf"]), min(times["little"])) < min(times["much"])
    functions = profile["trace"]["overhead"]["functions"]
    sums = {uid.partition("(")[0]: row for uid, row in functions.items()}
    assert {name: sums[name]["calls"] for name in expected} == expected
    assert sums["much"]["inclusive"]["subtracted"] > 0
    # What was subtracted of those that make calls is at least what was subtracted of these calls.
    nested = sums["with_calls"]["inclusive"]["subtracted"] - sums["much"]["inclusive"]["subtracted"]
    assert nested > sums["leaf"]["inclusive"]["subtracted"]
