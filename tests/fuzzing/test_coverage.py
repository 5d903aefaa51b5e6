"""What programs execute, counted in real ones: in whatever way they end, get their input, and can be run."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy
import pytest

from compiling import CompilerCache, sanitized
from perun.core.errors import CollectorUnavailable, JobFailed, PerunError, UsageError
from perun.fuzz.coverage.api import PLACE, Coverage, CoverageTarget, InputWay
from perun.fuzz.coverage.gcov import GcovCoverage
from perun.fuzz.coverage.inputs import build, build_flags
from perun.fuzz.coverage.opening import open_coverage
from shared import is_running, wait_for

PROGRAMS = Path(__file__).parent / "programs"
COUNTING = PROGRAMS / "counting.c"
CLANG_FLAGS = [*build_flags("sancov").flags.split(), "-O0"]
SECONDS = 60.0
"""A time limit that is not meant to be reached."""

Open = Callable[..., Coverage]


@pytest.fixture(scope="session")
def gcc(compile_once: CompilerCache) -> Path:
    return compile_once("gcc", "-O0", "--coverage", COUNTING)


@pytest.fixture(scope="session")
def clang(compile_once: CompilerCache) -> Path:
    if shutil.which("clang") is None:
        pytest.skip("there is no clang")
    return compile_once("clang", *CLANG_FLAGS, COUNTING)


@pytest.fixture(params=["gcov", "sancov"])
def program(request: pytest.FixtureRequest) -> Path:
    """The program, compiled for each backend."""
    found: Path = request.getfixturevalue("gcc" if request.param == "gcov" else "clang")
    return found


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Start the coverage of a program; it is closed after the test."""
    made: list[Coverage] = []

    def start(
        program: Path, *arguments: str, way: InputWay = "file", memory: int | None = None,
        environ: dict[str, str] | None = None, notes: tuple[Path, ...] = (),
    ) -> Coverage:  # fmt: skip
        scratch = tmp_path / f"scratch{len(made)}"
        scratch.mkdir()
        surroundings = {"PATH": os.environ["PATH"], **(environ or {})}
        target = CoverageTarget((str(program), *arguments), way, tmp_path, surroundings, memory=memory)
        made.append(open_coverage(target, scratch, notes=notes))
        made[-1].start()
        return made[-1]

    yield start
    for coverage in made:
        coverage.close()


def total(coverage: Coverage, data: bytes) -> int:
    ran = coverage.run(data, SECONDS)
    assert (ran.outcome, ran.code) == ("ok", 0), ran
    return ran.total


def test_lines_are_executed_as_often_as_gcov_says(gcc: Path, opened: Open, tmp_path: Path) -> None:
    if shutil.which("gcov") is None:
        pytest.skip("there is no gcov")
    coverage = opened(gcc)
    assert isinstance(coverage, GcovCoverage) and not coverage.note
    ran = coverage.run(b"a b  c", SECONDS)
    (tmp_path / "input").write_bytes(b"a b  c")
    prefix = tmp_path / "prefix"
    subprocess.run([gcc, tmp_path / "input"], env={"GCOV_PREFIX": str(prefix)}, check=True)
    data = next(prefix.rglob("*.gcda"))
    shutil.copy(next(gcc.parent.glob(f"{data.stem}.gcno")), data.with_suffix(".gcno"))
    told = subprocess.run(
        ["gcov", "--json-format", "--stdout", data], capture_output=True, check=True, cwd=tmp_path
    ).stdout
    expected = {
        line["line_number"]: line["count"] for file in json.loads(told)["files"] for line in file["lines"]
    }
    counted = {line.number: int(n) for line, n in zip(coverage.lines, ran.counts, strict=True)}
    assert counted == expected and ran.total == sum(expected.values())
    assert {line.file for line in coverage.lines} == {str(COUNTING)}


