"""Importer of Firefox Profiler JSON: as Firefox writes it (Gecko), and preprocessed, as the profiler itself,
samply and others write it; with tables in each thread, or shared by all.

The formats are those of `docs-developer/CHANGELOG-formats.md` and `src/types` of
https://github.com/firefox-devtools/profiler, up to version 75 of the preprocessed one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os.path import basename
from typing import Any, ClassVar, Final

from perun.importer._common import note_cut
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks

_HAS_LINE: Final = 1 << 4
"""Bit in the flags of a frame, since version 71."""
_HAS_SOURCE: Final = 1 << 3
_HAS_RESOURCE: Final = 1 << 2
"""Bits in the flags of a function, since version 75."""
_MOST_PROCESSES: Final = 1000
_UNITS: Final = {"samples": ("samples", ""), "tracing-ms": ("time", "ms"), "bytes": ("memory", "B")}


class FirefoxImporter:
    """Reads the samples of all threads with their weights; of several threads a stack begins with its own."""

    name: ClassVar[str] = "firefox"
    help: ClassVar[str] = "Firefox Profiler JSON, as Firefox, the profiler, samply and others write it."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with a version of the format, or the sampling interval beside a start, near its begin."""
        return head.lstrip()[:1] == b"{" and (
            b'"preprocessedProfileVersion"' in head
            or all(word in head for word in (b'"meta"', b'"interval"', b'"startTime"', b'"version"'))
        )

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        whole = file.json()
        meta = whole["meta"]
        threads = list(_threads(whole))
        kinds = {one["samples"].get("weightType") or "samples" for one, _ in threads if "samples" in one}
        name, unit = _UNITS[kinds.pop() if len(kinds) == 1 else "samples"]
        stacks = SampledStacks({name: unit})
        used = [one for one in threads if any(part is not None for part in _samples(one[0]))]
        for thread, root in used:
            begin = [Frame(str(thread.get("name") or "thread"))] if len(used) > 1 else []
            _add(stacks, thread, root, begin)
        program = meta.get("product") or threads[0][0].get("processName") or ""
        start = meta.get("startTime")
        moment = start / 1000 if isinstance(start, (int, float)) else None
        note_cut(stacks, file, ctx)
        yield Imported(stacks.profile(self.name, str(program)), moment=moment)


def _threads(whole: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    """The threads of all processes, which Gecko nests, each with the profile that it is of."""
    waiting, seen = [whole], 0
    while waiting:
        one = waiting.pop(0)
        seen += 1
        for thread in one["threads"]:
            if isinstance(thread, str):  # a process, before version 5 of Gecko's
                waiting.append(json.loads(thread))
            else:
                yield thread, one
        waiting += one.get("processes") or ()
        if seen > _MOST_PROCESSES:
            raise ValueError("too many processes")


def _samples(thread: Mapping[str, Any]) -> Sequence[Any]:
    """The stacks of the samples."""
    return _table(thread["samples"]).get("stack") or () if thread.get("samples") else ()


def _add(
    stacks: SampledStacks, thread: Mapping[str, Any], root: Mapping[str, Any], begin: Sequence[Frame]
) -> None:
    samples = _table(thread["samples"])
    frames = _gecko(thread) if "schema" in thread.get("frameTable", {}) else _processed(thread, root)
    table = _table(thread["stackTable"] if thread.get("stackTable") else root["shared"]["stackTable"])
    nodes = list(_nodes(stacks, table, frames, stacks.node(begin)))
    weights: Sequence[Any] = samples.get("weight") or [1] * len(samples["stack"])
    for stack, weight in zip(samples["stack"], weights, strict=True):
        if stack is not None and stack >= 0:
            stacks.add(nodes[stack], 1 if weight is None else weight + 0)


def _nodes(
    stacks: SampledStacks, table: Mapping[str, list[Any]], frames: list[Frame], begin: int
) -> Iterator[int]:
    """The node of each row of the table, whose callers come before it."""
    offsets = table.get("prefixOffset")
    known: list[int] = []
    for row, frame in enumerate(table["frame"]):
        if offsets is not None:
            caller = row - offsets[row] if offsets[row] else None
        else:
            caller = table["prefix"][row]
        if caller is not None and not 0 <= caller < row:
            raise ValueError(f"row {row} of a stack table has a caller behind it")
        known.append(stacks.below(begin if caller is None else known[caller], frames[frame]))
        yield known[-1]


def _table(table: Mapping[str, Any]) -> Mapping[str, list[Any]]:
    """The table by columns; Gecko has rows, and a schema that numbers their fields."""
    schema = table.get("schema")
    if schema is None:
        return table
    rows = table["data"]
    return {
        name: [row[place] if place < len(row) else None for row in rows] for name, place in schema.items()
    }


def _gecko(thread: Mapping[str, Any]) -> list[Frame]:
    """The frames as Gecko writes them: a location is `name (source:line:column)`, or any name."""
    strings = thread["stringTable"]
    return [_located(str(strings[place])) for place in _table(thread["frameTable"])["location"]]


def _located(text: str) -> Frame:
    name, bracket, place = text.rpartition(" (")
    if bracket and place.endswith(")"):
        parts = place[:-1].rsplit(":", 2)
        numbers = [part for part in parts[1:] if part.isdigit() and len(part) < 10]
        if numbers and len(parts) - 1 == len(numbers):
            return Frame(name, parts[0], int(numbers[0]))
        return Frame(name, place[:-1])
    name, of, library = text.partition(" (in ")
    return Frame(name or "?", library.rstrip(")") if of else "")


def _processed(thread: Mapping[str, Any], root: Mapping[str, Any]) -> list[Frame]:
    """The frames of a preprocessed profile."""
    shared = root.get("shared") or {}

    def table(name: str) -> Any:
        return thread.get(name) or shared.get(name) or {}

    strings = shared.get("stringArray") or thread.get("stringArray") or thread.get("stringTable") or []
    frames, functions, resources = table("frameTable"), table("funcTable"), table("resourceTable")
    sources = (table("sources") or {}).get("filename")
    libs = root.get("libs") or thread.get("libs") or []
    known: list[tuple[str, str]] = []
    for row, name in enumerate(functions["name"]):
        flags = _cell(functions, "flags", row)
        source = ""
        if sources is not None and (flags is None or flags & _HAS_SOURCE):
            number = _cell(functions, "source", row)
            source = str(strings[sources[number]]) if number is not None else ""
        elif (number := _cell(functions, "fileName", row)) is not None:
            source = str(strings[number])
        resource = _cell(functions, "resource", row)
        if not source and resource is not None and resource >= 0 and (flags is None or flags & _HAS_RESOURCE):
            of = _cell(resources, "name", resource)
            lib = _cell(resources, "lib", resource)
            if of is not None:
                source = str(strings[of])
            elif lib is not None:
                source = str(libs[lib]["name"])
        known.append((str(strings[name]) or "?", basename(source) if source.startswith("/") else source))
    found = []
    for row, function in enumerate(frames["func"]):
        flags, line = _cell(frames, "flags", row), _cell(frames, "line", row)
        has_line = line is not None and line > 0 and (flags is None or flags & _HAS_LINE)
        name, source = known[function]
        found.append(Frame(name, source, int(line) if has_line else 0))
    return found


def _cell(table: Mapping[str, Any], name: str, row: int) -> Any:
    column = table.get(name)
    return column[row] if column and row < len(column) else None  # the first versions left the ends out


PLUGIN = FirefoxImporter
