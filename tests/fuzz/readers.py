"""Everything that reads bytes which somebody else may have written, each as a function of these bytes.

Each has a folder of the same name in `tests/data/corpus`: what it reads every day, and what once made it
fail. Where a checksum or compression would keep most changes from what is behind it, there are two readers:
of the file as it is, and of what is inside, sealed anew.
"""

import contextlib
import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from perun.cli.answers import data as cli_formats
from perun.collect._calls.sizes import find_size, size_of
from perun.collect.complexity.records import processes
from perun.collect.complexity.selection import programs
from perun.collect.instructions import callgrind, perf
from perun.collect.memory import preload
from perun.collect.memory.native import load
from perun.collect.memory.records import MemoryRecording
from perun.collect.trace.engines.calibration import boundaries, pieces
from perun.collect.trace.engines.uftrace_safety import unsafe_functions, unwinds
from perun.collect.trace.params import kind_of
from perun.collect.trace.plan import Probe
from perun.core import machine
from perun.core.config import layers
from perun.core.config import layers as config_cache
from perun.core.config import reader as config_reader
from perun.core.errors import ProfileError, UsageError
from perun.fuzz.coverage.gcno import NotElf, read_module
from perun.island import record, result, statistics
from perun.island.accounting import Stops
from perun.island.stop_log import StopLog
from perun.measurement.headline import headline
from perun.native import scopes
from perun.native.binary import Binary
from perun.native.costs import CostTree, FunctionFrame, grow
from perun.native.elf import read_elf
from perun.native.image import static_graph
from perun.native.symbols import SymbolTable, debug_file
from perun.plugin.interchange import ImportContext, ImportFile
from perun.plugin.registry import Registry
from perun.profile.format import columnar, columns
from perun.profile.format import json as formats
from perun.profile.head import ProfileHeader
from perun.profile.island import timeline_of, usage_of
from perun.profile.sampled import IMPORTED
from perun.repository import copies
from perun.running.interchange import read_all
from perun.running.run import journal
from perun.running.run.identical import loaded_parts
from perun.store import Store, changes, index, tree, unpacking
from perun.store import stats as stats_file
from perun.vcs import tagit as tagit_files
from perun.vcs._common import history as git_history
from perun.vcs.svs import Svs
from perun.view.timeline import pieces_of, subtitle, summary

MINOR = "ab" * 20
_RECORDING, _CHUNK = 128, struct.Struct("=4s11I3Q7sBI12x")
"""Of a memory recording: bytes of its header, and the header of a chunk (see `memory/native/record.h`)."""
_TRAILER = 104
"""Bytes at the end of a profile by columns."""
Read = Callable[[bytes, Path], object]
"""From the bytes, and an empty folder, to anything; it may raise `PerunError`, and nothing else."""


def _profile(data: bytes, folder: Path) -> object:
    profile = formats.loads(data, "p.perf")
    # What views and checks begin with.
    return profile.type, sum(1 for _ in profile.all_resources()), sum(1 for _ in profile.all_models())


def _columns(data: bytes, folder: Path) -> object:
    return _profile(b'{"perun-columns":' + data.removeprefix(b'{"perun-columns":'), folder)


def _sealed_columns(data: bytes, folder: Path) -> object:
    # The parts of a file as its trailer names them, with checksums that are right.
    try:
        head, at, size = (int(field, 16) for field in data[-_TRAILER:].split()[2:5])
        packed = columns.unpacked_bits(data[at:-_TRAILER]) or b""
        directory = zlib.decompressobj().decompress(packed, 1 << 20)
        ends = zlib.crc32(data[:head]), zlib.crc32(directory), head, at, size, len(data)
        data = data[:-_TRAILER] + columnar.trailer(*ends)
    except (ValueError, OverflowError, zlib.error):
        pass
    return _columns(data, folder)


def _chunk_of_a_column(data: bytes, folder: Path) -> object:
    for kind in "qd":
        with contextlib.suppress(columns.InvalidChunk):
            assert len(columns.decoded(columns.packed(data), kind)) <= columns.MAX_NUMBERS
    return None


def _header(data: bytes, folder: Path) -> object:
    return ProfileHeader.of(formats.decode_head(data, "p.perf"))


