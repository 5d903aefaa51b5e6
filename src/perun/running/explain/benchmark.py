"""One benchmark of a suite in place of a command: what runs it alone on each side, and what it costs itself.

A program of a harness starts, finds benchmarks and prints tables, which takes more than many a benchmark. So
two runs are recorded, of which one makes more operations: their difference, divided by the operations, is
what one operation costs, and nothing else.
"""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.errors import JobFailed, UsageError
from perun.core.process.command import find_executable
from perun.plugin.api import Report
from perun.plugin.suites import BenchmarkCommand
from perun.profile.factory import Profile
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.compare.plan import CompareCase, CompareSide, Folders
from perun.running.explain.lines import lines_of_one
from perun.running.suite.named import FoundBenchmark, Place, found
from perun.running.suite.programs import SuiteBuild, SuiteOptions

_SECONDS: Final = 0.002
"""That the operations take whose cost is recorded, unless one takes longer: callgrind takes 50 times that."""
_SUMMED: Final = frozenset({"amount", "calls", "count", "leaked", "leaked-blocks", "temporary"})
"""Fields of resources that two runs have more or less of."""
_OF_ONE_RUN: Final = frozenset(
    {"address", "lifetime", "order", "peak", "snapshot", "time", "timestamp", "thread"}
)
"""Fields that are dropped."""
_NOT_ADDITIVE: Final = frozenset({"peak", "lost"})
"""Subtypes of resources that are."""
_KEPT: Final = ("header", "collector_info", "postprocessors", "machine")


class SideCommands(NamedTuple):
    """What runs the benchmark of a side.

    :param more: the command with more operations, :param fewer: with fewer of them; None where the harness
        has none. :param folder: where they run.
    """

    more: BenchmarkCommand
    fewer: BenchmarkCommand | None
    folder: Path

    @property
    def operations(self) -> int:
        """Of which the difference is the cost."""
        return self.more.iterations - (self.fewer.iterations if self.fewer else 0)

    @property
    def program(self) -> Path:
        """The file that runs."""
        return Path(find_executable(self.more.argv[0], self.folder, self.more.environ)).resolve()


class ExplainedBenchmark(NamedTuple):
    """The benchmark as a configuration, and what runs it by the name of the side. :param note: of what."""

    case: CompareCase
    sides: Mapping[str, SideCommands]
    note: str


def prepared(
    repo: Repository,
    sides: Sequence[CompareSide],
    folders: Folders,
    wanted: SuiteOptions,
    scratch: ExitStack,
    report: Report,
    note: Callable[[str], None],
) -> ExplainedBenchmark:
    """Find the benchmark on both sides, and what runs it alone.

    :param scratch: as long as it lasts, the commands can be used.
    :raises UsageError: where there is no such benchmark, or its harness cannot run it alone.
    :raises PerunError: where it cannot be built, or fails.
    """
    places = [
        Place(f"the {side.name} ({side.version.checksum[:10]})", folders[side.name][0]) for side in sides
    ]
    one = found(repo, places, wanted, scratch, random.Random(0), report, note)
    if not one.suite.runs_one:
        raise UsageError(
            f"--benchmark {one.benchmark}: the harness {one.unit.name!r} cannot run one benchmark alone",
            "explain a program that does the same: -c CMD",
        )
    one.suite.seconds = _SECONDS
    number, commands = 0, dict[str, SideCommands]()
    for side, build in zip(sides, one.builds, strict=True):
        report(f"running {one.benchmark} of {side}", 0, 0)
        number = _measured(one, build, number, side, note)
    for side, build in zip(sides, one.builds, strict=True):
        commands[side.name] = _commands(repo, one, build, number, scratch)
    job = Job(one.suite.command, *one.benchmark, one.unit)
    return ExplainedBenchmark(CompareCase(job, ()), commands, _note(one, commands[sides[0].name]))


