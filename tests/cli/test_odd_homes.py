"""Perun where things are not as on its developers' machines: each test goes once through what users do."""

import errno
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from damage import build, mutant

MATRIX = """\
vcs: {type: git, url: ..}
cmds: ['true']
collectors: [{name: time, params: {warmup: 0, repeat: 2}}]
profiles: {register_after_run: true}
"""
NOBODY = {
    f"GIT_{role}_{what}": None for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE")
}
ODD_NAME = "with space, 'quotes' \"too\", a\nline and \udcff"


class Home(NamedTuple):
    """What is odd: variables that are changed or missing (None), and what `sh` does before the command."""

    env: Mapping[str, str | None] = {}
    before: str = ""
    name: str = "odd"
    needs: str = ""


HOMES = {
    "no HOME": Home({"HOME": None, "PERUN_CONFIG_DIR": None, "GIT_CONFIG_GLOBAL": None}),
    "a home where nothing can be written": Home(
        {"HOME": "/proc/home", "PERUN_CONFIG_DIR": None, "GIT_CONFIG_GLOBAL": None, "TMPDIR": "{scratch}"}
    ),
    "umask 077": Home(before="umask 077;"),
    "LANG=C": Home({"LC_ALL": None, "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "Turkish": Home({"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr"}),
    "nobody's name": Home({**NOBODY, "EMAIL": None}),
    "a path of all bytes": Home(name=ODD_NAME),
    "half a day ahead": Home({"TZ": "XXX-13:45"}),
    "a time zone that is none": Home({"TZ": "Nowhere/Land"}),
    "two gigabytes": Home(before="ulimit -v 2097152;"),
    "one core": Home(before="exec taskset -c 0", needs="taskset"),
}
ALL_AT_ONCE = Home(
    {**{name: value for home in HOMES.values() for name, value in home.env.items()}, "LC_ALL": None,
     "HOME": None},
    "umask 077; ulimit -v 2097152;",
    ODD_NAME,
)  # fmt: skip


class Way(NamedTuple):
    """A project in an odd place, and the command there."""

    project: Any
    perun: Callable[..., Any]

    def measure(self) -> None:
        """Measure two commits."""
        (self.project.path / ".perun/local.yml").write_text(MATRIX)
        self.perun("run", "matrix", "--since", "HEAD~1", "--quiet-env")

    def go(self) -> None:
        """Measure two commits, and look at what was measured in each way."""
        self.measure()
        self.look(self.measured())
        assert self.perun("fsck").code == 0

    def measured(self) -> int:
        """How many profiles `status` has for HEAD."""
        return len(self.perun("status", "--json").json["registered"])

    def look(self, profiles: int) -> None:
        """What reads: `status`, `log`, `check` and `show`."""
        assert profiles >= 1
        assert "0@i" in self.perun("status").out
        assert "Commit 3" in self.perun("log", "--short").out
        assert self.perun("check", "all", "--json").json["schema"]
        assert json.loads(self.perun("show", "0@i", "raw").out)["header"]["cmd"] == "true"


def way(home: Home, perun: Any, command: list[str], git_repository: Any, tmp_path: Path) -> Way:
    project = git_repository(home.name, commits=3)
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    env = {name: value and value.format(scratch=scratch) for name, value in home.env.items()}
    start = home.before if home.before.startswith("exec") else f"{home.before} exec"
    program = ["sh", "-c", f'{start} "$@"', "sh", *command] if home.before else None

    def run(*arguments: str) -> Any:
        return perun(*arguments, cwd=project.path, env=env, program=program)

    run("init")
    return Way(project, run)


@pytest.fixture
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that lies about clocks and locks."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler to make a library of")
    built = tmp_path_factory.mktemp("odd") / "odd.so"
    source = Path(__file__).with_name("odd.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", built, source, "-ldl"], check=True)
    return str(built)


def test_everything_odd_at_once(perun: Any, command: Any, git_repository: Any, tmp_path: Path) -> None:
    made = way(ALL_AT_ONCE, perun, command, git_repository, tmp_path)
    made.go()
    for path in (made.project.path / ".perun").rglob("*"):
        assert not path.stat().st_mode & 0o077, path  # the umask is kept


@pytest.mark.slow
@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES)
def test_odd_homes(home: Home, perun: Any, command: Any, git_repository: Any, tmp_path: Path) -> None:
    if home.needs and shutil.which(home.needs) is None:
        pytest.skip(f"{home.needs} is not installed")
    way(home, perun, command, git_repository, tmp_path).go()


NEW_IN_GIT = (
    # Options and subcommands that came after 2.30, by the release notes of git.
    *("--path-format*", "--batch-command*", "--staged", "--write-tree", "--trailer*", "--since-as-filter*"),
    *("--exists", "--ref-format*", "--orphan", "--attr-source*", "--no-lazy-fetch", "--remerge-diff"),
    *("--diff-merges=remerge", "--exclude-hidden*", "--no-advice", "--no-optional-lazy", "-Z", "--revision*"),
    *("--all-types", "--cruft*", "--bundle-uri*", "--porcelain=3", "*%(describe*", "*%(ahead-behind*"),
)


