"""The view of call graphs without a browser: which graph it shows, its text, and what it refuses."""

import io
from typing import Any

import pytest

from perun.core.errors import ProfileError, UsageError
from perun.native.callgraph.files import to_values
from perun.native.callgraph.graph import CallEdge, CallGraph, Fingerprints, GraphFunction
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view.callgraph import CallGraphParams, CallGraphView


def graph_of(*pairs: tuple[str, str], other: str = "") -> CallGraph:
    names = dict.fromkeys(name for pair in pairs for name in pair if name)
    functions = {
        name: GraphFunction(name, name, name, 16, fingerprints=Fingerprints(color="5a" * 8 * (name == other)))
        for name in names
    }
    return CallGraph("ab", "main", functions, tuple(CallEdge(*pair, "direct") for pair in pairs))


class Kept:
    """Statistics of a version with the graph of `./app`, and those of an earlier one."""

    def __init__(self, graph: CallGraph | None, before: CallGraph | None = None) -> None:
        self._kept = {"cg--trace-app": graph} if graph else {}
        self._before = before

    def load(self, name: str) -> dict[str, Any] | None:
        return to_values(self._kept[name]) if name in self._kept else None

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        return ("c0ffee" * 6, to_values(self._before)) if self._before and not revision else None


def profile_of(*calls: tuple[str, str, int]) -> Profile:
    constants = {
        f"{callee}#{number}": {
            "type": "mixed", "subtype": "time delta", "uid": callee, "location": "/x/app", "caller": caller,
        }
        for number, (caller, callee, _) in enumerate(calls)
    }  # fmt: skip
    return Profile(
        header={"type": "mixed", "cmd": "./app", "workload": "", "units": {"mixed(time delta)": "us"}},
        collector_info={"name": "trace", "params": {}},
        resource_type_map=constants,
        resources={f"{one[1]}#{number}": {"amount": [1.0] * one[2]} for number, one in enumerate(calls)},
    )


def shown(profile: Profile, statistics: Kept | None = None, **options: Any) -> str:
    out = io.StringIO()
    context = ViewContext(statistics=lambda: statistics)  # type: ignore[arg-type, return-value]
    CallGraphView().render(profile, CallGraphParams(terminal=True, **options), out, context)
    return out.getvalue()


RUN = profile_of(("", "main", 1), ("main", "work", 1200), ("work", "callback", 3))
STATIC = graph_of(("main", "work"), ("main", "rare"), ("work", "rare"), ("rare", "work"))


def test_without_a_kept_graph_the_recorded_calls_are_shown() -> None:
    assert shown(RUN) == (
        "3 functions and 2 calls (dynamic); 3 levels from main\n\n"
        "main  [called 1 time]\n  work  [called 1,200 times]\n    callback  [called 3 times]\n"
    )


def test_a_kept_graph_is_mixed_with_the_recorded_calls_and_compared() -> None:
    calls = (("main", "work"), ("main", "rare"), ("work", "rare"), ("rare", "work"))
    before, changed = graph_of(*calls, ("main", "gone")), graph_of(*calls, other="rare")
    assert shown(RUN, Kept(changed, before)).splitlines() == [
        "4 functions and 5 calls (mixed); 3 levels from main; since c0ffeec0ff: 0 new, 1 changed, 0 renamed, "
        "1 removed",
        "",
        "main  [called 1 time]",
        "  work  [called 1,200 times]",
        "    rare  [changed: its control flow changed (color)]",
        "      work  [called 1,200 times; see above]",
        "    callback  [called 3 times]",
        "  rare  [changed: its control flow changed (color); see above]",
    ]
    assert "since" not in shown(RUN, Kept(changed, before), baseline="none")
    assert "callback" not in shown(RUN, Kept(STATIC), use_cg_type="static")


def test_a_focus_shows_so_many_levels_and_finds_plain_names() -> None:
    graph = graph_of(("main", "f(int)"), ("f(int)", "g"), ("g", "h"))
    text = shown(RUN, Kept(graph), use_cg_type="static", focus="f", levels=1)
    assert text.splitlines()[2:] == ["f(int)", "  g  [...]"]


@pytest.mark.parametrize(("options", "kept", "message"), [
    ({"use_cg_type": "static"}, None, "no call graph of the program is kept"),
    ({"use_cg_type": "mixed"}, Kept(None), "no call graph of the program is kept"),
    ({"focus": "wrok"}, None, "no function 'wrok'"),
    ({"baseline": "v1"}, None, "--baseline needs the call graphs of machine code"),
    ({"baseline": "v1"}, Kept(STATIC), "no call graph of the program is kept of v1"),
])  # fmt: skip
def test_what_cannot_be_shown_is_refused(options: dict[str, str], kept: Kept | None, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        shown(RUN, kept, **options)
    assert caught.value.hint


def test_a_profile_without_calls_needs_a_kept_graph() -> None:
    bare = Profile(
        header=dict(RUN["header"]),
        collector_info=dict(RUN["collector_info"]),
        resource_type_map={"a#0": {"uid": "a", "type": "mixed"}, "b#0": {"uid": "b", "type": "mixed"}},
        resources={"a#0": {"amount": [1.0]}, "b#0": {"amount": [1.0]}},
    )
    with pytest.raises(ProfileError, match="which function called which"):
        shown(bare)


def test_names_are_printable_in_the_terminal() -> None:
    assert "\\x1b" in shown(profile_of(("", "main", 1), ("main", "bad\x1b[31m\n", 1)))
