"""The values of the same series in the ancestors of a version, in real git repositories."""

import os
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

import profiles
from perun.history import baseline
from perun.history.baseline import BaselineComparison, HeadlineSeries, KnownSummaries, Line, SeriesValue
from perun.history.log import LogValue, LogValues
from perun.measurement.difference import DEFAULTS
from perun.measurement.estimate import Kind, Point, Round, Sample, point_of_headlines
from perun.measurement.noise import WINDOW
from perun.measurement.verdict import along
from perun.profile.factory import Profile
from perun.profile.head import Configuration
from perun.repository import config
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.store.pending import link, unlink

HERE = {"architecture": "x86_64", "cpu": {"model": "M 1", "total": 4}}
CLASS = "M 1, 4 processors, x86_64"
WANTED = HeadlineSeries(Configuration("time", "./app", "", "in", ()), CLASS, "real time", "s")


def profile_of(
    amounts: Iterable[float],
    *,
    args: str = "",
    machine: dict[str, Any] | None = HERE,
    incomplete: str = "",
    unit: str = "s",
    used: float = 0.0,
) -> Profile:
    clocks = {"real": 1.0} | ({"user": used, "sys": 0.0} if used else {})
    resources = [
        {"amount": amount * share, "order": n, "uid": "./app", "subtype": clock}
        for clock, share in clocks.items()
        for n, amount in enumerate(amounts)
    ]
    profile = profiles.profile_of(resources, "time", unit, args=args, workload="in")
    if machine:
        profile["machine"] = machine
    if incomplete:
        profile["header"]["incomplete"] = incomplete
    return profile


class Project:
    """A git repository with Perun: registers profiles in versions, and asks for earlier values."""

    def __init__(self, git: Any) -> None:
        self.git = git
        init(git.path, os.environ)
        self.repo: Repository = open_repository(git.path, os.environ)
        self._number = 0

    def register(self, version: str, amounts: Iterable[float], **more: Any) -> str:
        """Register what `profile_of` makes of these in a version."""
        profile = profile_of(amounts, **more)
        self._number += 1
        linked = link(self.repo.store, version, [(profile, f"{self._number}.perf", self._number)])
        return linked.added[0].checksum

    def line(self, version: str = "HEAD", wanted: HeadlineSeries = WANTED, **options: Any) -> Line:
        checksum = self.git.git("rev-parse", version)
        return baseline.lines_of_ancestors(self.repo, checksum, [wanted], **options)[wanted]

    def before(self, version: str = "HEAD", wanted: HeadlineSeries = WANTED, **options: Any) -> str:
        """The version before; empty if there is none."""
        return next((checksum for checksum, _ in self.line(version, wanted, **options)), "")

    def judged(self, amounts: Iterable[float], used: float = 0.0, **options: Any) -> BaselineComparison:
        """What was measured of HEAD, and is not stored."""
        profile = profile_of(amounts, used=used)
        found = baseline.comparison_of_profile(self.repo, self.git.head, profile, **options)
        assert found is not None
        return found

    def forget(self) -> None:
        self.repo.store.cache.clear()


@pytest.fixture
def project(git_repository: Callable[..., Any]) -> Project:
    return Project(git_repository(commits=4))


@pytest.fixture
def line(project: Project) -> list[str]:
    """The checksums of its commits, the oldest first."""
    return project.git.git("rev-list", "--reverse", "HEAD").split()


def test_the_version_before_is_the_nearest_that_has_the_series(project: Project, line: list[str]) -> None:
    assert project.before() == ""
    project.register(line[0], [1.0, 3.0])
    project.register(line[3], [9.0])
    ((checksum, value),) = project.line()
    assert (checksum, value.metric, value.unit, value.larger_is_better) == (line[0], "real time", "s", False)
    assert (value.estimate.value, value.estimate.size) == (2.0, 2)
    project.register(line[2], [5.0], args="-v")
    assert project.before() == line[0]
    project.register(line[1], [4.0])
    assert [(one, value.point.value) for one, value in project.line()] == [(line[1], 4.0), (line[0], 2.0)]
    other = WANTED._replace(configuration=WANTED.configuration._replace(args="-v"))
    assert project.before(wanted=other) == line[2]
    assert project.before("HEAD~3") == ""
    assert project.before(itself=True) == line[3]
    several = baseline.lines_of_ancestors(project.repo, line[3], [WANTED, other])
    assert {one: found[0][0] for one, found in several.items()} == {WANTED: line[1], other: line[2]}


