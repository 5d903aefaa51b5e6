"""Many files that are written at once: each is the old or the new one, and what is named is on the disk."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perun.core.atomic import NewFile, write_many

COUNTS = [3, 40]  # few, of which each is flushed, and many, for which the whole file system is


def files(folder: Path, count: int, *, said: bytes = b"new") -> list[NewFile]:
    return [
        NewFile(folder / f"{number % 2}/deeper/{number}", [said, b"%d" % number], 10**18 + number)
        for number in range(count)
    ]


@pytest.mark.parametrize("count", COUNTS)
def test_each_has_its_content_and_its_time(tmp_path: Path, count: int) -> None:
    write_many(files(tmp_path, count), tmp_path)
    for number, file in enumerate(files(tmp_path, count)):
        assert Path(file.path).read_bytes() == b"new%d" % number
        assert os.stat(file.path).st_mtime_ns == file.modified
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == count


def test_the_last_of_one_name_counts(tmp_path: Path) -> None:
    for _ in range(2):  # into a folder that is missing, and into one that is there
        write_many([NewFile(tmp_path / "new/file", [said]) for said in (b"longer", b"last")], tmp_path)
        assert (tmp_path / "new/file").read_bytes() == b"last"
        assert [path.name for path in tmp_path.rglob("*")] == ["new", "file"]


def test_a_folder_that_somebody_else_makes_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    def while_it_is_made() -> Iterator[NewFile]:
        yield from files(tmp_path, 4)
        (tmp_path / "0/deeper").mkdir(parents=True)
        (tmp_path / "0/deeper/theirs").write_bytes(b"theirs")
        (tmp_path / "0/deeper/2").write_bytes(b"older")
        (tmp_path / "1/deeper").mkdir()

    write_many(while_it_is_made(), tmp_path)
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in there}
    expected = {f"{number % 2}/deeper/{number}": b"new%d" % number for number in range(4)}
    assert found == {**expected, "0/deeper/theirs": b"theirs"}


def test_permissions_of_what_is_there_stay(tmp_path: Path) -> None:
    write_many(files(tmp_path, 2), tmp_path)
    (tmp_path / "0/deeper/0").chmod(0o640)
    write_many(files(tmp_path, 2, said=b"other"), tmp_path)
    assert (tmp_path / "0/deeper/0").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "0/deeper/0").read_bytes() == b"other0"


@pytest.mark.parametrize("count", COUNTS)
def test_where_it_fails_all_is_as_it_was(tmp_path: Path, count: int) -> None:
    write_many(files(tmp_path, count), tmp_path)

    def failing() -> Iterator[NewFile]:
        yield from files(tmp_path, count, said=b"other")
        raise ValueError

    with pytest.raises(ValueError):
        write_many(failing(), tmp_path)
    found = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {f"{number}": b"new%d" % number for number in range(count)}
    with pytest.raises(ValueError):
        write_many(failing(), tmp_path / "other")
    assert not list((tmp_path / "other").iterdir())


def test_a_name_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    (tmp_path / "0/deeper/0").mkdir(parents=True)
    with pytest.raises(OSError) as problem:
        write_many(files(tmp_path, 3), tmp_path)
    assert str(tmp_path / "0/deeper/0") in str(problem.value)
    assert not list(tmp_path.rglob(".tmp-*"))


@pytest.mark.parametrize("has_syncfs", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_contents_are_on_the_disk_before_any_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, has_syncfs: bool
) -> None:
    done: list[str] = []
    replace, fsync, library = os.replace, os.fsync, ctypes.CDLL(None)

    class Library:
        if has_syncfs:

            def syncfs(self, descriptor: int) -> int:
                done.append("all")
                return int(library.syncfs(descriptor))

    def flushed(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        kind = "file" if os.path.isfile(path) else "unfinished" if ".tmp-" in path else "folder"
        done.append(kind)
        fsync(descriptor)

    def named(temporary: str, path: str) -> None:
        done.append("named")
        replace(temporary, path)

    write_many(files(tmp_path, 1), tmp_path)  # of two folders one is there, the other is missing
    alone = len(files(tmp_path, count)[::2])
    monkeypatch.setattr(ctypes, "CDLL", lambda *_name, **_options: Library())
    monkeypatch.setattr(os, "replace", named)
    monkeypatch.setattr(os, "fsync", flushed)
    write_many(files(tmp_path, count), tmp_path)
    names = ["named"] * (1 + alone)
    if has_syncfs and count == COUNTS[1]:
        assert done == ["all", *names, "all"]
    else:
        before = [*["file"] * count, "unfinished"]
        assert done[: len(before) + len(names)] == before + names
        assert done.count("folder") == len(done) - len(before) - len(names) == len({"", "0/deeper", "1"})
