"""Names and texts of strangers on the terminal: no control character gets there, or to pipes."""

import json
import os

import pytest

from perun.repository.registering import add
from perun.repository.repository import open_repository

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
"""Sets the title, clears the screen, and turns the direction of what follows."""
FORBIDDEN = ("\x1b]", "\x07", "\x1b[2J", "\x9b")
COMMANDS = (
    ("status",),
    ("log",),
    ("log", "--short"),
    ("show", "0@i", "tableof", "resources"),
    ("show", "0@i", "bars", "--terminal"),
    ("check", "profiles", "0@i", "0@p"),
    ("fsck",),
    ("trust", "--show"),
    ("run", "matrix"),
    ("rm", "nope" + EVIL),
    ("stats", "list-files"),
    ("temp", "list"),
)
ON_A_TERMINAL = (("status",), ("log",), ("trust", "--show"), ("run", "matrix"))


@pytest.fixture
def hostile(project, write_profile, perun):
    project.git("commit", "--quiet", "--allow-empty", "--message", f"Subject {EVIL}\n\nBody {EVIL}",
                environ={"GIT_AUTHOR_NAME": f"Ada {EVIL}"})  # fmt: skip
    texts = {"cmd": f"./app{EVIL}", "args": EVIL, "workload": f"in{EVIL}.txt"}
    write_profile(f"registered{EVIL}.perf", **texts)
    add(open_repository(project.path, dict(os.environ)), ["0@p"], cwd=project.path)
    write_profile(f"pending{EVIL}.perf", **texts)
    jobs = project.path / ".perun" / "jobs"
    (jobs / f"damaged{EVIL}.perf").write_bytes(b"{")
    (project.path / ".perun" / "stats" / EVIL).mkdir(parents=True, exist_ok=True)
    (project.path / ".perun" / "tmp").mkdir(exist_ok=True)
    (project.path / ".perun" / "tmp" / f"temp{EVIL}").write_text("x")
    plugin = project.path / ".perun" / "plugins" / "view" / f"evil{EVIL}.py"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.touch()
    local = {"vcs": {"type": "git", "url": ".."}, "cmds": [f"./app{EVIL}"], "args": [EVIL]}
    (project.path / ".perun" / "local.yml").write_text(json.dumps(local))
    project.git("add", "--force", ".perun/local.yml")
    perun("trust", "--revoke")
    return project


def test_no_control_character_reaches_a_pipe(perun, hostile):
    for arguments in COMMANDS:
        done = perun(*arguments, check=False)
        assert done.code != 70, (arguments, done)
        for one in FORBIDDEN:
            assert one not in done.out + done.err, (arguments, done)


def test_no_control_character_reaches_a_terminal(terminal, hostile):
    for arguments in ON_A_TERMINAL:
        done = terminal("--no-pager", *arguments, keys="n\n")
        assert done.code != 70, (arguments, done)
        shown = done.out.replace("^[", "")  # what was typed is echoed
        for one in FORBIDDEN:
            assert one not in shown, (arguments, shown)
