"""`perun doctor`: whether Perun can work well here, and what to do if it cannot."""

from __future__ import annotations

import itertools
import math
import random
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun import __version__
from perun.core import conditions, machine
from perun.core.conditions import Condition
from perun.core.errors import PerunError, UsageError
from perun.core.process import programs
from perun.core.process.command import failed
from perun.core.process.execution import RunSample
from perun.core.wording import plural
from perun.history.baseline import MOST_READ, KnownSummaries
from perun.measurement.comparable import speed_of, usual
from perun.measurement.difference import DEFAULTS
from perun.models.two_samples import sequential
from perun.models.two_samples.ratio import Ratio, of_pairs
from perun.plugin.api import Readiness, Report, Run, silent
from perun.plugin.loading import FAMILIES
from perun.plugin.registry import Registry
from perun.profile.amounts import readable
from perun.repository import hooks, jobs, walking
from perun.repository.repository import Repository
from perun.running.compare.decide import ARMS, FIRST_LOOK, InterimPlan, usable_cores
from perun.running.compare.instruments import TimedRuns
from perun.running.compare.plan import MAX_PAIRS, SECONDS
from perun.running.run import background, pre_run
from perun.running.run import matrix as batch


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `ok`, or what is wrong and what to do about it.

    `about` groups findings: `project` or the family of a plugin.
    """

    about: str
    name: str
    ok: bool
    message: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All that was found. `project` is empty outside of a repository; `speed` is None where it is unknown."""

    versions: Mapping[str, str]
    machine: str
    speed: Finding | None
    conditions: tuple[Condition, ...]
    project: tuple[Finding, ...]
    collectors: tuple[Finding, ...]
    plugins: tuple[Finding, ...]


def diagnose(
    repo: Repository | None,
    registry: Registry,
    environ: Mapping[str, str],
    trouble: PerunError | None = None,
) -> Diagnosis:
    """Look at everything; nothing is measured but the speed of the machine.

    :param repo: the repository, None outside of any, and if it cannot be opened because of `trouble`.
    """
    project = () if repo is None else tuple(_project(repo))
    if trouble is not None:
        project = (Finding("project", "repository", False, trouble.message, trouble.hint),)
    return Diagnosis(
        _versions(environ),
        machine.class_of(machine.describe()),
        _speed(repo),
        tuple(conditions.observe()),
        project,
        tuple(_collectors(registry, environ)),
        tuple(_plugins(registry, environ)),
    )


def _versions(environ: Mapping[str, str]) -> dict[str, str]:
    python = ".".join(map(str, sys.version_info[:3]))
    found = {"perun": __version__, "python": f"{python} ({sys.executable})"}
    try:
        git = programs.run(["git", "--version"], environ=environ, timeout=10)
        found["git"] = git.stdout.decode("utf-8", "replace").strip().removeprefix("git version ")
    except (OSError, programs.TimeoutExpired):
        found["git"] = ""
    return found


def _speed(repo: Repository | None) -> Finding | None:
    """How fast the machine is now, beside the newest profiles of its class whose facts are known."""
    found = programs.fixed_loop()
    if found is None:
        return None
    message = f"a loop of fixed work takes {readable(found.processor / 1e9, 's')} of processor time"
    speeds = () if repo is None else tuple(_stored_speeds(repo))
    middle = usual(speeds, found.version)
    if middle is None:
        return Finding("machine", "speed", True, message)
    of = f"the {plural(len(speeds), 'newest profile')}" if len(speeds) > 1 else "the newest profile"
    message += f", and took {readable(middle / 1e9, 's')} for {of} of such a machine"
    hint = "times differ from stored ones by as much: measure both sides again with perun compare"
    unlike = abs(math.log(found.processor / middle)) > math.log1p(_UNLIKE)
    return Finding("machine", "speed", not unlike, message, hint if unlike else "")