def test_git_as_of_debian_11(perun, command, git_repository, tmp_path, environment) -> None:
    """git 2.30: what it has not is refused, and told to the test."""
    tools, refused, asked = tmp_path / "tools", tmp_path / "refused", tmp_path / "asked"
    tools.mkdir()
    script = tools / "git"
    script.write_text(
        "#!/bin/sh\n"
        "unset GIT_CONFIG_COUNT\n"
        f"echo x >>'{asked}'\n"
        'case "$*" in *"worktree list"*-z*|*"config get"*|*"config list"*|*"config set"*)\n'
        f"  echo \"$*\" >>'{refused}'; exit 129;;\nesac\n"
        'for word; do case "$word" in\n'
        f"  {'|'.join(word.replace('(', chr(92) + '(') for word in NEW_IN_GIT)})\n"
        f'    echo "$*" >>\'{refused}\'; echo "error: unknown option $word" >&2; exit 129;;\n'
        "esac; done\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    script.chmod(0o755)
    path = f"{tools}{os.pathsep}{environment['PATH']}"
    # The script refuses what it shall refuse.
    done = subprocess.run([script, "rev-parse", "--path-format=absolute", "--git-dir"], capture_output=True)
    assert done.returncode == 129
    refused.unlink()
    made = way(Home({"PATH": path}), perun, command, git_repository, tmp_path)
    made.go()
    (made.project.path / "file.txt").write_text("changed\n")
    made.perun("collect", "-c", "true", "-m", "HEAD~2", "time", "--repeat", "1", "--warmup", "0")
    made.perun("run", "--in-place", "matrix", "--since", "HEAD~1")
    made.perun("hooks", "install")
    assert (made.project.path / "file.txt").read_text() == "changed\n"
    assert not refused.exists(), refused.read_text()
    assert asked.exists()


def test_a_checkout_that_is_read_only(perun: Any, command: Any, git_repository: Any, tmp_path: Path) -> None:
    made = way(Home(), perun, command, git_repository, tmp_path)
    made.measure()
    folder = str(made.project.path)
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", mount, folder]
    if os.getuid() or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a folder read-only, where that is allowed")

    def run(*arguments: str, check: bool = True) -> Any:
        return perun(*arguments, program=[*prefix, *command], check=check)

    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}
    Way(made.project, run).look(1)
    done = run("rm", "0@i", check=False)
    assert done.code != 0
    assert "Read-only file system" in done.err
    assert before == {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}


@pytest.mark.slow
def test_a_clock_that_jumps_back(perun, command, git_repository, tmp_path, library) -> None:
    made = way(Home(), perun, command, git_repository, tmp_path)
    made.measure()

    def yesterday(*arguments: str) -> Any:
        return perun(*arguments, cwd=made.project.path, env={"LD_PRELOAD": library, "ODD_CLOCK": "-86400"})

    earlier = Way(made.project, yesterday)
    assert earlier.measured() == 1
    yesterday("run", "matrix", "--missing", "--quiet-env")
    assert earlier.measured() == 1
    yesterday("run", "matrix", "--quiet-env")
    earlier.look(2)
    assert yesterday("fsck").code == 0
    Way(made.project, made.perun).look(2)


@pytest.mark.parametrize("number", [
    pytest.param(errno.ENOLCK, id="ENOLCK"),
    pytest.param(errno.EOPNOTSUPP, id="EOPNOTSUPP", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_file_system_that_cannot_lock(number, perun, command, git_repository, tmp_path, library) -> None:
    made = way(Home(), perun, command, git_repository, tmp_path)
    (made.project.path / ".perun/local.yml").write_text(MATRIX)
    env = {"LD_PRELOAD": library, "ODD_FLOCK": str(number)}
    for arguments in (("run", "matrix"), ("collect", "-c", "true", "time", "--repeat", "1")):
        done = perun(*arguments, cwd=made.project.path, env=env, check=False)
        assert done.code not in (0, 70), arguments
        assert os.strerror(number) in done.err
        assert str(made.project.path) in done.err
        assert "keep the repository on a file system that supports flock" in done.err
    # What only reads needs no lock.
    perun("status", cwd=made.project.path, env=env)
    perun("log", "--short", cwd=made.project.path, env=env)


# -- damaged programs ----------------------------------------------------------------------------------------


COMMANDS = (("trace", "--engine", "ebpf"), ("trace", "--engine", "uftrace"), ("memory",), ("complexity",))


@pytest.mark.parametrize("programs", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_no_command_breaks(perun, git_repository, tmp_path, programs) -> None:
    folder = git_repository("odd", commits=1).path
    perun("init", cwd=folder)
    built = build(tmp_path)
    broken = []
    for number in range(programs):
        program = folder / f"program{number}"
        program.write_bytes(mutant(built[number % len(built)], random.Random(number)))
        program.chmod(0o755)
        for command in COMMANDS[number % 2 :: 2]:
            done = perun("collect", "-c", f"./{program.name}", *command, cwd=folder, check=False)
            if done.code == 70 or "internal error" in done.err:
                broken.append((number, command, done.err))
    assert not broken
