"""Lines view: the functions that cost most, with what each line of their sources costs, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TextIO

from perun.core.errors import UsageError
from perun.core.wording import counted
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.calls import frame_of
from perun.profile.factory import Profile
from perun.profile.lines import entries, rows
from perun.profile.session import is_uncommitted
from perun.profile.stacks import stacks_of
from perun.view._common import command_line
from perun.view._common.files import as_json
from perun.view._common.screen import Screen

SCHEMA: Final = "perun.lines/1"
_SAMPLED: Final = "sample"
_TAB: Final = 4
_UNKNOWN: Final = "(source unknown)"


@dataclass(frozen=True)
class LinesParams:
    """Which functions to show, and how much around their lines."""

    function: str = param("", metavar="<text>", help="Only functions whose names have this in them.")
    top: int = param(10, long="--top", short="-n", metavar="<n>", help="How many functions to show.")
    context: int = param(2, metavar="<n>", help="Lines to show around those that cost something.")
    waiting: bool = param(False, help="Show where threads waited: of samples with --wall.")
    json: bool = param(False, help="Answer in JSON.")

    def __post_init__(self) -> None:
        if self.top < 1 or self.context < 0:
            raise ValueError("--top must be at least 1, and --context at least 0")


@dataclass
class Cost:
    """What code costs itself, and with all that it calls, in the unit of the profile."""

    own: float = 0.0
    inclusive: float = 0.0


@dataclass
class FunctionLines(Cost):
    """The cost of a function, and of its lines by file and number; 0 is a line that is not known."""

    lines: dict[tuple[str, int], Cost] = field(default_factory=dict)


Key = tuple[str, str]
"""The name and the source of a function."""


def costs_of(profile: Profile, *, waiting: bool = False) -> tuple[float, dict[Key, FunctionLines]]:
    """What the whole costs, and what its functions do, those that cost most themselves first.

    Lines are those of the frames of call stacks, or of the region `lines`, in which a line of a function that
    is inlined is one of the function that has its code.

    :raises ProfileError: if the profile has no call stacks.
    """
    subtype = ("waiting" if waiting else "cpu") if profile.type == _SAMPLED else ""
    total, found = 0.0, dict[Key, FunctionLines]()
    for stack, amount in stacks_of(profile, subtype=subtype).amounts.items():
        total += amount
        for name, source, line in set(stack):
            _line(found, (name, source), source, line).inclusive += amount
        for key in {frame[:2] for frame in stack}:
            found[key].inclusive += amount
        last = stack[-1]
        found[last[:2]].own += amount
        _line(found, last[:2], last.source, last.line).own += amount
    region = profile.get("lines")
    if isinstance(region, Mapping):
        _add_region(found, region)
    return total, dict(sorted(found.items(), key=lambda one: (-one[1].own, -one[1].inclusive, one[0])))


def _line(found: dict[Key, FunctionLines], key: Key, source: str, line: int) -> Cost:
    return found.setdefault(key, FunctionLines()).lines.setdefault((source, line), Cost())


def _add_region(found: dict[Key, FunctionLines], region: Mapping[str, Any]) -> None:
    """The lines of the region, in place of those of the frames of the functions that it names."""
    keys = [frame_of(one)[:2] for one in entries(region, "functions")]
    files = [str(one) for one in entries(region, "files")]
    lines: dict[Key, dict[tuple[str, int], Cost]] = {}
    for function, file, line, amount in rows(region, "costs"):
        cost = lines.setdefault(keys[function], {}).setdefault((files[file], line), Cost())
        cost.own += amount
        cost.inclusive += amount
    for function, file, line, callee, _, amount in rows(region, "calls"):
        cost = lines.setdefault(keys[function], {}).setdefault((files[file], line), Cost())
        if callee != function:  # what a function calls of itself is in its other lines
            cost.inclusive += amount
    for key in found.keys() & lines.keys():
        found[key].lines = lines[key]


class LinesView:
    """Shows sources with the share of the cost of each line: its own, and with what it calls.

    The text of the sources is that of the version of the profile.
    """

    name: ClassVar[str] = "lines"
    help: ClassVar[str] = "Sources with the cost of each line, of samples and of counted instructions."
    Params: ClassVar[type] = LinesParams

    def render(
        self, profile: Profile, params: LinesParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the functions that cost most, with their lines.

        :raises ProfileError: if the profile has no call stacks. :raises UsageError: if no function fits.
        """
        if params.waiting and profile.type != _SAMPLED:
            raise UsageError("--waiting is for profiles of perun collect sample --wall", "leave it out")
        total, found = costs_of(profile, waiting=params.waiting)
        chosen = {key: cost for key, cost in found.items() if params.function in key[0]}
        if not chosen:
            raise UsageError(
                f"no function has {params.function!r} in its name", "leave out --function to see their names"
            )
        if not any(line for cost in found.values() for _, line in cost.lines):
            ctx.note("the profile has no lines: compile with -g, and collect again")
        if is_uncommitted(profile):
            ctx.note("measured with uncommitted changes; the sources are those of the commit, without them")
        shown = dict(list(chosen.items())[: params.top])
        texts = _texts(shown, ctx.source)
        if params.json:
            out.write(as_json(_document(profile, total, shown, texts, len(chosen))))
            return
        screen = Screen.of(out, ctx)
        for text in _report(profile, params, total, shown, texts):
            row = screen.printable(text)
            out.write(f"{row[: ctx.columns] if ctx.columns else row}\n")
        if more := len(chosen) - len(shown):
            ctx.note(f"{counted(more, 'more function')}; --top shows them")