def _object(data: bytes, folder: Path) -> object:
    return unpacking.decode(data, "0" * 40, "object")


def _content_of_an_object(data: bytes, folder: Path) -> object:
    type_, body = unpacking.decode(zlib.compress(data, 1), hashlib.sha1(data).hexdigest(), "object")
    return type_, formats.loads(body, "object")


def _index(data: bytes, folder: Path) -> object:
    return index.parse(data, "index")


def _sealed_index(data: bytes, folder: Path) -> object:
    entries, certain = index.parse(data[:-20] + tree.sha1(data[:-20]), "index")
    # What was read can be written again, and is the same then.
    with contextlib.suppress(UnicodeEncodeError):
        assert sorted(index.parse(index.serialize(entries), "again").entries) == sorted(entries)
    return certain


def _store(folder: Path) -> Store:
    store = Store(folder / ".perun")
    store.create()
    return store


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _pending(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.pending.root / "p.perf", data)
    return store.pending.scan(), [finding.message for finding in store.fsck()]


def _pending_cache(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.pending.root / "p.perf", b"{}")
    _put(store.pending.root / ".index", data[:-20] + tree.sha1(data[:-20]))
    return store.pending.list()


def _changes(data: bytes, folder: Path) -> object:
    found = changes.parse(data, "changes")
    return changes.serialize(found)


def _batch(data: bytes, folder: Path) -> object:
    _put(folder / "batches" / "1.jsonl", data)
    found = journal.interrupted(folder / "batches")
    return found and (found.finished, found.unfinished, found.plan)


def _in_place(data: bytes, folder: Path) -> object:
    _put(folder / "in-place.json", data)
    repository: Any = SimpleNamespace(in_place_journal=folder / "in-place.json")
    return copies.read_journal(repository)


def _statistics(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.stats.path(MINOR, "calls"), data)
    return store.stats.get(MINOR, "calls")


def _content_of_statistics(data: bytes, folder: Path) -> object:
    return _statistics(zlib.compress(data, 1), folder)


def _index_of_statistics(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.stats.root / stats_file.INDEX, zlib.compress(data, 1))
    return store.stats.versions()


def _index_of_temporary_files(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.temp.root / "a", zlib.compress(b"[1]", 1))
    _put(store.temp.root / ".index", zlib.compress(data, 1))
    return store.temp.files(), store.temp.read("a")


def _cache(data: bytes, folder: Path) -> object:
    store = _store(folder)
    _put(store.cache.path, data)
    return store.cache.damage(), store.profile_summaries.of([MINOR]), store.summaries.load().get(MINOR)


def _facts(data: bytes, folder: Path) -> object:
    store = _store(folder)
    store.cache.put("facts", {MINOR: data})
    return store.profile_summaries.of([MINOR])


def _configuration(data: bytes, folder: Path) -> object:
    found = []
    for name in ("local.yml", "shared.yml"):
        _put(folder / name, data)
        found.append(layers.read_file(folder / name))
    return found


def _parameters(data: bytes, folder: Path) -> object:
    return config_reader.loads(data.decode("utf-8", "surrogateescape"), "params.yml")


def _configuration_cache(data: bytes, folder: Path) -> object:
    _put(folder / "config.json", data)
    _put(folder / ".perun" / "local.yml", b"vcs: {type: git}\n")
    config = layers.load([folder / ".perun"], folder / "shared", folder / "config.json")
    return config_cache.read(folder / "config.json"), config.get("vcs.type")


def _memory(data: bytes, folder: Path) -> object:
    _put(folder / "recording", data)
    return [len(piece) for piece in MemoryRecording(folder / "recording", load()).pieces()]


def _content_of_memory(data: bytes, folder: Path) -> object:
    # A header, then chunks that are not packed: each is packed and sealed as the recorder does it.
    sealed, place = [data[:_RECORDING]], _RECORDING
    while place + _CHUNK.size <= len(data):
        magic, _, kind, number, _, size, *rest = _CHUNK.unpack_from(data, place)
        content = data[place + _CHUNK.size : place + _CHUNK.size + size]
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        packed = packer.compress(content) + packer.flush()
        head = _CHUNK.pack(magic, 0, kind, number, len(packed), size, *rest)
        sealed += [head[:4], zlib.crc32(head[8:] + packed).to_bytes(4, "little"), head[8:], packed]
        place += _CHUNK.size + len(content)
    return _memory(b"".join(sealed), folder)


