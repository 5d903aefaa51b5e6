"""Profiles that do not trace the same functions, or too small ones: what is compared, what is said."""

import pytest

from perun.profile.changes import DegradationInfo, PerformanceChange, without_negligible
from perun.profile.factory import Profile
from perun.profile.untraced import AlignedProfiles, untraced_note


def profile_of(calls, **optimization):
    """A profile of calls: uid, caller, microseconds, exclusive nanoseconds."""
    profile = Profile({"header": {"type": "mixed", "cmd": "p", "units": {"mixed": "us"}}})
    resources = [
        {"uid": uid, "type": "mixed", "subtype": "time delta", "amount": amount, "exclusive": exclusive}
        | ({"caller": caller} if caller else {})
        for uid, caller, amount, exclusive in calls
    ]
    profile.update_resources(resources)
    if optimization:
        profile["trace"] = {"optimization": optimization}
    return profile


WHOLE = [
    ("main", "", 100.0, 10_000),
    ("f", "main", 60.0, 20_000),
    ("f", "main", 30.0, 10_000),
    ("g", "f", 40.0, 25_000),
    ("g", "f", 20.0, 15_000),
    ("h", "g", 20.0, 20_000),
]


def exclusive(profile):
    found = {}
    for _, one in profile.all_resources():
        found.setdefault(one["uid"], []).append(one["exclusive"])
    return found


def test_time_of_what_the_other_did_not_trace_goes_to_the_callers():
    target = profile_of(
        [("main", "", 100.0, 10_000), ("f", "main", 60.0, 60_000), ("f", "main", 30.0, 30_000)],
        **{"not-traced": {"g": ["cg-shaping", ""], "h": ["baseline-dynamic", ""], "k": ["cg-shaping", ""]}},
    )
    both = AlignedProfiles(profile_of(WHOLE), target)
    baseline = both.baseline
    # 60 us of g and h, by the 60 and 30 us of the calls of f.
    assert exclusive(baseline) == {"main": [10_000], "f": [pytest.approx(60_000), pytest.approx(30_000)]}
    assert baseline["header"] == {"type": "mixed", "cmd": "p", "units": {"mixed": "us"}}
    assert both.target is target
    (note,) = both.notes
    expected = "2 functions not traced in the target (cg-shaping 1, baseline-dynamic 1): g, h"
    assert note == f"not compared: {expected}"
    assert "2 functions not traced in the baseline" in AlignedProfiles(target, profile_of(WHOLE)).notes[0]


def test_time_is_handed_on_by_the_shares_of_several_callers():
    whole = [
        ("a", "", 30.0, 0),
        ("b", "", 90.0, 0),
        ("g", "a", 10.0, 10_000),
        ("g", "b", 30.0, 10_000),
        ("g", "g", 5.0, 4_000),  # recursion
    ]
    without = {"not-traced": {"g": ["cg-shaping", ""]}}
    target = profile_of([("a", "", 30.0, 0), ("b", "", 90.0, 0)], **without)
    assert exclusive(AlignedProfiles(profile_of(whole), target).baseline) == {
        "a": [pytest.approx(6_000)],
        "b": [pytest.approx(18_000)],
    }


def test_profiles_without_optimizations_stay_as_they_are():
    old, new = profile_of(WHOLE), profile_of(WHOLE[:2])
    both = AlignedProfiles(old, new)
    assert (both.baseline, both.target, both.notes) == (old, new, ())
    gone = DegradationInfo(PerformanceChange.NotInTarget, "g", "1us", "")
    assert list(both.judged([gone])) == [gone]
    assert untraced_note(old) == ""


def test_what_a_pooled_profile_traced_at_least_once_is_compared():
    pooled = profile_of(WHOLE, **{"not-traced": {"g": ["baseline-dynamic", ""]}})
    assert AlignedProfiles(profile_of(WHOLE), pooled).notes == ()


