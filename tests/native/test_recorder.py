"""The recorder finds everything that real programs allocate, and changes nothing of what they do."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.collect._common.runs import CONFINED
from perun.collect.memory.analysis import AllocationEvents
from perun.collect.memory.records import ExitState, MemoryRecording

Program = Callable[..., Path]
ALL_UNWINDERS = ("tables", "libunwind", "fp", "none")


def without_start(allocated: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Without the emergency pool of the C++ library, which is allocated before main."""
    return [one for one in allocated if one[1] < 70_000]


# -- every allocation, exactly -------------------------------------------------------------------------------


@pytest.mark.parametrize("unwind", ALL_UNWINDERS)
def test_every_function_of_c_is_recorded_with_its_amount(record, program: Program, unwind: str) -> None:
    done = record(program("sizes.c"), "3", unwind=unwind)
    assert done.status == 0
    assert done.allocated == 3 * [
        ("malloc", 11),
        ("calloc", 21),
        ("realloc", 5000),
        ("reallocarray", 7000),
        ("memalign", 33),
        ("aligned_alloc", 256),
        ("posix_memalign", 45),
        ("valloc", 55),
        ("pvalloc", 66),
        ("malloc", 13),
        ("malloc", 100),  # asprintf of glibc: a buffer, then what is needed
        ("malloc", 7),
        ("malloc", 0),
        ("malloc", 77),
    ]
    assert sorted(done.live.values()) == [77, 77, 77]
    assert done.recording.end.state == ExitState.EXITED
    assert (done.recording.end.skipped, done.recording.end.lost, done.recording.end.error) == (0, 0, 0)


@pytest.mark.parametrize("way", ["seccomp", "counter"])
def test_a_program_that_takes_the_clock_from_itself(record, program: Program, way: str) -> None:
    done = record(program("confined.c"), way)
    assert done.status == 0 and done.allocated == [("malloc", 1000)]
    assert done.recording.end.error == CONFINED
    assert done.recording.end.lost == 11  # five allocations, and six releases


def test_addresses_are_those_of_the_program(record, program: Program, tmp_path: Path) -> None:
    done = record(program("list.c"), tmp_path / "addresses")
    assert done.status == 7
    told = [int(line) for line in (tmp_path / "addresses").read_text().split()]
    cells = done.events.size == 24
    assert done.events.address[cells].tolist() == told
    assert sorted(done.live) == sorted(told[:100])


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.parametrize("source", [
    pytest.param("list.c", marks=pytest.mark.slow),
    pytest.param("sizes.c", marks=pytest.mark.slow),
    pytest.param("containers.cpp", marks=pytest.mark.slow),
    "threads.c",
])  # fmt: skip
def test_counts_are_those_of_valgrind(record, program: Program, source: str) -> None:
    path = program(source, "-DROUNDS=2000")
    # What libraries keep to their end stays: valgrind would free it, and count that.
    keeping = ["--run-libc-freeres=no", "--run-cxx-freeres=no"]
    report = subprocess.run(
        ["valgrind", *keeping, path, "quiet"], capture_output=True, text=True, check=False
    ).stderr
    usage = re.search(r"usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes", report)
    at_exit = re.search(r"in use at exit: ([\d,]+) bytes in ([\d,]+) blocks", report)
    assert usage and at_exit, report
    allocations, releases, allocated, live, blocks = (
        int(number.replace(",", "")) for number in (*usage.groups(), *at_exit.groups())
    )
    done = record(path, "quiet")
    ours = (len(done.allocated), int(done.events.releases.sum()), sum(size for _, size in done.allocated))
    ended = (sum(done.live.values()), len(done.live))
    if source in ("containers.cpp", "threads.c"):  # the loader gives each thread a table of all libraries
        of_threads = 64 * sum(name == "calloc" for name, _ in done.allocated)
        more = ours[2] - allocated
        assert 0 <= more <= of_threads and 0 <= ended[0] - live <= more
        allocated, live = ours[2], ended[0]
    assert (*ours, *ended) == (allocations, releases, allocated, live, blocks)


