"""Programs with another malloc than that of the C library: each block is recorded once, or a note says so."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.collect.memory.preload import notes, preloaded
from perun.plugin.api import Run

Program = Callable[..., Path]

ALLOCATORS = {
    "libjemalloc.so.2": "libjemalloc2",
    "libtcmalloc_minimal.so.4": "libtcmalloc-minimal4",
    "libmimalloc.so.2": "libmimalloc2.0",
}
"""Shared library to its package in Debian."""
LOOKS = 200
"""Allocations below this size are those of the C library and the loader too."""
# The calls of sizes.c but for pvalloc, which jemalloc lacks: its free would get a block of the C library.
SIZES = [
    *(("malloc", 11), ("calloc", 21), ("realloc", 5000), ("reallocarray", 7000), ("memalign", 33)),
    *(("aligned_alloc", 256), ("posix_memalign", 45), ("valloc", 55), ("malloc", 13), ("malloc", 100)),
    *(("malloc", 7), ("malloc", 0), ("malloc", 77)),
]


@pytest.fixture(params=ALLOCATORS)
def allocator(request: pytest.FixtureRequest) -> str:
    """The name of a shared library that replaces malloc."""
    name: str = request.param
    found = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": name}, capture_output=True, check=True)
    if found.stderr:  # the loader cannot find it
        pytest.skip(f"{name} is not installed: apt-get install {ALLOCATORS[name]}")
    return name


@pytest.fixture(params=["linked", "preloaded"])
def run(request, record, program: Program, memory_recorder: Path, allocator: str) -> Callable[..., object]:
    """Record a program with the allocator: `run("sizes.c", "quiet")`."""

    def recorded(source: str, *arguments: str) -> object:
        if request.param == "linked":
            path = program(source, "-Wl,--no-as-needed", f"-l:{allocator}")
            return record(path, *arguments)
        return record(program(source), *arguments, LD_PRELOAD=f"{memory_recorder}:{allocator}")

    return recorded


@pytest.mark.each_value("run", "allocator")
def test_every_function_of_c_is_recorded_once(run, allocator: str) -> None:
    done = run("sizes.c", "quiet")
    assert done.status == 0
    own = [one for one in done.allocated if one[1] < 70_000]
    if allocator.startswith("libtcmalloc"):  # its own two objects, made before main
        assert own[:2] == [("new", 16), ("new", 8)]
        own = own[2:]
    assert own == SIZES
    assert [size for size in done.live.values() if size < 70_000 and size not in (8, 16)] == [77]
    assert done.recording.end.skipped == 0


@pytest.mark.each_value("run", "allocator")
def test_every_form_of_new_and_delete_is_recorded_once(run, record, program: Program, allocator: str) -> None:
    done, plain = run("containers.cpp", "quiet"), record(program("containers.cpp"), "quiet")
    assert (done.status, done.out) == (0, plain.out)
    ours, expected = Counter(done.subtypes), Counter(plain.subtypes)
    made_before_main = 2 if allocator.startswith("libtcmalloc") else 0
    # The aligned `new` of jemalloc calls aligned_alloc, whose event counts.
    news = ours["new"] + ours["new[]"] + ours["aligned_alloc"]
    assert news == expected["new"] + expected["new[]"] + made_before_main
    assert ours["delete"] == expected["delete"] and ours["delete[]"] == expected["delete[]"]
    if not allocator.startswith("libjemalloc"):
        assert ours["new[]"] == expected["new[]"]
    # Each release is that of a live block: what is left is as much as without the allocator.
    assert len(done.events) - 2 * int(done.events.releases.sum()) == len(done.live)
    assert len(done.live) <= len(plain.live) + made_before_main + 1


@pytest.mark.each_value("run", "allocator")
def test_sizes_of_objects_are_those_of_the_program(run, record, program: Program) -> None:
    def objects(recorded) -> Counter[int]:
        return Counter(size for name, size in recorded.allocated if name == "new" and size > LOOKS // 4)

    done, plain = run("containers.cpp", "quiet"), record(program("containers.cpp"), "quiet")
    missing = objects(plain) - objects(done)
    assert sum(missing.values()) <= 2  # aligned ones of jemalloc, which are aligned_alloc


def test_program_with_its_own_malloc_runs_as_without(record, program: Program) -> None:
    path = program("own_allocator.c")
    plain = subprocess.run([path], capture_output=True, check=True)
    done = record(path)
    assert (done.status, done.out, done.errors) == (0, plain.stdout, b"")
    assert list(notes(str(path), [])) == [
        f"{path.name} has an allocator of its own (malloc): what it does not take from the C library is not "
        "in the profile; link it to the shared library of the allocator to record it"
    ]


def test_hidden_allocator_is_named(record, program: Program) -> None:
    path = program("own_allocator.c", "-DHIDDEN")
    done = record(path)
    assert done.out == b"kept of the C library 10\n"
    assert ("malloc", 17) in done.allocated  # that of strdup
    assert not {1001, 77, 5000} & {size for _, size in done.allocated}
    (note,) = notes(str(path), [])
    assert note.startswith(f"{path.name} has an allocator of its own (je_malloc): ")


def test_files_without_an_allocator_have_no_note(program: Program, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.write_bytes(program("list.c").read_bytes()[:700])
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    for path in (program("list.c"), program("containers.cpp"), damaged, script, tmp_path / "missing"):
        assert list(notes(str(path), [])) == []
    assert list(notes(sys.executable, [str(program("list.c"))])) == []


def test_allocator_that_is_called_by_its_own_names_is_named(program: Program) -> None:
    path = program("plugin.c", "-shared", "-fPIC", "-DAMOUNT=9", "-Dmalloc=mi_malloc")
    (note,) = notes(sys.executable, [str(path)])
    assert note.startswith(f"{path.name} calls mi_malloc, which the recorder does not see: ")


def test_libraries_in_a_namespace_of_their_own_are_told(program: Program) -> None:
    path = program("plugin.c", "-shared", "-fPIC", "-DAMOUNT=9", "-Dmalloc=dlmopen")
    (note,) = notes(sys.executable, [str(path)])
    assert note.startswith(f"{path.name} calls dlmopen: ") and "not in the profile" in note


@pytest.mark.parametrize(("cmd", "argv", "environ"), [
    ("env LD_PRELOAD=o.so A=1 ./program", ["./program"], {"A": "1", "B": "0", "LD_PRELOAD": "r.so:o.so"}),
    ("/usr/bin/env -u B program -x C=2", ["program", "-x", "C=2"], {"LD_PRELOAD": "r.so:old.so"}),
    ("env -i -- D='1 2' program", ["program"], {"D": "1 2", "LD_PRELOAD": "r.so"}),
    ("env --chdir=/ program", ["env", "--chdir=/", "program"], {"B": "0", "LD_PRELOAD": "r.so:old.so"}),
    ("env A=1", ["env", "A=1"], {"B": "0", "LD_PRELOAD": "r.so:old.so"}),
    ("program A=1", ["program", "A=1"], {"B": "0", "LD_PRELOAD": "r.so:old.so"}),
])  # fmt: skip
def test_program_behind_env_is_what_is_recorded(cmd: str, argv: list[str], environ: dict[str, str]) -> None:
    run = Run(cmd, "", "< input", environ={"LD_PRELOAD": "old.so", "B": "0"})
    changed = preloaded(run, Path("r.so"), {"SETTING": "x"})
    assert changed.command().argv == argv and changed.command().stdin_file == "input"
    assert dict(changed.environ) == {"SETTING": "x", **environ}
