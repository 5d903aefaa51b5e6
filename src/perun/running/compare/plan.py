"""What is compared: two versions of the project, and the configurations that are measured of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from perun.core.errors import PerunError, UsageError, VersionControlError
from perun.measurement.difference import DEFAULTS, Rules
from perun.plugin.api import MinorVersion, Report, Run
from perun.repository.jobs import EmptyMatrix, Job, PluginConfig, combine_units, matrix, needs_command
from perun.repository.repository import Repository
from perun.repository.trust import by_profiles
from perun.running.run.builds import Builds

# What the user of `perun compare` asks for.

ORDERS: Final = ("random", "abba")
"""The order of the runs of a pair: random, or mirrored from pair to pair."""
MAX_PAIRS: Final = 1000
SECONDS: Final = 60.0
"""Budget of each configuration, where the user gives none for all of them together."""


@dataclass(frozen=True)
class CompareOptions:
    """How to compare.

    :ivar base: revision; where None, the merge base with the main branch. :ivar head: revision; where None,
        the working directory as it is.
    :ivar cmd: the command to measure; where empty, the job matrix says what is measured. :ivar args: and
        :ivar workload: belong to it.
    :ivar metrics: names of what is measured; see :mod:`perun.running.compare.instruments`.
    :ivar builds: how often each side is built. :ivar order: one of :data:`ORDERS`.
    :ivar budget: seconds for measuring everything; None for :data:`SECONDS` for each configuration.
    :ivar most_pairs: pairs at which each series ends. :ivar pin: keep the program on one core.
    :ivar duet: run both sides at the same time, on two cores, where that can be.
    :ivar check_output: measure only what writes the same to its standard output on both sides.
    :ivar always: measure programs that are identical, too. :ivar seed: of generators of workloads.
    :ivar stores: keep profiles of what was measured.
    """

    base: str | None = None
    head: str | None = None
    cmd: str = ""
    args: str = ""
    workload: str = ""
    metrics: tuple[str, ...] = ("wall", "cpu")
    rules: Rules = DEFAULTS
    builds: int = 1
    order: str = "random"
    budget: float | None = None
    most_pairs: int = MAX_PAIRS
    pin: bool = True
    always: bool = False
    seed: int | None = None
    duet: bool = False
    check_output: bool = False
    stores: bool = True


def share(text: str, option: str) -> float:
    """The share that a text like `2%` or `0.02` names.

    :param option: to name where it names none.
    :raises UsageError: where it is no number above 0 and below 1.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest.strip() or not 0 < value < 1:
        raise UsageError(f"{option}: {text!r} is no share between 0 and 100 %", "write it as e.g. 2% or 0.02")
    return value


MAIN_BRANCHES: Final = ("origin/HEAD", "main", "master", "origin/main", "origin/master")
"""Where the main branch is looked for when `vcs.main_branch` does not name it."""
CLOCKS: Final = PluginConfig("time", None)
"""Stands for the collector in the jobs of cases."""
_SHOWN: Final = 10


class CompareSide(NamedTuple):
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


class CompareCase(NamedTuple):
    """One command with its arguments and its workload, and the collectors that the matrix has for it.

    :param job: without a collector of its own.
    """

    job: Job
    collectors: tuple[PluginConfig, ...]

    @property
    def workload(self) -> str:
        """The workload as the command gets it."""
        return self.job.generated.inputs[0].text if self.job.generated else self.job.workload


class ComparePlan(NamedTuple):
    """What is compared; `note` says how the base was chosen, where the user named none."""

    base: CompareSide
    head: CompareSide
    cases: tuple[CompareCase, ...]
    note: str = ""

    @property
    def sides(self) -> tuple[CompareSide, CompareSide]:
        """Base and head."""
        return self.base, self.head


def plan(repo: Repository, wanted: CompareOptions) -> ComparePlan:
    """Plan a comparison; nothing is built or measured.

    :raises VersionControlError: where a revision is unknown, or there is no base to be found.
    :raises UsageError: where both sides are the same version, and nobody asked for that.
    :raises NotTrusted: where the user has not said that he trusts the repository.
    :raises PerunError: where the job matrix is wrong.
    """
    planned = plan_sides(repo, wanted)
    cases = tuple(cases_of(repo, wanted))
    for case in cases:
        Run(case.job.cmd, case.job.args, case.workload).command()  # raises where it cannot be split
    return planned._replace(cases=cases)


def plan_sides(repo: Repository, wanted: CompareOptions) -> ComparePlan:
    """As :func:`plan`, without anything that is measured of them."""
    # Looking for uncommitted changes runs the filters of the version control already.
    repo.require_trust("comparing versions")
    head = _head(repo, wanted.head)
    base, note = _base(repo, wanted.base, head)
    return ComparePlan(CompareSide("base", repo.vcs.get_minor_version_info(base)), head, (), note)


