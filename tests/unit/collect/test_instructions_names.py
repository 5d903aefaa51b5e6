"""How functions are named in profiles of instructions, and what makes runs repeatable."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which

import pytest

from perun.collect.instructions import names as python_functions
from perun.collect.instructions.engines import PADDING, STEP, fixed_addresses, repeatable
from perun.collect.instructions.names import NO_SYMBOLS, START_UP, Names, PythonFunctions
from perun.collect.instructions.tree import Frame, RecordedFunction
from perun.plugin.api import Run

PROJECT = Path("/home/me/project")


@pytest.mark.parametrize(
    ("function", "frame"),
    [
        (RecordedFunction("f", "/home/me/project/src/a.c", "/home/me/project/prog"), Frame("f", "src/a.c")),
        (RecordedFunction("f", "src/../a.c", "/home/me/project/prog"), Frame("f", "a.c")),
        (RecordedFunction("f", "/usr/include/list.h", "/home/me/project/prog"), Frame("f", "prog")),
        (RecordedFunction("f", "", "/home/me/project/prog"), Frame("f", "prog")),
        (
            RecordedFunction("printf@@GLIBC_2.2.5", "./stdio/printf.c", "/lib/libc.so.6"),
            Frame("printf", "libc.so.6"),
        ),
        (RecordedFunction("0x0000000000401020", "", "/usr/bin/gzip"), Frame(NO_SYMBOLS, "gzip")),
        (RecordedFunction("[unknown]", "", "/usr/bin/gzip"), Frame(NO_SYMBOLS, "gzip")),
        (RecordedFunction("0x000000000401020", "", "/lib64/ld-linux-x86-64.so.2"), START_UP),
        (RecordedFunction("(below main)", "", "/lib/libc.so.6"), START_UP),
        (RecordedFunction("__libc_start_main@@GLIBC_2.34", "", "/lib/libc.so.6"), START_UP),
        (RecordedFunction("0x00000000049479b0"), None),
        (RecordedFunction("with\x07bell", "", "/bin/x"), Frame("with�bell", "x")),
    ],
)
def test_frames(function: RecordedFunction, frame: Frame | None) -> None:
    assert Names(PROJECT, {}).frame(function) == frame


def test_names_of_cplusplus() -> None:
    function = RecordedFunction("_ZN4list4pushEi", "", "/usr/lib/liblist.so")
    names = Names(PROJECT, {"PATH": ""})
    names.learn([function])
    assert names.frame(function) == Frame("_ZN4list4pushEi", "liblist.so")
    assert names.mangled
    if which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    names = Names(PROJECT, dict(os.environ))
    names.learn([function, RecordedFunction("plain")])
    assert names.frame(function) == Frame("list::push(int)", "liblist.so")
    assert not names.mangled


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(python_functions, "MAPS", tmp_path)
    return tmp_path


def test_functions_of_python(maps: Path) -> None:
    (maps / "perf-77.map").write_text(
        "1000 b py::old:/p/a.py\nnonsense\n1000 b py::main:/home/me/project/a.py\n"
        "100b b py::Encoder.encode:/usr/lib/python3.12/json/encoder.py\n"
        "1016 b py::get:/v/lib/python3.12/site-packages/requests/api.py\n"
    )
    known = PythonFunctions(77)
    assert known
    assert not (maps / "perf-77.map").exists()
    names = Names(PROJECT, {}, python=True)
    frames = [
        names.frame(known.named(RecordedFunction(name)))
        for name in ("0x0000000000001000", "0x000000000000100b", "0x0000000000001020", "0x1021", "0xfff", "f")
    ]
    assert frames == [
        Frame("main", "a.py"),
        Frame("Encoder.encode", "python3.12/json/encoder.py"),
        Frame("get", "requests/api.py"),
        None,
        None,
        None,
    ]
    in_binary = RecordedFunction("0x0000000000001000", "", "/usr/bin/python3")
    assert known.named(in_binary) == in_binary


def test_a_forked_process_has_the_functions_of_its_parent(maps: Path) -> None:
    (maps / "perf-1.map").write_text("10 4 py::f:a.py\n20 4 py::g:a.py\n")
    (maps / "perf-2.map").write_text("20 4 py::h:a.py\n")
    child = PythonFunctions(2, PythonFunctions(1))
    assert [child.named(RecordedFunction(name)).name for name in ("0x10", "0x20")] == [
        "py::f:a.py",
        "py::h:a.py",
    ]


def test_maps_of_strangers_are_left_alone(maps: Path) -> None:
    assert not PythonFunctions(5)
    os.mkfifo(maps / "perf-6.map")
    assert not PythonFunctions(6)
    (maps / "target").write_text("10 4 py::f:a.py\n")
    (maps / "perf-7.map").symlink_to(maps / "target")
    assert not PythonFunctions(7)
    assert (maps / "target").exists()


def test_environments_take_the_same_room(tmp_path: Path) -> None:
    sizes = set()
    for argument, value in (("a", ""), ("a longer argument", "x" * 500), ("a", "é")):
        run = repeatable(Run(f"./prog '{argument}'", cwd=tmp_path, environ={"A": value, "B": "1"}))
        texts = [*run.command().argv, *(f"{name}={text}" for name, text in run.environ.items())]
        sizes.add(sum(len(os.fsencode(text)) + 9 for text in texts))
        assert repeatable(run) == run
    assert sizes == {STEP}


@pytest.mark.parametrize(("given", "seed"), [({}, "0"), ({"PYTHONHASHSEED": "random"}, "0")])
def test_hashes_of_python_are_the_same(given: dict[str, str], seed: str) -> None:
    assert repeatable(Run("p", environ=given)).environ["PYTHONHASHSEED"] == seed
    assert repeatable(Run("p", environ={"PYTHONHASHSEED": "7"})).environ["PYTHONHASHSEED"] == "7"
    assert PADDING in repeatable(Run("p")).environ


def test_addresses_stay_random_without_setarch(tmp_path: Path) -> None:
    assert fixed_addresses({"PATH": str(tmp_path)}) == []
    (tmp_path / "setarch").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "setarch").chmod(0o755)
    assert fixed_addresses({"PATH": f"{tmp_path}:/usr/bin:/bin"}) == []
