"""Several profiles pooled into one: their resources, their sums by run, and what the header says."""

from typing import Any

import pytest

from perun.measurement.series import measurements
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending
from perun.profile.session import RUN, Session, are_pairs, count_of, mark, pool


def timed(*times: float, uid: str = "./a", **regions: Any) -> Profile:
    """What the collector of times makes of runs that take so many seconds, all of it user time."""
    made = Profile({"header": {"type": "time", "units": {"time": "s"}}, **regions})
    made.update_resources(
        {"uid": uid, "type": "time", "subtype": subtype, "amount": amount, "order": order}
        for order, time in enumerate(times, 1)
        for subtype, amount in (("real", time), ("user", time), ("sys", 0.0))
    )
    return made


def test_runs_follow_each_other() -> None:
    pooled = pool([timed(1, 2), timed(3), timed(4, 5, 6)])
    assert count_of(pooled) == 3
    assert measurements(pooled)["./a [cpu]"].values.tolist() == [1, 2, 3, 4, 5, 6]
    (real,) = (group for group in pooled.groups() if group.constants["subtype"] == "real")
    assert list(real.columns[RUN]) == [0, 0, 1, 2, 2, 2]


def test_the_profiles_stay_as_they_are() -> None:
    profiles = [timed(*range(1, 100), uid=uid) for uid in ("./a", "./b")]
    before = [dumps_pending(one) for one in profiles]
    pooled = pool(iter(profiles))
    assert [dumps_pending(one) for one in profiles] == before
    assert set(measurements(pooled)) == {
        f"{uid} [{clock}]" for uid in ("./a", "./b") for clock in ("real", "user", "sys", "cpu")
    }
    assert count_of(profiles[0]) == 1


def test_sums_are_those_of_each_run() -> None:
    def traced(*calls: float) -> Profile:
        made = Profile({"header": {"type": "mixed", "units": {"mixed(time delta)": "us"}}})
        made.update_resources(
            {"uid": "f", "type": "mixed", "subtype": "time delta", "amount": time, "call-order": order}
            for order, time in enumerate(calls)
        )
        return made

    found = measurements(pool([traced(1, 2, 3), traced(10, 20)]))
    assert found["f [total]"].values.tolist() == pytest.approx([6e-6, 30e-6])
    assert found["f [calls]"].values.tolist() == [3, 2]
    assert found["f"].values.tolist() == pytest.approx([1e-6, 2e-6, 3e-6, 10e-6, 20e-6])


def test_other_regions_are_those_of_the_last() -> None:
    pooled = pool([timed(1, machine={"cpu": 1}), timed(2, machine={"cpu": 2}, models=[{"uid": "./a"}])])
    assert pooled["machine"] == {"cpu": 2}
    assert pooled["models"] == []


def test_a_session_is_that_of_all() -> None:
    base, head = [timed(1), timed(2)], [timed(3), timed(4)]
    for side, profiles in (("base", base), ("head", head)):
        for one in profiles:
            mark(one, Session("s", side, runs_are_rounds=True))
    assert are_pairs(pool(base), pool(head))
    assert not are_pairs(pool([*base, timed(5)]), pool(head))
    assert not are_pairs(pool([timed(5), *base]), pool(head))


def test_nothing_to_pool() -> None:
    with pytest.raises(ValueError, match="nothing to pool"):
        pool([])
