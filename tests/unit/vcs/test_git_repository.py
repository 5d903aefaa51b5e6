import gc
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import VersionControlError
from perun.core.process.git import _Git, looks_bare
from perun.plugin.api import MajorVersion
from perun.vcs.git import Git

Make = Callable[..., Any]


def error(call: Callable[[], object]) -> VersionControlError:
    with pytest.raises(VersionControlError) as caught:
        call()
    return caught.value


def git_that(repo: Any, folder: Path, script: str) -> Git:
    """A git that is a script of the shell, as Perun calls it."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Git(repo.root, {**repo.environ, "PATH": f"{program.parent}:{repo.environ['PATH']}"})


# Where HEAD is


def test_where_head_is(repo: Any) -> None:
    assert repo.vcs.get_minor_head() == repo.git("rev-parse", "HEAD")
    assert repo.vcs.get_head_major_version() == "main"
    repo.git("checkout", "--quiet", "HEAD~1")
    assert repo.vcs.get_head_major_version() == repo.vcs.get_minor_head() == repo.git("rev-parse", "HEAD")


def test_tags_name_commits_and_nothing_else(repo: Any) -> None:
    repo.git("tag", "light", "HEAD~1")
    repo.git("tag", "--annotate", "--message", "said", "annotated", "HEAD")
    repo.git("tag", "of-a-tree", "HEAD^{tree}")
    first, second = repo.git("rev-parse", "HEAD~1"), repo.git("rev-parse", "HEAD")
    assert sorted(repo.vcs.tags()) == [("annotated", second), ("light", first)]


def test_no_commit_yet(make: Make) -> None:
    repo = make()
    problem = error(repo.vcs.get_minor_head)
    assert "no commits" in problem.message and "first commit" in problem.hint
    assert "first commit" in error(lambda: repo.vcs.massage_parameter("HEAD")).hint
    assert "first commit" in error(repo.vcs.save_state).hint
    assert repo.vcs.get_head_major_version() == "main" and list(repo.vcs.walk_major_versions()) == []
    assert not repo.vcs.is_dirty()
    repo.write({"new": "x"})
    repo.git("add", "new")
    assert repo.vcs.is_dirty()


def test_branch_names(repo: Any) -> None:
    head, old = repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD~1")
    repo.git("branch", "feature/žluť", old)
    repo.git("tag", "main", old)  # a tag of the same name confuses nothing
    assert list(repo.vcs.walk_major_versions()) == [
        MajorVersion("feature/žluť", old),
        MajorVersion("main", head),
    ]
    assert repo.vcs.get_head_major_version() == "main"
    repo.git("switch", "--quiet", "feature/žluť")
    assert repo.vcs.get_head_major_version() == "feature/žluť"


# Names of versions


def test_spellings(repo: Any) -> None:
    head, old = repo.git("rev-parse", "HEAD"), repo.git("rev-parse", "HEAD~1")
    repo.git("tag", "-a", "-m", "annotated", "v1", old)
    for spelling in ("HEAD~1", "main^", "@~", "v1", "refs/tags/v1", old, old[:10], old.upper(), ":/two"):
        assert repo.vcs.massage_parameter(spelling) == old, spelling
    assert repo.vcs.massage_parameter("main") == repo.vcs.massage_parameter("HEAD", "commit") == head
    assert repo.vcs.massage_parameter("HEAD", "tree") == repo.git("rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("spelling", [
    "nosuch", "", " ", "--all", "-h", "--git-dir", "HEAD~99", "HEAD..main", "a b", "HEAD:a.txt", "a\nb",
    "f" * 40
])  # fmt: skip
def test_unknown_spelling_is_named(repo: Any, spelling: str) -> None:
    assert repr(spelling) in error(lambda: repo.vcs.massage_parameter(spelling)).message


def test_impossible_spelling(repo: Any) -> None:
    error(lambda: repo.vcs.massage_parameter("a\0b"))
    error(lambda: repo.vcs.massage_parameter("\ud83d"))


def test_ambiguous_prefix_lists_candidates(repo: Any) -> None:
    seen: dict[str, str] = {}
    tree = repo.git("rev-parse", "HEAD^{tree}")
    for number in range(500):
        checksum = repo.git("commit-tree", tree, "-m", str(number))
        other = seen.setdefault(checksum[:4], checksum)
        if other != checksum:
            break
    problem = error(lambda: repo.vcs.massage_parameter(checksum[:4]))
    assert "ambiguous" in problem.message and checksum[:7] in problem.message


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_validity(make: Make, options: tuple[str, ...]) -> None:
    repo = make("project", *options)
    head = repo.commit()
    repo.git("tag", "-a", "-m", "annotated", "v1")
    repo.vcs.check_minor_version_validity(head)
    wrong = [
        "HEAD", "main", "", head[:-1], head + "0", head.upper(), "0" * len(head), head[:40] + " ",
        repo.git("rev-parse", "HEAD^{tree}"), repo.git("rev-parse", "v1"),
    ]  # fmt: skip
    if len(head) == 64:
        wrong.append(head[:40])
    for checksum in wrong:
        with pytest.raises(VersionControlError, match=re.escape(repr(checksum))):
            repo.vcs.check_minor_version_validity(checksum)


# Uncommitted changes


def test_clean_with_untracked_and_ignored_files(repo: Any) -> None:
    assert not repo.vcs.is_dirty()
    repo.write({"new.txt": "x", "build.log": "x"})
    assert not repo.vcs.is_dirty()


CHANGES = {
    "edited": "echo changed >a.txt",
    "staged": "echo changed >a.txt; git add a.txt; git config status.showUntrackedFiles no",
    "deleted": "rm a.txt",
    "staged deletion": "git rm --quiet --cached a.txt",
    "added": ": >new; git add new",
    "mode": "chmod 755 a.txt",
}


@pytest.mark.parametrize("how", CHANGES)
def test_dirty(repo: Any, how: str) -> None:
    repo.shell(CHANGES[how])
    assert repo.vcs.is_dirty()


def test_touched_file_is_clean_and_the_index_is_not_written(repo: Any) -> None:
    os.utime(repo.root / "a.txt", (1, 1))
    before = (repo.root / ".git/index").read_bytes()
    assert not repo.vcs.is_dirty() and (repo.root / ".git/index").read_bytes() == before


def test_submodule(repo: Any, make: Make) -> None:
    library = make("library")
    library.commit("lib", {"lib.txt": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    repo.commit("submodule")
    assert not repo.vcs.is_dirty()
    repo.write({"lib/untracked": "x"})
    assert not repo.vcs.is_dirty()
    repo.write({"lib/lib.txt": "2"})
    assert repo.vcs.is_dirty()
    repo.git("commit", "--quiet", "-am", "in the submodule", at=repo.root / "lib")
    assert repo.vcs.is_dirty()
    assert repo.vcs.changed_files() == []  # it is no file


def test_a_link_to_a_folder_is_a_changed_file(repo: Any) -> None:
    (repo.root / "a.txt").unlink()
    (repo.root / "a.txt").symlink_to("sub")
    (repo.root / "new").symlink_to("sub")
    repo.git("init", "--quiet", str(repo.root / "inner"))
    assert sorted(repo.vcs.changed_files()) == ["a.txt", "new"]


def test_bare_repository(repo: Any, tmp_path: Path, environ: dict[str, str]) -> None:
    repo.git("clone", "--quiet", "--bare", str(repo.root), str(tmp_path / "bare.git"))
    bare = Git(tmp_path / "bare.git", environ)
    assert bare.get_minor_head() == repo.vcs.get_minor_head() and not bare.is_dirty()


# Where git runs


def test_below_the_top(repo: Any) -> None:
    below = Git(repo.root / "sub", repo.environ)
    assert below.get_minor_head() == repo.vcs.get_minor_head()
    repo.write({"a.txt": "changed\n"})
    assert below.is_dirty()


def test_linked_working_tree(repo: Any, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(tmp_path / "linked"), "HEAD~1")
    linked = Git(tmp_path / "linked", repo.environ)
    assert linked.get_head_major_version() == "linked"
    assert linked.get_minor_head() == repo.git("rev-parse", "HEAD~1")
    (tmp_path / "linked" / "a.txt").write_text("changed")
    assert linked.is_dirty() and not repo.vcs.is_dirty()


def test_blanks_and_unicode_in_the_path(make: Make) -> None:
    repo = make("my prójekt '$(x)' \"q\" 🚀")
    head = repo.commit("first", {"příliš žluťoučký.txt": "kůň"})
    assert repo.vcs.get_minor_head() == head and not repo.vcs.is_dirty()


def test_inside_a_real_hook(repo: Any) -> None:
    source = Path(sys.modules["perun"].__file__ or "").parents[1]
    script = (
        "import os; from pathlib import Path; from perun.vcs.git import Git;"
        "vcs = Git(Path.cwd(), os.environ); print(vcs.get_minor_head(), vcs.is_dirty())"
    )
    hook = repo.root / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    python, code = shlex.quote(sys.executable), shlex.quote(script)
    hook.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(source))} {python} -c {code} >out.log 2>&1\n")
    hook.chmod(0o755)
    head = repo.commit("with hook", {"a.txt": "hook\n"})
    assert (repo.root / "out.log").read_text() == f"{head} False\n"


def test_hooks_of_the_user_do_not_run(repo: Any) -> None:
    hooks = repo.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\ntouch ran.log\n")
        (hooks / name).chmod(0o755)
    repo.write({"a.txt": "changed\n"})
    saved, state = repo.vcs.save_state()
    repo.vcs.checkout("HEAD~1")
    repo.vcs.restore_state(saved, state)
    assert not (repo.root / "ran.log").exists()


# Where git refuses


def test_not_a_repository(tmp_path: Path, environ: dict[str, str]) -> None:
    environ["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    folder = tmp_path / "plain"
    folder.mkdir()
    for call in (Git(folder, environ).get_minor_head, Git(folder, environ).get_head_major_version):
        problem = error(call)
        assert str(folder) in problem.message and "git init" in problem.hint
    assert str(folder) in error(lambda: Git(folder, environ).massage_parameter("HEAD")).message
    assert str(folder) in error(Git(folder, environ).is_dirty).message
    assert str(folder) in error(Git(folder, environ).save_state).message


def test_git_that_cannot_start(tmp_path: Path, environ: dict[str, str], repo: Any) -> None:
    assert "gone" in error(Git(tmp_path / "gone", environ).get_minor_head).message
    problem = error(Git(repo.root, {"PATH": str(tmp_path)}).get_minor_head)
    assert "not installed" in problem.message and "install" in problem.hint
    (tmp_path / "git").write_text("not a program")
    (tmp_path / "git").chmod(0o755)
    assert "cannot be started" in error(Git(repo.root, {"PATH": str(tmp_path)}).get_minor_head).message


def test_repository_of_another_user(repo: Any) -> None:
    repo.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    problem = error(repo.vcs.get_minor_head)
    assert "another user" in problem.message and f"safe.directory {repo.root}" in problem.hint
    # Below its top it is still the repository that is to be trusted.
    assert error(Git(repo.root / "sub", repo.environ).get_minor_head).hint.endswith(f" {repo.root}")
    # Containers set it in the environment.
    repo.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
    repo.vcs.get_minor_head()


def test_damaged_head(repo: Any) -> None:
    (repo.root / ".git/refs/heads/main").write_text("1" * 40 + "\n")
    assert "no commits" not in error(repo.vcs.get_minor_head).message


def test_killed_git_is_told(repo: Any, tmp_path: Path) -> None:
    vcs = git_that(repo, tmp_path, "kill -9 $$")
    assert "signal 9" in error(vcs.is_dirty).message
    assert "signal 9" in error(lambda: list(vcs.walk_subjects("0" * 40))).message


def test_ctrl_c_waits_for_a_git_that_changes_the_repository(repo: Any, tmp_path: Path) -> None:
    vcs = git_that(repo, tmp_path, f"kill -INT {os.getpid()}; sleep 0.3; touch {tmp_path}/finished")
    with pytest.raises(KeyboardInterrupt):
        vcs._git.alter("checkout")
    assert (tmp_path / "finished").exists()


# init


def test_ctrl_c_ends_a_git_that_only_reads(repo: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given_up = threading.Event()
    went_on = threading.Event()

    def interrupt() -> None:
        with pipe.open("wb"):  # opens once git reads
            os.kill(os.getpid(), signal.SIGINT)
            if not went_on.wait(30):
                given_up.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        repo.vcs._git.ask("hash-object", "--no-filters", str(pipe))
    went_on.set()
    thread.join()
    assert not given_up.is_set()


def test_ctrl_c_while_git_starts_leaves_no_stream_open(repo: Any, tmp_path: Path) -> None:
    git = git_that(repo, tmp_path, "exec sleep 60")._git
    git._reads = False  # it is guarded from the start, where Ctrl-C is deferred
    guard = _Git.guard

    def guard_and_interrupt(process: _Git) -> None:
        guard(process)
        signal.raise_signal(signal.SIGINT)

    repo.vcs._git.alter("tag", "made")  # the guard itself has descriptors
    gc.collect()
    before = os.listdir("/proc/self/fd")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Git, "guard", guard_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            git.ask("status")
        with pytest.raises(KeyboardInterrupt):
            list(git.stream("status"))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= len(before)  # others may have closed some


def test_another_thread_may_change_the_repository(repo: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(repo.vcs._git.alter, "tag", "made").result()
    assert repo.git("tag", "--list") == "made"


def test_a_lock_of_another_git_is_told(repo: Any) -> None:
    (repo.root / ".git" / "index.lock").touch()
    with pytest.raises(VersionControlError, match=r"index\.lock") as caught:
        repo.vcs._git.alter("add", "a.txt")
    assert "another git is at work" in caught.value.hint


def test_a_partial_clone_fetches_nothing(repo: Any, tmp_path: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    repo.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{repo.root}", str(clone))
    problem = error(lambda: Git(clone, repo.environ)._git.ask("cat-file", "-p", "HEAD:a.txt"))
    assert "partial clone" in problem.message and "git fetch --refetch" in problem.hint


def test_what_would_be_overwritten_is_to_be_committed(repo: Any) -> None:
    repo.write({"a.txt": "mine\n"})
    assert "commit them or move them away" in error(lambda: repo.vcs.checkout("HEAD~1")).hint


@pytest.mark.parametrize(("inside", "expected"), [
    (("HEAD", "objects/", "refs/"), True),
    (("HEAD", "objects/"), False),
    (("HEAD", "refs/"), False),
    (("objects/", "refs/"), False),
    (("HEAD", "objects/", "refs/", ".git"), False),
])  # fmt: skip
def test_what_looks_like_a_bare_repository(tmp_path: Path, inside: tuple[str, ...], expected: bool) -> None:
    for name in inside:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    assert looks_bare(tmp_path) is expected


def test_init_new_and_again(tmp_path: Path, environ: dict[str, str]) -> None:
    vcs = Git(tmp_path / "new" / "project", environ)
    assert vcs.init({}) and vcs.init({}) and (tmp_path / "new/project/.git").is_dir()


def test_init_flags_and_parameters(tmp_path: Path, environ: dict[str, str]) -> None:
    bare = Git(tmp_path / "bare", environ)
    assert bare.init({"bare": True, "b": "trunk", "quiet": False, "template": None})
    assert (tmp_path / "bare/HEAD").read_text() == "ref: refs/heads/trunk\n"

    apart = Git(tmp_path / "apart", environ)
    assert apart.init({"separate_git_dir": tmp_path / "git folder", "--initial-branch": "trunk"})
    assert (tmp_path / "apart/.git").is_file()
    assert apart.get_head_major_version() == "trunk"


def test_init_inside_a_hook(tmp_path: Path, environ: dict[str, str], repo: Any) -> None:
    environ["GIT_DIR"] = str(repo.root / ".git")
    assert Git(tmp_path / "new", environ).init({}) and (tmp_path / "new/.git").is_dir()


def test_init_refuses_odd_options(tmp_path: Path, environ: dict[str, str]) -> None:
    vcs = Git(tmp_path / "new", environ)
    assert "'no such'" in error(lambda: vcs.init({"no such": True})).message
    assert "unknown option" in error(lambda: vcs.init({"no-such-option": True})).message
    (tmp_path / "file").write_text("")
    assert "file" in error(lambda: Git(tmp_path / "file", environ).init({})).message


def test_output_of_git_is_no_surprise_for_warnings(repo: Any) -> None:
    repo.environ["GIT_TRACE"] = "1"
    assert repo.vcs.get_minor_head() == repo.git("rev-parse", "HEAD")
    assert len(list(repo.vcs.walk_subjects("HEAD"))) == 3


def test_branch_that_is_not_utf8(repo: Any) -> None:
    subprocess.run(
        ["git", "-C", str(repo.root), "switch", "--quiet", "-c", b"k\xf3d"], env=repo.environ, check=True
    )
    assert repo.vcs.get_head_major_version() == "k\ufffdd"
    assert [branch.name for branch in repo.vcs.walk_major_versions()] == ["k\ufffdd", "main"]
    repo.write({"a.txt": "changed\n"})
    repo.comes_back()


def test_the_environment_of_another_repository_is_kept_out(repo: Any, tmp_path: Path) -> None:
    """Each variable that git itself calls local to a repository, one by one; what sets options stays."""
    local = set(repo.git("rev-parse", "--local-env-vars").split())
    kept = {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"} & local
    repo.environ.update(dict.fromkeys(local, "0"), OF_THE_USER="x")
    with suppress(VersionControlError):
        git_that(repo, tmp_path, f'env > "{tmp_path}/seen"').get_minor_head()
    seen = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert len(local) > 10 and seen & local == kept and "OF_THE_USER" in seen
