"""What can be reached at the end of a program, beside what valgrind's memcheck finds out."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perun.collect.memory.analysis import Analysis
from perun.collect.memory.events import STATES, BlockStates, LiveBlocks, reached

Program = Callable[..., Path]
Totals = dict[str, tuple[int, int]]
needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
LEAKS = {"definitely-lost": (210_075, 4), "indirectly-lost": (160, 5), "possibly-lost": (100, 1)}
"""Bytes and blocks that leaks.c loses."""


def ours(record, *command: str | Path, **options: object) -> Totals:
    """Bytes and blocks by state."""
    done = record(*command, PERUN_MEMORY_REACHABLE="1", **options)
    plain = subprocess.run(command, input=options.get("stdin", b""), capture_output=True, check=False)
    assert (done.status, done.out, done.errors) == (plain.returncode, plain.stdout, plain.stderr)
    reach = done.recording.reach
    assert reach is not None and reach.complete
    analysis = Analysis(1000)
    analysis.add(done.events)
    totals = reached(analysis.live(), reach).totals
    assert sum(size for size, _ in totals.values()) == sum(done.live.values())
    assert sum(blocks for _, blocks in totals.values()) == len(done.live)
    return dict(totals)


def of_memcheck(*command: str | Path, stdin: bytes = b"") -> Totals:
    """The same four numbers of memcheck, without its rules for some pointers to the inside of C++ objects."""
    # What libraries keep to their end stays: valgrind would free it.
    keeping = ["--run-libc-freeres=no", "--run-cxx-freeres=no"]
    rules = ["--leak-check=full", "--show-leak-kinds=none", "--leak-check-heuristics=newarray"]
    report = subprocess.run(
        ["valgrind", *keeping, *rules, *command], input=stdin, capture_output=True, check=False
    ).stderr.decode("utf-8", "replace")
    found = {}
    for name in STATES:
        sums = re.search(rf"{name.replace('-', ' ')}: ([\d,]+) bytes in ([\d,]+) blocks", report)
        assert sums, report
        found[name] = (int(sums[1].replace(",", "")), int(sums[2].replace(",", "")))
    return found


def beside(found: Totals, expected: Totals) -> None:
    """Every number is the same, but for bytes that the loader gives to threads and libraries of its own."""
    for name in STATES:
        assert found[name][1] == expected[name][1], (found, expected)
        assert abs(found[name][0] - expected[name][0]) <= 64 * expected[name][1], (found, expected)


def test_every_way_to_reach_a_block(record, program: Program) -> None:
    found = ours(record, program("leaks.c"))
    assert {name: found[name] for name in LEAKS} == LEAKS
    size, blocks = found["still-reachable"]
    assert (blocks, size) == (18, 10 * 32 + 3 * 32 + 77 + 300_000 + 64 + 200_000 + 4096)


@pytest.mark.parametrize("unwind", ["fp", "none"])
def test_search_does_not_depend_on_stacks(record, program: Program, unwind: str) -> None:
    found = ours(record, program("leaks.c"), unwind=unwind)
    assert {name: found[name] for name in LEAKS} == LEAKS


def test_stacks_of_threads_are_searched(record, program: Program) -> None:
    found = ours(record, program("leaks.c"), "5", "_exit")
    assert found["definitely-lost"] == LEAKS["definitely-lost"]
    assert found["indirectly-lost"] == LEAKS["indirectly-lost"]
    # Tables of the loader for each thread, to whose inside its threads refer, are possibly lost.
    assert found["possibly-lost"][1] == 1 + 5 and found["still-reachable"][1] == 18 + 2 * 5


@needs_valgrind
@pytest.mark.parametrize("arguments", [pytest.param([], marks=pytest.mark.slow), ["4", "_exit"]])
def test_numbers_are_those_of_memcheck(record, program: Program, arguments: list[str]) -> None:
    path = program("leaks.c")
    found = ours(record, path, *arguments)
    assert {name: found[name] for name in ("definitely-lost", "indirectly-lost")} == {
        name: LEAKS[name] for name in ("definitely-lost", "indirectly-lost")
    }
    # A pointer that is left in a dead part of a thread's stack makes a lost block a possibly lost one in some
    # runs of valgrind: one run of three agrees.
    for attempt in range(3):
        try:
            return beside(found, of_memcheck(path, *arguments))
        except AssertionError:
            if attempt == 2:
                raise


@pytest.mark.slow
@needs_valgrind
def test_numbers_of_programs_of_the_world_are_those_of_memcheck(record, tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(bytes(range(256)) * 200)
    sql = b"create table a(b); insert into a values (1), (2); select sum(b) from a;"
    compared = 0
    for command, stdin in (
        (["xz", "-k", "-c", "-6", file], b""),
        (["sqlite3", ":memory:"], sql),
        (["git", "--version"], b""),
        (["ls", "-l", "/usr"], b""),
    ):
        if shutil.which(str(command[0])):
            beside(ours(record, *command, stdin=stdin), of_memcheck(*command, stdin=stdin))
            compared += 1
    assert compared


@pytest.mark.slow
@needs_valgrind
def test_containers_lose_nothing(record, program: Program) -> None:
    path = program("containers.cpp")
    beside(ours(record, path, "quiet"), of_memcheck(path, "quiet"))


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_nothing_reachable_is_lost_with_another_allocator(record, program, memory_recorder, library) -> None:
    known = subprocess.run(
        ["true"], env={**os.environ, "LD_PRELOAD": library}, capture_output=True, check=True
    )
    if known.stderr:
        pytest.skip(f"{library} is not installed")
    found = ours(record, program("leaks.c"), LD_PRELOAD=f"{memory_recorder}:{library}")
    # It may refer to blocks in memory of its own: lost ones may seem to be reachable, not the other way.
    lost = found["definitely-lost"][0] + found["indirectly-lost"][0]
    of_allocator = 16 + 8  # objects of tcmalloc
    assert lost <= LEAKS["definitely-lost"][0] + LEAKS["indirectly-lost"][0] + of_allocator
    assert found["still-reachable"][0] >= 500_000


def test_nothing_is_said_of_a_program_that_is_killed(record, program: Program) -> None:
    done = record(program("leaks.c"), "0", "abort", PERUN_MEMORY_REACHABLE="1")
    assert done.status == -6 and done.recording.reach is None


def test_forked_processes_are_not_searched(record, program: Program) -> None:
    from perun.collect.memory.records import MemoryRecording

    done = record(program("processes.c"), follow=True, PERUN_MEMORY_REACHABLE="1")
    assert done.recording.reach is not None and done.recording.reach.complete
    children = [path for path in done.file.parent.glob(f"{done.file.name}.*") if path.suffix != ".tail"]
    known = []
    for path in children:
        recording = MemoryRecording(path)
        list(recording.pieces())
        if recording.reach is not None:
            known.append(recording.reach.complete)
    assert False in known or not known


def test_programs_run_unharmed_and_nothing_is_searched_unless_wanted(record) -> None:
    script = "import sqlite3, threading as t; o = t.Thread(target=print); o.start(); o.join(); print([1])"
    for environ in ({"PERUN_MEMORY_REACHABLE": "1"}, {}):
        plain = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        done = record(sys.executable, "-c", script, **environ)
        assert (done.status, done.out, done.errors) == (0, plain.stdout, plain.stderr)
        assert (done.recording.reach is not None) == bool(environ)


def columns(*values: Sequence[int]):
    import numpy as np

    return [np.array(column, np.int64) for column in values]


def test_states_are_joined_with_blocks_by_address() -> None:
    live = LiveBlocks(*columns([96, 16, 48, 32], [5, 1, 3, 2], [7, 9, 7, 9]))
    reach = BlockStates(*columns([16, 32, 40, 48], [0, 1, 0, 2]), 0, True)
    found = reached(live, reach)
    assert found.keys.tolist() == [7, 9] and found.sizes.tolist() == [[0, 1], [0, 2], [3, 0], [5, 0]]
    assert found.totals["still-reachable"] == (5, 1)  # allocated after the search
    nothing = reached(LiveBlocks.empty(), BlockStates(*columns([], []), 0, True))
    assert nothing.totals["definitely-lost"] == (0, 0)
