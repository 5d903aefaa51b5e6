"""A forge, and a project with a pull request on it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forge_server import FakeForge, serving
from pipelines import COLLECTOR, CONFIG, Pipeline

import perun as package


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    """A forge of its own."""
    with serving() as forge:
        yield forge


@pytest.fixture
def pipeline(tmp_path: Path, forge: FakeForge, isolated_environment: Path) -> Pipeline:
    """A project of two versions whose program costs 1000, and a stranger's clone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    (programs / "perun").write_text(f'#!/bin/sh\nexec {python} -P -m perun "$@"\n')
    (programs / "perun").chmod(0o755)
    source = str(Path(package.__file__).parents[1])
    environ = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", "")))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RECORD": str(tmp_path / "record"),
        "NO_PROXY": "*",
    }
    for name in ("PERUN_TOKEN", "GITHUB_TOKEN", "GITHUB_ACTIONS", "GITLAB_CI"):
        environ.pop(name, None)
    found = Pipeline(tmp_path, forge, environ)
    found.git(".", "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    found.clone("keeper")
    files = {
        ".perun/local.yml": CONFIG,
        ".perun/plugins/collect/counter.py": COLLECTOR,
        "run.sh": "exit 0\n",
        "build.sh": "exit 0\n",
        "cost": "900\n",
    }
    found.push("keeper", "main", files)
    found.push("keeper", "main", {"cost": "1000\n"})
    found.clone("stranger")
    return found