def _calls(data: bytes, folder: Path) -> object:
    # The files of one recording after the other, as they lie in the corpus: each with its length before it.
    place = 0
    for name in ("77.0.process", "77.0.modules", "77.0-0.calls"):
        size = int.from_bytes(data[place : place + 4], "little")
        _put(folder / name, data[place + 4 : place + 4 + size])
        place += 4 + size
    return [sum(len(calls) for calls in process.calls(0)) for process in processes(folder)]


def _trace(data: bytes, folder: Path) -> object:
    _put(folder / "records", data)
    count = 0
    for words in pieces(folder / "records"):
        at, words.consumed = boundaries(words.values, 63)
        assert 0 <= words.consumed <= len(words.values)
        count += len(at)
    return count


def _callgrind(data: bytes, folder: Path) -> object:
    _put(folder / "out", data)
    graph, tree = callgrind.read(folder / "out"), CostTree()
    grow(tree, graph, lambda node: FunctionFrame(graph.functions[node].name))
    # Whatever the costs of calls are, nothing of what functions cost themselves is lost.
    assert tree.total == graph.total >= sum(graph.lines.values())
    return tree.exclusive(), tree.inclusive()


def _perf(data: bytes, folder: Path) -> object:
    text = data.decode("utf-8", "replace")
    return list(perf.samples(text.splitlines())), perf.count(text, "instructions:u")


def _elf(data: bytes, folder: Path) -> object:
    _put(folder / "program", data)
    return read_elf(str(folder / "program"))


def _functions(data: bytes, folder: Path) -> object:
    # All that trace and complexity ask of a program before they run it.
    path = folder / "program"
    _put(path, data)
    with Binary(path) as binary:
        sizes = {one: size for one in binary.functions if (size := find_size(binary, one)) is not None}
        for function in binary.functions:
            binary.code(function)
            with contextlib.suppress(UsageError):
                size_of(binary, function, "list->count")
        with contextlib.suppress(UsageError):
            binary.places("p.c:4")
        probes = tuple(Probe(str(path), one, None, 1) for one in binary.functions)
        found = programs(binary, sizes), binary.probes, binary.throws, binary.build_id, binary.notes
    return found, unwinds(str(path)), unsafe_functions(probes, ""), kind_of(str(path))


def _call_graph(data: bytes, folder: Path) -> object:
    _put(folder / "program", data)
    return static_graph(folder / "program")


def _symbols(data: bytes, folder: Path) -> object:
    path = str(folder / "program")
    _put(folder / "program", data)
    table = SymbolTable([path])
    known = preload.functions(path, ("malloc", "main", "walk"))
    return [table.at(address) for address in range(0x1000, 0x2000, 16)], list(known), debug_file(path, "")


def _counters(data: bytes, folder: Path) -> object:
    _put(folder / "program", data)
    try:
        return read_module(folder / "program").functions
    except NotElf as problem:
        return problem


def _lines_of_functions(data: bytes, folder: Path) -> object:
    _put(folder / "program", data)
    return scopes.read(folder / "program", {"p.c"}), loaded_parts(folder / "program")


def _machine(data: bytes, folder: Path) -> object:
    for name in ("cpuinfo", "meminfo", "sys/kernel/osrelease"):
        _put(folder / "proc" / name, data)
    return machine.describe(folder / "proc", folder / "sys")


def _git_log(data: bytes, folder: Path) -> object:
    middle = len(data) // 2
    return list(git_history.parse([data[:middle], data[middle:]]))


def _tagit_ignore(data: bytes, folder: Path) -> object:
    _put(folder / tagit_files.IGNORE_FILE, data)
    _put(folder / "below" / "file.txt", b"")
    return list(tagit_files.scan(folder))


def _svs(data: bytes, folder: Path) -> object:
    _put(folder / ".svs", data)
    return list(Svs(folder, {}).walk_minor_versions("HEAD"))