def _stored_speeds(repo: Repository) -> Iterator[str]:
    """Those of profiles of this class of machines, of the newest versions that have profiles."""
    here = machine.class_of(machine.describe())
    indexes = repo.store.indexes
    try:
        head = repo.version(None)
        nearest = (one.checksum for one in walking.ancestors(repo, head, MOST_READ))
        versions = (one for one in itertools.chain([head], nearest) if indexes.has(one))
        for checksum in itertools.islice(versions, _VERSIONS):
            infos = [entry.info() for entry in indexes.read(checksum)]
            for fact in KnownSummaries(repo, 0).of(infos).values():
                if fact.headline and fact.machine == here and (speed := speed_of(fact.headline.conditions)):
                    yield speed
    except PerunError:
        return  # whatever is wrong is found elsewhere


def _project(repo: Repository) -> Iterator[Finding]:
    yield Finding("project", "repository", True, str(repo.root))
    yield _matrix(repo)
    yield _preparation(repo)
    yield _hooks(repo)
    interrupted = batch.interrupted(repo)
    if interrupted:
        hint = f"run the rest with: perun run matrix --resume  (to discard it: rm {interrupted})"
        yield Finding("project", "batch", False, "a batch was interrupted", hint)


def _matrix(repo: Repository) -> Finding:
    try:
        count = len(jobs.matrix(repo._replace(asks=None)))  # to look is no reason to be asked
    except PerunError as problem:
        return Finding("project", "job matrix", False, problem.message, problem.hint)
    return Finding("project", "job matrix", True, f"{count} job{'s' * (count != 1)}")


def _preparation(repo: Repository) -> Finding:
    try:
        commands = pre_run.commands(repo)
    except PerunError as problem:
        return Finding("project", "execute.pre_run", False, problem.message, problem.hint)
    if commands:
        return Finding("project", "execute.pre_run", True, "; ".join(commands))
    from perun.core.config.templates import recognise

    found = recognise(repo.root)
    if found is None:
        return Finding("project", "execute.pre_run", True, "not set; nothing is built before measuring")
    message = "not set: untracked files, such as builds, are missing when Perun measures other versions"
    return Finding("project", "execute.pre_run", False, message, f"set it with: {found.command}")


def _hooks(repo: Repository) -> Finding:
    try:
        installed = [hook.name for hook in hooks.status(repo) if hook.installed]
    except PerunError as problem:
        return Finding("project", "hooks", True, problem.message)
    waiting = background.waiting(repo)
    message = ", ".join(installed) or "none installed: perun hooks install"
    if waiting and not background.state(repo).working:
        hint = "Perun measures them after the next commit"
        return Finding("project", "hooks", False, f"{message}; {len(waiting)} commits are not measured", hint)
    return Finding("project", "hooks", True, message)


def _collectors(registry: Registry, environ: Mapping[str, str]) -> Iterator[Finding]:
    for name in registry.names("collect"):
        yield from _readiness(registry, "collect", name, environ)


