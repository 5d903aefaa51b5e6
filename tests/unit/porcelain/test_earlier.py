"""The value of the same configuration in the nearest ancestor, in real git repositories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from perun.porcelain import earlier
from perun.porcelain.earlier import Earlier, Wanted
from perun.porcelain.init import init
from perun.porcelain.known import KnownFacts
from perun.porcelain.repository import Repository, open_repository
from perun.profile.factory import Profile
from perun.profile.head import Configuration
from perun.profile.measured import Measured
from perun.store.linking import link, unlink

HERE = {"architecture": "x86_64", "cpu": {"model": "M 1", "total": 4}}
CLASS = "M 1, 4 processors, x86_64"
WANTED = Wanted(Configuration("time", "./app", "", "in", ()), CLASS, "real time", "s")


class Project:
    """A git repository with Perun: registers profiles in versions, and asks for earlier values."""

    def __init__(self, git: Any) -> None:
        self.git = git
        init(git.path, os.environ)
        self.repo: Repository = open_repository(git.path, os.environ)
        self._number = 0

    def register(
        self,
        version: str,
        amounts: Iterable[float],
        *,
        args: str = "",
        machine: dict[str, Any] | None = HERE,
        incomplete: str = "",
        unit: str = "s",
    ) -> str:
        profile = Profile(
            {
                "header": {
                    **{"type": "time", "cmd": "./app", "args": args, "workload": "in"},
                    "units": {"time": unit},
                },
                "collector_info": {"name": "time", "params": {}},
                "postprocessors": [],
            }
        )
        if machine:
            profile["machine"] = machine
        if incomplete:
            profile["header"]["incomplete"] = incomplete
        profile.update_resources(
            [
                {"amount": amount, "order": n, "uid": "./app", "type": "time", "subtype": "real"}
                for n, amount in enumerate(amounts)
            ]
        )
        self._number += 1
        linked = link(self.repo.store, version, [(profile, f"{self._number}.perf", self._number)])
        return linked.added[0].checksum

    def nearest(self, version: str = "HEAD", wanted: Wanted = WANTED, **options: Any) -> Earlier | None:
        checksum = self.git.git("rev-parse", version)
        return earlier.nearest(self.repo, checksum, [wanted], **options).get(wanted)

    def forget(self) -> None:
        for path in (self.repo.store.root / "cache" / "facts").glob("*.json"):
            path.unlink()


@pytest.fixture
def project(git_repository: Callable[..., Any]) -> Project:
    return Project(git_repository(commits=4))


@pytest.fixture
def line(project: Project) -> list[str]:
    """The checksums of its commits, the oldest first."""
    return project.git.git("rev-list", "--reverse", "HEAD").split()


def test_the_nearest_ancestor_that_has_the_configuration(project: Project, line: list[str]) -> None:
    assert project.nearest() is None
    project.register(line[0], [1.0, 3.0])
    project.register(line[3], [9.0])
    assert project.nearest() == Earlier(Measured("real time", 2.0, "s", pytest.approx(2**0.5), 2), line[0])
    project.register(line[2], [5.0], args="-v")
    assert project.nearest().minor_version == line[0]
    project.register(line[1], [4.0])
    found = project.nearest()
    assert (found.measured.value, found.minor_version) == (4.0, line[1])
    other = WANTED._replace(configuration=WANTED.configuration._replace(args="-v"))
    assert project.nearest(wanted=other).minor_version == line[2]
    assert project.nearest("HEAD~3") is None
    several = earlier.nearest(project.repo, line[3], [WANTED, other])
    assert {one: found.minor_version for one, found in several.items()} == {WANTED: line[1], other: line[2]}


def test_profiles_of_one_version_are_one_sample(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0, 2.0])
    project.register(line[2], [3.0])
    assert project.nearest() == Earlier(Measured("real time", 2.0, "s", pytest.approx(1.0), 3), line[2])


def test_only_ancestors_count_where_branches_merge(project: Project, line: list[str]) -> None:
    git = project.git
    git.git("checkout", "-q", "-b", "side", line[1])
    side = git.commit("on the side")
    git.git("checkout", "-q", "main")
    later = git.commit("on main")
    project.register(line[0], [1.0])
    project.register(side, [2.0])
    # The side branch is newer than all of main but its last commit, and no ancestor of that.
    assert project.nearest(later).minor_version == line[0]
    git.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    assert project.nearest().minor_version == side
    project.register(later, [3.0])
    assert project.nearest().minor_version == later
    assert project.nearest(side).minor_version == line[0]


def test_machines_metrics_and_units_are_kept_apart(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0], machine={**HERE, "cpu": {"model": "M 2", "total": 4}})
    project.register(line[1], [1.0], machine=None)
    project.register(line[1], [1.0], unit="ms")
    assert project.nearest() is None
    assert project.nearest(wanted=WANTED._replace(machine="")).minor_version == line[1]
    assert project.nearest(wanted=WANTED._replace(machine="M 2, 4 processors, x86_64")) is not None
    assert project.nearest(wanted=WANTED._replace(unit="ms")).minor_version == line[1]
    assert project.nearest(wanted=WANTED._replace(metric="peak memory")) is None


def test_incomplete_profiles_are_not_compared_with(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0], incomplete="interrupted")
    assert project.nearest() is None
    project.register(line[1], [1.0])
    assert project.nearest().minor_version == line[1]
    project.register(line[2], [3.0])
    assert project.nearest().measured == Measured("real time", 3.0, "s", None, 1)


def test_what_was_removed_from_the_index_is_not_found(project: Project, line: list[str]) -> None:
    project.register(line[2], [1.0])
    unlink(project.repo.store, line[2], project.repo.store.indexes.read(line[2]))
    assert project.nearest() is None


def test_a_damaged_index_is_passed_over(project: Project, line: list[str]) -> None:
    project.register(line[1], [1.0])
    project.register(line[2], [2.0])
    path = project.repo.store.indexes.path(line[2])
    path.write_bytes(path.read_bytes()[:-5])
    assert project.nearest().minor_version == line[1]


def test_a_bounded_number_of_ancestors_is_looked_at(project: Project, line: list[str]) -> None:
    project.register(line[0], [1.0])
    assert project.nearest(most=3).minor_version == line[0]
    assert project.nearest(most=2) is None


def test_facts_that_are_not_cached_are_read_from_profiles(project: Project, line: list[str]) -> None:
    found = project.register(line[1], [1.0])
    facts = project.repo.store.facts
    project.forget()
    assert project.nearest(known=KnownFacts(project.repo, most=0)) is None
    assert facts.of_version(line[1]) == {}
    assert project.nearest().minor_version == line[1]
    assert facts.of_version(line[1])[found].measured.value == 1.0


def test_at_most_so_many_profiles_are_read(project: Project, line: list[str]) -> None:
    for number in range(5):
        project.register(line[1], [float(number)], args=str(number))
    project.forget()
    known = KnownFacts(project.repo, most=3)
    assert len(earlier.of_version(project.repo, line[1], known)) == 3
    assert known.unread == 2
    known = KnownFacts(project.repo, most=2)
    assert len(earlier.of_version(project.repo, line[1], known)) == 5
    assert known.unread == 0
    project.forget()
    known = KnownFacts(project.repo, most_bytes=10)
    assert (earlier.of_version(project.repo, line[1], known), known.unread) == ({}, 5)


def test_a_lost_profile_has_no_value(project: Project, line: list[str]) -> None:
    checksum = project.register(line[1], [1.0])
    project.forget()
    (project.repo.store.objects.root / checksum[:2] / checksum[2:]).unlink()
    assert project.nearest() is None


def test_before_the_first_commit_nothing_is_earlier(git_repository: Callable[..., Any]) -> None:
    repo = Project(git_repository("unborn")).repo
    assert earlier.nearest(repo, "HEAD", [WANTED]) == {}


def test_pending_facts_name_the_version(project: Project, line: list[str]) -> None:
    checksum = project.register(line[0], [1.0])
    profile = project.repo.store.objects.get(checksum)
    profile["origin"] = line[0]
    project.repo.store.pending.save(profile, "again")
    infos = project.repo.store.pending.list()
    facts = KnownFacts(project.repo).of_pending(infos)
    assert facts[infos[0]].origin == line[0]
    known = KnownFacts(project.repo, most=0)
    assert known.of_pending(infos) == facts
    assert known.unread == 0
