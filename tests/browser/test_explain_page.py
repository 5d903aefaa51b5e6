"""The page of `perun explain` in a real browser: hostile names, and flame graphs in frames of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perun.cli.commands.explain import page_of
from perun.plugin.api import MinorVersion, ViewContext
from perun.profile.factory import Profile
from perun.running.explain.data import (
    AllocatorSite,
    CaseReport,
    CostChange,
    CostPart,
    Explanation,
    FunctionChange,
    GrowthChange,
    HunkLine,
    OtherFile,
)
from perun.view.flamegraph import PLUGIN as FlameGraph

if TYPE_CHECKING:
    pass


def profile_of(names: Sequence[str], amount: int) -> Profile:
    profile = Profile({"header": {"type": "mixed", "units": {"instructions": "instr"}}})
    profile.update_resources([
        {"uid": {"function": name}, "trace": [{"function": name}, {"function": "main"}], "amount": amount,
         "type": "instructions", "subtype": "exclusive"}
        for name in names
    ])  # fmt: skip
    return profile


def explanation(name: str, graph: str) -> Explanation:
    """All texts of it are this name."""
    version = MinorVersion("2026-11-22", name, name, "0" * 40, name, ("1" * 40,))
    function = FunctionChange(
        name, name, name, 1, 2, (CostChange(name, "B", 1, 2, 3), CostChange("time", "ms", 1, 2, 3, 1.5, 2.5)),
        (CostPart(name, 1, 2),), (AllocatorSite(name, name, (1, 2), (1, 2), (1, 2)),),
        GrowthChange(True, True, name, name, name), (name,), (name,),
        (HunkLine("+", 0, 1, name), HunkLine("-", 1, 0, name)), ((name, HunkLine("+", 0, 1, name)),), (name,),
    )  # fmt: skip
    case = CaseReport(name, function.costs, (function,), 1, ((name, graph),), (name,))
    return Explanation(version, version, (case,), (OtherFile(name, "build", 1, 2),), 0, (name,))


def graph_of(names: Sequence[str], written: Callable[..., Path]) -> str:
    context = ViewContext(load=lambda _: profile_of(names, 10))
    return written(FlameGraph(), profile_of(names, 30), context, diff="before").read_text("utf-8")


def test_texts_of_others_are_only_texts(open_page, written, hostile_names, tmp_path) -> None:
    graph = graph_of(hostile_names, written)
    path = tmp_path / "why.html"
    name = " ".join(hostile_names)
    path.write_text(page_of(explanation(name, graph)), "utf-8", "surrogatepass")
    page = open_page(path)
    assert page.locator("h1").inner_text().startswith("0000000 ")
    assert "window.owned = 1" in page.locator("h1").inner_text()
    assert page.locator("tr.added").count() == 2
    assert page.locator("script").count() == page.locator("img").count() == 0
    page.locator("iframe").scroll_into_view_if_needed()
    frame = page.frame_locator("iframe")
    frame.locator("html[data-drawn]").wait_for(state="attached")  # its script is allowed, and has run
    assert frame.locator("#colour").input_value() == "change"
    assert page.evaluate("window.owned") is None