def test_work_is_counted_and_each_run_is_a_first_one(program: Path, opened: Open) -> None:
    coverage = opened(program)
    assert not coverage.note
    first = coverage.run(b"a b", SECONDS)
    more = [total(coverage, b" " * n) for n in (1, 2, 3, 50)]
    assert more[1] - more[0] == more[2] - more[1] > 10 and more[3] - more[0] == 49 * (more[1] - more[0])
    again = coverage.run(b"a b", SECONDS)
    assert numpy.array_equal(first.counts, again.counts)
    assert len(first.counts) == len(again.counts) and first.total == again.total == first.counts.sum()


@pytest.mark.parametrize(
    "end, outcome, code",
    [(b"!", "fault", -signal.SIGABRT), (b"0", "fault", -signal.SIGSEGV), (b"_", "ok", 3)],
)
def test_counters_are_complete_however_the_program_ends(program, opened, end, outcome, code: int) -> None:
    coverage = opened(program)
    few, many = (coverage.run(b" " * n + end, SECONDS) for n in (1, 11))
    assert (few.outcome, few.code) == (many.outcome, many.code) == (outcome, code)
    blank = total(coverage, b"  ") - total(coverage, b" ")
    assert many.total - few.total == 10 * blank


def test_a_hang_is_ended_and_counted(program: Path, opened: Open) -> None:
    coverage = opened(program)
    enough = 10 * total(coverage, b" ")
    for seconds in (0.3, 3.0, 30.0):  # on a busy machine it has hardly begun after the first one
        ran = coverage.run(b" ~", seconds)
        assert ran.outcome == "hang"
        if ran.total > enough:
            return
    pytest.fail(f"{ran.total} counts in {ran.seconds} s")


THREADS = ("gcc", "-O0", "--coverage", COUNTING, "-DEARLY_THREAD", "-pthread")
"""Compiles a program that has to be started for each run."""


@pytest.fixture(params=["copied", "started", "afl"])
def any_way(request: pytest.FixtureRequest, compile_once: CompilerCache, gcc: Path) -> Path:
    """A program for each way to run one."""
    command = {"started": THREADS, "afl": ("gcc", PROGRAMS / "afl.c")}.get(request.param)
    return compile_once(*command) if command else gcc


