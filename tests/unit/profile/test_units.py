"""Units of amounts, and what more is better of."""

from __future__ import annotations

from perun.profile.amounts import larger_is_better, locations_of_larger
from perun.profile.factory import Profile


def test_where_more_is_better() -> None:
    header = {"type": "mixed", "units": {"mixed(req/s)": "req/s"}, "larger_is_better": ["req/s"]}
    profile = Profile({"header": header})
    values = [("web", "mixed", "req/s"), ("web", "time", "real"), ("bulk", "mixed", "req/s")]
    profile.update_resources(
        {"uid": uid, "type": kind, "subtype": subtype, "amount": 1.0} for uid, kind, subtype in values
    )
    assert larger_is_better(profile) == {"req/s"}
    # That of `web` alone may mean its time.
    assert locations_of_larger(profile) == {"web [req/s]", "bulk", "bulk [req/s]"}
    assert larger_is_better({}) == larger_is_better({"header": 1}) == frozenset()
