"""One history, one answer: what commands say of generated histories never contradicts.

Each history is stored for real and asked through the commands; one that shows a contradiction is made smaller
before it is told. `make test-all` asks about thousands.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable

import invariants
import pytest
import reports
from asking import Answers, Asked, Hold, Store, contradictions, log

from histories import Benchmark, History, Made, generated

SEEDS, STEP = 300, 10
"""Histories of the ordinary suite, and how many are one test, so that all processors have some."""
REPORTED = 10
"""One of so many is asked for reports, too."""
SHARING = 2
"""One hundred has so many at least whose versions share a measurement."""
MANY = 5000
SMALL = (3, 5)
"""Versions of the many small ones."""


def asked_in_turns(seed: int) -> Callable[[Asked], list[str]]:
    """Of each history something else is asked beside `log`, and of some the reports as well."""

    def asked_of(asked: Asked) -> list[str]:
        told = log(asked)
        found = invariants.EVERY[seed % len(invariants.EVERY)](asked, told)
        return [*found, *reports.reports(asked, told)] if seed % REPORTED == 0 else found

    return asked_of


def with_reports(asked: Asked) -> list[str]:
    return [*invariants.whole(asked), *reports.reports(asked, log(asked))]


@pytest.mark.parametrize("first", range(0, SEEDS, STEP))
def test_commands_agree(hold: Hold, first: int) -> None:
    for seed in range(first, first + STEP):
        hold(generated(seed, SMALL, most=2), asked_in_turns(seed))


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_commands_agree_where_versions_share_a_measurement(hold: Hold, first: int) -> None:
    sharing = [
        history
        for history in (generated(seed, (3, 6), most=2) for seed in range(first, first + 100))
        if any(made.measured not in (None, made.version) for made in history.profiles)
    ]
    for history in sharing[:SHARING]:
        hold(history, with_reports)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + MANY, STEP))
def test_commands_agree_on_thousands(hold: Hold, first: int) -> None:
    for seed in range(first, first + STEP):
        hold(generated(seed, (3, 12)), invariants.whole if seed % REPORTED else with_reports)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.usefixtures("asked_once")
def test_commands_agree_on_long_histories(stored: Store, seed: int) -> None:
    found = invariants.whole(stored(generated(seed, (40, 60))))
    assert not found, f"{len(found)} contradictions:\n" + "\n".join(found[:20])


def placed(asked: Asked) -> Answers:
    """What `log` says, with the places of versions in place of their checksums."""
    place = {checksum: str(number) for number, checksum in enumerate(asked.checksums)}
    return {
        key._replace(version=place[key.version]): said._replace(since=said.since and place[said.since])
        for key, said in log(asked).items()
    }


def unchanged(before: Answers, after: Answers) -> None:
    """All that was said is said again; there may be more."""
    assert not contradictions("before and after", before, after)


SAMPLE = range(8)
"""Histories of which the other invariants are looked at."""


def of(seed: int) -> History:
    return generated(seed, SMALL, most=2)


def test_the_order_of_storing_changes_nothing(stored: Store) -> None:
    for seed in SAMPLE:
        history = of(seed)
        before = placed(stored(history))
        shuffled = random.Random(seed).sample(history.profiles, len(history.profiles))
        unchanged(before, placed(stored(history._replace(profiles=tuple(shuffled)))))


def test_a_profile_in_two_of_the_same_rounds_changes_nothing(stored: Store) -> None:
    for seed in SAMPLE:
        values = [0.2 * 1.01 ** random.Random(seed).gauss(0, 1) for _ in range(24)]
        pair = [
            Made(place, 0, {"": tuple(values[12 * place : 12 * place + 12])}, place, 0, "c", 0, side)
            for place, side in enumerate(("base", "head"))
        ]
        halves = [
            one._replace(values={"": one.values[""][6 * half : 6 * half + 6]}, order=2 * one.order + half)
            for one in pair
            for half in (0, 1)
        ]
        history = History(seed, ((), (0,)), (Benchmark("time", "./app"),), tuple(pair))
        unchanged(placed(stored(history)), placed(stored(history._replace(profiles=tuple(halves)))))


def test_a_unit_and_a_factor_change_no_ratio(stored: Store) -> None:
    for seed in SAMPLE:
        history = of(seed)
        larger = tuple(
            one._replace(values={name: tuple(4 * value for value in own) for name, own in one.values.items()})
            for one in history.profiles
        )
        before, after = placed(stored(history)), placed(stored(history._replace(profiles=larger, unit="ms")))
        # Times are told in seconds.
        factors = {key: 0.004 if key.collector == "time" else 4 for key in before}
        unchanged(
            {
                key: one._replace(
                    value=factors[key] * one.value, low=one.low and factors[key] * one.low,
                    high=one.high and factors[key] * one.high, reason=None,
                )
                for key, one in before.items()
            },
            {key: one._replace(reason=None) for key, one in after.items()},
        )  # fmt: skip


def test_what_is_added_changes_nothing_else(stored: Store) -> None:
    """Another benchmark, and a version in between that nobody measured."""
    for seed in SAMPLE:
        history = of(seed)
        before = placed(stored(history))
        number, last = len(history.benchmarks), len(history.parents) - 1
        more = [Made(place, number, {"": (2.0, 2.1, 2.2)}, 10**7 + place) for place in (0, last)]
        added = history._replace(
            benchmarks=(*history.benchmarks, Benchmark("time", "./other")),
            profiles=(*history.profiles, *more),
            parents=(*history.parents, (last,)),
        )
        unchanged(before, placed(stored(added)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("threshold", "0.3"), ("severe", "0.02"), ("confidence", "0.6"), ("apart", "0.01"),
        ("exact_threshold", "0.6"),
    ],
)  # fmt: skip
def test_a_setting_changes_all_commands(stored: Store, key: str, value: str) -> None:
    settings = {f"degradation.hodges_lehmann_ratio.{key}": value}
    for seed in range(20):
        history = of(seed)
        asked = stored(history, settings=settings)
        assert not invariants.whole(asked)
        if placed(asked) != placed(stored(history)):
            return
    raise AssertionError("no history is told otherwise")


def test_equal_counts_did_not_change(stored: Store) -> None:
    counts = (7.0, 7.0, 9.0, 9.0, 0.0, 0.0, 1e12 + 1, 1e12 + 1)
    made = tuple(Made(place, 0, {"": (count,)}, place) for place, count in enumerate(counts))
    parents = tuple((place - 1,) if place else () for place in range(len(counts)))
    for benchmark in (Benchmark("memory", "./app"), Benchmark("instructions", "./app")):
        asked = stored(History(0, parents, (benchmark,), made))
        assert not invariants.whole(asked)
        for place, said in enumerate(said for _, said in sorted(placed(asked).items())):
            if place % 2:
                assert said[4:8] == (1.0, 1.0, 1.0, "NoChange"), said


def test_what_one_command_prints_the_others_take(stored: Store) -> None:
    for seed in (9, 30):
        found = invariants.names(stored(generated(seed, (4, 6))))
        assert not found, f"{seed}: {found}"


QUESTIONS = (
    ("log", "--json"), ("trend", "--json"), ("-v", "check", "all", "--json"), ("changes", "--json"),
    ("status", "--json"), ("trend",), ("changes", "--all"), ("check", "head"),
)  # fmt: skip


def answers(asked: Asked) -> dict[tuple[str, ...], str]:
    for command in (("check", "all"), ("changes",)):  # log tells what they have found
        asked.perun(*command)
    return {question: asked.perun(*question) for question in QUESTIONS}


@pytest.mark.parametrize("seed", [30, pytest.param(2, marks=pytest.mark.slow)])
def test_where_it_is_stored_makes_no_difference(stored: Store, seed: int) -> None:
    """After caches were deleted, after gc, in a clone that pulled the profiles, and in a database."""
    history = generated(seed, (6, 8))
    asked = stored(history)
    before = answers(asked)
    shutil.rmtree(asked.folder / ".perun" / "cache")
    assert answers(asked) == before
    asked.perun("gc")
    assert answers(asked) == before
    remote, clone = (asked.folder.with_name(name) for name in ("remote", "clone"))
    subprocess.run(["git", "clone", "-q", asked.folder, clone], check=True)
    asked.perun("remote", "add", "team", f"file:{remote}")
    asked.perun("push")
    cloned = Asked(clone, history, asked.checksums, asked.environ)
    cloned.perun("init")
    cloned.perun("remote", "add", "team", f"file:{remote}")
    cloned.perun("pull")
    assert answers(cloned) == before
    inside = stored(history, settings={"store.url": f"sqlite:///{asked.folder.with_name('store.sqlite')}"})
    assert answers(inside) == before