@pytest.fixture
def busy_core() -> Iterator[None]:
    """One processor for this process and what it starts, which five others use as well."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    yield
    for other in others:
        other.kill()
    for other in others:
        other.wait()
    os.sched_setaffinity(0, before)


def test_waiting_for_a_core_makes_no_hang(any_way: Path, opened: Open, busy_core: None) -> None:
    coverage = opened(any_way)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ran = coverage.run(b"~", 0.1)
    assert ran.outcome == "hang" and ran.seconds >= 0.1
    coverage.close()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before > 0.06


def test_what_is_ended_as_there_is_no_time_is_told_from_a_hang(any_way: Path, opened: Open) -> None:
    coverage = opened(any_way)
    ran = coverage.run(b"~", SECONDS, time.monotonic() + 0.05)
    assert ran.outcome == "hang" and ran.seconds < SECONDS and coverage.run(b"a", SECONDS).outcome == "ok"


def test_a_copy_that_is_killed_before_its_input_is_there_is_made_again(program, opened, tmp_path) -> None:
    """By somebody else, as memory is short."""
    own = tmp_path / "own"
    shutil.copy(program, own)
    coverage = opened(own)
    expected = total(coverage, b"a b")
    for _ in range(5):
        for pid in processes_of(own):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if parent != os.getpid():  # not the server
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda pid=pid: not is_running(pid))
        assert total(coverage, b"a b") == expected


@pytest.mark.parametrize("started", [False, True], ids=["copied", "started"])
def test_all_ways_of_input_count_the_same(gcc: Path, opened: Open, compile_once, started: bool) -> None:
    program = compile_once(*THREADS) if started else gcc
    every = [
        [total(coverage, b"a  b"), total(coverage, b""), total(coverage, b"a  b"), total(coverage, b" " * 9)]
        for coverage in (
            opened(program),
            opened(program, way="stdin"),
            opened(program, "unused", "@@", way="argument"),
        )
    ]
    # The way to read the input takes lines of its own, as many for each.
    relative = [[one - totals[1] for one in totals] for totals in every]
    assert relative[0] == relative[1] == relative[2] and relative[0][0] == relative[0][2] < relative[0][3]


def test_the_place_of_the_input_in_the_command(program: Path, opened: Open) -> None:
    coverage = opened(program, "unused", f" {PLACE} ", way="argument")
    assert total(coverage, b"") == total(opened(program, "unused", way="argument"), b"  ")
    assert total(opened(program, PLACE), b" ") == total(opened(program), b" ")
    with pytest.raises(UsageError, match="more than once"):
        opened(program, PLACE, PLACE, way="argument")


@pytest.mark.parametrize("flags, note", [
    (("-DEARLY_THREAD", "-pthread"), "threads before main"),
    (("-DEARLY_READ",), "reads its input before main"),
    (("-s",), "stripped"),
    (("-static",), "linked statically"),
    (("-DSTARTS_PROCESS",), "starts processes"),
    (("-fsanitize=address",), "cannot be loaded"),
])  # fmt: skip
def test_what_cannot_be_copied_is_started(compile_once, opened: Open, flags, note: str) -> None:
    coverage = opened(sanitized(compile_once, "gcc", "-O0", "--coverage", COUNTING, *flags))
    assert note in coverage.note and "slower" in coverage.note
    one, two, three = (total(coverage, b" " * n) for n in (1, 2, 3))
    assert two - one == three - two > 10
    assert coverage.run(b" !", SECONDS).outcome == "fault"
    assert total(coverage, b" ") == one


@pytest.mark.parametrize("flags", [("-DEARLY_THREAD", "-pthread"), ("-DEARLY_READ",)])
def test_what_is_started_counts_edges_too(compile_once, clang: Path, opened: Open, flags) -> None:
    coverage = opened(compile_once("clang", *CLANG_FLAGS, COUNTING, *flags))
    assert "before main" in coverage.note
    one, two, three = (total(coverage, b" " * n) for n in (1, 2, 3))
    assert two - one == three - two > 10
    few, many = (coverage.run(b" " * n + b"!", SECONDS) for n in (1, 2))
    assert few.outcome == "fault" and many.total - few.total == two - one


def test_counters_of_a_library_count(compile_once: CompilerCache, opened: Open, tmp_path: Path) -> None:
    library = tmp_path / "work.c"
    library.write_text("int work(int n) { int s = 0; for (int i = 0; i < n; i++)\n s += i;\n return s; }\n")
    program = tmp_path / "program.c"
    program.write_text(
        "#include <stdio.h>\nint work(int);\n"
        'int main(int c, char **v) { return work(fgetc(fopen(v[1], "rb"))) < 0; }\n'
    )
    work = compile_once("gcc", "--coverage", "-shared", "-fPIC", library)
    for flags in ((), ("--coverage",)):
        coverage = opened(compile_once("gcc", *flags, program, work))
        assert not coverage.note and total(coverage, b"d") - total(coverage, b"c") == 2


def test_the_program_sees_the_environment_of_the_user(gcc: Path, opened: Open, tmp_path: Path) -> None:
    source = tmp_path / "environ.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        'int main(void) { const char *p = getenv("LD_PRELOAD"); return !p || strcmp(p, "/nothing.so"); }\n'
    )
    program = tmp_path / "environ"
    subprocess.run(["gcc", "--coverage", "-o", program, source], check=True, cwd=tmp_path)
    assert total(opened(program, environ={"LD_PRELOAD": "/nothing.so"}), b"") > 0
    source.write_text('#include <stdlib.h>\nint main(void) { return !getenv("LD_BIND_NOW"); }\n')
    subprocess.run(["gcc", "--coverage", "-o", program, source], check=True, cwd=tmp_path)
    assert total(opened(program, environ={"LD_BIND_NOW": "1"}), b"") > 0
    assert not list(tmp_path.rglob("*.gcda"))


def test_memory_is_limited(program: Path, opened: Open) -> None:
    coverage = opened(program, memory=512 << 20)
    assert coverage.run(b"m", SECONDS).code == 4 and coverage.run(b" ", SECONDS).code == 0


def processes_of(program: Path) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.path.samefile(folder / "exe", program):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_hang_takes_what_it_has_started_along(compile_once: CompilerCache, opened: Open) -> None:
    program = compile_once("gcc", "-O0", "--coverage", COUNTING, "-DSTARTS_PROCESS")
    coverage = opened(program)
    assert coverage.run(b"S~", 0.3).outcome == "hang"
    wait_for(lambda: not any(map(is_running, processes_of(program))))
    assert coverage.run(b"S", SECONDS).outcome == "ok"
    wait_for(lambda: not any(map(is_running, processes_of(program))))


def test_no_process_is_left_where_perun_is_killed(program: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copy(program, own)  # so that no other test runs this one
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom perun.fuzz.coverage.api import CoverageTarget\n"
        "from perun.fuzz.coverage.opening import open_coverage\n"
        "target = CoverageTarget((sys.argv[1],), 'file', Path.cwd(), dict(os.environ))\n"
        "coverage = open_coverage(target, Path(sys.argv[2]))\ncoverage.start()\n"
        "print('ready', flush=True)\ncoverage.run(b'~', 1000)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, own, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    assert processes_of(own)
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: not any(map(is_running, processes_of(own))))


def test_closing_ends_all_and_the_next_run_starts_again(program: Path, opened: Open, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copy(program, own)
    coverage = opened(own)
    before = total(coverage, b" ")
    coverage.close()
    coverage.close()
    assert not processes_of(own) and total(coverage, b" ") == before


def test_a_program_without_counters_is_refused(compile_once: CompilerCache, opened: Open) -> None:
    with pytest.raises(UsageError, match="not compiled with coverage") as caught:
        opened(compile_once("gcc", "-O0", COUNTING))
    assert "--coverage" in caught.value.hint and "--build" in caught.value.hint


def test_a_script_without_counters_and_a_missing_program_are_refused(opened: Open, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="not compiled with coverage"):
        opened(script)
    with pytest.raises(JobFailed, match="command not found"):
        opened(tmp_path / "missing")


def test_a_script_around_the_program_is_counted(gcc: Path, opened: Open, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\n{gcc} "$@"\n')
    script.chmod(0o755)
    coverage = opened(script)
    assert "it is a script" in coverage.note
    assert total(coverage, b" ") < total(coverage, b"  ")
    assert coverage.run(b"!", SECONDS).outcome == "fault"


def test_the_backend_must_be_that_of_the_program(gcc: Path, clang: Path, tmp_path: Path) -> None:
    for program, backend in ((gcc, "sancov"), (clang, "gcov")):
        target = CoverageTarget((str(program),), "file", tmp_path, {})
        with pytest.raises(UsageError, match=f"not for {backend}"):
            open_coverage(target, tmp_path, backend)  # type: ignore[arg-type]


def test_notes_that_are_elsewhere_or_of_another_build(opened: Open, tmp_path: Path) -> None:
    folder = tmp_path / "built"
    folder.mkdir()
    command = ["gcc", "-O0", "--coverage", "-o", "program", COUNTING]
    subprocess.run(command, cwd=folder, check=True)
    program = folder / "program"
    notes = next(folder.glob("*.gcno"))
    moved = tmp_path / "notes" / "deep"
    moved.mkdir(parents=True)
    notes.rename(moved / notes.name)
    with pytest.raises(UsageError, match="notes of gcc are missing") as caught:
        opened(program)
    assert "--gcno-path" in caught.value.hint
    assert total(opened(program, notes=(tmp_path / "notes",)), b" ") > 0
    subprocess.run([*command, "-DEARLY_READ"], cwd=folder, check=True)
    (moved / notes.name).replace(notes)
    with pytest.raises(UsageError, match="of another build"):
        opened(program)
    notes.write_bytes(b"oncg*22B" + b"\xff" * 40)
    with pytest.raises(UsageError, match=f"cannot read {notes}"):
        opened(program)


@pytest.mark.parametrize("flags", [(), ("-DNEWER",)], ids=["older", "newer"])
def test_programs_of_afl(compile_once: CompilerCache, opened: Open, flags: tuple[str, ...]) -> None:
    coverage = opened(compile_once("gcc", PROGRAMS / "afl.c", *flags))
    ran = coverage.run(b"aab", SECONDS)
    assert (ran.outcome, ran.code, ran.total) == ("ok", 0, 6)
    assert len(ran.counts) == 100_000 and ran.counts[ord("a")] == 2 and ran.counts[-1] == 3
    assert coverage.run(b"!", SECONDS).code == -signal.SIGABRT
    assert coverage.run(b"~", 0.2).outcome == "hang"
    assert coverage.run(b"b", SECONDS).total == 2 and "255" in coverage.note


def test_programs_of_afl_that_loop_go_on_in_one_process(compile_once: CompilerCache, opened: Open) -> None:
    coverage = opened(compile_once("gcc", PROGRAMS / "afl.c", "-DLOOP"))
    rounds = [coverage.run(b"aab", SECONDS) for _ in range(3)]
    assert [one.outcome for one in rounds] == ["ok"] * 3
    assert [one.counts[200] for one in rounds] == [1, 2, 3]  # counted by the process itself
    assert [one.counts[ord("a")] for one in rounds] == [2, 2, 2]
    assert coverage.run(b"!", SECONDS).code == -signal.SIGABRT
    assert coverage.run(b"~", 0.2).outcome == "hang"
    assert coverage.run(b"b", SECONDS).counts[200] == 1  # another one after those


@pytest.mark.slow
def test_a_program_that_afl_has_built(compile_once: CompilerCache, opened: Open) -> None:
    if shutil.which("afl-clang-fast") is None:
        pytest.skip("there is no afl-clang-fast (apt-get install afl++)")
    coverage = opened(compile_once("afl-clang-fast", "-O0", COUNTING))
    one, two, three = (total(coverage, b" " * n) for n in (1, 2, 3))
    assert two - one == three - two > 10
    assert coverage.run(b" !", SECONDS).outcome == "fault"
    assert coverage.run(b"~", 0.3).outcome == "hang"


@pytest.mark.parametrize("backend", ["gcov", "sancov"])
@pytest.mark.parametrize(
    "command", ["make CFLAGS={flags}", "make", "{cc} {flags} -c main.c && {cc} {flags} -o main main.o"]
)
def test_building(backend: str, command: str, clang: Path, opened: Open, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(int c, char **v) { return c < 2; }\n")
    (tmp_path / "Makefile").write_text("main: main.c\n\t$(CC) $(CFLAGS) -o $@ $<\n")
    build(command, backend, tmp_path, os.environ)  # type: ignore[arg-type]
    coverage = opened(tmp_path / "main")
    assert coverage.unit == ("lines" if backend == "gcov" else "edges")
    assert total(coverage, b"") == 1


def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return missing; }\n")
    with pytest.raises(JobFailed, match="failed with exit code 1") as caught:
        build("{cc} {flags} main.c", "gcov", tmp_path, os.environ)
    assert "missing" in caught.value.hint
    with pytest.raises(UsageError, match="no command"):
        build(" ", "gcov", tmp_path, os.environ)
    with pytest.raises(CollectorUnavailable, match="there is no clang"):
        build("true", "sancov", tmp_path, {"PATH": str(tmp_path)})


def test_a_target_that_cannot_be_run(gcc: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    coverage = open_coverage(CoverageTarget((str(gcc),), "file", gone, {}), tmp_path)
    with closing(coverage), pytest.raises(PerunError, match="cannot run"):
        coverage.start()
