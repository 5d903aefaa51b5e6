"""What tests of harnesses share."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from perun.core.errors import JobFailed
from perun.plugin.suites import BenchmarkCommand, HarnessContext, ToolOutput

MakeContext = Callable[..., HarnessContext]


@pytest.fixture
def context(tmp_path: Path) -> MakeContext:
    """Makes what a harness may use: it runs real programs, and each has an empty folder."""
    numbers = itertools.count()

    def run(argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> ToolOutput:
        try:
            done = subprocess.run(
                argv, cwd=folder, env={**os.environ, **environ}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=120, check=False
            )  # fmt: skip
        except OSError as problem:
            raise JobFailed(f"{argv[0]} cannot be started: {problem}") from None
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return ToolOutput(status, done.stdout, done.stderr)

    def make(seconds: float = 0.005, note: Callable[[str], None] = print) -> HarnessContext:
        scratch = tmp_path / f".scratch{next(numbers)}"
        scratch.mkdir()
        return HarnessContext(run, scratch, seconds, lambda *_: None, note)

    return make


@pytest.fixture
def alone() -> Callable[[BenchmarkCommand, Path], str]:
    """Runs what makes one benchmark alone, and gives all that it writes; it must not fail."""

    def run(command: BenchmarkCommand, folder: Path) -> str:
        environ = {**os.environ, **command.environ}
        done = subprocess.run(command.argv, cwd=folder, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run
