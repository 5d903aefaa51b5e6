"""Call graphs as files: compact JSON to be read again, JSON for scripts, and dot for Graphviz."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby, repeat
from typing import Any, Final, TypedDict, TypeVar

from perun.core.errors import ProfileError
from perun.native.callgraph.graph import (
    KINDS,
    UNKNOWN,
    CallEdge,
    CallGraph,
    Fingerprints,
    GraphFunction,
    no_search_for_cycles,
)

_FORMAT: Final = 5
_WIDTHS: Final = "BHIQ"
"""How numbers of 1, 2, 4 and 8 bytes are packed, as `struct` names it."""
_DIGEST: Final = 8
"""Bytes of a digest; all are 0 for none."""
_NO_DIGEST: Final = bytes(_DIGEST).hex()
_Made = TypeVar("_Made", Fingerprints, GraphFunction, CallEdge)
_STYLES: Final = {"tail": "dashed", "indirect": "dotted", "dynamic": "bold"}


class _Functions(TypedDict):
    """The functions as columns; of their sites, which are numbers of functions, all in one column, and how
    many each function has. Columns of numbers are bytes, see :func:`_packed`; `digests` has those of all
    functions for the first way to compare, then those for the next one. `uid` has the positions and uids of
    those whose name is another one."""

    name: list[str]
    uid: dict[int, str]
    symbol: list[str]
    address: bytes
    size: bytes
    instructions: bytes
    digests: bytes
    sites: bytes
    site_counts: bytes
    flow: list[str]
    own: bytes
    address_taken: bytes


class _File(TypedDict):
    """A file, in which functions are numbers; those of other programs, `others`, come after the own ones.

    It has few long columns, as these are read faster than many short ones, and numbers that are packed faster
    than those in digits. The calls of a function follow each other, so that each of `callers` has in
    `caller_counts` how many of `callees` and `kinds` are its own.
    """

    callgraph: int
    build_id: str
    entry: str
    source: str
    functions: _Functions
    others: list[str]
    callers: bytes
    caller_counts: bytes
    callees: bytes
    kinds: bytes


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
    import msgspec

    numbers = {name: number for number, name in enumerate(graph.functions)}
    all_ = graph.functions.values()
    functions: _Functions = {
        "name": list(graph.functions),
        "uid": {place: one.uid for place, one in enumerate(all_) if one.uid != one.name},
        "symbol": [one.symbol for one in all_],
        "address": _packed([one.address for one in all_]),
        "size": _packed([one.size for one in all_]),
        "instructions": _packed([one.instructions for one in all_]),
        "digests": b"".join(
            bytes.fromhex(text or _NO_DIGEST)
            for texts in zip(*(one.fingerprints for one in all_), strict=True)
            for text in texts
        ),
        "sites": _packed([numbers.setdefault(site, len(numbers)) for one in all_ for site in one.sites]),
        "site_counts": _packed([len(one.sites) for one in all_]),
        "flow": [one.flow for one in all_],
        "own": bytes(one.own for one in all_),
        "address_taken": bytes(one.address_taken for one in all_),
    }
    runs = [(name, sum(1 for _ in calls)) for name, calls in groupby(call.caller for call in graph.calls)]
    callers = [numbers.setdefault(name, len(numbers)) for name, _ in runs]
    callees = [numbers.setdefault(call.callee, len(numbers)) for call in graph.calls]
    file: _File = {
        "callgraph": _FORMAT,
        "build_id": graph.build_id,
        "entry": graph.entry,
        "source": graph.source,
        "functions": functions,
        "others": list(numbers)[len(graph.functions) :],
        "callers": _packed(callers),
        "caller_counts": _packed([count for _, count in runs]),
        "callees": _packed(callees),
        "kinds": bytes(KINDS.index(call.kind) for call in graph.calls),
    }
    found: dict[str, Any] = msgspec.to_builtins(file)
    return found


def from_values(values: object) -> CallGraph:
    """The graph that :func:`to_values` wrote.

    :raises ProfileError: where it is something else, damaged, or of another version of Perun.
    """
    import msgspec

    try:
        file = msgspec.convert(values, _File, str_keys=True)
        if file["callgraph"] != _FORMAT:
            raise ValueError(f"its format is {file['callgraph']}, and not {_FORMAT}")
        with no_search_for_cycles():
            return _graph(file)
    except (msgspec.MsgspecError, ValueError, IndexError, OverflowError, struct.error) as problem:
        raise _unreadable(problem) from None


def _unreadable(problem: Exception) -> ProfileError:
    return ProfileError(
        f"this is no call graph that this version of Perun reads: {problem}",
        "extract it again: perun collect trace --only-extract-cg",
    )


def _graph(file: _File) -> CallGraph:
    columns = file["functions"]
    own = columns["name"]
    names = own + file["others"]
    # Tens of thousands of values: with as few steps of Python for each as can be.
    sites = tuple([names[number] for number in _unpacked(columns["sites"])])
    ends = list(accumulate(_unpacked(columns["site_counts"]), initial=0))
    if ends[-1] != len(sites):
        raise ValueError("its functions have other numbers of calls than are listed")
    functions = zip(
        own,
        _uids(own, columns["uid"]),
        columns["symbol"],
        _unpacked(columns["address"]),
        _unpacked(columns["size"]),
        _unpacked(columns["instructions"]),
        _all(Fingerprints, _digests(columns["digests"], len(own))),
        map(sites.__getitem__, map(slice, ends, ends[1:])),
        columns["flow"],
        map(bool, columns["own"]),
        map(bool, columns["address_taken"]),
        strict=True,
    )
    callers = [names[number] for number in _unpacked(file["callers"])]
    calls = zip(
        chain.from_iterable(map(repeat, callers, _unpacked(file["caller_counts"]))),
        [names[number] for number in _unpacked(file["callees"])],
        [KINDS[number] for number in file["kinds"]],
        strict=True,
    )
    return CallGraph(
        file["build_id"],
        file["entry"],
        dict(zip(own, _all(GraphFunction, functions), strict=True)),
        tuple(_all(CallEdge, calls)),
        file["source"],
    )


def _uids(names: list[str], others: Mapping[int, str]) -> list[str]:
    """The uids of functions, which are their names but for those at some positions."""
    found = names.copy()
    for place, uid in others.items():
        found[place] = uid
    return found


def _digests(data: bytes, functions: int) -> Iterator[tuple[str, ...]]:
    """The digests of each function."""
    if len(data) != len(Fingerprints._fields) * functions * _DIGEST:
        raise ValueError("its functions have other numbers of digests than are listed")
    texts = data.hex(" ", _DIGEST).split(" ")
    if _NO_DIGEST in texts:
        texts = ["" if text == _NO_DIGEST else text for text in texts]
    ways = range(len(Fingerprints._fields))
    return zip(*(texts[way * functions : (way + 1) * functions] for way in ways), strict=True)


def _packed(numbers: Sequence[int]) -> bytes:
    """Numbers in as few bytes each as the largest needs, the lowest byte first; before them their width."""
    largest = max(numbers, default=0)
    width = next(one for one in _WIDTHS if largest < 256 ** struct.calcsize(one))
    return width.encode() + struct.pack(f"<{len(numbers)}{width}", *numbers)


def _unpacked(data: bytes) -> tuple[int, ...]:
    """The numbers that :func:`_packed` packed."""
    width = data[:1].decode("ascii")
    if not width or width not in _WIDTHS:
        raise ValueError("numbers without a width")
    return struct.unpack(f"<{(len(data) - 1) // struct.calcsize(width)}{width}", data[1:])


def _all(kind: type[_Made], rows: Iterable[tuple[Any, ...]]) -> Iterator[_Made]:
    """Named tuples of rows; `_make` takes five times as long, as it is no function of C."""
    return map(tuple.__new__, repeat(kind), rows)


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
