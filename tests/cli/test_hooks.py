"""`perun hooks`: commits are measured in the background, pushes are checked, and other hooks are kept."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.repository.repository import open_repository
from perun.running.run import background

PROGRAM = "#!/bin/sh\necho it took {} s\n"
"""It prints what is measured, so that nothing depends on how busy the machine is."""
MATRIX = """\
vcs: {type: git, url: ..}
cmds: [./prog]
collectors: [{name: regex, params: {metric: [[run, 'took (?P<value>[0-9.]+) s']], repeat: 3}}]
profiles: {register_after_run: true}
"""


@pytest.fixture
def git(project: Any, environment: dict[str, str]) -> Callable[..., str]:
    """Run git as a user does, whose hooks find what `perun` needs; all that was written."""

    def run(*arguments: str, cwd: Path = project.path, code: int | None = 0) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        assert code is None or done.returncode == code, done
        assert "Traceback" not in done.stderr, done
        assert "Warning" not in done.stderr, done
        return done.stdout + done.stderr

    return run


@pytest.fixture
def measured(project: Any, git: Any) -> Any:
    """A project whose program is measured."""
    project.write({"prog": PROGRAM.format(0.019)})
    (project.path / "prog").chmod(0o755)
    project.commit("Add a program")
    (project.path / ".perun/local.yml").write_text(MATRIX)
    return project


def hook(project: Any, name: str, text: str, mode: int = 0o755) -> Path:
    path = Path(project.path, ".git/hooks", name)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def hooks_of(project: Any) -> dict[str, bytes]:
    folder = project.path / ".git/hooks"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".sample"}


def commit(project: Any, git: Any, seconds: float) -> str:
    project.write({"prog": PROGRAM.format(seconds)})
    return str(git("commit", "-aqm", f"Take {seconds} s"))


def test_commits_are_measured_in_the_background(perun: Any, measured: Any, git: Any) -> None:
    installed = perun("hooks", "install")
    assert [line.rpartition("/")[2] for line in installed.lines] == [
        "post-commit calls perun",
        "post-merge calls perun",
    ]
    assert "execute.pre_run" in installed.err
    told = commit(measured, git, 0.0195)
    first = measured.head
    assert f"perun: {first[:10]} is measured in the background; log: " in told
    waited = perun("hooks", "status", "--wait")
    assert waited.lines[:3] == [
        "post-commit  calls perun",
        "post-merge   calls perun",
        "pre-push     not installed",
    ]
    log = measured.path / f".perun/logs/{first}-hook.log"
    assert waited.lines[-1] == f"newest log: {log}"
    assert "registered regex-prog" in log.read_text()
    assert log.read_text().endswith("perun hooks: measured; nothing got slower\n")
    assert "1 registered profile" in perun("status").out
    assert list((measured.path / ".perun/hooks/queue").iterdir()) == []

    commit(measured, git, 0.2)
    second = measured.head
    waited = perun("hooks", "status", "--wait")
    assert f"perun: {second[:10]} made something slower: perun check head {second[:10]}" in waited.err
    assert "Degradation" in (measured.path / f".perun/logs/{second}-hook.log").read_text()
    assert "made something slower" not in perun("hooks", "status").err
    assert "1 degradation(-)" in perun("status").out
    assert git("status", "--porcelain") == ""


def test_what_was_found_is_told_at_the_next_commit(perun: Any, measured: Any, git: Any) -> None:
    perun("hooks", "install")
    (measured.path / ".perun/local.yml").write_text(MATRIX + "execute: {pre_run: ['false']}\n")
    commit(measured, git, 0.01)
    head = measured.head
    news, end = measured.path / ".perun/hooks/news", time.monotonic() + 300
    while not (news.exists() and news.stat().st_size):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert f"perun: {head[:10]} could not be measured completely  (see " in commit(measured, git, 0.02)
    perun("hooks", "status", "--wait")


@pytest.mark.slow
def test_commits_in_a_row_are_measured_one_after_the_other(perun: Any, measured: Any, git: Any) -> None:
    perun("hooks", "install")
    for number in range(2):
        commit(measured, git, 0.01 + number / 1000)
    perun("hooks", "status", "--wait")
    for version in ("HEAD", "HEAD~1"):
        assert (
            "registered"
            in (measured.path / f".perun/logs/{measured.git('rev-parse', version)}-hook.log").read_text()
        )


@pytest.mark.slow
def test_a_merge_is_measured_and_a_rebase_is_not(perun: Any, measured: Any, git: Any) -> None:
    perun("hooks", "install", "--on", "post-merge")
    git("checkout", "-qb", "side")
    git("commit", "-q", "--allow-empty", "-m", "Aside")
    git("checkout", "-q", "main")
    assert "is measured in the background" in git("merge", "-q", "--no-ff", "side")
    perun("hooks", "status", "--wait")
    assert (measured.path / f".perun/logs/{measured.head}-hook.log").exists()
    perun("hooks", "install")
    assert "in the background" not in git("rebase", "-q", "--force-rebase", "HEAD~1")


@pytest.fixture
def remote(measured: Any, git: Any, tmp_path: Path) -> Path:
    """A bare repository that has what is measured."""
    git("init", "-q", "--bare", str(tmp_path / "remote"))
    git("remote", "add", "origin", str(tmp_path / "remote"))
    git("push", "-q", "origin", "main")
    return tmp_path / "remote"


def test_a_push_of_something_slower_is_stopped(perun: Any, measured: Any, git: Any, remote: Path) -> None:
    perun("run", "matrix")
    perun("hooks", "install", "--on", "pre-push")
    commit(measured, git, 0.0195)
    perun("run", "matrix")
    git("push", "origin", "main")
    for seconds in (0.2, 0.201):  # compared with what the remote has, not with the commit before
        commit(measured, git, seconds)
        perun("run", "matrix")
    told = git("push", "origin", "main", code=1)
    assert "Degradation" in told
    assert (
        "error: the pushed commits make something slower\n"
        "hint: push anyway with: git push --no-verify" in told
    )
    git("push", "--no-verify", "origin", "main")
    git("push", "origin", "main:refs/heads/other", ":refs/heads/absent", code=None)
    git("push", "origin", "--delete", "main", code=None)


def test_a_push_of_what_is_not_measured_goes_on(perun: Any, measured: Any, git: Any, remote: Path) -> None:
    perun("hooks", "install", "--on", "pre-push")
    commit(measured, git, 0.2)
    git("push", "origin", "main")
    (measured.path / ".perun/local.yml").write_text("cmds: [")
    commit(measured, git, 0.3)
    assert "local.yml" in git("push", "origin", "main")


@pytest.mark.parametrize(
    "text",
    [
        '#!/bin/sh\nset -eu\necho "$0 $*: $(cat)" >>../told\nexit 0\necho never\n',
        pytest.param('#!/usr/bin/env bash\necho "$0 $*: $(cat)" >>../told\n', marks=pytest.mark.slow),
        pytest.param(
            '#!/usr/bin/env -S sh\necho "${0%.before-perun} $*: $(cat)" >>../told\n', marks=pytest.mark.slow
        ),
        pytest.param(
            "#!/usr/bin/env python3\nimport sys\n"
            "name = sys.argv[0].removesuffix('.before-perun')\n"
            "with open('../told', 'a') as told:\n"
            "    told.write(f\"{name} {' '.join(sys.argv[1:])}: {sys.stdin.read().strip()}\\n\")\n",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["sh", "bash", "odd", "python"],
)
def test_a_hook_that_is_there_is_kept(text, perun, measured, git, remote, tmp_path) -> None:
    for name in ("post-commit", "pre-push"):
        hook(measured, name, text)
    before = hooks_of(measured)
    installed = perun("hooks", "install", "--on", "post-commit,pre-push")
    assert installed.out.count("calls perun; the hook that was there before still runs") == 2
    assert perun("hooks", "install", "--on", "post-commit,pre-push").out == installed.out
    assert "is measured in the background" in commit(measured, git, 0.03)
    perun("hooks", "status", "--wait")
    head = measured.head
    git("push", "-q", "origin", "main")
    old = measured.git("rev-parse", "HEAD~1")
    assert (tmp_path / "told").read_text().splitlines() == [
        ".git/hooks/post-commit : ",
        f".git/hooks/pre-push origin {remote}: refs/heads/main {head} refs/heads/main {old}",
    ]
    assert perun("hooks", "uninstall").out.count("no longer calls perun; your hook is as it was") == 2
    assert hooks_of(measured) == before
    assert perun("hooks", "uninstall").lines == ["nothing to uninstall: none of these hooks calls perun"]


def test_a_hook_that_refuses_still_does(perun: Any, measured: Any, git: Any, remote: Path) -> None:
    hook(measured, "pre-push", "#!/usr/bin/env python3\nraise SystemExit(3)\n")
    perun("hooks", "install", "--on", "pre-push")
    commit(measured, git, 0.03)
    git("push", "origin", "main", code=1)


@pytest.mark.slow
def test_a_hook_that_is_switched_off_stays_so(perun: Any, measured: Any, git: Any) -> None:
    path = hook(measured, "post-commit", "#!/bin/sh\ntouch ../ran\n", 0o644)
    before = hooks_of(measured)
    perun("hooks", "install", "--on", "post-commit")
    assert "is measured" in commit(measured, git, 0.03)
    assert not (measured.path.parent / "ran").exists()
    perun("hooks", "status", "--wait")
    perun("hooks", "uninstall")
    assert hooks_of(measured) == before
    assert not path.stat().st_mode & 0o111


def test_a_link_is_not_written_through(perun: Any, measured: Any) -> None:
    measured.write({"scripts/hook": "#!/bin/sh\ntrue\n"})
    (measured.path / "scripts/hook").chmod(0o755)
    link = measured.path / ".git/hooks/post-commit"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("../../scripts/hook")
    perun("hooks", "install")
    assert (measured.path / "scripts/hook").read_text() == "#!/bin/sh\ntrue\n"
    perun("hooks", "uninstall")
    assert os.readlink(link) == "../../scripts/hook"


@pytest.mark.parametrize("relative", [pytest.param(True, marks=pytest.mark.slow), False])
def test_hooks_path(relative: bool, perun: Any, measured: Any, git: Any, tmp_path: Path) -> None:
    folder = measured.path / "tools" if relative else tmp_path / "all hooks"
    git("config", "core.hooksPath", "tools" if relative else str(folder))
    (measured.path / "sub").mkdir()
    done = perun("hooks", "install", cwd=measured.path / "sub", out=f"{folder}/post-commit calls perun")
    assert ("outside of this repository" in done.err) is not relative
    assert "in the background" in commit(measured, git, 0.02)
    perun("hooks", "status", "--wait")
    assert not list((measured.path / ".git/hooks").glob("post-*[!e]"))


@pytest.mark.slow
def test_in_a_linked_working_tree(perun: Any, measured: Any, git: Any, tmp_path: Path) -> None:
    git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    perun("hooks", "install", cwd=tmp_path / "linked")
    assert "post-commit" in hooks_of(measured)
    told = git("commit", "-q", "--allow-empty", "-m", "There", cwd=tmp_path / "linked")
    head = git("rev-parse", "HEAD", cwd=tmp_path / "linked").strip()
    assert f"perun: {head[:10]} is measured" in told
    perun("hooks", "status", "--wait")
    assert "registered" in (measured.path / f".perun/logs/{head}-hook.log").read_text()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(perun: Any, measured: Any) -> None:
    path = hook(measured, "post-merge", "#!/bin/sh\n# mine\n")
    path.parent.chmod(0o555)
    failed = perun("hooks", "install", check=False)
    path.parent.chmod(0o755)
    assert failed.code == 4
    assert f"the folder of hooks cannot be written: {path.parent}: Permission denied" in failed.err


def test_a_folder_that_cannot_be_one(perun: Any, project: Any, git: Any) -> None:
    for value in ("/dev/null", "file.txt", "file.txt/below", "/proc/hooks"):
        git("config", "core.hooksPath", value)
        failed = perun("hooks", "install", check=False)
        assert failed.code == 4
        assert f"the folder of hooks cannot be written: {Path(project.path, value)}: " in failed.err
        assert "core.hooksPath" in failed.err
        assert perun("hooks", "status").code == 0
        assert perun("hooks", "uninstall").code == 0


def test_wrong_names(perun: Any, measured: Any) -> None:
    perun("hooks", "install", "--on", "post-commit,pre-commit", code=2, err=("'pre-commit'", "pre-push"))
    assert "post-commit" not in hooks_of(measured)


def test_without_perun_commits_go_on(perun: Any, measured: Any, git: Any) -> None:
    perun("hooks", "install")
    path = measured.path / ".git/hooks/post-commit"
    path.write_text(path.read_text().replace("python", "nohtyp"))
    said = commit(measured, git, 0.02)
    assert "no longer exists, nothing is measured; repair with: perun hooks install" in said
    perun("hooks", "install")
    (measured.path / ".perun").rename(measured.path / "away")
    assert commit(measured, git, 0.03) == ""


def test_without_a_matrix_nothing_happens(perun: Any, project: Any, git: Any) -> None:
    perun("hooks", "install", err="next: configure what to measure with `perun config edit`")
    assert git("commit", "-q", "--allow-empty", "-m", "Empty") == ""


def test_status_as_json(perun: Any, measured: Any) -> None:
    hook(measured, "pre-push", "#!/bin/sh\n")
    perun("hooks", "install")
    answer = perun("hooks", "status", "--json").json
    assert answer["schema"] == "perun.hooks/1"
    assert [(one["name"], one["installed"], one["other"]) for one in answer["hooks"]] == [
        ("post-commit", True, False),
        ("post-merge", True, False),
        ("pre-push", False, True),
    ]
    assert (answer["working"], answer["waiting"], answer["log"]) == (False, [], None)


@pytest.mark.slow
def test_what_a_killed_process_left_is_measured_later(perun, measured, git, environment) -> None:
    perun("hooks", "install")
    old = measured.head
    background.start(open_repository(measured.path, dict(environment)), old, ["true"])
    left = "left by an interrupted run, measured with the next commit: " + old[:10]
    assert left in perun("hooks", "status").out
    commit(measured, git, 0.02)
    perun("hooks", "status", "--wait")
    assert (measured.path / f".perun/logs/{old}-hook.log").exists()


def test_the_folder_of_the_user_is_not_where_it_is_measured(perun: Any, measured: Any, git: Any) -> None:
    perun("run", "--in-a-copy", "matrix", out="registered")
    perun("run", "--in-a-copy", "--in-place", "matrix", code=2)
    perun("run", "--in-a-copy", "--force-dirty", "matrix", code=2)


OTHER = "#!/usr/bin/env python3\nimport pathlib\npathlib.Path('../ran').touch()\n"
KILLED = """\
import os, runpy, sys
real = os.{call}
def end(*arguments, **named):
    if any(str(one).endswith(("/post-commit", "/post-commit.before-perun")) for one in arguments):
        os._exit(9)
    return real(*arguments, **named)
