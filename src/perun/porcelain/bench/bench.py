"""`perun bench`: measure commands in the working directory as it is, and keep what was measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perun import conditions
from perun.errors import JobFailed
from perun.measurement import present
from perun.plugin.api import MinorVersion, Report, silent
from perun.porcelain import saving
from perun.porcelain.bench import matrix, notes
from perun.porcelain.bench.matrix import Setting
from perun.porcelain.bench.measuring import Measurement, Runner, Series, measure, precision_of, runs_left
from perun.porcelain.bench.options import BenchOptions
from perun.porcelain.bench.plan import Benchmark, plan
from perun.porcelain.bench.results import Result, of_series, with_earlier, with_ratios
from perun.porcelain.repository import Repository
from perun.porcelain.run import pre_run
from perun.porcelain.run.checkouts import scratch_folder
from perun.porcelain.run.collecting import describe_machine
from perun.porcelain.run.in_place import refuse_after_interruption
from perun.porcelain.timed_runs import time_profile
from perun.process.finding import find_executable
from perun.profile import session

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Expect = Callable[[float | None], None]


@dataclass(frozen=True)
class Outcome:
    """What was measured.

    :ivar version: the current version; with :ivar uncommitted: changes, whose profiles are pending. Those of
        the version itself are registered.
    :ivar conditions: what makes times less certain at the moment, such as other programs.
    :ivar results: one for each command that has a run. :ivar saved: what was written into the job matrix.
    :ivar interruption: the exception that ended it; then nothing is stored.
    """

    version: MinorVersion
    uncommitted: bool
    conditions: tuple[str, ...]
    results: list[Result]
    saved: tuple[Setting, ...] = ()
    interruption: BaseException | None = None


def bench(
    repo: Repository,
    options: BenchOptions,
    report: Report = silent,
    expect: Expect = lambda seconds: None,
    dice: random.Random | None = None,
) -> Outcome:
    """Measure the commands in turns, and store a profile of the collector `time` for each.

    They run in the folder of the repository, its files as they are; `execute.pre_run` goes first, as before
    every measurement.

    :param report: gets what is done, runs done and expected in all. :param expect: gets the seconds left.
    :param dice: decides the order of runs.
    :raises UsageError: where a command cannot be run, or `--save` cannot be done; nothing has run then.
    :raises JobFailed: where a command fails; nothing is stored then.
    :raises NotTrusted: if the user has not said that he trusts the repository.
    """
    benchmarks = plan(options)
    repo.require_trust("measuring")
    refuse_after_interruption(repo)
    version = repo.vcs.get_minor_version_info(repo.version(None))
    uncommitted = repo.vcs.is_dirty()
    added = matrix.additions(repo, benchmarks) if options.save else []
    as_built = matrix.with_build(repo, added)
    report("preparing", 0, 0)
    state = version.checksum + "-uncommitted" * uncommitted
    pre_run.run_commands(as_built, state, repo.working_root)
    for one in benchmarks:
        _check_program(repo, one, several=len(options.commands) > 1)
    # The load it finds, not the one it makes.
    machine_state = describe_machine(as_built)
    momentary = tuple(one.message for one in conditions.observe() if one.momentary)
    found = _measured(repo, benchmarks, options, _reporting(options, report, expect), dice)
    series = [one for one in found.series if one.samples]
    results = [of_series(one, notes.of(one, found, options)) for one in series]
    profiles = [_profile(repo, one, options, machine_state, uncommitted) for one in series]
    results = with_ratios(repo, results, series)
    results = [
        with_earlier(repo, version, uncommitted, one, profile)
        for one, profile in zip(results, profiles, strict=True)
    ]
    if found.interruption is not None:
        return Outcome(version, uncommitted, momentary, results, interruption=found.interruption)
    wanted = [saving.Wanted(one, version.checksum, not uncommitted) for one in profiles]
    paths = saving.save_together(repo, wanted)
    matrix.write(repo, added)
    stored = [replace(one, profile=path.name) for one, path in zip(results, paths, strict=True)]
    return Outcome(version, uncommitted, momentary, stored, tuple(added))


def _check_program(repo: Repository, benchmark: Benchmark, *, several: bool) -> None:
    """Raise where there is no such program, better before all others have run."""
    program = benchmark.run.command().argv[0]
    try:
        find_executable(program, repo.working_root, repo.environ)
    except JobFailed as problem:
        hint = f"commands run in {repo.working_root}"
        if several and "/" not in program:
            hint += "; quote each command with its arguments: perun bench './prog 1000'"
        raise JobFailed(problem.message, hint) from None


def _measured(
    repo: Repository,
    benchmarks: Sequence[Benchmark],
    options: BenchOptions,
    progress: Callable[[Series, Sequence[Series], float], None],
    dice: random.Random | None,
) -> Measurement:
    dice = dice or random.Random()
    with scratch_folder(repo) as scratch:
        environ = pre_run.environment(repo)
        with Runner(repo.working_root, environ, scratch, dice, options.ignore_failure) as runner:
            return measure(benchmarks, runner, options, dice, progress)


def _reporting(
    options: BenchOptions, report: Report, expect: Expect
) -> Callable[[Series, Sequence[Series], float], None]:
    """Turns the progress of the runs into a line, and the seconds that are left."""

    def progress(grown: Series, series: Sequence[Series], seconds: float) -> None:
        done = sum(len(one.samples) for one in series)
        left = [runs_left(one, options) for one in series]
        times = [one.value.value if one.value else 0.0 for one in series]
        needed = sum(runs * time for runs, time in zip(left, times, strict=True))
        late = max(0.0, seconds) if options.runs is None else float("inf")
        share = min(1.0, late / needed) if needed else 1.0  # of them the budget allows
        text = grown.benchmark.title
        if grown.value is not None:
            reached = precision_of(grown.value)
            known = "" if reached is None else f", known to ±{100 * reached:.2g} %"
            text = f"{text}: {present.value(grown.value, 's')}{known}"
        report(text, done, done + round(share * sum(left)))
        expect(share * needed)

    return progress


def _profile(
    repo: Repository,
    one: Series,
    options: BenchOptions,
    machine_state: Mapping[str, Any],
    uncommitted: bool,
) -> Profile:
    """The profile of a series, as the time collector makes it."""
    benchmark = one.benchmark
    state = {**machine_state, "build": _conditions(machine_state, benchmark)}
    params = {"warmup": options.warmup, "ignore_failure": options.ignore_failure}
    profile = time_profile(repo, benchmark.job, one.samples, state, **params)
    # A later forecast estimates from this how long the job takes.
    seconds = round(sum(sample.real for sample in one.samples), 3)
    profile["collector_info"] = {**profile["collector_info"], "seconds": seconds}
    header = profile["header"]
    if benchmark.parameters:
        header = {**header, "parameters": dict(benchmark.parameters)}
    if uncommitted:
        header = {**header, session.KEY: {"uncommitted": True}}
    profile["header"] = header
    return profile


def _conditions(machine_state: Mapping[str, Any], benchmark: Benchmark) -> str:
    """The build, and what went before and after each run: times under other conditions are not comparable."""
    parts = [str(machine_state["build"])]
    if benchmark.prepare:
        parts.append(f"before each run: {benchmark.prepare}")
    if benchmark.conclude:
        parts.append(f"after each run: {benchmark.conclude}")
    return "; ".join(parts)
