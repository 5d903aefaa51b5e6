"""What recording a call costs: our collectors beside bpftrace and uftrace, same program, same run."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from perun.collect.complexity.collector import LIBRARY
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.ebpf import ANY_METHOD, EbpfEngine
from perun.collect.trace.params import TraceParams
from perun.core.errors import CollectorUnavailable
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import load_profile
from report import Measured, Place, Row
from whole import whole

SOURCE = Path(__file__).with_name("calls.c")
CALLS = 2_000_000
MANY = 10_000_000
FEW, MORE = 100_000, 1_000_000
BATCHES = 20  # of calls.c
RECORDED = 1_000_000
FUNCTIONS = 1_000
ONE_BY_ONE = 100  # functions, as many as can be traced so
OTHER_METHODS = ("multi", "perf_event")  # of attaching probes; the best one has the rows without a name
PAIR = (
    'uprobe:{0}:leaf {{ printf("e %llu %d\\n", nsecs, tid); }} '
    'uretprobe:{0}:leaf {{ printf("x %llu %d\\n", nsecs, tid); }}'
)
INSTRUMENT = ("-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-finstrument-functions")
AUTHOR = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
PROGRAM = r"""
#include <stdlib.h>
__attribute__((noinline)) int inner(int n) { __asm__ volatile("" ::: "rbx"); return n + 1; }
__attribute__((noinline)) int outer(int n) { return inner(n) + inner(n + 1); }
int main(int count, char **arguments) {
  volatile int sum = 0;
  for (long left = atol(arguments[1]) / 3; left; left--) sum = outer(sum & 1023);
  return count < 2;
}
"""


def complexity(place: Place) -> Iterator[Row]:
    """Nanoseconds and bytes of a call; then a profile of ten million."""
    if not LIBRARY.is_file():
        raise SystemExit(f"{LIBRARY} was not built")
    folder = place.folder / "complexity"
    folder.mkdir()
    yield from one_call(folder, max(3, place.rounds // 3))
    yield from many_calls(place.perun, folder, "complexity")


def engines(place: Place) -> Iterator[Row]:
    """Nanoseconds, bytes and losses of a call traced on a plain binary; then many functions at once."""
    folder = place.folder / "engines"
    folder.mkdir()
    # The kernel emulates `push`, which functions that save a register begin with, and jumps, which our probe
    # moves to. Anything else it has the processor execute, which takes ten times as long for whoever asks.
    # Without -fno-ipa-ra the engine uftrace leaves `leaf` out, because `main` keeps floating numbers.
    options = ("-g", "-fno-ipa-ra")
    pushes = compiled(folder, "pushes", *options, "-DSAVES")
    decides = compiled(folder, "decides", *options, "-DDECIDES")
    computes = compiled(folder, "computes", *options)
    rounds = max(3, place.rounds // 3)
    yield from one_traced_call(folder, pushes, "function that begins with push", 0.25, rounds)
    yield from one_traced_call(folder, decides, "function that begins with cmp and a jump", 0.25, rounds)
    yield from one_traced_call(folder, computes, "function without push and jump", None, rounds)
    yield from other_ways(folder, pushes, rounds)
    yield from sampled_calls(folder, pushes, rounds)
    for engine in ("ebpf", "uftrace"):
        yield from without_loss(folder, engine, pushes)
    yield from many_functions(folder, rounds)
    if not EbpfEngine(os.environ).unavailable()[0]:
        yield from many_calls(place.perun, folder, "trace")


class Cost(NamedTuple):
    """CPU nanoseconds of a call: in the program itself, and in all processes but ours."""

    program: float
    everything: float


def one_traced_call(folder: Path, program: str, kind: str, limit: float | None, rounds: int) -> Iterator[Row]:
    """CPU time of a call beyond that of the same call in the program alone, by each that can trace it."""
    contestants: dict[str, Callable[[int], object]] = {
        "plain": lambda calls: quietly([program, str(calls), "cost"], folder),
        "ebpf": lambda calls: traced(folder, "ebpf", program, f"{calls} cost"),
        "bpftrace printf": lambda calls: bpftrace(folder, program, calls),
        "uftrace": lambda calls: traced(folder, "uftrace", program, f"{calls} cost"),
        "uftrace record -P": lambda calls: uftrace(folder, program, calls),
    }
    absent: dict[str, str] = {}
    found: dict[str, list[Cost]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            if name not in absent:
                try:
                    found[name].append(cost(folder, run, FEW if "bpf" in name else MORE))
                except CollectorUnavailable as problem:
                    absent[name] = problem.message.splitlines()[0]
    plain = summed_up(found["plain"])
    more = {
        name: Cost(*(own - alone for own, alone in zip(summed_up(costs), plain, strict=True)))
        for name, costs in found.items()
        if name not in absent
    }
    for ours, theirs, most in (
        ("ebpf", "bpftrace printf", limit),
        ("ebpf", "uftrace record -P", None),
        ("uftrace", "bpftrace printf", None),
        ("uftrace", "uftrace record -P", None),
    ):
        told = "; ".join(
            f"{name}: {absent[name]}" for name in dict.fromkeys((ours, theirs)) if name in absent
        )
        for field, what in (("program", ""), ("everything", ", all processes")):
            own, other = (getattr(more.get(name), field, float("nan")) for name in (ours, theirs))
            row = f"trace a call, {ours}, {kind}{what}"
            yield Row(row, own, other, told or theirs, None if told else most, "ns")


def other_ways(folder: Path, program: str, rounds: int) -> Iterator[Row]:
    """CPU time of a call where probes are attached as in older kernels, beside the best method."""
    found: dict[str, list[Cost]] = {}
    absent: dict[str, str] = {}
    for _ in range(rounds):
        found.setdefault("plain", []).append(
            cost(folder, lambda calls: quietly([program, str(calls), "cost"], folder), MORE)
        )
        for method in (ANY_METHOD, *OTHER_METHODS):
            try:
                traced = partial(traced_by, method, folder, program)
                run = cost(folder, lambda calls, traced=traced: traced(f"{calls} cost"), FEW)
                found.setdefault(method, []).append(run)
            except CollectorUnavailable as problem:
                absent[method] = problem.message.splitlines()[0]
    best = {method: summed_up(costs).program for method, costs in found.items()}
    for method in OTHER_METHODS:
        values = (best.get(one, float("nan")) - best["plain"] for one in (method, ANY_METHOD))
        peer = absent.get(method, "the best method")
        yield Row(f"trace a call, ebpf by {method}", *values, peer, None, "ns", False)


def sampled_calls(folder: Path, program: str, rounds: int) -> Iterator[Row]:
    """CPU time of a call where one in a hundred is recorded, beside recording every one, and beside what the
    stop at the probe costs: there no call but the first is recorded."""
    contestants: dict[str, Callable[[int], object]] = {
        "plain": lambda calls: quietly([program, str(calls), "cost"], folder),
        "sampled": lambda calls: traced(folder, "ebpf", program, f"{calls} cost", "leaf#100"),
        "every call": lambda calls: traced(folder, "ebpf", program, f"{calls} cost"),
        "none": lambda calls: traced(folder, "ebpf", program, f"{calls} cost", f"leaf#{10 * MORE}"),
    }
    found: dict[str, list[Cost]] = {name: [] for name in contestants}
    try:
        for _ in range(rounds):
            for name, run in contestants.items():
                found[name].append(cost(folder, run, MORE))
    except CollectorUnavailable as problem:
        nan = float("nan")
        yield Row("trace one call in 100, ebpf", nan, nan, problem.message.splitlines()[0], None, "ns")
        return
    plain, sampled, every, none = (summed_up(found[name]) for name in contestants)
    for field, what in (("program", ""), ("everything", ", all processes")):
        alone = getattr(plain, field)
        own, all_calls, stops = (getattr(one, field) - alone for one in (sampled, every, none))
        row = f"trace one call in 100, ebpf{what}"
        yield Row(row, own, all_calls, "every call", None, "ns")
        yield Row(row, own, stops, "the stop at the probe alone", None, "ns", False)


def traced_by(
    method: str, folder: Path, program: str, args: str, func: str = "leaf", keep: bool = False
) -> tuple[dict[str, Any], Kept]:
    """Trace a program by the engine ebpf, which attaches its probes by this method."""
    EbpfEngine.forced_method = method
    try:
        return traced(folder, "ebpf", program, args, func, keep)
    finally:
        EbpfEngine.forced_method = ANY_METHOD


def without_loss(folder: Path, engine: str, program: str) -> Iterator[Row]:
    """Bytes of a call, how fast they are recorded, and that none is lost."""
    try:
        trace, kept = traced(folder, engine, program, f"{RECORDED} cost", keep=True)
    except CollectorUnavailable as problem:
        yield Row(f"data of a call, {engine}", float("nan"), 40, problem.message.splitlines()[0], None, "B")
        return
    yield Row(f"data of a call, {engine}", kept.size / RECORDED, 40, "limit", 1, "B")
    lost = RECORDED - trace["calls"] + trace["lost"]
    yield Row(f"calls lost, {engine}", lost, RECORDED, "recorded", 0, "calls")
    # A call is two records. The duration has the start of the engine in it.
    taken = trace["duration"] / (2 * trace["calls"]) * 1_000_000
    yield Row(f"1,000,000 records, {engine}", taken, 1, "limit", 1)


def many_functions(folder: Path, rounds: int) -> Iterator[Row]:
    """Attaching and detaching the probes of a program that does nothing."""
    source, program = folder / "many.c", folder / "many"
    text = "".join(f"int function{number}(int n) {{ return n * {number}; }}\n" for number in range(FUNCTIONS))
    source.write_text(text + "int main(void) { return 0; }\n")
    subprocess.run(["cc", "-O1", "-g", "-fno-ipa-icf", "-o", program, source], check=True)
    for method, count, limit in (
        (ANY_METHOD, FUNCTIONS, 0.5),
        ("multi", FUNCTIONS, 0.5),
        ("perf_event", ONE_BY_ONE, None),
    ):
        name = "ebpf" if method == ANY_METHOD else f"ebpf by {method}"
        func = "function*" if count == FUNCTIONS else "function??"
        attached, rest = [], []
        for _ in range(rounds if limit else 1):
            try:
                trace, kept = traced_by(method, folder, str(program), "", func, keep=True)
            except CollectorUnavailable as problem:
                yield Row(
                    f"attach {count:,} functions, {name}",
                    float("nan"),
                    0.5,
                    problem.message.splitlines()[0],
                    None,
                )
                break
            attached.append(kept.attached)
            rest.append(trace["duration"] - kept.attached)
        else:
            most = 1 if limit else None
            yield Row(
                f"attach {trace['functions']:,} functions, {name}",
                Measured(attached),
                0.5,
                "limit",
                most,
            )
            what = f"detach {trace['functions']:,} functions, start and program among it, {name}"
            yield Row(what, Measured(rest), 0.5, "limit", most)


class Kept(NamedTuple):
    """What the temporary files of a run tell: bytes recorded, and seconds that attaching took."""

    size: int
    attached: float


def traced(
    folder: Path, engine: str, program: str, args: str, func: str = "leaf", keep: bool = False
) -> tuple[dict[str, Any], Kept]:
    """Trace a program as `perun collect trace` does; the summary, and what is in the files kept."""
    notes: list[str] = []
    run = Run(program, args, cwd=folder, environ=dict(os.environ))
    params = TraceParams(
        engine=engine, strategy="custom", func=(func,), output_handling="suppress", keep_temp=keep
    )
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        context = CollectContext(Path(scratch), note=notes.append, cache=folder / "cache")
        profile = TraceCollector().collect(run, params, context)
    kept = Kept(0, float("nan"))
    for note in notes:
        if (path := Path(note.rpartition(" ")[2])).is_dir():
            data = [path / "records", *path.glob("uftrace/*.dat")]
            size = sum(file.stat().st_size for file in data if file.is_file())
            summary = path / "summary"
            lines = summary.read_text().splitlines() if summary.is_file() else []
            told = dict(line.split(maxsplit=1) for line in lines)
            kept = Kept(size, float(told.get("attached", "nan")))
            shutil.rmtree(path)
    return profile["trace"], kept


def bpftrace(folder: Path, program: str, calls: int) -> None:
    """A line at the entry and at the exit of each call."""
    out = folder / "bpftrace"
    argv = ["bpftrace", "-o", str(out), "-e", PAIR.format(program), "-c", f"{program} {calls} cost"]
    out.unlink(missing_ok=True)
    quietly(argv, folder)
    if not out.is_file() or "\nx " not in out.read_text():
        raise CollectorUnavailable("records nothing here")


def uftrace(folder: Path, program: str, calls: int) -> None:
    """As uftrace does by itself."""
    data = str(folder / "uftrace")
    shutil.rmtree(data, ignore_errors=True)
    argv = ["uftrace", "record", "-d", data, "--no-libcall", "-P", "leaf", program, str(calls), "cost"]
    quietly(argv, folder)


def quietly(argv: Sequence[str], folder: Path) -> None:
    """Execute a command that writes its cost to a file.

    :raises CollectorUnavailable: where it is not installed, or cannot run.
    """
    if not shutil.which(argv[0]):
        raise CollectorUnavailable("not installed")
    (folder / "cost").unlink(missing_ok=True)
    subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if not (folder / "cost").is_file():
        raise CollectorUnavailable("cannot run here")


def cost(folder: Path, run: Callable[[int], object], calls: int) -> Cost:
    """What a call costs, without what starting costs."""
    begin = children()
    run(BATCHES)
    start = children()
    run(calls)
    end = children()
    program = float((folder / "cost").read_text().split()[0])
    return Cost(program, ((end - start) - (start - begin)) / (calls - BATCHES) * 1e9)


def children() -> float:
    """CPU seconds of all processes that this one has started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summed_up(costs: Sequence[Cost]) -> Cost:
    """The best of the rounds; the median of what starting was subtracted from."""
    return Cost(min(one.program for one in costs), statistics.median(one.everything for one in costs))


