"""The contract of harnesses: what finds, builds and runs the named benchmarks of a project, as `go test
-bench` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeVar

from perun.profile.format.core import Profile

PRINTED: Final = "printed"
"""Type of what a benchmark tells in a unit of its own: it may vary by anything, and nobody waits for it."""
_COUNTED: Final = frozenset({"memory", "instructions", "calls"})
"""Types of which profiles are taken to be counted, without any noise."""
P_contra = TypeVar("P_contra", contravariant=True)


class NamedBenchmark(NamedTuple):
    """One benchmark of a suite.

    :param name: unique among those with the same parameters, e.g. `parser.BenchmarkParse`. :param parameters:
        as one text, e.g. `size=10`; empty without any. Those of one name are a family.
    """

    name: str
    parameters: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.parameters}".rstrip()


class SuiteProgram(NamedTuple):
    """What was built of a working copy, and is started for each round.

    :param argv: the words that start it, the first one absolute or found on the path. :param folder: where it
        runs. :param name: tells it from the others of the suite. :param data: what its harness has to know.
    """

    argv: tuple[str, ...]
    folder: Path
    name: str = ""
    data: Mapping[str, Any] = MappingProxyType({})


class BenchmarkValue(NamedTuple):
    """What a round measured of a benchmark by one metric, for one operation.

    :param type: and :param subtype: and :param unit: as resources of profiles have them: `time`, empty, `s`
        for times; `memory`, `allocated`, `B` and `memory`, `allocations`, empty for memory.
    :param samples: finite, one at least, in the order of measuring. :param larger_is_better: as of a
        throughput. :param is_count: whether it is counted, so that a run like the last one gives the same.
    """

    type: str
    subtype: str
    unit: str
    samples: tuple[float, ...]
    larger_is_better: bool = False
    is_count: bool = False

    @property
    def stored_type(self) -> str:
        """The type that profiles have: what is read of a type that is counted has no noise, this may have."""
        return PRINTED if self.type in _COUNTED and not self.is_count else self.type


def profiles_of(
    collector: str,
    command: str,
    benchmark: NamedBenchmark,
    values: Sequence[BenchmarkValue],
    params: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Profile]:
    """What was measured of a benchmark, as profiles: one of each type, that of times the last.

    Each sample is a resource.

    :param collector: the name of the harness; the profiles of types before the last have the type behind it.
    :param command: of the harness. :param values: of as many samples each.
    """
    types = sorted({one.stored_type for one in values}, key=lambda kind: (kind == "time", kind))
    for kind in types:
        own = [one for one in values if one.stored_type == kind]
        units = {f"{kind} ({one.subtype})" if one.subtype else kind: one.unit for one in own}
        header: dict[str, Any] = {"type": kind, "units": units}
        header |= {"cmd": command, "args": benchmark.name, "workload": benchmark.parameters}
        if better := [one.subtype or str(benchmark) for one in own if one.larger_is_better]:
            header["larger_is_better"] = better
        name = collector if kind == types[-1] else f"{collector}.{kind}"
        about = {"name": name, "params": dict(params)}
        profile = Profile({"header": header, "collector_info": about, "postprocessors": []})
        profile.update_resources(
            [
                {
                    "amount": sample, "type": kind, "uid": str(benchmark), "order": order,
                    **({"subtype": one.subtype} if one.subtype else {}),
                }
                for one in own for order, sample in enumerate(one.samples, 1)
            ]
        )  # fmt: skip
        yield profile


class BenchmarkRound(NamedTuple):
    """What one round says of one benchmark.

    :param iterations: operations of a round, to be asked for in the next one: those of a sample, or of all
        samples of a process together. :param values: each metric once.
    :param failure: why there are no values; empty where there are.
    """

    iterations: int
    values: tuple[BenchmarkValue, ...]
    failure: str = ""


class BenchmarkCommand(NamedTuple):
    """What runs one benchmark and nothing else, as a program that can be recorded.

    :param argv: its words, the first one absolute or found on the path. :param iterations: operations that it
        makes. :param environ: variables besides those of the user; a `PYTHONPATH` is put in front of theirs.
    :param marked: whether it asks Valgrind where to begin to count (CALLGRIND_START_INSTRUMENTATION).
    """

    argv: tuple[str, ...]
    iterations: int
    environ: Mapping[str, str] = MappingProxyType({})
    marked: bool = False


class ToolOutput(NamedTuple):
    """What a program that ended has written. :param status: that of its exit, as a shell says it."""

    status: int
    stdout: str
    stderr: str


class HarnessContext(NamedTuple):
    """What a harness may use.

    `run(argv, folder, environ)` runs a program to its end, in the environment of the user with these
    variables besides; it raises :class:`~perun.core.errors.JobFailed` where the program cannot be started,
    and ends the measuring where it takes longer than there is time. `scratch` is an empty folder of each
    call. `seconds` are those that the samples of one benchmark take in a round. `report` tells the progress,
    `note` one line to the user.
    """

    run: Callable[[Sequence[str], Path, Mapping[str, str]], ToolOutput]
    scratch: Path
    seconds: float
    report: Callable[[str, int, int], None]
    note: Callable[[str], None]


class Harness(Protocol[P_contra]):
    """Runs the named benchmarks of a project.

    `command` is what its users type, e.g. `go test -bench`; profiles have it as their command, the name of
    the benchmark as its arguments, and the parameters as its workload. Of `name`, `help` and `Params` see
    :class:`perun.plugin.api.Plugin`. One of which starting a process costs more than measuring has the
    attribute `together = True`: it gets all benchmarks of a round at once, else each by itself.

    One whose benchmarks can run apart has a method `one(program, benchmark, iterations, params, ctx)`, too,
    which `perun explain` needs. It returns a :class:`BenchmarkCommand` that makes so many operations, may run
    several times, and takes no number by the clock. Where it cannot make so many, it says how many it makes;
    for 0 it starts the program as far as it goes without the benchmark. What it writes in `ctx.scratch` stays
    as long as the command is used.

    It raises :class:`~perun.core.errors.CollectorUnavailable` where a tool is missing, and
    :class:`~perun.core.errors.JobFailed` where one fails.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    command: ClassVar[str]
    Params: ClassVar[type]

    def detect(self, folder: Path) -> Sequence[str]:
        """The files below the folder that define benchmarks of this harness, relative to it, a few hundred at
        most; none where the project has none. Files are only read, nothing runs."""
        ...

    def build(self, folder: Path, params: P_contra, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """Build the benchmarks of the working copy in `folder`, in it or in `ctx.scratch`, which stays as
        long as the programs are used. What the project itself needs was built before, as it is configured."""
        ...

    def list(self, program: SuiteProgram, params: P_contra, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks of the program, in its order; as far as the harness can tell, without measuring."""
        ...

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: P_contra,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure each of the benchmarks once, in this order where the harness allows one, in processes that
        are started for it.

        :param iterations: operations of a sample; 0 to find how many take `ctx.seconds`: the answer says it.
        """
        ...