def test_every_form_of_new_and_delete_is_recorded(record, program: Program) -> None:
    path = program("containers.cpp")
    plain = subprocess.run([path], capture_output=True, check=True)
    done = record(path)
    assert (done.status, done.out, done.errors) == (0, plain.stdout, plain.stderr)
    forms = [one for one in done.allocated if one[0].startswith("new")][:10]
    assert forms == [
        ("new", 4),
        ("new[]", 48),
        ("new", 192),
        ("new[]", 576),
        ("new", 21),
        ("new[]", 22),
        ("new", 23),
        ("new", 64),
        ("new[]", 64),
        ("new", 0),
    ]
    released = [name for name in done.subtypes if name.startswith("delete")][:10]
    assert released == [name.replace("new", "delete") for name, _ in forms]
    counts = Counter(done.subtypes)
    assert counts["new"] == counts["delete"] > 5000 and counts["new[]"] == counts["delete[]"]
    assert len(done.recording.threads) == 5


def test_operators_of_the_program_are_called(record, program: Program) -> None:
    path = program("replaced.cpp")
    plain = subprocess.run([path], capture_output=True, check=True)
    done = record(path)
    assert done.out == plain.stdout == b"4004\n"
    assert without_start(done.allocated)[:4] == [("malloc", size + 8) for size in (4, 16, 32, 101)]


@pytest.mark.parametrize("unwind", ALL_UNWINDERS)
def test_threads_lose_nothing(record, program: Program, unwind: str) -> None:
    done = record(program("threads.c", "-DROUNDS=5000"), unwind=unwind)
    assert done.status == 0
    assert Counter(name for name, size in done.allocated if size <= 256)["malloc"] == 8 * 5000
    assert len(done.recording.threads) == 9 and done.recording.end.skipped == 0
    # What a thread releases and another one gets is in this order in the record.
    live: set[int] = set()
    unknown = 0
    for address, release in zip(done.events.address.tolist(), done.events.releases.tolist(), strict=True):
        if release:
            unknown += address not in live
        else:
            assert address not in live
        (live.discard if release else live.add)(address)
    assert unknown <= (8 if unwind == "libunwind" else 0)  # it has a cache for each thread


def test_small_stacks_are_enough(record, program: Program) -> None:
    done = record(program("small.c"))
    assert done.status == 0
    assert sum(name == "malloc" for name in done.subtypes) == 120_000


# -- call stacks ---------------------------------------------------------------------------------------------


def test_unwinders_agree(record, program: Program) -> None:
    path = program("deep.c", "-fno-omit-frame-pointer")
    stacks = {}
    for unwind in ("tables", "libunwind", "fp"):
        done = record(path, "60", unwind=unwind)
        if done.recording.unwinder != unwind:
            pytest.skip(f"{unwind} is not installed")
        own = [
            tuple(frame for frame in stack if frame[0] == path.name)
            for stack, size in zip(done.stacks, done.events.size.tolist(), strict=True)
            if size == 88
        ]
        stacks[unwind] = own
    assert stacks["tables"] == stacks["libunwind"]
    # The C library, which calls main, has no frame pointers: _start is behind it.
    assert [stack[1:] for stack in stacks["tables"]] == stacks["fp"] and len(stacks["fp"]) == 61
    assert max(map(len, stacks["fp"])) >= 60


def test_frames_are_found_through_signals_and_without_frame_pointers(record, program: Program) -> None:
    path = program("deep.c", "-fomit-frame-pointer")
    done = record(path, "10", unwind="tables")
    outer = {
        tuple(name for name, _ in stack)
        for stack, size in zip(done.stacks, done.events.size.tolist(), strict=True)
        if size == signal.SIGUSR1
    }
    assert len(outer) == 1
    names = next(iter(outer))
    assert names.count(path.name) == 3  # _start, main and the handler; the C library has raise between them
    assert names[-1] == path.name


def test_very_deep_stacks_are_cut_and_say_so(record, program: Program) -> None:
    done = record(program("deep.c"), "1300")
    assert done.status == 0
    cut = [stack for stack in done.recording.stacks if stack.cut]
    assert cut and {len(stack.addresses) for stack in cut} == {8 * 1024}


def test_code_at_the_address_of_unloaded_code_is_told_apart(record, program: Program) -> None:
    plugins = [program("plugin.c", "-shared", "-fPIC", f"-DAMOUNT={amount}") for amount in (1001, 1002, 1003)]
    done = record(program("loader.c"), *plugins)
    assert done.status == 0
    found = [
        (size, stack[-1][0])
        for stack, size in zip(done.stacks, done.events.size.tolist(), strict=True)
        if 1001 <= size <= 1003
    ]
    assert found == 3 * [(1001 + i, plugin.name) for i, plugin in enumerate(plugins)]


