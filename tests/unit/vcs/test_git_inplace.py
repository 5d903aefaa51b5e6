from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import VersionControlError
from perun.plugin.api import SavedState
from perun.vcs.git import Git

Make = Callable[..., Any]


CHANGES = {
    "edit_staged_and_unstaged": "echo staged >a.txt; git add a.txt; echo and more >>a.txt",
    "edit_unstaged": "echo edited >a.txt; echo 'edited too' >sub/b.txt",
    "edit_staged": "echo edited >a.txt; echo 'edited too' >sub/b.txt; git add .",
    "delete": "rm a.txt",
    "delete_staged": "git rm -q a.txt",
    "untrack_but_keep": "git rm -q --cached a.txt; echo 'only copy' >a.txt",
    "untrack_and_ignore": "git rm -q --cached a.txt; echo 'only copy' >a.txt; echo a.txt >.gitignore",
    "add_new": "mkdir příliš; printf kůň >příliš/žluťoučký; echo new >'new file.txt'; git add .;"
    "echo and more >>'new file.txt'",
    "rename": "git mv a.txt renamed.txt",
    "stage_then_undo": "echo staged >a.txt; git add a.txt; echo three >a.txt",
    "make_executable": "chmod 755 a.txt",
    "file_to_link": "ln -sf sub/b.txt a.txt",
    "binary_and_empty": r"printf 'a\r\nb\000c\n' >a.txt; : >sub/b.txt",
    "nothing": "",
}  # fmt: skip
"""What users do to their files, by what it is called, for the shell."""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("detached", [False, True], ids=["branch", "detached"])
@pytest.mark.each_value("change", "detached")
def test_round_trip(repo: Any, change: str, detached: bool) -> None:
    if detached:
        repo.git("checkout", "--quiet", "--detach")
    repo.write({"untracked.txt": "mine\n", "ignored.log": "mine\n"})
    repo.shell(CHANGES[change])
    before = repo.picture()
    head = repo.git("rev-parse", "HEAD")
    dirty = repo.vcs.is_dirty()

    saved, state = repo.vcs.save_state()
    assert saved == dirty and state == (head if detached else "main")
    assert repo.vcs.get_head_major_version() == state and not repo.vcs.is_dirty()
    assert (repo.root / "a.txt").read_text() == "three\n"

    for version, text in (("HEAD~1", "two\n"), ("HEAD~1", "one\n"), (head, "three\n")):
        repo.vcs.checkout(version)
        assert (repo.root / "a.txt").read_text() == text and not repo.vcs.is_dirty()
        assert repo.vcs.get_head_major_version() == repo.vcs.get_minor_head()
    repo.vcs.checkout(repo.git("rev-parse", "HEAD~2"))

    repo.vcs.restore_state(saved, state)
    assert repo.picture() == before and repo.stashes() == []
    assert repo.vcs.is_dirty() == dirty