def one_call(folder: Path, rounds: int) -> Iterator[Row]:
    """CPU time of a call beyond that of the same call in the program alone."""
    plain, instrumented = compiled(folder, "plain"), compiled(folder, "instrumented", *INSTRUMENT)
    calls = folder / "calls"
    settings = [f"LD_PRELOAD={LIBRARY}", f"PERUN_COMPLEXITY_FOLDER={calls}"]
    commands: dict[str, list[str]] = {
        "plain": [plain, str(CALLS)],
        "ours": ["env", *settings, instrumented, str(CALLS)],
    }
    if shutil.which("uftrace"):
        data = ["-d", str(folder / "uftrace"), "--no-libcall"]
        commands["uftrace -P"] = ["uftrace", "record", *data, "-P", "leaf", plain, str(CALLS)]
        profiled = compiled(folder, "profiled", "-pg")
        commands["uftrace, -pg"] = ["uftrace", "record", *data, profiled, str(CALLS)]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            shutil.rmtree(calls, ignore_errors=True)
            calls.mkdir()
            found[name].append(printed(argv))
            if name == "ours":
                size = sum(path.stat().st_blocks * 512 for path in calls.glob("*.calls"))
    best = {name: min(cost for cost, _ in pairs) for name, pairs in found.items()}
    counter = min(counter for pairs in found.values() for _, counter in pairs)
    ours = best["ours"] - best["plain"]
    yield Row("record a call, complexity", ours, 35, "limit", 1, "ns")
    yield Row("record a call, complexity", ours, 2 * counter, "two reads of the counter", None, "ns", False)
    for name in list(best)[2:]:
        yield Row("record a call, complexity", ours, best[name] - best["plain"], name, 1, "ns")
    yield Row("data of a call, complexity", size / CALLS, 40, "limit", 1, "B")


