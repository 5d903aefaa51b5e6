"""The trace collector on real programs, built as anybody builds them, by every engine that can run here."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from perun.collect.trace.collector import make_engine
from perun.collect.trace.engines.ebpf import ANY_METHOD, FOLDER, EbpfEngine
from perun.collect.trace.engines.following import read_code
from perun.collect.trace.params import ENGINES
from perun.collect.trace.plan import Probe, TraceSelection, make_plan
from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.native.binary import Binary
from perun.profile.factory import Profile
from traced import COUNTS, Trace, built, calls, script, sizes

WAYS = ("session", pytest.param("multi", marks=pytest.mark.slow), "perf_event")
"""How the engine ebpf attaches probes, the best one first; the second differs from it at returns alone. The
last one, of older kernels, takes seconds: only tests of what depends on it take it in `make test`."""
MOSTLY = (*WAYS[:2], pytest.param("perf_event", marks=pytest.mark.slow))


def reason_not_to_run(engine: str) -> str:
    if not shutil.which("cc"):
        return "there is no compiler"
    return ": ".join(filter(None, make_engine(engine, os.environ).unavailable()))


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if why := reason_not_to_run(request.param):
        pytest.skip(f"{request.param}: {why}")
    return str(request.param)


@pytest.fixture(params=[*WAYS, *ENGINES[1:]])
def recorder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine, and ebpf in each of its ways."""
    name = str(request.param)
    engine = name
    if name not in ENGINES[1:]:
        monkeypatch.setattr(EbpfEngine, "forced_method", name)
        engine = "ebpf"
    if why := reason_not_to_run(engine):
        pytest.skip(f"{name}: {why}")
    return engine


