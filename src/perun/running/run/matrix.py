"""`perun run matrix`: the job matrix on many versions, also after an interruption (manual 3.2.12, 7.3).

A batch is planned as a whole before anything runs. A journal keeps what it has done, so that `--resume` does
the rest after any interruption: each profile that an undisturbed batch makes is stored exactly once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from perun.core.config.layers import item_place
from perun.core.errors import ConfigError, DamagedStore, PerunError, UsageError
from perun.plugin.api import MinorVersion, Report, silent
from perun.repository import registering, walking
from perun.repository.copies import IN_A_COPY, Placement
from perun.repository.jobs import PARTS, EmptyMatrix, Job, matrix, texts
from perun.repository.marks import marked
from perun.repository.repository import BATCHES, PERUN_FOLDER, Repository
from perun.running.run import journal as journals
from perun.running.run import pre_run, schedule
from perun.running.run.benchmarks import EACH, Benchmarks, SuiteVersions
from perun.running.run.collecting import ProfileNaming
from perun.running.run.events import Event, RunTally
from perun.running.run.execute import run_jobs
from perun.running.run.finding import Search
from perun.running.run.journal import BatchJournal
from perun.running.run.rounds import Rounds
from perun.running.run.schedule import NO_SHARES, Share, Shares, Task, VersionSlot


@dataclass(frozen=True)
class BatchOptions:
    """The options of the user.

    `since`, `every`: ancestors of the versions, all that are newer than `since`, one of `every`. `rounds`:
    how often the whole of it is run; None to spread the runs of each job over several rounds, and to go on
    for `budget` seconds a version, None for those of the configuration, where neighbours are not settled.
    `missing`: only what no profile is stored of. `alone`: a single version without the one before it.
    `share`: measure versions once that have the same program and input. `suite`, `harness`, `benchmarks`:
    the benchmarks of the project in place of commands, those of one harness, those of shell patterns.
    """

    revisions: tuple[str, ...] = ()
    crawl_parents: bool = False
    since: str | None = None
    every: int = 1
    rounds: int | None = None
    budget: float | None = None
    missing: bool = False
    alone: bool = False
    placement: Placement = IN_A_COPY
    template: str | None = None
    seed: int | None = None
    share: bool = True
    suite: bool = False
    harness: str = ""
    benchmarks: tuple[str, ...] = ()

    @property
    def only_suites(self) -> bool:
        """Whether benchmarks are measured in place of commands."""
        return bool(self.suite or self.harness or self.benchmarks)


SuitesOf = Callable[[Repository, BatchOptions], SuiteVersions | None]
"""Gives the suites that are measured; None where there are none."""


@dataclass(frozen=True)
class BatchPlan:
    """A batch before it runs, completely checked.

    `slots` are to be run; those of a resumed batch are what is left of the `whole`. `session` is the id of
    the session that all of it is. `spread`: the runs of each job are spread over rounds, which go on for
    `budget` seconds a version. `versions` are all of them, as they were chosen. `beside`: the one that was
    added, as it is measured beside the chosen one. `shares`: what versions share; None where that is to be
    looked for. `suites`: of which the benchmarks are measured, once it is known which each version has, in
    `suite_rounds` rounds at least, with `suite_budget` seconds for each if that is more than `budget`;
    `missing`: only those without a profile.
    """

    jobs: tuple[Job, ...]
    slots: tuple[VersionSlot, ...]
    placement: Placement
    template: str | None
    register: bool
    seed: int | None = None
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    spread: bool = False
    budget: float = 0.0
    beside: MinorVersion | None = None
    versions: tuple[MinorVersion, ...] = ()
    whole: tuple[VersionSlot, ...] = ()
    shares: Shares | None = field(default_factory=lambda: NO_SHARES)
    suites: SuiteVersions | None = None
    suite_rounds: int = schedule.ROUNDS
    suite_budget: float = 0.0
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run."""
        return not self.total and self.suites is None

    @property
    def total(self) -> int:
        """The number of tasks that are known."""
        return schedule.total(self.slots)


def no_suites(repo: Repository, wanted: BatchOptions) -> SuiteVersions | None:
    """Commands alone."""
    return None