def _head(repo: Repository, revision: str | None) -> CompareSide:
    if revision is not None:
        return CompareSide("head", repo.vcs.get_minor_version_info(repo.version(revision)))
    version = repo.vcs.get_minor_version_info(repo.version(None))
    return CompareSide("head", version, tuple(repo.vcs.changed_files()))


def _base(repo: Repository, revision: str | None, head: CompareSide) -> tuple[str, str]:
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
        return matrix(repo, seed, separate=True)
    except EmptyMatrix as problem:
        hint = "name a command with --cmd (-c), or set up the job matrix: perun config edit"
        raise EmptyMatrix(problem.message, hint) from None


def require_own(repo: Repository, jobs: Iterable[Job], doing: str) -> None:
    """See that commands that only profiles name may run: others may have made the profiles.

    :raises NotTrusted: if the user has not said that he trusts them.
    """
    commands = [" ".join(filter(None, (job.cmd, job.args, job.workload))) for job in jobs]
    repo.require_trust(doing, by_profiles(repo.root, repo.config, repo.environ, commands))


def refuse_with_benchmark(benchmark: str, harness: str, others: Mapping[str, object]) -> None:
    """:param others: options that belong to a command, by their names.

    :raises UsageError: where one is given beside a benchmark, or a harness without one.
    """
    if harness and not benchmark:
        raise UsageError(
            f"--harness {harness} says whose benchmark is meant, and none is", "name it with --benchmark"
        )
    for option, value in others.items():
        if benchmark and value:
            raise UsageError(f"{option} does not go with --benchmark", "leave one of them out")


def cases_of(repo: Repository, wanted: CompareOptions) -> Iterator[CompareCase]:
    """The configurations that are measured: each once, whatever collectors the matrix has for it.

    :raises UsageError: where there are arguments or a workload, and no command.
    :raises PerunError: where the job matrix is wrong, or empty and no command is named.
    """
    if wanted.cmd:
        jobs = combine_units(
            repo, [wanted.cmd], [wanted.args], [wanted.workload], [CLOCKS], seed=wanted.seed, separate=True
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
    cases: dict[tuple[str, str, str], CompareCase] = {}
    for job in jobs:
        key = (job.cmd, job.args, job.workload)
        known = cases.get(key) or CompareCase(replace(job, collector=CLOCKS, postprocessors=()), ())
        cases[key] = known._replace(collectors=(*known.collectors, job.collector))
    yield from cases.values()


# A working copy of each side, several of them where it is built several times; the user's files stay as
# they are.

NOISE: Final = "noise"
Folders = Mapping[str, Sequence[Path]]
"""The folders of each side by its name, one for each build; under :data:`NOISE` others of the base."""


@contextmanager
def prepared(
    repo: Repository, sides: Iterable[CompareSide], builds: int, report: Report, *, noise: bool = False
) -> Iterator[Folders]:
    """Working copies of the sides, each built apart; a single build of a version is kept for later.

    Copies that a killed process has left are removed first.

    :param noise: have folders for the noise of the session, too: the other builds of the first side, or a
        copy of its only one. Two copies of one program may differ, which one copy never does from itself.
    :raises PerunError: names the side that cannot be checked out or built.
    """
    sides = list(sides)
    found: dict[str, list[Path]] = {side.name: [] for side in sides}
    with Builds(repo, separate=True) as cache:
        for number in range(builds):
            for place, side in enumerate(sides):
                report(f"building {side}", len(sides) * number + place, len(sides) * builds)
                is_only = builds == 1 and side.version not in (one.version for one in sides[:place])
                found[side.name].append(_prepare(repo, cache, side, is_only))
        if noise:
            first, *others = found[sides[0].name]
            found[NOISE] = [*others, first] if others else [cache.copied(first)]
        yield found


def _prepare(repo: Repository, cache: Builds, side: CompareSide, is_only: bool) -> Path:
    try:
        if is_only and not side.uncommitted:
            return cache.enter(side.version.checksum).folder
        change = partial(copy_changes, repo.vcs.root, side.uncommitted) if side.uncommitted else None
        return cache.fresh(side.version.checksum, change)
    except PerunError as problem:
        raise type(problem)(f"{side} cannot be prepared: {problem.message}", problem.hint) from None


def copy_changes(source: Path, paths: Iterable[str], target: Path) -> None:
    """Make the files of `target` as those of `source`, which only read.

    :param paths: relative to both; files and symbolic links, those that `source` does not have are deleted.
    """
    for path in paths:
        old, new = source / path, target / path
        if new.is_symlink() or new.is_file():
            new.unlink()
        elif new.is_dir():
            shutil.rmtree(new)  # a folder has become a file
        if old.is_symlink() or old.is_file():
            _make_room(target, path)
            shutil.copy2(old, new, follow_symlinks=False)


def _make_room(target: Path, path: str) -> None:
    """Make the folder of the path, also where the version has a file or a link that has become a folder."""
    folder = target
    for part in Path(path).parts[:-1]:
        folder /= part
        if part != ".." and (folder.is_symlink() or folder.is_file()):
            folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
