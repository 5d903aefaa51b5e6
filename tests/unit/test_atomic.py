"""Many files that are written at once: each is the old or the new one, and what is named is on the disk."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from perun.atomic import NewFile, write_many

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
        done.append("file" if os.path.isfile(f"/proc/self/fd/{descriptor}") else "folder")
        fsync(descriptor)

    def named(temporary: str, path: str) -> None:
        done.append("named")
        replace(temporary, path)

    monkeypatch.setattr(ctypes, "CDLL", lambda *_name, **_options: Library())
    monkeypatch.setattr(os, "replace", named)
    monkeypatch.setattr(os, "fsync", flushed)
    write_many(files(tmp_path, count), tmp_path)
    if has_syncfs and count == COUNTS[1]:
        assert done == ["all", *["named"] * count, "all"]
    else:
        assert done[: 2 * count] == [*["file"] * count, *["named"] * count]
        assert done[2 * count :] and set(done[2 * count :]) == {"folder"}
