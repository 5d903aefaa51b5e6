"""What strangers may have put into a repository, and whether anything of it ran.

A trap is a command that leaves a file behind. The command line is that of `tests/cli`.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from perun.repository.registering import add
from perun.repository.repository import open_repository
from shared import conftest_of
from web_server import serve, server

__all__ = ["serve", "server"]
_cli = conftest_of("cli")
command, environment = _cli.command, _cli.environment
perun, terminal, project = _cli.perun, _cli.terminal, _cli.project
_template, write_profile = _cli._template, _cli.write_profile

READING = (
    ("status",),
    ("status", "--json"),
    ("log",),
    ("log", "--short"),
    ("show", "0@p", "raw"),
    ("show", "0@i", "tableof", "resources"),
    ("check", "profiles", "0@i", "0@p"),
    ("postprocessby", "0@p", "normalizer"),
    ("add", "1@p"),
    ("rm", "1@p"),
    ("config", "get", "cmds"),
    ("stats", "list-files"),
    ("fsck",),
    ("hooks", "status"),
    ("trust", "--show"),
)
"""Commands that run nothing of the repository, and work without trust."""


class Traps:
    """Commands that leave a file behind where they run. They are the same in all tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "sprung"
        self.script = folder / "trap.sh"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.script.write_text(f'#!/bin/sh\n: > "{self.folder}/$1"\n')
        self.script.chmod(0o755)

    def __call__(self, name: str) -> str:
        """A command that leaves the name behind, whatever else it is called with."""
        return f"{self.script} {name}"

    def python(self, name: str) -> str:
        """The same as a line of Python."""
        return f"open({str(self.folder / name)!r}, 'w').close()\n"

    @property
    def sprung(self) -> list[str]:
        """The names that were left behind so far."""
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(scope="session")
def _folder_of_traps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traps")


@pytest.fixture
def traps(_folder_of_traps: Path) -> Traps:
    return Traps(_folder_of_traps)


def hostile_configuration(traps: Traps) -> str:
    """A local configuration all of whose programs are traps."""
    return json.dumps(
        {
            "general": {"editor": traps("editor")},
            "cmds": [traps("cmd")],
            "workloads": ["evil"],
            "collectors": [{"name": "time", "params": {"warmup": 0, "repeat": 1}}],
            "generators": {"workload": [{"id": "evil", "type": "external", "cmd": traps("generator")}]},
            "execute": {"pre_run": [traps("pre_run")]},
            "degradation": {"collect_before_check": True},
        }
    )


def make_hostile(project: Any, traps: Traps) -> None:
    """Let the `.perun` of the project be one whose programs and plugins are traps, and commit it."""
    perun = project.path / ".perun"
    (perun / "local.yml").write_text(hostile_configuration(traps))
    for family, name in (
        ("view", "evil"), ("collect", "evil"), ("check", "evil"), ("workload", "evil"), ("vcs", "git"),
        ("postprocess", "evil"), ("vcs", "evil"), ("check", "average_amount_threshold"),
    ):  # fmt: skip
        (perun / "plugins" / family).mkdir(parents=True, exist_ok=True)
        (perun / "plugins" / family / f"{name}.py").write_text(traps.python(f"plugin-{family}-{name}"))
    project.git("add", "--force", ".perun")
    project.git("commit", "--quiet", "--message", "Everything")


@pytest.fixture(scope="session")
def _template_of_clones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clones") / "project"


@pytest.fixture
def clone(project: Any, traps: Traps, write_profile: Any, _template_of_clones: Path) -> Any:
    """A project whose `.perun` came with it: the user has decided nothing. It is the current directory."""
    if not _template_of_clones.exists():
        make_hostile(project, traps)
        for number in range(3):
            write_profile(f"{number}.perf", workload=str(number))
        write_profile("registered.perf", workload="0")
        repo = open_repository(project.path, dict(os.environ))
        add(repo, ["registered.perf"], cwd=project.path)
        shutil.copytree(project.path, _template_of_clones, symlinks=True)
    else:
        # The folder itself stays, as it is the current directory.
        for path in project.path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(_template_of_clones, project.path, symlinks=True, dirs_exist_ok=True)
    forget_decisions()
    return project


def forget_decisions() -> None:
    """Let the user be one who has not decided to trust anything."""
    shutil.rmtree(Path(os.environ["PERUN_CONFIG_DIR"], "trust"), ignore_errors=True)


@pytest.fixture
def reading() -> tuple[tuple[str, ...], ...]:
    """Commands that run nothing of the repository, and work without trust."""
    return READING