def plan(
    repo: Repository, wanted: BatchOptions, *, rounds: bool = True, suites_of: SuitesOf = no_suites
) -> BatchPlan:
    """Plan a batch; nothing is run or written, but the workloads that generators make.

    :param rounds: whether the runs of jobs may be spread over rounds, as they can where one machine measures.
    :param suites_of: gives the suites whose benchmarks are measured, too.
    :raises PerunError: if anything is wrong: a part of the matrix, a version, the template.
    """
    if wanted.budget is not None and (wanted.rounds is not None or not rounds):
        other = "--on, where several machines measure" if wanted.rounds is None else "--rounds"
        raise UsageError(f"--budget does not go with {other}", "leave one of them out")
    suites = suites_of(repo, wanted)
    if suites is not None and not rounds:
        raise UsageError(
            "--on does not go with benchmarks of suites, which are measured in rounds of one machine",
            "leave it out, or remove `harnesses` from .perun/local.yml to measure the commands alone",
        )
    jobs = _checked_jobs(repo, wanted, suites)
    if wanted.since is None and wanted.every == 1:
        chosen = schedule.choose(repo, wanted.revisions, wanted.crawl_parents)
    else:
        chosen = schedule.choose_ancestors(repo, wanted.revisions, wanted.since, wanted.every)
    if not chosen:
        raise UsageError(f"there is no version after {wanted.since}", "name an older one with --since")
    spread = rounds and wanted.rounds is None
    beside = None
    if spread and len(chosen) == 1 and not (wanted.alone or wanted.missing or wanted.placement.in_place):
        commands = frozenset() if suites is None else suites.commands
        beside = schedule.measured_before(repo, chosen[0], jobs, commands)
        chosen += [] if beside is None else [beside]
    return replace(plan_of(repo, wanted, jobs, chosen, rounds=rounds, suites=suites), beside=beside)


def plan_of(
    repo: Repository,
    wanted: BatchOptions,
    jobs: Sequence[Job],
    chosen: Sequence[MinorVersion],
    *,
    rounds: bool,
    suites: SuiteVersions | None = None,
) -> BatchPlan:
    """The plan of a batch over these versions; parameters as of :func:`plan`."""
    most = max(map(schedule.rounds_of, jobs), default=schedule.ROUNDS)
    spread = rounds and wanted.rounds is None and len(chosen) > 1 and most > 1
    slots = schedule.plan_slots(jobs, chosen, schedule.rounds_of if spread else wanted.rounds or 1)
    slots = slots if jobs else []
    if wanted.missing:
        slots = schedule.missing(repo, slots, whole=spread)
    budget = float(repo.config.get("execute.budget")) if wanted.budget is None else wanted.budget
    placement = wanted.placement
    if spread and placement == IN_A_COPY:  # where one version alone lay elsewhere, it would differ by that
        placement = replace(placement, in_a_copy=True)
    return BatchPlan(
        tuple(jobs), tuple(slots), placement, wanted.template, repo.registers_after_run, wanted.seed,
        spread=spread, budget=max(budget, 0.0) if spread else 0.0, versions=tuple(chosen),
        shares=None if spread and jobs and wanted.share and not wanted.placement.in_place else NO_SHARES,
        suites=suites, suite_rounds=wanted.rounds or schedule.ROUNDS,
        suite_budget=EACH if wanted.budget is None else 0.0, missing=wanted.missing,
    )  # fmt: skip


def search(
    repo: Repository, wanted: BatchOptions, suites: SuiteVersions | None = None
) -> tuple[Search, Sequence[Job]]:
    """The search for the changes of a history along first parents, and the jobs that it measures.

    :param suites: whose benchmarks are measured, too.

    :raises UsageError: where no collector repeats its runs, so that nothing can be judged.
    """
    jobs = _checked_jobs(repo, wanted, suites)
    if jobs and max(map(schedule.rounds_of, jobs)) < schedule.ROUNDS:
        raise UsageError(
            f"--find-changes needs a collector that repeats its runs, {schedule.ROUNDS} times at least",
            "add `time` to the collectors of the job matrix: perun config edit",
        )
    if len(wanted.revisions) > 1:
        raise UsageError("--find-changes looks at one line of the history", "name one version with -m")
    head = repo.version(wanted.revisions[0] if wanted.revisions else None)
    is_new = (lambda version: True) if wanted.since is None else walking.newer_than(repo, wanted.since)
    line = []
    for version in walking.first_parents(repo, head):
        line.append(version)
        if not is_new(version):  # with the last one before, so that a change of the first new one is seen
            break
    return Search(line[::-1]), jobs


