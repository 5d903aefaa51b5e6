import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from perun.core.errors import DamagedStore
from perun.measurement.headline import headline
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.store import Store
from perun.store.changes import ChangeRecord
from perun.store.index import IndexEntry
from perun.store.pending import link
from perun.store.summaries import ProfileSummary, Summary

MakeProfile = Callable[..., Profile]
Minor = Callable[..., str]


def entry(number: int, type_: str = "time") -> IndexEntry:
    return IndexEntry(number, "ab" * 20, f"{number}.perf", ProfileHeader(type_, "ls", collector="time"))


def found(*changes: PerformanceChange) -> list[ChangeRecord]:
    infos = (DegradationInfo(change, f"f{number}", "1", "2") for number, change in enumerate(changes))
    return [ChangeRecord(info, "0" * 40, "ls") for info in infos]


def kept(store: Store) -> set[str]:
    """The versions that the cache has numbers of."""
    return set(store.cache.all("summaries", bytes))


def spoil(store: Store, minor: str, change: Callable[[list[Any]], object]) -> None:
    """Let the cache have other numbers of the version than there are."""
    content = store.cache.all("summaries", json.loads)[minor]
    change(content)
    store.cache.put("summaries", {minor: json.dumps(content).encode()})


def fill(store: Store, minor: Minor) -> None:
    store.indexes.add(minor(1), [entry(1), entry(2), entry(3, "memory"), entry(4, "energy")])
    store.changes.merge(minor(1), found(*PerformanceChange))
    store.changes.merge(minor(2), found(PerformanceChange.MaybeOptimization))
    store.indexes.add(minor(3), [entry(1)])


def summaries_of(store: Store, minors: Iterable[str]) -> dict[str, Summary]:
    snapshot = store.summaries.load()
    found = {minor: snapshot.get(minor) for minor in minors}
    return {minor: summary for minor, summary in found.items() if summary is not None}


def expect(store: Store, minor: Minor) -> None:
    one = Summary({"time": 2, "memory": 1, "energy": 1}, 4, 4)
    assert store.summaries.load().get(minor(1)) == one and one.total == 4
    minors = [minor(number) for number in range(1, 6)]
    assert summaries_of(store, [*minors, "HEAD", ""]) == {
        minor(1): one, minor(2): Summary({}, 0, 1), minor(3): Summary({"time": 1}, 0, 0)
    }  # fmt: skip


def test_profiles_and_changes_are_counted_without_a_cache(store: Store, minor: Minor) -> None:
    fill(store, minor)
    expect(store, minor)
    assert not store.cache.path.exists()


def test_what_is_kept_is_believed(store: Store, minor: Minor) -> None:
    fill(store, minor)
    store.summaries.update([minor(3)])
    assert kept(store) == {minor(3)}
    snapshot = store.summaries.load()
    for number in range(1, 6):
        snapshot.get(minor(number))
    snapshot.keep()
    assert kept(store) == {minor(number) for number in (1, 2, 3)}
    expect(store, minor)
    spoil(store, minor(3), lambda content: content[4].update(time=99))
    assert store.summaries.load().get(minor(3)) == Summary({"time": 99}, 0, 0)
    store.summaries.update([minor(3)])
    expect(store, minor)


def test_what_changed_after_the_cache_is_counted_anew(store: Store, minor: Minor) -> None:
    fill(store, minor)
    store.summaries.rebuild()
    store.indexes.remove(minor(1), [entry(1)])
    store.changes.merge(minor(3), found(PerformanceChange.TotalDegradation))
    store.changes.path(minor(2)).unlink()
    minors = [minor(number) for number in range(1, 4)]
    expected = {
        minor(1): Summary({"time": 1, "memory": 1, "energy": 1}, 4, 4),
        minor(3): Summary({"time": 1}, 1, 0),
    }
    assert summaries_of(store, minors) == expected
    store.summaries.update(minors)
    assert summaries_of(store, minors) == expected and kept(store) == set(expected)


def test_damage_is_reported_to_readers_but_stops_no_writer(store: Store, minor: Minor, make_profile) -> None:
    store.indexes.add(minor(1), [entry(1)])
    store.indexes.path(minor(1)).write_bytes(b"pidx damaged")
    link(store, minor(2), [(make_profile(), "a.perf", 1)])
    assert store.summaries.load().get(minor(2)) == Summary({"time": 1}, 0, 0)
    with pytest.raises(DamagedStore, match=str(store.indexes.path(minor(1)))):
        store.summaries.load().get(minor(1))


def test_indexes_of_old_releases_are_counted(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile(type_="memory"))
    path = store.indexes.path(minor())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"pidx\1\0\0\0\1\0\0\0\5\0\0\0" + bytes.fromhex(checksum) + b"x.perf\0")
    assert store.summaries.load().get(minor()) == Summary({"memory": 1}, 0, 0)


def test_a_long_history_with_few_profiles(store: Store, minor: Minor) -> None:
    for number in range(20):
        store.indexes.add(minor(number), [entry(1)])
    store.summaries.rebuild()
    history = [hashlib.sha1(b"%d" % number).hexdigest() for number in range(100_000)] + [minor(3)]
    snapshot = store.summaries.load()
    assert sum(snapshot.get(name) is not None for name in history) == 1


def test_wrong_numbers_are_found_and_counted_anew(store: Store, minor: Minor) -> None:
    fill(store, minor)
    assert store.summaries.wrong() == []
    store.summaries.rebuild()
    assert store.summaries.wrong() == []
    spoil(store, minor(1), lambda content: content.__setitem__(5, 9))
    spoil(store, minor(3), lambda content: content[4].clear())
    assert set(store.summaries.wrong()) == {minor(1), minor(3)}
    store.indexes.remove(minor(3), [entry(1)])
    assert store.summaries.wrong() == [minor(1)]  # the index has changed, so nobody believes the number
    store.indexes.add(minor(3), [entry(1)])
    store.summaries.rebuild()
    assert store.summaries.wrong() == []
    expect(store, minor)


# -- What lists say of profiles beyond the index, from a cache ---------------------------------------


CLASS = "M 1, 4 processors, x86_64"


@pytest.fixture
def made_here(make_profile: MakeProfile) -> Profile:
    profile = make_profile()
    profile["machine"] = {"architecture": "x86_64", "cpu": {"model": "M 1", "total": 4}}
    return profile


def test_registered_profiles_are_known_by_checksum(store: Store, made_here, make_profile, minor) -> None:
    first = link(store, minor(), [(made_here, "a.perf", 1)]).added[0].checksum
    second = link(store, minor(), [(make_profile(2.0), "b.perf", 1)]).added[0].checksum
    facts = store.profile_summaries.of([second, "ab" * 20, first])
    assert list(facts) == [second, first] and facts[first] == ProfileSummary(CLASS, "", headline(made_here))
    assert facts[second] == ProfileSummary("", "", headline(make_profile(2.0)))