def _measured(
    one: FoundBenchmark, build: SuiteBuild, number: int, side: CompareSide, note: Callable[[str], None]
) -> int:
    """The operations that take the time, or as many as are given.

    :raises JobFailed: where the benchmark fails.
    """
    given = one.suite.round(build.programs[one.benchmark], {one.benchmark: number}, lambda: 0.0, note)
    measured = given.get(one.benchmark)
    if measured is None or not measured.values:
        why = measured.failure if measured is not None else ""
        raise JobFailed(f"{side}: {one.benchmark}: {why or 'it was not measured'}")
    return number or measured.iterations


def _commands(
    repo: Repository, one: FoundBenchmark, build: SuiteBuild, number: int, scratch: ExitStack
) -> SideCommands:
    """Both make more than one operation, as a first one may be another."""
    program = build.programs[one.benchmark]

    def command(iterations: int) -> BenchmarkCommand:
        own = scratch.enter_context(scratch_folder(repo))
        return one.suite.one(program, one.benchmark, iterations, own)

    more, fewer = command(2 * number + 1), command(number + 1)
    if more.iterations == fewer.iterations:
        fewer = command(0)
    return SideCommands(more, fewer if fewer.iterations < more.iterations else None, program.folder)


def _note(one: FoundBenchmark, commands: SideCommands) -> str:
    if commands.fewer is None:
        return f"{one.unit.name} makes one run only: what it costs itself is among the costs"
    setup = "" if commands.fewer.iterations else "; what sets the benchmark up is among them"
    return (
        f"costs are those of one operation: the difference of runs with {commands.more.iterations} and "
        f"{commands.fewer.iterations} of them, which the start of the harness is no part of{setup}"
    )


def run_of(command: BenchmarkCommand) -> str:
    """The command as one text."""
    return shlex.join(command.argv)


def difference(more: Profile, fewer: Profile | None, operations: int) -> Profile:
    """What one operation costs: the sums of each place and call stack, without those of the second profile.

    Where stacks of a place have less than in the second profile, as they are not the same in each run, those
    that have more bear it. What does not add up, such as the peak of memory, is left out.
    """
    places: dict[str, dict[str, _Sums]] = {}
    for profile, sign in ((more, 1), (fewer, -1)):
        for constants, own in _resources(profile) if profile is not None else ():
            stack = json.dumps(constants.get("trace"))
            place = json.dumps({**constants, "trace": None}, sort_keys=True)
            known = places.setdefault(place, {}).setdefault(stack, _Sums(constants, {})).values
            for name, value in own.items():
                known[name] = known.get(name, 0.0) + sign * value / operations
    made = Profile({key: value for key, value in more.items() if key in _KEPT})
    if lines := lines_of_one(more, fewer, operations):
        made["lines"] = lines
    resources = [one for stacks in places.values() for one in _positive(list(stacks.values()))]
    made.update_resources(resources, columns=tuple(_SUMMED - {"amount"}))
    return made


class _Sums(NamedTuple):
    """What a place and call stack has of each field."""

    constants: dict[str, Any]
    values: dict[str, float]


def _positive(stacks: Sequence[_Sums]) -> Iterator[dict[str, Any]]:
    """The resources of a place: its stacks with their sums, none of which is negative."""
    names = {name for one in stacks for name in one.values}
    columns = {name: [one.values.get(name, 0.0) for one in stacks] for name in names}
    shares = {
        name: max(sum(values), 0.0) / (sum(value for value in values if value > 0) or 1.0)
        for name, values in columns.items()
    }
    for one in stacks:
        own = {name: shares[name] * value for name, value in one.values.items() if shares[name] * value > 0}
        if "amount" in own:
            yield {**one.constants, **own}


def _resources(profile: Profile) -> Iterator[tuple[dict[str, Any], dict[str, float]]]:
    """What tells each resource from others, and its sums."""
    for group in profile.groups():
        if group.constants.get("subtype") in _NOT_ADDITIVE:
            continue
        fields = [{**group.constants, **dict(zip(group.columns, values, strict=True))}
                  for values in zip(*group.columns.values(), strict=True)]  # fmt: skip
        for one in fields or [dict(group.constants)]:
            constants = {name: value for name, value in one.items() if name not in _SUMMED | _OF_ONE_RUN}
            yield constants, {name: float(one[name]) for name in _SUMMED if name in one}
