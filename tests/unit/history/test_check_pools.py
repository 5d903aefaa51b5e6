"""Which profiles of a version a check takes, and which of them it pools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from perun.history.check import pools
from perun.history.check.baselines import Baselines, newest_first
from perun.history.check.pools import Pools, Profiles
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.profile.incomplete import interrupted, mark
from perun.profile.session import count_of
from perun.repository import lookup
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.store.pending import link

Register = Callable[..., list[ProfileInfo]]


def made(amount: float, workload: str = "", incomplete: bool = False, machine: str = "") -> Profile:
    header = {"type": "time", "cmd": "app", "args": "", "workload": workload, "units": {"time": "ms"}}
    profile = Profile({"header": header, "collector_info": {"name": "time", "params": {}}})
    profile.update_resources([{"uid": "f", "type": "time", "amount": amount}])
    if incomplete:
        mark(profile, [interrupted(1.0)])
    if machine:
        profile["machine"] = {"architecture": "x86_64", "cpu": {"model": machine, "total": 4}}
    return profile


@pytest.fixture
def repo(git_repository: Callable[..., Any]) -> Repository:
    git = git_repository(commits=1)
    init(git.path, os.environ)
    return open_repository(git.path, os.environ)


@pytest.fixture
def register(repo: Repository) -> Register:
    """Register profiles in the only version, each newer than those before; all of it, the newest first."""

    def make(*profiles: Profile) -> list[ProfileInfo]:
        head = repo.vcs.get_minor_head()
        link(repo.store, head, [(one, f"{time}.perf", time) for time, one in enumerate(profiles, 1)])
        infos = lookup.registered(repo, head)
        return sorted(infos, key=lambda info: info.time, reverse=True)

    return make


def unchanged(profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
    return profile


def amounts(profile: Profile) -> list[float]:
    return [resource["amount"] for _, resource in profile.all_resources()]


def test_alike_profiles_are_pooled_once(repo: Repository, register: Register) -> None:
    newest, *others = register(*map(made, (1.0, 2.0, 3.0)))
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [1.0, 2.0, 3.0]
    assert pooling.pooled(newest, others) is pooled
    alone = pooling.pooled(newest, [])
    assert (amounts(alone), count_of(alone)) == ([3.0], 1)
    assert pooling.notes(pooled, alone) == ("pooled profiles: 3 of the baseline, 1 of the target",)
    assert pooling.notes(alone, alone) == ()


def test_what_was_measured_otherwise_is_left_out(repo: Repository, register: Register) -> None:
    newest, *others = register(
        made(1.0, machine="fast"), made(2.0, machine="slow"), made(3.0, incomplete=True, machine="fast"),
        made(4.0, machine="fast"),
    )  # fmt: skip
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [1.0, 4.0]
    assert pooling.notes(pooled, pooled)[1] == "2 older profiles not pooled: incomplete, processor differs"
    # One that is incomplete itself is compared with nothing, so nothing is pooled with it.
    assert amounts(pooling.pooled(others[0], others[1:])) == [3.0]


@pytest.mark.parametrize("room", [0, 1])
def test_the_newest_are_pooled_where_there_are_too_many(
    repo: Repository, register: Register, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    newest, *others = register(*map(made, (1.0, 2.0, 3.0, 4.0)))
    size = Profiles(repo).read(newest.checksum)[0]
    monkeypatch.setattr(pools, "POOLED_BYTES", 2 * size - 1 + room)
    pooling = Pools(Profiles(repo), unchanged)
    pooled = pooling.pooled(newest, others)
    assert amounts(pooled) == [2.0, 3.0, 4.0][1 - room :]
    noun = "profile" if room else "profiles"
    assert pooling.notes(pooled, pooled)[1] == f"{2 - room} older {noun} not pooled: too many"
    monkeypatch.undo()
    monkeypatch.setattr(pools, "POOLED_PROFILES", 2 + room)
    assert amounts(Pools(Profiles(repo), unchanged).pooled(newest, others)) == [2.0, 3.0, 4.0][1 - room :]


def test_models_are_made_of_the_pool_by_the_postprocessors_of_the_newest(
    repo: Repository, register: Register
) -> None:
    profiles = [made(1.0), made(2.0)]
    units = [{"name": "normalizer", "params": {}}, {"name": "some-model", "params": {"a": 1}}]
    for one in profiles:
        one["postprocessors"] = units
        one["models"] = [{"uid": "f", "model": "linear"}]
    newest, *others = register(*profiles)
    calls: list[tuple[str, Mapping[str, Any], int]] = []

    def postprocess(profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
        calls.append((name, params, count_of(profile)))
        profile["models"] = [{"uid": "f", "model": "of all"}]
        return profile

    pooled = Pools(Profiles(repo), postprocess).pooled(newest, others)
    assert calls == [("some-model", {"a": 1}, 2)]
    assert pooled["models"] == [{"uid": "f", "model": "of all"}]
    assert pooled["postprocessors"] == units


def test_what_was_used_last_stays_in_memory(
    repo: Repository, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "KEPT_PROFILES", 2)
    first, second, third = (info.checksum for info in register(*map(made, (1.0, 2.0, 3.0))))
    kept = Profiles(repo)
    for checksum in (first, second, first, third):
        kept.get(checksum)
    assert kept.known(first) is not None
    assert kept.known(second) is None
    assert kept.known(third) is not None


def test_an_incomplete_profile_counts_until_it_was_measured_again(
    repo: Repository, register: Register
) -> None:
    register(
        made(1.0, "a", incomplete=True), made(2.0, "a"), made(3.0, "a"), made(4.0, "b"),
        made(5.0, "c", incomplete=True),
    )  # fmt: skip
    found = Baselines(repo, force=False).profiles(repo.vcs.get_minor_head())
    expected = [("a", 2), ("a", 3), ("b", 4), ("c", 5)]
    assert sorted((info.head.workload, info.time) for info in found) == expected
    pools_of = newest_first((info.head.workload, info) for info in found)
    assert {key: [info.time for info in several] for key, several in pools_of.items()} == {
        "a": [3, 2], "b": [4], "c": [5]
    }  # fmt: skip


def test_the_newest_of_one_second_is_the_one_that_was_listed_last() -> None:
    infos = [
        ProfileInfo(name, name, ProfileHeader(), seconds) for name, seconds in (("z", 1), ("b", 2), ("a", 2))
    ]
    assert [info.source for info in newest_first(("", info) for info in infos)[""]] == ["a", "b", "z"]


def test_of_two_profiles_the_incomplete_one_is_not_taken(repo: Repository, register: Register) -> None:
    register(made(1.0), made(2.0, incomplete=True))
    found = Baselines(repo, force=False).profiles(repo.vcs.get_minor_head())
    assert [info.time for info in found] == [1]
