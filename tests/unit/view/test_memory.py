"""The memory view: what it says of the whole run, and of call stacks."""

import io
from typing import Any

import pytest

from perun.core.errors import ProfileError
from perun.profile.factory import Profile
from perun.profile.memory import totals
from perun.profile.stacks import stacks_of
from perun.view.alloclist import AllocListParams, AllocListView
from perun.view.memory import MemoryView, MemoryViewParams, call_stacks
from profiles import profile_of

FILL = [
    {"function": "fill", "source": "fill.c", "line": 3},
    {"function": "middle", "source": "unreachable", "line": 0},
    {"function": "main", "source": "main.c", "line": 9},
]
RUN = {
    "peak": 1500, "peak-time": 0.25, "allocated": 2_400_000, "allocations": 4, "releases": 1, "leaked": 600,
    "leaked-blocks": 2, "live-at-end": 1600, "temporary": 1, "ended": "normally", "notes": []
}  # fmt: skip


def profile(
    resources: list[dict[str, Any]], run: dict[str, Any] | None = RUN, kind: str = "memory"
) -> Profile:
    region = {"memory": run} if run else {}
    return profile_of(resources, kind, "B", args="-v", workload="9", collector="memory", **region)


def resource(trace: list[dict[str, Any]], subtype: str = "malloc", **columns: Any) -> dict[str, Any]:
    return {"type": "memory", "subtype": subtype, "uid": trace[0], "trace": trace, "address": 16, **columns}


def shown(of: Profile, **params: Any) -> list[str]:
    out = io.StringIO()
    MemoryView().render(of, MemoryViewParams(**params), out)
    return out.getvalue().splitlines()


RESOURCES = [
    resource(FILL, amount=1500, count=2, peak=1500, leaked=500, **{"leaked-blocks": 1}),
    resource(FILL[2:], "calloc", amount=900, count=1, temporary=1, leaked=100, **{"leaked-blocks": 1}),
    resource(FILL[2:], "free", amount=0, count=1),
    {"type": "memory", "subtype": "peak", "uid": {"source": "app", "memory": "peak"}, "amount": 1500},
]


def test_the_whole_run_and_its_call_stacks() -> None:
    assert shown(profile(RESOURCES)) == [
        "./app -v 9",
        "peak heap    1.46 KiB after 250 ms",
        "allocated    2.29 MiB in 4 allocations, 1 release",
        "leaked       600 B in 2 blocks (and 1,000 B kept by system libraries or left out by filters)",
        "temporary    1 allocation (25.0 %)",
        "",
        "Peak heap: what it was made of",
        "  100.0 %   1.46 KiB  fill  fill.c:3",
        "                        middle",
        "                        main  main.c:9",
        "",
        "Leaks: allocated and never released",
        "   83.3 %      500 B            1 x  fill  fill.c:3",
        "                                       middle",
        "                                       main  main.c:9",
        "   16.7 %      100 B            1 x  main  main.c:9",
        "",
        "Temporary: released before anything else was allocated",
        "  100.0 %            1 x  main  main.c:9",
        "",
        "Allocated over the whole run",
        "    0.1 %   1.46 KiB            2 x  fill  fill.c:3",
        "                                       middle",
        "                                       main  main.c:9",
        "    0.0 %      900 B            1 x  main  main.c:9",
    ]


def test_less_of_it() -> None:
    assert shown(profile(RESOURCES), top=1, depth=1, section=("leaks",))[6:] == [
        "Leaks: allocated and never released",
        "   83.3 %      500 B            1 x  fill  fill.c:3",
        "                                       and 2 more callers",
        "   16.7 %  in 1 other call stack",
    ]
    assert shown(profile(RESOURCES), depth=2, section=("leaks",))[9].strip() == "and 1 more caller"


def test_single_events_count_once() -> None:
    raw = [
        resource(FILL, amount=8, leaked=8, order=1),
        resource(FILL, amount=4, order=2, leaked=0),
        resource(FILL, "free", amount=0, order=3),
    ]
    (stack,) = call_stacks(profile(raw))
    assert stack.sums["amount"] == 12
    assert (stack.sums["count"], stack.sums["leaked"], stack.sums["leaked-blocks"]) == (2, 8, 1)


def test_profiles_of_earlier_releases() -> None:
    assert shown(profile([resource(FILL, amount=8), resource(FILL, amount=4)], run=None)) == [
        "./app -v 9",
        "allocated    12 B",
        "peak, leaks  not known: an earlier release of Perun wrote the profile",
        "",
        "Allocated over the whole run",
        "  100.0 %       12 B            2 x  fill  fill.c:3",
        "                                       middle",
        "                                       main  main.c:9",
    ]


def test_how_it_ended_and_notes_are_shown_without_orders_to_the_terminal() -> None:
    run = {**RUN, "ended": "early: was killed by SIGKILL (Killed)", "notes": ["a\x1b[31m note", "x" * 300]}
    lines = shown(profile(RESOURCES, run))
    assert lines[5] == "ended        early: was killed by SIGKILL (Killed)"
    assert lines[6] == "note         a\\x1b[31m note"
    assert len(lines[7]) == 120


def test_nothing_of_the_kind() -> None:
    assert shown(profile([resource(FILL, "free", amount=0, count=1)])).count("  none") == 4


def test_other_profiles_are_refused() -> None:
    with pytest.raises(ProfileError, match="needs a profile of the type 'memory', not 'time'"):
        shown(profile([{"type": "time", "uid": "a", "amount": 1}], kind="time"))


ODD = [["a"], [["a"], {"b": 1}], {"k": [1]}, float("nan"), float("inf"), 10**400, "\ud800", None, True, ""]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
def test_odd_values_are_shown_or_left_out(odd: Any) -> None:
    constants = {"type": "memory", "subtype": "malloc", "uid": "f", "trace": FILL}
    for key in ("subtype", "trace", "uid", "amount", "leaked", "count"):
        shown(profile([{"amount": 1, **constants, key: odd}]))
    for key in RUN:
        shown(profile([{"amount": 1, **constants}], {**RUN, key: odd}))


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:12])
@pytest.mark.parametrize("mode", ["list", "top", "most", "sum"])
def test_odd_values_of_listed_allocations(odd: Any, mode: str) -> None:
    usual = {"type": "memory", "subtype": "malloc", "amount": 1, "trace": FILL}
    for key in ("subtype", "trace", "uid", "amount", "count", "address", "time"):
        row = {**usual, "uid": {"function": "f", "memory": "peak"}, key: odd}
        both = profile([row, {**usual, "uid": "g"}])
        AllocListView().render(both, AllocListParams(mode=mode), io.StringIO())


def test_a_subtype_that_is_a_list_is_no_release() -> None:
    rows = [resource(FILL, ["malloc"], amount=2), resource(FILL, "free", amount=5)]  # type: ignore[arg-type]
    assert sum(stacks_of(profile(rows), "amount").amounts.values()) == 2


def test_a_number_beyond_the_floats_is_left_out_of_the_totals() -> None:
    assert totals(profile(RESOURCES, {**RUN, "peak": float("inf"), "leaked": 10**400}))[0:3:2] == (0.0, 0.0)
