"""Bound Classes: what is said of two profiles of bounds."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from perun.check.bound_classes import BoundClasses, BoundParams
from perun.core.errors import ProfileError
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo
from perun.profile.changes import PerformanceChange as Kind
from perun.profile.factory import Profile

Bound = tuple[str, str]
LINEAR = ("1 + max(n, 0)", "O(n^1)")
QUADRATIC = ("max(n, 0) × max(n, 0)", "O(n^2)")
NONE = ("inf", "O(∞)")
CONSTANT = ("0", "O(1)")


def profile(
    functions: Mapping[str, tuple[Bound, Sequence[Bound]]],
    *,
    source: str = "a.c",
    shift: int = 0,
    unread: Sequence[Mapping[str, Any]] = (),
) -> Profile:
    """Functions with the bound of each as a whole and those of its loops, each in a line of its own."""
    made = Profile({"header": {"type": "bound", "units": {"bound": "iterations"}}})
    made["bounds"] = {"unreadable": list(unread)}
    line, resources = shift, []
    for name, (total, loops) in functions.items():
        for at, (text, growth) in enumerate([total, *loops]):
            uid = {"source": source, "function": name, "line": line if at == 0 else line + 1, "column": line}
            kind = "local bound" if at else "total bound"
            one = {"uid": uid, "type": "bound", "subtype": kind, "bound": text, "class": growth}
            resources.append(one if growth != "O(∞)" else {**one, "reason": "no loop counter"})
            line += 1
    made.update_resources(resources)
    return made


def compare(baseline: Profile, target: Profile, **params: float) -> list[DegradationInfo]:
    return list(BoundClasses().compare(baseline, target, BoundParams(**params), CheckContext()))


def only(baseline: Bound, target: Bound, **params: float) -> DegradationInfo:
    """What is said of a function without loops."""
    (found,) = compare(profile({"f": (baseline, [])}), profile({"f": (target, [])}), **params)
    return found


@pytest.mark.parametrize(("baseline", "target", "kind"), [
    (LINEAR, LINEAR, Kind.NoChange),
    (LINEAR, QUADRATIC, Kind.Degradation),
    (CONSTANT, LINEAR, Kind.Degradation),
    (QUADRATIC, LINEAR, Kind.Optimization),
    (LINEAR, NONE, Kind.SevereDegradation),
    (NONE, QUADRATIC, Kind.SevereOptimization),
    (NONE, NONE, Kind.NoChange),
])  # fmt: skip
def test_classes(baseline: Bound, target: Bound, kind: Kind) -> None:
    found = only(baseline, target)
    assert (found.result, found.type) == (kind, "order")
    assert (found.from_baseline, found.to_target) == (baseline[1], target[1])


def test_the_rate_is_the_difference_of_powers() -> None:
    assert only(LINEAR, ("n × n × n", "O(n^3)")).rate_degradation == 2
    assert only(QUADRATIC, LINEAR).rate_degradation == -1
    assert only(LINEAR, NONE).rate_degradation == 0


def test_why_there_is_no_bound_is_told() -> None:
    assert "no bound known (no loop counter)" in only(LINEAR, NONE).rule


@pytest.mark.parametrize(("before", "after", "kind", "rate"), [
    ("2 × max(n, 0)", "3 × max(n, 0)", Kind.MaybeDegradation, 1.5),
    ("2 × max(n, 0)", "4 × max(n, 0)", Kind.Degradation, 2),
    ("5 × n", "4 × n", Kind.MaybeOptimization, 0.8),
    ("5 × n", "n", Kind.Optimization, 0.2),
    ("1 + max(n, 0)", "9 + max(n, 0)", Kind.NoChange, None),  # constants are not what grows
    ("n", "count", Kind.NoChange, None),  # a parameter was renamed
    ("2 × n", "3 × count", Kind.MaybeDegradation, 1.5),
    ("n", "n + m", Kind.MaybeDegradation, None),
    ("2 × n + m", "n + 2 × m", Kind.Unknown, None),
    ("n", "what is this", Kind.NoChange, None),
])  # fmt: skip
def test_bounds_of_one_class(before: str, after: str, kind: Kind, rate: float | None) -> None:
    found = only((before, "O(n^1)"), (after, "O(n^1)"))
    assert found.result is kind
    assert (found.type, found.rate_degradation) == (("order", 0) if rate is None else ("ratio", rate))


def test_what_counts_as_certain_can_be_set() -> None:
    assert only(("2 × n", "O(n^1)"), ("3 × n", "O(n^1)"), factor=1.5).result is Kind.Degradation


def test_a_nested_loop() -> None:
    old = profile({"f": (LINEAR, [LINEAR])})
    new = profile({"f": (QUADRATIC, [LINEAR, QUADRATIC])}, shift=10)
    total, outer, inner = compare(old, new)
    assert (total.result, total.location) == (Kind.Degradation, "a.c:11: f")
    assert "because of the loop in line 13 of a.c" in total.rule
    assert (outer.result, outer.location) == (Kind.NoChange, "a.c:12: loop 1 of f")
    assert (inner.result, inner.location) == (Kind.NotInBaseline, "a.c:13: loop 2 of f")
    assert (inner.from_baseline, inner.to_target) == ("-", "O(n^2)")


def test_a_loop_in_front_of_others_moves_none_of_them() -> None:
    loops = [LINEAR, QUADRATIC]
    old, new = profile({"f": (QUADRATIC, loops)}), profile({"f": (QUADRATIC, [CONSTANT, *loops])})
    found = {one.location: one.result for one in compare(old, new)}
    assert found == {
        "a.c:1: f": Kind.NoChange, "a.c:2: loop 1 of f": Kind.NotInBaseline,
        "a.c:3: loop 2 of f": Kind.NoChange, "a.c:4: loop 3 of f": Kind.NoChange
    }  # fmt: skip


def test_a_changed_loop_between_others() -> None:
    cubic = ("n × n × n", "O(n^3)")
    old = profile({"f": (QUADRATIC, [CONSTANT, LINEAR, QUADRATIC])})
    new = profile({"f": (cubic, [CONSTANT, cubic, QUADRATIC])}, shift=5)
    found = {one.location: one.result for one in compare(old, new)}
    assert found["a.c:8: loop 2 of f"] is Kind.Degradation
    assert list(found.values()).count(Kind.NoChange) == 2


def test_functions_are_matched_by_name_not_by_line() -> None:
    old = profile({"f": (LINEAR, []), "g": (CONSTANT, [])})
    new = profile({"g": (CONSTANT, []), "f": (LINEAR, [])}, shift=100)
    assert {one.result for one in compare(old, new)} == {Kind.NoChange}


def test_new_and_removed_functions() -> None:
    old, new = profile({"f": (LINEAR, [LINEAR])}), profile({"g": (QUADRATIC, [QUADRATIC])})
    found = [(one.result, one.location, one.from_baseline, one.to_target) for one in compare(old, new)]
    assert found == [
        (Kind.NotInBaseline, "a.c:1: g", "-", "O(n^2)"),
        (Kind.NotInTarget, "a.c:1: f", "O(n^1)", "-"),
    ]


def test_a_renamed_file() -> None:
    old, new = (profile({"f": (bound, [])}, source=source) for source, bound in
                (("a.c", LINEAR), ("b.c", QUADRATIC)))  # fmt: skip
    (found,) = compare(old, new)
    assert (found.result, found.location) == (Kind.Degradation, "b.c:1: f")


def test_what_could_not_be_read_is_unknown() -> None:
    gap = {"source": "a.c", "line": 7, "function": "f", "reason": "a statement expression"}
    (found,) = compare(profile({"f": (LINEAR, [])}), profile({"f": (NONE, [])}, unread=[gap]))
    assert found.result is Kind.Unknown
    assert found.rule == "a.c:7 could not be read: a statement expression"


def test_a_file_of_which_nothing_could_be_read() -> None:
    gap = {"source": "a.c", "line": 1, "function": "", "reason": "ended"}
    (found,) = compare(profile({"f": (LINEAR, [])}), profile({}, unread=[gap]))
    assert found.result is Kind.Unknown


def test_a_missing_header_makes_nothing_unknown() -> None:
    gap = {"source": "a.c", "line": 1, "function": "", "reason": "there is no header x.h"}
    (found,) = compare(profile({"f": (LINEAR, [])}), profile({"f": (QUADRATIC, [])}, unread=[gap]))
    assert found.result is Kind.Degradation


def test_another_version_of_the_analysis_makes_changes_uncertain() -> None:
    old, new = profile({"f": (LINEAR, [])}), profile({"f": (NONE, [])})
    for one, version in ((old, "a"), (new, "b")):
        one["bounds"] = {**one["bounds"], "analysis": version}
    (found,) = compare(old, new)
    assert found.result is Kind.MaybeDegradation
    assert "collect the baseline again" in found.rule
    old["bounds"] = {**old["bounds"], "analysis": "b"}
    assert compare(old, new)[0].result is Kind.SevereDegradation
    new["collector_info"] = {"name": "bounds", "params": {"calls": True}}
    old["collector_info"] = {"name": "bounds", "params": {"calls": False}}
    assert compare(old, new)[0].result is Kind.MaybeDegradation


def test_other_profiles() -> None:
    times = Profile({"header": {"type": "time"}})
    with pytest.raises(ProfileError, match="has no bounds"):
        compare(times, times)
