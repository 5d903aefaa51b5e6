"""The page of a call graph in a real browser: levels, search, focus, folding, changes, hostile names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perun.native.callgraph.files import to_values
from perun.native.callgraph.graph import CallEdge, CallGraph, Fingerprints, GraphFunction
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view.callgraph import CallGraphView

if TYPE_CHECKING:
    from playwright.sync_api import Page


def graph_of(
    calls: Sequence[tuple[str, str]], *others: str, digests: dict[str, str] | None = None
) -> CallGraph:
    """A graph; `@` begins names of functions of other files, and `digests` has those that are special."""
    own = [name for pair in calls for name in pair if not name.startswith("@")]
    digests = digests or {}
    functions = {
        name: GraphFunction(
            name, name, name, 16 * place, 10, 3, Fingerprints(color=digests.get(name, "5a" * 8))
        )
        for place, name in enumerate(dict.fromkeys([*own, *others]))
    }
    made = tuple(
        CallEdge(one, other.lstrip("@"), "plt" if other[0] == "@" else "direct") for one, other in calls
    )
    return CallGraph("ab", "main", functions, made)


class Kept:
    """Statistics that hold the graph of the version, and maybe that of an earlier one."""

    def __init__(self, graph: CallGraph, before: CallGraph | None = None) -> None:
        self._graph, self._before = graph, before

    def load(self, name: str) -> dict[str, Any] | None:
        return to_values(self._graph)

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        return None if self._before is None else ("0123456789abcdef", to_values(self._before))

    def __call__(self) -> Any:
        return self


def profile_of(**counts: int) -> Profile:
    constants = {
        f"{name}#0": {"type": "mixed", "subtype": "time delta", "uid": name, "caller": "main"}
        for name in counts
    }
    return Profile(
        header={"type": "mixed", "cmd": "./app", "workload": "in", "units": {"mixed(time delta)": "us"}},
        collector_info={"name": "trace", "params": {}},
        resource_type_map=constants,
        resources={f"{name}#0": {"amount": [1.0] * count} for name, count in counts.items()},
    )


CALLS = (("main", "read"), ("main", "work"), ("work", "inner"), ("inner", "work"), ("inner", "deep"),
         ("deep", "@malloc"), ("read", "@fopen"))  # fmt: skip


@pytest.fixture
def graph(open_page: Callable[..., Page], written: Callable[..., Path]) -> Callable[..., Page]:
    def opened(
        shown: CallGraph, before: CallGraph | None = None, profile: Profile | None = None, **options: Any
    ) -> Page:
        context = ViewContext(statistics=Kept(shown, before))
        path = written(CallGraphView(), profile or profile_of(work=7), context, **options)
        page = open_page(path)
        page.wait_for_selector("html[data-drawn]")
        return page

    return opened


def around(page: Page) -> list[str]:
    return [text for text in page.locator("#graph .node text").all_text_contents() if text]


def focus_of(page: Page) -> str:
    return str(page.locator("#graph .node.focus text").text_content())


def test_all_functions_are_shown_by_their_levels(graph: Callable[..., Page]) -> None:
    page = graph(graph_of(CALLS, "lost"))
    assert page.title() == "Call graph of ./app in"
    assert page.locator(".level").all_inner_texts() == [
        "level 0\n1 function\nmain",
        "level 1\n3 functions\nwork\nread\ninner",
        "level 2\n1 function\ndeep",
        "only by pointers\n1 function\nlost",
    ]
    page.get_by_role("button", name="work, called 7 times").click()
    assert focus_of(page) == "work"
    assert around(page) == ["main", "work", "inner", "deep"]
    assert "called 7 times in the profile" in page.locator("#details").inner_text()


def test_search_goes_to_a_function_by_the_keyboard(graph: Callable[..., Page]) -> None:
    page = graph(graph_of(CALLS))
    page.keyboard.press("/")
    page.keyboard.type("e")
    found = page.locator("#matches [role=option]")
    assert found.all_inner_texts() == ["read", "deep", "inner", "fopen"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert focus_of(page) == "deep"
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent").startswith("inner")
    page.keyboard.press("Enter")
    assert focus_of(page) == "inner"
    page.keyboard.press("b")
    assert focus_of(page) == "deep"
    page.keyboard.press("l")
    assert page.locator("#levels").is_visible()


def test_levels_are_added_and_what_is_beyond_a_function_is_folded(graph: Callable[..., Page]) -> None:
    page = graph(graph_of([(f"f{number}", f"f{number + 1}") for number in range(8)]), focus="f0", levels=2)
    assert around(page) == ["f0", "f1", "f2"]
    page.get_by_role("button", name="More levels").click()
    assert around(page) == ["f0", "f1", "f2", "f3"]
    page.keyboard.press("-")
    page.locator("#graph .node", has_text="f1").focus()
    page.keyboard.press("c")
    assert around(page) == ["f0", "f1 …"]
    page.keyboard.press("c")
    assert around(page) == ["f0", "f1", "f2"]


def test_changes_are_marked_and_shown_alone(graph: Callable[..., Page]) -> None:
    before = graph_of((*CALLS, ("main", "gone")))
    page = graph(graph_of((*CALLS, ("read", "fresh")), digests={"deep": "a5" * 8}), before)
    assert page.locator("#levels button.new").all_inner_texts() == ["fresh"]
    assert set(page.locator("#levels button.changed").all_inner_texts()) == {"deep"}
    assert "Changes since 0123456789" in page.locator("#changes-title").inner_text()
    page.locator("#changes-title").click()
    assert "removed\tgone" in page.locator("#rows").inner_text()
    page.get_by_label("Only changes and what leads to them").check()
    shown = page.locator("#levels button").all_inner_texts()
    assert set(shown) == {"main", "read", "work", "inner", "deep", "fresh"}


def test_a_column_of_many_functions_is_folded(graph: Callable[..., Page]) -> None:
    calls = [("main", f"f{number}") for number in range(1500)]
    page = graph(graph_of(calls), profile=profile_of(f1=1), focus="main")
    assert len(around(page)) == 42
    page.locator("#graph .node", has_text="show 1,460 others").click()
    assert len(around(page)) == 1501


def test_among_thousands_of_functions_a_search_shows_one(graph: Callable[..., Page]) -> None:
    calls = [("main", f"part{part}") for part in range(60)]
    calls += [(f"part{part}", f"part{part}_f{number}") for part in range(60) for number in range(60)]
    calls += [(f"part{part}_f1", f"part{part}_f2") for part in range(60)]
    before = graph_of(calls)
    page = graph(graph_of(calls, digests={"part7_f3": "a5" * 8}), before, profile_of(part0=1))
    page.set_viewport_size({"width": 390, "height": 860})
    assert page.locator("#levels button").count() == 1 + 60 + 3600
    assert page.locator(".level h2").all_inner_texts() == [
        "level 0\n1 function", "level 1\n60 functions", "level 2\n3,540 functions", "level 3\n60 functions",
    ]  # fmt: skip
    # What changed comes first, although it is one of thousands of squares.
    first = page.locator(".level:nth-child(3) button").first
    assert (first.get_attribute("class"), first.inner_text()) == ("changed", "part7_f3")

    page.keyboard.press("/")
    page.keyboard.type("part7_f")
    assert page.locator("#matches [role=option]").count() == 50
    assert page.locator("#matches .rest").inner_text() == "and 10 others: type more of the name"
    assert page.locator("#levels button.found").count() == 60
    assert page.locator("#levels button.faint").count() == 3601
    page.keyboard.type("3")
    assert page.locator("#matches [role=option]").first.inner_text() == "part7_f3"
    page.keyboard.press("Enter")
    assert focus_of(page) == "part7_f3"
    assert around(page) == ["main", "part7", "part7_f3"]
    assert page.locator("#graph .node.focus.changed").is_visible()
    inside = """node => {
        const one = node.getBoundingClientRect(), all = byId("viewport").getBoundingClientRect();
        return one.left >= all.left && one.right <= all.right
            && one.top >= all.top && one.bottom <= all.bottom;
    }"""
    assert page.locator("#graph .node.focus rect").evaluate(inside)
    assert "its control flow changed" in page.locator("#details").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert focus_of(page) == "part7"
    assert len(around(page)) == 1 + 1 + 40 + 1  # main, itself, and the first of what it calls
    # The page is as wide as the window: what is wider is scrolled within it.
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_hostile_names_are_only_text(graph: Callable[..., Page], hostile_names: Sequence[str]) -> None:
    calls = [("main", name) for name in hostile_names]
    before = graph_of([*calls[:3], ("main", hostile_names[0] + "old")])
    page = graph(graph_of(calls), before, profile_of(**{hostile_names[1]: 1}))
    page.get_by_role("button", name="main", exact=False).first.click()
    assert len(around(page)) == len(hostile_names) + 1
    page.locator("#changes-title").click()
    assert page.locator("#rows tr").count() >= 1
