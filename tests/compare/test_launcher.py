"""The launcher that measures peak memory: it ends as its command did, and its own size does not count."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perun.core.process import programs

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