def resumable(repo: Repository, suites_of: SuitesOf = no_suites) -> tuple[BatchPlan, BatchJournal]:
    """What is left of the batch that was interrupted last, and its journal, which the caller closes.

    Where none was interrupted, it is what failed in the last batch that had failures.

    :param suites_of: as of :func:`plan`.
    :raises UsageError: if there is neither.
    :raises ConfigError: if the job matrix has changed since.
    :raises DamagedStore: if the journal is not what was written, so that it cannot tell what is done.
    """
    journal = journals.newest(folder(repo))
    if journal is None:
        raise UsageError("no batch was interrupted", "start one with: perun run matrix")
    try:
        if journal.damaged_line:
            raise DamagedStore(
                f"{journal.path}, line {journal.damaged_line}: its checksum does not match",
                "move it away, and run what is missing with: perun run matrix --missing",
            )
        planned = _from_json(repo, journal, suites_of)
        _finish_tasks(repo, planned, journal)
        left = schedule.without(planned.slots, journal.finished)
        return replace(planned, slots=tuple(left), whole=planned.slots), journal
    except BaseException:
        journal.close()
        raise


def interrupted(repo: Repository) -> str:
    """The path of the journal of the batch that was interrupted last; empty if none was."""
    journal = journals.interrupted(folder(repo))
    return str(journal.path) if journal is not None else ""


