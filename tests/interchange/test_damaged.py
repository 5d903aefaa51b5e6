"""Damaged recordings that the programs which wrote them read for Perun: some make these loop, or take all
memory.

What Perun reads itself is given damaged files by `tests/fuzz`.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exchanged import Reader, needed, python_with, run

from perun.core.errors import ProfileError
from perun.core.process import programs
from perun.importer import _common
from perun.importer._common import FileReader
from perun.plugin.interchange import ImportContext, ImportFile

TOKENS = [b"", b"\0" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\n", b"9" * 40, b"../", b"\x80\0\0\0"]
QUICK, THOROUGH = 3, {"perf": 1000, "uftrace": 1000, "memray": 200}
"""Recordings; those of memray take most of a second each."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data after some edits: most overwrite, for whole records to be read that say nonsense."""
    for _ in range(chance.randrange(1, 7)):
        at = chance.randrange(len(data) + 1)
        token = chance.choice([*TOKENS, chance.randbytes(4), bytes([chance.randrange(256)])])
        how = chance.choice(["overwrite"] * 4 + ["insert", "drop", "cut", "repeat"])
        behind = {
            "overwrite": token + data[at + len(token) :], "insert": token + data[at:], "cut": b"",
            "drop": data[at + chance.randrange(20) :], "repeat": data[at : at + 50] + data[at:],
        }  # fmt: skip
        data = data[:at] + behind[how]
    return data


def recorded(kind: str, program: Callable[..., Path], folder: Path) -> Path:
    """A recording of the tool itself."""
    made = folder / "made"
    if kind == "memray":
        python_with("memray")
        (folder / "grow.py").write_text("kept = [bytearray(1 << 20) for _ in range(3)]\n")
        run([sys.executable, "-m", "memray", "run", "-q", "-o", str(made), "grow.py"], folder)
    elif kind == "uftrace":
        run([needed("uftrace"), "record", "-d", str(made), str(program("-pg"))], folder)
    else:
        perf = [needed("perf"), "record", "-q", "-g", "-e", "cpu-clock", "-F", "997", "-o", str(made)]
        run([*perf, str(program())], folder)
    return made


def give_damaged(
    kind: str, count: int, read: Reader, program: Callable[..., Path], folder: Path
) -> tuple[int, int]:
    """How many recordings of so many were read, and how many refused by name: nothing else comes of one."""
    whole, chance = recorded(kind, program, folder), random.Random(1)
    found = [0, 0]
    for _ in range(count):
        path = folder / "given"
        if whole.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(whole, path)
            one = chance.choice(
                [path / "info", path / "task.txt", *path.glob("[0-9]*.dat"), *path.glob("*.map")]
            )
        else:
            one, path = path, path
        one.write_bytes(damaged((whole / one.name if whole.is_dir() else whole).read_bytes(), chance))
        try:
            read(kind, path)
            found[0] += 1
        except ProfileError as problem:
            assert problem.message.startswith("given: ") and problem.hint
            found[1] += 1
    return found[0], found[1]


@pytest.mark.parametrize("kind", ["perf", "uftrace", "memray"])
def test_some_damaged_recordings(
    kind: str, read: Reader, program: Callable[..., Path], tmp_path: Path
) -> None:
    assert sum(give_damaged(kind, QUICK, read, program, tmp_path)) == QUICK


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["perf", "uftrace", "memray"])
def test_many_damaged_recordings(
    kind: str, read: Reader, program: Callable[..., Path], tmp_path: Path
) -> None:
    whole, refused = give_damaged(kind, THOROUGH[kind], read, program, tmp_path)
    assert whole + refused == THOROUGH[kind] and min(whole, refused) > 10


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: pass", "it cannot read it: status -9"),
        ("kept = bytearray(3 << 30)", "it cannot read it: MemoryError"),
        ("import sys; sys.exit('no such record')", "it cannot read it: no such record"),
    ],
)
def test_a_program_that_reads_a_file_has_bounded_time_and_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, said: str
) -> None:
    monkeypatch.setattr(_common, "_SECONDS", 1)
    (tmp_path / "file").write_bytes(b"x")
    file, context = ImportFile("file", tmp_path / "file"), ImportContext(print, tmp_path)
    words = [sys.executable, "-c", code]
    with FileReader(words, file, context, stderr=programs.PIPE) as process:
        errors = process.communicate()[1]
        with pytest.raises(ProfileError, match=said) as caught:
            process.finish("it", errors)
    assert caught.value.hint == "is it whole? it has 1 s of CPU time and 1024 MiB of memory for it"
