import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.core.atomic import system
from perun.core.errors import VersionControlError
from perun.vcs._common.worktree import main_working_tree
from perun.vcs.git import Git

Make = Callable[..., Any]


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".git"
    }


def worktrees(repo: Any) -> int:
    return len(repo.git("worktree", "list").splitlines())


def versions(repo: Any) -> list[str]:
    return list(repo.git("rev-list", "--reverse", "HEAD").split())


def test_every_version_without_touching_the_user(repo: Any, tmp_path: Path) -> None:
    repo.write({"a.txt": "staged\n"})
    repo.git("add", "a.txt")
    repo.write({"a.txt": "edited\n", "untracked.txt": "x\n", "ignored.log": "x\n"})
    before = repo.picture()
    index = (repo.root / ".git/index").read_bytes()
    folder = tmp_path / "copy"
    with repo.vcs.working_copy(folder) as copy:
        for version, text in zip(versions(repo), ("one\n", "two\n", "three\n"), strict=True):
            place = copy.switch(version)
            assert place == folder
            assert files(place) == {"a.txt": text, "sub/b.txt": "same\n", ".gitignore": "*.log\n"}
            assert repo.git("rev-parse", "HEAD", at=place) == version
    assert not folder.exists() and worktrees(repo) == 1 and repo.picture() == before
    assert (repo.root / ".git/index").read_bytes() == index and repo.stashes() == []


def test_left_overs_of_a_run_are_gone_in_the_next_version(repo: Any, tmp_path: Path) -> None:
    first, _, last = versions(repo)
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(first)
        (place / "a.txt").write_text("changed by the run")
        (place / "sub/b.txt").unlink()
        (place / "build").mkdir()
        (place / "build/out.log").write_text("ignored")
        (place / "nested").mkdir()
        repo.git("init", "--quiet", at=place / "nested")
        repo.git("add", "a.txt", at=place)
        assert copy.switch(last) == place
        assert sorted(files(place)) == [".gitignore", "a.txt", "sub/b.txt"]
        assert not (place / "nested").exists()
        # The same version again is as clean.
        (place / "junk").write_text("")
        copy.switch(last)
        assert not (place / "junk").exists()


def test_run_that_commits_or_switches_branches(repo: Any, tmp_path: Path) -> None:
    first, _, last = versions(repo)
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(first)
        repo.git("switch", "--quiet", "-c", "made-by-the-run", at=place)
        repo.git("commit", "--quiet", "--allow-empty", "-m", "by the run", at=place)
        copy.switch(last)
        assert files(place)["a.txt"] == "three\n"
    assert repo.git("rev-parse", "main") == last