def many_calls(perun: str, folder: Path, collector: str) -> Iterator[Row]:
    """Ten million calls, from the command line to the stored profile: time, memory and room on the disk."""
    folder = folder / "many-calls"
    folder.mkdir()
    (folder / "many.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O2", "-g", "-o", "many", "many.c"], cwd=folder, check=True)
    for argv in (["git", "init", "-q"], ["git", "add", "many.c"], ["git", *AUTHOR, "commit", "-qm", "1"]):
        subprocess.run(argv, cwd=folder, check=True)
    subprocess.run([perun, "init"], cwd=folder, check=True, capture_output=True)
    chosen = {
        "trace": ["--engine", "ebpf", "--strategy", "custom", "--func", "inner", "--func", "outer"],
        "complexity": ["--files", "many.c"],
    }
    argv = [perun, "collect", "-c", "./many", "-a", str(MANY), collector, *chosen[collector]]
    used = whole(argv, folder, "many")
    (path,) = (folder / ".perun" / "jobs").glob("*.perf")
    calls = load_profile(path)["trace"]["calls"]
    assert calls in (MANY // 3 * 3, MANY // 3 * 3 + 1), f"{calls} calls"
    what = f"perun collect {collector}, {MANY:,} calls"
    yield Row(f"{what}: CPU time without the program", used.cpu, 15, "limit", 1)
    yield Row(f"{what}: memory of all processes", used.memory, 500, "limit", 1, "MB")
    size = path.stat().st_size / (1 << 20)
    yield Row(f"{what}: stored", size, 50, "limit", 1, "MB")


def compiled(folder: Path, name: str, *options: str) -> str:
    """The path of the program, compiled with these options."""
    path = str(folder / name)
    subprocess.run(["cc", "-O2", *options, "-o", path, str(SOURCE)], check=True)
    return path


def printed(argv: Sequence[str]) -> tuple[float, float]:
    """Nanoseconds of a call, and of reading the counter."""
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    first, second = done.stdout.split()[:2]
    return float(first), float(second)
