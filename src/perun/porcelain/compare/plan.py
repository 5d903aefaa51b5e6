"""What is compared: two versions of the project, and the configurations that are measured of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from perun.errors import UsageError, VersionControlError
from perun.plugin.api import MinorVersion, Run
from perun.porcelain.compare.options import CompareOptions
from perun.porcelain.repository import Repository
from perun.porcelain.run.jobs import EmptyMatrix, Job, Unit, combine_units, matrix, needs_command
from perun.porcelain.trust import by_profiles

MAIN_BRANCHES: Final = ("origin/HEAD", "main", "master", "origin/main", "origin/master")
"""Where the main branch is looked for when `vcs.main_branch` does not name it."""
CLOCKS: Final = Unit("time", None)
"""Stands for the collector in the jobs of cases."""
_SHOWN: Final = 10


class Side(NamedTuple):
    """One of the two versions.

    :param uncommitted: files that are not as in the version, where the working directory is measured as it
        is; relative to the folder of the version control.
    """

    name: Literal["base", "head"]
    version: MinorVersion
    uncommitted: tuple[str, ...] = ()

    def __str__(self) -> str:
        changes = " with uncommitted changes" if self.uncommitted else ""
        return f"{self.name} ({self.version.checksum[:_SHOWN]}{changes})"


class Case(NamedTuple):
    """One command with its arguments and its workload, and the collectors that the matrix has for it.

    :param job: without a collector of its own.
    """

    job: Job
    collectors: tuple[Unit, ...]

    @property
    def workload(self) -> str:
        """The workload as the command gets it."""
        return self.job.generated.inputs[0].text if self.job.generated else self.job.workload


class Plan(NamedTuple):
    """What is compared; `note` says how the base was chosen, where the user named none."""

    base: Side
    head: Side
    cases: tuple[Case, ...]
    note: str = ""

    @property
    def sides(self) -> tuple[Side, Side]:
        """Base and head."""
        return self.base, self.head


def plan(repo: Repository, wanted: CompareOptions) -> Plan:
    """Plan a comparison; nothing is built or measured.

    :raises VersionControlError: where a revision is unknown, or there is no base to be found.
    :raises UsageError: where both sides are the same version, and nobody asked for that.
    :raises NotTrusted: where the user has not said that he trusts the repository.
    :raises PerunError: where the job matrix is wrong.
    """
    # Looking for uncommitted changes runs the filters of the version control already.
    repo.require_trust("comparing versions")
    head = _head(repo, wanted.head)
    base, note = _base(repo, wanted.base, head)
    cases = tuple(cases_of(repo, wanted))
    for case in cases:
        Run(case.job.cmd, case.job.args, case.workload).command()  # raises where it cannot be split
    return Plan(Side("base", repo.vcs.get_minor_version_info(base)), head, cases, note)


def _head(repo: Repository, revision: str | None) -> Side:
    if revision is not None:
        return Side("head", repo.vcs.get_minor_version_info(repo.version(revision)))
    version = repo.vcs.get_minor_version_info(repo.version(None))
    return Side("head", version, tuple(repo.vcs.changed_files()))


def _base(repo: Repository, revision: str | None, head: Side) -> tuple[str, str]:
    """The version of the base, and how it was found."""
    if revision is not None:
        return repo.version(revision), ""
    name = _main_branch(repo)
    base = repo.vcs.merge_base(repo.version(name), head.version.checksum)
    if base is None:
        raise VersionControlError(
            f"{name} and {head.version.checksum[:_SHOWN]} have no common ancestor",
            repo.vcs.missing_history() or "name the base: perun compare BASE",
        )
    if base != head.version.checksum or head.uncommitted:
        return base, f"the base is the merge base with {name}"
    if not head.version.parents:
        raise UsageError(
            f"HEAD is {name}, without uncommitted changes, and has no parent: there is nothing to compare",
            "name two versions: perun compare BASE HEAD",
        )
    note = f"HEAD is part of {name}, and nothing is uncommitted: the base is its parent"
    return head.version.parents[0], note


def _main_branch(repo: Repository) -> str:
    configured = str(repo.config.get("vcs.main_branch") or "")
    if configured:
        repo.version(configured)
        return configured
    for name in MAIN_BRANCHES:
        try:
            repo.version(name)
        except VersionControlError:
            continue
        return name
    raise VersionControlError(
        f"the main branch is none of {', '.join(MAIN_BRANCHES)}",
        "name it: perun config set vcs.main_branch NAME  (or name the base: perun compare BASE)",
    )


def _matrix(repo: Repository, seed: int | None) -> list[Job]:
    try:
        return matrix(repo, seed, apart=True)
    except EmptyMatrix as problem:
        hint = "name a command with --cmd (-c), or set up the job matrix: perun config edit"
        raise EmptyMatrix(problem.message, hint) from None


def require_own(repo: Repository, jobs: Iterable[Job], doing: str) -> None:
    """See that commands that only profiles name may run: others may have made the profiles.

    :raises NotTrusted: if the user has not said that he trusts them.
    """
    commands = [" ".join(filter(None, (job.cmd, job.args, job.workload))) for job in jobs]
    repo.require_trust(doing, by_profiles(repo.root, repo.config, repo.environ, commands))


def cases_of(repo: Repository, wanted: CompareOptions) -> Iterator[Case]:
    """The configurations that are measured: each once, whatever collectors the matrix has for it.

    :raises UsageError: where there are arguments or a workload, and no command.
    :raises PerunError: where the job matrix is wrong, or empty and no command is named.
    """
    if wanted.cmd:
        jobs = combine_units(
            repo, [wanted.cmd], [wanted.args], [wanted.workload], [CLOCKS], seed=wanted.seed, apart=True
        )
    elif wanted.args or wanted.workload:
        raise UsageError(
            "--args and --workload belong to a command", "name it with --cmd (-c); the job matrix has its own"
        )
    else:
        jobs = [
            job
            for job in _matrix(repo, wanted.seed)
            if needs_command(repo.registry, job.collector.name)  # of sources there is nothing to run
        ]
    cases: dict[tuple[str, str, str], Case] = {}
    for job in jobs:
        key = (job.cmd, job.args, job.workload)
        known = cases.get(key) or Case(replace(job, collector=CLOCKS, postprocessors=()), ())
        cases[key] = known._replace(collectors=(*known.collectors, job.collector))
    yield from cases.values()
