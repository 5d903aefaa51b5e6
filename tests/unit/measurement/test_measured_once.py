"""Versions with the same program and input share a measurement: what is said of them and of others."""

from __future__ import annotations

import random

import pytest

from generated_history import VERSIONS, points, told
from perun.measurement import present
from perun.measurement.comparison import Measurements, changes
from perun.measurement.difference import Basis, Rules
from perun.measurement.estimate import Kind, Point, Round, each_once, measured_once, sample_of
from perun.measurement.noise import learn, learn_numbers, shared
from perun.measurement.verdict import Verdict, along, compare, confirmed, never, seen_again
from perun.profile.changes import PerformanceChange as Change
from perun.profile.factory import Profile
from perun.profile.session import Session, Visit, is_shared, mark, pool, pooled, session_of

VERSION = "0123456789abcdef"


def visits(seed: int, measured: str = "", rounds: int = 5, level: float = 1.0, first: int = 0) -> Point:
    """A version in rounds of one session. :param measured: the version that was, where several share it."""
    chance = random.Random(seed)
    made = []
    for number in range(first, first + rounds):
        sample = sample_of([level * chance.gauss(1, 0.01) for _ in range(3)])
        assert sample is not None
        made.append(Round("s", number, {"": sample}, measured))
    return Point(tuple(made))


def verdict(old: Point, new: Point) -> Verdict:
    found = compare(old, new)
    assert found is not None
    return found


@pytest.mark.parametrize("level", [1.0, -1.0])
@pytest.mark.parametrize("kind", [Kind.TIMED, Kind.CALLS, Kind.COUNTED])
def test_two_versions_that_were_measured_once_did_not_change(level: float, kind: Kind) -> None:
    one = visits(1, VERSION, level=level)._replace(kind=kind)
    other = visits(1, VERSION, level=level)._replace(kind=kind)
    found = verdict(one, other)
    difference = found.difference
    assert (found.change, difference.basis, difference.shares) == (Change.NoChange, Basis.ONCE, VERSION)
    assert difference[:7] == (1.0,) * 7 and found.bounds == (1.0, 1.0) and found.decides
    assert found.reason == "the same program and input as 0123456789, measured once"
    assert present.mark(found) == "=" and present.style(found) == "dim"
    assert present.word(found) == f"No Change: {found.reason}"
    assert present.mark(verdict(one, visits(1, "", level=level)._replace(kind=kind))) != "="


def test_what_one_of_them_measured_beside_tells_nothing_else() -> None:
    both, own = visits(1, VERSION), visits(2, first=5)
    more = Point((*own.rounds, *both.rounds))
    assert measured_once(both, more) == measured_once(more, both) == VERSION
    other = Point((*both.rounds, *visits(3, first=10).rounds))
    assert measured_once(more, other) == measured_once(both, visits(1, "fedc")) == ""
    assert shared(both, visits(2))["s"] and not shared(both, both), "a visit is no pair with itself"
    beside = Point((*both.rounds, *visits(3, first=5).rounds))
    assert len(shared(more, beside)["s"]) == 5, "rounds of their own that visited both are"


def test_noise_is_learned_from_each_measurement_once() -> None:
    line = [visits(seed) for seed in range(4)] + [visits(4, VERSION)]
    copies = [*line, visits(4, VERSION), visits(4, VERSION), visits(5)]
    assert [id(one) for one in each_once(copies)] == [id(one) for one in (*line, copies[-1])]
    assert learn(copies) == learn([*line, copies[-1]])
    numbers = [one._replace(rounds=tuple(each._replace(session=str(place)) for each in one.rounds))
               for place, one in enumerate(visits(seed, level=-1.0) for seed in range(9))]  # fmt: skip
    twice = visits(9, VERSION, level=-1.0)
    assert learn_numbers([*numbers, twice, twice]) == learn_numbers([*numbers, twice])


def test_a_copy_confirms_nothing() -> None:
    def once(measured: str, level: float = 1.0) -> Point:
        own = visits(1, measured, rounds=1, level=level).rounds[0]
        return Point((own._replace(session=f"{level}"),))

    old, new = once(VERSION), visits(2, level=2.0)
    found = along(new, [old, old])
    assert found is not None
    found = found._replace(change=Change.SevereDegradation)
    assert not confirmed(found, old, new, [old, once(VERSION)])
    assert confirmed(found, old, new, [old, visits(3, rounds=1)])
    copy = verdict(new, new._replace(rounds=tuple(one._replace(measured=VERSION) for one in new.rounds)))
    assert seen_again(copy, never) and not seen_again(found, never)
    copy = verdict(old, once(VERSION))
    assert not seen_again(copy, never), "what shares a measurement has not seen it again"
    assert seen_again(copy, lambda: True)


@pytest.mark.parametrize("where", [0, 29, 30, 40])
def test_copies_are_one_point_of_a_change(where: int) -> None:
    """A change is found where it is without them, and dated from the last copy before it."""

    own = points([1.0] * 30 + [1.1] * (VERSIONS - 30), 3, sessions=2)
    plain = told(own)
    rounds = tuple(one._replace(measured=VERSION) for one in own[where].rounds)
    copied = [*own[:where], *[own[where]._replace(rounds=rounds)] * 3, *own[where + 1 :]]
    found = told(copied)
    (before,), (after,) = ([one for one in each.changes if one.steps] for each in (plain, found))
    moved = 2 * (where < 30)
    assert found.definite() == [30 + moved]
    assert int(after.since.checksum, 16) == 29 + moved
    assert after.steps[0].before.points == before.steps[0].before.points == 30


def test_a_profile_says_whose_measurement_it_is() -> None:
    def timed(session: Session) -> Profile:
        made = Profile({"header": {"type": "time", "units": {"time": "s"}}})
        made.update_resources([{"uid": "./a", "type": "time", "subtype": "real", "amount": 1.0, "order": 1}])
        mark(made, session)
        return made

    sessions = [
        Session("s", round=2, measured=VERSION, reason="all files are the same"),
        Session("s", round=3, measured=VERSION),
        Session("s", round=4),
    ]
    profiles = [timed(one) for one in sessions]
    assert [session_of(one) for one in profiles] == sessions
    noted = [one["header"]["session"] for one in profiles]
    assert noted[0]["shares"] == {"minor_version": VERSION, "reason": "all files are the same"}
    assert noted[1]["minor_version"] == VERSION and set(noted[2]) == {"id", "round"}
    assert [is_shared(one) for one in profiles] == [True, True, False]
    whole = pool(profiles)
    assert pooled(whole) == [Visit("s", 2, VERSION), Visit("s", 3, VERSION), Visit("s", 4)]
    assert is_shared(whole) and not is_shared(pool([profiles[2]]))
    old, new = (Measurements(pool(profiles[:2])) for _ in range(2))
    (change,) = changes(old, new, Rules())
    assert (change.result, change.rule) == (
        Change.NoChange, "the same program and input as 0123456789, measured once",
    )  # fmt: skip
