"""Limits by accounting: what a call has to wait for, and when one may hold no more."""

import errno
import threading

import pytest

from perun.island.limits import SECOND, Bucket, Limit, Limits, WrongLimit, limit_of


class Clock:
    """A clock that goes on where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 5 * SECOND
        self.slept: list[float] = []

    def read(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * SECOND)


def limits(clock: Clock, *texts: str, burst: float = 0.0) -> Limits:
    return Limits([limit_of(text) for text in texts], burst, clock.read, clock.sleep)


def took(clock: Clock, held: Limits, resource: str, amount: int) -> float:
    """Seconds that a call takes which does nothing but wait."""
    before = clock.now
    held.wait(held.spend(resource, amount))
    return (clock.now - before) / SECOND


@pytest.mark.parametrize(("burst", "seconds"), [(0.0, 2.0), (1.0, 1.0), (0.5, 1.5), (2.0, 0.0), (3.0, 0.0)])
def test_20_bytes_at_10_bytes_per_second(burst: float, seconds: float) -> None:
    clock = Clock()
    assert took(clock, limits(clock, "filewrite=10", burst=burst), "filewrite", 20) == seconds


def test_calls_one_after_the_other_take_as_long_as_one_with_all() -> None:
    clock = Clock()
    held = limits(clock, "filewrite=10", burst=1.0)
    assert [took(clock, held, "filewrite", 5) for _ in range(6)] == [0, 0, 0.5, 0.5, 0.5, 0.5]


def test_what_was_not_used_is_no_credit_beyond_the_burst() -> None:
    clock = Clock()
    held = limits(clock, "filewrite=10", burst=1.0)
    took(clock, held, "filewrite", 10)
    clock.now += 100 * SECOND
    assert took(clock, held, "filewrite", 30) == 2.0


def test_callers_at_one_time_wait_one_after_the_other() -> None:
    clock = Clock()
    held = limits(clock, "fileread=10")
    assert [held.spend("fileread", 10) - clock.now for _ in range(3)] == [1 * SECOND, 2 * SECOND, 3 * SECOND]


def test_a_wait_that_is_interrupted_early_goes_on_to_its_deadline() -> None:
    clock = Clock()
    held = Limits([Limit("filewrite", 10)], 0.0, clock.read, lambda seconds: clock.sleep(seconds / 2 + 1e-9))
    assert 2.0 <= took(clock, held, "filewrite", 20) < 2.001


def test_other_callers_book_while_one_waits() -> None:
    held: Limits
    booked: list[int] = []

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        other = threading.Thread(target=lambda: booked.append(held.spend("filewrite", 1)))
        other.start()
        other.join(60)

    clock = Clock()
    held = Limits([Limit("filewrite", 10)], 0.0, clock.read, sleep)
    held.wait(held.spend("filewrite", 10))
    assert len(booked) == 1


def test_a_group_is_one_bucket_for_all_its_resources() -> None:
    clock = Clock()
    held = limits(clock, "netsend=10", "udpsend=5")
    assert took(clock, held, "tcpsend", 10) == 1.0
    assert took(clock, held, "udpsend", 10) == 2.0, "its own limit is lower"
    assert took(clock, held, "unixsend", 10) == 1.0 and took(clock, held, "tcprecv", 10) == 0.0


def test_what_is_not_limited_does_not_wait() -> None:
    clock = Clock()
    held = limits(clock, "filewrite=10")
    assert held.spend("fileread", 1 << 40) == 0 and held.spend("filewrite", 0) == 0
    held.acquire("filesopened")
    held.release("filesopened")
    assert (held.for_resource("filewrite"), held.for_resource("fileread")) == (True, False)
    assert held and not Limits()


def test_a_count_is_what_is_held_at_one_time() -> None:
    held = Limits.parse(["filesopened=5"])
    for _ in range(5):
        held.acquire("filesopened")
    with pytest.raises(OSError) as refused:
        held.acquire("filesopened")
    assert refused.value.errno == errno.EMFILE
    assert refused.value.strerror == "Too many open files: limit filesopened=5"
    held.release("filesopened")
    held.acquire("filesopened")
    held = Limits.parse(["events=0"])
    with pytest.raises(RuntimeError, match="can't start new thread: limit events=0"):
        held.acquire("events")
    held = Limits.parse(["insockets=1"])
    held.release("insockets")
    held.acquire("insockets")
    with pytest.raises(OSError, match="accepted connections"):
        held.acquire("insockets")


def test_the_share_of_a_processor_is_not_held_in_the_process() -> None:
    held = Limits.parse(["cpu=.25"])
    assert held.cpu == 0.25 and not held


@pytest.mark.parametrize(("text", "said"), [
    ("filewrite", "has no value: write it as NAME=VALUE"),
    ("diskwrite=10", "there is no limit 'diskwrite'; there are: cpu, netsend"),
    ("sleep=1", "there is no limit 'sleep'"),
    ("filewrite=ten", "bytes per second, more than 0, not 'ten'"),
    ("filewrite=0", "more than 0"),
    ("filewrite=-1", "more than 0"),
    ("filewrite=nan", "more than 0"),
    ("filewrite=inf", "more than 0"),
    ("filesopened=1.5", "is a count, a whole number"),
    ("filesopened=-1", "is a count"),
    ("cpu=0", "a share of one processor, more than 0"),
])  # fmt: skip
def test_a_limit_that_means_nothing_says_why(text: str, said: str) -> None:
    with pytest.raises(WrongLimit, match=said):
        limit_of(text)


@pytest.mark.parametrize("burst", [-1.0, float("nan"), float("inf")])
def test_a_burst_is_a_number_of_seconds(burst: float) -> None:
    with pytest.raises(WrongLimit, match="the burst is a number of seconds"):
        Limits.parse([], burst)


def test_of_two_limits_with_one_name_the_later_counts() -> None:
    clock = Clock()
    assert took(clock, limits(clock, "random=1", "random=10"), "random", 10) == 1.0


def test_a_bucket_empties_while_nobody_asks() -> None:
    bucket = Bucket(2.0)
    assert bucket.spend(4, 0) == 2 * SECOND and bucket.spend(2, 1 * SECOND) == 3 * SECOND
    assert bucket.spend(2, 10 * SECOND) == 11 * SECOND
