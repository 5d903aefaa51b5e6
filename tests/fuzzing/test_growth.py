"""Which part of an input the cost grows with, and in which order."""

from __future__ import annotations

import math

import counting_programs as programs
import pytest

from perun.fuzz import growth
from perun.fuzz.growth import Growth, RunInput
from perun.fuzz.patterns import candidates, name_of, runs, smallest_period
from perun.models.record import NoModel


def grown(data: bytes, program: RunInput, size: int = 3000) -> Growth:
    found = growth.find(data, program, max_size=size, hang_timeout=1, seconds=1e9)
    assert isinstance(found, Growth)
    return found


def test_it_says_quadratic_in_the_number_of_spaces() -> None:
    found = grown(b"int x;" + b" " * 80 + b"y", programs.trim)
    assert found.text.startswith("quadratic in the number of spaces: exponent 2.00")
    order = found.orders[0]
    assert order.low is not None
    assert order.high is not None
    assert order.low <= 2 <= order.high
    assert order.r_square is not None
    assert order.r_square > 0.999
    times = [point.times for point in found.points]
    assert times[:5] == [1, 2, 3, 4, 6]
    assert times[-1] > 1500
    assert [point.cost for point in found.points] == [
        programs.trim(found.pattern.input(number), 1).total for number in times
    ]


def test_it_says_exponential_and_from_where_on_the_program_hangs() -> None:
    found = grown(b"aaaa0aaaaaaa", programs.email)
    assert found.orders[0].name == "exponential"
    assert found.orders[0].b == pytest.approx(2, abs=0.05)
    assert found.ends == "hang"
    hangs = programs.email(found.pattern.input(found.ends_at), 1)
    assert hangs.outcome == "hang"
    assert "the program hangs from" in found.text
    assert len(found.points) >= 8


def test_different_words_matter_where_the_same_ones_do_not() -> None:
    words = b" ".join(b"w%d" % number for number in range(40))
    found = grown(words, programs.hash_table)
    assert found.orders[0].name == "quadratic"
    assert found.pattern.kind in ("different", "ascending", "descending")


def test_the_order_of_values_matters_where_it_does() -> None:
    assert grown(b"9 8 7 6 5 4 3 2 1 0", programs.insertion_sort).orders[0].name == "quadratic"
    sorted_already = growth.find(
        b"0 1 2 3 4 5", programs.insertion_sort, max_size=3000, hang_timeout=1, seconds=1e9
    )
    assert isinstance(sorted_already, Growth)
    assert sorted_already.pattern.kind == "descending" or len(sorted_already.pattern.unit) > 2


def test_what_is_steeper_is_named_where_something_linear_costs_more() -> None:
    """Each further 9 passes 400 zeros, which are there already; that is not what explodes."""
    found = grown(b"9 " * 400 + b"0 " * 400 + b"3 1 2\n", programs.insertion_sort, 2000)
    assert found.orders[0].name == "quadratic"


def test_a_part_is_repeated_alone_where_what_is_around_it_hides_the_growth() -> None:
    def quadratic(data: bytes, timeout: float, until: float = math.inf) -> programs.Ran:
        count = data.count(b"0")
        return programs.Ran("ok", 10 + count * count, 1e-7)

    found = grown(b"x" + b"0" * 90 + b"\n" + b"0 0" * 500, quadratic, 1600)
    assert found.orders[0].name == "quadratic"
    assert len(found.pattern.before) + len(found.pattern.after) < 2


def test_a_fault_by_depth_has_the_depth_at_which_it_begins() -> None:
    found = grown(b"((x))", programs.parser)
    assert found.ends == "fault"
    assert found.ends_at == 701
    assert found.text.endswith("; the program fails from 701 on")


def test_it_says_that_nothing_grows() -> None:
    found = growth.find(b"some words here", programs.indifferent, max_size=3000, hang_timeout=1, seconds=1e9)
    assert isinstance(found, NoModel)
    assert "nothing of the input" in found.reason
    empty = growth.find(b"", programs.trim, max_size=3000, hang_timeout=1, seconds=1e9)
    assert isinstance(empty, NoModel)


def test_the_answer_is_json_that_makes_the_inputs_again() -> None:
    import json

    found = grown(b"\xff" + b" " * 40, programs.trim)
    said = json.loads(json.dumps(found.as_json(), allow_nan=False))
    pattern = said["pattern"]
    made = pattern["before"] + pattern["unit"] * 5 + pattern["after"]
    assert made.encode("latin-1") == found.pattern.input(5)


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        (b" ", "spaces"),
        (b"\t", "tabs"),
        (b"a", 'letters "a"'),
        (b"7", 'digits "7"'),
        (b"(", 'characters "("'),
        (b"\xfe", "bytes 0xfe"),
        (b"ab", 'repetitions of "ab"'),
        (b"x y\n", 'lines "x y"'),
        (b"  ", "spaces, 2 at a time"),
        (b"\xff\x00", "repetitions of bytes ff 00"),
        ("ž".encode(), 'repetitions of "ž"'),
        (b"\x1b[1m", r'repetitions of "\\x1b[1m"'.replace("\\\\", "\\")),
    ],
)
def test_parts_are_named_as_people_read_them(unit: bytes, name: str) -> None:
    assert name_of(unit) == name


def test_repetitions_are_found_with_their_smallest_part() -> None:
    found = runs(b"xx" + b"abc" * 20 + b"  y")
    assert (found[0].start, found[0].period, found[0].times) == (2, 3, 20)
    assert smallest_period(b"abab") == 2
    assert smallest_period(b"aba") == 3


@pytest.mark.parametrize("data", [b"((1))", b"<a><a></a></a>", b"3 1 2 5 9", b"a", b"\0\0\0\0"])
def test_each_candidate_makes_longer_inputs_of_the_size_that_it_says(data: bytes) -> None:
    for pattern in candidates(data):
        sizes = [len(pattern.input(times)) for times in (1, 2, 5, 30)]
        assert sizes == sorted(set(sizes))
        largest = pattern.largest(1000)
        assert len(pattern.input(max(1, largest))) <= max(1000 * 2, sizes[0])
