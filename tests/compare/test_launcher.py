"""The launcher that measures peak memory, and what a program prints while it is measured."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perun.collect.complexity.build import ComplexityParams
from perun.collect.trace.params import TraceParams
from perun.core.process import programs
from perun.repository.jobs import PluginConfig
from perun.running.compare.instruments import quiet

TAKES = "import sys; data = bytearray(int(sys.argv[1])); data[::4096] = b'x' * len(data[::4096])"


def launched(tmp_path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    words = programs.engine(argv[0], list(argv), tmp_path / "usage")
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_it_ends_as_its_command(tmp_path: Path) -> None:
    assert launched(tmp_path, "/bin/sh", "-c", "echo said; exit 3").stdout == "said\n"
    assert launched(tmp_path, "/bin/sh", "-c", "exit 3").returncode == 3
    assert launched(tmp_path, "/bin/sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    missing = launched(tmp_path, "/no/such")
    assert (missing.returncode, missing.stderr) == (127, "cannot start /no/such: No such file or directory\n")


def test_the_peak_is_that_of_the_command(tmp_path: Path) -> None:
    assert launched(tmp_path, "/bin/sh", "-c", ":").returncode == 0
    small = programs.read(tmp_path / "usage")
    assert 100_000 < small.peak < 8_000_000  # this process has ten times as much
    assert small.real > 0
    assert launched(tmp_path, sys.executable, "-I", "-S", "-c", TAKES, str(64 << 20)).returncode == 0
    large = programs.read(tmp_path / "usage")
    assert 64 << 20 < large.peak < 100 << 20
    assert large.user + large.system > 0


def test_a_launcher_that_said_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        programs.read(tmp_path / "usage")
    (tmp_path / "usage").write_text("1.0 2")
    with pytest.raises(ValueError, match="not enough values"):
        programs.read(tmp_path / "usage")


# -- what a program prints -----------------------------------------------------------------------------------


def test_output_that_would_go_to_the_terminal_is_suppressed() -> None:
    asked = PluginConfig("trace", TraceParams(func=("sort",)))
    assert quiet(asked).params == TraceParams(func=("sort",), output_handling="suppress")


@pytest.mark.parametrize("params", [TraceParams(output_handling="capture"), ComplexityParams(), None])
def test_others_stay(params: object) -> None:
    unit = PluginConfig("any", params)
    assert quiet(unit) is unit


def test_the_fixed_loop_does_the_work_of_its_version() -> None:
    found = programs.fixed_loop()
    assert found is not None
    assert {found.version: (found.integers, found.steps)} == {1: (3_750_000, 65_000)}, "of other work"
    assert found.processor > 0 and found.wall > 0


def test_a_loop_that_cannot_run_is_no_speed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "_LOOP", tmp_path / "missing")
    assert programs.fixed_loop() is None and programs.speed_now() == {}


def test_the_loop_takes_a_small_part_of_a_session() -> None:
    clock = [0.0]

    def loop() -> programs.FixedLoop:
        clock[0] += 0.02
        return programs.FixedLoop(1, 5, 5, 20, 30)

    speed = programs.Speed(loop)
    for _ in range(1000):
        speed.visit(lambda: clock[0])
        clock[0] += 0.01  # a round
    times = speed.described()["speed"]["processor"]
    assert 15 < len(times) < 0.04 * clock[0] / 0.02
    for _ in range(200_000):
        speed.visit(lambda: clock[0])
        clock[0] += 0.3
    assert 100 <= len(speed.described()["speed"]["wall"]) < 200
