"""Perun's test of what was found (manual 9.5): measured beside its seed, and judged by the methods of
`check`.

By default both run in turns, several times, and the ratio of their times decides: one run proves nothing,
and two series one after the other measure the machine.
"""

from __future__ import annotations

import os
import random
import shlex
import statistics
import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.core.errors import JobFailed
from perun.core.process.command import outcome
from perun.core.process.execution import TIMEOUT, RunSample
from perun.fuzz.corpus import CorpusMember, change_rate
from perun.fuzz.coverage.api import PLACE
from perun.fuzz.findings import MemberTest
from perun.fuzz.results import Confirmation
from perun.history.check.compare import CheckRule, Comparer, params_of
from perun.history.check.report import DEFAULTS
from perun.measurement.verdict import INCOMPARABLE
from perun.plugin.api import Run, quiet, silent
from perun.profile import session
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.repository import postprocessing
from perun.repository.jobs import Job, PluginConfig, make_unit
from perun.repository.repository import Repository
from perun.running.compare.instruments import TimedRuns, time_profile
from perun.running.fuzz.options import FuzzFolders, FuzzOptions
from perun.running.run import collecting
from perun.running.run.collecting import describe_machine

if TYPE_CHECKING:
    from perun.profile.factory import Profile

PAIRS: Final = 10
"""Pairs of runs: the fewest by which a difference can be told with 99 %."""
_FIRST: Final = 3
"""Pairs after which an input that is not slower in any of them is given up."""
_FEWEST: Final = 5
"""Pairs that do where the time is over, if each run of the one took longer than all of the other: by chance
that happens once in 126 times (10 runs, 5 of each)."""
_CLEARLY: Final = 1.25
"""... and so many times as long at least."""
_NOT_SLOWER: Final = 1.02
_TIME: Final = "time"


class Tester:
    """Measures what was found; a function of a member, its seed, and the seconds there are for it.

    :raises PerunError: where the collector, a postprocessor or a method is unknown or gets wrong parameters.
    """

    def __init__(
        self,
        repo: Repository,
        options: FuzzOptions,
        place: FuzzFolders,
        rng: random.Random,
        *,
        thorough: bool = False,
    ) -> None:
        self._repo = repo
        self._options = options
        self._place = place
        self._rng = rng
        self._thorough = thorough
        self._collector = make_unit(
            repo, "collect", options.collector, options.collector_params, "--collector-params"
        )
        self._postprocessors = [
            make_unit(repo, "postprocess", name, params, "--postprocessor-params")
            for name, params in options.postprocessors
        ]
        self._rules = [_rule(repo, name) for name in options.checks]
        self._comparer = Comparer(repo, DEFAULTS)
        self._machine = describe_machine(repo)
        self._baselines: dict[str, Profile] = {}
        self._is_timed = self._collector.name == _TIME and not options.collector_params

    def __call__(self, member: CorpusMember, seed: CorpusMember, seconds: float) -> MemberTest:
        """Measure the member beside its seed."""
        folder = self._place.scratch / "tested"
        folder.mkdir(exist_ok=True)
        if self._is_timed:
            return self._by_time(member, seed, seconds, folder)
        return self._by_profiles(member, seed, folder)

    def _by_time(self, member: CorpusMember, seed: CorpusMember, seconds: float, folder: Path) -> MemberTest:
        """Run both in turns."""
        deadline = time.monotonic() + seconds
        slow: list[RunSample] = []
        fast: list[RunSample] = []
        with ExitStack() as stack:
            runs = {
                name: stack.enter_context(self._timed(self._job(one, folder / name), folder / name))
                for name, one in (("seed", seed), ("found", member))
            }
            while len(slow) < PAIRS:
                order = [("seed", fast), ("found", slow)]
                self._rng.shuffle(order)
                for name, samples in order:
                    sample, _ = runs[name].record()
                    if name == "found" and (failure := _failure(sample, self._options.hang)):
                        return failure
                    samples.append(sample)
                if not self._thorough and len(slow) == _FIRST and not _is_ever_slower(fast, slow):
                    return MemberTest("ok", _unchanged(fast, slow))
                if time.monotonic() >= deadline:
                    break
        if len(slow) >= PAIRS:
            return MemberTest("ok", self._judged_times(member, seed, fast, slow))
        return MemberTest("ok", _judged_early(fast, slow))

    def _timed(self, job: Job, scratch: Path) -> TimedRuns:
        run = Run(job.cmd, job.args, job.workload, self._place.measured, self._place.environ)
        hang = self._options.hang
        return TimedRuns(run, scratch, self._rng, hang, end_group=True, while_it_can_run=True)

    def _judged_times(
        self, member: CorpusMember, seed: CorpusMember, fast: Sequence[RunSample], slow: Sequence[RunSample]
    ) -> Confirmation:
        """What the methods say of the profiles that the time collector would have made."""
        number = uuid.uuid4().hex
        profiles = []
        sides: tuple[tuple[session.Side, CorpusMember, Sequence[RunSample]], ...] = (
            ("base", seed, fast),
            ("head", member, slow),
        )
        for side, _, samples in sides:
            job = Job(self._options.cmd, self._options.args, "", self._collector)
            profile = time_profile(self._repo, job, samples, self._machine, warmup=0)
            session.mark(profile, session.Session(number, side, runs_are_rounds=True))
            profiles.append(self._processed(profile))
        found = self._judged(*profiles)
        medians = [statistics.median(one.real for one in samples) for samples in (fast, slow)]
        return replace(
            found,
            pairs=len(slow),
            baseline=medians[0],
            target=medians[1],
            ratio=found.ratio or medians[1] / max(medians[0], 1e-9),
            metric=found.metric or "real",
        )

    def _by_profiles(self, member: CorpusMember, seed: CorpusMember, folder: Path) -> MemberTest:
        """Collect a profile of each; that of a seed once."""
        try:
            if seed.name not in self._baselines:
                self._baselines[seed.name] = self._collected(seed, folder / "seed")
            target = self._collected(member, folder / "found")
        except JobFailed as problem:
            # A program may fail on a mutated input, which is nothing that can be compared.
            return MemberTest("ok", Confirmation("Unknown", 0.0, "", reason=problem.message))
        return MemberTest("ok", self._judged(self._baselines[seed.name], target))

    def _collected(self, member: CorpusMember, file: Path) -> Profile:
        place = self._place
        job = self._job(member, file)
        profile = collecting.collect(self._repo, job, place.version, place.measured, silent, quiet)
        # Profiles of another workload would not be compared.
        profile["header"] = {**profile["header"], "workload": ""}
        return self._processed(profile)

    def _processed(self, profile: Profile) -> Profile:
        for unit in self._postprocessors:
            profile = postprocessing.process(self._repo, profile, unit.name, unit.params)
        return profile

    def _judged(self, baseline: Profile, target: Profile) -> Confirmation:
        found = self._comparer.by(self._rules, baseline, target)
        changes = [change for result in found.results for change in result.changes]
        reasons = [result.reason for result in found.results if result.reason]
        reason = "; ".join(filter(None, (found.reason, *reasons))) or "there is nothing to compare"
        methods = ", ".join(result.method for result in found.results)
        if not changes:
            return Confirmation("Unknown", 0.0, methods, reason=reason)
        worst = min(changes, key=_badness)
        low, high = map(_finite, worst.interval) if worst.interval else (None, None)
        return Confirmation(
            worst.result.name,
            change_rate([change.result for change in changes]),
            methods,
            worst.location,
            _finite(worst.rate_degradation) if worst.type == "ratio" else None,
            low,
            high,
            reason=worst.rule or "; ".join(reasons),
        )

    def _job(self, member: CorpusMember, folder: Path) -> Job:
        """The command that reads the member, which is written to a file in `folder`."""
        folder.mkdir(exist_ok=True)
        options = self._options
        file = folder / f"input{Path(member.seed).suffix}"
        file.write_bytes(member.data)
        text = str(file)
        if options.input == "argument":
            text = os.fsdecode(member.data.partition(b"\0")[0])
        quoted = shlex.quote(text)
        unit = PluginConfig(self._collector.name, self._collector.params)
        if options.input == "stdin":
            return Job(options.cmd, options.args, f"< {quoted}", unit)
        words = f"{options.cmd} {options.args}"
        if PLACE in words:
            cmd, args = (part.replace(PLACE, quoted) for part in (options.cmd, options.args))
            return Job(cmd, args, "", unit)
        return Job(options.cmd, options.args, quoted, unit)


