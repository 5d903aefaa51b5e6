"""Where programs and their files lie: anew in each run, with all that was there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from perun.core.process import layout
from perun.core.process.layout import Layout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A working copy, of which `build/out` is written to by each run."""
    folder = tmp_path / "copy"
    (folder / "build" / "out").mkdir(parents=True)
    (folder / "source").mkdir()
    for name in ("build/kept", "build/out/kept", "source/kept"):
        file = folder / name
        file.write_text(name)
        os.utime(file, (1, 1))
    for place in (folder / "source", folder / "build" / "out", folder / "build", folder):
        os.utime(place, (1, 1))
    (folder / "build" / "out").chmod(0o750)
    return folder


def run(folder: Path) -> None:
    """What writes one file over, and makes and removes another one."""
    (folder / "build" / "result").write_text("result")
    (folder / "build" / "out" / "made").touch()
    (folder / "build" / "out" / "made").unlink()


def visits(copy: Path, scratch: Path) -> list[dict[str, tuple[int, int]]]:
    """The number and time of each file and folder after each of three visits."""
    drawn = Layout(random.Random(1))
    scratch.mkdir()
    found = []
    for _ in range(3):
        drawn.place_anew("/bin/true", copy, scratch)
        paths = [copy, *copy.rglob("*")]
        # Numbers that are free are taken again: so that these stay taken, what has them is opened.
        found.append(
            {str(one.relative_to(copy)): (os.open(one, os.O_RDONLY), one.stat().st_ino) for one in paths}
        )
        run(copy)
    assert not list(scratch.iterdir())
    for visit in found:
        for descriptor, _ in visit.values():
            os.close(descriptor)
    return found


def test_what_a_run_has_written_to_is_made_anew(copy: Path, tmp_path: Path) -> None:
    first, second, third = visits(copy, tmp_path / "scratch")
    numbers = {name: {visit[name][1] for visit in (first, second, third)} for name in first}
    assert {name for name, own in numbers.items() if len(own) > 1} == {"build", "build/out"}
    assert second["build/result"][1] != third["build/result"][1]
    assert {one.name: one.read_text() for one in (copy / "build").glob("*") if one.is_file()} == {
        "kept": "build/kept",
        "result": "result",
    }
    assert (copy / "build" / "out" / "kept").read_text() == "build/out/kept"
    assert (copy / "build" / "out").stat().st_mode & 0o777 == 0o750
    assert (copy / "source" / "kept").stat().st_mtime == 1


@pytest.mark.parametrize("after", [0, 1])
def test_what_cannot_be_made_anew_is_as_before(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """As where a folder in it is the root of another file system, which cannot be moved."""
    real = os.rename
    calls: list[int] = []

    def rename(old: Path, new: Path) -> None:
        calls.append(1)
        if len(calls) == after + 1:
            raise OSError(18, "Invalid cross-device link")
        real(old, new)

    monkeypatch.setattr(layout.os, "rename", rename)
    visits(copy, tmp_path / "scratch")
    assert sorted(str(one.relative_to(copy)) for one in copy.rglob("*")) == [
        "build", "build/kept", "build/out", "build/out/kept", "build/result", "source", "source/kept",
    ]  # fmt: skip


def test_folders_with_thousands_of_files_stay(copy: Path, tmp_path: Path) -> None:
    for number in range(1200):
        (copy / "build" / "out" / str(number)).touch()
    numbers = [visit["build/out"][1] for visit in visits(copy, tmp_path / "scratch")]
    assert len(set(numbers)) == 1
