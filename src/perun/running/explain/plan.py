"""What is explained: two versions, the configurations that are measured of both, and a location."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import ConfigError, UsageError, VersionControlError
from perun.core.wording import listed
from perun.history.check.check import check_diff
from perun.measurement.verdict import severity
from perun.plugin.api import MinorVersion, Run
from perun.repository.jobs import Job, as_known
from perun.repository.lookup import ends_of
from perun.repository.repository import Repository
from perun.running.compare.plan import CLOCKS, CompareCase, CompareOptions, CompareSide, cases_of, require_own
from perun.running.explain.costs import FunctionKey

if TYPE_CHECKING:
    from perun.native.callgraph.graph import CallGraph
    from perun.profile.factory import Profile


_SHOWN = 10
COLLECTED: Final = ("instructions", "memory", "calls")
"""What may be measured: `calls` are those of the functions that are suspected then."""


@dataclass(frozen=True)
class ExplainOptions:
    """What the user asks for.

    :ivar versions: a version, which is compared with its first parent, or `A..B`.
    :ivar location: a function, as `sort`, `sort.c:sort` or a part of its name; all where empty.
    :ivar cmd: the command; where empty, the job matrix says. :ivar args: and :ivar workload: belong to it.
    :ivar sizes: workloads of growing sizes by which orders of growth are told.
    :ivar collects: whether what is missing is measured. :ivar what: of it, those of :data:`COLLECTED`.
    :ivar benchmark: the name of a benchmark of a suite, in place of a command; :ivar harness: whose it is.
    :ivar budget: seconds after which nothing more is begun to be measured; None for no limit.
    :ivar threshold: the least change of a function that is told, as a part of what the program costs.
    :ivar seed: of generators of workloads.
    """

    versions: str
    location: str = ""
    cmd: str = ""
    args: str = ""
    workload: str = ""
    sizes: tuple[str, ...] = ()
    collects: bool = True
    threshold: float = 0.005
    seed: int | None = None
    what: tuple[str, ...] = COLLECTED
    budget: float | None = None
    benchmark: str = ""
    harness: str = ""

    def means(self, place: FunctionKey) -> bool:
        """Whether the user wants to know of the function."""
        names = (place.name, f"{place.source}:{place.name}")
        return self.location in names or self.location in place.name


class ExplainPlan(NamedTuple):
    """Two versions, and the configurations that are measured of both. :param notes: about the versions."""

    base: CompareSide
    head: CompareSide
    cases: tuple[CompareCase, ...]
    notes: tuple[str, ...]

    @property
    def sides(self) -> tuple[CompareSide, CompareSide]:
        """Base and head."""
        return self.base, self.head


def plan(repo: Repository, wanted: ExplainOptions) -> ExplainPlan:
    """Plan it; nothing is built or measured.

    :raises VersionControlError: where a version is unknown. :raises UsageError: where it has no parent, both
        are the same, or there is nothing to measure. :raises NotTrusted: where the user has not said that he
        trusts the repository, and something is to be measured.
    """
    if wanted.collects:
        repo.require_trust("explaining a version")
    base, head, notes = _versions(repo, wanted.versions)
    if head.checksum == _current(repo) and wanted.collects and repo.vcs.changed_files():
        notes.append("uncommitted changes are left out; to measure what they do: perun compare")
    cases = _cases(repo, wanted, base, head)
    for case in cases:
        Run(case.job.cmd, case.job.args, case.workload).command()  # raises where it cannot be split
    return ExplainPlan(CompareSide("base", base), CompareSide("head", head), cases, tuple(notes))


def _current(repo: Repository) -> str:
    try:
        return repo.vcs.get_minor_head()
    except VersionControlError:
        return ""


def _versions(repo: Repository, text: str) -> tuple[MinorVersion, MinorVersion, list[str]]:
    named = ends_of(text)
    if named is None:
        head = repo.vcs.get_minor_version_info(repo.version(text))
        if not head.parents:
            raise UsageError(
                f"{text} ({head.checksum[:_SHOWN]}) has no parent that it could be compared with",
                repo.vcs.missing_history() or "name two versions: perun explain A..B",
            )
        notes = []
        if len(head.parents) > 1:
            notes.append(f"{head.checksum[:_SHOWN]} is a merge: it is compared with its first parent")
        return repo.vcs.get_minor_version_info(head.parents[0]), head, notes
    ends = [repo.vcs.get_minor_version_info(repo.version(end or None)) for end in named]
    if ends[0].checksum == ends[1].checksum:
        raise UsageError(
            f"{text}: both ends are {ends[0].checksum[:_SHOWN]}", "name two versions: perun explain A..B"
        )
    return ends[0], ends[1], []


def _cases(
    repo: Repository, wanted: ExplainOptions, base: MinorVersion, head: MinorVersion
) -> tuple[CompareCase, ...]:
    if wanted.benchmark:
        return ()  # its name is looked up where the versions are built
    asked = CompareOptions(cmd=wanted.cmd, args=wanted.args, workload=wanted.workload, seed=wanted.seed)
    if wanted.cmd and not wanted.collects:
        (job,) = as_known(repo, [Job(wanted.cmd, wanted.args, wanted.workload, CLOCKS)])
        return (CompareCase(job, ()),)
    if wanted.cmd or wanted.args or wanted.workload:
        return tuple(cases_of(repo, asked))
    problem: ConfigError | None = None
    if wanted.collects:
        try:
            found = tuple(cases_of(repo, asked))
        except ConfigError as error:
            problem, found = error, ()
        if found:
            return found
    found = tuple(_registered(repo, base, head))
    if not found:
        raise problem or UsageError(
            f"no command has profiles of both {base.checksum[:_SHOWN]} and {head.checksum[:_SHOWN]}",
            "leave out --no-collect to measure them, and name a command with -c, or set up the job matrix",
        )
    if wanted.collects:
        require_own(repo, [case.job for case in found], "explaining a version")
    return found


def _registered(repo: Repository, base: MinorVersion, head: MinorVersion) -> list[CompareCase]:
    """The commands that both versions have profiles of.

    :raises UsageError: where these are of benchmarks of a suite alone, of which one has to be named.
    """
    both = [
        {entry.info().configuration for entry in repo.store.indexes.read(version.checksum)}
        for version in (base, head)
    ]
    common = both[0] & both[1]
    benchmarks = sorted({one.benchmark for one in common} - {""})
    cases = sorted({(one.cmd, one.args, one.workload) for one in common if one.cmd and not one.benchmark})
    if benchmarks and not cases:
        changed = _changed(repo, base, head)
        words = listed([f"{name} ({word})" for name, word in changed.items()])
        which = f"these changed: {words}" if changed else "none is known to have changed"
        raise UsageError(
            f"the profiles of {base.checksum[:_SHOWN]} and {head.checksum[:_SHOWN]} are of benchmarks;"
            f" {which}",
            f"name one of them, e.g. --benchmark {shlex.quote(next(iter(changed), benchmarks[0]))}",
        )
    return [CompareCase(Job(*key, CLOCKS), ()) for key in cases]


def _changed(repo: Repository, base: MinorVersion, head: MinorVersion) -> dict[str, str]:
    """The benchmarks of which `perun check` says that they changed, the worst first, with its words."""
    words: dict[str, str] = {}
    found = [
        (severity(place.result), one.target.configuration.benchmark, place.result.name)
        for one in check_diff(repo, base.checksum, head.checksum).comparisons
        for place in one.places
    ]
    for size, name, word in sorted(found):
        if abs(size) > 1:
            words.setdefault(name, word)
    return words


def with_workload(case: CompareCase, workload: str) -> CompareCase:
    """The configuration with another workload."""
    return case._replace(job=replace(case.job, workload=workload, generated=None))


# The profiles of both sides that `perun explain` looks at.


class ProfilePair(NamedTuple):
    """The profiles of one collector. :param new: whether they were measured now."""

    base: Profile
    head: Profile
    new: bool = False


class SizedPair(NamedTuple):
    """Profiles of one collector with the size of the input of each."""

    base: Sequence[tuple[float, Profile]]
    head: Sequence[tuple[float, Profile]]


class CaseEvidence(NamedTuple):
    """What is known of one configuration.

    :param pairs: by collector. :param sized: instructions over several sizes, None where there are none.
    :param graphs: the static call graphs, None where they are not known. :param unseen:
        what is missing, and why.
    """

    case: CompareCase
    pairs: dict[str, ProfilePair]
    sized: SizedPair | None
    graphs: tuple[CallGraph, CallGraph] | None
    unseen: list[str]
