"""What lists say of profiles beyond the index, from a cache."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from perun.measurement.headline import headline
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.facts import Fact
from perun.store.linking import link

MakeProfile = Callable[..., Profile]
CLASS = "M 1, 4 processors, x86_64"


@pytest.fixture
def made_here(make_profile: MakeProfile) -> Profile:
    profile = make_profile()
    profile["machine"] = {"architecture": "x86_64", "cpu": {"model": "M 1", "total": 4}}
    return profile


def test_pending_profiles_are_known_by_name_and_time(store: Store, made_here: Profile) -> None:
    first = store.pending.save(made_here, "a b")
    os.utime(first, (5, 5))
    store.facts.note_pending(first, made_here)
    assert store.facts.of_pending() == {("a b.perf", 5): Fact(CLASS, "", headline(made_here))}
    second = store.pending.save(made_here, "b")
    first.unlink()
    store.facts.note_pending(second, made_here)
    assert [name for name, _ in store.facts.of_pending()] == ["b.perf"]


def test_registered_profiles_are_known_by_checksum(
    store: Store, made_here: Profile, make_profile: MakeProfile, minor: Callable[..., str]
) -> None:
    first = link(store, minor(), [(made_here, "a.perf", 1)]).added[0].checksum
    second = link(store, minor(), [(make_profile(2.0), "b.perf", 1)]).added[0].checksum
    facts = store.facts.of_version(minor())
    assert set(facts) == {first, second}
    assert facts[first] == Fact(CLASS, "", headline(made_here))
    assert facts[second] == Fact("", "", headline(make_profile(2.0)))
    assert store.facts.of_version(minor("other")) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[", b"[]", b'{"format": 1, "facts": {}}', b'{"format": 5}',
        b'{"format": 5, "facts": {"a": [1, 2, null, ""]}}',
        b'{"format": 5, "facts": {"a": ["", "", "", ""]}}',
        b'{"format": 5, "facts": {"a": ["", "", ["time", "1", "s", null, 1, false], ""]}}',
    ],
)  # fmt: skip
def test_a_damaged_cache_says_nothing_and_is_replaced(
    store: Store, made_here: Profile, minor: Callable[..., str], content: bytes
) -> None:
    link(store, minor(), [(made_here, "a.perf", 1)])
    (path,) = (store.root / "cache").rglob(f"{minor()}.json")
    assert store.facts.damaged() == []
    path.write_bytes(content)
    assert store.facts.of_version(minor()) == {}
    assert store.facts.damaged() == [path]
    store.facts.note_registered(minor(), {"ab" * 20: made_here})
    assert list(store.facts.of_version(minor())) == ["ab" * 20]
    assert store.facts.damaged() == []
