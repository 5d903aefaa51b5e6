"""Two profiles compared series by series: what is told of them, and what one series may say of another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from perun.measurement import series
from perun.measurement.comparison import Line, Measurements, changes, info_of, no_line
from perun.measurement.difference import Basis, Difference, Rules
from perun.measurement.estimate import Kind, Point
from perun.measurement.verdict import compare, judge, severity
from perun.profile import session
from perun.profile.changes import DegradationInfo
from perun.profile.changes import PerformanceChange as Change
from perun.profile.factory import Profile

RUNS = 8
NOISE = np.random.default_rng(5).normal(0, 0.002, (2, RUNS))
"""Of both sides, so small that each step of a few percent is certain."""
Found = dict[str, DegradationInfo]


def profile(
    resources: Sequence[Mapping[str, Any]], own: session.Session | None = None, **header: Any
) -> Profile:
    made = Profile({"header": {"type": "time", "units": {"time": "s"}, **header}})
    made.update_resources([dict(one) for one in resources])
    if own is not None:
        session.mark(made, own)
    return made


def clocks(factors: Mapping[str, float], side: int, *, rounds: bool = True) -> Profile:
    """A command that takes a second, and of each clock so many times that."""
    rows = [
        {"uid": "./prog", "type": "time", "subtype": name, "order": order + 1,
         "amount": factor * math.exp(NOISE[side][order])}
        for name, factor in factors.items()
        for order in range(RUNS)
    ]  # fmt: skip
    return profile(rows, session.Session("s", "base" if side == 0 else "head", runs_are_rounds=rounds))


def functions(amounts: Mapping[str, Sequence[float]], **fields: Any) -> Profile:
    """What was timed by function; runs of one number are rounds."""
    fields = {"type": "time", "subtype": "exclusive", **fields}
    rows = [
        {"uid": uid, "amount": amount, "order": order, **fields}
        for uid, own in amounts.items()
        for order, amount in enumerate(own)
    ]
    return profile(rows, session.Session("s", "base", runs_are_rounds=True))


def told(old: Profile, new: Profile, line: Line = no_line, **rules: float) -> Found:
    found = changes(Measurements(old), Measurements(new), Rules(**rules), line)
    assert [one.location for one in found] == sorted({one.location for one in found})
    return {one.location: one for one in found}


@pytest.mark.parametrize(
    ("user", "system", "parts"),
    [
        (1.2, 1.0, {"user"}),  # the sum grew, and so did this part
        (1.0, 3.0, {"sys"}),
        (1.2, 0.5, {"user"}),  # the other one moved against the sum
        (0.8, 1.5, {"user"}),
        (1.1, 1.1, {"user", "sys"}),
        (1.0, 1.0, set()),
        (1 - 0.05, 1 + 0.45, set()),  # it moved from the one to the other: the sum is the same
    ],
)
def test_parts_of_the_processor_time_are_told_where_their_sum_changed_with_them(
    user: float, system: float, parts: set[str]
) -> None:
    old = clocks({"real": 1.0, "user": 0.9, "sys": 0.1}, 0)
    new = clocks({"real": 1.0, "user": 0.9 * user, "sys": 0.1 * system}, 1)
    found = told(old, new)
    assert found.keys() == {f"./prog [{name}]" for name in {"real", "cpu", *parts}}
    for name in parts:
        assert severity(found[f"./prog [{name}]"].result) * severity(found["./prog [cpu]"].result) > 0
    back = told(new, old)
    assert back.keys() == found.keys()
    for name, one in found.items():
        assert severity(back[name].result) == -severity(one.result)


def test_a_part_whose_sum_is_not_compared_is_told() -> None:
    found = told(clocks({"real": 1.0, "user": 0.9}, 0), clocks({"real": 1.0, "user": 0.9}, 1))
    assert {one.result for one in found.values()} == {Change.NoChange} and "./prog [user]" in found


def ticks(amounts: Sequence[float], name: str) -> Profile:
    """A command with so much system time in each run, beside a second of its own."""
    rows = [
        {"uid": "./prog", "type": "time", "subtype": part, "order": order, "amount": amount}
        for part, own in (("real", [1.0] * len(amounts)), ("sys", amounts))
        for order, amount in enumerate(amounts if part == "sys" else own, 1)
    ]
    return profile(rows, session.Session(name, round=0))


def test_values_that_hold_zeros_are_judged_with_the_noise_of_the_machine() -> None:
    """A kernel tells system time in ticks: four of one stretch of measuring are none of another one."""
    old, new = ticks([0.0, 0.0, 0.004, 0.0], "a"), ticks([0.02, 0.024, 0.02, 0.02], "b")
    where = "./prog [sys]"
    assert told(old, new)[where].result is Change.Degradation  # no machine makes something of nothing
    some, more = ticks([0.0, *[0.02] * 5], "a"), ticks([0.0, *[0.03] * 5], "b")
    alone = told(some, more)[where]
    assert alone.result is Change.Unknown and "measure in rounds" in alone.rule

    def history(size: float) -> Line:
        """Twenty versions, each other one of which has so much in most of its runs."""
        made = [Measurements(ticks([0.0, size * (n % 2), size * (n % 2)], str(n))) for n in range(20)]
        return lambda name: [one.point(name.location) for one in made] if name.location == where else []

    assert told(old, new, history(0.001))[where].result is Change.Degradation
    assert told(old, new, history(0.02))[where].result is Change.Unknown


def test_a_detail_among_many_may_be_chance_and_the_headline_never_is() -> None:
    chance = np.random.default_rng(3)
    old = {f"f{n}": np.exp(chance.normal(0, 0.01, 6)).tolist() for n in range(150)}
    new = {name: [one * math.exp(chance.normal(0, 0.01)) for one in own] for name, own in old.items()}
    many = told(functions(old), functions(new), threshold=0.001)
    alone = [
        told(functions({name: old[name]}), functions({name: new[name]}), threshold=0.001)[
            f"{name} [exclusive]"
        ]
        for name in old
    ]
    definite = {"Degradation", "Optimization", "SevereDegradation", "SevereOptimization"}
    assert any(one.result.name in definite for one in alone)
    assert not [one for one in many.values() if one.result.name in definite]
    # The same numbers of a headline: what else a profile holds changes nothing.
    (real,) = {name for name in told(*sides({}))}
    assert told(*sides(old))[real].result is told(*sides({}))[real].result is Change.Degradation
    assert told(*sides(old))[real].p_value == told(*sides({}))[real].p_value


def sides(beside: Mapping[str, Sequence[float]]) -> tuple[Profile, Profile]:
    """A command that takes 3 % more, beside the same functions."""
    both = []
    for side in (0, 1):
        made = clocks({"real": 1.0 + 0.03 * side}, side)
        rows = [{"uid": uid, "amount": one, "order": order, "type": "time", "subtype": "exclusive"}
                for uid, own in beside.items() for order, one in enumerate(own)]  # fmt: skip
        made.update_resources(rows)
        both.append(made)
    return both[0], both[1]


def counted(subtype: str = "exclusive", unit: str = "", **amounts: float) -> Profile:
    rows = [{"uid": uid, "type": "instructions", "subtype": subtype, "amount": one}
            for uid, one in amounts.items()]  # fmt: skip
    return profile(rows, units={"instructions": unit})


def test_what_only_one_side_has_is_said_where_something_could_be_said() -> None:
    found = told(counted(f=5.0, g=7.0), counted(f=5.0, h=9.0))
    assert {name: one.result for name, one in found.items()} == {
        "f": Change.NoChange, "g": Change.NotInTarget, "h": Change.NotInBaseline
    }  # fmt: skip
    assert (found["g"].from_baseline, found["g"].to_target) == ("7", "-")
    assert (found["h"].from_baseline, found["h"].to_target) == ("-", "9")
    assert found["g"].rule == "only the baseline has it" and found["h"].rule == "only the target has it"
    once, twice = ({"f": [1.0] * 3, "g": [2.0] * runs} for runs in (1, 2))
    alone = functions({"f": [1.0] * 3})
    assert told(alone, functions(once)).keys() == {"f [exclusive]"}
    assert told(alone, functions(twice)).keys() == {"f [exclusive]", "g [exclusive]"}
    # Clocks beside that of the command are none that one side lacks.
    both = clocks({"real": 1.0, "user": 0.9, "sys": 0.1}, 1)
    assert told(clocks({"real": 1.0}, 0), both).keys() == {"./prog [real]"}


def test_what_was_never_there_counts_as_nothing_where_a_profile_says_so() -> None:
    def leaked(amounts: Mapping[str, int]) -> Profile:
        rows = [{"type": "memory", "subtype": name, "uid": {"source": "prog", "memory": name}, "amount": amount,  # noqa: E501
                 **({"absent": 0} if name == "leaked" else {})} for name, amount in amounts.items()]  # fmt: skip  # noqa: E501
        return profile(rows, type="memory", units={"memory": "B"})

    found = told(leaked({"peak": 90}), leaked({"peak": 90, "leaked": 64}))
    assert found["prog:leaked"].result is Change.SevereDegradation
    assert found["prog:leaked"].values == (0.0, 64.0)
    back = told(leaked({"peak": 90, "leaked": 64}), leaked({"peak": 90}))
    assert back["prog:leaked"].result is Change.SevereOptimization
    assert back["prog:peak"].result is Change.NoChange


def test_of_other_units_or_workloads_nothing_is_said() -> None:
    found = told(counted(f=5.0, unit="k"), counted(f=5.0))["f"]
    assert found.result is Change.Unknown and found.rule == "the units differ: k and none"
    assert found.values is None and found.unit == ""
    runs = [{"uid": "p", "type": "time", "subtype": "real", "amount": 1.0 + n / 100, "workload": n % 2, "order": n}  # noqa: E501
            for n in range(8)]  # fmt: skip
    other = [{**one, "workload": 5 + n % 2} for n, one in enumerate(runs)]
    found = told(profile(runs), profile(other))["p [real]"]
    assert found.result is Change.Unknown and found.rule == "the two were measured on different workloads"
    assert found.values == pytest.approx((1.035, 1.035)) and found.unit == "s"


def test_one_run_each_is_left_out_unless_something_shows_its_noise() -> None:
    old, new = (
        profile([{"uid": "f", "type": "time", "subtype": "real", "amount": one}]) for one in (1.0, 2.0)
    )
    assert told(old, new) == {}

    def line(name: series.SeriesName) -> Sequence[Point]:
        assert (name.location, name.kind) == ("f [real]", Kind.TIMED)
        values = [1.0, 1.01] * 8
        return [
            Measurements(profile([{"uid": "f", "type": "time", "subtype": "real", "amount": one}])).point(
                "f [real]"
            )
            for one in values
        ]

    assert told(old, new, line)["f [real]"].result is Change.SevereDegradation


def calls(uid: str, amounts: Sequence[float], sizes: Sequence[int] = (), unit: str = "us") -> Profile:
    rows = [
        {"uid": uid, "type": "mixed", "subtype": "time delta", "order": order, "amount": amount,
         **({"structure-unit-size": size} if size else {})}
        for order, (amount, size) in enumerate(itertools.zip_longest(amounts, sizes))
    ]  # fmt: skip
    return profile(rows, type="mixed", units={"mixed(time delta)": unit})


def test_calls_of_one_run_are_compared_as_what_was_measured_apart() -> None:
    chance = np.random.default_rng(4)
    old = np.exp(chance.normal(0, 0.1, 40)).tolist()

    def slower(factor: float, **rules: float) -> Found:
        return told(calls("f", old), calls("f", [one * factor for one in old]), **rules)

    assert slower(1.8)["f"].result is Change.Unknown  # a run may be so much slower as a whole
    found = slower(2.3)
    assert found["f"].result is Change.Degradation and found["f"].rate_degradation == pytest.approx(2.3)
    assert found["f [calls]"].result is Change.NoChange
    assert slower(1.8, unpaired_tolerance=0.01)["f"].result is Change.SevereDegradation
    short = told(calls("f", old[:5]), calls("f", old[:4]))
    assert "f" not in short and "f [calls]" in short
    assert "f" in told(calls("f", old[:5]), calls("f", old[:5]))
    zeros = told(calls("f", [0.0, *old]), calls("f", old))["f"]
    assert zeros.result is Change.Unknown
    assert zeros.rule.startswith("1 of 81 calls took no time that the clock shows")
    assert told(calls("f", old), calls("f", old, unit="ms"))["f"].rate_degradation == pytest.approx(1000)


def test_calls_of_several_sizes_are_compared_size_by_size() -> None:
    """More calls of the larger size are no slower function."""
    chance = np.random.default_rng(6)
    sizes = {"old": [10] * 30 + [1000] * 10, "new": [10] * 10 + [1000] * 30}
    old, new = (
        calls("f", [one * math.exp(chance.normal(0, 0.05)) for one in own], own) for own in sizes.values()
    )
    assert told(old, new)["f"].rate_degradation == pytest.approx(1.0, rel=0.1)
    blind = told(calls("f", Measurements(old).series["f"].values.tolist()),
                 calls("f", Measurements(new).series["f"].values.tolist()))  # fmt: skip
    assert blind["f"].rate_degradation > 3


def test_functions_that_begin_or_are_called_too_rarely_have_no_word() -> None:
    old = profile([{"uid": "f", "type": "mixed", "subtype": "time delta", "amount": 1.0, "order": n}
                   for n in range(9)], type="mixed")  # fmt: skip
    for runs, there in ((4, False), (5, True)):
        new = profile(
            [{"uid": uid, "type": "mixed", "subtype": "time delta", "amount": 1.0, "order": n}
             for uid, count in (("f", 9), ("g", runs)) for n in range(count)], type="mixed",
        )  # fmt: skip
        assert (told(old, new).get("g") is not None) is there


def test_the_part_of_a_whole_matters_as_much_as_it_is_of_that() -> None:
    small, large = counted(f=9.0, g=1e6), counted(f=12.0, g=1e6)
    assert told(small, large)["f"].result is Change.NoChange
    assert told(counted(f=9.0), counted(f=12.0))["f"].result is Change.SevereDegradation


def test_what_is_better_the_larger_it_is_has_the_other_word() -> None:
    def rate(size: float, side: int) -> Profile:
        rows = [{"uid": "io", "type": "rate", "subtype": "MB/s", "order": n, "amount": size * math.exp(NOISE[side][n])}  # noqa: E501
                for n in range(RUNS)]  # fmt: skip
        return profile(rows, session.Session("s", "base", runs_are_rounds=True), larger_is_better=["rate"])

    found = told(rate(1.0, 0), rate(1.1, 1))["io [MB/s]"]
    assert found.result is Change.Optimization and found.rule.endswith("more of it is better")


def test_the_report_of_a_verdict_has_its_numbers() -> None:
    made = Difference(1.1, 1.05, 1.15, 1.06, 1.14, 0.001, 0.99, Basis.ROUNDS, (1.0, 1.1), (5, 6), 1.04)
    info = info_of(judge(made), "f [real]", "s")
    assert info.result is Change.Degradation and info.location == "f [real]"
    assert (info.from_baseline, info.to_target, info.type) == ("1.0s", "1.1s", "ratio")
    assert (info.rate_degradation, info.interval, info.values) == (1.1, (1.05, 1.15), (1.0, 1.1))
    assert (info.sizes, info.p_value, info.confidence_rate) == ((5, 6), 0.001, 0.001)
    assert (info.confidence_type, info.detectable, info.unit) == ("p_value", 1.04, "s")
    maybe = info_of(judge(made._replace(low=0.99)), "f", "s")
    assert maybe.result is Change.MaybeDegradation and maybe.interval == (1.06, 1.14)
    to_zero = made._replace(ratio=math.nan, delta=(1.0, 0.5, 1.5), values=(0.0, 1.0), detectable=math.inf)
    info = info_of(judge(to_zero), "f", "s")
    assert (info.rate_degradation, info.interval, info.p_value, info.detectable) == (0.0, None, None, None)


def test_points_and_descriptions_are_made_once() -> None:
    one = Measurements(clocks({"real": 1.0, "user": 0.9, "sys": 0.1}, 0))
    assert one.headline == "./prog [cpu]"  # the processor limits it
    assert one.point("./prog [real]") is one.point("./prog [real]")
    first, second = one.described(["./prog [real]", "./prog [user]"])
    assert one.described(["./prog [user]"]) == [second] and first is not second
    assert Measurements(Profile()).headline == ""
    assert compare(one.point("./prog [real]"), one.point("./prog [real]")) is not None


def test_one_run_is_not_compared_with_several() -> None:
    once, twice, thrice = (functions({"f": [1.0, 1.01, 1.02][:runs]}) for runs in (1, 2, 3))
    for one in (once, twice, thrice):
        del one["header"]["session"]
    assert told(once, thrice) == told(thrice, once) == {}
    assert told(twice, thrice).keys() == {"f [exclusive]"}


def test_the_larger_whole_counts() -> None:
    """A function that is hardly any of what there was before is none that matters."""
    old, new = counted(f=9.0, g=1e6), counted(f=20.0, g=1.0)
    assert told(old, new)["f"].result is told(new, old)["f"].result is Change.NoChange
    assert told(counted(f=9.0, g=1.0), new)["f"].result is Change.SevereDegradation


def test_calls_on_one_side_are_calls() -> None:
    """Beside numbers of the same name that a program printed of itself."""
    amounts = [0.0, *[1.0] * 8]
    one, other = calls("f", amounts), calls("f", amounts)
    other["header"] = {**other["header"], "larger_is_better": ["mixed"]}
    for found in (told(one, other)["f"], told(other, one)["f"]):
        assert found.result is Change.Unknown
        assert found.rule.startswith("2 of 18 calls took no time")


def test_sizes_on_one_side_say_nothing() -> None:
    amounts = [1.0 + n / 100 for n in range(12)]
    sized = calls("f", amounts, [10, 20] * 6)
    for found in (told(calls("f", amounts), sized)["f"], told(sized, calls("f", amounts))["f"]):
        assert found.rate_degradation == pytest.approx(1.0)
