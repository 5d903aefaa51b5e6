"""The tests of this folder fail where the code that they test is wrong: small errors, one at a time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import perun

HERE: Final = Path(__file__).parent
MUTANTS: Final = [tuple(one) for one in json.loads((HERE / "mutants.json").read_text())]
PACKAGE: Final = Path(perun.__file__).parent
KILLED: Final = 0.95


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS)
def test_each_mutant_is_of_this_code(name: str, old: str, new: str) -> None:
    assert (PACKAGE / "measurement" / name).read_text().count(old) == 1
    assert old != new


@pytest.mark.slow
def test_the_tests_notice_nearly_all_errors(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "perun", ignore=shutil.ignore_patterns("__pycache__"))
    alive = []
    for name, old, new in MUTANTS:
        file = site / "perun" / "measurement" / name
        text = file.read_text()
        file.write_text(text.replace(old, new))
        if _passes(site):
            alive.append(f"{name}: {new}")
        file.write_text(text)
    assert _passes(site), "the tests fail without any error"
    assert len(alive) <= (1 - KILLED) * len(MUTANTS), alive


def _passes(site: Path) -> bool:
    """Whether the quick tests of measurement pass with the package of that folder."""
    tests = [HERE / "test_verdict.py", HERE / "test_series.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
    environ = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    environ.pop("PYTEST_XDIST_WORKER", None)
    command += map(str, tests)
    done = subprocess.run(command, env=environ, cwd=HERE, capture_output=True, check=False)
    return done.returncode == 0
