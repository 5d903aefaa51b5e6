"""How commands end that cannot do their work: the codes of `perun.core.errors.EXIT_CODES`, and what is
told."""

import fcntl
import os
import re
import signal
import subprocess
import time

import pytest

from perun.core.errors import EXIT_CODES


@pytest.fixture
def shell(command, environment):
    """Run a line of the shell in which `$PERUN` is the command."""

    def run(line, **env):
        return subprocess.run(
            ["bash", "-c", line], env={**environment, **env, "PERUN": " ".join(command)}, capture_output=True,
            text=True, timeout=60, check=False
        )  # fmt: skip

    return run


@pytest.fixture
def broken(tmp_path, environment):
    """An environment in which `perun status` has a bug."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import perun.history.status as status\n"
        "def broken(repo, revision=None):\n    raise ZeroDivisionError('induced \\x1b[31m')\n"
        "status.status = broken\n"
    )
    return {"PYTHONPATH": f"{folder}{os.pathsep}{environment['PYTHONPATH']}"}


LINES = [
    "status", "log", "log --json", "add 0@p", "rm 0@p", "show 0@p raw", "show x raw", "check head",
    "check all", "run matrix", "fsck", "recover", "collect -c ls time", "status --sort-by time",
    "config --local get vcs.type"
]  # fmt: skip


def test_outside_of_a_repository(perun, tmp_path):
    for line in LINES:
        failed = perun(*line.split(), code=3)
        assert failed.err.startswith(f"error: no Perun repository at {tmp_path} or above it\nhint: ")
        assert "perun init" in failed.err
        assert failed.out == ""
        assert list(tmp_path.iterdir()) == []


WRONG = [
    ("chekc", "Did you mean check?"),
    ("nothing-like-it", "No such command 'nothing-like-it'"),
    ("config gett x", "Did you mean 'get'?"),
    ("run matrx", "matrix"),
    ("status --shrot", "--short"),
    ("log --jsno", "--json"),
    ("add", "Missing argument 'PROFILE...'"),
    ("rm -m", "'-m' requires an argument"),
    ("status HEAD extra", "unexpected extra argument (extra)"),
    ("status --sort-by", "requires an argument"),
    ("completion tcsh", "'bash', 'zsh', 'fish'"),
]


def test_wrong_usage(perun, project):
    for line, message in WRONG:
        failed = perun(*line.split(), code=2, err=message)
        error, hint = failed.err.splitlines()
        assert error.startswith("error: ")
        assert hint.startswith(("hint: usage: perun ", "hint: see: perun"))
        assert hint.rstrip(")").endswith(" --help")
        assert failed.out == ""


MISPLACED = [
    ("status -v", "-v (--verbose) stands before the word 'status': perun -v status"),
    ("log --no-pager", "--no-pager stands before the word 'log': perun --no-pager log"),
    ("run matrix -c", "-c (--crawl-parents) stands before the word 'matrix': perun run -c matrix"),
    ("hooks install --metrics x", "--metrics stands before the word 'hooks': perun --metrics ... hooks"),
]


def test_an_option_in_the_wrong_place(perun, project):
    for line, hint in MISPLACED:
        assert perun(*line.split(), code=2).err.splitlines()[1] == f"hint: {hint}"


def test_a_broken_repository_of_git(perun, project):
    (project.path / ".git").rename(project.path / "git")
    for line in ("status", "log", "add 0@p", "check head"):
        assert perun(*line.split(), check=False).code in (4, 6)
    perun("status", code=4, err=f"{project.path} is not in a git repository")


def test_without_git(perun, project, tmp_path):
    perun("status", env={"PATH": str(tmp_path)}, code=4, err=("git", "hint:"))


def test_a_damaged_index(perun, project, write_profile):
    write_profile("old.perf", origin="HEAD~1")
    write_profile("a.perf")
    perun("add", "--to-origin", "0@p-1@p")
    write_profile("b.perf")
    head = project.head
    index = project.path / ".perun" / "objects" / head[:2] / head[2:]
    index.write_bytes(index.read_bytes()[:-7])
    files = {path: path.read_bytes() for path in (project.path / ".perun").rglob("*") if path.is_file()}
    for line in ("status", "show 0@i raw", "show a.perf raw", "add 0@p", "rm 0@i", "rm a.perf", "check head"):
        perun(*line.split(), code=6, err=str(index))
    assert perun("show", "-m", "HEAD~1", "0@i", "raw").json["header"]["cmd"] == "./app"
    history = perun("log", "--short", code=6, err=str(index))
    assert len(history.lines) == 4
    assert re.search(r"\(1\|0\|0\|1 profiles\) .* Commit 2", history.out)
    changed = {path for path, content in files.items() if path.read_bytes() != content}
    assert {path.name for path in changed} <= {".lock"}


def test_more_than_one_error_is_no_reason_to_lose_the_first(perun, project):
    local = project.path / ".perun" / "local.yml"
    local.write_text("vcs: {type: git}\ncmds: {a: 1}\n")
    perun("run", "matrix", code=5, err=f"{local}:2")


@pytest.mark.parametrize(
    "line",
    ["log --short", "log", "log --json", "status", "--version", "--help", "log --help", "show 0@p raw"],
)
def test_a_reader_that_goes_away(start, project, write_profile, line):
    write_profile()
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*line.split(), stdout=writer)
    os.close(writer)
    assert process.communicate()[1] == b""
    assert process.returncode == 141


def test_a_reader_that_has_seen_enough(shell, git_repository, perun):
    repository = git_repository("long")
    commits = []
    for number in range(1, 5001):
        commits += ["commit refs/heads/main", f"mark :{number}", "committer A <a@b> 1700000000 +0000"]
        commits += ["data 1", "x"]
        commits += [f"from :{number - 1}"] if number > 1 else []
    text = "\n".join(commits) + "\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository.path, input=text.encode(), check=True)
    perun("init", cwd=repository.path)
    done = shell(f"cd {repository.path}; $PERUN log | head -n 1; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == (f"Minor Version {repository.head}\n141\n", "")


@pytest.mark.each_value("line", "unbuffered")
@pytest.mark.each_value("unbuffered", "line")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("line", ["status", "log -s", "--version", "--help", "log --help"])
def test_an_output_that_is_full(shell, project, line, unbuffered):
    done = shell(f"$PERUN {line} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 3
    assert "No space left on device" in done.stderr
    assert "Exception" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.each_value("line code", "closed")
@pytest.mark.each_value("line code", "closed")
@pytest.mark.parametrize(("line", "code"), [("status", 0), ("--version", 0), ("log nope", 4), ("add 0@p", 0)])
@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_closed_streams(shell, project, write_profile, line, code, closed):
    write_profile()
    done = shell(f"(exec {closed}; $PERUN {line})")
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
    assert b"error:" not in b"".join(
        path.read_bytes() for path in project.path.rglob(".perun/**/*") if path.is_file()
    )


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupted_while_it_waits(start, project, write_profile, number, code):
    profile = write_profile()
    lock = project.path / ".perun" / ".lock"
    with open(lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = start("rm", "0@p")
        deadline = time.monotonic() + 120
        while not _has_open(process.pid, lock):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (code, b"", b"")
    assert profile.exists()


def _has_open(pid, path):
    folder = f"/proc/{pid}/fd"
    try:
        return str(path) in [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
    except OSError:
        return False  # one was closed meanwhile


def test_a_bug_is_reported(perun, project, broken):
    failed = perun("status", "--short", env=broken, code=70)
    [report] = (project.path / ".perun" / "logs").glob("crash-*.txt")
    assert "Perun failed unexpectedly: ZeroDivisionError: induced \\x1b[31m" in failed.err
    assert str(report) in failed.err
    text = report.read_text()
    assert "ZeroDivisionError: induced" in text
    assert "'status' '--short'" in text
    assert "Python 3." in text


def test_a_bug_outside_of_a_repository_is_reported_elsewhere(perun, environment, tmp_path):
    folder = tmp_path / "bug"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import perun.repository.config as config\nconfig.get_value = lambda *given: 1 / 0\n"
    )
    env = {"PYTHONPATH": f"{folder}{os.pathsep}{environment['PYTHONPATH']}", "TMPDIR": str(tmp_path)}
    failed = perun("config", "get", "vcs.type", env=env, code=70)
    [report] = tmp_path.glob("crash-*.txt")
    assert str(report) in failed.err


def test_developers_see_the_traceback(start, project, broken):
    process = start("--dev-mode", "status", env=broken)
    _, err = process.communicate()
    assert process.returncode == 1
    assert b"ZeroDivisionError: induced" in err.splitlines()[-1]
    assert list((project.path / ".perun" / "logs").iterdir()) == []


def test_with_vv_a_bug_shows_its_traceback_too(perun, project, broken):
    failed = perun("-vv", "status", env=broken, check=False, traced=True)
    assert failed.code == 70
    assert "Traceback (most recent call last)" in failed.err
    assert "ZeroDivisionError: induced \\x1b[31m" in failed.err
    [report] = (project.path / ".perun" / "logs").glob("crash-*.txt")
    assert failed.err.rstrip().endswith(f"please report it with {report}")


@pytest.mark.parametrize("flag", ["-vv", "--dev-mode"])
def test_the_traceback_of_a_mistake_for_who_asks_for_it(perun, project, flag):
    plain = perun("show", "nope", "raw", check=False)
    failed = perun(flag, "show", "nope", "raw", check=False, traced=True)
    assert failed.code == plain.code == 6
    assert failed.err.startswith("Traceback (most recent call last)")
    assert "lookup.py" in failed.err
    assert failed.err.endswith(plain.err)
    assert "Traceback" in perun(flag, "show", "--nope", check=False, traced=True).err
    assert list((project.path / ".perun" / "logs").iterdir()) == []


@pytest.fixture
def failing(perun, project, write_profile, environment):
    """A view, a postprocessor and a check of the project, each of which has a bug, and a pending profile."""
    for family, method in (("view", "render"), ("postprocess", "process"), ("check", "compare")):
        folder = project.path / ".perun" / "plugins" / family
        folder.mkdir(parents=True)
        (folder / "boom.py").write_text(
            "from dataclasses import dataclass\n"
            "@dataclass(frozen=True)\n"
            "class Params:\n    pass\n"
            "class PLUGIN:\n"
            "    name = short = 'boom'\n    help = 'Fails'\n    Params = Params\n"
            "    supported_profiles = ('time',)\n"
            f"    def {method}(self, *given):\n"
            "        return [][3]\n"
        )
    (project.path / ".perun" / "local.yml").write_text(
        "vcs: {type: git, url: ../}\ndegradation: {apply: all, strategies: [{method: boom}]}\n"
    )
    perun("trust")
    write_profile("a.perf")
    write_profile("b.perf")
    return project.path / ".perun"


@pytest.mark.parametrize(("arguments", "what"), [
    (("show", "0@p", "boom"), "the view 'boom'"),
    (("postprocessby", "0@p", "boom"), "the postprocessor 'boom'"),
    (("check", "profiles", "0@p", "1@p"), "the check 'boom'"),
])  # fmt: skip
def test_a_bug_of_a_plugin_is_not_one_of_perun(perun, failing, arguments, what):
    failed = perun(*arguments, check=False)
    assert failed.code in (8, 9)
    assert f"error: {what} failed: IndexError: list index out of range (" in failed.err
    assert "boom.py, line 11)" in failed.err
    assert "hint: repair the plugin" in failed.err
    assert list((failing / "logs").iterdir()) == []
    shown = perun("-vv", *arguments, check=False, traced=True)
    assert "return [][3]" in shown.err
    [report] = (failing / "logs").glob("crash-*.txt")
    assert f"the traceback is also in {report}" in shown.err
    assert "return [][3]" in report.read_text()
    assert "return [][3]" in perun("--dev-mode", *arguments, check=False, traced=True).err
    assert len(list((failing / "logs").iterdir())) == 1


def test_a_collector_that_raises_ends_its_job_not_the_batch(perun, project, fake):
    plugin = project.path / ".perun" / "plugins" / "collect" / "fake.py"
    text = plugin.read_text()
    plugin.write_text(text.replace("raise JobFailed(", "raise KeyError("))
    job = ("run", "job", "-b", "./app", "-a", "fails=odd", "-a", "amount=2", "-c", "fake")
    perun(*job, code=8, out="the collector 'fake' failed: KeyError: ")
    assert [one["args"] for one in perun("status", "--json").json["pending"]] == ["amount=2"]
    shown = perun("-vv", *job, check=False, traced=True)
    assert "raise KeyError(" in shown.out  # with the line of the job


def test_a_folder_that_is_gone(shell, tmp_path):
    done = shell(f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; $PERUN status")
    assert done.returncode == 3
    assert done.stderr.startswith("error: the current directory does not exist any more\nhint: ")


def test_colours_of_errors(perun, terminal, project):
    assert "\x1b[1;31merror:\x1b[0m" in terminal("log", "nope").out
    assert terminal("--no-color", "log", "nope").out.startswith("error: ")
    assert perun("log", "nope", check=False).err.startswith("error: ")


def test_the_documented_codes():
    """A change of the table is a change of what scripts rely on."""
    assert sorted(EXIT_CODES) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 70, 129, 130, 141, 143]
