"""Functions that are too small to be listed are not new or gone."""

from __future__ import annotations

from perun.profile.changes import DegradationInfo, PerformanceChange, without_negligible
from perun.profile.factory import Profile


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
