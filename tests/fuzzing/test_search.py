"""The arithmetic of the search: what the manual's sections 9.6 and 9.7 say, number by number."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from perun.core.errors import UsageError
from perun.fuzz.corpus import Compass, CorpusMember, Threshold, change_rate, choose, divide, score
from perun.fuzz.mutating import Mutation, SizeLimit, mixed, probabilistic, proportional, unitary
from perun.fuzz.patience import Base, BisectionClimb, Climb, Patience, RepetitionEdit, difference
from perun.fuzz.results import Point, TimeSeries
from perun.profile.changes import PerformanceChange


def same(value):
    return value


def test_similar_scores_are_in_one_interval_and_nothing_in_the_lowest() -> None:
    assert dict(divide([1, 1.1, 9, 10, 90, 100], same)) == {1: [1, 1.1], 3: [9, 10], 5: [90, 100]}
    assert dict(divide([0, 1], same)) == {1: [0], 5: [1]}


def test_the_best_interval_weighs_five_times_the_worst():
    chosen = Counter(choose([1, 100], same, Random(number)) for number in range(6000))
    assert chosen[100] / chosen[1] == pytest.approx(5, rel=0.15)


def test_members_of_one_score_are_alike():
    pair = [(1, "a"), (1, "b")]
    chosen = Counter(choose(pair, lambda one: one[0], Random(number)) for number in range(400))
    assert min(chosen.values()) > 150


@pytest.mark.parametrize(("successes", "number"), [(0, 1), (7, 8), (99, 100), (500, 100)])
def test_proportional(successes, number):
    assert proportional(successes, 1000, Random(0)) == number
    assert unitary(successes, 1000, Random(0)) == 1


@pytest.mark.parametrize(
    ("successes", "total", "share"), [(0, 0, 1), (0, 100, 0.1), (5, 100, 0.1), (60, 100, 0.6)]
)
def test_probabilistic_and_mixed(successes, total, share):
    rng = Random(2)
    rounds = 3000
    applied = sum(probabilistic(successes, total, rng) for _ in range(rounds))
    assert applied / rounds == pytest.approx(share, abs=0.03)
    many = [mixed(successes, total, rng) for _ in range(rounds)]
    assert set(many) <= {0, successes + 1}
    assert np.count_nonzero(many) / rounds == pytest.approx(share, abs=0.03)


def test_score_is_coverage_times_one_and_the_share_of_degradations():
    found = [PerformanceChange.Degradation, PerformanceChange.NoChange, PerformanceChange.MaybeDegradation]
    assert change_rate(found) == pytest.approx(1 / 3) and change_rate([]) == 0
    assert score(4.0, 0.5) == 6


def test_the_threshold_adapts():
    threshold = Threshold(1.5)
    assert threshold.is_exceeded(151, 100) and not threshold.is_exceeded(150, 100)
    threshold.adapt(0, 20, best=1.0)
    assert threshold.rate < 1.5
    threshold.adapt(20, 20, best=9.0)
    assert threshold.rate == pytest.approx(1.5)
    for _ in range(100):
        threshold.adapt(20, 20, best=9.0)
    assert threshold.rate == 9.0  # beyond, nothing would be found any more
    for _ in range(100):
        threshold.adapt(0, 20, best=9.0)
    assert 1 < threshold.rate < 1.02


@pytest.mark.parametrize(("limit", "bytes_"), [
    (SizeLimit(), 1_000_100),
    (SizeLimit(absolute=500), 500),
    (SizeLimit(absolute=50), 100),
    (SizeLimit(increase=7), 107),
    (SizeLimit(ratio=1.5), 150),
])  # fmt: skip
def test_sizes(limit, bytes_):
    limit.check()
    assert limit.of(100) == bytes_


def test_two_limits_of_the_size_contradict_each_other():
    with pytest.raises(UsageError, match="--max-size and --max-size-ratio limit the same size"):
        SizeLimit(absolute=3, ratio=2.0).check()


def test_a_count_changes_something_only_where_it_rises_by_a_twentieth() -> None:
    compass = Compass()
    compass.take(np.array([0, 2]), np.array([100, 1]), 7)
    assert compass.rises(np.array([105, 0, 1])).tolist() == []
    assert compass.rises(np.array([106, 1, 2])).tolist() == [0, 1, 2] and compass.favoured == [7]
    compass.close_base()
    compass.take(np.array([2]), np.array([50]), 8)
    assert compass.favoured == [7, 8] and compass.hottest(np.array([0, 2]), np.array([200, 50])) == (2, 50.0)
    compass = Compass()
    compass.take(np.array([1]), np.array([9]), 1)
    compass.take(np.array([1]), np.array([5]), 2)
    assert compass.best.tolist() == [0, 9] and compass.favoured == [1]


def mutation(data, parent=b"", seconds=0.001):
    return Mutation(data, CorpusMember(1, "p", parent, "", "s", (), seconds=seconds), ("T.1",))


def explored(halving, cost, least=1.0, most=10.0):
    """Run what the search asks for, with a function that tells seconds; the inputs and how long they took."""
    ran = []
    while len(ran) < 100:
        tried = halving.next(least, most)
        if tried is None:
            if not halving.deepen(most):
                break
            continue
        seconds = cost(tried.data)
        ran.append((tried.data, min(seconds, halving.limit)))
        if seconds < halving.limit:
            halving.ended(seconds)
        else:
            halving.stopped()
    return ran


@pytest.mark.parametrize("base", [1.2, 1.62, 2.0, 3.9])
def test_halving_finds_the_slowest_that_ends(base):
    """Whatever the cost of one letter more is, and however much too long the mutation was."""

    def cost(data):
        return 1e-4 * base ** data.count(b"a")

    halving = BisectionClimb(mutation(b"aaaa" + b"a" * 500 + b"!", b"aaaa!"), 1.0)
    ran = explored(halving, cost)
    assert halving.seconds > 10.0 / base / 1.001 and len(ran) < 40


def test_halving_goes_on_with_beginnings_where_the_parent_is_of_another_kind():
    def cost(data):
        return 1e-4 if b"@" in data else 1e-4 * 2 ** len(data)

    halving = BisectionClimb(mutation(b"a" * 60, b"a" * 59 + b"@"), 1.0)
    explored(halving, cost)
    assert halving.seconds > 5


def test_halving_gives_up_where_nothing_is_slow_and_ends():
    halving = BisectionClimb(mutation(b"a" * 600 + b"stop", b"a" * 500), 1.0)
    ran = explored(halving, lambda data: 1e9 if b"stop" in data else 1e-4)
    assert sum(seconds > 0.01 for _, seconds in ran) == 2  # the whole, for 4 and for 10 s
    assert halving.seconds < 0.01


def test_what_costs_much_at_once_is_given_more_time():
    def cost(data):
        return 5.0 if data.count(b"a") > 20 else 1e-3

    halving = BisectionClimb(mutation(b"a" * 60, b"a"), 1.0)
    explored(halving, cost)
    assert halving.seconds == 5.0


@pytest.mark.parametrize(("old", "new", "between"), [
    (b"aXb", b"aYYYYb", [b"aXb", b"aYXb", b"aYYXb", b"aYYYXb", b"aYYYYb"]),
    (b"aXXXb", b"ab", [b"aXXXb", b"aXXb", b"aXb", b"ab"]),
    (b"aa", b"aaaa", [b"aa", b"aaa", b"aaaa"]),
    (b"abc", b"xbz", [b"abc", b"xbc", b"xbc", b"xbz"]),
])  # fmt: skip
def test_inputs_between_two_others(old, new, between):
    path = difference(old, new)
    assert [path.at(step) for step in range(path.steps + 1)] == between


def test_what_was_stopped_waits_and_that_of_the_slowest_parent_comes_first():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    for number in range(100):
        patience.stopped(mutation(bytes([1]) * 40, seconds=0.001 * number), 1.0)
    assert len(patience) == 64
    first = [patience.next(1e6, Random(3)) for _ in range(9)]
    assert len({id(trial.search) for trial in first}) == 1  # one is brought to its end
    assert first[0].mutation.parent.seconds > 0.03


def test_each_level_of_time_has_its_share():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    for size in range(40, 70):
        patience.stopped(mutation(b"a" * size), 1.0)
    rng, given = Random(1), Counter()
    for _ in range(300):
        trial = patience.next(1e6, rng)
        if trial is None:
            break
        given[trial.seconds] += trial.seconds
        patience.learned(trial, None, trial.seconds)
    assert set(given) == {0.1, 0.4, 1.6, 6.4, 10.0}
    assert max(given.values()) < 3 * min(given.values())


def test_large_inputs_that_wait_do_not_fill_the_memory():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    for number in range(10):
        patience.stopped(mutation(bytes([number]) * (16 << 20)), 1.0)
    assert len(patience) == 4


def test_inputs_that_are_stopped_take_a_share_of_the_time_only():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    for seconds in range(1, 40):
        patience.stopped(mutation(bytes([seconds]) * 9), patience.limit)
        patience.adapt(float(seconds))
    assert patience.limit < 0.5
    trial = patience.next(60.0, Random(1))
    patience.learned(trial, None, 30.0)
    assert patience.next(60.0, Random(1)) is None and patience.next(200.0, Random(1)) is not None


def test_what_is_slow_enough_runs_no_more():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    patience.stopped(mutation(b"abcdef", b"abc"), 1.0)
    patience.learned(patience.next(100.0, Random(1)), 1000, 6.0)
    assert patience.next(100.0, Random(1)) is None and len(patience) == 0


def test_what_is_likeliest_a_hang_is_run_for_the_whole_time_early():
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    for size in range(1, 101):
        patience.stopped(mutation(b"a" * size), 1.0)
    assert patience.next_hang(30.0, Random(1)) is None  # no time for it yet
    found = patience.next_hang(40.0, Random(1))
    assert (len(found.mutation.data), found.seconds) == (100, 10.0)
    patience.stopped(mutation(b"b" * 5), 2.5)  # it was given more, and took that as well
    patience.stopped(mutation(b"c" * 9), 1.0)
    assert patience.next_hang(40.0, Random(1)) is None
    assert patience.next_hang(80.0, Random(1)).mutation.data == b"b" * 5


def test_the_way_to_a_hang_begins_at_the_slowest_that_takes_little():
    """Of those as slow, at the smallest. Each step is run as soon as there is time for it, and none is lost
    where there is not."""
    patience, rng = Patience(hang=10.0, slowest=0.001, size=100), Random(1)
    for content, lines, seconds in ((b"d" * 9, 700, 0.02), (b"a" * 9, 1800, 0.09), (b"b" * 8, 1700, 0.08)):
        patience.ended(mutation(content), lines, seconds)
    assert patience.next_hang(1e6, rng) is None  # far from a hang
    patience.ended(mutation(b"c" * 9), 20000, 2.0)
    assert patience.next_hang(2.0, rng) is None  # no time for it yet
    trial = patience.next_hang(1e6, rng)
    assert trial.mutation.data.strip(b"b") == b"" and trial.seconds == pytest.approx(8 * 0.08)
    patience.learned(trial, 1700 * 4, 0.6)
    jump = patience.next_hang(1e6, rng)
    assert (len(jump.mutation.data) > len(trial.mutation.data), jump.seconds) == (True, 10.0)
    patience.learned(jump, None, 10.0)
    assert patience.next_hang(37.0, rng) is None  # 11.2 s are more than its share


def test_where_one_way_to_a_hang_ends_another_begins():
    """At the slowest that takes little, at last at what takes much; and again where that is much slower."""
    patience, rng = Patience(hang=10.0, slowest=0.001, size=12), Random(1)
    for letter, lines, seconds in ((b"d", 700, 0.02), (b"a", 1800, 0.19), (b"c", 20000, 2.0)):
        patience.ended(mutation(letter + b"1234567"), lines, seconds)
    assert begun(patience, rng) == b"adc"
    patience.ended(mutation(b"e1234567"), 40000, 3.9)
    assert begun(patience, rng) == b""
    patience.ended(mutation(b"e123456"), 40000, 4.1)
    assert begun(patience, rng) == b"ade"


def test_no_way_to_a_hang_begins_at_an_input_that_fills_the_memory():
    patience = Patience(hang=10.0, slowest=0.001, size=100 << 20)
    patience.ended(mutation(bytes(2 << 20)), 20000, 2.0)
    assert patience.next_hang(1e6, Random(1)) is None
    patience.ended(mutation(bytes(1 << 20)), 20000, 2.0)
    assert patience.next_hang(1e6, Random(1)) is not None


def begun(patience, rng):
    """What the ways up begin at, of which none leads anywhere."""
    found = b""
    while (trial := patience.next_hang(1e6, rng)) is not None:
        found += trial.mutation.data[:1] * (trial.mutation.data[:1] not in found)
        patience.learned(trial, 1, 0.001)
    return found


def test_a_slow_program_or_parent_has_more_time() -> None:
    assert Patience(hang=100.0, slowest=2.0, size=100).limit == 40.0
    assert Patience(hang=5.0, slowest=2.0, size=100).limit == 5.0
    patience = Patience(hang=10.0, slowest=0.001, size=100)
    assert [patience.of(seconds) for seconds in (0.001, 0.5, 1.5, 9.0)] == [0.1, 2.0, 6.0, 10.0]


def test_quartiles_are_the_first_points_that_reach_them():
    points = [Point(float(second), second, value) for second, value in enumerate([1.0, 2.0, 3.0, 4.0, 5.0])]
    assert [one.value for one in TimeSeries(tuple(points)).quartiles()] == [2.0, 3.0, 4.0]
    assert TimeSeries().quartiles() == ()


# -- The way from a slow input to a hang -------------------------------------------------------------


HANG = 10.0


def climbed(data, cost, most=80, runs=60, number=1):
    """The runs on the way up, as inputs with their seconds, until one of them is a hang."""
    parent = CorpusMember(1, "p", b"", "", "s", ())
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


@pytest.mark.parametrize("base", [1.2, 1.62, 2.0, 3.9, 12.0])
def test_a_few_runs_bring_an_exponential_cost_to_a_hang(base):
    cost = letters(base)
    times = next(count for count in range(1, 80) if 1e-6 * base**count > 0.5)
    begun = b"<x>" + b"a" * times + b"!"
    for number in range(10):
        ran = climbed(begun, cost, most=len(begun) + 40, number=number)
        assert ran[-1][1] == HANG and sum(seconds > 1.0 for _, seconds in ran) <= 12, number
        assert all(len(data) <= len(begun) + 40 for data, _ in ran), number


def test_where_there_is_no_room_other_parts_are_replaced():
    begun = b"a" * 30 + b"." * 50
    for number in range(10):
        ran = climbed(begun, letters(1.62), number=number)
        assert ran[-1][1] == HANG and all(len(data) <= 80 for data, _ in ran), number


def test_it_ends_where_nothing_costs_more_or_there_is_no_room_for_more() -> None:
    ran = climbed(b"some text", lambda data: 0.5)
    assert 10 < len(ran) <= 40 and len({data for data, _ in ran}) == len(ran)
    assert len(climbed(b"a" * 20, lambda data: 1e-3 * len(data), most=20)) <= 40


@pytest.mark.parametrize(("edit", "times", "made"), [
    (RepetitionEdit(1, 2, over=False), 2, b"abbbcdef"),
    (RepetitionEdit(1, 2, over=True), 2, b"abbbef"),
    (RepetitionEdit(0, 2, over=False), 5, b"ababababab"),
    (RepetitionEdit(0, 6, over=True), 1, b"abcdefabcd"),
])  # fmt: skip
def test_a_part_is_repeated_behind_itself(edit, times, made):
    assert edit.apply(b"abcdef", times, 10) == made


def test_what_is_repeated_again_replaces_nothing_of_what_was():
    edit = RepetitionEdit(0, 1, over=True)
    once = edit.apply(b"abcdefgh", 2, 10)
    assert once == b"aaadefgh" and edit.moved(2).apply(once, 2, 10) == b"aaaaafgh"
