"""The flame graph view: of what, in which format, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TextIO

from perun.errors import UsageError
from perun.plugin.api import ALONE, ViewContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perun.profile.factory import Profile
    from perun.view.flamegraph.stacks import Stacks
    from perun.view.flamegraph.tree import Tree

FORMATS: Final = ("html", "folded", "speedscope", "chrome")
COLOURS: Final = ("auto", "module", "name", "share")
_CALLS: Final = ("trace", "complexity")  # whose exclusive times are in nanoseconds
BY: Final = ("function", "line")


@dataclass(frozen=True)
class FlameParams:
    """What is shown, how it looks at first, and where it goes."""

    filename: str = param(
        "",
        short="-f",
        metavar="<filename>",
        help="Sets the output file of the resulting flame graph; replaced where it exists. By default a new "
        "file named after the profile; other formats go to standard output.",
    )
    graph_height: int = param(
        18,
        short="-h",
        minimum=10,
        metavar="<graph_height>",
        help="Height of each frame of the graph, in pixels.",
    )
    graph_title: str = param("", short="-gt", metavar="<text>", help="Sets the custom title of the graph.")
    of: str = param(
        "amount",
        short="-o",
        metavar="<key>",
        help="The number of the resources that widths stand for; `count` is how many resources there are.",
    )
    diff: str = param(
        "",
        short="-d",
        metavar="<profile>",
        help="Compares with this profile, which is the baseline: a tag, a name or a path. Frames that grew "
        "since and those that shrank are coloured differently.",
    )
    format: str = param(
        "html",
        choices=FORMATS,
        help="html is the interactive page; folded (one stack a line), speedscope (JSON) and chrome "
        "(Trace Event Format, every call with its time) are for other tools.",
    )
    by: str = param(
        "function", choices=BY, help="Whether calls of one function from different lines are one frame."
    )
    colour: str = param(
        "auto",
        choices=COLOURS,
        help="What the colours of the page tell at first; auto is module where there are several, else name.",
    )
    icicle: bool = param(False, help="The page starts with the outermost call on top.")
    view_in_browser: bool = param(
        False, short="-v", help="The generated graph will be immediately opened in the browser."
    )


class FlameGraphView:
    """The wider a frame is, the more it consumed, itself and in what it called.

    Stacks come from the traces of the resources, as those of memory profiles, or from calls that lie within
    each other by their timestamps, as those of trace and complexity profiles. The page needs no network:
    zoom, search and colours are its own.
    """

    name: ClassVar[str] = "flamegraph"
    help: ClassVar[str] = "Flame graph of what the resources of call stacks consume."
    Params: ClassVar[type] = FlameParams

    def render(self, profile: Profile, params: FlameParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the page to a file, whose name `out` gets, or stacks to `out` itself.

        :raises ProfileError: where the profile has no stacks.
        :raises UsageError: where `params` contradict each other or the profile, or the file cannot be
            written.
        """
        from perun.view._common.files import destination

        if params.diff and params.format != "html":
            raise UsageError("--diff makes a page", f"leave out --format {params.format}, or --diff")
        if params.view_in_browser and params.format != "html":
            raise UsageError(f"{params.format} is nothing for a browser", "leave out --view-in-browser")
        if params.format == "chrome":
            _export_calls(profile, params, out)
            return
        stacks = _stacks(profile, params, ctx)
        if params.format != "html":
            _export(profile, stacks, params, out)
            return
        path = destination(params.filename, self.name, profile)
        _write_page(path, profile, stacks, params, ctx)
        out.write(f"{path}\n")
        if params.view_in_browser:
            from perun.view._common.browser import open_in_browser

            open_in_browser(path, ctx)


def _stacks(profile: Profile, params: FlameParams, ctx: ViewContext) -> Stacks:
    from perun.view.flamegraph.stacks import stacks_of

    stacks = stacks_of(profile, params.of)
    if stacks.left_out:
        ctx.note(f"{stacks.left_out} resources whose {params.of} is below 0 or no number are left out")
    if stacks.cut:
        from perun.view.flamegraph.calls import DEEPEST

        ctx.note(f"{stacks.cut} calls within more than {DEEPEST} others count for the innermost of these")
    return stacks


def _export(profile: Profile, stacks: Stacks, params: FlameParams, out: TextIO) -> None:
    import perun
    from perun.view.flamegraph.exports import folded, speedscope

    if params.format == "folded":
        text = folded(stacks.amounts, params.by == "line")
    else:
        import json

        document = speedscope(
            stacks.amounts,
            name=_title(profile, params),
            unit=_unit(profile, params.of),
            exporter=f"perun {perun.__version__}",
        )
        text = json.dumps(document, separators=(",", ":")) + "\n"
    _write(params, (text,), out)


