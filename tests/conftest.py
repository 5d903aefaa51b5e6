"""What all tests share: an environment without traces of the user, and real git repositories."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
import sqlite3.dbapi2
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import hypothesis
import pytest

import measured_history
import starting
from command_server import Server
from compiling import CompilerCache
from covering import mark_the_rest_slow
from shared import THOROUGH, folder_of_run, made_once

hypothesis.settings.register_profile("dev", deadline=None, max_examples=15)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")

# What is started in the background ignores these, and so would all that it starts: tests interrupt processes.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

FIRST_COMMIT = datetime(2024, 3, 4, 9, 0, tzinfo=UTC)
USER_SETTINGS = ("GIT_", "PERUN_", "XDG_", "LC_", "LANG", "PAGER", "EDITOR", "VISUAL", "NO_COLOR", "CLICOLOR")
"""Starts of the names of variables that change what git or Perun do."""
GIT_CONFIG = "[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n"
"""Each commit would start another process, to look whether there is enough to pack: there never is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the user choose how `perun` is started."""
    parser.addoption("--fresh-processes", action="store_true", help="start an interpreter for each perun")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start half as many processes again as there are processors: tests wait a third of their time."""
    if config.option.numprocesses != "auto" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    processors = len(os.sched_getaffinity(0))
    return processors + processors // 2


