"""What lists say of profiles beyond the index, from a cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perun.measurement.headline import headline
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.pending import link
from perun.store.summaries import Fact

MakeProfile = Callable[..., Profile]
CLASS = "M 1, 4 processors, x86_64"


@pytest.fixture
def made_here(make_profile: MakeProfile) -> Profile:
    profile = make_profile()
    profile["machine"] = {"architecture": "x86_64", "cpu": {"model": "M 1", "total": 4}}
    return profile


def test_registered_profiles_are_known_by_checksum(
    store: Store, made_here: Profile, make_profile: MakeProfile, minor: Callable[..., str]
) -> None:
    first = link(store, minor(), [(made_here, "a.perf", 1)]).added[0].checksum
    second = link(store, minor(), [(make_profile(2.0), "b.perf", 1)]).added[0].checksum
    facts = store.facts.of([second, "ab" * 20, first])
    assert list(facts) == [second, first]
    assert facts[first] == Fact(CLASS, "", headline(made_here))
    assert facts[second] == Fact("", "", headline(make_profile(2.0)))
