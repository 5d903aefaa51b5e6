"""The comparison of two islands: what is counted, what is timed, single runs, and what is too small."""

import pytest

from islands import profile, real, usage
from perun.check.island_usage import IslandUsage
from perun.core.errors import ProfileError
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile

ALL = "python3 prog.py"
OUT = "/tmp/out.txt#1"


def found(baseline: Profile, target: Profile) -> dict[str, DegradationInfo]:
    check = IslandUsage()
    return {one.location: one for one in check.compare(baseline, target, check.Params(), CheckContext())}


def runs(*seconds: float, amount: float = 800, calls: int = 100) -> Profile:
    resources = []
    for order, time in enumerate(seconds, 1):
        resources += [
            real(1 + time, order),
            usage("filewrite", amount, uid=OUT, calls=calls, seconds=time, order=order),
            usage("user-thread", 1.0 + order * 1e-3, seconds=1.0 + order * 1e-3, order=order),
        ]
    return profile(resources)


def test_equal_amounts_are_no_change() -> None:
    changes = found(runs(0.2), runs(0.2))
    assert changes[f"{OUT} [filewrite]"].result is PerformanceChange.NoChange
    assert {one.result for one in changes.values()} == {PerformanceChange.NoChange}


def test_what_is_written_more_is_named() -> None:
    changes = found(runs(0.2), runs(0.2, amount=1600, calls=200))
    for location in (f"{ALL} [filewrite]", f"{OUT} [filewrite]", f"{ALL} [filewrite calls]"):
        assert changes[location].result in (
            PerformanceChange.Degradation,
            PerformanceChange.SevereDegradation,
        )
        assert changes[location].rate_degradation == 2
    assert (changes[f"{OUT} [filewrite]"].from_baseline, changes[f"{OUT} [filewrite]"].to_target) == (
        "800B",
        "1600B",
    )


def test_a_new_kind_of_use_is_a_degradation() -> None:
    more = runs(0.2)
    more.update_resources(
        [usage("fileread", 4096, uid="/etc/hosts#1", calls=1, seconds=0.1)], columns=("calls", "seconds")
    )
    changes = found(runs(0.2), more)
    assert changes[f"{ALL} [fileread]"].result in (
        PerformanceChange.Degradation,
        PerformanceChange.SevereDegradation,
    )
    assert changes["/etc/hosts#1 [fileread]"].result is PerformanceChange.NotInBaseline
    fewer = found(more, runs(0.2))
    assert fewer["/etc/hosts#1 [fileread]"].result is PerformanceChange.NotInTarget
    assert fewer[f"{ALL} [fileread]"].result in (
        PerformanceChange.Optimization,
        PerformanceChange.SevereOptimization,
    )


@pytest.mark.parametrize(("before", "after", "result"), [
    (0.2, 0.39, None),
    (0.2, 0.5, PerformanceChange.MaybeDegradation),
    (0.5, 0.2, PerformanceChange.MaybeOptimization),
    (0.02, 0.5, PerformanceChange.MaybeDegradation),
])  # fmt: skip
def test_times_of_single_runs_may_have_changed(before, after, result) -> None:
    change = found(runs(before), runs(after)).get(f"{OUT} [filewrite time]")
    assert (change.result if change else None) is result
    if change:
        assert "--repeat" in change.rule


def test_repeated_runs_have_intervals() -> None:
    scatter = (3, 7, 1, 9, 4, 0, 8, 2, 6, 5)
    slow, fast = ([time + 0.001 * number for number in scatter] for time in (0.5, 0.2))
    change = found(runs(*fast), runs(*slow))[f"{ALL} [filewrite time]"]
    assert change.interval is not None
    assert change.rate_degradation == pytest.approx(2.5, abs=0.1)
    # Nothing tells how much the machine makes of two measurements made apart: up to a factor of two.
    assert 1.2 < change.interval[0] < 1.3 and 4.8 < change.interval[1] < 5.1
    assert change.result in (
        PerformanceChange.MaybeDegradation,
        PerformanceChange.Degradation,
        PerformanceChange.SevereDegradation,
    )
    same = found(runs(*fast), runs(*fast))[f"{ALL} [filewrite time]"]
    assert same.result is PerformanceChange.Unknown and same.rate_degradation == 1


def test_waiting_for_others_is_not_counted_as_exact() -> None:
    """How often a lock is waited for differs from run to run: a single run says little of it."""
    one = profile([real(1.0), usage("lock", 3, uid="lock#1", calls=3, seconds=0.2)])
    other = profile([real(1.0), usage("lock", 4, uid="lock#1", calls=4, seconds=0.2)])
    assert found(one, other) == {}
    often = profile([real(1.0), usage("lock", 40, uid="lock#1", calls=40, seconds=0.2)])
    maybe = found(one, often)
    assert {location: change.result for location, change in maybe.items()} == {
        f"{ALL} [lock]": PerformanceChange.MaybeDegradation,
        "lock#1 [lock]": PerformanceChange.MaybeDegradation,
    }


def test_small_objects_and_times_are_left_out() -> None:
    def with_small(amount: float) -> Profile:
        made = runs(0.2, amount=100_000)
        small = usage("filewrite", amount, uid="/tmp/small#1", calls=1, seconds=0.0001)
        made.update_resources([small], columns=("calls", "seconds"))
        return made

    changes = found(with_small(10), with_small(20))
    assert not [location for location in changes if location.startswith("/tmp/small")]
    assert f"{OUT} [filewrite]" in changes


def test_other_profiles_are_refused() -> None:
    other = Profile(
        profile().serialize() | {"header": {"type": "time", "cmd": "", "args": "", "workload": ""}}
    )
    with pytest.raises(ProfileError, match="profiles of islands"):
        found(profile(), other)