def _plugins(registry: Registry, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What of the plugins of other families cannot be used, and those that others hide."""
    for family in FAMILIES:
        for name in registry.names(family) if family != "collect" else ():
            yield from (one for one in _readiness(registry, family, name, environ) if not one.ok)
        for message in registry.shadowed(family):
            yield Finding(family, "hidden", False, message, "give it another name")


def _readiness(registry: Registry, family: str, name: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What a plugin says of itself, or why it cannot be loaded."""
    try:
        plugin = registry.get(family, name)
        ask = getattr(plugin, "readiness", None)
        found = [Readiness(*one) for one in ask(environ)] if ask is not None else [Readiness()]
    except PerunError as problem:
        yield Finding(family, name, False, problem.message, problem.hint)
        return
    for one in found:
        part = f"{name} ({one.part})" if one.part else name
        yield Finding(family, part, not one.missing, one.missing, one.hint)


_UNLIKE: Final = 0.1
"""By how much more or less than usual the loop takes on a machine that is worth a look, as a share."""
_VERSIONS: Final = 10
"""Versions whose profiles say what is usual."""

# `perun doctor noise`: how much the times of one program vary on this machine, and what that hides.
#
# The same program runs in pairs, in turns and in random order, as `perun compare` does it. Nothing changed
# between the two of a pair, so whatever differs is noise.

Floats = NDArray[np.float64]

BUDGET: Final = 15.0
"""Seconds of measuring."""
LENGTH: Final = 0.05
"""Seconds that one run of the built-in program takes."""
SHORTEST: Final = 0.001
MAX_RUNS: Final = 500
"""Pairs at most: the noise does not get clearer."""
EFFECTS: Final = (0.01, 0.02, 0.05, 0.10, 0.25)
_LOOP: Final = "for _ in range({}): pass"
_CALIBRATION: Final = 1_000_000
_RUN_LIMIT: Final = 60.0


class DetectableEffect(NamedTuple):
    """A change of so much, e.g. 0.05, and how many pairs show it four times in five; None where not even the
    most pairs of `perun compare` do. `seconds`: how long these take it."""

    share: float
    pairs: int | None
    seconds: float | None


@dataclass(frozen=True)
class ClockNoise:
    """The noise of one clock.

    :ivar median: seconds of one run. :ivar scatter: standard deviation of runs, as a share, by the median of
        their deviations. :ivar paired: standard deviation of the ratio within pairs, as a share.
    :ivar ratio: of the program to itself, which should be 1. :ivar halves: the median of the second half of
        all runs by that of the first: what measuring one version after the other would have shown.
    :ivar smallest: the effect that is seen within the budget that `perun compare` has for a command.
    """

    name: str
    median: float
    scatter: float
    paired: float
    ratio: Ratio
    halves: float
    effects: tuple[DetectableEffect, ...]
    smallest: float


@dataclass(frozen=True)
class NoiseReport:
    """What was measured.

    :ivar command: the built-in program. :ivar seconds: how long the measuring took.
    :ivar disturbed: pairs during which something else was in the way, see :mod:`perun.core.conditions`.
    """

    machine: str
    conditions: tuple[Condition, ...]
    command: str
    pairs: int
    disturbed: int
    pinned: bool
    seconds: float
    clocks: tuple[ClockNoise, ...]


def measure(
    environ: Mapping[str, str],
    budget: float = BUDGET,
    length: float = LENGTH,
    report: Report = silent,
    rng: random.Random | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> NoiseReport:
    """Measure for about `budget` seconds, but at least the pairs of a first look.

    :param length: seconds that one run is to take. :param report: gets the pairs so far and at most.
    :raises UsageError: where `length` is too short for a run.
    """
    if not length >= SHORTEST:
        raise UsageError(f"--length: a run takes {SHORTEST:g} s at least, not {length:g}")
    found = tuple(conditions.observe())  # the load it finds, not the one it makes
    with tempfile.TemporaryDirectory(prefix="perun-noise-") as folder:
        runner = _Runner(Path(folder), environ, rng or random.Random())
        start = clock()
        report("calibrating", 0, 0)
        runner.calibrate(length)
        pairs, disturbed = _pairs(runner, start + budget, report, clock)
        seconds = clock() - start
    levels = _levels()
    clocks = tuple(
        _clock(name, np.array([[of(sample) for sample in pair] for pair in pairs]), pairs, levels)
        for name, of in (("wall", _wall), ("cpu", _cpu))
    )
    return NoiseReport(
        machine.class_of(machine.describe()),
        found,
        runner.command,
        len(pairs),
        disturbed,
        bool(runner.cores),
        seconds,
        clocks,
    )


class _Runner:
    """Runs the built-in program, in environments of random size."""

    def __init__(self, scratch: Path, environ: Mapping[str, str], rng: random.Random) -> None:
        self.command = ""
        self.cores = usable_cores(True)
        self.rng = rng
        self._scratch = scratch
        self._environ = environ

    def calibrate(self, length: float) -> None:
        """Choose the rounds of the loop such that a run takes `length` seconds, or as little as it can.

        The time of the processor decides: other programs are no part of it.
        """
        empty, full = (
            statistics.median(_cpu(self._once(_command(rounds), None)) for _ in range(3))
            for rounds in (0, _CALIBRATION)
        )
        per_round = max(full - empty, 1e-6) / _CALIBRATION
        self.command = _command(max(0, round((length - empty) / per_round)))

    def pair(self) -> tuple[RunSample, RunSample]:
        """Two runs on the same core. Which of them counts as the first one is random."""
        core = self.rng.choice(self.cores) if self.cores else None
        first, second = (self._once(self.command, core) for _ in range(2))
        return (first, second) if self.rng.random() < 0.5 else (second, first)

    def _once(self, command: str, core: int | None) -> RunSample:
        run = Run(command, cwd=self._scratch, environ=dict(self._environ))
        with TimedRuns(run, self._scratch, self.rng, _RUN_LIMIT, core) as runs:
            sample, errors = runs.record()
        if sample.status or sample.early:
            raise failed(run, sample.status, errors, "measure when the machine has less to do")
        return sample


def _command(rounds: int) -> str:
    return shlex.join([sys.executable or "python3", "-I", "-S", "-c", _LOOP.format(rounds)])


def _pairs(
    runner: _Runner, deadline: float, report: Report, clock: Callable[[], float]
) -> tuple[list[tuple[RunSample, RunSample]], int]:
    """Pairs until the deadline, and how many of them were disturbed."""
    pairs: list[tuple[RunSample, RunSample]] = []
    disturbed = 0
    watch = conditions.ConditionWatch()
    start = clock()
    while len(pairs) < FIRST_LOOK or (len(pairs) < MAX_RUNS and clock() < deadline):
        before = conditions.now()
        pairs.append(runner.pair())
        disturbed += bool(watch.disturbance(before, conditions.now()))
        most = min(MAX_RUNS, int(len(pairs) * (deadline - start) / max(clock() - start, 1e-6)))
        report("pairs of the same program", len(pairs), max(most, len(pairs)))
    return pairs, disturbed


def _wall(sample: RunSample) -> float:
    return sample.real


def _cpu(sample: RunSample) -> float:
    return sample.user + sample.system


def _levels() -> dict[int, float]:
    """The level of each look of `perun compare`, by its number of pairs."""
    looks, alpha = InterimPlan(MAX_PAIRS), 1 - DEFAULTS.confidence
    return {size: looks.level(alpha, size, ends=False) for size in looks.sizes}


def _clock(
    name: str, values: Floats, pairs: list[tuple[RunSample, RunSample]], levels: Mapping[int, float]
) -> ClockNoise:
    """:param values: seconds, shape (pairs, 2)."""
    values = np.maximum(values, 1e-6)  # a clock of ticks may show nothing
    differences = np.diff(np.log(values), axis=1).ravel()
    paired = sequential.deviation(differences)
    median = float(np.median(values))
    run_seconds = statistics.fmean(sample.real for pair in pairs for sample in pair)
    per_pair = len(ARMS) * run_seconds
    half = len(values) // 2
    affordable = max((size for size in levels if size * per_pair <= SECONDS), default=FIRST_LOOK)
    return ClockNoise(
        name,
        median,
        float(1.4826 * np.median(np.abs(values - median)) / median),
        paired,
        of_pairs(values[:, 0], values[:, 1], DEFAULTS.confidence),
        float(np.median(values[half:]) / np.median(values[:half])),
        tuple(_effect(share, paired, per_pair, levels) for share in EFFECTS),
        sequential.smallest(paired, affordable, levels[affordable]),
    )


def _effect(share: float, paired: float, per_pair: float, levels: Mapping[int, float]) -> DetectableEffect:
    pairs = sequential.pairs_needed(paired, share, levels)
    return DetectableEffect(share, pairs, None if pairs is None else pairs * per_pair)
