"""What only a remote in a git repository has to keep to."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.core.errors import RemoteError
from perun.store.remote.contract import Remote
from perun.store.remote.opening import opened


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.fixture
def remote(new_url: Callable[[str], str], tmp_path: Path) -> Remote:
    return opened(new_url("git"), folder=tmp_path, environ=os.environ, scratch=tmp_path / "scratch")


def size_of(folder: Path) -> int:
    """Bytes of the objects of a repository."""
    return sum(path.stat().st_size for path in (folder / "objects").rglob("*") if path.is_file())


def test_neither_refs_nor_objects_of_the_user_change(remote: Remote, tmp_path: Path) -> None:
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--allow-empty", "-m", "x")
    git(tmp_path, "push", "--quiet", "origin", "HEAD:main")
    before = sorted(path for path in (tmp_path / ".git").rglob("*"))
    remote.put("packs/aa", b"x" * 1000)
    remote.replace("heads/gc", b"1", None)
    remote.replace("heads/gc", b"2", b"1")
    assert remote.get("packs/aa") == b"x" * 1000
    remote.delete("packs/aa")
    assert sorted(path for path in (tmp_path / ".git").rglob("*")) == before
    assert list((tmp_path / "scratch").iterdir()) == []


def test_who_clones_gets_none_of_it(remote: Remote, tmp_path: Path) -> None:
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--allow-empty", "-m", "x")
    git(tmp_path, "push", "--quiet", "origin", "HEAD:main")
    content = os.urandom(100_000)
    remote.put("packs/aa", content)
    url = f"file://{tmp_path}/server.git"
    git(tmp_path, "clone", "--quiet", url, "clone")
    assert "perun" not in git(tmp_path / "clone", "for-each-ref")
    assert size_of(tmp_path / "clone/.git") < 10_000


def test_the_server_grows_by_what_is_sent(remote: Remote, tmp_path: Path) -> None:
    server = tmp_path / "server.git"
    before = size_of(server)
    sent = 0
    for number in range(6):
        content = os.urandom(50_000)
        remote.put(f"packs/{number}", content)
        sent += len(content)
    # Its format and a checksum cost some bytes for each piece.
    assert size_of(server) - before <= sent + 6 * 100
    remote.put("packs/0", b"something else")
    assert size_of(server) - before <= sent + 6 * 100


def test_what_was_deleted_is_collected(remote: Remote, tmp_path: Path) -> None:
    remote.put("packs/aa", os.urandom(50_000))
    remote.delete("packs/aa")
    git(tmp_path / "server.git", "gc", "--quiet", "--prune=now")
    assert size_of(tmp_path / "server.git") < 1000
    assert git(tmp_path / "server.git", "for-each-ref") == ""


def test_a_piece_is_there_without_the_ref_of_its_size(remote: Remote, tmp_path: Path) -> None:
    """As where the server was stopped between the two."""
    remote.put("packs/aa", b"12345")
    git(tmp_path / "server.git", "update-ref", "-d", "refs/perun/sizes/packs/aa=/5")
    assert list(remote.list("packs/")) == [("packs/aa", 5)] and remote.get("packs/aa") == b"12345"


def test_the_server_is_asked_once_for_a_list(remote: Remote, tmp_path: Path, monkeypatch) -> None:
    remote.put("packs/aa", b"12345")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    other = opened("git:origin", folder=tmp_path, environ=os.environ)
    assert list(other.list("packs/")) == [("packs/aa", 5)]
    assert (tmp_path / "trace").read_text().count("built-in: git ls-remote") == 1


def test_what_somebody_else_put_there_is_passed_over(remote: Remote, tmp_path: Path) -> None:
    remote.put("packs/aa", b"12345")
    blob = git(tmp_path / "server.git", "rev-parse", "refs/perun/pieces/packs/aa=").strip()
    for ref in ("perun/pieces/packs/Aa=", "perun/pieces/x", "perun/sizes/packs/aa=/x", "perun/other"):
        git(tmp_path / "server.git", "update-ref", f"refs/{ref}", blob)
    assert list(remote.list("packs/")) == [("packs/aa", 5)]


def test_a_remote_that_git_does_not_know_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(RemoteError, match="git:upstream: there is no git repository") as error:
        opened("git:upstream", folder=tmp_path, environ=os.environ).put("packs/aa", b"x")
    assert "git remote -v" in error.value.hint


def test_a_project_without_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    remote = opened("git:origin", folder=tmp_path, environ=os.environ)
    with pytest.raises(RemoteError, match="the project is in no git repository"):
        remote.put("packs/aa", b"x")
    with pytest.raises(RemoteError):
        list(remote.list("packs/"))


def test_a_server_that_refuses_the_refs_is_named(remote: Remote, tmp_path: Path) -> None:
    git(tmp_path / "server.git", "config", "receive.hideRefs", "refs/perun")
    for use in (lambda: remote.put("packs/aa", b"x"), lambda: remote.replace("heads/gc", b"1", None)):
        with pytest.raises(RemoteError, match="the server takes no refs below refs/perun"):
            use()


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    remote = opened("git:https://127.0.0.1:9/perf.git", folder=tmp_path, environ=os.environ)
    with pytest.raises(RemoteError, match="the server cannot be reached"):
        list(remote.list("packs/"))


def test_what_a_killed_process_left_is_removed(new_url: Callable[[str], str], tmp_path: Path) -> None:
    from perun.core import atomic

    left = tmp_path / "scratch" / f".tmp-{2**22 + 1}-{atomic.system()}-{'0' * 12}"
    left.mkdir(parents=True)
    (left / "piece").write_bytes(b"x")
    own = tmp_path / "scratch" / atomic.temporary_name()
    own.mkdir()
    opened(new_url("git"), folder=tmp_path, environ=os.environ, scratch=tmp_path / "scratch").close()
    assert not left.exists() and own.exists()


SETTINGS = {
    "color.push": "always", "color.transport": "always", "color.ui": "always", "core.abbrev": "4",
    "core.hooksPath": "hooks", "fetch.all": "true", "fetch.bundleURI": "file:///no/bundle",
    "fetch.output": "compact", "fetch.parallel": "0", "fetch.prune": "true", "fetch.pruneTags": "true",
    "fetch.recurseSubmodules": "true", "fetch.showForcedUpdates": "false", "fetch.unpackLimit": "1",
    "fetch.writeCommitGraph": "true", "push.autoSetupRemote": "true", "push.default": "nothing",
    "push.followTags": "true", "push.gpgSign": "true", "push.negotiate": "true",
    "push.pushOption": "option", "push.recurseSubmodules": "only", "push.useForceIfIncludes": "true",
    "remote.origin.fetch": "+refs/*:refs/*", "remote.origin.mirror": "true", "remote.origin.prune": "true",
    "remote.origin.pruneTags": "true", "remote.origin.push": "refs/heads/*",
    "remote.origin.tagOpt": "--tags", "remote.origin.partialCloneFilter": "blob:none",
    "remote.pushDefault": "elsewhere", "submodule.recurse": "true", "transfer.fsckObjects": "true",
    "transfer.unpackLimit": "1", "uploadpack.hideRefs": "refs/perun", "log.showSignature": "true",
}  # fmt: skip


@pytest.mark.parametrize("settings", [
    pytest.param(list(SETTINGS), id="all"),
    *(pytest.param([one], marks=pytest.mark.slow, id=one) for one in SETTINGS),
])  # fmt: skip
def test_no_setting_changes_what_is_sent(settings: list[str], remote: Remote, tmp_path: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=b")
    git(tmp_path, *who, "commit", "--quiet", "--allow-empty", "-m", "x")
    git(tmp_path, *who, "tag", "-a", "v1", "-m", "x")
    git(tmp_path / "server.git", "config", "core.logAllRefUpdates", "false")
    for name in settings:
        git(tmp_path, "config", "--add", name, SETTINGS[name])
    before = sorted(path for path in (tmp_path / ".git").rglob("*"))
    assert remote.put("packs/aa", b"x" * 1000) and not remote.put("packs/aa", b"y")
    assert remote.replace("heads/gc", b"1", None)
    assert remote.replace("heads/gc", b"two", b"1") and not remote.replace("heads/gc", b"3", b"1")
    again = opened("git:origin", folder=tmp_path, environ=os.environ, scratch=tmp_path / "scratch")
    assert list(again.list("")) == [("heads/gc", 3), ("packs/aa", 1000)]
    assert again.get("packs/aa") == b"x" * 1000
    again.delete("packs/aa")
    assert again.replace("heads/gc", b"4", b"two")
    found = git(tmp_path / "server.git", "for-each-ref", "--format=%(refname)").split()
    assert found == ["refs/perun/pieces/heads/gc=", "refs/perun/sizes/heads/gc=/1"]
    assert sorted(path for path in (tmp_path / ".git").rglob("*")) == before