def _export_calls(profile: Profile, params: FlameParams, out: TextIO) -> None:
    import perun
    from perun.view.flamegraph.chrome import chrome_trace

    if params.of != "amount":
        raise UsageError("a Chrome trace shows how long calls take", "leave out --of, or --format chrome")
    pieces = chrome_trace(
        profile,
        name=params.graph_title or _command(profile) or "a profile",
        unit=_unit(profile, params.of),
        exporter=f"perun {perun.__version__}",
    )
    _write(params, pieces, out)


def _write(params: FlameParams, pieces: Iterable[str], out: TextIO) -> None:
    from perun.view._common.page import write_pieces

    if not params.filename:
        for piece in pieces:
            out.write(piece)
        return
    write_pieces(Path(params.filename), pieces)
    out.write(f"{params.filename}\n")


def _write_page(path: Path, profile: Profile, stacks: Stacks, params: FlameParams, ctx: ViewContext) -> None:
    from string import Template

    from perun.view._common.look import CSS, PALETTE, RAMP
    from perun.view._common.page import beside, data_block, escape, write_page
    from perun.view.flamegraph.tree import Tree

    sides = [stacks.amounts]
    if params.diff:
        sides.append(_baseline(profile, params, ctx).amounts)
    title = _title(profile, params)
    tree = Tree(sides)
    document = {
        **tree.document(),
        "unit": _unit(profile, params.of),
        "of": params.of,
        "frameHeight": params.graph_height,
        "colour": _colour(tree, params),
        "icicle": params.icicle,
        "byLine": params.by == "line",
        "palette": PALETTE,
        "ramp": RAMP,
    }
    body = Template(beside(__file__, "page.html")).substitute(
        title=escape(title),
        subtitle=escape(_subtitle(profile, params)),
        data=data_block("data", document),
    )
    write_page(
        path,
        title=title,
        body=body,
        style=CSS + beside(__file__, "page.css"),
        scripts=[
            "\n".join(
                (beside(_numbers(), "numbers.js"), beside(__file__, "graph.js"), beside(__file__, "page.js"))
            )
        ],
    )


def _colour(tree: Tree, params: FlameParams) -> str:
    if params.diff:
        return "change"
    if params.colour != "auto":
        return params.colour
    return "module" if len({frame.source for frame in tree.frames if frame.source}) > 1 else "name"


def _numbers() -> str:
    from perun.view._common import numbers

    return numbers.__file__


def _baseline(profile: Profile, params: FlameParams, ctx: ViewContext) -> Stacks:
    if ctx.load is None:
        raise UsageError(f"there is nobody to look up the profile {params.diff!r}", "leave out --diff")
    other = ctx.load(params.diff)
    units = _unit(other, params.of), _unit(profile, params.of)
    if other.type != profile.type or units[0] != units[1]:
        raise UsageError(
            f"{params.diff} is a profile of {other.type or 'nothing'} in {units[0] or 'no unit'}, the other "
            f"one of {profile.type or 'nothing'} in {units[1] or 'no unit'}",
            "compare profiles of the same type and unit",
        )
    return _stacks(other, params, ctx)


def _unit(profile: Profile, of: str) -> str:
    if of not in ("amount", "exclusive", "timestamp"):
        return "resources" if of == "count" else ""
    if of == "exclusive" and profile.configuration.collector in _CALLS:
        return "ns"
    units: Any = profile.get("header", {}).get("units", {})
    if not isinstance(units, dict):
        return ""
    # Profiles of several types name the unit of each, e.g. `mixed(time delta)`.
    return str(units.get(profile.type) or (next(iter(units.values())) if len(units) == 1 else ""))


def _command(profile: Profile) -> str:
    what = profile.configuration
    return " ".join(part for part in (what.cmd, what.args, what.workload) if part)


def _title(profile: Profile, params: FlameParams) -> str:
    return params.graph_title or f"Flame graph of {_command(profile) or 'a profile'}"


def _subtitle(profile: Profile, params: FlameParams) -> str:
    unit = _unit(profile, params.of)
    what = profile.type or profile.configuration.collector
    of = f"{params.of} ({unit})" if unit and params.of != "count" else params.of
    told = f"{what}: {of} by call stack" if what else f"{of} by call stack"
    return f"{told}, compared with {params.diff}" if params.diff else told