@pytest.fixture(params=MOSTLY)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each method of the engine ebpf."""
    monkeypatch.setattr(EbpfEngine, "forced_method", request.param)
    if why := reason_not_to_run("ebpf"):
        pytest.skip(f"{request.param}: {why}")
    return str(request.param)


# uftrace brings programs down that throw.
WITHOUT_EXCEPTIONS = [key for key in COUNTS if "exceptions" not in key[0]]


@pytest.mark.parametrize(("source", "args"), WITHOUT_EXCEPTIONS)
@pytest.mark.each_value("recorder", "source args")
def test_counts(compiled: Callable[..., Path], trace: Trace, recorder: str, source: str, args: str) -> None:
    program = compiled(source)
    # Functions of less than a jump cannot be patched while the program runs.
    short = {"work", "after", "inner", "is_even", "is_odd"} if recorder == "uftrace" else set()
    found = calls(trace(program, args, engine=recorder))
    for name, expected in COUNTS[source, args].items():
        if name not in short or name in found:
            assert found[name] == expected, name


@pytest.mark.parametrize(("source", "args"), [("trace_list.c", "50"), ("trace_recursion.c", "500")])
@pytest.mark.parametrize("recorder", [*MOSTLY, *ENGINES[1:]], indirect=True)
@pytest.mark.each_value("recorder", "source args")
def test_counts_are_those_of_callgrind(compiled, trace, recorder, counted_by_callgrind, source, args) -> None:
    counted = counted_by_callgrind(source, args)
    found = calls(trace(compiled(source), args, engine=recorder))
    # What the C library starts callgrind may not see called; uftrace
    # cannot patch functions of less than a jump.
    short = {"is_even", "is_odd"} if recorder == "uftrace" else set()
    names = set(COUNTS[source, args]) - {"main"} - (short - set(found))
    assert {name: found[name] for name in names} == {name: counted[name] for name in names}


SIZES = {
    ("trace_sort.c", "60"): {"selection_sort": [size for size in range(10, 70, 10) for _ in range(3)]},
    ("trace_list.c", "40"): {
        "list_insert": list(range(40)), "list_search": list(range(1, 41)), "list_destroy": [40],
    },
    ("trace_skiplist.c", "70"): {"skiplist_search": [7 * (call // 3 + 1) for call in range(30)]},
    ("trace_containers.cpp", "30"): {
        function: list(range(30)) for function in ("total", "find", "Bag::has", "Bag::add")
    },
}  # fmt: skip
"""The size of what each function of a program works on, call by call."""


@pytest.mark.parametrize(("source", "args"), SIZES)
@pytest.mark.each_value("method", "source args")
def test_sizes(compiled: Callable[..., Path], trace: Trace, method: str, source: str, args: str) -> None:
    profile = trace(compiled(source), args)
    for function, expected in SIZES[source, args].items():
        assert sizes(profile, function) == expected, function


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_sizes_without_structures(compiled: Callable[..., Path], trace: Trace, engine: str) -> None:
    if why := reason_not_to_run(engine):
        pytest.skip(f"{engine}: {why}")
    profile = trace(compiled("trace_sort.c"), "60", engine=engine)
    assert sizes(profile, "selection_sort") == SIZES["trace_sort.c", "60"]["selection_sort"]


def test_exclusive_times_add_up(compiled: Callable[..., Path], trace: Trace, recorder: str) -> None:
    outer, own = 0, 0
    profile = trace(compiled("trace_list.c"), "50", engine=recorder)
    for _, one in profile.all_resources():
        assert 0 <= one["exclusive"] <= one["amount"] * 1000 + 0.5
        own += one["exclusive"]
        outer += 0 if "caller" in one else round(one["amount"] * 1000)
    # What is left of a call is 0 at least, also where recording the call took less than usual.
    doubt = sum(row["exclusive"]["uncertainty"] for row in profile["trace"]["overhead"]["functions"].values())
    assert own == pytest.approx(outer, abs=200 + doubt)


def test_what_throws_is_not_killed(compiled: Callable[..., Path], trace: Trace, recorder: str) -> None:
    program = compiled("trace_exceptions.cpp")
    if recorder != "ebpf":
        with pytest.raises(CollectorUnavailable, match="exceptions"):
            trace(program, "50", engine=recorder)
        return
    found = calls(trace(program, "50", engine=recorder))
    assert found["catcher"] == found["with_destructor"] == found["thrower"] == found["middle"] == 50


def test_what_only_jumps_in_what_throws(trace: Trace, method: str, tmp_path: Path) -> None:
    """A function that consists of a jump into another one is entered and left at one place."""
    program = built(
        tmp_path / "forwards", "-g -O2 -fno-inline -fno-ipa-icf",
        "int thrower(int n) { if (n % 2) throw n; return n; }\nint forward(int n) { return thrower(n); }\n"
        "int catcher(int n) { try { return forward(n); } catch (int) { return -1; } }\n"
        "int main() { int n = 0; for (int i = 0; i < 50; i++) n += catcher(i) < 0; return n != 25; }\n",
        "c++",
    )  # fmt: skip
    profile = trace(program, engine="ebpf")
    assert calls(profile) == {"main": 1, "thrower": 50, "forward": 50, "catcher": 50}
    assert _callers(profile)["thrower(int)"] == {"catcher(int)"}
    assert profile["trace"]["missed-exits"] == 25


OF_ENTRIES = {
    **dict.fromkeys(("saves", "only_jumps", "pads"), 0),
    **{"tests": 3, "goes_far": 9, "calls": 4, "jumps": 3, "loops_after": 5, "marked": 9, "changes": 8},
    **{"changes_memory": 4, "pads_and_saves": 5},
    **dict.fromkeys(("loops_at_once", "loops_to_test", "loops_to_jump", "marked_loop"), 0),
    **dict.fromkeys(("jumps_by_table", "comes_back", "computes", "makes_room"), 0),
}
"""How far from the beginning the entry of a function of trace_entries.c is probed, where no size is read."""


@pytest.mark.parametrize("method", WAYS, indirect=True)
def test_every_call_passes_its_probe_once(compiled: Callable[..., Path], trace: Trace, method: str) -> None:
    profile = trace(compiled("trace_entries.c"), "40", engine="ebpf")
    inner = {"saves": 80, "tests": 120}
    assert calls(profile) == {"main": 1, **dict.fromkeys(OF_ENTRIES, 40), **inner}
    assert profile["trace"]["missed-exits"] == 0
    assert profile["trace"]["attached"] == method
    deeper = {name for name, one in _callers(profile).items() if one != {"main"}}
    assert deeper == {"main", "saves", "tests"}


def _callers(profile: Profile) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for group in profile.groups():
        found.setdefault(group.constants["uid"], set()).add(group.constants.get("caller", ""))
    return found


def test_sizes_are_those_at_the_entry(compiled: Callable[..., Path], trace: Trace, method: str) -> None:
    program = compiled("trace_entries.c")
    names = ("tests", "goes_far", "jumps", "marked", "loops_after", "marked_loop", "computes", "changes")
    wanted = {"strategy": "custom", "func": names, "size": tuple(f"{name}=$1" for name in names)}
    profile = trace(program, "30", engine="ebpf", **wanted)
    for name in names[1:]:
        assert sizes(profile, name) == list(range(30)), name


def test_where_entries_are_probed(compiled: Callable[..., Path]) -> None:
    if not shutil.which("objdump") or os.uname().machine != "x86_64":
        pytest.skip("there is no objdump for x86-64")
    with Binary(compiled("trace_entries.c")) as binary:
        plan = make_plan([binary], TraceSelection("custom", func=tuple(OF_ENTRIES), size=("changes=$1",)))
        probes = list(plan.probes)
        found = _moved(binary.path, probes)
        assert found == {**OF_ENTRIES, "changes": 0}
        # What lies behind a pointer is read at the entry too.
        through = next(probe.size for probe in probes if probe.size)
        through = through._replace(terms=(through.terms[0]._replace(offsets=(0,)),))
        sized = [probe._replace(size=through) for probe in probes]
        assert _moved(binary.path, sized) == {**found, "changes_memory": 0}
        assert _moved(binary.path, [probe._replace(size=None) for probe in probes]) == OF_ENTRIES


def _moved(path: str, probes: list[Probe]) -> dict[str, int]:
    code = read_code(path, probes, "objdump")
    return {
        probe.function.symbol: code.entries[one] - one for probe in probes if (one := probe.function.address)
    }


def test_what_cannot_be_probed_is_left_out(trace, method: str, tmp_path: Path, notes, monkeypatch) -> None:
    """The kernel puts no probe at an instruction with the prefix `lock`: it refuses files in use for it."""
    program = built(
        tmp_path / "locks", "-O1 -fno-inline",
        '__asm__(".globl locks\\n.type locks,@function\\n"\n'
        '"locks: lock incl (%rdi)\\n ret\\n.size locks,.-locks");\n'
        "void locks(int *); int add(int n) { return n + 1; }\n#include <unistd.h>\n"
        "int main(int count, char **arguments) { int n = 0; if (count > 1) sleep(60);\n"
        "  for (int i = 0; i < 7; i++) { locks(&n); n = add(n); } return n != 14; }\n",
    )  # fmt: skip
    using = subprocess.Popen([program, "wait"])
    try:
        assert _soon(lambda: _running(program))
        found = [trace(program, engine="ebpf")]
        monkeypatch.setenv("PATH", str(tmp_path))  # without objdump only the kernel knows
        found.append(trace(program, engine="ebpf"))
    finally:
        using.kill()
        using.wait()
    assert [calls(profile) for profile in found] == [{"main": 1, "add": 7}] * 2
    told = "not traced, because the kernel cannot probe them: "
    assert notes == [f"functions {told}locks", f"locations {told}1"]


def test_many_functions_are_not_attached_one_by_one(trace: Trace, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(EbpfEngine, "forced_method", "perf_event")
    if why := reason_not_to_run("ebpf"):
        pytest.skip(why)
    functions = "".join(f"int f{number}(int n) {{ return n * {number}; }}\n" for number in range(101))
    program = built(tmp_path / "many", "-g -O0", functions + "int main(void) { return 0; }\n")
    with pytest.raises(CollectorUnavailable, match="100 functions") as failure:
        trace(program, engine="ebpf")
    assert "--func" in failure.value.hint
    monkeypatch.setattr(EbpfEngine, "forced_method", ANY_METHOD)
    if reason_not_to_run("uftrace"):
        pytest.skip("uftrace, which takes its place, is not installed")
    monkeypatch.setattr(EbpfEngine, "forced_method", "perf_event")
    assert trace(program)["trace"]["engine"] == "uftrace"


def test_a_kernel_without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    if why := reason_not_to_run("ebpf"):
        pytest.skip(why)
    monkeypatch.setattr(EbpfEngine, "forced_method", "telepathy")
    why, hint = EbpfEngine(os.environ).unavailable()
    assert "telepathy" in why and "5.15" in hint


def test_rules(compiled: Callable[..., Path], trace: Trace, engine: str) -> None:
    program = compiled("trace_list.c")
    chosen = {"engine": engine, "strategy": "custom"}
    assert calls(trace(program, "50", func=("list_search#10", "list_insert"), **chosen)) == {
        "list_search": 5,
        "list_insert": 50,
    }
    assert calls(trace(program, "50", func=("list_s*",), global_sampling=5, **chosen)) == {"list_search": 10}
    named = trace(program, "8", func=("list_search",), size=("list_search=$2",), **chosen)
    assert sizes(named, "list_search") == [-1] * 8 or len(sizes(named, "list_search")) == 8
    with pytest.raises(UsageError) as failure:
        trace(program, "50", func=("list_serch",), **chosen)
    assert "list_search" in failure.value.hint
    with pytest.raises(UsageError, match="no function or probe is selected"):
        trace(program, "50", **chosen)


def test_timeout_keeps_what_there_is(trace: Trace, engine: str, tmp_path: Path, notes: list[str]) -> None:
    program = built(
        tmp_path / "endless", "-g -O1 -fno-inline",
        "#include <unistd.h>\nvolatile int n; void step(int by) { n += by; n *= 3; usleep(1000); }\n"
        "int main(void) { for (;;) step(2); }\n",
    )  # fmt: skip
    limit = 0.7
    while True:
        try:
            profile = trace(program, engine=engine, timeout=limit)
        except CollectorUnavailable as problem:
            # A busy machine did not come to the first call.
            assert f"before {engine} recorded anything" in problem.message and limit < 60
            limit *= 4
        else:
            break
    assert calls(profile)["step"]
    assert profile["trace"]["ended"] == f"early: was stopped by the time limit of {limit:g} s"
    assert any(f"stopped by the time limit of {limit:g} s" in note for note in notes)
    assert {"reason": "timeout", "amount": limit, "unit": "s"} in profile["header"]["incomplete"]


def test_failing_command(trace: Trace, engine: str, tmp_path: Path) -> None:
    program = built(
        tmp_path / "fails", "-g -O1 -fno-inline",
        '#include <stdio.h>\nint twice(int n) { return n * 2 + printf("x"); }\n'
        'int main(void) { fputs("cannot go on\\n", stderr); return twice(1) == 3 ? 3 : 0; }\n',
    )  # fmt: skip
    with pytest.raises(JobFailed, match="cannot go on") as failure:
        trace(program, engine=engine)
    assert "status 3" in failure.value.message
    assert calls(trace(program, engine=engine, ignore_failure=True))["twice"] == 1


def test_command_that_runs_the_program(compiled, trace: Trace, engine: str, tmp_path: Path) -> None:
    compiled("trace_list.c")
    command = script(tmp_path / "script", "echo begin\n./trace_list 20\n./trace_list 10")
    profile = trace(command, engine=engine, binary="trace_list", strategy="custom", func=("list_search",))
    assert calls(profile) == {"list_search": 30}


def test_what_is_kept(compiled: Callable[..., Path], trace: Trace, engine: str, tmp_path: Path) -> None:
    trace(compiled("trace_list.c"), "5", engine=engine, watchdog=True, zip_temp=True, verbose_trace=True)
    (archive,) = (tmp_path / "logs").rglob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert any(name.endswith("watchdog.log") for name in packed.getnames())


def test_library(trace: Trace, engine: str, tmp_path: Path) -> None:
    (tmp_path / "lib.c").write_text("int twice(volatile int n) { n *= 2; return n; }\n")
    (tmp_path / "main.c").write_text(
        "int twice(int);\n"
        "int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += twice(i); return s != 72; }\n"
    )
    for command in (
        "cc -g -O1 -shared -fPIC lib.c -o libtwice.so",
        "cc -g -O1 main.c -o main -L. -ltwice -Wl,-rpath,$ORIGIN",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    chosen: dict[str, Any] = {"engine": engine, "strategy": "custom", "libs": ("libtwice.so",)}
    profile = trace(tmp_path / "main", func=("libtwice.so#twice",), **chosen)
    assert calls(profile) == {"twice": 9} and profile["trace"]["calls"] == 9


@pytest.mark.parametrize("method", WAYS, indirect=True)
def test_usdt(trace: Trace, method: str, tmp_path: Path) -> None:
    header = "sys/sdt.h"
    if not any((Path("/usr/include") / folder / header).is_file() for folder in ("", "x86_64-linux-gnu")):
        pytest.skip("sys/sdt.h is not installed")
    program = built(
        tmp_path / "probed", "-g -O1",
        "#define _SDT_HAS_SEMAPHORES 1\n#include <sys/sdt.h>\nvolatile int n;\n"
        '#define SEMAPHORE(name) unsigned short name __attribute__((section(".probes")))\n'
        "SEMAPHORE(app_sort_begin_semaphore); SEMAPHORE(app_sort_end_semaphore);\n"
        "SEMAPHORE(app_tick_semaphore);\n"
        "int main(void) { for (int i = 0; i < 12; i++) { DTRACE_PROBE1(app, sort_begin, i); n += i;\n"
        "  DTRACE_PROBE(app, sort_end); if (app_tick_semaphore) DTRACE_PROBE(app, tick); } return 0; }\n",
    )  # fmt: skip
    chosen: dict[str, Any] = {"engine": "ebpf", "strategy": "custom"}
    assert calls(trace(program, with_usdt=True, **chosen)) == {"sort_begin#sort_end": 12, "tick": 11}
    assert calls(trace(program, usdt=("sort_begin#tick",), **chosen)) == {"sort_begin#tick": 12}
    assert calls(trace(program, usdt=("probed#tick#4",), **chosen)) == {"tick": 3}
    with pytest.raises(UsageError) as failure:
        trace(program, usdt=("sort_bgin",), **chosen)
    assert "sort_begin" in failure.value.hint


LASTING = "#include <unistd.h>\nvoid step(void) { usleep(1000); }\nint main(void) { for (;;) step(); }\n"


@contextmanager
def lasting(folder: Path, engine: str, method: str = ANY_METHOD) -> Iterator[subprocess.Popen[str]]:
    """Perun in a process of its own, which traces a program without an end; it tells how that ended."""
    built(folder / "lasting", "-g -O0", LASTING)
    code = (
        "import os; from pathlib import Path\nfrom perun.collect.trace.collector import TraceCollector\n"
        "from perun.collect.trace.params import TraceParams\n"
        "from perun.collect.trace.engines.ebpf import EbpfEngine\n"
        "from perun.plugin.api import CollectContext, Interrupted, Run\n"
        f"EbpfEngine.forced_method = {method!r}\n"
        f"run = Run('./lasting', cwd=Path({str(folder)!r}), environ=dict(os.environ))\n"
        f"context = CollectContext(Path({str(folder)!r}))\n"
        "try:\n"
        f"    TraceCollector().collect(run, TraceParams(engine={engine!r}), context)\n"
        "except Interrupted as stop:\n    profile = stop.profile\n"
        "    print(profile['header']['incomplete'][0]['reason'], profile['trace']['calls'] > 50)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert _soon(lambda: _running(folder / "lasting"))
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("method", WAYS, indirect=True)
def test_nothing_is_left_where_perun_is_killed(method: str, tmp_path: Path) -> None:
    with lasting(tmp_path, "ebpf", method):
        assert _soon((tmp_path / "trace" / "records").exists)
    program = tmp_path / "lasting"
    assert _soon(lambda: not _running(program) and not _running(FOLDER / "perun_trace", tmp_path))


def test_a_program_that_is_traced_elsewhere_holds_nothing_up(compiled, trace: Trace, tmp_path: Path) -> None:
    """The kernel may detach no probe as long as a function that calls others does not return."""
    reason, _ = make_engine("ebpf", os.environ).unavailable()
    if reason:
        pytest.skip(f"ebpf: {reason}")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with lasting(elsewhere, "ebpf"):
        assert _soon(lambda: _sleeps(elsewhere / "lasting") > 10)
        found = calls(trace(compiled("trace_list.c"), "50", engine="ebpf"))
        assert _running(elsewhere / "lasting")
    assert found["list_search"] == 50
    assert _soon(lambda: not _running(FOLDER / "perun_trace", tmp_path))


def _soon(holds: Callable[[], bool]) -> bool:
    for _ in range(1200):  # a minute: never
        if holds():
            return True
        time.sleep(0.05)
    return False


def _running(program: Path, argument: Path | None = None) -> bool:
    """Whether a process runs this program, one of whose arguments begins so."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == str(program):
                given = (process / "cmdline").read_bytes()
                if argument is None or str(argument).encode() in given:
                    return True
        except OSError:
            continue
    return False


