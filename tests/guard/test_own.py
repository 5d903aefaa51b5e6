"""Perun keeps to the contracts on itself, which stand in `perun-guard.yml`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perun.repository.init import init

CONTRACTS = Path(__file__).parents[2] / "perun-guard.yml"
BIN = Path(sys.executable).parent
"""The contracts say `python`, which is to be this one."""


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(not (BIN / "python").exists(), reason="this interpreter has no name `python` beside it")
def test_start_up_costs_what_it_may(git_repository, tmp_path) -> None:
    folder = git_repository(commits=1).path
    init(folder, environ=os.environ)
    shutil.copy(CONTRACTS, folder)

    def check(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, "-m", "perun", "guard", "check", *words],
            cwd=folder, env={**os.environ, "PATH": path, "PERUN_TRUST": "1", **environ},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    kept = check()
    assert kept.returncode == 0, kept.stdout + kept.stderr
    # That is about 30 ms of imports.
    (tmp_path / "sitecustomize.py").write_text("import http.client\n")
    broken = check("version", PYTHONPATH=str(tmp_path))
    assert broken.returncode == 1 and "BROKEN" in broken.stdout, broken.stdout + broken.stderr
