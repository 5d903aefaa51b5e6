"""One benchmark that the user names, in the suites of several versions."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import PerunError, UsageError
from perun.core.wording import listed
from perun.plugin.api import Report
from perun.plugin.suites import NamedBenchmark
from perun.repository.copies import scratch_folder
from perun.repository.jobs import PluginConfig
from perun.repository.repository import Repository
from perun.running.suite.programs import Suite, SuiteBuild, SuiteOptions, harnesses, once

_SHOWN: Final = 6
"""Names that an error lists at most."""


class Place(NamedTuple):
    """A working copy, and how its version is called in messages, as `the good end, 4baf672,`."""

    name: str
    folder: Path


class FoundBenchmark(NamedTuple):
    """The benchmark, its suite, and what was built of it in each place."""

    suite: Suite
    unit: PluginConfig
    benchmark: NamedBenchmark
    builds: tuple[SuiteBuild, ...]


def found(
    repo: Repository,
    places: Sequence[Place],
    wanted: SuiteOptions,
    scratch: ExitStack,
    rng: random.Random,
    report: Report,
    note: Callable[[str], None],
) -> FoundBenchmark:
    """The one benchmark that is wanted, which all places have.

    :param wanted: its only pattern is the name, as Perun or its harness writes it, or one that fits no other
        benchmark. :param scratch: what was built lasts as long as this.
    :raises UsageError: where there is no such benchmark, where there are several, or where a place lacks it.
    :raises PerunError: where benchmarks cannot be built.
    """
    (name,) = wanted.patterns
    note = once(note)
    suites: list[FoundBenchmark] = []
    problems: list[PerunError] = []
    units = {unit.name: unit for place in places for unit in _units(repo, place, wanted.harness)}
    if not units:
        harnesses(repo, places[-1].folder, wanted.harness)  # raises
    for unit in units.values():
        suite = Suite(repo, unit, rng, wanted.seconds, scratch.enter_context(scratch_folder(repo)))
        try:
            builds = tuple(_built(repo, suite, place, scratch, report, note) for place in places)
        except PerunError as problem:
            problems.append(problem)
            note(f"{unit.name}: {problem.message}")
            continue
        suites += [
            FoundBenchmark(suite, unit, one, builds)
            for one in dict.fromkeys(one for build in builds for one in build.programs)
        ]
    if problems and not suites:
        raise problems[0]
    chosen = _chosen(name, suites)
    for place, build in zip(places, chosen.builds, strict=True):
        if chosen.benchmark not in build.programs:
            raise UsageError(
                f"{place.name} does not have the benchmark {str(chosen.benchmark)!r}",
                "name versions that both have it; a benchmark that came or went is told by perun compare "
                "--suite",
            )
    return chosen


def _units(repo: Repository, place: Place, wanted: str) -> list[PluginConfig]:
    try:
        return harnesses(repo, place.folder, wanted)
    except UsageError:
        return []


def _built(
    repo: Repository,
    suite: Suite,
    place: Place,
    scratch: ExitStack,
    report: Report,
    note: Callable[[str], None],
) -> SuiteBuild:
    try:
        return suite.build(place.folder, scratch.enter_context(scratch_folder(repo)), report, note)
    except PerunError as problem:
        raise type(problem)(f"{place.name} cannot be measured: {problem.message}", problem.hint) from None


def _chosen(name: str, suites: Sequence[FoundBenchmark]) -> FoundBenchmark:
    """The benchmark of that name, or else the only one that fits it as a pattern."""
    fitting = [one for one in suites if name == str(one.benchmark)]
    fitting = fitting or [one for one in suites if name in _names(one.benchmark)]
    fitting = fitting or [
        one for one in suites if any(fnmatchcase(own, name) for own in _names(one.benchmark))
    ]
    if len(fitting) == 1:
        return fitting[0]
    names = list(dict.fromkeys(str(one.benchmark) for one in fitting))
    if len(names) == 1:
        raise UsageError(
            f"--benchmark {name}: several harnesses have it",
            f"name one with --harness: {', '.join(one.unit.name for one in fitting)}",
        )
    if names:
        raise UsageError(
            f"--benchmark {name}: {len(names)} benchmarks are meant: {listed(names, _SHOWN)}",
            "name one of them",
        )
    names = list(dict.fromkeys(str(one.benchmark) for one in suites))
    near = [one for one in names if name.lower() in one.lower()]
    near = near or difflib.get_close_matches(name, names, _SHOWN) or names
    raise UsageError(
        f"--benchmark {name}: there is no such benchmark",
        f"there are: {listed(near, _SHOWN)}" if near else "the project has none in these versions",
    )


def _names(one: NamedBenchmark) -> set[str]:
    """The names of a benchmark, also as its harness writes them."""
    with_parameters = (f"{one.name}[{one.parameters}]", f"{one.name}/{one.parameters}")
    return {str(one), one.name, *(with_parameters if one.parameters else ())}