def _format(data: bytes, folder: Path) -> object:
    text = data.decode("utf-8", "surrogateescape")
    return cli_formats.parse_format(text, ("type", "cmd", "id"), "format.status")


def _island(data: bytes, folder: Path) -> object:
    _put(folder / "rec.1", data)
    recording = record.read(folder / "rec.1")
    stops = Stops(np.array([recording.started]), np.array([recording.started + 1000]))
    rows, threads, _ = statistics.of_process(0, recording, recording.ended, stops, "exact")
    calls = list(recording.calls())
    labels = [statistics.label_of(recording, call.object) for call in calls]
    return statistics.consumption(rows), threads, labels


def _island_timeline(data: bytes, folder: Path) -> object:
    profile = formats.loads(data, "p.perf")
    shown = [*summary(usage_of(profile))]
    timeline = timeline_of(profile)
    return shown, subtitle(timeline), [*pieces_of(timeline, "text", "p")]


def _island_stops(data: bytes, folder: Path) -> object:
    _put(folder / "stops", data)
    with StopLog(folder / "stops") as log:
        return list(log.between(-(1 << 62), 1 << 62)), log.stopped(0, 1 << 62), log.columns()


def _island_result(data: bytes, folder: Path) -> object:
    _put(folder / result.NAME, data)
    found = result.read(folder)
    return found.ending, found


IMPORTERS = sorted({*Registry().names("importer")} - {"memray", "uftrace"})
"""The two are read by the programs that wrote them, in processes of their own."""


def _imports(name: str) -> Read:
    """The importer of that name: what it reads can be stored, and exported."""
    importer = Registry().get("importer", name)
    exporters = [Registry().get("exporter", one) for one in ("pprof", "firefox", "bmf")]

    def read(data: bytes, folder: Path) -> object:
        path = folder / "sample.json"  # a name by which Criterion is known
        path.write_bytes(data)
        if data.startswith(b"PERFILE2"):
            raise UsageError("perf reads it, in a process of its own")
        file = ImportFile("the file", path)
        importer.recognizes(file.head, "the file")
        found = read_all(importer, file, importer.Params(), ImportContext(str, folder, project=folder))
        for one in found:
            one.profile[IMPORTED] = {}
            formats.dumps_pending(one.profile)
            headline(one.profile)
            for exporter in exporters:
                with contextlib.suppress(ProfileError):
                    sum(map(len, exporter.write(one.profile, exporter.Params(), str)))
        return [one.profile.configuration for one in found]

    return read


READERS: Mapping[str, Read] = {
    "profile": _profile, "profile-header": _header, "columns": _columns, "columns-sealed": _sealed_columns,
    "chunk": _chunk_of_a_column, "object": _object, "object-content": _content_of_an_object, "index": _index,
    "index-sealed": _sealed_index, "pending": _pending, "pending-cache": _pending_cache, "changes": _changes,
    "batch": _batch, "island": _island, "island-stops": _island_stops, "island-timeline": _island_timeline,
    "island-result": _island_result, "in-place": _in_place, "statistics": _statistics,
    "statistics-content": _content_of_statistics, "statistics-index": _index_of_statistics,
    "temp-index": _index_of_temporary_files, "cache": _cache, "facts": _facts,
    "configuration": _configuration, "parameters": _parameters, "configuration-cache": _configuration_cache,
    "memory": _memory, "memory-content": _content_of_memory, "complexity": _calls, "trace": _trace,
    "callgrind": _callgrind, "perf": _perf, "elf": _elf, "elf-functions": _functions,
    "elf-call-graph": _call_graph, "elf-symbols": _symbols, "elf-counters": _counters,
    "elf-lines": _lines_of_functions, "machine": _machine, "git-log": _git_log, "tagit-ignore": _tagit_ignore,
    "svs": _svs, "format": _format, **{f"import-{name}": _imports(name) for name in IMPORTERS},
}  # fmt: skip
CORPUS_OF: Mapping[str, str] = {
    "profile-header": "profile", "columns-sealed": "columns", "pending": "profile", "index-sealed": "index",
    "pending-cache": "index",
    **{f"elf-{what}": "elf" for what in ("functions", "call-graph", "symbols", "counters", "lines")}
}  # fmt: skip
"""Readers that share the corpus of another one."""
