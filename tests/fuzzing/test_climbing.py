"""The way from a slow input to a hang."""

from __future__ import annotations

from random import Random

import pytest

from perun.fuzz.climbing import Base, Climb, Edit
from perun.fuzz.corpus import Member
from perun.fuzz.mutating import Mutation

HANG = 10.0


def climbed(data, cost, most=80, runs=60, number=1):
    """The runs on the way up, as inputs with their seconds, until one of them is a hang."""
    parent = Member(1, "p", b"", "", "s", ())
    base = Base(Mutation(data, parent, ("T.1",)), int(1e6 * cost(data)), cost(data))
    climb = Climb(base, 0.2, most)
    ran = []
    rng = Random(number)
    while len(ran) < runs:
        tried = climb.next(HANG, rng)
        if tried is None:
            break
        seconds = cost(tried.data)
        ran.append((tried.data, min(seconds, climb.limit)))
        if seconds < climb.limit:
            climb.ended(int(1e6 * seconds), seconds)
        elif climb.limit == HANG:
            break
        else:
            climb.stopped(HANG)
    return ran


def letters(base):
    return lambda data: 1e-6 * base ** data.split(b"\n")[0].count(b"a")


@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("base", [1.2, 1.62, 2.0, 3.9, 12.0])
def test_a_few_runs_bring_an_exponential_cost_to_a_hang(base, number):
    cost = letters(base)
    times = next(count for count in range(1, 80) if 1e-6 * base**count > 0.5)
    begun = b"<x>" + b"a" * times + b"!"
    ran = climbed(begun, cost, most=len(begun) + 40, number=number)
    assert ran[-1][1] == HANG
    assert sum(seconds > 1.0 for _, seconds in ran) <= 12
    assert all(len(data) <= len(begun) + 40 for data, _ in ran)


@pytest.mark.parametrize("number", range(10))
def test_where_there_is_no_room_other_parts_are_replaced(number):
    begun = b"a" * 30 + b"." * 50
    ran = climbed(begun, letters(1.62), number=number)
    assert ran[-1][1] == HANG
    assert all(len(data) <= 80 for data, _ in ran)


def test_it_ends_where_nothing_that_is_repeated_costs_more():
    ran = climbed(b"some text", lambda data: 0.5)
    assert 10 < len(ran) <= 40
    assert len({data for data, _ in ran}) == len(ran)


def test_it_ends_where_there_is_no_room_for_more():
    ran = climbed(b"a" * 20, lambda data: 1e-3 * len(data), most=20)
    assert len(ran) <= 40


@pytest.mark.parametrize(
    ("edit", "times", "made"),
    [
        (Edit(1, 2, over=False), 2, b"abbbcdef"),
        (Edit(1, 2, over=True), 2, b"abbbef"),
        (Edit(0, 2, over=False), 5, b"ababababab"),
        (Edit(0, 6, over=True), 1, b"abcdefabcd"),
    ],
)
def test_a_part_is_repeated_behind_itself(edit, times, made):
    assert edit.apply(b"abcdef", times, 10) == made


def test_what_is_repeated_again_replaces_nothing_of_what_was():
    edit = Edit(0, 1, over=True)
    once = edit.apply(b"abcdefgh", 2, 10)
    assert once == b"aaadefgh"
    assert edit.moved(2).apply(once, 2, 10) == b"aaaaafgh"
