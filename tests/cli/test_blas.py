"""Numpy starts no threads within Perun, and nothing that Perun runs inherits how that is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perun.cli.boundary import VARIABLE

PROGRAM = """
import os, subprocess, sys
from perun.cli import boundary as blas
blas.keep_to_one_thread()
import numpy
print(len(os.listdir("/proc/self/task")))
print(subprocess.run(["printenv", blas.VARIABLE], stdout=subprocess.PIPE, text=True).stdout.strip())
print(os.environ.get(blas.VARIABLE, ""))
print(numpy.__spec__.name, any(isinstance(finder, blas._Finder) for finder in sys.meta_path))
"""


def lines(environ: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture
def environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not list threads")
def test_one_thread_and_nothing_inherited(environ: dict[str, str]) -> None:
    assert lines(environ) == ["1", "", "", "numpy False"]


def test_the_user_decides(environ: dict[str, str]) -> None:
    _, inherited, seen, _ = lines({**environ, VARIABLE: "2"})
    assert (inherited, seen) == ("2", "2")
