"""Real programs, compiled for recording their calls: counts, sizes, times and models."""

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.collect._calls.calibration import UNCERTAIN_TIMES
from perun.collect._calls.events import Calls
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.complexity.records import Gaps, processes
from perun.core.errors import JobFailed, UsageError
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from traced import COUNTS, built, calls, counted, sizes

PROGRAMS = Path(__file__).with_name("programs")
Collect = Callable[..., Profile]


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def collect(complexity_runtime: Path, tmp_path: Path, notes: list[str]) -> Collect:
    """Compile and run a program: `collect("trace_list.c", "100", rules=("list_search",))`."""
    return collecting(complexity_runtime, tmp_path, notes)


def collecting(runtime: Path, tmp_path: Path, notes: list[str]) -> Collect:
    """What compiles and runs a program with the runtime."""

    def note(text: str) -> None:
        if UNCERTAIN_TIMES not in text:  # which times are, depends on the moment
            notes.append(text)

    def collected(
        source: str, args: str = "", environ: Mapping[str, str] | None = None, **params: Any
    ) -> Profile:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        run = Run("program", args, cwd=tmp_path, environ={**os.environ, **(environ or {})})
        files = (str(PROGRAMS / source),) if source else ()
        collector = ComplexityCollector(runtime)
        # One cache for all tests, so that the cost of recording is measured once.
        context = CollectContext(scratch, note=note, cache=tmp_path.parent / "cache")
        return collector.collect(run, ComplexityParams(files=files, **params), context)

    return collected


def assert_adds_up(profile: Profile) -> None:
    """The exclusive times of a thread are all the time of its outermost calls."""
    outer: Counter[int] = Counter()
    own: Counter[int] = Counter()
    calls_of: Counter[int] = Counter()
    for _, one in profile.all_resources():
        assert 0 <= one["exclusive"] <= one["amount"] * 1000 + 0.5
        own[one["thread"]] += one["exclusive"]
        calls_of[one["thread"]] += 1
        if "caller" not in one:
            outer[one["thread"]] += round(one["amount"] * 1000)
    # Each is rounded to a nanosecond, and 0 where recording the call took less than usual.
    doubt = sum(row["exclusive"]["uncertainty"] for row in profile["trace"]["overhead"]["functions"].values())
    for thread, total in outer.items():
        assert own[thread] == pytest.approx(total, abs=calls_of[thread] + doubt)


