"""Call graphs as files: compact JSON to be read again, JSON for scripts, and dot for Graphviz."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypedDict

from perun.callgraph.collecting import no_search_for_cycles
from perun.callgraph.graph import KINDS, UNKNOWN, Call, CallGraph, Fingerprints, Function
from perun.errors import ProfileError

_FORMAT: Final = 1
_STYLES: Final = {"tail": "dashed", "indirect": "dotted", "dynamic": "bold"}


class _Row(NamedTuple):
    """A function; its sites are numbers of functions."""

    name: str
    uid: str
    symbol: str
    address: int
    size: int
    instructions: int
    fingerprints: Fingerprints
    sites: list[int]
    flow: str
    own: bool
    address_taken: bool


class _File(TypedDict):
    """A file, in which functions are numbers; those of other programs, `others`, come after the own ones."""

    callgraph: int
    build_id: str
    entry: str
    source: str
    functions: list[_Row]
    others: list[str]
    callers: list[int]
    callees: list[int]
    kinds: list[int]


def to_json(graph: CallGraph) -> bytes:
    """The graph as compact JSON, which :func:`from_json` reads."""
    import msgspec

    return msgspec.json.encode(to_values(graph))


def from_json(data: bytes | str) -> CallGraph:
    """The graph that :func:`to_json` wrote.

    :raises ProfileError: where it is something else, damaged, or of another version of Perun.
    """
    import msgspec

    try:
        return from_values(msgspec.json.decode(data))
    except msgspec.MsgspecError as problem:
        raise _unreadable(problem) from None


def to_values(graph: CallGraph) -> dict[str, Any]:
    """The graph as compact values for JSON, e.g. statistics, which :func:`from_values` reads."""
    numbers = {name: number for number, name in enumerate(graph.functions)}
    rows = []
    for one in graph.functions.values():
        sites = [numbers.setdefault(site, len(numbers)) for site in one.sites]
        rows.append(_Row(**{**one._asdict(), "sites": sites}))
    callers = [numbers.setdefault(call.caller, len(numbers)) for call in graph.calls]
    callees = [numbers.setdefault(call.callee, len(numbers)) for call in graph.calls]
    file: _File = {
        "callgraph": _FORMAT,
        "build_id": graph.build_id,
        "entry": graph.entry,
        "source": graph.source,
        "functions": rows,
        "others": list(numbers)[len(rows) :],
        "callers": callers,
        "callees": callees,
        "kinds": [KINDS.index(call.kind) for call in graph.calls],
    }
    return {**file}


def from_values(values: object) -> CallGraph:
    """The graph that :func:`to_values` wrote.

    :raises ProfileError: where it is something else, damaged, or of another version of Perun.
    """
    import msgspec

    try:
        file = msgspec.convert(values, _File)
        if file["callgraph"] != _FORMAT:
            raise ValueError(f"its format is {file['callgraph']}, and not {_FORMAT}")
        with no_search_for_cycles():
            return _graph(file)
    except (msgspec.MsgspecError, ValueError, IndexError) as problem:
        raise _unreadable(problem) from None


def _unreadable(problem: Exception) -> ProfileError:
    return ProfileError(
        f"this is no call graph that this version of Perun reads: {problem}",
        "extract it again: perun collect trace --only-extract-cg",
    )


def _graph(file: _File) -> CallGraph:
    names = [row.name for row in file["functions"]] + file["others"]
    name_of = names.__getitem__
    functions = {
        row.name: Function(*row[:7], tuple(map(name_of, row.sites)), *row[8:]) for row in file["functions"]
    }
    columns = (
        map(name_of, file["callers"]),
        map(name_of, file["callees"]),
        map(KINDS.__getitem__, file["kinds"]),
    )
    # Tens of thousands of calls: made without a step of Python for each.
    calls = tuple(map(Call._make, zip(*columns, strict=True)))
    return CallGraph(file["build_id"], file["entry"], functions, calls, file["source"])


def to_data(graph: CallGraph) -> dict[str, Any]:
    """The graph for scripts, ready for JSON: functions and calls, with a name for each value."""
    levels = graph.levels()
    functions = [
        {
            "name": one.name,
            "uid": one.uid,
            "symbol": one.symbol,
            "address": one.address,
            "size": one.size,
            "instructions": one.instructions,
            "level": levels.get(one.name),
            "own": one.own,
            "address-taken": one.address_taken,
            "fingerprints": one.fingerprints._asdict(),
            "blocks": [{"instructions": size, "successors": list(after)} for size, after in one.blocks],
        }
        for one in graph.functions.values()
    ]
    calls = [
        {"caller": call.caller, "callee": call.callee or None, "kind": call.kind} for call in graph.calls
    ]
    return {
        "build-id": graph.build_id,
        "entry": graph.entry,
        "source": graph.source,
        "functions": functions,
        "calls": calls,
    }


def to_dot(graph: CallGraph) -> str:
    """The graph in the language of Graphviz: functions of other files grey, calls through pointers dotted."""
    lines = ["digraph callgraph {", "  rankdir=LR;", "  node [shape=box];"]
    callees = {call.callee for call in graph.calls}
    lines += [f"  {_quoted(name)};" for name in graph.functions]
    others = sorted(callees - graph.functions.keys() - {UNKNOWN})
    lines += [f"  {_quoted(name)} [color=gray, fontcolor=gray];" for name in others]
    if UNKNOWN in callees:
        lines.append('  "" [label="any function (through a pointer)", style=dotted];')
    for caller, callee, kind in graph.calls:
        style = f" [style={_STYLES[kind]}]" if kind in _STYLES else ""
        lines.append(f"  {_quoted(caller)} -> {_quoted(callee)}{style};")
    return "\n".join([*lines, "}", ""])


def _quoted(name: str) -> str:
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{text}"'
