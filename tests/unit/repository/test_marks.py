"""The mark of the user: one key for all processes, and no mark where no key can be kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perun.repository import marks

PLAN = {"asked": {"cmd": "./prog", "sizes": ("1", "2"), "budget": 1.5, "name": "odd \udcff"}}
CODE = """\
import sys
from pathlib import Path
from perun.repository import marks
print(marks.mark(Path("/"), {"PERUN_CONFIG_DIR": sys.argv[1]}, "kind", 1))
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PERUN_CONFIG_DIR": str(tmp_path / "settings")}


def key(environ: dict[str, str]) -> Path:
    return Path(environ["PERUN_CONFIG_DIR"], "trust", "key")


def test_what_was_written_and_read_again_has_its_mark(tmp_path: Path, environ: dict[str, str]) -> None:
    written = marks.marked(tmp_path, environ, "plan", PLAN)
    again = json.loads(json.dumps(written))
    assert marks.is_marked(tmp_path, environ, "plan", again)
    assert not marks.is_marked(tmp_path, environ, "other", again)
    assert not marks.is_marked(tmp_path / "x", environ, "plan", again)
    assert not marks.is_marked(tmp_path, environ, "plan", PLAN)
    for odd in (None, 1, "", "0" * 64, again["mark"].upper(), "\udcff", [again["mark"]]):
        assert not marks.is_marked(tmp_path, environ, "plan", {**again, "mark": odd})
    assert not marks.is_marked(tmp_path, environ, "plan", {**again, "more": 1})
    assert marks.marked(tmp_path, environ, "plan", written) == written


def test_processes_that_begin_at_once_have_one_key(environ: dict[str, str]) -> None:
    words = [sys.executable, "-c", CODE, environ["PERUN_CONFIG_DIR"]]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    told = {process.communicate()[0] for process in running}
    assert len(told) == 1 and len(told.pop().strip()) == 64
    assert [one.name for one in key(environ).parent.iterdir()] == ["key"]


@pytest.mark.parametrize("there", ["short", "another user's"])
def test_a_key_that_cannot_be_used_is_replaced(tmp_path: Path, environ: dict[str, str], there: str) -> None:
    before = marks.mark(tmp_path, environ, "kind", 1)
    if there == "short":
        key(environ).write_bytes(b"short")
    elif os.geteuid() == 0:
        os.chown(key(environ), 4321, -1)
    else:
        pytest.skip("only root can give files to another user")
    assert not marks.holds(tmp_path, environ, "kind", 1, before)
    after = marks.mark(tmp_path, environ, "kind", 1)
    assert after and after != before
    assert marks.holds(tmp_path, environ, "kind", 1, after)


def test_without_hard_links_there_is_a_key(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: Any, **options: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert marks.holds(tmp_path, environ, "kind", 1, marks.mark(tmp_path, environ, "kind", 1))
    assert [one.name for one in key(environ).parent.iterdir()] == ["key"]


def test_where_no_key_can_be_kept_nothing_is_marked(tmp_path: Path) -> None:
    nowhere = {"PERUN_CONFIG_DIR": "/proc/none"}
    assert marks.mark(tmp_path, nowhere, "kind", 1) == ""
    assert not marks.holds(tmp_path, nowhere, "kind", 1, "")