def _texts(shown: Mapping[Key, FunctionLines], source: Callable[[str], str | None]) -> dict[str, list[str]]:
    """The lines of the files; none of those whose text is not known."""
    paths = {path for cost in shown.values() for path, line in cost.lines if path and line}
    known = ((path, source(path)) for path in sorted(paths))
    return {path: text.split("\n") for path, text in known if text is not None}


def _at(texts: Mapping[str, list[str]], path: str, line: int) -> str | None:
    lines = texts.get(path, ())
    return lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else None


def _report(
    profile: Profile,
    params: LinesParams,
    total: float,
    shown: Mapping[Key, FunctionLines],
    texts: Mapping[str, list[str]],
) -> Iterator[str]:
    unit = _unit(profile)
    yield f"{command_line(profile)}: {readable(total, unit)}".removeprefix(": ")
    yield "    own    incl."
    for (name, source), cost in shown.items():
        yield ""
        yield f"{_shares(cost, total)}  {name}  {source}".rstrip()
        for path in sorted({path for path, line in cost.lines if line}, key=lambda one: (one != source, one)):
            if path != source:
                yield f"{'':16}  {path}"
            if path not in texts:
                yield f"{'':16}  {_UNKNOWN}"
            yield from _lines(cost, path, texts, total, params.context)


def _lines(
    cost: FunctionLines, path: str, texts: Mapping[str, list[str]], total: float, context: int
) -> Iterator[str]:
    costs = {line: one for (place, line), one in cost.lines.items() if place == path and line}
    context *= path in texts
    last = 0
    for line in sorted({near for one in costs for near in range(one - context, one + context + 1)}):
        text = _at(texts, path, line)
        if text is None and line not in costs:
            continue
        if last and context and line > last + 1:
            yield f"{'':16}  {'...':>6}"
        last = line
        shares = _shares(costs[line], total) if line in costs else ""
        yield f"{shares:16}  {line:6}  {(text or '').expandtabs(_TAB)}".rstrip()


def _shares(cost: Cost, total: float) -> str:
    own = f"{cost.own / total:6.1%}" if cost.own else ""
    return f"{own:>7}  {cost.inclusive / total:7.1%}"


def _unit(profile: Profile) -> str:
    units: Any = profile.get("header", {}).get("units")
    return str(units.get(profile.type, "")) if isinstance(units, Mapping) else ""


def _document(
    profile: Profile,
    total: float,
    shown: Mapping[Key, FunctionLines],
    texts: Mapping[str, list[str]],
    functions: int,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "command": command_line(profile),
        "unit": _unit(profile),
        "total": total,
        "of": functions,
        "functions": [
            {
                "function": name,
                "source": source,
                "own": cost.own,
                "inclusive": cost.inclusive,
                "lines": [
                    {
                        "file": path,
                        "line": line,
                        "own": one.own,
                        "inclusive": one.inclusive,
                        "text": _at(texts, path, line),
                    }
                    for (path, line), one in sorted(cost.lines.items())
                    if line
                ],
            }
            for (name, source), cost in shown.items()
        ],
    }


PLUGIN = LinesView