THRICE = [10 * (call // 3 + 1) for call in range(18)]
"""Sizes of the arrays that are sorted, up to 60."""


UNUSUAL_EXITS = ("trace_longjmp.c", "trace_exceptions.cpp", "trace_fork.c")
"""Programs whose functions are left in another way than by returning: compilers differ in what they tell."""


def slow_unless(usual: bool, *values: str) -> Any:
    """Values of parameters; `make test` leaves out those that are not usual."""
    return pytest.param(*values, marks=() if usual else pytest.mark.slow)


COUNTED = [
    slow_unless(
        settings == ("gcc", "-O2") or ("clang" in settings and source in UNUSUAL_EXITS),
        *(source, args, *settings),
    )
    for source, args in COUNTS
    for settings in (("gcc", "-O0"), ("gcc", "-O2"), ("gcc", "-O3"), ("clang", "-O2"))
]


@pytest.mark.parametrize(("source", "args", "compiler", "flags"), COUNTED)
def test_counts(collect: Collect, source: str, args: str, compiler: str, flags: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    cxx = {"gcc": "g++", "clang": "clang++"}[compiler]
    profile = collect(source, args, {"CC": compiler, "CXX": cxx}, compile_flags=flags)
    found = calls(profile)
    expected = COUNTS[source, args]
    assert {name: found[name] for name in expected} == expected
    missed = 100 if "longjmp" in source else 0
    if "exceptions" in source and compiler == "clang":
        missed = 75  # it does not tell of exits by an exception
    assert profile["trace"]["missed-exits"] == missed
    assert profile["trace"]["open-calls"] == profile["trace"]["lost"] == 0
    assert_adds_up(profile)


@pytest.mark.parametrize(
    ("source", "args"),
    [
        slow_unless(key[0] in ("trace_recursion.c", "trace_threads.c", "trace_exceptions.cpp"), *key)
        for key in COUNTS
        if "fork" not in key[0]
    ],
)
def test_counts_are_those_of_callgrind(collect, counted_by_callgrind, source: str, args: str) -> None:
    counted = counted_by_callgrind(source, args)
    found = calls(collect(source, args, compile_flags="-O1 -fno-inline"))
    # What the C library starts callgrind does not see called in every case.
    names = set(COUNTS[source, args]) - {"main", "work"}
    assert {name: counted[name] for name in names} == {name: found[name] for name in names}


@pytest.mark.parametrize(("compiler", "flags"), [
    # Without optimization clang stores parameters only after the hook has been called.
    *(slow_unless(flags == "-O2", "gcc", flags) for flags in ("-O0", "-O2", "-O3 -march=native")),
    *(slow_unless(False, "clang", flags) for flags in ("-O2", "-O3 -march=native")),
])  # fmt: skip
def test_sizes(collect: Collect, compiler: str, flags: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    environ = {"CC": compiler, "CXX": {"gcc": "g++", "clang": "clang++"}[compiler]}
    of_list = collect("trace_list.c", "40", environ, compile_flags=flags)
    assert sizes(of_list, "list_insert") == list(range(40))
    assert sizes(of_list, "list_search") == list(range(1, 41)) and sizes(of_list, "list_destroy") == [40]
    of_sort = collect("trace_sort.c", "60", environ, compile_flags=flags)
    assert sizes(of_sort, "selection_sort") == THRICE
    if compiler == "gcc":  # clang knows that there is one list only, and does not keep its address
        of_skiplist = collect("trace_skiplist.c", "70", environ, compile_flags=flags)
        assert sizes(of_skiplist, "skiplist_search") == [7 * (call // 3 + 1) for call in range(30)]
    of_containers = collect("trace_containers.cpp", "30", environ, compile_flags=flags)
    for function in ("total", "find", "Bag::has", "Bag::add"):
        assert sizes(of_containers, function) == list(range(30)), function


def test_size_that_is_named(collect: Collect) -> None:
    profile = collect("trace_sort.c", "60", size=("selection_sort=n",), rules=("selection_sort",))
    assert sizes(profile, "selection_sort") == THRICE
    assert {one["size-source"] for _, one in profile.all_resources()} == {"n"}


def test_no_size(collect: Collect, notes: list[str]) -> None:
    profile = collect("trace_longjmp.c", "10")
    assert {one["size-source"] for _, one in profile.all_resources()} == {"call-order"}
    assert any("number of earlier calls" in note for note in notes)


@pytest.mark.parametrize(("source", "args", "function", "model"), [
    ("trace_list.c", "400", "list_search", "linear"),
    ("trace_sort.c", "400", "selection_sort", "quadratic"),
    ("trace_skiplist.c", "4000", "skiplist_search", "logarithmic"),
    ("trace_containers.cpp", "400", "total", "linear"),
])  # fmt: skip
def test_best_model(counting_runtime, tmp_path, source: str, args: str, function: str, model: str) -> None:
    collect = collecting(counting_runtime, tmp_path, [])
    profile = collect(source, args, rules=(function,), compile_flags=f"-O1 {counted(counting_runtime)}")
    assert best_model(profile) == model


def best_model(profile: Profile) -> str:
    from perun.plugin.api import NO_POSTPROCESS_CONTEXT
    from perun.plugin.registry import Registry
    from perun.profile.records import record_of
    from perun.profile.strategies import best

    analysis: Any = Registry().get("postprocess", "regression_analysis")
    processed = analysis.process(profile, analysis.Params(method="full"), NO_POSTPROCESS_CONTEXT)
    # A power model is whatever its exponent says: another spelling of those that are looked for.
    models = [one for _, one in processed.all_models() if one["model"] not in ("constant", "power")]
    found = best(map(record_of, models))
    return found.type if found else ""


def test_constant_time(counting_runtime: Path, tmp_path: Path) -> None:
    collect = collecting(counting_runtime, tmp_path, [])
    source = tmp_path / "constant.c"
    source.write_text(
        "int ten(int n) { for (int round = 0; round < 10; round++) n += round; return n; }\n"
        "int main(void) { int n = 0; while (n < 4500) n = ten(n); return 0; }\n"
    )
    profile = collect(str(source), rules=("ten",), compile_flags=counted(counting_runtime))
    amounts = [one["amount"] for _, one in profile.all_resources()]
    assert len(amounts) == 100 and set(amounts) == {amounts[0]} and 10 <= amounts[0] <= 40


def test_rules_and_sampling(collect: Collect, notes: list[str]) -> None:
    profile = collect("trace_threads.c", "100", rules=("inner", "outer", "iner"), sampling=(("inner", 10),))
    assert calls(profile) == {"outer": 400, "inner": 120}
    assert any("'iner'" in note and "'inner'" in note for note in notes)
    # What is not recorded of the calls is in no exclusive time of its caller either.
    assert {one["caller"] for _, one in profile.all_resources() if one["uid"] == "inner"} == {"outer"}
    assert profile["collector_info"]["params"]["sampling"] == [{"func": "inner", "sample": 10}]


SAMPLED = """
#include <time.h>
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}
void leaf(void) {}
void slow(void) { for (double end = now() + 1e6; now() < end;) ; }
void outer(int calls) { slow(); leaf(); if (calls % 4 == 0) leaf(); slow(); }
int main(void) {
  for (int calls = 0; calls < 40; calls++) { outer(calls); leaf(); }
  return 0;
}
"""


def test_calls_that_are_left_out_take_their_time(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / "sampled.c").write_text(SAMPLED)
    rules = ("main", "outer", "slow", "leaf")
    sampling = (("outer", 5), ("slow", 20))
    profile = collect(str(tmp_path / "sampled.c"), rules=rules, sampling=sampling)
    assert calls(profile) == {"main": 1, "outer": 8, "slow": 4, "leaf": 90}
    rows = [one for _, one in profile.all_resources()]
    callers = Counter((one["uid"].partition("(")[0], one.get("caller", "").partition("(")[0]) for one in rows)
    assert callers == {
        ("main", ""): 1,
        ("outer", "main"): 8,
        ("slow", "outer"): 4,
        ("leaf", "outer"): 50,
        ("leaf", "main"): 40,
    }
    # All calls count, also those that are left out: main, and for each outer three or four within, and leaf.
    orders = sorted(one["call-order"] for one in rows if one["uid"].startswith("outer"))
    assert orders == [1 + 5 * call + (call + 3) // 4 for call in range(0, 40, 5)]
    (whole,) = (one for one in rows if one["uid"].startswith("main"))
    assert whole["amount"] > 80_000 and whole["exclusive"] < 20_000_000
    for one in rows:
        if one["uid"].startswith("outer"):
            assert one["exclusive"] < one["amount"] * 500


def test_what_does_not_fit_on_the_disk_is_counted(collect: Collect, tmp_path: Path, notes: list[str]) -> None:
    source = tmp_path / "limited.c"
    source.write_text(
        "#include <sys/resource.h>\nvoid leaf(void) {}\n"
        "int main(void) {\n  struct rlimit limit = {3 << 20, 3 << 20};\n  setrlimit(RLIMIT_FSIZE, &limit);\n"
        "  for (int call = 0; call < 500000; call++) leaf();\n  return 0;\n}\n"
    )
    profile = collect(str(source), internal_storage_size=1000)
    found = calls(profile)
    assert set(found) == {"leaf"}  # main had not ended when nothing could be written any more
    assert (2 << 20) / 16 < found["leaf"] < (3 << 20) / 16
    assert profile["trace"]["lost"] == 500_001 - found["leaf"] and profile["trace"]["open-calls"] == 0
    assert any("could not write its file: File too large" in note for note in notes)


@pytest.mark.parametrize("way", ["seccomp", "counter"])
def test_a_program_that_takes_the_clock_from_itself(collect: Collect, notes: list[str], way: str) -> None:
    profile = collect("confined.c", way)
    assert calls(profile) == {"work": 1} and profile["trace"]["ended"] == "normally"
    assert profile["header"]["incomplete"] == [{"reason": "lost", "amount": 1, "unit": "calls"}]
    assert any("because the program took system calls or the clock from itself" in note for note in notes)


@pytest.mark.parametrize(("way", "signal", "found"), [("filter", "SIGSYS", 6), ("bare", "SIGSEGV", 1)])
def test_a_program_that_is_killed_for_a_system_call(collect, notes, way, signal: str, found: int) -> None:
    profile = collect("confined.c", way)
    assert calls(profile)["work"] == found
    [note] = [note for note in notes if signal in note]
    assert "what the recorder does within it may be the reason; measure it without its seccomp" in note
    assert profile["trace"]["ended"].endswith("may be the reason")


def test_whenever_a_program_is_killed(complexity_runtime: Path, tmp_path: Path) -> None:
    options = "-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -finstrument-functions"
    program = built(
        tmp_path / "endless", options,
        "#include <stdio.h>\nint leaf(int n) { return n + 1; }\nint outer(int n) { return leaf(leaf(n)); }\n"
        'int main(void) { puts("begun"); fflush(stdout); for (int n = 0;;) n = outer(n) & 1023; }\n',
    )  # fmt: skip
    for round_ in range(12):
        folder = tmp_path / f"recorded{round_}"
        folder.mkdir()
        environ = {
            **os.environ,
            "LD_PRELOAD": str(complexity_runtime),
            "PERUN_COMPLEXITY_FOLDER": str(folder),
            "PERUN_COMPLEXITY_STORAGE": "1000",
        }
        with subprocess.Popen([program], env=environ, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            running.stdout.readline()
            time.sleep(0.001 + 0.00173 * round_)
            running.kill()
        (process,) = processes(folder)
        found = Calls.joined(list(process.calls(process.started)))
        # main, outer and leaf: no event is missing, and none is there twice.
        count = np.bincount(found.function, minlength=3)
        assert count[0] == 1 and process.gaps == Gaps(open=process.gaps.open)
        assert 1 <= process.gaps.open <= 3 and 0 <= 2 * count[1] - count[2] <= 2
        assert sorted(found.order.tolist()) == list(range(len(found)))
        assert int(found.exclusive.sum()) == pytest.approx(int(found.duration.max()), abs=len(found))


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.slow)])
def test_functions_of_the_library(collect: Collect, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    environ = {"CXX": compiler}
    # Without optimization none of them is inlined, and they are compiled in a third of the time.
    own = calls(collect("trace_containers.cpp", "20", environ, compile_flags="-O0"))
    assert set(own) <= {"main", "total", "find", "Bag::add", "Bag::has", "Bag::Bag", "Bag::~Bag"}
    rules = ("std::vector*", "total")
    every = calls(collect("trace_containers.cpp", "20", environ, compile_flags="-O0", rules=rules))
    assert every["total"] == 20
    assert any("push_back" in name or "emplace" in name or "_M_" in name for name in every)


def test_unknown_rules(collect: Collect) -> None:
    with pytest.raises(UsageError, match=r"list_serch.*list_search"):
        collect("trace_list.c", rules=("list_serch",))


def test_deep_recursion(collect: Collect) -> None:
    profile = collect("trace_recursion.c", "60000", compile_flags="-O1", rules=("deep",))
    assert calls(profile) == {"deep": 60001}
    assert sizes(profile, "deep") == list(range(60000, -1, -1))


def test_program_that_is_killed(collect: Collect, tmp_path: Path, notes: list[str]) -> None:
    source = tmp_path / "killed.c"
    source.write_text(
        "#include <signal.h>\nint work(int n) { return n + 1; }\nvoid end(void) { raise(SIGKILL); }\n"
        "int main(void) { int n = 0; while (n < 1000) n = work(n); end(); return 0; }\n"
    )
    profile = collect(str(source))
    assert calls(profile) == {"work": 1000, "end": 1, "main": 1}
    assert profile["trace"]["open-calls"] == 2 and "SIGKILL" in profile["trace"]["ended"]
    assert any("2 calls had not ended" in note for note in notes)


@pytest.mark.parametrize("ending", ["exit(0)", "_exit(0)", "quick_exit(0)", "pthread_exit(0)"])
def test_program_that_ends_within_calls(collect: Collect, tmp_path: Path, ending: str) -> None:
    source = tmp_path / "ends.c"
    source.write_text(
        f"#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\nvoid end(void) {{ {ending}; }}\n"
        "int main(void) { end(); return 0; }\n"
    )
    profile = collect(str(source))
    assert calls(profile) == {"end": 1, "main": 1}


def test_signal_handlers(collect: Collect, tmp_path: Path) -> None:
    source = tmp_path / "signals.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <signal.h>\n#include <stdlib.h>\n#include <sys/time.h>\n"
        "static volatile int hits;\nvoid handled(int number) { (void)number; hits++; }\n"
        "int work(int n) { return n + 1; }\nint main(void) {\n  stack_t stack = {malloc(65536), 0, 65536};\n"
        "  sigaltstack(&stack, 0);\n"
        "  struct sigaction action = {.sa_handler = handled, .sa_flags = SA_ONSTACK | SA_RESTART};\n"
        "  sigaction(SIGALRM, &action, 0);\n  struct itimerval often = {{0, 200}, {0, 200}};\n"
        "  setitimer(ITIMER_REAL, &often, 0);\n"
        "  int n = 0;\n  while (n < 50000 || hits < 20) n = work(n);\n  often.it_interval.tv_usec = 0;\n"
        "  often.it_value.tv_usec = 0;\n  setitimer(ITIMER_REAL, &often, 0);\n  return n < 50000;\n}\n"
    )
    profile = collect(str(source), internal_storage_size=1000)
    found = calls(profile)
    assert found["work"] >= 50_000 and found["handled"] >= 1
    assert profile["trace"]["missed-exits"] == 0
    assert_adds_up(profile)


def test_build_command(collect: Collect, complexity_runtime: Path, tmp_path: Path, notes: list[str]) -> None:
    (tmp_path / "list.c").write_bytes((PROGRAMS / "trace_list.c").read_bytes())
    (tmp_path / "Makefile").write_text("program: list.c\n\t$(CC) -O2 -o $@ $<\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    params = ComplexityParams(build="make -B", rules=("list_*",))
    run = Run("./program", "30", cwd=tmp_path, environ=dict(os.environ))
    context = CollectContext(scratch, note=notes.append)
    profile = ComplexityCollector(complexity_runtime).collect(run, params, context)
    assert calls(profile) == {"list_insert": 30, "list_search": 30, "list_destroy": 1}
    assert sizes(profile, "list_insert") == list(range(30))
    assert {one["location"] for _, one in profile.all_resources()} == {"program"}
    assert any("build it anew" in note for note in notes)


def test_what_does_not_compile(collect: Collect, tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(JobFailed, match="nothing"):
        collect(str(source))


def test_command_that_is_not_compiled_for_it(complexity_runtime: Path, tmp_path: Path) -> None:
    run = Run("true", cwd=tmp_path, environ=dict(os.environ))
    with pytest.raises(JobFailed, match="recorded no call of a function"):
        ComplexityCollector(complexity_runtime).collect(run, ComplexityParams(), CollectContext(tmp_path))


@pytest.mark.parametrize("sampling", [0, -1, 1 << 31])
def test_wrong_sampling(sampling: int) -> None:
    with pytest.raises(UsageError, match="inner"):
        ComplexityParams(sampling=(("inner", sampling),))


def test_files_are_kept_where_asked_for(collect: Collect, tmp_path: Path) -> None:
    collect("trace_list.c", "10", target_dir="target", internal_data_filename="trace.log")
    assert (tmp_path / "target" / "trace_list").is_file()
    assert list((tmp_path / "target" / "trace.log").glob("*.calls"))
