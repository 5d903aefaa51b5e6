"""The options of the view of call graphs."""

from __future__ import annotations

from dataclasses import dataclass

from perun.callgraph.graph import MODES
from perun.plugin.params import param
from perun.view._common import options


@dataclass(frozen=True)
class CallGraphParams:
    """Which graph is shown, what it is compared with, and where it goes."""

    use_cg_type: str = param(
        "auto",
        short="-cg",
        choices=("auto", "static", "dynamic", "mixed"),
        help="The graph to show: of the machine code of the program, as it is kept with the version "
        "(static), of the calls in the profile (dynamic), or both (mixed); auto: mixed where a static one is "
        "kept, else dynamic.",
    )
    baseline: str = param(
        "",
        short="-b",
        metavar="<revision>",
        help="Mark what changed since this version. By default that is the nearest earlier one whose call "
        "graph is kept; none marks nothing.",
    )
    mode: str = param(
        "color",
        choices=MODES,
        help="How functions of two versions are compared: by their numbers of instructions (soft), opcodes "
        "(semistrict), also operands (strict), or up to registers and the order of instructions (color).",
    )
    focus: str = param(
        "", metavar="<function>", help="Start around this function instead of with all levels."
    )
    levels: int = param(
        2,
        short="-n",
        metavar="<count>",
        minimum=1,
        help="How many levels of callers and callees are shown around a function.",
    )
    filename: str = options.filename()
    graph_title: str = options.title("page")
    view_in_browser: bool = options.view_in_browser()
    terminal: bool = param(
        False, help="Write the graph as text to the terminal, as a tree of calls, instead of a page."
    )