DAMAGE = {
    "no .git": "rm .git",
    "new repository": "rm .git; git init -q",
    "lock": 'touch "$(git rev-parse --absolute-git-dir)/index.lock"',
    "gone": "rm -r ../copy",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_working_copy_is_made_anew_and_never_taken_for_the_users(repo: Any, damage: str) -> None:
    """The working copy lies inside the user's repository, where git would look next."""
    first, _, last = versions(repo)
    repo.write({"untracked.txt": "mine\n", "a.txt": "edited\n"})
    before = repo.picture()
    folder = repo.root / ".perun" / "copy"
    with repo.vcs.working_copy(folder) as copy:
        place = copy.switch(first)
        repo.shell(DAMAGE[damage], at=place)
        (place / "junk").parent.mkdir(exist_ok=True)
        (place / "junk").write_text("")
        copy.switch(last)
        assert sorted(files(place)) == [".gitignore", "a.txt", "sub/b.txt"]
        assert files(place)["a.txt"] == "three\n"
    folder.parent.rmdir()
    assert repo.picture() == before and worktrees(repo) == 1


def test_write_protected_left_overs(repo: Any, tmp_path: Path) -> None:
    first, _, last = versions(repo)
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(first)
        (place / "cache/deep").mkdir(parents=True)
        (place / "cache/deep/file").write_text("")
        (place / "cache/deep").chmod(0o500)
        (place / "cache").chmod(0o500)
        copy.switch(last)
        assert not (place / "cache").exists()
        (place / "cache/deep").mkdir(parents=True)
        (place / "cache/deep").chmod(0o500)
    assert not (tmp_path / "copy").exists()


def test_never_used(repo: Any, tmp_path: Path) -> None:
    with repo.vcs.working_copy(tmp_path / "copy"):
        pass
    assert not (tmp_path / "copy").exists()


def test_removed_after_a_failure(repo: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), repo.vcs.working_copy(tmp_path / "copy") as copy:
        copy.switch(versions(repo)[0])
        raise RuntimeError
    assert not (tmp_path / "copy").exists() and worktrees(repo) == 1


LEFT = {
    "whole": "", "half removed": "rm copy/.git", "folder gone": "mv copy elsewhere",
    "locked": "git -C project worktree lock ../copy",
}  # fmt: skip


@pytest.mark.parametrize("state", LEFT)
def test_left_over_of_a_killed_run(repo: Any, tmp_path: Path, state: str) -> None:
    first, _, last = versions(repo)
    folder = tmp_path / "copy"
    killed = repo.vcs.working_copy(folder)
    killed.__enter__()
    killed.switch(first)
    (folder / "junk").write_text("")
    repo.shell(LEFT[state], at=tmp_path)
    with repo.vcs.working_copy(folder) as copy:
        assert sorted(files(copy.switch(last))) == [".gitignore", "a.txt", "sub/b.txt"]
    assert not folder.exists() and worktrees(repo) == 1


def test_folder_of_the_user_is_refused(repo: Any, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with repo.vcs.working_copy(folder) as copy:  # empty: may be used
        copy.switch(versions(repo)[0])
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(VersionControlError, match="not empty"), repo.vcs.working_copy(folder):
        pass
    assert (folder / "thesis.txt").read_text() == "mine"

    linked = tmp_path / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "work", str(linked))
    for taken in (linked, repo.root):
        with pytest.raises(VersionControlError, match="not empty"), repo.vcs.working_copy(taken):
            pass
        assert (taken / "a.txt").exists()


def test_unknown_version(repo: Any, tmp_path: Path) -> None:
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        for version in ("0" * 40, "--force"):
            with pytest.raises(VersionControlError):
                copy.switch(version)
        copy.switch(versions(repo)[0])


def test_below_the_top(repo: Any, tmp_path: Path) -> None:
    repo.commit("deeper", {"sub/žluť deep/c.txt": "c\n"})
    vcs = Git(repo.root / "sub/žluť deep", repo.environ)
    with vcs.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(repo.git("rev-parse", "HEAD"))
        assert place == tmp_path / "copy/sub/žluť deep" and (place / "c.txt").read_text() == "c\n"
        with pytest.raises(VersionControlError, match="no folder"):
            copy.switch(versions(repo)[0])
        copy.switch(repo.git("rev-parse", "HEAD"))


def test_from_a_linked_working_tree_with_blanks(repo: Any, tmp_path: Path) -> None:
    linked = tmp_path / "my linked tree"
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(linked))
    with Git(linked, repo.environ).working_copy(tmp_path / "copy of žluť" / "x y") as copy:
        assert files(copy.switch(versions(repo)[1]))["a.txt"] == "two\n"
        assert worktrees(repo) == 3
    assert worktrees(repo) == 2


@pytest.mark.parametrize("option", ["--separate-git-dir=../git dir", "--object-format=sha256"])
def test_other_forms_of_repositories(make: Make, tmp_path: Path, option: str) -> None:
    repo = make("project", option)
    head = repo.commit("one", {"a.txt": "one\n"})
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        assert files(copy.switch(head)) == {"a.txt": "one\n"}


def test_bare_repository(repo: Any, tmp_path: Path) -> None:
    repo.git("clone", "--quiet", "--bare", str(repo.root), str(tmp_path / "bare.git"))
    with Git(tmp_path / "bare.git", repo.environ).working_copy(tmp_path / "copy") as copy:
        assert files(copy.switch(versions(repo)[0]))["a.txt"] == "one\n"
    assert not (tmp_path / "copy").exists()