def test_sums_of_samples_are_no_change():
    target = profile_of(WHOLE, sampling={"g": 50}, **{"switched-off": ["h"]})
    places = ["g [calls]", "g [total]", "g", "h [total]", "f [total]", "main"]
    changes = [DegradationInfo(PerformanceChange.Optimization, one, "2us", "1us", "ratio") for one in places]
    changes.append(DegradationInfo(PerformanceChange.Degradation, "program:f", "1ms", "2ms", "time"))
    found = {one.location: one for one in AlignedProfiles(profile_of(WHOLE), target).judged(changes)}
    unknown = [place for place, one in found.items() if one.result is PerformanceChange.Unknown]
    # `f` calls `g`, whose calls that were not recorded are in its exclusive time.
    assert unknown == ["g [calls]", "g [total]", "h [total]", "program:f"]
    assert "one in 50 in the target" in found["g [calls]"].rule
    assert untraced_note(target) == (
        "of 1 function a sample of the calls was recorded; of 1 function calls were not recorded all the time"
    )


def test_who_traces_less_is_faster_for_that_reason():
    less = profile_of(WHOLE[:3], **{"not-traced": {"g": ["cg-shaping", ""], "h": ["cg-shaping", ""]}})
    kinds = (PerformanceChange.SevereOptimization, PerformanceChange.Degradation)

    def judged(baseline, target):
        changes = [
            DegradationInfo(kind, place, "1ms", "2ms", "time" if ":" in place else "ratio")
            for kind in kinds
            for place in ("main", "f", "f [calls]", "p:f", "p:total")
        ]
        return [
            (kinds[number // 5].name, one.location)
            for number, one in enumerate(AlignedProfiles(baseline, target).judged(changes))
            if one.result is not PerformanceChange.Unknown
        ]

    all_places = ["main", "f", "f [calls]", "p:f", "p:total"]
    sure = [("SevereOptimization", "f [calls]"), *(("Degradation", place) for place in all_places)]
    assert judged(profile_of(WHOLE), less) == sure
    sure = [*(("SevereOptimization", place) for place in all_places), ("Degradation", "f [calls]")]
    assert judged(less, profile_of(WHOLE)) == sure


def test_what_recording_hidden_calls_cost_is_taken_from_the_functions_that_did_not_change():
    """Each hidden call made its caller 5 us slower, which is no time of the program."""
    names = [f"f{number}" for number in range(9)]
    whole, less = [("main", "", 10_000.0, 0)], [("main", "", 1_000.0, 0)]
    for number, name in enumerate(names):
        hidden = 10 + number
        whole.append((name, "main", 1000.0, 40_000))
        whole += [("g", name, 7.0, 7_000)] * hidden
        slower = 90_000 if name == "f4" else 0
        less.append((name, "main", 100.0, 40_000 + 2_000 * hidden + slower))
    target = profile_of(less, **{"not-traced": {"g": ["cg-shaping", ""]}})
    baseline = exclusive(AlignedProfiles(profile_of(whole), target).baseline)
    found = {name: now[0] - baseline[name][0] for name, now in exclusive(target).items() if name != "main"}
    assert found == {name: pytest.approx(90_000 if name == "f4" else 0, abs=1) for name in names}


CHANGED = {"g": "its control flow changed (color)"}


def told_of(changes, *, changed, target=WHOLE, hidden=("g",)):
    """What is told of these changes where the baseline did not trace some functions."""
    rows = {"not-traced": {uid: ["cg-shaping", ""] for uid in hidden}}
    baseline = profile_of([call for call in WHOLE if call[0] not in hidden], **rows)
    return list(AlignedProfiles(baseline, profile_of(target, changed=changed)).judged(changes))


def slower(place, kind="time", change=PerformanceChange.Degradation):
    return DegradationInfo(change, place, "1ms", "2ms", kind, 1.0)


LONG = [(uid, caller, 10_000 * amount, 10_000 * own) for uid, caller, amount, own in WHOLE]


def test_a_caller_that_did_not_change_is_slower_because_of_what_it_calls():
    changes = [slower("f"), slower("f [calls]"), slower("main", "ratio")]
    calls, main, found = told_of(changes, changed=CHANGED, target=LONG)
    assert (calls.location, main.location) == ("f [calls]", "main")
    assert (found.location, found.result.name) == ("g", "Degradation")
    assert found.rule == (
        "it changed, and the baseline did not trace it: this is the time of f, which calls it and did not "
        "change itself"
    )


@pytest.mark.parametrize("changed", [{}, CHANGED | {"f": "its callees changed"}, {"h": "it is new"}])
def test_a_caller_that_may_be_the_cause_itself_stays_the_place(changed):
    (found,) = told_of([slower("f")], changed=changed, target=LONG)
    assert (found.location, found.rule) == ("f", "")


def test_several_functions_that_may_be_the_cause_are_named():
    hidden = ("g", "h")
    (found,) = told_of([slower("f")], changed=CHANGED | {"h.c:h": "it is new"}, target=LONG, hidden=hidden)
    assert found.location == "f"
    assert found.rule == "it did not change itself, but functions that it calls did: g, h"


def test_of_several_callers_the_largest_change_is_told():
    target = [*LONG, ("g", "main", 100_000.0, 50_000)]
    changes = [slower("main", change=PerformanceChange.MaybeDegradation), slower("f")]
    (found,) = told_of(changes, changed=CHANGED, target=target)
    assert (found.location, found.result.name) == ("g", "Degradation")


def test_few_recorded_calls_do_not_explain_that_a_program_is_slower():
    """Two calls of 20 us at most, of 1 s and of 100 us."""
    kept = [slower("main", "ratio"), slower("program:total")]
    assert {one.result.name for one in told_of(kept, changed={}, target=LONG)} == {"Degradation"}
    kept = [slower("main", "ratio"), slower("program:total")]
    assert {one.result.name for one in told_of(kept, changed={})} == {"Unknown"}


@pytest.mark.parametrize(("of_total", "of_main", "rule", "expected"), [
    (2.0, 1.9, "", ("g", "Degradation")),
    (-2.0, -1.9, "", ("g", "Optimization")),
    (2.0, 1.0, "", ("main", "Unknown")),  # something else changed as much
    (2.0, -1.9, "", ("main", "Unknown")),
    (2.0, 1.9, "the other functions differ as much", ("main", "Unknown")),
])  # fmt: skip
def test_where_only_the_entry_is_left_the_total_decides(of_total, of_main, rule, expected):
    """A check of outliers has no other function to compare `main` with."""
    target = [("main", "", 10_000_000.0, 10_000_000_000), ("g", "main", 5_000_000.0, 5_000_000_000)]
    total_kind = PerformanceChange.TotalDegradation if of_total > 0 else PerformanceChange.TotalOptimization
    total = DegradationInfo(total_kind, "program", "1ms", "2ms", "time", of_total)
    main = DegradationInfo(PerformanceChange.Unknown, "main", "1ms", "2ms", "time", of_main, rule=rule)
    first, last = told_of([total, main], changed=CHANGED, target=target)
    assert first is total
    assert (last.location, last.result.name) == expected


# -- functions that are too small to be listed ---------------------------------------------------------------


def profile(kind: str = "instructions", **amounts: int) -> Profile:
    made = Profile({"header": {"type": "mixed", "units": {"instructions": "instr"}}})
    shared = {"type": kind, "subtype": "exclusive"}
    made.update_resources({**shared, "uid": uid, "amount": amount} for uid, amount in amounts.items())
    return made


def left(old: Profile, new: Profile) -> list[str]:
    changes = [
        DegradationInfo(PerformanceChange.NoChange, "main", "", "", "ratio"),
        *(
            DegradationInfo(kind, uid, "", "", "ratio")
            for uid, kind in (
                ("small", PerformanceChange.NotInTarget),
                ("gone", PerformanceChange.NotInTarget),
                ("tiny", PerformanceChange.NotInBaseline),
                ("new", PerformanceChange.NotInBaseline),
            )
        ),
    ]
    return [change.location for change in without_negligible(changes, old, new)]


def test_less_than_a_ten_thousandth_says_nothing() -> None:
    old, new = profile(main=10**6, small=100, gone=201), profile(main=2 * 10**6, tiny=200, new=5000)
    assert left(old, new) == ["main", "gone", "new"]


def test_other_profiles_tell_whatever_is_new_or_gone() -> None:
    old, new = profile("time", main=10**6, small=1, gone=1), profile("time", main=10**6, tiny=1, new=1)
    assert left(old, new) == ["main", "small", "gone", "tiny", "new"]