def test_missing_libunwind_is_told(record, program: Program) -> None:
    done = record(program("list.c"), unwind="libunwind", PERUN_MEMORY_LIBUNWIND="libunwind-missing.so.8")
    assert done.status == 7 and (done.recording.wanted, done.recording.unwinder) == ("libunwind", "tables")
    assert len(done.allocated) == 1000


# -- how programs end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "status", "state"), [
    ("return", 4, ExitState.EXITED),
    ("exit", 5, ExitState.EXITED),
    ("_exit", 6, ExitState.QUICK_EXITED),
    ("_Exit", 6, ExitState.QUICK_EXITED),
    ("quick_exit", 7, ExitState.QUICK_EXITED),
    ("system call", 8, ExitState.RUNNING),
    ("handler", 9, ExitState.QUICK_EXITED),
    ("abort", -signal.SIGABRT, ExitState.RUNNING),
    ("kill", -signal.SIGKILL, ExitState.RUNNING),
    ("terminate", -signal.SIGTERM, ExitState.RUNNING),
    ("crash", -signal.SIGSEGV, ExitState.RUNNING),
    ("exec", 0, ExitState.RUNNING),
])  # fmt: skip
def test_everything_is_kept_however_the_program_ends(record, program, how: str, status: int, state) -> None:
    done = record(program("endings.c"), how)
    assert done.status == status and done.allocated[:3] == 3 * [("malloc", 1111)]
    assert done.recording.end.state == state and done.recording.end.error == 0


def killed(recorder: Path, file: Path, size: int, *command: str | Path) -> MemoryRecording:
    """What is left of a program that was killed as soon as so many bytes of its record were written."""
    environ = {**os.environ, "LD_PRELOAD": str(recorder), "PERUN_MEMORY_FILE": str(file)}
    with subprocess.Popen(command, env=environ) as running:
        while running.poll() is None and (not file.exists() or file.stat().st_size < size):
            time.sleep(0.001)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    return MemoryRecording(file)


@pytest.mark.slow
def test_killed_in_the_middle_of_much(record, program, memory_recorder: Path, tmp_path: Path) -> None:
    recording = killed(memory_recorder, tmp_path / "killed", 40_000, program("sizes.c"), "1000000")
    events = AllocationEvents.joined(list(recording.pieces()))
    assert len(events) > 50_000 and recording.end.state == ExitState.RUNNING
    rounds = int((events.size == 77).sum())
    assert abs(rounds - int((events.size == 33).sum())) <= 1


def test_threads_killed_in_the_middle(program: Program, memory_recorder: Path, tmp_path: Path) -> None:
    path = program("threads.c", "-DROUNDS=100000000")
    for attempt in range(3):
        size = 200_000 + 200_000 * attempt  # at different moments, in other chunks
        recording = killed(memory_recorder, tmp_path / f"killed{attempt}", size, path)
        live: set[int] = set()
        unknown, twice, total = 0, 0, 0
        for events in recording.pieces():
            total += len(events)
            for address, release in zip(events.address.tolist(), events.releases.tolist(), strict=True):
                unknown += release and address not in live
                twice += not release and address in live
                (live.discard if release else live.add)(address)
        assert total > 65_536
        # Each thread may have had one event that it was about to write.
        assert unknown <= 8 and twice <= 8


# -- processes -----------------------------------------------------------------------------------------------


def recorded_processes(file: Path) -> list[Path]:
    return sorted(path for path in file.parent.glob(f"{file.name}*") if path.suffix != ".tail")


def test_only_the_program_itself_is_recorded(record, program: Program) -> None:
    done = record(program("processes.c"))
    assert done.status == 0 and recorded_processes(done.file) == [done.file]
    assert {size for _, size in done.allocated} >= {101, 105}
    assert not {size for _, size in done.allocated} & {202, 303, 404}
    assert done.recording.end.state == ExitState.EXITED


def test_children_are_recorded_on_request(record, program: Program) -> None:
    done = record(program("processes.c"), follow=True)
    assert done.status == 0 and {size for _, size in done.allocated} >= {101, 105}
    amounts = []
    for path in recorded_processes(done.file)[1:]:
        recording = MemoryRecording(path)
        events = AllocationEvents.joined(list(recording.pieces()))
        assert recording.parent == done.recording.pid
        amounts += [size for size in events.size.tolist() if size in (101, 105, 202, 303, 404)]
    assert sorted(amounts) == [202, 303, 303, 404]


