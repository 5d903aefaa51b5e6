"""The real command in a process of its own, and small projects for it to work on.

A command runs in the current directory: an empty folder, or with the fixture `project` the project.
"""

import itertools
import json
import os
import pty
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import perun as package
from answer_forms import hold_form
from command_server import Child
from perun.profile.format.json import dumps_pending
from perun.repository import trust
from perun.repository.repository import open_repository
from pools import PoolProject
from profiles import profile_of
from shared import folder_of_run, made_once

FIRST_PROFILE = 1_714_557_600
"""2024-05-01 10:00:00 UTC, when the first profile of a test was written; each further one a second later."""
TIME_LIMIT = 240


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and all that it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON; an answer of a command must be of the form that its schema names."""
        answer = json.loads(self.out)
        if isinstance(answer, dict) and "schema" in answer:
            hold_form(answer)
        return answer

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()


# -P, as the installed script does not look for modules in the current directory either.
COMMAND = [sys.executable, "-P", "-m", "perun"]


@pytest.fixture(scope="session")
def command() -> list[str]:
    """How `perun` is called here, for tests that start it themselves."""
    return COMMAND


@pytest.fixture
def environment(isolated_environment: Path) -> dict[str, str]:
    """What `perun` finds in its environment: this very package, wherever it runs, and a fixed time zone."""
    source = str(Path(package.__file__).parents[1])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        # What is installed is compiled already; what tests make stays as they made it.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "default",
        "TERM": "xterm",
        "TZ": "UTC",
    }
    environment.pop("PYTHONUNBUFFERED", None)  # buffering is that of a user
    return environment


@pytest.fixture
def perun(command, environment, command_server, tmp_path, monkeypatch) -> Callable[..., Outcome]:
    """Run the command: `perun("add", "0@p")`, which must succeed.

    Where it must fail, with the code 6, and say something: `perun("add", "0@q", code=6, err="no profile")`;
    `err` and `out` are texts that the streams must contain. With `check=False` it may end as it will.

    That is a fork of a process that has imported it (:mod:`command_server`), where nothing speaks against it.

    Standard input is empty, or the text `input`. `env` is added to the environment; None removes a name.
    `program` is how another installation is called. Neither stream may ever show a traceback, unless the
    command asks for that: `traced`.
    """
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str | Path,
        cwd: Path | None = None,
        check: bool = True,
        code: int = 0,
        err: str | tuple[str, ...] = (),
        out: str | tuple[str, ...] = (),
        input: str = "",
        env: Mapping[str, str | None] | None = None,
        program: list[str] | None = None,
        traced: bool = False,
    ) -> Outcome:
        merged = {**environment, **(env or {})}
        given = {name: value for name, value in merged.items() if value is not None}
        words = [str(argument) for argument in arguments]
        called = program or command
        server = command_server(environment) if called == COMMAND else None
        if server is not None and server.suits(given):
            ended, *streams = server.run(words, cwd or Path.cwd(), given, input.encode(), TIME_LIMIT)
        else:
            done = subprocess.run(
                [*called, *words], cwd=cwd, env=given, input=input.encode(), capture_output=True,
                timeout=TIME_LIMIT, check=False
            )  # fmt: skip
            ended, *streams = done.returncode, done.stdout, done.stderr
        outcome = Outcome(ended, *(stream.decode(errors="surrogateescape") for stream in streams))
        assert traced or "Traceback" not in outcome.out + outcome.err, outcome.err
        assert "Warning" not in outcome.err, outcome.err  # of Python: a file left open, something deprecated
        if check:
            assert outcome.code == code, f"{' '.join(words)}: {outcome}"
        for texts, stream in ((err, outcome.err), (out, outcome.out)):
            for text in [texts] if isinstance(texts, str) else texts:
                assert text in stream, f"{' '.join(words)}: {text!r} is not in: {outcome}"
        return outcome

    return run


@pytest.fixture
def terminal(command, perun, environment, command_server) -> Any:
    """Run the command on a terminal: `terminal("show", "x", "raw", keys="y\\n", columns=60)`.

    What it wrote, on either stream, is `out`; what was typed is echoed there. `seen` is called with all that
    was written so far, each time that there is more. Without `errors` standard error goes nowhere, and with
    it a bar of progress, which is drawn where a busy machine takes longer than a second.
    """

    def run(
        *arguments: str | Path,
        keys: str = "",
        columns: int = 200,
        env: Mapping[str, str] | None = None,
        seen: Callable[[str], object] = lambda text: None,
        errors: bool = True,
    ) -> Outcome:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        given, words = {**environment, **(env or {})}, [str(argument) for argument in arguments]
        server = command_server(environment) if command == COMMAND else None
        process: Child | subprocess.Popen[bytes]
        with open(os.devnull, "wb") as nowhere:
            streams = (theirs, theirs, theirs if errors else nowhere.fileno())
            if server is not None and server.suits(given):
                process = server.start(words, Path.cwd(), given, streams)
            else:
                stdin, stdout, stderr = streams
                process = subprocess.Popen(
                    [*command, *words], stdin=stdin, stdout=stdout, stderr=stderr, env=given,
                    start_new_session=True,
                )  # fmt: skip
        os.close(theirs)
        os.write(ours, keys.encode())
        written = b""
        try:
            while piece := os.read(ours, 1 << 16):
                written += piece
                seen(written.decode(errors="replace"))
        except OSError:  # how Linux says that the other side was closed
            pass
        code = process.wait(TIME_LIMIT)
        os.close(ours)
        assert b"Traceback" not in written, written.decode()
        return Outcome(code, written.decode().replace("\r\n", "\n"), "")

    return run


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of_run(tmp_path_factory) / "project"


@pytest.fixture
def project(git_repository, perun, _template, monkeypatch) -> Any:
    """A git repository with three commits and `perun init`, which is the current directory.

    It is a `GitRepository`: `project.path`, `project.head`, `project.git(...)`, `project.commit(...)`.
    """

    def make(folder: Path) -> None:
        made = git_repository("template", commits=3)
        perun("init", cwd=made.path)
        for sample in (made.path / ".git" / "hooks").glob("*.sample"):
            sample.unlink()
        shutil.move(made.path, folder / "project")

    # A copy is ten times as quick.
    repository = git_repository(commits=3, template=made_once(_template, make) / "project")
    trusting(repository)
    monkeypatch.chdir(repository.path)
    return repository


@pytest.fixture
def made_before(project, tmp_path_factory, monkeypatch) -> Callable[[str, Callable[[], object]], None]:
    """Bring the project into a state that the first test that asks makes: `made_before("measured", make)`.

    The states have names of their own. The times of `write_profile` begin anew after it.
    """

    def bring(name: str, make: Callable[[], object]) -> None:
        def fill(folder: Path) -> None:
            make()
            shutil.copytree(project.path, folder / "project", symlinks=True)
            (folder / "commits").write_text(str(project._commits))

        kept = made_once(folder_of_run(tmp_path_factory) / f"state-{name}", fill)
        shutil.rmtree(project.path)
        shutil.copytree(kept / "project", project.path, symlinks=True)
        project._commits = int((kept / "commits").read_text())
        trusting(project)
        monkeypatch.chdir(project.path)

    return bring


def trusting(project: Any) -> None:
    """Let the user of this test trust the project: `perun init` was in the home folder of another one."""
    opened = open_repository(project.path, os.environ)
    trust.grant(opened.root, opened.config, opened.environ)


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path, int], None]]:
    """Mounts a file system of so many megabytes on a folder; skips the test where that is not allowed."""
    mounted: list[Path] = []

    def mount(folder: Path, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", folder]
        if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted: that needs root")
        mounted.append(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def write_profile(project: Any) -> Callable[..., Path]:
    """Write the file of a time profile and get its path: `write_profile("a.perf", workload="big.txt")`.

    It is pending in the project, where no other `folder` is named, and its origin is HEAD. Profiles are
    a second apart, in the order in which they are written.
    """
    seconds = itertools.count(FIRST_PROFILE)

    def write(
        name: str = "profile.perf",
        *,
        folder: Path | None = None,
        origin: str | None = "HEAD",
        type_: str = "time",
        cmd: str = "./app",
        args: str = "",
        workload: str = "input.txt",
        collector: str = "time",
        postprocessors: Iterable[str] = (),
        amounts: Iterable[float] = (1.0, 1.5, 2.0),
        seconds_since_1970: int | None = None,
    ) -> Path:
        profile = profile_of(
            ({"amount": one, "order": n, "uid": cmd, "subtype": "real"} for n, one in enumerate(amounts)),
            type_, cmd=cmd, args=args, workload=workload, collector=collector, postprocessors=postprocessors,
        )  # fmt: skip
        if origin is not None:
            profile["origin"] = project.head if origin == "HEAD" else project.git("rev-parse", origin)
        path = (folder or project.path / ".perun" / "jobs") / name
        path.write_bytes(dumps_pending(profile))
        moment = next(seconds) if seconds_since_1970 is None else seconds_since_1970
        os.utime(path, (moment, moment))
        return path

    return write


@pytest.fixture
def pool(project, command, environment, tmp_path) -> Iterator[PoolProject]:
    """A project for a pool, whose machines have locks of their own."""
    made = PoolProject(project, command, environment, tmp_path)
    yield made
    made.close()


@pytest.fixture
def share(environment) -> Callable[[str], None]:
    """Write the configuration that all projects of the user share."""

    def write(text: str) -> None:
        folder = Path(environment["PERUN_CONFIG_DIR"])
        folder.mkdir(exist_ok=True)
        (folder / "shared.yml").write_text(text)

    return write


@pytest.fixture
def trusted(project, share) -> Any:
    """The project, whose plugins the user trusts."""
    share(f"plugins: {{trusted: [{project.path}]}}\n")
    return project


@pytest.fixture
def start(command, environment) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the command in the current directory with pipes, and go on; `env` adds to the environment."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, program: Iterable[str] = (), env: Any = None, **options: Any) -> Any:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = [*(program or command), *arguments]
        started.append(subprocess.Popen(words, env={**environment, **(env or {})}, **{**pipes, **options}))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def fake(trusted) -> str:
    """The collector `fake` of the module :mod:`fake_collector`, which the project has and the user trusts."""
    plugins = trusted.path / ".perun/plugins/collect"
    plugins.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("fake_collector.py"), plugins / "fake.py")
    return "{name: fake}"


@pytest.fixture
def configure(project: Any) -> Callable[[str], None]:
    """Write the local configuration, as a user does in the editor."""

    def write(text: str) -> None:
        (project.path / ".perun/local.yml").write_text(f"vcs:\n  type: git\n  url: ..\n{text}")

    return write


@pytest.fixture
def record(tmp_path: Path, environment: dict[str, str]) -> Path:
    """The file `$RECORD`, where the programs of the tests note what they do."""
    path = tmp_path / "record"
    environment["RECORD"] = str(path)
    return path
