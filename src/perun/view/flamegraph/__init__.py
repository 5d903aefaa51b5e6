"""Flame graph: where resources come from, by their call stacks, as one interactive page (manual 6.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, TextIO

import perun
from perun.core.errors import ProfileError, UsageError
from perun.core.wording import counted
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.calls import MAX_DEPTH
from perun.profile.factory import Profile
from perun.profile.island import TYPE
from perun.profile.memory import SIZES, notes
from perun.profile.stacks import (
    COUNT,
    Stack,
    Stacks,
    StackTree,
    chrome_trace,
    folded,
    speedscope,
    stacks_of,
)
from perun.view._common import chart_view, command_line
from perun.view._common.files import as_json, needs_page, write_interactive_page, write_or_print

# The numbers that a flame graph can show of a profile: of a memory profile there are several.

AMOUNT: Final = "amount"
_NANOSECONDS: Final = ("trace", "complexity")
"""Collectors whose exclusive times are in nanoseconds, whatever the unit of their amounts."""


class Mode(NamedTuple):
    """What the width of frames stands for.

    :param of: the key of the number in the resources. :param name: what the page calls it.
    """

    of: str
    name: str


MEMORY: Final = (
    Mode("peak", "Peak"),
    Mode("leaked", "Leaked"),
    Mode(AMOUNT, "Allocated"),
    Mode("temporary", "Temporary"),
    Mode(COUNT, "Count"),
)
"""Of memory profiles: sizes, and numbers of allocations."""
ISLAND: Final = (Mode("seconds", "Time"), Mode("calls", "Calls"))
"""Of islands, whose amounts have different units."""
_ISLAND_UNITS: Final = {"seconds": "s", "calls": "calls"}
_BLOCKS: Final = frozenset({"temporary", COUNT})


def default_of(profile: Profile) -> str:
    """The number to show first: of a memory profile what was live at the peak, if it knows that; of an island
    the time."""
    if profile.type == TYPE:
        return ISLAND[0].of
    return "peak" if _knows_peak(profile) else AMOUNT


def modes(profile: Profile, of: str) -> list[Mode]:
    """All that the page can show; one mode is that of the number `of`."""
    found = list(MEMORY) if _knows_peak(profile) else list(ISLAND) if profile.type == TYPE else []
    return found if any(mode.of == of for mode in found) else [Mode(of, of), *found]


def amounts_of(profile: Profile, of: str) -> dict[Stack, float]:
    """The amounts of the call stacks; none where no resource has the number, or none above 0."""
    try:
        return stacks_of(profile, of).amounts
    except (UsageError, ProfileError):
        return {}


def unit_of(profile: Profile, of: str) -> str:
    """The unit of a number of the resources; empty where it is not known."""
    memory = profile.type == "memory"
    if profile.type == TYPE and of in _ISLAND_UNITS:
        return _ISLAND_UNITS[of]
    if memory and of in _BLOCKS:
        return "allocations"
    if of not in (AMOUNT, "exclusive", "timestamp") and not (memory and of in SIZES):
        return "resources" if of == COUNT else ""
    if of == "exclusive" and profile.configuration.collector in _NANOSECONDS:
        return "ns"
    units: Any = profile.get("header", {}).get("units", {})
    if not isinstance(units, dict):
        return ""
    # The header may name a unit for each type of resources, e.g. `mixed(time delta)`.
    return str(units.get(profile.type) or (next(iter(units.values())) if len(units) == 1 else ""))


def _knows_peak(profile: Profile) -> bool:
    return profile.type == "memory" and any(
        "trace" in group.constants and ("peak" in group.columns or "peak" in group.constants)
        for group in profile.groups()
    )


FORMATS: Final = ("html", "folded", "speedscope", "chrome")
COLOURS: Final = ("auto", "module", "name", "share")
BY: Final = ("function", "line")


@dataclass(frozen=True)
class FlameParams:
    """The number to show, the initial state of the page, and the format and its destination."""

    filename: str = param(
        "",
        short="-f",
        metavar="<filename>",
        help="Write to this file, which is replaced if it exists. By default, a page goes to a new file "
        "named after the profile, and other formats go to standard output.",
    )
    graph_height: int = param(
        18,
        short="-h",
        minimum=10,
        metavar="<graph_height>",
        help="Height of each frame of the graph, in pixels.",
    )
    graph_title: str = chart_view.title("graph")
    of: str = param(
        "",
        short="-o",
        metavar="<key>",
        help="The number of the resources that gives the width of frames; `count` counts the resources. By "
        "default amount, of a memory profile peak; the page of one can be switched to the others.",
    )
    diff: str = param(
        "",
        short="-d",
        metavar="<profile>",
        help="Compare with this baseline profile: a tag, a name or a path. Colours tell frames that grew "
        "from frames that shrank.",
    )
    format: str = param(
        "html",
        choices=FORMATS,
        help="html: the interactive page; for other tools: folded (one stack per line), speedscope (JSON), "
        "chrome (Trace Event Format, every call with its time).",
    )
    by: str = param(
        "function",
        choices=BY,
        help="function: all calls of a function are one frame; line: calls from different lines are "
        "different frames.",
    )
    colour: str = param(
        "auto",
        choices=COLOURS,
        help="The initial colours of the page; auto is module if there are several modules, else name.",
    )
    icicle: bool = param(False, help="Start the page as an icicle graph: the outermost call on top.")
    view_in_browser: bool = chart_view.view_in_browser()


class FlameGraphView:
    """Call stacks as a flame graph: the wider a frame is, the more the function and its callees consume.

    Stacks come from the traces of the resources, as in memory profiles, or from the nesting of calls in
    time, as in trace and complexity profiles. The page needs no network; zoom and search are part of it.
    """

    name: ClassVar[str] = "flamegraph"
    help: ClassVar[str] = "Flame graph of what the resources of call stacks consume."
    Params: ClassVar[type] = FlameParams

    def render(
        self, profile: Profile, params: FlameParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write a page to a file, and its name to `out`; other formats go to `out` if no file is named.

        :raises ProfileError: if the profile has no call stacks.
        :raises UsageError: if `params` contradict each other or the profile, or the file cannot be written.
        """
        if params.diff and params.format != "html":
            raise UsageError(
                f"--diff needs --format html, not {params.format}",
                "leave out --diff or --format",
            )
        needs_page(params.format, browse=params.view_in_browser)
        if params.format == "chrome":
            _export_calls(profile, params, out)
            return
        params = replace(params, of=params.of or default_of(profile))
        stacks = _stacks(profile, params, ctx)
        if params.format != "html":
            _export(profile, stacks, params, out)
            return
        _write_page(profile, stacks, params, out, ctx)