def pytest_configure(config: pytest.Config) -> None:
    """Share the work of the start with the other processes."""
    starting.begin_elsewhere(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In the process that only starts others, make what they need."""
    if session.config.getoption("numprocesses", None):
        starting.make_tables()
    else:
        gc.disable()  # almost nothing of what is collected is garbage


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the combinations of parameters that show nothing new to `make test-all`."""
    starting.in_order(items)
    mark_the_rest_slow(items)


def pytest_collection_finish() -> None:
    """No search for garbage is to look at the tests again: they live to the end of the process."""
    gc.enable()
    gc.freeze()


@pytest.fixture(scope="session")
def command_server(request: pytest.FixtureRequest) -> Iterator[Callable[[Mapping[str, str]], Server | None]]:
    """Get the server that runs `perun`, made at the first call in the environment given; None for none."""
    made: list[Server] = []

    def get(environ: Mapping[str, str]) -> Server | None:
        if not made and not request.config.getoption("--fresh-processes"):
            made.append(Server(environ))
        return made[0] if made else None

    yield get
    for server in made:
        server.close()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # `mktemp` would list all folders of all tests before it names another one.
    folder = tmp_path_factory.mktemp("homes")
    return map(folder.joinpath, map(str, itertools.count()))


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _numbers: Iterator[int]
) -> Path:
    """As pytest's, which lists the folders of all tests before this one in order to name another."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def isolated_environment(monkeypatch: pytest.MonkeyPatch, _homes: Iterator[Path]) -> Path:
    """A home folder of its own for each test; git and Perun see no settings of the user or the machine."""
    home = next(_homes)
    home.mkdir()
    git_config = home / "gitconfig"
    git_config.write_text(GIT_CONFIG)
    for name in list(os.environ):
        if name.startswith(USER_SETTINGS):
            monkeypatch.delenv(name)
    settings = {
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PAGER": "cat",
        "PERUN_CONFIG_DIR": str(home / "perun"),
        "GIT_CONFIG_GLOBAL": str(git_config),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Ada Lindqvist",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": FIRST_COMMIT.isoformat(),
        "GIT_COMMITTER_NAME": "Ada Lindqvist",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_COMMITTER_DATE": FIRST_COMMIT.isoformat(),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return home


class OwnDatabase(sqlite3.Connection):
    """A connection to SQLite that warns, as all do since Python 3.13, where nobody closes it."""

    _is_closed = True  # also where it cannot be opened

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        super().close()

    def __del__(self) -> None:
        if not self._is_closed:
            warnings.warn("a connection to SQLite was never closed", ResourceWarning, 2, source=self)


if sys.version_info < (3, 13):
    sqlite3.dbapi2.connect = sqlite3.connect = functools.partial(sqlite3.connect, factory=OwnDatabase)


@dataclass
class GitRepository:
    """A git repository on disk. Its commits are a minute apart and have the same checksums in every run."""

    path: Path
    _commits: int = field(default=0, repr=False)

    def git(self, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
        """Run git in the repository; what it printed, without the last line break."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of the working directory; paths are relative to it."""
        for name, content in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str = "", files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit everything, after writing `files`; its full checksum. The commit may be empty."""
        self.write(files or {})
        date = (FIRST_COMMIT + timedelta(minutes=self._commits)).isoformat()
        self._commits += 1
        self.git("add", "--all")
        self.git(
            *("commit", "--quiet", "--allow-empty", "--message", message or f"Commit {self._commits}"),
            environ={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
        )
        return self.head

    @property
    def head(self) -> str:
        """The full checksum of HEAD; that of a branch is read from the file that a commit writes."""
        try:
            of_branch = (self.path / ".git/HEAD").read_text().removeprefix("ref: ").rstrip()
            return (self.path / ".git" / of_branch).read_text().rstrip()
        except OSError:
            return self.git("rev-parse", "HEAD")


@pytest.fixture
def git_repository(tmp_path: Path) -> Callable[..., GitRepository]:
    """Make a git repository: `git_repository(commits=3)`, `git_repository("other")`; its branch is `main`.

    With `template` it is a copy of another one, which has so many commits.
    """

    def make(name: str = "project", *, commits: int = 0, template: Path | None = None) -> GitRepository:
        repository = GitRepository(tmp_path / name)
        if template is not None:
            shutil.copytree(template, repository.path, symlinks=True)
            repository._commits = commits
            return repository
        repository.path.mkdir(parents=True)
        repository.git("init", "--quiet", "--initial-branch=main")
        for number in range(1, commits + 1):
            repository.commit(f"Commit {number}", {"file.txt": f"{number}\n"})
        return repository

    return make


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> CompilerCache:
    """Compile something, or find it where a test of this run has: `compiled_once("cc", "-O2", source)`."""
    return CompilerCache(folder_of_run(tmp_path_factory) / "compiled")


@pytest.fixture(scope="session")
def memory_recorder() -> Path:
    """The recorder of allocations that was installed."""
    from perun.collect.memory.collector import LIBRARY

    return LIBRARY


@pytest.fixture(scope="session")
def complexity_runtime() -> Path:
    """The runtime that records calls that was installed."""
    from perun.collect.complexity.collector import LIBRARY

    return LIBRARY


@pytest.fixture(scope="session")
def counting_runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, whose clock counts what a program executes: durations that are the same in each run.

    The program is to be compiled with the options that `traced.counted` tells.
    """
    tests = Path(__file__).parent
    sources = tests.parent / "src" / "perun" / "collect" / "complexity" / "native"
    clock = tests / "native" / "programs" / "counted_clock.h"
    library = tmp_path_factory.mktemp("counting") / "libcounting.so"
    options = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,now"]
    argv = ["cc", *options, "-include", clock, "-o", library, *sorted(sources.glob("*.c")), "-pthread"]
    subprocess.run(argv, check=True)
    return library


@pytest.fixture(scope="session")
def measured_template(tmp_path_factory: pytest.TempPathFactory) -> measured_history.Measured:
    """Forty measured commits, of which one doubles the costs, with a tag and a branch of four commits."""

    def make(folder: Path) -> None:
        environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        made = measured_history.make(folder / "project", side=4, tags={"v1.0": 20}, environ=environ)
        (folder / "commits.json").write_text(json.dumps([made.main, made.side]))

    shared = made_once(folder_of_run(tmp_path_factory) / "measured", make)
    # Some tests serve it, which writes caches: each process has a copy.
    folder = tmp_path_factory.mktemp("measured") / "project"
    shutil.copytree(shared / "project", folder, symlinks=True)
    return measured_history.Measured(folder, *json.loads((shared / "commits.json").read_text()))


@pytest.fixture
def measured(measured_template: measured_history.Measured, tmp_path: Path) -> measured_history.Measured:
    """A copy of it, to be changed."""
    folder = tmp_path / "project"
    shutil.copytree(measured_template.path, folder, symlinks=True)
    return measured_history.Measured(folder, list(measured_template.main), list(measured_template.side))
