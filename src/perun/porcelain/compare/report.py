"""The answer of a comparison, in the words of `perun check`, whose formats show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from perun.errors import PerunError
from perun.measurement.comparison import info_of
from perun.measurement.verdict import MORE_IS_BETTER, mirrored
from perun.porcelain.check.acknowledging import Acknowledging
from perun.porcelain.check.report import Comparison, MethodResult, VersionReport
from perun.porcelain.compare.decide import Decision, disagreements
from perun.porcelain.compare.options import CompareOptions
from perun.porcelain.compare.plan import Case, Plan
from perun.porcelain.compare.storing import Stored
from perun.porcelain.compare.trial import Trial
from perun.porcelain.repository import Repository
from perun.profile.amounts import factor, readable
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Head
from perun.profile.helpers import ProfileInfo
from perun.wording import plural

METHOD: Final = "hodges_lehmann_ratio"
"""The check that judges stored profiles in the same way."""
NOT_MEASURED: Final = "not measured"


def change_of(decision: Decision) -> DegradationInfo:
    """The verdict on one metric as a check reports it."""
    metric, verdict = decision.metric, decision.verdict
    if metric.larger_is_better:
        reason = f"{verdict.reason}; {MORE_IS_BETTER}"
        verdict = verdict._replace(change=mirrored(verdict.change), reason=reason)
    return info_of(verdict, metric.location, metric.unit)


def measured(
    plan: Plan, case: Case, trial: Trial, stored: Stored | None, about: Mapping[str, Any]
) -> Comparison:
    """What a trial found.

    :param stored: None where nothing was, as the trial was interrupted.
    """
    changes = tuple(change_of(decision) for decision in trial.decisions) or (_nothing(case, trial),)
    return Comparison(
        stored.head if stored else unstored(case, trial.name),
        stored.base if stored else None,
        plan.base.version,
        (MethodResult(METHOD, changes),),
        notes=tuple(_notes(plan, trial, stored)),
        session=about,
    )


def _nothing(case: Case, trial: Trial) -> DegradationInfo:
    """That not one pair was measured."""
    rule = f"{trial.reason}, before one pair was measured"
    if trial.interruption is None:
        rule += "; give it more time with --budget"
    values = (NOT_MEASURED, NOT_MEASURED, "ratio")
    return DegradationInfo(PerformanceChange.Unknown, case.job.cmd, *values, sizes=(0, 0), rule=rule)


def identical(plan: Plan, case: Case, reason: str) -> Comparison:
    """That a configuration needs no measuring, as both sides are the same."""
    return replace(unmeasured(plan, case, reason), same=True)


def unmeasured(plan: Plan, case: Case, reason: str, error: PerunError | None = None) -> Comparison:
    """That a configuration was not measured, and why; `error` where something is wrong."""
    return Comparison(unstored(case, "time"), None, plan.base.version, reason=reason, error=error)


def unstored(case: Case, collector: str) -> ProfileInfo:
    """Stands for a profile that there is not."""
    job = case.job
    return ProfileInfo("", "", Head("", job.cmd, job.args, job.workload, collector), 0)


def report(repo: Repository, plan: Plan, comparisons: list[Comparison]) -> VersionReport:
    """The answer: the head, compared with the base in each configuration, with what is acknowledged."""
    version = plan.head.version
    if plan.head.uncommitted:
        files = len(plan.head.uncommitted)
        changes = f"uncommitted changes to {files} file{'s' * (files != 1)} on top of: {version.subject}"
        version = version._replace(desc=changes)
    return Acknowledging(repo).report(VersionReport(version, tuple(comparisons)))


def about(session_id: str, plan: Plan, trial: Trial, options: CompareOptions) -> dict[str, Any]:
    """How a trial was measured, as JSON data: for the headers of its profiles, and for the answer."""
    return {
        "id": session_id,
        "base": plan.base.version.checksum,
        "head": plan.head.version.checksum,
        "uncommitted": bool(plan.head.uncommitted),
        "pairs": len(trial.pairs),
        "repeated": trial.repeated,
        "builds": options.builds,
        "order": options.order,
        "pinned": trial.pinned,
        "seconds": round(trial.seconds, 3),
        **({"levels": list(trial.decisions[0].levels)} if trial.decisions else {}),
        "noise": [
            {
                "location": one.metric.location,
                "ratio": one.noise.estimate,
                "interval": [one.noise.low, one.noise.high],
            }
            for one in trial.decisions
            if one.noise is not None and one.noise.low > 0 and math.isfinite(one.noise.high)
        ],
    }


def _notes(plan: Plan, trial: Trial, stored: Stored | None) -> Iterator[str]:
    yield f"{plural(len(trial.pairs), 'pair')} in {readable(trial.seconds, 's')}{_how(trial)}"
    for one in trial.decisions:
        if one.noise is not None and one.noise.low > 0 and math.isfinite(one.noise.high):
            noise = one.noise
            yield (
                f"noise of {one.metric.location}: the base to itself "
                f"{factor(noise.estimate, (noise.low, noise.high))}"
            )
    if trial.repeated:
        yield f"{plural(trial.repeated, 'disturbed pair')} measured again, the first as {trial.disturbance}"
    yield from disagreements(trial.decisions)
    if trial.reason and trial.interruption is None and any(one.is_open for one in trial.decisions):
        yield f"{trial.reason}; --budget gives more time, --max-pairs allows more pairs"
    if stored is not None and plan.head.uncommitted:
        yield f"the profile of the uncommitted changes is pending, not registered: {stored.head.source}"


def _how(trial: Trial) -> str:
    return ", each on one core" if trial.pinned else ""
