"""`perun run matrix`: the job matrix on many versions, also after an interruption (manual 3.2.12, 7.3).

A batch is planned as a whole before anything runs. A journal keeps what it has done, so that `--resume` does
the rest after any interruption: each profile that an undisturbed batch makes is stored exactly once.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from perun.core.config.layers import item_place
from perun.core.errors import ConfigError, DamagedStore, PerunError, UsageError
from perun.plugin.api import MinorVersion, Report, silent
from perun.repository import registering
from perun.repository.copies import IN_A_COPY, Placement
from perun.repository.jobs import PARTS, Job, matrix, texts
from perun.repository.repository import BATCHES, PERUN_FOLDER, Repository
from perun.repository.user import marked
from perun.running.run import journal as journals
from perun.running.run import pre_run, schedule
from perun.running.run.collecting import Naming
from perun.running.run.events import Event, Tally
from perun.running.run.execute import run_jobs
from perun.running.run.journal import Journal
from perun.running.run.schedule import Task, VersionSlot


@dataclass(frozen=True)
class BatchOptions:
    """The options of the user.

    `since`, `every`: ancestors of the versions, all that are newer than `since`, one of `every`. `rounds`:
    how often the whole of it is run. `missing`: only what no profile is stored of.
    """

    revisions: tuple[str, ...] = ()
    crawl_parents: bool = False
    since: str | None = None
    every: int = 1
    rounds: int = 1
    missing: bool = False
    placement: Placement = IN_A_COPY
    template: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Plan:
    """A batch before it runs, completely checked.

    `slots` are to be run; those of a resumed batch are what is left. `session` is the id of the session
    that all of it is.
    """

    jobs: tuple[Job, ...]
    slots: tuple[VersionSlot, ...]
    placement: Placement
    template: str | None
    register: bool
    seed: int | None = None
    session: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def total(self) -> int:
        """The number of tasks."""
        return schedule.total(self.slots)


def plan(repo: Repository, wanted: BatchOptions) -> Plan:
    """Plan a batch; nothing is run or written, but the workloads that generators make.

    :raises PerunError: if anything is wrong: a part of the matrix, a version, the template.
    """
    jobs = _checked_jobs(repo, wanted.template, wanted.seed)
    if wanted.since is None and wanted.every == 1:
        chosen = schedule.choose(repo, wanted.revisions, wanted.crawl_parents)
    else:
        chosen = schedule.choose_ancestors(repo, wanted.revisions, wanted.since, wanted.every)
    if not chosen:
        raise UsageError(f"there is no version after {wanted.since}", "name an older one with --since")
    slots = schedule.plan_slots(jobs, chosen, wanted.rounds)
    if wanted.missing:
        slots = schedule.missing(repo, slots)
    register = repo.registers_after_run
    return Plan(tuple(jobs), tuple(slots), wanted.placement, wanted.template, register, wanted.seed)


def resumable(repo: Repository) -> tuple[Plan, Journal]:
    """What is left of the batch that was interrupted last, and its journal, which the caller closes.

    Where none was interrupted, it is what failed in the last batch that had failures.

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
        planned = _from_json(repo, journal.plan, f"the batch of {journal.path}")
        _finish_tasks(repo, planned, journal)
        left = schedule.without(planned.slots, journal.finished)
        return replace(planned, slots=tuple(left)), journal
    except BaseException:
        journal.close()
        raise


def interrupted(repo: Repository) -> str:
    """The path of the journal of the batch that was interrupted last; empty if none was."""
    journal = journals.interrupted(folder(repo))
    return str(journal.path) if journal is not None else ""


def run(
    repo: Repository,
    planned: Plan,
    journal: Journal | None = None,
    *,
    retry_broken: bool = False,
    tally: Tally | None = None,
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """The events of the batch, as :func:`~perun.running.run.execute.run_jobs` yields them.

    :param journal: that of the batch where it is resumed; closed at the end.
    :param retry_broken: also try versions that `execute.pre_run` is known to fail on.
    """

    return run_jobs(
        repo,
        planned.slots,
        placement=planned.placement,
        naming=Naming(template=planned.template),
        register=planned.register,
        skip_broken=not retry_broken,
        session_id=planned.session,
        open_log=lambda: journal or new_journal(repo, planned),
        tally=tally,
        report=report,
        report_inside=report_inside,
    )


def new_journal(repo: Repository, planned: Plan) -> Journal:
    """The journal of a batch that begins now."""
    return journals.create(folder(repo), marked(repo.root, repo.environ, BATCHES, _to_json(planned)))


def _checked_jobs(repo: Repository, template: str | None, seed: int | None) -> list[Job]:
    _check_texts(repo)
    jobs = matrix(repo, seed)
    registering.check_naming(repo, None, template)
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


def _finish_tasks(repo: Repository, planned: Plan, journal: Journal) -> None:
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


def _to_json(planned: Plan) -> dict[str, Any]:
    """The plan as JSON; :func:`_from_json` reads it."""
    known: dict[str, MinorVersion] = {slot.version.checksum: slot.version for slot in planned.slots}
    numbers = {id(job): number for number, job in enumerate(planned.jobs)}
    return {
        "jobs": [_described(job) for job in planned.jobs],
        "versions": list(known.values()),
        "stops": [
            [slot.version.checksum, slot.round, [[one.number, numbers[id(one.job)]] for one in slot.tasks]]
            for slot in planned.slots
        ],
        "placement": asdict(planned.placement),
        "template": planned.template,
        "register": planned.register,
        "seed": planned.seed,
        "session": planned.session,
    }


def _described(job: Job) -> str:
    """The job as journals of all releases have it, which call a configured plugin a unit."""
    return repr(job).replace("PluginConfig(name=", "Unit(name=")


def _from_json(repo: Repository, written: Mapping[str, Any], what: str) -> Plan:
    template = written.get("template")
    seed = written.get("seed")
    jobs = _checked_jobs(repo, template, seed)
    if written.get("jobs") != [_described(job) for job in jobs]:
        raise ConfigError(
            f"the job matrix in {repo.root / PERUN_FOLDER / 'local.yml'} has changed since {what}",
            "undo the change, or run what is missing with: perun run matrix --missing",
        )
    try:
        slots = _slots(written, jobs)
        placement, register = Placement(**written["placement"]), bool(written["register"])
        planned = Plan(tuple(jobs), tuple(slots), placement, template, register, seed)
        session = written.get("session")  # a batch that an earlier release began has none
        return replace(planned, session=session) if isinstance(session, str) else planned
    except (KeyError, TypeError, ValueError, IndexError):
        raise PerunError(
            f"{what} cannot be read", "delete it, and run what is missing with: perun run matrix --missing"
        ) from None


def _slots(written: Mapping[str, Any], jobs: Sequence[Job]) -> list[VersionSlot]:
    known = {}
    for date, author, email, checksum, desc, parents in written["versions"]:
        known[checksum] = MinorVersion(date, author, email, checksum, desc, tuple(parents))
    return [
        VersionSlot(
            known[checksum],
            tuple(Task(number, jobs[job], max(round_ - 1, 0)) for number, job in tasks),
            round_,
        )
        for checksum, round_, tasks in written["stops"]
    ]
