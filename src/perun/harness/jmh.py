"""Benchmarks of Java's JMH, and those of Kotlin and Scala, in runnable jars that the project's own build has
made."""

from __future__ import annotations

import itertools
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Final

from perun.core.errors import JobFailed
from perun.harness import _common as common
from perun.plugin.params import param
from perun.plugin.suites import (
    BenchmarkRound,
    BenchmarkValue,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

_ANNOTATION: Final = re.compile(r"@(?:org\.openjdk\.jmh\.annotations\.)?Benchmark\b")
_ENTRY: Final = re.compile(
    r"^JMH S \d+ (\S+) S \d+ \S+ S \d+ (\S+) S \d+ (\w+) (?:E|I \d+ (-?\d+)) A (\d+) ", re.MULTILINE
)
"""Class, method, mode, threads and number of groups in the list that JMH puts into jars (1.21 to 1.37)."""
_PARAMETER: Final = re.compile(r'  param "(.+?)" = \{(.*)\}')
_REASON: Final = re.compile(r"<failure>\s*(\S.*)|<(forked VM .*)>|^(No matching benchmarks)", re.MULTILINE)
_LIST: Final = "META-INF/BenchmarkList"
_SAMPLES: Final = 5
_WARM: Final = 0.5
"""Seconds: until then the compilers of HotSpot are done with most benchmarks."""
_MOST_OPERATIONS: Final = 2**31 - 1
_MOST_SHOTS: Final = 1000
_VERSION: Final = "is this version of it supported?"
_BUILD: Final = "build it by `execute.pre_run`, e.g. `mvn package`, or name it by the parameter `jars`"


@dataclass(frozen=True)
class JmhParams:
    """Which jars have the benchmarks, and what runs them."""

    jars: tuple[str, ...] = param(
        (),
        metavar="<path>",
        help="Measure the benchmarks of this runnable jar, which the build has made (`execute.pre_run`); by "
        "default of each in the folders `target` and `build`. May be repeated.",
    )
    java: str = param("java", metavar="<path>", help="Run the benchmarks with this Java.")


class JmhHarness:
    """Measures the benchmarks of JMH, each in a process of its own, which forks another one.

    JMH fixes the number of operations in its single shots only, whose batch is then the iterations: calls of
    the method, `@OperationsPerInvocation` apart. So both sides of a comparison do the same work, their
    compilers see the same number of calls, and what JMH itself allocates in a sample, 3 to 9 kB, is shared by
    as many operations. Whichever of the modes throughput, average time and sample time a benchmark has, it is
    measured in this way once: five samples, after five batches or more that warm it up, whose times are
    means, of one operation. Two kinds are not:

    - One of single shots alone keeps its batches and its warmup, as these are what it is about. The
      iterations are its shots; the one sample is their mean. Their bytes are not measured.
    - One with groups or several threads is measured by time, as its threads have to run all along, and may
      wait for one another. The iterations that are asked for are not used; the answer has those of a thread.

    Bytes are told whole, as those of JMH itself would hide that a benchmark allocates nothing. They are not
    exact: the compilers leave out allocations as soon as they can. In six runs at a fixed number of
    operations they were the same, at a fixed time up to 12 of 28980 B apart.

    The times, forks and iterations that annotations have are not used, their options of Java are. Values of
    parameters with a comma cannot be chosen: JMH takes them for several.
    """

    name: ClassVar[str] = "jmh"
    help: ClassVar[str] = "Measures the benchmarks of JMH in projects of Java, Kotlin and Scala."
    command: ClassVar[str] = "jmh"
    Params: ClassVar[type] = JmhParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The sources that import JMH and annotate benchmarks."""
        return common.files_with(
            folder,
            (".java", ".kt", ".scala"),
            lambda _, text: "org.openjdk.jmh" in text and _ANNOTATION.search(text) is not None,
        )

    def build(self, folder: Path, params: JmhParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """The runnable jars that the build of the project has made, by the folder of their module.

        :raises CollectorUnavailable: without Java. :raises JobFailed: without such a jar.
        """
        java = common.needed(params.java, "apt-get install default-jdk, or https://adoptium.net")
        found = [folder / jar for jar in params.jars] or [
            path for path in common.built_files(folder, (".jar",)) if kinds_of(path)
        ]
        if not found:
            raise JobFailed(f"no runnable jar below {folder} has benchmarks of JMH", _BUILD)
        modules = Counter(_module(path, folder) for path in found)
        programs = []
        for path in found:
            if not (kinds := kinds_of(path)):
                raise JobFailed(f"{path} is no runnable jar with benchmarks of JMH", _BUILD)
            argv = (java, "-Djmh.ignoreLock=true", "-jar", str(path.absolute()))
            listed = names_of(common.output_of(ctx, (*argv, "-lp"), folder))
            module = _module(path, folder)
            name = module if modules[module] == 1 else os.path.relpath(path, folder)
            programs.append(SuiteProgram(argv, folder, name, {"names": listed, "kinds": kinds}))
        return programs

    def list(self, program: SuiteProgram, params: JmhParams, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks as the program lists them, with each combination of the values of parameters."""
        return list(program.data["names"])

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: JmhParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure each benchmark in a process of its own; one looks for a number that is not given."""
        rounds = {}
        for number, (benchmark, wanted) in enumerate(iterations.items()):
            ctx.report(f"measuring {benchmark}", number, len(iterations))
            rounds[benchmark] = _measured(program, benchmark, wanted, ctx)
        return rounds


def kinds_of(path: Path) -> dict[str, str]:
    """The benchmarks of a runnable jar, to how they are measured: `fixed`, `shots` or `timed`; none where it
    is no such jar."""
    try:
        with zipfile.ZipFile(path) as jar:
            if b"Main-Class:" not in jar.read("META-INF/MANIFEST.MF"):
                return {}
            entries = jar.read(_LIST).decode("utf-8", "replace")
    except (OSError, KeyError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        return {}
    kinds: dict[str, str] = {}
    for holder, method, mode, threads, groups in _ENTRY.findall(entries):
        kind = "timed" if threads not in ("", "1") or groups != "1" else "fixed"
        if mode == "SingleShotTime":
            kinds.setdefault(f"{holder}.{method}", "shots")
        else:
            kinds[f"{holder}.{method}"] = kind
    return kinds


def names_of(text: str) -> dict[NamedBenchmark, tuple[str, ...]]:
    """The benchmarks that JMH lists by `-lp`, to the words that choose their parameters."""
    axes: dict[str, dict[str, list[str]]] = {}
    last = ""
    for line in text.splitlines():
        if found := _PARAMETER.fullmatch(line):
            axes.setdefault(last, {})[found[1]] = found[2].split(", ")
        elif re.fullmatch(r"[^\s:]+", line):
            axes.setdefault(last := line, {})
    names: dict[NamedBenchmark, tuple[str, ...]] = {}
    for name, values in axes.items():
        for chosen in itertools.product(*(values[one] for one in sorted(values))):
            words = [f"{one}={value}" for one, value in zip(sorted(values), chosen, strict=True)]
            options = itertools.chain.from_iterable(("-p", one) for one in words)
            names[NamedBenchmark(name, " ".join(words))] = tuple(options)
    return names


def _module(path: Path, folder: Path) -> str:
    parts = Path(os.path.relpath(path, folder)).parts
    return "/".join(itertools.takewhile(lambda part: part not in ("target", "build"), parts[:-1]))


def _measured(
    program: SuiteProgram, benchmark: NamedBenchmark, wanted: int, ctx: HarnessContext
) -> BenchmarkRound:
    chosen = program.data["names"].get(benchmark)
    if chosen is None:
        return BenchmarkRound(0, (), "it is not there")
    kind, share = program.data["kinds"].get(benchmark.name, "fixed"), max(ctx.seconds, 1e-6) / _SAMPLES
    made = ctx.scratch / "result.json"
    profiled = () if kind == "shots" else ("-prof", "gc")  # before 1.36 it takes half a second a shot

    def run(operations: int, *words: object) -> BenchmarkRound:
        made.unlink(missing_ok=True)
        argv = (
            *program.argv, "-f", "1", "-wf", "0", "-foe", "true", "-tu", "ns", "-rf", "json",
            "-rff", str(made), *profiled, *map(str, words), *chosen, common.exactly(benchmark.name),
        )  # fmt: skip
        done = ctx.run(argv, program.folder, {})
        if done.status or not made.exists():
            return BenchmarkRound(0, (), _why(done))
        return parsed(made.read_text("utf-8", "replace"), benchmark.name, operations, kind == "shots")

    def timed(samples: int, *words: object) -> BenchmarkRound:
        warm, length = (f"{math.ceil(one * 1e6)}us" for one in (max(share, _WARM / _SAMPLES), share))
        return run(1, "-bm", "avgt", "-wi", _SAMPLES, "-w", warm, "-i", samples, "-r", length, *words)

    if kind == "timed":
        return (one := timed(_SAMPLES))._replace(iterations=_fitting(share, one))
    if not wanted:
        found = run(1, "-bm", "ss", "-i", 1) if kind == "shots" else timed(1, "-opi", 1)
        if found.failure:
            return found
        wanted = _fitting(ctx.seconds, found, _MOST_SHOTS) if kind == "shots" else _fitting(share, found)
    if kind == "shots":
        return run(wanted, "-bm", "ss", "-i", wanted)
    warm = min(_MOST_OPERATIONS, wanted * math.ceil(max(1, _WARM / (share * _SAMPLES))))
    return run(wanted, "-bm", "ss", "-wi", _SAMPLES, "-wbs", warm, "-i", _SAMPLES, "-bs", wanted)


def _fitting(seconds: float, found: BenchmarkRound, most: int = _MOST_OPERATIONS) -> int:
    """How many operations take so many seconds; none after a failure."""
    if not found.values:
        return 0
    return max(1, min(most, round(seconds / max(fmean(found.values[0].samples), 1e-12))))


def _why(done: ToolOutput) -> str:
    if reason := _REASON.search(f"{done.stdout}\n{done.stderr}"):
        return "it is not there" if reason[3] else (reason[1] or reason[2]).strip()
    return common.why_not(done) if done.status else "it is not there"


def parsed(text: str, name: str, operations: int, shots: bool) -> BenchmarkRound:
    """What the JSON of JMH says of a benchmark.

    :param operations: of a sample, by which JMH has not divided; of shots it gives each.
    :raises JobFailed: where it is not what JMH writes.
    """
    rows = common.json_of(text, "JMH")
    try:
        row = next((row for row in rows if row["benchmark"] == name), None)
        if row is None:
            return BenchmarkRound(0, (), "it is not there")
        metrics = {"": row["primaryMetric"], **row["secondaryMetrics"]}
        values = tuple(_values(metrics, operations, shots))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise JobFailed(f"JMH wrote another JSON than is known: {problem!r}", _VERSION) from None
    if not values or values[0].type != "time":
        return BenchmarkRound(0, (), "it measured nothing")
    return BenchmarkRound(operations, values)


def _values(metrics: Mapping[str, Any], operations: int, shots: bool) -> Iterator[BenchmarkValue]:
    for label, metric in metrics.items():
        label = label.lstrip("\u00b7")  # before 1.37
        unit, samples = metric["scoreUnit"], [float(one) for one in metric["rawData"][0]]
        if not samples or not all(math.isfinite(one) for one in samples):
            continue
        samples = [fmean(samples)] if shots else [one / operations for one in samples]
        if unit == "ns/op":
            yield BenchmarkValue("time", label, "s", tuple(one / 1e9 for one in samples))
        elif label == "gc.alloc.rate.norm":
            yield BenchmarkValue("memory", "allocated", "B", tuple(float(round(one)) for one in samples))
        elif unit == "#":
            yield BenchmarkValue("printed", label, "", tuple(samples))


PLUGIN = JmhHarness
