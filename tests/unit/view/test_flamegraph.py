"""Stacks of profiles, and the formats that they are written in."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flames import named, shown, timed
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError, UsageError
from perun.plugin.api import ViewContext
from perun.profile.calls import Frame
from perun.profile.factory import Profile
from perun.profile.stacks import StackTree, folded, speedscope, stacks_of

SCHEMA = Path(__file__).parents[2] / "data" / "schemas" / "speedscope.json"
SPEEDSCOPE = json.loads(SCHEMA.read_text("utf-8"))


def record(name: str, line: int = 1, source: str = "a.c") -> dict[str, Any]:
    return {"function": name, "line": line, "source": source}


def traced(*resources: tuple[list[Any], Any], subtype: str = "malloc", **header: Any) -> Profile:
    """A memory profile; traces start at the innermost call, as those of profiles do."""
    profile = Profile(
        header={"type": "memory", "cmd": "./app", "units": {"memory": "B"}, **header},
        collector_info={"name": "memory", "params": {}},
    )
    profile.update_resources(
        {"type": "memory", "subtype": subtype, "amount": amount, "uid": trace[0], "trace": trace}
        for trace, amount in resources
    )
    return profile


def test_a_trace_is_a_stack_with_the_outermost_call_first() -> None:
    inner = [record("malloc", 0, "unreachable"), record("f", 7), record("main", 3)]
    found = stacks_of(traced((inner, 10), (inner, 5), (inner[1:], 2)))
    assert found.amounts == {
        (Frame("main", "a.c", 3), Frame("f", "a.c", 7), Frame("malloc")): 15,
        (Frame("main", "a.c", 3), Frame("f", "a.c", 7)): 2,
    }
    assert found.left_out == 0


def test_what_is_released_is_no_resource() -> None:
    profile = traced(([record("f")], 10))
    profile.update_resources(
        [{"type": "memory", "subtype": "free", "amount": 10, "uid": "g", "trace": [record("g")]}]
    )
    assert named(profile) == {"f": 10}


def test_records_of_any_kind() -> None:
    found = named(
        traced(
            (["text", record("f")], 1), ([{"bin": "x", "offset": 3}], 1), ([{"func": "g", "file": "b"}], 1)
        )
    )
    assert found == {"f;text": 1, "x:3": 1, "g": 1}
    nested = [{"function": "h", "source": ["a", "b"], "line": True}]
    assert list(stacks_of(traced((nested, 1))).amounts) == [(Frame("h", "a,b", 0),)]


def test_amounts_that_no_width_stands_for_are_counted() -> None:
    trace = [record("f")]
    found = stacks_of(
        traced(
            (trace, 1.5),
            (trace, -1),
            (trace, float("nan")),
            (trace, float("inf")),
            (trace, 10**400),
            (trace, "7"),
            (trace, 0),
        )
    )
    assert list(found.amounts.values()) == [1.5]
    assert found.left_out == 5
    notes: list[str] = []
    shown(traced((trace, 1), (trace, -1)), ViewContext(notes.append), format="folded")
    assert notes == ["the graph leaves out 1 resource whose amount is negative or not a number"]


def test_a_stack_without_the_number_counts_as_0() -> None:
    profile = traced(([record("f")], 10), ([record("g")], 30))
    profile.update_resources(
        [{"type": "memory", "subtype": "malloc", "amount": 8, "peak": 8, "uid": "h", "trace": [record("h")]}]
    )
    notes: list[str] = []
    assert shown(profile, ViewContext(notes.append), of="peak", format="folded") == "h 8\n"
    assert notes == []


def test_other_numbers_and_the_count() -> None:
    profile = traced(([record("f")], 10), ([record("f")], 30), ([record("g")], 0))
    assert named(profile, "count") == {"f": 2, "g": 1}
    with pytest.raises(UsageError, match="no resource has a number in 'size'") as caught:
        stacks_of(profile, "size")
    assert caught.value.hint == "name another key with --of; the profile has: amount, count"


def test_calls_lie_within_each_other() -> None:
    profile = timed(
        ("main", 0, 100), ("f", 10, 40), ("g", 20, 10), ("f", 60, 20), ("g", 90, 10), ("h", 100, 5)
    )
    assert named(profile) == {"main": 30, "main;f": 50, "main;f;g": 10, "main;g": 10, "h": 5}
    assert named(profile, "count") == {"main": 1, "main;f": 2, "main;f;g": 1, "main;g": 1, "h": 1}


def test_timestamps_may_start_anywhere() -> None:
    assert named(timed(("main", -50, 100), ("f", -10, 20), ("g", float("nan"), 5))) == {
        "main": 80,
        "main;f": 20,
    }


def test_calls_of_other_threads_are_no_callees() -> None:
    profile = timed(("main", 0, 100), thread=1)
    profile.update_resources([{"type": "mixed", "uid": "worker", "timestamp": 10, "amount": 20, "thread": 2}])
    assert named(profile) == {"main": 100, "worker": 20}


def test_calls_that_overlap_are_beside_each_other() -> None:
    assert named(timed(("f", 0, 10), ("g", 5, 10))) == {"f": 10, "g": 10}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30))
def test_nested_calls_share_out_the_time_of_the_outermost(spans: list[tuple[int, int]]) -> None:
    profile = timed(*((f"f{start}", start, length) for start, length in spans), ("all", 0, 200))
    found = stacks_of(profile).amounts
    # What overlaps is counted for both, so that there may be more than the whole, never less.
    assert sum(found.values()) >= 200 - 1e-9
    assert all(amount > 0 for amount in found.values())


@pytest.mark.parametrize(("profile", "message", "hint"), [
    (Profile(header={"type": "time"}), "the profile has no resources", "collect a new profile"),
    (timed(("f", 0, 0)), "no call stack has a value of 'amount' above 0", "--of count"),
    (traced(([record("f")], 0)), "no call stack has a value of 'amount' above 0", "--of count"),
    (traced(([record("f")], -1)), "no call stack has a value of 'amount' above 0", "--of count"),
])  # fmt: skip
def test_profiles_without_stacks(profile: Profile, message: str, hint: str) -> None:
    with pytest.raises((ProfileError, UsageError), match=message) as caught:
        stacks_of(profile)
    assert hint in caught.value.hint


def test_a_profile_without_traces_is_pointed_to_another_view() -> None:
    profile = Profile(header={"type": "time"})
    profile.update_resources([{"uid": "f", "amount": 1}])
    with pytest.raises(ProfileError, match="no resource has a trace") as caught:
        stacks_of(profile)
    assert "bars" in caught.value.hint


def test_folded_stacks() -> None:
    stacks = stacks_of(
        traced(
            ([record("f(int; char)", 7), record("main", 3)], 2),
            ([record("f(int; char)", 8), record("main", 3)], 1e-7),
            ([record("line\nbreak", 0, ""), record("main", 3)], 10**20),
        )
    ).amounts
    assert folded(stacks) == "main;f(int: char) 2.0000001\nmain;line break 100000000000000000000\n"
    assert folded(stacks, by_line=True) == (
        "main (a.c:3);f(int: char) (a.c:7) 2\n"
        "main (a.c:3);f(int: char) (a.c:8) 0.0000001\n"
        "main (a.c:3);line break 100000000000000000000\n"
    )


@given(
    st.dictionaries(
        st.lists(st.text(max_size=8), min_size=1, max_size=4).map(lambda names: tuple(map(Frame, names))),
        st.one_of(st.integers(1, 10**9), st.floats(1e-9, 1e9)), min_size=1, max_size=8
    )
)  # fmt: skip
def test_folded_stacks_are_lines_that_other_tools_read(stacks: dict[tuple[Frame, ...], float]) -> None:
    text = folded(stacks)
    lines = text.split("\n")[:-1]
    assert all(re.fullmatch(r"[^\n]*\S \d+(\.\d+)?", line) for line in lines)
    assert sum(float(line.rpartition(" ")[2]) for line in lines) == pytest.approx(sum(stacks.values()))
    depths = {line.rpartition(" ")[0].count(";") + 1 for line in lines}
    assert depths == {len(stack) for stack in stacks}


def test_speedscope() -> None:
    trace = [record("malloc", 0, ""), record("main", 3)]
    found = speedscope(stacks_of(traced((trace, 4))).amounts, name="x", unit="B", exporter="perun")
    assert found["shared"]["frames"] == [{"name": "main", "file": "a.c", "line": 3}, {"name": "malloc"}]
    assert found["profiles"] == [
        {**{"type": "sampled", "name": "x", "unit": "bytes", "startValue": 0, "endValue": 4},
         **{"samples": [[0, 1]], "weights": [4]}}
    ]  # fmt: skip


@given(
    st.dictionaries(
        st.lists(st.builds(Frame, st.text(), st.text(), st.integers(0, 2**31)), min_size=1).map(tuple),
        st.floats(0, 1e300) | st.integers(0, 2**60),
    ),
    st.sampled_from(["B", "us", "KiB", ""]),
)
def test_speedscope_has_what_its_schema_asks_for(stacks: dict[tuple[Frame, ...], float], unit: str) -> None:
    found = speedscope(stacks, name="x", unit=unit, exporter="perun")
    jsonschema.Draft7Validator(SPEEDSCOPE).validate(json.loads(json.dumps(found)))
    frames = found["shared"]["frames"]
    (profile,) = found["profiles"]
    assert len(profile["samples"]) == len(profile["weights"])
    assert {number for sample in profile["samples"] for number in sample} == set(range(len(frames)))


def test_the_tree_has_callers_before_callees() -> None:
    a, b, c = Frame("a"), Frame("b"), Frame("c", "s", 2)
    assert StackTree([{(a, b): 1, (a,): 2, (c, b): 4}, {(a, b): 8, (b,): 16}]).document() == {
        "sources": ["", "s"], "names": ["a", "b", "c"], "places": [0, 0, 1], "lines": [0, 0, 2],
        "parents": [0, 1, 0, 1, 0], "frames": [0, 1, 2, 1, 1], "amounts": [[2, 1, 0, 4, 0], [0, 8, 0, 0, 16]]
    }  # fmt: skip


def test_texts_go_to_standard_output_or_to_a_file(tmp_path: Path) -> None:
    profile = traced(([record("f"), record("main")], 3))
    assert shown(profile, format="folded") == "main;f 3\n"
    path = tmp_path / "x.json"
    assert shown(profile, format="speedscope", filename=str(path)) == f"{path}\n"
    assert json.loads(path.read_text())["profiles"][0]["weights"] == [3]


def page_data(path: Path) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_has_what_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    profile = traced(([record("f"), record("main")], 3))
    shown(
        profile, filename=str(path), graph_height=24, colour="share", icicle=True, by="line",
        graph_title="T<b>"
    )  # fmt: skip
    data = page_data(path)
    assert (data["frameHeight"], data["colour"], data["icicle"], data["byLine"]) == (24, "share", True, True)
    assert data["modes"][0]["unit"] == "B"
    assert "<h1>T&lt;b&gt;</h1>" in path.read_text("utf-8")


def test_one_module_needs_no_colour_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    one, two = ([record("f"), record("main", source=source)] for source in ("a.c", "b.c"))
    shown(traced((one, 3)), filename=str(path))
    assert page_data(path)["colour"] == "name"
    shown(traced((two, 3)), filename=str(path))
    assert page_data(path)["colour"] == "module"


def test_the_unit_of_a_profile_of_several_types(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    shown(timed(("f", 0, 5)), filename=str(path))
    assert page_data(path)["modes"][0]["unit"] == "us"
    shown(timed(("f", 0, 5)), filename=str(path), of="count")
    assert page_data(path)["modes"][0]["unit"] == "resources"


def test_the_difference_to_another_profile(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    asked: list[str] = []

    def load(spec: str) -> Profile:
        asked.append(spec)
        return traced(([record("f"), record("main")], 1), ([record("g"), record("main")], 2))

    now = traced(([record("f"), record("main")], 3))
    shown(now, ViewContext(load=load), filename=str(path), diff="1@i")
    assert asked == ["1@i"]
    assert page_data(path)["modes"][0]["amounts"] == [[0, 3, 0], [0, 1, 2]]
    assert page_data(path)["colour"] == "change"


@pytest.mark.parametrize(("options", "message", "hint"), [
    ({"diff": "x", "format": "folded"}, "--diff needs --format html, not folded", "leave out --diff"),
    ({"diff": "time"}, "time and the unit s, the profile has memory and B", "the same type and unit"),
    ({"diff": "kB"}, "type memory and the unit kB", "the same type and unit"),
    ({"format": "folded", "view_in_browser": True}, "cannot show --format folded", "--view-in-browser"),
])  # fmt: skip
def test_what_does_not_go_together(tmp_path: Path, options: dict[str, Any], message: str, hint: str) -> None:
    others = {
        "time": Profile(header={"type": "time", "units": {"time": "s"}}),
        "kB": traced(([record("f")], 1), units={"memory": "kB"}),
    }
    path = tmp_path / "x.html"
    with pytest.raises(UsageError, match=message) as caught:
        shown(traced(([record("f")], 1)), ViewContext(load=others.__getitem__), filename=str(path), **options)
    assert hint in caught.value.hint
    assert not path.exists()


def test_without_a_repository_there_is_no_other_profile() -> None:
    with pytest.raises(UsageError, match="--diff cannot load '0@i'"):
        shown(traced(([record("f")], 1)), diff="0@i")
