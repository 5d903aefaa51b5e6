"""Islands inside of a process: contexts of one's own, recorded one by one.

A process that begins to record does so to its end. So the checks are functions of a program, which is run
once with each recorder.
"""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from perun.island.island import Island

PROGRAM = Path(__file__).with_name("programs") / "islands.py"
CHECKS = [
    node.name
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


@cache
def told(recorder: str) -> dict[str, str]:
    """Of each check the traceback, "" where it passed."""
    with TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, str(PROGRAM), recorder, folder], capture_output=True, text=True, check=True
        )
    found: dict[str, str] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("recorder", ["native", "python"])
def test_islands(recorder: str, check: str) -> None:
    assert told(recorder)[check] == ""


def test_wrong_code_is_refused_at_once() -> None:
    with pytest.raises(SyntaxError):
        Island("x = = 1", "A")


def in_a_process(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {"TMPDIR": str(folder), "PATH": ""}
    words = [sys.executable, "-c", f"from perun.island.island import *\n{code}"]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_limits_hold_for_the_process_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    run = in_a_process(
        "record_here(Limits.parse(['filesopened=0']))\nIsland('open(\"/etc/hosts\")', 'A').evaluate({})",
        tmp_path,
    )
    assert "OSError: [Errno 24] Too many open files: limit filesopened=0" in run.stderr
    assert list(tmp_path.iterdir()) == []