def run(
    repo: Repository,
    planned: BatchPlan,
    journal: BatchJournal | None = None,
    *,
    retry_broken: bool = False,
    tally: RunTally | None = None,
    rounds: Rounds | None = None,
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """The events of the batch, as :func:`~perun.running.run.execute.run_jobs` yields them.

    :param journal: that of the batch where it is resumed; closed at the end.
    :param retry_broken: also try versions that `execute.pre_run` is known to fail on.
    :param rounds: what :func:`rounds_of_plan` has made of the plan, for the caller to read.
    """
    rounds = rounds or rounds_of_plan(repo, planned)
    return run_jobs(
        repo,
        planned.slots,
        placement=planned.placement,
        naming=ProfileNaming(template=planned.template),
        register=planned.register,
        skip_broken=not retry_broken,
        rounds=rounds,
        benchmarks=_benchmarks(repo, planned, rounds, journal),
        open_log=lambda: journal or new_journal(repo, planned),
        tally=tally,
        report=report,
        report_inside=report_inside,
    )


def rounds_of_plan(repo: Repository, planned: BatchPlan) -> Rounds:
    """The session that the batch is; of a resumed one with what was measured before."""
    slots = planned.whole or planned.slots
    versions = planned.versions
    found = Rounds(
        repo, slots, versions, planned.budget, planned.session, spread=planned.spread, shares=planned.shares
    )
    if planned.whole and planned.spread:
        found.recall()
    return found


def _benchmarks(
    repo: Repository, planned: BatchPlan, rounds: Rounds, journal: BatchJournal | None
) -> Benchmarks | None:
    """Those of the plan; of a resumed one with what was measured before."""
    if planned.suites is None:
        return None
    found = Benchmarks(
        repo, planned.suites, rounds, planned.suite_rounds, planned.suite_budget,
        missing=planned.missing, template=planned.template,
    )  # fmt: skip
    if journal is not None:
        tasks = {
            task.number: (slot.version.checksum, task.job) for slot in planned.whole for task in slot.tasks
        }
        found.recall(journal, tasks)
    return found


def new_journal(repo: Repository, planned: BatchPlan) -> BatchJournal:
    """The journal of a batch that begins now."""
    return journals.create(folder(repo), marked(repo.root, repo.environ, BATCHES, _to_json(planned)))


def _checked_jobs(repo: Repository, wanted: BatchOptions, suites: SuiteVersions | None) -> list[Job]:
    jobs: list[Job] = []
    if not wanted.only_suites:
        _check_texts(repo)
        try:
            jobs = matrix(repo, wanted.seed)
        except EmptyMatrix:
            if suites is None:
                raise
    registering.check_naming(repo, None, wanted.template)
    pre_run.commands(repo)
    return jobs


def _check_texts(repo: Repository) -> None:
    """Raise where commands, arguments or workloads cannot be split; generated ones are split when made."""
    for key, run_with in PARTS.items():
        for position, text in enumerate(texts(repo.config.get(key))):
            try:
                run_with(text).command()
            except UsageError as problem:
                place = item_place(repo.config, key, position)
                raise ConfigError(f"{place}: {problem.message}", problem.hint) from None


def _finish_tasks(repo: Repository, planned: BatchPlan, journal: BatchJournal) -> None:
    """Finish tasks whose profile was written just before the batch was interrupted: register it."""
    version_of = {task.number: slot.version for slot in planned.slots for task in slot.tasks}
    pending = repo.store.pending
    for number, sha1, name in journal.unfinished:
        # Profiles that stay pending may be alike; of those that do not, several may have had the same name.
        path = pending.find(sha1, () if planned.register else journal.names)
        if path is None and not name:
            continue  # it was not written
        if planned.register and path is not None and number in version_of:
            registering.register(repo, path, pending.load(path), version_of[number].checksum)
        journal.done(number)


def folder(repo: Repository) -> Path:
    """Where the journals of batches lie."""
    return repo.root / PERUN_FOLDER / BATCHES


def _to_json(planned: BatchPlan) -> dict[str, Any]:
    """The plan as JSON; :func:`_from_json` reads it."""
    numbers = {id(job): number for number, job in enumerate(planned.jobs)}
    return {
        "jobs": [schedule.described(job) for job in planned.jobs],
        "versions": list(planned.versions),
        "stops": [
            [slot.version.checksum, slot.round, [[one.number, numbers[id(one.job)]] for one in slot.tasks]]
            for slot in planned.slots
        ],
        "placement": asdict(planned.placement),
        "template": planned.template,
        "register": planned.register,
        "seed": planned.seed,
        "session": planned.session,
        "spread": planned.spread,
        "budget": planned.budget,
        "share": planned.shares is None,
        "suites": planned.suites and planned.suites.described,
        "suite_rounds": planned.suite_rounds,
        "suite_budget": planned.suite_budget,
        "missing": planned.missing,
    }


def _from_json(repo: Repository, journal: BatchJournal, suites_of: SuitesOf) -> BatchPlan:
    written, what = journal.plan, f"the batch of {journal.path}"
    template = written.get("template")
    seed = written.get("seed")
    of_suites = written.get("suites")
    wanted = BatchOptions(template=template, seed=seed, **_suite_options(of_suites))
    suites = suites_of(repo, wanted) if of_suites else None
    jobs = _checked_jobs(repo, wanted, suites)
    described = suites and suites.described
    if (written.get("jobs"), of_suites) != ([schedule.described(job) for job in jobs], described):
        raise ConfigError(
            f"the job matrix in {repo.root / PERUN_FOLDER / 'local.yml'} has changed since {what}",
            "undo the change, or run what is missing with: perun run matrix --missing",
        )
    try:
        jobs += [suites.named(*row[1:]) for row in journal.benchmarks or ()] if suites else []
        slots = _slots(written, jobs, journal.added_stops)
        placement, register = Placement(**written["placement"]), bool(written["register"])
        planned = BatchPlan(tuple(jobs), tuple(slots), placement, template, register, seed)
        planned = replace(
            planned, spread=bool(written.get("spread")), budget=float(written.get("budget") or 0.0),
            versions=_versions(written), shares=_shares(written, jobs, journal), suites=suites,
            suite_rounds=int(written.get("suite_rounds") or schedule.ROUNDS),
            suite_budget=float(written.get("suite_budget") or 0.0), missing=bool(written.get("missing")),
        )  # fmt: skip
        session = written.get("session")  # a batch that an earlier release began has none
        return replace(planned, session=session) if isinstance(session, str) else planned
    except (KeyError, TypeError, ValueError, IndexError):
        raise PerunError(
            f"{what} cannot be read", "delete it, and run what is missing with: perun run matrix --missing"
        ) from None


def _suite_options(described: Any) -> dict[str, Any]:
    """The options of a batch that :attr:`SuiteVersions.described` has been made of."""
    found = described if isinstance(described, Mapping) else {}
    return {
        "suite": bool(found.get("suite")), "harness": str(found.get("harness") or ""),
        "benchmarks": tuple(found.get("benchmarks") or ()),
    }  # fmt: skip


def _versions(written: Mapping[str, Any]) -> tuple[MinorVersion, ...]:
    return tuple(
        MinorVersion(date, author, email, checksum, desc, tuple(parents))
        for date, author, email, checksum, desc, parents in written["versions"]
    )


def _shares(written: Mapping[str, Any], jobs: Sequence[Job], journal: BatchJournal) -> Shares | None:
    if journal.shares is None:
        return None if written.get("share") else NO_SHARES
    return {
        (str(version), id(jobs[job])): Share(str(measured), str(reason))
        for version, job, measured, reason in journal.shares
    }


def _slots(written: Mapping[str, Any], jobs: Sequence[Job], added: Sequence[Any]) -> list[VersionSlot]:
    known = {version.checksum: version for version in _versions(written)}
    return [
        VersionSlot(
            known[checksum],
            tuple(Task(number, jobs[job], max(round_ - 1, 0)) for number, job in tasks),
            round_,
        )
        for checksum, round_, tasks in [*written["stops"], *added]
    ]
