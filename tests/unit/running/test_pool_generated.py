"""Generated files on a machine: taken in by pieces, and only what their name says."""

from __future__ import annotations

import io
import os
import shlex
import tarfile
from pathlib import Path

import pytest

from perun.core.config.layers import Config
from perun.core.errors import JobFailed, UsageError
from perun.repository import workloads
from perun.repository.repository import Repository
from perun.repository.workloads import Input
from perun.running.pool import orders

OLD = 1_000_000_000


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A repository, of which only the folder matters."""
    return Repository(tmp_path, tmp_path, Config(()), {})


def archive(*members: tuple[str, bytes]) -> bytes:
    """An archive of files with these names; one without content is a link to `/etc/passwd`."""
    file = io.BytesIO()
    with tarfile.TarFile(fileobj=file, mode="w") as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if not content:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(member, io.BytesIO(content))
    return file.getvalue()


def name_of(folder: Path, *members: tuple[str, bytes]) -> str:
    """What a folder with these files is called."""
    for name, content in members:
        path = folder / "sample" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return f"words-{workloads.checksum_of(folder / 'sample')}"


def test_pieces_of_an_archive_become_the_files(repo: Repository, tmp_path: Path) -> None:
    members = (("a.txt", b"one"), ("in/b.txt", b"two"))
    name, data = name_of(tmp_path, *members), archive(*members)
    store = orders.Store(repo)
    old = orders.home(repo) / "old-0123456789ab"
    old.mkdir()
    os.utime(old, (OLD, OLD))
    store.add_piece(name, 0, data[:999], False)  # it was interrupted, and begins anew
    for start in range(0, len(data), 700):
        assert not store.has(name)
        store.add_piece(name, start, data[start : start + 700], start + 700 >= len(data))
    assert store.has(name)
    store.check(name)
    assert (orders.home(repo) / name / "in/b.txt").read_bytes() == b"two"
    assert sorted(path.name for path in orders.home(repo).iterdir()) == [name]
    # What a program has changed is not measured with.
    (orders.home(repo) / name / "a.txt").write_bytes(b"other")
    with pytest.raises(JobFailed, match="were changed or removed"):
        store.check(name)
    assert not store.has(name)  # it is sent again


@pytest.mark.parametrize("member", [("../a", b"x"), ("/tmp/a", b"x"), ("a", b"")])
def test_an_archive_that_leads_elsewhere(repo: Repository, tmp_path: Path, member: tuple[str, bytes]) -> None:
    with pytest.raises(UsageError, match="cannot be a generated file"):
        orders.Store(repo).add_piece("words-0123456789ab", 0, archive(member), True)


@pytest.mark.parametrize("name", ["", "..", "/etc", "a/b", "."])
def test_a_name_that_leads_elsewhere(repo: Repository, name: str) -> None:
    with pytest.raises(UsageError, match="names no folder"):
        orders.Store(repo).has(name)


def test_files_that_are_not_those_of_the_name(repo: Repository, tmp_path: Path) -> None:
    name = name_of(tmp_path, ("a.txt", b"one"))
    with pytest.raises(UsageError, match="are not those of"):
        orders.Store(repo).add_piece(name, 0, archive(("a.txt", b"two")), True)
    with pytest.raises(UsageError, match="is no archive"):
        orders.Store(repo).add_piece(name, 0, b"no archive" * 100, True)
    assert not orders.Store(repo).has(name)


@pytest.mark.parametrize("start", ["", "< "])
def test_an_input_names_the_same_file_elsewhere(repo: Repository, tmp_path: Path, start: str) -> None:
    other = Repository(tmp_path / "it's", tmp_path, Config(()), {})
    file = orders.home(other) / "words-0123456789ab" / "a b.txt"
    one = Input(start + shlex.quote(str(file)), 3)
    written = orders.described(other, one)
    assert orders.folder_of(written) == "words-0123456789ab"
    assert orders.input_of(other, written) == one
    assert str(orders.home(repo)) in orders.input_of(repo, written).text


@pytest.mark.parametrize("text", ["12", "a 'b", "/etc/passwd", "< /etc/passwd", ""])
def test_any_other_input_stays_as_it_is(repo: Repository, text: str) -> None:
    written = orders.described(repo, Input(text, 1))
    assert written == [text, 1]
    assert orders.folder_of(written) is None
    assert orders.input_of(repo, written) == Input(text, 1)