def _stacks(profile: Profile, params: FlameParams, ctx: ViewContext) -> Stacks:
    stacks = stacks_of(profile, params.of)
    if stacks.left_out:
        left_out = counted(stacks.left_out, "resource")
        ctx.note(f"the graph leaves out {left_out} whose {params.of} is negative or not a number")
    if stacks.too_deep:
        too_deep = counted(stacks.too_deep, "call")
        ctx.note(f"the graph adds {too_deep} nested deeper than {MAX_DEPTH} levels to their callers")
    return stacks


def _export(profile: Profile, stacks: Stacks, params: FlameParams, out: TextIO) -> None:
    if params.format == "folded":
        text = folded(stacks.amounts, params.by == "line")
    else:
        document = speedscope(
            stacks.amounts,
            name=_title(profile, params),
            unit=unit_of(profile, params.of),
            exporter=f"perun {perun.__version__}",
        )
        text = as_json(document)
    write_or_print(params.filename, (text,), out)


def _export_calls(profile: Profile, params: FlameParams, out: TextIO) -> None:
    if params.of not in ("", "amount"):
        raise UsageError(
            f"--format chrome shows the durations of calls, not {params.of}",
            "leave out --of or --format",
        )
    pieces = chrome_trace(
        profile,
        name=params.graph_title or command_line(profile) or "a profile",
        unit=unit_of(profile, "amount"),
        exporter=f"perun {perun.__version__}",
    )
    write_or_print(params.filename, pieces, out)


def _write_page(profile: Profile, stacks: Stacks, params: FlameParams, out: TextIO, ctx: ViewContext) -> None:
    shown = modes(profile, params.of)
    profiles, found = [profile], [stacks]
    if params.diff:
        profiles.append(_baseline(profile, params, ctx))
        found.append(_stacks(profiles[1], params, ctx))
    tree = StackTree(
        [
            known.amounts if mode.of == params.of else amounts_of(one, mode.of)
            for mode in shown
            for one, known in zip(profiles, found, strict=True)
        ]
    )
    document = tree.document()
    amounts, each = document.pop("amounts"), len(profiles)
    write_interactive_page(
        *(profile, params, out, ctx, __file__),
        data={
            **document,
            "modes": [
                {
                    "of": mode.of,
                    "name": mode.name,
                    "unit": unit_of(profile, mode.of),
                    "amounts": amounts[number * each : (number + 1) * each],
                }
                for number, mode in enumerate(shown)
            ],
            "of": params.of,
            "notes": notes(profile),
            "frameHeight": params.graph_height,
            "colour": _colour(tree, params),
            "icicle": params.icicle,
            "byLine": params.by == "line",
        },
        title=_title(profile, params),
        subtitle=_subtitle(profile, params, len(shown) > 1),
        scripts=("graph.js", "page.js"),
    )


def _colour(tree: StackTree, params: FlameParams) -> str:
    if params.diff:
        return "change"
    if params.colour != "auto":
        return params.colour
    return "module" if len({frame.source for frame in tree.frames if frame.source}) > 1 else "name"


def _baseline(profile: Profile, params: FlameParams, ctx: ViewContext) -> Profile:
    if ctx.load is None:
        raise UsageError(
            f"--diff cannot load {params.diff!r}: the context of the view has no function `load`",
            "pass a ViewContext with `load`, or leave out --diff",
        )
    other = ctx.load(params.diff)
    units = unit_of(other, params.of), unit_of(profile, params.of)
    if other.type != profile.type or units[0] != units[1]:
        raise UsageError(
            f"the baseline {params.diff} has the type {other.type or '(none)'} and the unit "
            f"{units[0] or '(none)'}, the profile has {profile.type or '(none)'} and {units[1] or '(none)'}",
            "name a baseline of the same type and unit with --diff",
        )
    return other


def _title(profile: Profile, params: FlameParams) -> str:
    return params.graph_title or f"Flame graph of {command_line(profile) or 'a profile'}"


def _subtitle(profile: Profile, params: FlameParams, several: bool) -> str:
    """What the graph shows, but for the number where the page can show `several`."""
    what = profile.type or profile.configuration.collector
    unit = unit_of(profile, params.of)
    of = f"{params.of} ({unit})" if unit and params.of != "count" else params.of
    shown = "by call stack" if several else f"{of} by call stack"
    shown = (f"{what} {shown}" if several else f"{what}: {shown}") if what else shown
    return f"{shown}, compared with {params.diff}" if params.diff else shown


PLUGIN = FlameGraphView