def _sleeps(program: Path) -> int:
    """How often the process of this program gave up its processor, as it does in each call of `step`."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(process / "exe") == str(program):
                status = (process / "status").read_text()
                return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return 0


SIMPLE_FIRST = ("constant", "logarithmic", "linear", "quadratic", "power", "exponential")


@pytest.mark.parametrize(("source", "args", "function", "model"), [
    ("trace_list.c", "4000", "list_search", "linear"),
    ("trace_sort.c", "600", "selection_sort", "quadratic"),
    ("trace_containers.cpp", "4000", "total", "linear"),
])  # fmt: skip
def test_model(compiled, trace, engine: str, source: str, args: str, function: str, model: str) -> None:
    program = compiled(source)
    # On a machine with other work a call is interrupted for a thousand times as long as it takes.
    found = (
        _simplest_model(trace(program, args, engine=engine, strategy="custom", func=(function,)))
        for _ in "1234"
    )
    assert any(one in (model, "power") for one in found)


def _simplest_model(profile: Profile) -> str:
    """The simplest of the models that fit: a quadratic one fits a line as well as a linear one."""
    from perun.plugin.api import NO_POSTPROCESS_CONTEXT
    from perun.plugin.registry import Registry

    rows = sorted((one for _, one in profile.all_resources()), key=lambda one: one["structure-unit-size"])
    step = max(3, len(rows) // 100)
    quiet = [min(rows[at : at + step], key=lambda one: one["amount"]) for at in range(0, len(rows), step)]
    profile.update_resources(quiet, replace=True)
    analysis: Any = Registry().get("postprocess", "regression_analysis")
    processed = analysis.process(profile, analysis.Params(method="full"), NO_POSTPROCESS_CONTEXT)
    fits = {one["model"]: one["r_square"] for _, one in processed.all_models()}
    return next(name for name in SIMPLE_FIRST if fits[name] > max(fits.values()) - 0.03)


def test_interruption_keeps_what_there_is(engine: str, tmp_path: Path) -> None:
    with lasting(tmp_path, engine) as process:
        assert _soon(lambda: _sleeps(tmp_path / "lasting") > 400)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert out == "interrupted True\n" and not _running(tmp_path / "lasting")


def test_lines(trace: Trace, method: str, tmp_path: Path) -> None:
    program = built(
        tmp_path / "lines", "-g -O0",
        "volatile int n;\nint main(void) {\n"
        "  for (int i = 0; i < 12; i++) {\n    n += i;\n    n *= 3;\n  }\n  return 0;\n}\n",
    )  # fmt: skip
    chosen: dict[str, Any] = {"engine": "ebpf", "strategy": "custom"}
    assert calls(trace(program, dynamic=("lines.c:4#lines.c:5",), **chosen)) == {"lines.c:4#lines.c:5": 12}
    assert calls(trace(program, dynamic=("lines#lines.c:5#11",), **chosen)) == {"lines.c:5": 1}
    with pytest.raises(UsageError) as failure:
        trace(program, dynamic=("lines.c:6",), **chosen)
    assert "5" in failure.value.hint
