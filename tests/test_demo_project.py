"""The project that `make demo` measures: always the same history, with the commits it is made for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "demo"
CREATE_PROJECT = DEMO / "create_project.sh"
SLOW = "Write search as a loop over positions"
REPAIR = "Keep the number of nodes instead of counting them"


def create(folder: Path) -> Path:
    subprocess.run([CREATE_PROJECT, folder], check=True, capture_output=True)
    return folder


def git(project: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_history_is_long_enough_and_always_the_same(tmp_path: Path) -> None:
    first, second = create(tmp_path / "first"), create(tmp_path / "second")
    assert git(first, "rev-parse", "HEAD") == git(second, "rev-parse", "HEAD")
    subjects = git(first, "log", "--reverse", "--format=%s").splitlines()
    assert len(subjects) >= 10
    assert subjects.index(SLOW) < subjects.index(REPAIR)
    assert git(first, "status", "--porcelain") == ""


def test_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = subprocess.run([CREATE_PROJECT, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_every_version_builds_and_passes_its_tests(tmp_path: Path) -> None:
    project = create(tmp_path / "project")
    for version in git(project, "rev-list", "--reverse", "HEAD").splitlines():
        git(project, "checkout", "--quiet", version)
        subprocess.run(["make", "--silent", "clean", "all"], cwd=project, check=True)
        printed = subprocess.check_output(["./list_bench", "100"], cwd=project, text=True)
        assert printed.startswith("100 values")
        if (project / "test.cpp").exists():
            subprocess.run(["make", "--silent", "check"], cwd=project, check=True, capture_output=True)


@pytest.mark.slow
def test_demo_names_just_the_two_commits(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [DEMO / "run.sh", tmp_path / "demo"]
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "check, log, trend, changes name the 2 that matter:" in done.stdout
    assert "check, log, trend, changes name the 1 that matter:" in done.stdout
    page = tmp_path / "demo" / "dashboard" / "index.html"
    assert done.stdout.endswith(f"The dashboard is in {page}\n")
    assert page.is_file()