def test_profiles_of_one_version_are_one_point(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0, 2.0])
    project.register(line[2], [3.0])
    ((_, value),) = project.line()
    assert [sample.size for one in value.point.rounds for sample in one.samples.values()] == [2, 1]
    assert (value.estimate.size, value.point.sessions) == (3, 2)


def test_no_more_is_looked_at_than_verdicts_need(git_repository: Callable[..., Any]) -> None:
    project = Project(git_repository(commits=WINDOW + 3))
    line = project.git.git("rev-list", "HEAD").split()
    for checksum in line:
        project.register(checksum, [1.0])
    assert [checksum for checksum, _ in project.line()] == line[1 : WINDOW + 1]


def test_a_value_is_judged_with_the_others_of_its_version(project: Project, line: list[str]) -> None:
    alone = project.judged([3.0, 3.01, 3.02], registering=True)
    assert (alone.verdict, alone.since, alone.value.estimate.size) == (None, "", 3)
    project.register(line[2], [1.0, 1.01, 1.02])
    once = project.judged([3.0, 3.01, 3.02], registering=True)
    assert once.verdict is not None
    assert (once.verdict.change.name, once.since, once.confirmed) == ("SevereDegradation", line[2], False)
    assert once.verdict.difference.ratio == pytest.approx(3.01 / 1.01)
    project.register(line[3], [3.0, 3.01, 3.02])
    again = project.judged([2.98, 3.01, 3.02], registering=True)
    assert (again.value.estimate.size, again.value.point.sessions, again.since) == (6, 2, line[2])
    pending = project.judged([2.98, 3.01, 3.02], registering=False)
    assert (pending.value.estimate.size, pending.since) == (3, line[2])
    changed = project.judged([2.98, 3.01, 3.02], registering=False, itself=True)
    assert (changed.since, changed.verdict and changed.verdict.change.name) == (line[3], "Unknown")


def test_a_change_is_confirmed_where_both_sides_were_seen_twice(project: Project, line: list[str]) -> None:
    def confirmed() -> bool:
        return project.judged([3.0, 3.01, 3.02], registering=True).confirmed

    project.register(line[3], [3.0, 3.01, 3.02])
    project.register(line[2], [1.0, 1.01, 1.02])
    assert not confirmed()  # the version before was seen once
    project.register(line[1], [1.0, 1.01, 1.02])
    assert confirmed()


def test_the_rules_are_those_of_the_repository(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0, 1.01, 1.02])
    assert project.judged([1.5, 1.51, 1.52], registering=True).verdict.change.name == "Unknown"
    config.set_value(project.repo, "degradation.hodges_lehmann_ratio.apart", "0.05", scope="local")
    project.repo = open_repository(project.git.path, os.environ)
    assert baseline.rules_of(project.repo).unpaired_tolerance == 0.05
    assert project.judged([1.5, 1.51, 1.52], registering=True).verdict.change.name == "SevereDegradation"


@pytest.mark.parametrize(("before", "now", "metric", "ratio"), [
    pytest.param(0.95, 0.99, "cpu time", 1.98 / 0.95, id="the processor limits both"),
    pytest.param(0.95, 0.5, "real time", 2.0, id="it waits now"),
    pytest.param(0.5, 0.99, "real time", 2.0, id="it waited before"),
])  # fmt: skip
def test_the_clock_is_the_one_that_both_versions_have(project, line, before, now, metric, ratio) -> None:
    assert project.judged([1.003], used=before, registering=True).value.metric == (
        "cpu time" if before > 0.9 else "real time"
    )
    project.register(line[0], [1.003], used=before)
    found = project.judged([2.006], used=now, registering=True)
    assert (found.value.metric, found.since) == (metric, line[0])
    assert found.verdict is not None
    assert found.verdict.difference.ratio == pytest.approx(ratio)


def test_only_ancestors_count_where_branches_merge(project: Project, line: list[str]) -> None:
    git = project.git
    git.git("checkout", "-q", "-b", "side", line[1])
    side = git.commit("on the side")
    git.git("checkout", "-q", "main")
    later = git.commit("on main")
    project.register(line[0], [1.0])
    project.register(side, [2.0])
    # The side branch is newer than all of main but its last commit, and no ancestor of that.
    assert project.before(later) == line[0]
    git.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    # First parents come first, however far away they are.
    assert [checksum for checksum, _ in project.line()] == [line[0], side]
    project.register(later, [3.0])
    assert [checksum for checksum, _ in project.line()] == [later, line[0], side]
    assert project.before(side) == line[0]