def _rule(repo: Repository, name: str) -> CheckRule:
    check = repo.registry.get("check", name)
    return CheckRule(check, params_of(repo, check), {})


def _failure(sample: RunSample, hang: float) -> MemberTest | None:
    if sample.early == TIMEOUT:
        return MemberTest("hang", ending=f"did not end within {hang:g} s")
    if os.WIFSIGNALED(sample.status):
        return MemberTest("fault", ending=outcome(sample.status))
    return None


def _is_ever_slower(fast: Sequence[RunSample], slow: Sequence[RunSample]) -> bool:
    return any(two.real > _NOT_SLOWER * one.real for one, two in zip(fast, slow, strict=True))


def _unchanged(fast: Sequence[RunSample], slow: Sequence[RunSample]) -> Confirmation:
    return _of_medians("NoChange", 0.0, fast, slow, f"not slower in any of {len(slow)} pairs")


def _judged_early(fast: Sequence[RunSample], slow: Sequence[RunSample]) -> Confirmation | None:
    """What so few pairs say: a degradation where there is no doubt; None where nothing."""
    longest = max(one.real for one in fast)
    if len(slow) < _FEWEST or min(one.real for one in slow) <= _CLEARLY * longest:
        return None
    return _of_medians(
        PerformanceChange.Degradation.name, 1.0, fast, slow,
        f"each of {len(slow)} runs took longer than all of the seed; the time was over for more",
    )  # fmt: skip


def _of_medians(
    change: str, rate: float, fast: Sequence[RunSample], slow: Sequence[RunSample], reason: str
) -> Confirmation:
    before, after = (statistics.median(one.real for one in samples) for samples in (fast, slow))
    ratio = after / max(before, 1e-9)
    return Confirmation(
        change, rate, "", "real", ratio, pairs=len(slow), baseline=before, target=after, reason=reason
    )


def _badness(change: DegradationInfo) -> tuple[int, float]:
    """Less for what is worse; what cannot be compared is no news."""
    return 1 if change.result in INCOMPARABLE else change.result.value, -change.rate_degradation


def _finite(value: float) -> float | None:
    return float(value) if abs(value) < float("inf") else None