os.{call} = end
sys.argv = ["perun", *sys.argv[1:]]
runpy.run_module("perun", run_name="__main__")
"""


def runs_the_hook(project: Any, git: Any) -> bool:
    ran = project.path.parent / "ran"
    ran.unlink(missing_ok=True)
    git("commit", "-q", "--allow-empty", "-m", "Another")
    return ran.exists()


def killed_at(command: list[str], call: str) -> list[str]:
    """How to call a Perun that ends at once when it first makes this call on the hook."""
    return [command[0], "-P", "-c", KILLED.format(call=call)]


@pytest.mark.parametrize(
    "call", ["replace", *(pytest.param(one, marks=pytest.mark.slow) for one in ("link", "rename"))]
)
def test_a_killed_installation_leaves_the_hook_on(call, perun, command, project, git) -> None:
    path = hook(project, "post-commit", OTHER)
    before = hooks_of(project)
    perun("hooks", "install", "--on", "post-commit", program=killed_at(command, call), check=False)
    assert runs_the_hook(project, git)
    perun("hooks", "install", "--on", "post-commit")
    assert b"perun hooks" in path.read_bytes()
    assert runs_the_hook(project, git)
    perun("hooks", "uninstall")
    assert hooks_of(project) == before
    assert runs_the_hook(project, git)


def test_a_hook_that_an_earlier_installation_left_off(perun: Any, project: Any, git: Any) -> None:
    hook(project, "post-commit.before-perun", OTHER)
    [finding] = [one for one in perun("fsck", "--json").json["findings"] if "post-commit" in one["path"]]
    assert finding["severity"] == "warning"
    assert "it does not run" in finding["message"]
    assert "it does not run" in perun("hooks", "status").err
    perun("hooks", "install", "--on", "post-commit", out="the hook that was there before still runs")
    assert runs_the_hook(project, git)
    perun("hooks", "uninstall")
    assert hooks_of(project) == {"post-commit": OTHER.encode()}


def test_fsck_gives_such_a_hook_back(perun: Any, project: Any, git: Any) -> None:
    hook(project, "post-commit.before-perun", OTHER)
    assert "post-commit.before-perun back to post-commit" in perun("fsck", "--repair").out
    assert hooks_of(project) == {"post-commit": OTHER.encode()}
    assert runs_the_hook(project, git)
    assert perun("fsck", "--json").json["findings"] == []


def test_what_a_second_installation_made_of_it_is_mended(perun: Any, project: Any, git: Any) -> None:
    perun("hooks", "install", "--on", "post-commit")
    hook(project, "post-commit.before-perun", OTHER)
    assert not runs_the_hook(project, git)
    assert "does not call post-commit.before-perun" in perun("hooks", "status").err
    perun("fsck", "--repair")
    assert runs_the_hook(project, git)
    assert perun("hooks", "status").err == ""


def test_a_second_name_of_the_hook_is_found_and_removed(perun: Any, project: Any, git: Any) -> None:
    path = hook(project, "post-commit", OTHER)
    os.link(path, path.with_name("post-commit.before-perun"))
    assert "left the copy" in perun("hooks", "status").err
    perun("fsck", "--repair")
    assert hooks_of(project) == {"post-commit": OTHER.encode()}


def test_another_file_under_the_second_name_is_not_overwritten(perun: Any, project: Any, git: Any) -> None:
    hook(project, "post-commit", OTHER)
    hook(project, "post-commit.before-perun", "#!/usr/bin/env python3\n# mine\n")
    before = hooks_of(project)
    perun("hooks", "install", "--on", "post-commit", code=4, err="post-commit.before-perun is there already")
    assert hooks_of(project) == before


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_the_queue_is_not_followed(perun, measured, environment, tmp_path, exists) -> None:
    perun("hooks", "install", "--on", "post-commit")
    victim = tmp_path / "victim"
    if exists:
        victim.write_text("precious\n")
        os.utime(victim, (1, 1))
    entry = measured.path / ".perun/hooks/queue" / measured.head
    entry.parent.mkdir(parents=True)
    entry.symlink_to(victim)
    hook = measured.path / ".git/hooks/post-commit"
    done = subprocess.run([hook], cwd=measured.path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0  # a hook of Perun never stops git
    assert f"cannot queue a commit: {entry}: it is a symbolic link" in done.stderr
    assert victim.exists() == exists
    assert not exists or victim.stat().st_mtime == 1
    assert perun("hooks", "status", "--json").json["waiting"] == []