def test_stash_is_there_before_anything_changes(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    before = repo.picture()
    saved = repo.vcs.prepare_save()
    assert saved == SavedState(True, "main", repo.stashes()[0])
    assert repo.picture() == before
    assert repo.git("show", f"{saved.stash}:a.txt") == "staged\nand more"
    assert repo.git("show", f"{saved.stash}^2:a.txt") == "staged"
    repo.vcs.finish_save(saved)
    assert not repo.vcs.is_dirty()


def test_git_alone_brings_the_changes_back(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    before = repo.picture()
    repo.vcs.save_state()
    repo.vcs.checkout("HEAD~2")
    repo.git("checkout", "--quiet", "main")
    repo.git("stash", "pop", "--quiet", "--index")
    assert repo.picture() == before


def test_stashes_of_the_user_stay(repo: Any) -> None:
    repo.write({"a.txt": "older work\n"})
    repo.git("stash", "push", "--quiet")
    older = repo.stashes()
    repo.shell(CHANGES["edit_unstaged"])
    saved, state = repo.vcs.save_state()
    repo.write({"a.txt": "newer work\n"})
    repo.git("stash", "push", "--quiet")
    newer = repo.stashes()[0]
    repo.vcs.restore_state(saved, state)
    assert repo.stashes() == [newer, *older]
    assert (repo.root / "a.txt").read_text() == "edited\n"


def test_edit_while_saving_is_not_overwritten(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    saved = repo.vcs.prepare_save()
    index = repo.git("ls-files", "--stage")
    repo.write({"a.txt": "the editor has saved once more\n"})
    with pytest.raises(VersionControlError, match=r"a\.txt"):
        repo.vcs.finish_save(saved)
    assert (repo.root / "a.txt").read_text() == "the editor has saved once more\n"
    assert repo.git("ls-files", "--stage") == index
    assert repo.vcs.get_head_major_version() == "main"


def test_tracked_file_replaced_by_a_folder_of_untracked_files(repo: Any) -> None:
    (repo.root / "a.txt").unlink()
    repo.write({"a.txt/notes.log": "ignored but mine\n", "a.txt/notes.txt": "mine\n"})
    before = repo.picture()
    saved, state = repo.vcs.save_state()
    assert repo.picture() == before  # git stash does not see such a change, and leaves it
    with pytest.raises(VersionControlError, match=r"a\.txt"):
        repo.vcs.checkout("HEAD~1")
    repo.vcs.restore_state(saved, state)
    assert repo.picture() == before


def test_tracked_folder_replaced_by_an_ignored_file(repo: Any) -> None:
    repo.git("rm", "--quiet", "-r", "sub")
    repo.write({"sub": "mine\n", ".git/info/exclude": "sub\n"})
    before = repo.picture()
    with pytest.raises(VersionControlError, match="sub"):
        repo.vcs.save_state()
    assert repo.picture() == before


@pytest.fixture
def other_layout(repo: Any) -> str:
    """An older version that tracks files which the newest one does not."""
    old = repo.commit("old", {"gen.txt": "tracked\n", "out.log": "tracked\n", "lib": "a file\n"})
    repo.git("rm", "--quiet", "gen.txt", "out.log", "lib")
    repo.commit("new")
    return str(old)


@pytest.mark.parametrize("name", ["gen.txt", "out.log", "lib/x.txt", "lib/x.log"])
def test_untracked_and_ignored_files_in_the_way(repo: Any, other_layout: str, name: str) -> None:
    repo.write({name: "mine\n"})
    before = repo.picture()
    with pytest.raises(VersionControlError, match=name.partition("/")[0]) as caught:
        repo.vcs.checkout(other_layout)
    assert "in-place" in caught.value.hint and repo.picture() == before


def test_untracked_file_in_the_way_back(repo: Any, other_layout: str) -> None:
    repo.vcs.checkout(other_layout)
    repo.git("branch", "--force", "main", other_layout)
    repo.vcs.checkout("HEAD~1")
    repo.write({"gen.txt": "made by a build, or mine\n", "a.txt": "edited\n"})
    repo.write({"a.txt": "three\n"})
    with pytest.raises(VersionControlError, match=r"gen\.txt") as caught:
        repo.vcs.restore_state(False, "main")
    assert "git checkout main" in caught.value.hint
    assert (repo.root / "gen.txt").read_text() == "made by a build, or mine\n"


def test_changes_stay_in_the_stash_where_the_way_back_is_blocked(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged"])
    repo.git("mv", "sub/b.txt", "moved.txt")
    before = repo.picture()
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.vcs.checkout("HEAD~2")
    repo.write({"moved.txt": "made by a build\n"})
    with pytest.raises(VersionControlError, match=r"moved\.txt") as caught:
        repo.vcs.restore_state(saved.saved, saved.state)
    assert f"git stash apply --index {saved.stash}" in caught.value.hint
    assert repo.stashes() == [saved.stash]
    (repo.root / "moved.txt").unlink()
    repo.vcs.restore_state(saved.saved, saved.state)
    assert repo.picture() == before


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_hidden_changes_are_not_overwritten(repo: Any, flag: str) -> None:
    repo.git("update-index", flag, "a.txt")
    repo.write({"a.txt": "hidden from git\n"})
    assert not repo.vcs.is_dirty() and repo.vcs.save_state() == (False, "main")
    with pytest.raises(VersionControlError, match=r"a\.txt"):
        repo.vcs.checkout("HEAD~1")
    assert (repo.root / "a.txt").read_text() == "hidden from git\n"
    repo.write({"sub/b.txt": "seen\n"})
    saved, state = repo.vcs.save_state()
    repo.vcs.restore_state(saved, state)
    assert (repo.root / "a.txt").read_text() == "hidden from git\n"
    assert (repo.root / "sub/b.txt").read_text() == "seen\n"


def test_changes_that_a_run_makes_are_kept_apart(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    before = repo.picture()
    saved, state = repo.vcs.save_state()
    repo.vcs.checkout("HEAD~2")
    repo.write({"a.txt": "made by a build\n"})
    aside = repo.vcs.set_aside("perun: changed by the run")
    assert not repo.vcs.is_dirty() and repo.vcs.set_aside("nothing now") == ""
    repo.write({"sub/b.txt": "made by another build\n"})
    repo.vcs.restore_state(saved, state)
    assert repo.picture() == before
    left = repo.stashes()
    assert left[1:] == [aside]
    assert repo.git("show", f"{left[0]}:sub/b.txt") == "made by another build"
    assert repo.git("show", f"{aside}:a.txt") == "made by a build"


def test_set_aside_stays_on_the_branch(repo: Any) -> None:
    repo.shell(CHANGES["edit_unstaged"])
    head = (repo.root / ".git/HEAD").read_text()
    assert repo.vcs.set_aside("label") == repo.stashes()[0]
    assert (repo.root / ".git/HEAD").read_text() == head
    assert "label" in repo.git("stash", "list")


def test_branch_that_has_moved(repo: Any) -> None:
    repo.write({"sub/b.txt": "edited\n"})
    repo.git("add", ".")
    saved, state = repo.vcs.save_state()
    repo.vcs.checkout("HEAD~1")
    tree = repo.git("rev-parse", "HEAD^{tree}")
    moved = repo.git("commit-tree", tree, "-p", "main", "-m", "came meanwhile")
    repo.git("update-ref", "refs/heads/main", moved)
    repo.vcs.restore_state(saved, state)
    assert repo.git("rev-parse", "HEAD") == moved
    assert repo.vcs.get_head_major_version() == "main" and (repo.root / "a.txt").read_text() == "two\n"
    assert repo.git("diff", "--cached", "--name-only") == "sub/b.txt" and repo.stashes() == []


def test_branch_that_has_moved_into_a_conflict(repo: Any) -> None:
    repo.write({"a.txt": "edited\n"})
    saved, state = repo.vcs.save_state()
    entry = repo.stashes()[0]
    repo.vcs.checkout("HEAD~1")
    moved = repo.git("commit-tree", "HEAD^{tree}", "-p", "main", "-m", "came meanwhile")
    repo.git("update-ref", "refs/heads/main", moved)
    with pytest.raises(VersionControlError) as caught:
        repo.vcs.restore_state(saved, state)
    assert f"git stash apply --index {entry}" in caught.value.hint and repo.stashes() == [entry]


def test_branch_that_has_gone(repo: Any) -> None:
    repo.git("switch", "--quiet", "-c", "gone")
    repo.shell(CHANGES["edit_unstaged"])
    tree = repo.tree()
    saved, state = repo.vcs.save_state()
    repo.vcs.checkout("HEAD~1")
    repo.git("branch", "--quiet", "-D", "gone")
    repo.vcs.restore_state(saved, state)
    assert repo.tree() == tree
    with pytest.raises(VersionControlError, match="'gone'"):
        repo.vcs.restore_state(False, "gone")


def test_stash_that_has_gone(repo: Any) -> None:
    repo.shell(CHANGES["edit_unstaged"])
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.git("stash", "drop", "--quiet")
    with pytest.raises(VersionControlError, match="no entry") as caught:
        repo.vcs.resume(saved)
    assert saved.stash in caught.value.hint


def test_state_is_never_an_option(repo: Any) -> None:
    for state in ("--force", "-f", "", "HEAD", "a b"):
        with pytest.raises(VersionControlError):
            repo.vcs.restore_state(False, state)


UNFINISHED = {
    "merge": "git merge -q --no-commit --no-ff side",
    "cherry-pick": "git rev-parse side >.git/CHERRY_PICK_HEAD",
    "revert": "git revert --no-commit HEAD",
    "squash": "git merge -q --squash side",
    "rebase": "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1",
}


@pytest.mark.parametrize("command", UNFINISHED)
def test_unfinished_work_is_not_ended(repo: Any, command: str) -> None:
    repo.git("switch", "--quiet", "-c", "side", "HEAD~1")
    side = repo.commit("side", {"c.txt": "c\n"})
    repo.git("switch", "--quiet", "main")
    repo.shell(UNFINISHED[command])
    before = repo.picture()
    for call, *given in (
        (repo.vcs.save_state,), (repo.vcs.checkout, side), (repo.vcs.restore_state, False, "main")
    ):  # fmt: skip
        with pytest.raises(VersionControlError, match="in progress"):
            call(*given)
    assert repo.picture() == before and repo.stashes() == []


def test_bisect_is_no_hindrance(repo: Any) -> None:
    repo.git("bisect", "start", "HEAD", "HEAD~2")
    repo.comes_back("main")
    assert (repo.root / ".git/BISECT_LOG").exists()


def test_conflicts_and_intended_files_cannot_be_saved(repo: Any) -> None:
    repo.write({"intended.txt": "x\n"})
    repo.git("add", "--intent-to-add", "intended.txt")
    before = repo.picture()
    with pytest.raises(VersionControlError, match=r"intended\.txt") as caught:
        repo.vcs.save_state()
    assert "git add -N" in caught.value.hint and repo.picture() == before


def test_without_a_name_of_the_user(repo: Any) -> None:
    for name in [name for name in repo.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))]:
        del repo.environ[name]
    repo.git("config", "user.useConfigOnly", "true")
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    repo.comes_back()


def test_in_a_linked_working_tree_below_the_top(repo: Any, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(linked))
    main = repo.picture()
    (linked / "a.txt").write_text("edited\n")
    (linked / "sub/b.txt").write_text("staged\n")
    repo.git("add", "sub/b.txt", at=linked)
    status = repo.git("status", "--porcelain", at=linked)
    vcs = Git(linked / "sub", repo.environ)
    saved, state = vcs.save_state()
    vcs.checkout("HEAD~1")
    assert (linked / "a.txt").read_text() == "two\n"
    vcs.restore_state(saved, state)
    assert repo.git("status", "--porcelain", at=linked) == status
    assert vcs.get_head_major_version() == "linked" and repo.picture() == main


def test_sparse_checkout(repo: Any) -> None:
    repo.commit("more", {"far/away.txt": "1\n"})
    repo.git("sparse-checkout", "set", "sub")
    repo.shell(CHANGES["edit_unstaged"])
    repo.git("add", "a.txt")
    assert not (repo.root / "far").exists()
    repo.comes_back()


def test_sha256(make: Make) -> None:
    repo = make("project", "--object-format=sha256")
    repo.commit("one", {"a.txt": "one\n", "sub/b.txt": "same\n"})
    repo.git("checkout", "--quiet", "--detach")
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    assert len(repo.comes_back("HEAD")) == 64


def test_submodule_is_left_alone(repo: Any, make: Make) -> None:
    library = make("library")
    library.commit("lib", {"lib.txt": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    repo.commit("submodule")
    repo.git("config", "submodule.recurse", "true")
    repo.write({"lib/lib.txt": "work in the submodule\n", "a.txt": "edited\n"})
    saved, state = repo.vcs.save_state()
    repo.vcs.checkout("HEAD~1")
    repo.vcs.restore_state(saved, state)
    assert (repo.root / "lib/lib.txt").read_text() == "work in the submodule\n"
    assert (repo.root / "a.txt").read_text() == "edited\n"


def test_line_ends_of_the_user(repo: Any) -> None:
    repo.git("config", "core.autocrlf", "true")
    (repo.root / "a.txt").write_bytes(b"edited\r\nwith windows line ends\r\n")
    repo.comes_back()
    assert (repo.root / "a.txt").read_bytes() == b"edited\r\nwith windows line ends\r\n"


def test_restoring_twice_does_no_harm(repo: Any) -> None:
    repo.shell(CHANGES["edit_staged_and_unstaged"])
    before = repo.picture()
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.vcs.resume(saved)
    repo.vcs.resume(saved)  # a run that was killed between the end of this and forgetting that it has to
    assert repo.picture() == before
    repo.write({"a.txt": "edited since then\n"})
    before = repo.picture()
    with pytest.raises(VersionControlError, match="no entry"):
        repo.vcs.resume(saved)
    assert repo.picture() == before