def test_environment_of_the_program_is_as_without(record) -> None:
    plain = subprocess.run(["env"], env=dict(os.environ), capture_output=True, check=True)
    done = record("env")
    assert sorted(done.out.splitlines()) == sorted(plain.stdout.splitlines()) and done.allocated


def test_other_preloaded_libraries_stay(record, memory_recorder: Path, program: Program) -> None:
    other = program("plugin.c", "-shared", "-fPIC", "-DAMOUNT=1")
    done = record("env", LD_PRELOAD=f"{memory_recorder}:{other}")
    assert f"LD_PRELOAD={other}\n".encode() in done.out


def test_a_file_that_exists_is_left_alone(program: Program, memory_recorder: Path, tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("taken")
    environ = {**os.environ, "LD_PRELOAD": str(memory_recorder), "PERUN_MEMORY_FILE": str(file)}
    assert subprocess.run([program("list.c")], env=environ, check=False).returncode == 7
    assert file.read_text() == "taken" and list(tmp_path.iterdir()) == [file]


def test_descriptors_are_those_without(record) -> None:
    command = ["sh", "-c", "exec 5>/dev/null; exec 3</dev/null; ls /proc/self/fd"]
    plain = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=True)
    assert record(*command).out == plain.stdout


CLOSING = """
import os, resource
held = [bytes(100_000 + i) for i in range(1000)]
os.closerange(3, 5000)
mine = [os.open("/dev/null", os.O_WRONLY) for _ in range(1100)]
for _ in range(60): held = [bytearray(600 + i) for i in range(1000)]
print(len(held))
"""


def test_program_that_closes_all_descriptors_is_recorded_on(record) -> None:
    done = record(sys.executable, "-c", CLOSING, PYTHONMALLOC="malloc")
    assert (done.status, done.out) == (0, b"1000\n"), done.errors
    assert done.recording.end.error == 0 and len(done.allocated) > 60_000


def test_limit_of_file_sizes_does_not_kill_the_program(record, program: Program) -> None:
    done = record("bash", "-c", f"ulimit -f 900; exec {program('sizes.c')} 100000", follow=True)
    assert done.status == 0


# -- programs of the world -----------------------------------------------------------------------------------

SQL = (
    b"create table a(b, c); insert into a values (1, 'x'), (2, 'y');"
    b" select b, upper(c) from a order by b desc;"
)
SCRIPT = "import json, sqlite3, threading, decimal; print(json.dumps({'a': [1, 2]}), decimal.Decimal(1) / 7)"


@pytest.mark.parametrize("unwind", ALL_UNWINDERS)
def test_python_runs_unharmed(record, unwind: str) -> None:
    plain = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    done = record(sys.executable, "-c", SCRIPT, unwind=unwind)
    assert (done.status, done.out, done.errors) == (0, plain.stdout, plain.stderr)
    assert len(done.allocated) > 1000


def test_python_that_starts_processes_and_threads_runs_unharmed(record) -> None:
    script = (
        "import subprocess, concurrent.futures as f, multiprocessing as m\n"
        "print(subprocess.check_output(['echo', 'one']))\n"
        "with f.ThreadPoolExecutor(4) as pool: print(sum(pool.map(len, ['x' * i for i in range(99)])))\n"
        "with m.get_context('fork').Pool(2) as pool: print(sum(pool.map(abs, range(-99, 0))))\n"
    )
    for follow in (False, True):
        done = record(sys.executable, "-c", script, follow=follow)
        assert (done.status, done.out, done.errors) == (0, b"b'one\\n'\n4851\n4950\n", b"")


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="sqlite3 is not installed")
def test_sqlite_runs_unharmed(record) -> None:
    plain = subprocess.run(["sqlite3", ":memory:"], input=SQL, capture_output=True, check=True)
    done = record("sqlite3", ":memory:", stdin=SQL)
    assert (done.status, done.out, done.errors) == (0, plain.stdout, plain.stderr)
    assert len(done.allocated) > 100


def test_git_runs_unharmed(record, git_repository) -> None:
    repository = git_repository(commits=5)
    for command in (["log", "--stat"], ["fsck"], ["repack", "-a", "-d", "-q"], ["blame", "file.txt"]):
        plain = subprocess.run(["git", *command], cwd=repository.path, capture_output=True, check=True)
        for follow in (False, True):
            done = record("git", *command, cwd=repository.path, follow=follow)
            assert (done.status, done.out, done.errors) == (0, plain.stdout, plain.stderr)
            assert len(done.allocated) > 20