def test_machines_metrics_and_units_are_kept_apart(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0], machine={**HERE, "cpu": {"model": "M 2", "total": 4}})
    project.register(line[1], [1.0], machine=None)
    project.register(line[1], [1.0], unit="ticks")
    assert project.before() == ""
    assert project.before(wanted=WANTED._replace(machine="")) == line[1]
    assert project.before(wanted=WANTED._replace(machine="M 2, 4 processors, x86_64")) == line[2]
    assert project.before(wanted=WANTED._replace(unit="ticks")) == line[1]
    assert project.before(wanted=WANTED._replace(metric="peak memory")) == ""
    project.register(line[1], [1000.0], unit="ms")
    assert project.before() == line[1]


def test_incomplete_profiles_are_not_compared_with(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0], incomplete="interrupted")
    assert project.before() == ""
    project.register(line[1], [1.0])
    assert project.before() == line[1]
    project.register(line[2], [3.0])
    assert [(one, value.point.value) for one, value in project.line()] == [(line[2], 3.0), (line[1], 1.0)]


def test_what_was_removed_from_the_index_is_not_found(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0])
    unlink(project.repo.store, line[2], project.repo.store.indexes.read(line[2]))
    assert project.before() == ""


def test_a_damaged_index_is_passed_over(project: Project, line: list[str]) -> None:
    project.register(line[1], [1.0])
    project.register(line[2], [2.0])
    path = project.repo.store.indexes.path(line[2])
    path.write_bytes(path.read_bytes()[:-5])
    assert project.before() == line[1]


def test_a_bounded_number_of_ancestors_is_looked_at(project: Project, line: list[str]) -> None:
    project.register(line[0], [1.0])
    assert project.before(most=3) == line[0]
    assert project.before(most=2) == ""


def test_facts_that_are_not_cached_are_read_from_profiles(project: Project, line: list[str]) -> None:
    found = project.register(line[1], [1.0])
    facts = project.repo.store.profile_summaries
    project.forget()
    assert project.before(known=KnownSummaries(project.repo, most=0)) == ""
    assert facts.of([found]) == {}
    assert project.before() == line[1]
    headline = facts.of([found])[found].headline
    assert headline is not None and point_of_headlines([headline]).value == 1.0


def test_at_most_so_many_profiles_are_read(project: Project, line: list[str]) -> None:
    for number in range(5):
        project.register(line[1], [float(number)], args=str(number))
    project.forget()
    known = KnownSummaries(project.repo, most=3)
    assert len(baseline.values_of_version(project.repo, line[1], known)) == 3
    assert known.unread == 2
    known = KnownSummaries(project.repo, most=2)
    assert len(baseline.values_of_version(project.repo, line[1], known)) == 5
    assert known.unread == 0
    project.forget()
    known = KnownSummaries(project.repo, most_bytes=10)
    assert (baseline.values_of_version(project.repo, line[1], known), known.unread) == ({}, 5)


def test_of_ancestors_only_what_is_asked_for_is_read(project: Project, line: list[str]) -> None:
    for number in range(5):
        project.register(line[1], [float(number)], args=str(number))
    project.register(line[0], [1.0])
    project.forget()
    known = KnownSummaries(project.repo, most=1)
    assert (project.before(known=known), known.unread) == (line[0], 0)


def test_a_lost_profile_has_no_value(project: Project, line: list[str]) -> None:
    checksum = project.register(line[1], [1.0])
    project.forget()
    (project.repo.store.objects.root / checksum[:2] / checksum[2:]).unlink()
    assert project.before() == ""


def test_before_the_first_commit_nothing_is_earlier(git_repository: Callable[..., Any]) -> None:
    repo = Project(git_repository("unborn")).repo
    assert baseline.lines_of_ancestors(repo, "HEAD", [WANTED]) == {WANTED: []}


def test_pending_facts_name_the_version(project: Project, line: list[str]) -> None:
    checksum = project.register(line[0], [1.0])
    profile = project.repo.store.objects.get(checksum)
    profile["origin"] = line[0]
    project.repo.store.pending.save(profile, "again")
    infos = project.repo.store.pending.list()
    facts = KnownSummaries(project.repo).of(infos)
    assert facts[infos[0]].origin == line[0]
    known = KnownSummaries(project.repo, most=0)
    assert known.of(infos) == facts
    assert known.unread == 0


# -- values of a walk ----------------------------------------------------------------------------------------


class Version(NamedTuple):
    name: str
    parents: tuple[str, ...]
    values: dict[HeadlineSeries, SeriesValue]


