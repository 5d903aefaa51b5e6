"""The seven optimisations of tracing as functions of graphs and of what was recorded earlier."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.collect._calls.optimizations.applying import choose, complexity_of
from perun.collect._calls.optimizations.methods import levels_of
from perun.collect._calls.optimizations.plan import CallStatistics, EarlierProfiles
from perun.collect._calls.optimizations.settings import METHODS, PARAMETERS, PIPELINES, make_settings
from perun.core.errors import UsageError
from perun.native.callgraph.difference import difference
from perun.native.callgraph.graph import CallEdge, CallGraph, Fingerprints, GraphFunction
from perun.profile.bounds import Growth
from shared import examples

MODES = ("soft", "semistrict", "strict", "color")


def graph_of(calls, bodies=(), *, taken=(), entry="main"):
    """The graph of callees by caller; `bodies` are the control flow of those that have a special one."""
    names = list(dict.fromkeys([*calls, *(one for callees in calls.values() for one in callees)]))
    body = {name: name for name in names} | dict(bodies)
    functions = {
        name: GraphFunction(
            name,
            name,
            fingerprints=Fingerprints(*[body[name]] * 4),
            sites=tuple(calls.get(name, ())),
            address_taken=name in taken,
        )
        for name in names
    }
    found = tuple(
        CallEdge(caller, callee, "direct") for caller, callees in calls.items() for callee in callees
    )
    return CallGraph("", entry, functions, tuple(dict.fromkeys(found)))


def chain(length):
    """main -> f1 -> f2 ... with another leaf below each."""
    names = ["main", *(f"f{number}" for number in range(1, length))]
    return graph_of(
        {name: [*names[number + 1 : number + 2], f"leaf{number}"] for number, name in enumerate(names)}
    )


def dropped(choice, method=None):
    return {
        name
        for name, one in choice.decisions.items()
        if not one.kept and (method is None or one.method == method)
    }


def test_a_pipeline_is_its_methods_and_options_change_them():
    assert make_settings().methods == ()
    assert make_settings("basic").methods == ("cg-shaping", "baseline-dynamic")
    assert set(make_settings("full").methods) == set(METHODS) - {"timed-sampling"}
    chosen = make_settings("basic", ["diff-tracing"], ["cg-shaping"]).methods
    assert chosen == ("diff-tracing", "baseline-dynamic")


@pytest.mark.parametrize(("arguments", "message", "hint"), [
    ({"pipeline": "basik"}, "basik", "basic"),
    ({"on": ["cg-shapping"]}, "cg-shapping", "cg-shaping"),
    ({"arguments": [("cg-mod", "match")]}, "cg-mod", "cg-mode"),
    ({"arguments": [("cg-mode", "topdown")]}, "one of match, bottom-up, top-down", "top-down"),
    ({"arguments": [("probing-threshold", "many")]}, "a whole number", ""),
    ({"arguments": [("probing-threshold", "0")]}, "at least 1", ""),
    ({"arguments": [("timed-sample-freq", "nan")]}, "at least 0.001", ""),
    ({"on": ["cg-shaping"], "off": ["cg-shaping"]}, "both on and off", "-off"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_the_nearest(arguments, message, hint):
    with pytest.raises(UsageError) as problem:
        make_settings(**arguments)
    assert message in problem.value.message and hint in problem.value.hint


def test_shaping_keeps_upper_or_lower_levels():
    graph = chain(12)
    top = choose(graph, None, EarlierProfiles(), make_settings(on=["cg-shaping"]))
    assert levels_of(graph).number == 13
    assert "f5" in top.kept and "f6" not in top.kept  # round(13 / 2) = 6 levels, 0 to 5
    assert "level 6" in top.decisions["f6"].reason
    bottom = choose(
        graph, None, EarlierProfiles(), make_settings(on=["cg-shaping"], arguments=[("cg-mode", "bottom-up")])
    )
    assert "f7" in bottom.kept and "f6" not in bottom.kept and "main" in bottom.kept
    two = choose(
        graph, None, EarlierProfiles(), make_settings(on=["cg-shaping"], arguments=[("cg-proj-levels", "1")])
    )
    assert two.kept == ("main",)


def test_a_function_whose_address_a_caller_has_is_one_level_below_it():
    """As main of a program in Rust, which main of the C library only has the address of."""
    graph = chain(12)
    more = graph_of({"rust_main": ["work"], "command": []}, taken=["rust_main", "command"])
    functions = {**graph.functions, **more.functions}
    functions["main"] = functions["main"]._replace(sites=(*functions["main"].sites, "rust_main"))
    graph = CallGraph("", "main", functions, (*graph.calls, *more.calls))
    levels = levels_of(graph).of
    assert [levels[one] for one in ("rust_main", "work", "command", "f1")] == [1, 2, 12, 1]
    choice = choose(graph, None, EarlierProfiles(), make_settings(on=["cg-shaping"]))
    assert {"rust_main", "work"} <= set(choice.kept)
    reason = "only pointers lead to it, which counts as level 12 of 13, the first 6 are kept"
    assert choice.decisions["command"].reason == reason


def test_matching_drops_what_no_call_leads_to():
    graph = graph_of({"main": ["f", "sort"], "dead": ["f"], "compare": []}, taken=["compare"])
    settings = make_settings(on=["cg-shaping"], arguments=[("cg-mode", "match"), ("cg-proj-keep-leaf", "0")])
    assert dropped(choose(graph, None, EarlierProfiles(), settings)) == {"dead"}


def test_a_small_program_keeps_its_leaves():
    graph = chain(5)
    assert "leaf4" in choose(graph, None, EarlierProfiles(), make_settings(on=["cg-shaping"])).kept
    without = make_settings(on=["cg-shaping"], arguments=[("cg-proj-keep-leaf", "0")])
    assert "leaf4" not in choose(graph, None, EarlierProfiles(), without).kept
    large = chain(12)  # 24 functions
    assert "leaf11" not in choose(large, None, EarlierProfiles(), make_settings(on=["cg-shaping"])).kept
    same = choose(graph, graph, EarlierProfiles(), make_settings(on=["diff-tracing"]))
    assert dropped(same) == {"f1", "f2", "f3", "f4"}


def test_what_is_called_too_often_is_dropped():
    graph = graph_of({"main": ["hard", "short", "even", "uneven", "rare"]})
    seen = {
        "hard": CallStatistics(100_001, 50, 40),
        "short": CallStatistics(1_001, 10, 9),
        "even": CallStatistics(1_001, 50, 1),
        "uneven": CallStatistics(1_001, 50, 20),
        "rare": CallStatistics(1_000, 1, 0),
    }
    basic = choose(graph, None, EarlierProfiles(seen), make_settings("basic", off=["cg-shaping"]))
    assert dropped(basic, "baseline-dynamic") == {"hard", "short", "even"}
    assert "100,001 times" in basic.decisions["hard"].reason
    # The other pipelines begin at ten times as many.
    other = choose(graph, None, EarlierProfiles(seen), make_settings(on=["baseline-dynamic"]))
    assert dropped(other) == set()


def test_a_wrapped_function_is_dropped_below_the_nearest_caller_that_stays():
    graph = graph_of({"main": ["run"], "run": ["work"], "work": ["part"]})
    seen = {
        "main": CallStatistics(1, 1000),
        "run": CallStatistics(1, 990, 0, {"main": 1}),
        "work": CallStatistics(1, 980, 0, {"run": 1}),
        "part": CallStatistics(1, 500, 0, {"work": 1}),
    }
    choice = choose(graph, None, EarlierProfiles(seen), make_settings(on=["baseline-dynamic"]))
    assert dropped(choice) == {"run"}
    assert "99% of the time of main" in choice.decisions["run"].reason


def test_low_bounds_are_dropped_below_the_top():
    graph = chain(12)
    bounds = {name: "constant" for name in graph.functions} | {"f9": "linear"}
    choice = choose(graph, None, EarlierProfiles(bounds=bounds), make_settings(on=["baseline-static"]))
    # Level 1 is the first with two functions, so 0 and 1 are kept.
    assert {"main", "f1", "leaf0", "f9"} == set(choice.kept)
    linear = make_settings(on=["baseline-static"], arguments=[("static-complexity", "linear")])
    assert "f9" not in choose(graph, None, EarlierProfiles(bounds=bounds), linear).kept


@pytest.mark.parametrize(("growth", "name"), [
    ("O(1)", "constant"),
    ("O(log n)", "logarithmic"),
    ("O(n)", "linear"),
    ("O(n log n)", "linearithmic"),
    ("O(n^2)", "quadratic"),
    ("O(n^2 log n)", "cubic"),
    ("O(n^4)", "polynomial"),
    ("O(2^n)", "exponential"),
])  # fmt: skip
def test_bounds_have_the_names_of_their_classes(growth, name):
    assert complexity_of(Growth.of(growth)) == name


def test_sampling_follows_counts_or_levels():
    graph = chain(12)
    seen = {"f1": CallStatistics(50_000), "f2": CallStatistics(900)}
    choice = choose(graph, None, EarlierProfiles(seen), make_settings(on=["dynamic-sampling"]))
    rates = {name: one.sampling for name, one in choice.decisions.items()}
    assert (rates["main"], rates["f1"], rates["f2"], rates["f3"], rates["f10"]) == (1, 50, 1, 8, 1024)
    constant = EarlierProfiles(bounds={"f3": "constant"})
    sampled = choose(graph, None, constant, make_settings(on=["dynamic-sampling"]))
    assert sampled.decisions["f3"].sampling == 64


def test_engines_get_what_they_switch():
    settings = make_settings(
        on=["dynamic-probing", "timed-sampling"],
        arguments=[("probing-threshold", "7"), ("probing-reattach", "1"), ("timed-sample-freq", "0.5")],
    )
    assert choose(chain(3), None, EarlierProfiles(), settings).switching == (7, True, 0.5)


def test_methods_that_lack_something_say_so():
    notes = choose(chain(3), None, EarlierProfiles(), make_settings("full")).notes
    assert "changed functions may be dropped" in notes[0]
    lacking = ["diff-tracing", "baseline-static", "baseline-dynamic"]
    assert [note.partition(":")[0] for note in notes[1:]] == lacking


@pytest.mark.parametrize("mode", MODES)
def test_renamed_functions_are_recognised_also_where_they_call_each_other(mode):
    old = graph_of({"main": ["a", "x"], "a": ["b"], "b": []}, {"a": "1", "b": "2"})
    new = graph_of({"main": ["c", "x"], "c": ["d"], "d": []}, {"c": "1", "d": "2"})
    found = difference(new, old, mode)
    assert found.changed == {} and found.renamed == {"c": "a", "d": "b"}


def test_two_candidates_are_no_rename():
    old = graph_of({"main": ["a", "b"]}, {"a": "1", "b": "1"})
    new = graph_of({"main": ["c", "d"]}, {"c": "1", "d": "1"})
    assert set(difference(new, old, "color").changed) == {"main", "c", "d"}


def test_a_change_is_new_functions_callees_or_control_flow():
    old = graph_of({"main": ["f", "g"], "f": ["h"]})
    new = graph_of({"main": ["f", "g"], "f": ["h", "h"], "g": ["new"]}, {"h": "other"})
    assert difference(new, old, "strict").changed == {
        "f": "its callees changed", "g": "its callees changed", "new": "it is new",
        "h": "its control flow changed (strict)"
    }  # fmt: skip
    assert "h" not in difference(new, old, "strict", inspect_all=False).changed


NAMES = [f"f{number}" for number in range(26)]


@st.composite
def graphs(draw):
    """A random graph of up to 27 functions, loops and unreachable functions among them."""
    count = draw(st.integers(0, 26))
    names = ["main", *draw(st.permutations(NAMES))[:count]]
    calls = {name: draw(st.lists(st.sampled_from(names), max_size=4)) for name in names}
    bodies = {name: draw(st.sampled_from("abc")) for name in names}
    taken = draw(st.sets(st.sampled_from(names)))
    return graph_of(calls, bodies, taken=taken)


seen_values = st.builds(
    CallStatistics, st.integers(0, 10**9), st.floats(0, 10**6), st.floats(0, 10**6),
    st.dictionaries(st.sampled_from(["main", *NAMES]), st.integers(1, 1000), max_size=2)
)  # fmt: skip
earliers = st.builds(
    EarlierProfiles,
    st.dictionaries(st.sampled_from(["main", *NAMES]), seen_values),
    st.dictionaries(
        st.sampled_from(["main", *NAMES]), st.sampled_from(PARAMETERS["static-complexity"].choices)
    ),
)


@settings(max_examples=examples(30), deadline=None)
@given(
    graph=graphs(), previous=graphs(), earlier=earliers, pipeline=st.sampled_from(sorted(PIPELINES)),
    on=st.sets(st.sampled_from(METHODS)), mode=st.sampled_from(MODES),
    cg_mode=st.sampled_from(PARAMETERS["cg-mode"].choices)
)  # fmt: skip
def test_a_changed_function_is_never_dropped(graph, previous, earlier, pipeline, on, mode, cg_mode):
    chosen = make_settings(pipeline, sorted(on), (), [("diff-cfg-mode", mode), ("cg-mode", cg_mode)])
    choice = choose(graph, previous, earlier, chosen)
    renamed = choice.renamed
    assert set(choice.decisions) == set(graph.functions)
    for name, function in graph.functions.items():
        before = previous.functions.get(renamed.get(name, name))
        same = (
            before is not None
            and tuple(renamed.get(one, one) for one in function.sites) == before.sites
            and getattr(function.fingerprints, mode) == getattr(before.fingerprints, mode)
        )
        if not same:
            assert choice.decisions[name].kept, name
        assert choice.decisions[name].kept or choice.decisions[name].reason
    assert "main" in choice.kept
    # A rename joins two functions with the same control flow, each at most once.
    assert len(set(renamed.values())) == len(renamed)


@st.composite
def versions(draw):
    """A graph, the same with edits, and the names of what these change: bodies, callees and new functions."""
    old = draw(graphs())
    names = list(old.functions)
    bodies = draw(st.sets(st.sampled_from(names)))
    callers = draw(st.sets(st.sampled_from(names)))
    is_new = draw(st.booleans())
    calls = {name: list(one.sites) for name, one in old.functions.items()}
    for name in callers:
        calls[name].append(draw(st.sampled_from([*names, *(["added"] if is_new else [])])))
    if is_new:
        calls.setdefault("added", [])
    kept = {name: one.fingerprints.color for name, one in old.functions.items()}
    new = graph_of(calls, kept | dict.fromkeys(bodies, "edited") | {"added": "of its own"})
    return old, new, bodies | callers | ({"added"} if is_new else set())


@settings(max_examples=examples(80), deadline=None)
@given(versions=versions(), earlier=earliers, on=st.sets(st.sampled_from(METHODS), min_size=1))
def test_exactly_what_was_edited_counts_as_changed_and_is_traced(versions, earlier, on):
    old, new, edited = versions
    choice = choose(new, old, earlier, make_settings(on=sorted(on)))
    assert set(choice.changed) == edited and edited <= set(choice.kept)
    # It is not lost by sampling either: how often it is called is not known of a version before.
    unseen = edited - earlier.seen.keys()
    assert {choice.decisions[name].sampling for name in unseen} <= {1}
