"""`perun bench`: plan, measure in turns, compare with what was measured before, store.

The commands with the values of their parameters are `plan`, runs in rounds `measuring`, what `--save`
writes `matrix`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from perun.core import conditions
from perun.core.errors import JobFailed, ProfileError
from perun.core.process.command import find_executable, outcome
from perun.core.process.execution import RunSample
from perun.core.wording import plural
from perun.history import baseline
from perun.history.baseline import BaselineComparison, rules_of
from perun.measurement import present
from perun.measurement.comparable import drifted
from perun.measurement.estimate import Estimate
from perun.measurement.noise import NOTHING
from perun.measurement.verdict import Verdict, compare
from perun.models.outliers import NORMAL_MAD, Spread
from perun.plugin.api import MinorVersion, Report, silent
from perun.profile import session
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.repository import registering
from perun.repository.copies import refuse_after_interruption, scratch_folder
from perun.repository.jobs import as_known
from perun.repository.repository import Repository
from perun.running.bench import plan as matrix
from perun.running.bench.measuring import CommandRuns, Measurement, Runner, measure, precision_of, runs_left
from perun.running.bench.plan import FIRST_LOOK, Benchmark, BenchOptions, SettingChange, plan
from perun.running.compare.instruments import time_profile
from perun.running.run import pre_run
from perun.running.run.collecting import describe_machine

if TYPE_CHECKING:
    from numpy.typing import NDArray


# What was measured of each command, beside the other commands and beside earlier versions.

_READ: Final = 8
"""Profiles of the earlier version that are read, the newest first, to see how they were built."""


@dataclass(frozen=True)
class BenchResult:
    """One command.

    :ivar samples: its runs, in the order of measuring. :ivar value: of these runs. :ivar precision: half the
        width of its interval, as a share; None of a single run.
    :ivar ratio: how it differs from the fastest command, by the rounds that measured both; None for that
        itself, and where there is but one.
    :ivar judged: what the version measured of it, with these runs, beside the version before.
    :ivar notes: sentences on what is odd. :ivar profile: the name of the stored profile; empty for none.
    """

    benchmark: Benchmark
    samples: Sequence[RunSample]
    value: Estimate
    precision: float | None
    notes: tuple[str, ...] = ()
    ratio: Verdict | None = None
    judged: BaselineComparison | None = None
    profile: str = ""


def of_series(one: CommandRuns, notes: tuple[str, ...]) -> BenchResult:
    """The result of a series that has a run at least."""
    assert one.value is not None
    return BenchResult(one.benchmark, one.samples, one.value, precision_of(one.value), notes)


def with_ratios(
    repo: Repository, results: Sequence[BenchResult], series: Sequence[CommandRuns]
) -> list[BenchResult]:
    """The results with their ratios to the fastest.

    :param series: those of the results, in their order.
    """
    if len(results) < 2:
        return list(results)
    best = fastest(results)
    base = series[results.index(best)].rounds
    rules = rules_of(repo)
    return [
        one if one is best else replace(one, ratio=compare(base, own.rounds, NOTHING, rules))
        for one, own in zip(results, series, strict=True)
    ]


def fastest(results: Sequence[BenchResult]) -> BenchResult:
    """The result of the smallest time; of one at least."""
    return min(results, key=lambda one: one.value.value)


def with_earlier(
    repo: Repository, version: MinorVersion, uncommitted: bool, result: BenchResult, profile: Profile
) -> BenchResult:
    """The result with what was measured of the same configuration on such a machine before.

    Uncommitted changes are compared with the version that they are made to, where it was measured.
    """
    found = baseline.comparison_of_profile(
        repo, version.checksum, profile, registering=not uncommitted, itself=uncommitted
    )
    if found is None or found.verdict is None:
        return replace(result, judged=found)
    builds = sorted(set(_builds(repo, found.since, profile)) - {_build(profile)})
    notes = result.notes
    if builds:
        short, now = found.since[:7], _build(profile)
        notes += (f"{short} was measured otherwise ({builds[0]}; now: {now}), which may be the difference",)
    return replace(result, judged=found, notes=notes)


def _builds(repo: Repository, since: str, profile: Profile) -> Iterator[str]:
    """How the profiles of the earlier value were built, as far as they say and can be read."""
    configuration = ProfileHeader.of(profile).configuration
    same = [entry for entry in repo.store.indexes.read(since) if entry.info().configuration == configuration]
    for entry in sorted(same, key=lambda one: one.time)[-_READ:]:
        try:
            built = _build(repo.store.objects.get(entry.checksum))
        except ProfileError:
            continue  # `perun fsck` names it
        if built:
            yield built


def _build(profile: Mapping[str, Any]) -> str:
    machine = profile.get("machine")
    return str(machine.get("build") or "") if isinstance(machine, Mapping) else ""


# What is odd about the runs of a command, in sentences for the user.
#
# A series is odd by the modified z-score of :mod:`perun.models.outliers`. Iglewicz and Hoaglin call a score
# above 3.5 an outlier where values are normally distributed; times have a long tail, and nearly every series
# would have one.

OUTLIER: Final = 10.0
"""Modified z-score from which a run is an outlier."""
MIN_RUNS_FOR_NOTES: Final = 5
"""Runs below which nothing is called an outlier of the others."""
_RESOLUTION: Final = 1e-3
"""Share of the median below which the spread of times tells nothing."""


def notes_on(one: CommandRuns, whole: Measurement, options: BenchOptions) -> tuple[str, ...]:
    """The notes on one series of the measurement."""
    odd = [*_failures(one.samples), *_outliers(one.samples, options)]
    return (*odd, *_uncertain(one, whole, options))


def _failures(samples: Sequence[RunSample]) -> Iterator[str]:
    failed = [sample.status for sample in samples if sample.status]
    if failed:
        yield f"{len(failed)} of {plural(len(samples), 'run')} failed: the first of them {outcome(failed[0])}"


def _outliers(samples: Sequence[RunSample], options: BenchOptions) -> Iterator[str]:
    seconds = [sample.real for sample in samples]
    # An outlier is as far as this from the median at least: mostly numpy need not be loaded.
    if len(seconds) < MIN_RUNS_FOR_NOTES or max(seconds) <= median(seconds) * (
        1 + OUTLIER * _RESOLUTION / NORMAL_MAD
    ):
        return
    import numpy as np

    times: NDArray[np.float64] = np.array(seconds)
    spread = Spread.of(times, max(1e-6, _RESOLUTION * float(np.median(times))))
    slow = (spread.modified_z(times) > OUTLIER) & (times > spread.median)
    if slow[0]:
        usual = readable(spread.median, "s")
        more = f"--warmup {options.warmup + 1} leaves it out" if not options.prepare else "see --prepare"
        yield f"the first run took {readable(float(times[0]), 's')}, the others about {usual}: {more}"
    elif slow.any():
        most = readable(float(times.max()), "s")
        yield (
            f"{int(slow.sum())} of {times.size} runs took much longer than the others, up to {most}: "
            "something else was at work; measure again on a quiet machine"
        )


def _uncertain(one: CommandRuns, whole: Measurement, options: BenchOptions) -> Iterator[str]:
    if one.value is None or whole.interruption is not None or options.runs is not None:
        return
    reached = precision_of(one.value)
    if len(one.samples) < FIRST_LOOK or (reached is not None and reached > options.precision):
        known = "" if reached is None else f"the time is known to ±{100 * reached:.2g} %, not to "
        wanted = f"±{100 * options.precision:.2g} %"
        limit = f"{readable(whole.budget, 's')} were over after {plural(len(one.samples), 'run')}"
        if options.max_runs is not None and len(one.samples) >= options.max_runs:
            limit = f"--max-runs {options.max_runs} ended it"
        yield f"{known}{wanted}: {limit}; more time: --budget" if known else f"{limit}; more time: --budget"


# `perun bench`: measure commands in the working directory as it is, and keep what was measured.

Expect = Callable[[float | None], None]


@dataclass(frozen=True)
class BenchOutcome:
    """What was measured.

    :ivar version: the current version; with :ivar uncommitted: changes, whose profiles are pending. Those of
        the version itself are registered.
    :ivar conditions: what makes times less certain at the moment, such as other programs, and whether the
        machine changed its speed.
    :ivar results: one for each command that has a run. :ivar saved: what was written into the job matrix.
    :ivar interruption: the exception that ended it; then nothing is stored.
    """

    version: MinorVersion
    uncommitted: bool
    conditions: tuple[str, ...]
    results: list[BenchResult]
    saved: tuple[SettingChange, ...] = ()
    interruption: BaseException | None = None


def bench(
    repo: Repository,
    options: BenchOptions,
    report: Report = silent,
    expect: Expect = lambda seconds: None,
    rng: random.Random | None = None,
) -> BenchOutcome:
    """Measure the commands in turns, and store a profile of the collector `time` for each.

    They run in the folder of the repository, its files as they are; `execute.pre_run` goes first, as before
    every measurement.

    :param report: gets what is done, runs done and expected in all. :param expect: gets the seconds left.
    :param rng: decides the order of runs.
    :raises UsageError: where a command cannot be run, or `--save` cannot be done; nothing has run then.
    :raises JobFailed: where a command fails; nothing is stored then.
    :raises NotTrusted: if the user has not said that he trusts the repository.
    """
    planned = plan(options)
    jobs = as_known(repo, [one.job for one in planned])
    benchmarks = [one._replace(job=job) for one, job in zip(planned, jobs, strict=True)]
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
    found = _measured(repo, benchmarks, options, _reporting(options, report, expect), rng)
    machine_state |= found.speed.described()
    momentary = (*momentary, *drifted(machine_state))
    series = [one for one in found.series if one.samples]
    results = [of_series(one, notes_on(one, found, options)) for one in series]
    profiles = [_profile(repo, one, options, machine_state, uncommitted) for one in series]
    results = with_ratios(repo, results, series)
    results = [
        with_earlier(repo, version, uncommitted, one, profile)
        for one, profile in zip(results, profiles, strict=True)
    ]
    if found.interruption is not None:
        return BenchOutcome(version, uncommitted, momentary, results, interruption=found.interruption)
    wanted = [registering.SaveRequest(one, version.checksum, not uncommitted) for one in profiles]
    paths = registering.save_together(repo, wanted)
    matrix.write(repo, added)
    stored = [replace(one, profile=path.name) for one, path in zip(results, paths, strict=True)]
    return BenchOutcome(version, uncommitted, momentary, stored, tuple(added))


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
    progress: Callable[[CommandRuns, Sequence[CommandRuns], float], None],
    rng: random.Random | None,
) -> Measurement:
    rng = rng or random.Random()
    with scratch_folder(repo) as scratch:
        environ = pre_run.environment(repo)
        with Runner(repo.working_root, environ, scratch, rng, options.ignore_failure) as runner:
            return measure(benchmarks, runner, options, rng, progress)


def _reporting(
    options: BenchOptions, report: Report, expect: Expect
) -> Callable[[CommandRuns, Sequence[CommandRuns], float], None]:
    """Turns the progress of the runs into a line, and the seconds that are left."""

    def progress(grown: CommandRuns, series: Sequence[CommandRuns], seconds: float) -> None:
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
    one: CommandRuns,
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
