"""`perun check`: find changes of performance between versions (manual 3.2.13-3.2.16, chapter 8).

Each verb plans pairs of profiles (`pairing`), compares them (`parallel`), and yields reports (`report`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from perun.errors import DamagedStore, ProfileError
from perun.plugin.api import MinorVersion, Report, quiet, silent
from perun.porcelain import lookup
from perun.porcelain.check.acknowledging import Acknowledging
from perun.porcelain.check.compare import Comparer, Outcome, Pair
from perun.porcelain.check.history import History
from perun.porcelain.check.pairing import Pairing, VersionPlan
from perun.porcelain.check.parallel import compare
from perun.porcelain.check.report import (
    DEFAULTS,
    Comparison,
    MethodResult,
    Options,
    Verdict,
    VersionReport,
    differing,
    exit_code,
    is_degradation,
    without_ignored,
)
from perun.porcelain.check.storing import store_changes
from perun.porcelain.repository import Repository

__all__ = [
    "Comparison",
    "MethodResult",
    "Options",
    "Verdict",
    "VersionReport",
    "check_all",
    "check_diff",
    "check_head",
    "check_profiles",
    "exit_code",
    "is_degradation",
]


def check_head(
    repo: Repository,
    minor: str | None,
    options: Options = DEFAULTS,
    report: Report = silent,
    baseline: str | None = None,
    note: Callable[[str], None] = quiet,
) -> VersionReport:
    """Compare the profiles of `minor` (HEAD if None) with those of its nearest ancestors that have any.

    :param baseline: compare with the profiles of this revision instead, or of the nearest of its ancestors
        that has one of the same configuration; nothing is stored then.
    :param note: told before what is missing is collected.
    """
    head = repo.version(minor)
    pairing = Pairing(repo, options, report, note)
    if baseline is not None:
        return _check_against(pairing, head, repo.version(baseline), options)
    history = History(repo, head)
    version = history.get(head)
    assert version is not None
    parents = map(history.get, version.parents)
    pairing.collect_missing([version, *filter(None, parents)])
    plan = pairing.plan(version, partial(history.ancestors, head), others=version.parents, leave=True)
    return next(_reports(repo, options, [plan], stores=True))


def _check_against(pairing: Pairing, head: str, start: str, options: Options) -> VersionReport:
    repo = pairing.repo
    version, first = repo.vcs.get_minor_version_info(head), repo.vcs.get_minor_version_info(start)
    pairing.collect_missing([version, *([first] if start != head else [])])
    history = History(repo, start)

    def candidates() -> Iterator[MinorVersion]:
        return (one for one in chain((first,), history.ancestors(start)) if one.checksum != head)

    reason = f"neither {start[:10]} nor an ancestor of it has a profile of the same configuration"
    plan = pairing.plan(version, candidates, others=(start,), without_baseline=reason)
    return next(_reports(repo, options, [plan], stores=False))


def check_diff(
    repo: Repository,
    base: str,
    target: str,
    options: Options = DEFAULTS,
    report: Report = silent,
    note: Callable[[str], None] = quiet,
) -> VersionReport:
    """Compare the profiles of any two versions, paired by their configurations; nothing is stored.

    Several profiles of a version with one configuration are pooled.
    """
    pairing = Pairing(repo, options, report, note)
    old, new = (repo.vcs.get_minor_version_info(repo.version(one)) for one in (base, target))
    pairing.collect_missing([new, *([old] if old.checksum != new.checksum else [])])
    plan = pairing.between(old, new)
    used = {step.baseline.configuration for step in plan.steps if isinstance(step, Pair)}
    try:
        unpaired = [one for one in pairing.baselines.profiles(old.checksum) if one.configuration not in used]
    except DamagedStore as problem:
        unpaired = []
        plan.errors.append(problem)
    plan.unpaired = tuple(unpaired)
    return next(_reports(repo, options, [plan], stores=False))


def check_all(
    repo: Repository,
    minor: str | None,
    options: Options = DEFAULTS,
    report: Report = silent,
    note: Callable[[str], None] = quiet,
) -> Iterator[VersionReport]:
    """Every version from `minor` (HEAD if None) down to the root, newest first, as a stream."""
    head = repo.version(minor)
    pairing = Pairing(repo, options, report, note)
    if pairing.collects:
        pairing.collect_missing(list(History(repo, head, ordered=True)))
    history = History(repo, head, ordered=True, among=pairing.baselines.with_profiles)

    def plans() -> Iterator[VersionPlan]:
        for version in history:
            yield pairing.plan(version, partial(history.ancestors, version.checksum), leave=True)

    return _reports(repo, options, plans(), stores=True)


def check_profiles(
    repo: Repository,
    baseline: str,
    target: str,
    minor: str | None,
    options: Options = DEFAULTS,
    confirm: lookup.Confirm | None = None,
) -> Comparison:
    """Compare two profiles, wherever they are (manual 3.2.16). Nothing is stored: no version has them.

    :raises ProfileError: if one of them is damaged.
    """
    found = [lookup.find(repo, spec, minor, confirm) for spec in (baseline, target)]
    old, new = (one.info for one in found)
    difference = "" if options.force else differing(old, new)
    if difference:
        reason = f"the configurations differ in {difference}; compare nevertheless with --force"
        return Comparison(new, old, reason=reason)
    loaded = [lookup.load(repo, one) for one in found]
    outcome = Comparer(repo, options).loaded(new, *loaded)
    return without_ignored(outcome.of(Pair(new, old)), options.ignore)


def _reports(
    repo: Repository, options: Options, plans: Iterable[VersionPlan], *, stores: bool
) -> Iterator[VersionReport]:
    """Compare the pairs of the plans.

    :param stores: store the changes of each version before its report is yielded.
    """
    acknowledging = Acknowledging(repo)
    outcomes: list[Outcome] = []
    for item in compare(repo, options, _items(plans)):
        if isinstance(item, Outcome):
            outcomes.append(item)
            continue
        yield acknowledging.report(_finish(repo, options, item, iter(outcomes), stores=stores))
        outcomes = []


def _items(plans: Iterable[VersionPlan]) -> Iterator[Pair | VersionPlan]:
    """The pairs of each plan, then the plan."""
    for plan in plans:
        yield from (step for step in plan.steps if isinstance(step, Pair))
        yield plan


def _finish(
    repo: Repository, options: Options, plan: VersionPlan, outcomes: Iterator[Outcome], *, stores: bool
) -> VersionReport:
    comparisons = [next(outcomes).of(step) if isinstance(step, Pair) else step for step in plan.steps]
    if stores:
        try:
            store_changes(repo, plan.version, comparisons)
        except ProfileError as problem:
            plan.errors.append(problem)
    shown = tuple(without_ignored(comparison, options.ignore) for comparison in comparisons)
    return VersionReport(plan.version, shown, plan.reason, plan.failure, tuple(plan.errors), plan.unpaired)