def test_shallow_clone(repo: Any, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    repo.git("clone", "--quiet", "--depth=2", f"file://{repo.root}", str(clone))
    vcs = Git(clone, repo.environ)
    first, second, _ = versions(repo)
    with vcs.working_copy(tmp_path / "copy") as copy:
        assert files(copy.switch(second))["a.txt"] == "two\n"
        with pytest.raises(VersionControlError):
            copy.switch(first)


def test_submodule_is_left_empty(repo: Any, make: Make, tmp_path: Path) -> None:
    library = make("library")
    library.commit("lib", {"lib.txt": "1"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "lib")
    head = repo.commit("submodule")
    repo.git("config", "submodule.recurse", "true")
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(head)
        assert list((place / "lib").iterdir()) == []
        (place / "lib/made-by-run").write_text("")
        copy.switch(versions(repo)[0])
        assert not (place / "lib").exists()
        copy.switch(head)
    assert (repo.root / "lib/lib.txt").exists()


def test_sparse_checkout_of_the_user(repo: Any, tmp_path: Path) -> None:
    head = repo.commit("more", {"far/away.txt": "1\n"})
    repo.git("sparse-checkout", "set", "sub")
    before = repo.picture()
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        assert sorted(files(copy.switch(head))) == [".gitignore", "a.txt", "sub/b.txt"]
        assert "sub/b.txt" in files(copy.switch(versions(repo)[0]))
    assert repo.picture() == before


def test_filters_work(repo: Any, tmp_path: Path) -> None:
    head = repo.commit("filtered", {".gitattributes": "*.big filter=big\n", "x.big": "pointer\n"})
    repo.git("config", "filter.big.smudge", "sed s/pointer/content/")
    repo.git("config", "filter.big.clean", "sed s/content/pointer/")
    repo.git("config", "filter.big.required", "true")
    with repo.vcs.working_copy(tmp_path / "copy") as copy:
        assert files(copy.switch(head))["x.big"] == "content\n"


def test_hooks_do_not_run_and_a_surrounding_hook_does_not_matter(repo: Any, make, tmp_path: Path) -> None:
    hook = repo.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    other = make("other")
    other.commit("other", {"other.txt": "x"})
    before = other.picture()
    repo.environ.update(GIT_DIR=str(other.root / ".git"), GIT_INDEX_FILE=str(other.root / ".git/index"))
    vcs = repo.vcs
    head = vcs.get_minor_head()
    with vcs.working_copy(tmp_path / "copy") as copy:
        assert files(copy.switch(head))["a.txt"] == "three\n"
    del repo.environ["GIT_DIR"], repo.environ["GIT_INDEX_FILE"]
    assert other.picture() == before and not (tmp_path / "hook-ran").exists()


def test_repository_without_commits(make: Make, tmp_path: Path) -> None:
    repo = make()
    with repo.vcs.working_copy(tmp_path / "copy") as copy, pytest.raises(VersionControlError):
        copy.switch("0" * 40)


def test_folder_through_a_link(repo: Any, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        copy = repo.vcs.working_copy(tmp_path / "link" / "copy")
        copy.__enter__()
        assert os.path.samefile(copy.switch(versions(repo)[0]), tmp_path / "real/copy")
    copy.__exit__(None, None, None)
    assert worktrees(repo) == 1


def test_main_working_tree(repo: Any, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(linked))
    assert main_working_tree(repo.root, repo.environ) is None
    assert main_working_tree(repo.root / "sub", repo.environ) is None
    assert main_working_tree(linked, repo.environ) == (repo.root, linked)
    assert main_working_tree(linked / "sub", repo.environ) == (repo.root, linked)
    repo.environ["GIT_CEILING_DIRECTORIES"] = str(tmp_path)
    (tmp_path / "plain").mkdir()
    with pytest.raises(VersionControlError):
        main_working_tree(tmp_path / "plain", repo.environ)


def test_half_a_note_of_a_killed_run_is_in_nobodys_way(repo: Any, tmp_path: Path) -> None:
    """A git that was killed, or found the disk full, before it had written all of `.git/worktrees/<name>`."""
    name = f"worktree-999999999-{system()}0000"
    notes = repo.root / ".git/worktrees" / name
    notes.mkdir(parents=True)
    (notes / "gitdir").write_text(f"{tmp_path}/{name}/.git\n")
    (notes / "commondir").touch()
    users = notes.with_name("of-the-user")
    users.mkdir()
    (users / "locked").touch()
    elsewhere = notes.with_name("worktree-1-0badcafe0000")
    elsewhere.mkdir()
    with repo.vcs.working_copy(tmp_path / "worktree-4711") as copy:
        copy.switch(versions(repo)[0])
    assert not notes.exists() and users.exists() and elsewhere.exists()
    os.utime(elsewhere, (1, 1))
    with repo.vcs.working_copy(tmp_path / "worktree-4711"):
        assert not elsewhere.exists()
    assert worktrees(repo) == 1