def wanted(name: str) -> HeadlineSeries:
    return HeadlineSeries(Configuration("time", name, "", "", ()), "", "real time", "s")


def measured(amount: float, rounds: int = 1) -> SeriesValue:
    """A value of which the last digits are the noise."""
    sample = Sample(5, amount, 0.001)
    point = Point(tuple(Round("", number, {"": sample}) for number in range(rounds)), Kind.TIMED)
    return SeriesValue("real time", "s", False, point)


def history(seed: int, count: int) -> list[Version]:
    """Versions with forks and merges, the newest first; some have values of up to three configurations."""
    rng = random.Random(seed)
    made: list[Version] = []
    for number in range(count):
        parents = {number - 1} if number else set()
        if number > 3 and rng.random() < 0.3:
            parents |= {rng.randrange(number)}
        elif number > 3 and rng.random() < 0.2:
            parents = {rng.randrange(number)}
        found = {
            wanted(one): measured(number + 1.0) for one in "abc" if rng.random() < (0.05, 0.3, 0.8)[seed % 3]
        }
        made.append(Version(f"{number}", tuple(str(one) for one in sorted(parents)), found))
    return made[::-1]


def expected(walk: list[Version], position: int, one: HeadlineSeries) -> list[str]:
    """The ancestors that have it: those along first parents, then the others in the order of the walk."""
    by_name = {version.name: version for version in walk}
    line, name = [], walk[position].name
    while parents := by_name[name].parents:
        name = parents[0]
        line.append(name)
    ancestors, others = set(walk[position].parents), []
    for version in walk[position + 1 :]:
        if version.name in ancestors:
            ancestors |= set(version.parents)
            if version.name not in line:
                others.append(version.name)
    return [name for name in line + others if one in by_name[name].values][:WINDOW]


def joined(walk: list[Version], **options: int) -> list[tuple[Version, tuple[LogValue, ...]]]:
    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        return version.name, version.parents

    return list(LogValues(version_of, lambda version: version.values, DEFAULTS, **options).join(walk))


@pytest.mark.parametrize("seed", range(12))
def test_the_line_of_ancestors_in_any_history(seed: int) -> None:
    walk = history(seed, 80)
    by_name = {version.name: version for version in walk}
    found = joined(walk)
    assert [version for version, _ in found] == walk
    for position, (version, values) in enumerate(found):
        assert [value.judged.value for value in values] == list(version.values.values())
        for one, value in zip(version.values, values, strict=True):
            names = expected(walk, position, one)
            assert [name for name, _ in value.line] == names
            assert value.judged.since == (names[0] if names else "")
            points = [by_name[name].values[one].point for name in names]
            # What is kept of one version for the next changes no verdict.
            assert value.judged.verdict == along(value.judged.value.point, points)


def test_a_change_that_the_next_version_has_too_is_confirmed() -> None:
    series = wanted("a")

    def marks(amounts: list[float]) -> list[bool | None]:
        """Of each version, the newest first, whether its change is confirmed; None where there is none."""
        walk = [
            Version(str(number), (str(number - 1),) if number else (), {series: measured(amount)})
            for number, amount in enumerate(amounts)
        ]
        given = [value.judged for _, (value,) in joined(walk[::-1])]
        changed = [one.verdict is not None and one.verdict.decides for one in given]
        return [one.confirmed if is_one else None for one, is_one in zip(given, changed, strict=True)]

    assert marks([1.0, 1.0, 9.0]) == [False, None, None]
    assert marks([1.0, 1.0, 9.0, 9.0]) == [None, True, None, None]
    assert marks([1.0, 1.0, 9.0, 1.0, 1.0]) == [None, True, False, None, None]
    assert marks([1.0, 9.0, 9.0]) == [None, False, None]  # the version before was seen once


def test_no_version_waits_for_long() -> None:
    line = [Version(str(number), (str(number - 1),), {}) for number in range(100, 0, -1)]
    line[0] = line[0]._replace(values={wanted("a"): measured(1.0)})
    line[60] = line[60]._replace(values={wanted("a"): measured(2.0)})
    assert joined(line)[0][1][0].line
    assert joined(line, look_ahead=60)[0][1][0].line
    assert not joined(line, look_ahead=59)[0][1][0].line
    assert [version for version, _ in joined(line, look_ahead=59)] == line

    seen: list[str] = []

    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        seen.append(version.name)
        return version.name, version.parents

    next(LogValues(version_of, lambda version: version.values, DEFAULTS, 10).join(iter(line)))
    assert len(seen) == 11
