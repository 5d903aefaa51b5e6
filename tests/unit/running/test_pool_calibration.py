"""Whether a machine of a pool is as fast as it was, and whether it is busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perun.core import conditions
from perun.core.conditions import Moment
from perun.repository.init import init
from perun.repository.repository import open_repository
from perun.running.pool.places import Calibration, KnownMachines, judged, measure

QUIET = Calibration(0.007, 0.0, 0.0, 4)
BUSY = QUIET._replace(others=1.0)
START = Moment(0, 0, 0.0, 100.0, 50.0)


def after(elapsed: float, busy: float) -> Moment:
    return START._replace(clock=START.clock + elapsed, busy=START.busy + busy)


@pytest.mark.parametrize(
    ("times", "elapsed", "busy", "expected", "words"),
    [
        ([(0.100, 0.099)] * 5, 0.5, 0.515, Calibration(0.099, 0.01, 0.04, 4), ""),
        # Another program has a processor of its own: nothing waits, and yet the machine is busy.
        ([(0.100, 0.1)] * 5, 0.5, 1.0, Calibration(0.1, 0.0, 1.0, 4), "need 1.0 of its 4 processors"),
        # Two programs share one processor, as in a container that is allowed one.
        ([(0.1, 0.05)] * 4 + [(0.1, 0.04)], 0.5, 0.26, Calibration(0.04, 0.52, 0.04, 4), "for 52 % of its"),
        # The system does not tell; clocks differ a little.
        ([(0.100, 0.101)] * 5, 0.5, 0.0, Calibration(0.101, 0.0, 0.0, 4), ""),
    ],
)  # fmt: skip
def test_what_is_busy(
    times: list[tuple[float, float]], elapsed: float, busy: float, expected: Calibration, words: str
) -> None:
    own = sum(cpu for _, cpu in times)
    found = judged(times, START, after(elapsed, busy), own, 4)
    assert found == expected
    assert words in found.busy
    assert bool(found.busy) == bool(words)


def test_counters_of_the_system(tmp_path: Path) -> None:
    second = os.sysconf("SC_CLK_TCK")
    fields = [3 * second, second, 2 * second, 500 * second, 70 * second, second, second, 4 * second, 9, 9]
    (tmp_path / "stat").write_text(f"cpu  {' '.join(map(str, fields))}\ncpu0 1 2 3\n")
    found = conditions.now(tmp_path)
    assert (found.busy, found.steal, found.ticks) == (12.0, 4 * second, 582 * second)
    assert conditions.now(tmp_path / "missing").busy == 0.0


@pytest.fixture
def busy_loop() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield
        process.kill()


@pytest.mark.usefixtures("busy_loop")
def test_a_real_calibration(tmp_path: Path) -> None:
    name = f"calibrated-{os.getpid()}"
    found = measure({**os.environ, "PERUN_POOL_MACHINE": name, "XDG_CACHE_HOME": str(tmp_path)})
    assert found.seconds > 0
    assert 0 <= found.waited < 1
    assert 0 <= found.others <= 1.1 * found.processors
    assert found.processors == os.cpu_count()


def test_a_busy_machine_is_no_reference_for_ever(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    init(tmp_path, os.environ)
    known = KnownMachines(open_repository(tmp_path, os.environ))
    slow_busy = BUSY._replace(seconds=0.014)
    assert known.drift("a", "x86", slow_busy) == 0  # it is noted
    assert known.drift("a", "x86", BUSY._replace(seconds=0.028)) == pytest.approx(100)
    assert known.drift("a", "x86", QUIET) == 0  # it is noted anew
    assert known.drift("a", "x86", slow_busy) == pytest.approx(100)
    assert known.drift("a", "x86", QUIET._replace(seconds=0.0077)) == pytest.approx(10)
    assert known.drift("a", "another processor", slow_busy) == 0
