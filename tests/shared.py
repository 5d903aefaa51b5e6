"""What one process of a run makes for all of them: each has session fixtures of its own."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from perun.core import conditions

two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 or (conditions.quota() or 2) < 2, reason="it needs two processors"
)
THOROUGH = 200
"""Examples of hypothesis in `make test-all`, of a test that names no number."""


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until it holds: for what others do, which takes as long as they have to wait for a processor."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether it has not ended; a killed one does when it gets a processor."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all processes of this run see."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def conftest_of(folder: str) -> ModuleType:
    """The `conftest` of another folder of tests, whose fixtures are wanted here as well."""
    name = f"conftest_of_{folder}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(folder) / "conftest.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def examples(count: int) -> int:
    """How many examples of so many a run takes: all in `make test-all`, else a third."""
    return count if hypothesis.settings.default.max_examples >= THOROUGH else count // 3


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """The folder, filled by the process that asks first; the others wait for it. It is not to be changed.

    :param make: fills the folder that it is given, which is empty, and gets another path when it is whole.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            new = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(new, ignore_errors=True)  # of a process whose attempt failed
            new.mkdir()
            make(new)
            new.rename(folder)
    return folder


def npm_package(factory: pytest.TempPathFactory, package: str) -> Path:
    """The folder where a package of npm, `name@version`, is installed; where it cannot be, the test is
    skipped."""

    def install(folder: Path) -> None:
        done = subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", package],
            cwd=folder, capture_output=True, text=True, check=False
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"{package} cannot be installed: {done.stderr[-200:]}")

    if not shutil.which("npm"):
        pytest.skip(f"there is no npm, which installs {package}")
    return made_once(folder_of_run(factory) / "npm" / package.replace("/", "+"), install)
