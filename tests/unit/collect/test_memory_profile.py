"""Traces that are shown, and resources made of rows; without running anything."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.collect.memory.analysis import AllocationEvents, Analysis
from perun.collect.memory.places import AllocationSite, StackTraces
from perun.collect.memory.profile import METRICS, ProcessReplay, Regions, Shape, resources
from perun.collect.memory.records import MappedModule, Stack
from perun.collect.memory.table import OTHERS
from perun.native.elf import Elf
from perun.native.symboliser import Frames, SymbolFrame, Symboliser
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads, validate

SECOND = 1_000_000_000


class Known(Symboliser):
    """Answers from a list: frames by the base name of the module and the address."""

    def __init__(self, answers: dict[tuple[str, int], Frames]) -> None:
        super().__init__("")
        self.answers = answers

    def frames(self, path: str, elf: Elf | None, addresses: Any) -> dict[int, Frames]:
        name = path.rpartition("/")[2]
        return {address: self.answers.get((name, address), ()) for address in addresses}


PROGRAM = MappedModule(0x1000, 0x2000, 0, "/project/program")
LIBRARY = MappedModule(0x3000, 0x4000, 0, "/usr/lib/liboperations.so.1")
RUNTIME = MappedModule(0x5000, 0x6000, 0, "/usr/lib/libc.so.6")
MAIN, FILL = SymbolFrame("main", "/project/main.c", 9), SymbolFrame("fill(int)", "/project/fill.c", 3)
GROW = SymbolFrame("std::vector<int>::grow()", "/usr/include/c++/12/vector", 70)
BARE, START = SymbolFrame("bare", "", 0), SymbolFrame("_start", "", 0)
HOLDER, STRDUP = SymbolFrame("_IO_file_doallocate", "filedoalloc.c", 1), SymbolFrame("strdup", "strdup.c", 1)
ANSWERS: dict[tuple[str, int], Frames] = {
    ("program", 0x0F): (MAIN,),
    ("program", 0x1F): (GROW, FILL),
    ("program", 0x2F): (BARE,),
    ("program", 0x3F): (START,),
    ("program", 0x4F): (GROW,),
    ("libc.so.6", 0x0F): (HOLDER,),
    ("libc.so.6", 0x1F): (STRDUP,),
}
IN_MAIN, IN_FILL, IN_BARE, IN_START, IN_GROW, UNKNOWN = 0x1010, 0x1020, 0x1030, 0x1040, 0x1050, 0x1060
IN_LIBRARY, IN_HOLDER, IN_STRDUP, NOWHERE = 0x3010, 0x5010, 0x5020, 0x9000


def stack(*addresses: int, modules: int = 3) -> Stack:
    return Stack(struct.pack(f"={len(addresses)}Q", *addresses), modules, False)


def site(*addresses: int, whole: bool = False) -> AllocationSite | None:
    places = StackTraces(Known(ANSWERS), Path("/project"))
    (found,) = places.sites([stack(*addresses)], [PROGRAM, LIBRARY, RUNTIME], whole=whole)
    return found


def shown(found: AllocationSite | None) -> list[str]:
    assert found and found.uid in found.trace
    return [f"{frame.function} {frame.source}:{frame.line}" for frame in found.trace]


@pytest.mark.parametrize(("addresses", "trace"), [
    # Of what the system's headers do only the caller is told; sources are relative to the run's folder.
    ((IN_START, IN_MAIN, IN_FILL), ["fill(int) fill.c:3", "main main.c:9"]),
    # What cannot be reached is left out where something can be.
    ((IN_START, IN_MAIN, IN_LIBRARY), ["main main.c:9"]),
    ((IN_START, IN_BARE, IN_MAIN, IN_STRDUP), ["main main.c:9"]),
    # Else names are better than nothing, and offsets better than no names.
    ((IN_START, IN_BARE, IN_STRDUP), ["bare unreachable:0"]),
    ((IN_START, UNKNOWN), ["program+0x5f unreachable:0"]),
    ((IN_BARE, IN_LIBRARY), ["liboperations.so.1+0xf unreachable:0", "bare unreachable:0"]),
    ((IN_BARE, NOWHERE), ["generated-code unreachable:0", "bare unreachable:0"]),
    ((IN_GROW,), ["std::vector<int>::grow() /usr/include/c++/12/vector:70"]),
])  # fmt: skip
def test_traces(addresses: tuple[int, ...], trace: list[str]) -> None:
    assert shown(site(*addresses)) == trace
    whole = site(*addresses, whole=True)
    assert whole and len(whole.trace) >= len(addresses)
    assert whole.uid == site(*addresses).uid  # type: ignore[union-attr]


def test_what_nobody_of_the_program_allocates_is_left_out() -> None:
    assert site() is None and site(IN_STRDUP) is None and site(IN_START, IN_STRDUP) is None
    assert shown(site(IN_START, IN_STRDUP, whole=True)) == ["strdup strdup.c:1", "_start unreachable:0"]
    assert shown(site(whole=True)) == ["unknown unreachable:0"]


def test_buffers_of_streams_are_held_by_the_library() -> None:
    held = site(IN_START, IN_MAIN, IN_HOLDER)
    assert held and held.kept_by_libc
    assert not site(IN_START, IN_MAIN, IN_STRDUP).kept_by_libc  # type: ignore[union-attr]


def test_a_module_in_the_place_of_another() -> None:
    places = StackTraces(Known(ANSWERS), Path("/project"))
    later = LIBRARY._replace(start=0x1800, end=0x3800)
    stacks = [
        stack(0x1010, modules=1),
        stack(0x1010, modules=2),
        stack(0x1910, modules=2),
        stack(0x3010, modules=0),
    ]
    first, second, third, fourth = places.sites(stacks, [PROGRAM, later], whole=False)
    assert shown(first) == ["main main.c:9"]
    assert shown(second) == shown(fourth) == ["generated-code unreachable:0"]
    assert shown(third) == ["liboperations.so.1+0x10f unreachable:0"]
    assert not places.without_lines  # no such files


# -- resources ------------------------------------------------------------------------------------------


def process(
    events: Sequence[tuple[int, int, int, int, float]], sites: Sequence[AllocationSite | None], **more: Any
) -> ProcessReplay:
    """A process of events (kind, stack, address, size, seconds)."""
    kinds, stacks, address, size, time = (np.array(column) for column in zip(*events, strict=True))
    pairs, where = np.unique(stacks << 8 | kinds, return_inverse=True)
    releases = kinds >= 32
    thread = np.zeros(len(events), np.int64)
    nanoseconds = np.round(time * SECOND).astype(np.int64)
    analysis = Analysis(more.pop("interval", SECOND), more.pop("most", 0), keep=True)
    analysis.add(
        AllocationEvents(pairs >> 8, pairs & 255, where, releases, address, size, thread, nanoseconds)
    )
    each = analysis.single_events() if more.pop("raw", False) else None
    return ProcessReplay(
        more.pop("name", "program"), analysis.rows(), analysis.totals(), sites, analysis.interval, each
    )


def made(processes: Sequence[ProcessReplay], shape: Shape | None = None) -> Profile:
    result = resources(processes, shape or Shape(), "program")
    profile = Profile({
        "header": {
            "type": "memory", "cmd": "./program", "args": "", "workload": "", "units": {"memory": "B"}
        },
        "collector_info": {"name": "memory", "params": {}},
        "postprocessors": [],
        "resource_type_map": result.regions.constants,
        "resources": result.regions.resources,
    })  # fmt: skip
    validate(profile, "test")
    assert loads(dumps_pending(profile), "again").serialize() == profile.serialize()
    return profile


def rows(profile: Profile, *fields: str) -> list[tuple[Any, ...]]:
    found = [resource for _, resource in profile.all_resources() if "trace" in resource]
    return [tuple(resource.get(name, 0) for name in fields) for resource in found]


def metrics(profile: Profile) -> dict[str, int]:
    return {
        ":".join(str(part) for part in resource["uid"].values()): resource["amount"]
        for _, resource in profile.all_resources()
        if "trace" not in resource
    }


FIRST = AllocationSite(
    SymbolFrame("fill", "fill.c", 3), (SymbolFrame("fill", "fill.c", 3), SymbolFrame("main", "main.c", 9))
)
SECOND_LINE = AllocationSite(SymbolFrame("fill", "fill.c", 4), (SymbolFrame("fill", "fill.c", 4),))
HELD = AllocationSite(
    SymbolFrame("main", "main.c", 1), (SymbolFrame("main", "main.c", 1),), kept_by_libc=True
)
SITES = [None, FIRST, SECOND_LINE, HELD]
EVENTS = [
    (1, 1, 16, 100, 0.1),
    (2, 1, 32, 10, 0.2),
    (1, 1, 48, 50, 1.1),
    (32, 2, 16, 0, 1.5),
    (1, 2, 64, 20, 1.6),
    (32, 2, 64, 0, 2.5),
    (1, 3, 80, 4, 2.6),
    (1, 0, 96, 72, 2.7),
]


def test_resources_are_sums_by_stack_subtype_and_snapshot() -> None:
    profile = made([process(EVENTS, SITES)])
    assert rows(profile, "uid", "subtype", "snapshot", "amount", "count", "address", "time") == [
        (FIRST.uid._asdict(), "malloc", 0, 100, 1, 16, 1.0),
        (FIRST.uid._asdict(), "malloc", 1, 50, 1, 48, 2.0),
        (FIRST.uid._asdict(), "calloc", 0, 10, 1, 32, 1.0),
        (SECOND_LINE.uid._asdict(), "malloc", 1, 20, 1, 64, 2.0),
        (SECOND_LINE.uid._asdict(), "free", 1, 0, 1, 16, 2.0),
        (SECOND_LINE.uid._asdict(), "free", 2, 0, 1, 64, 3.0),
        (HELD.uid._asdict(), "malloc", 2, 4, 1, 80, 3.0),
    ]
    assert rows(profile, "peak", "leaked", "leaked-blocks", "temporary", "lifetime") == [
        (100, 0, 0, 0, 1.4),
        (50, 50, 1, 0, 1.6),
        (10, 10, 1, 0, 2.5),
        (0, 0, 0, 1, 0.9),
        (0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0.1),
    ]
    first = next(resource for _, resource in profile.all_resources())
    assert first["type"] == "memory" and first["trace"] == [frame._asdict() for frame in FIRST.trace]
    assert next(iter(profile["resources"])) == "fill.c:fill:3#0"


def test_functions_and_the_program_are_summed_up() -> None:
    assert metrics(made([process(EVENTS, SITES)])) == {
        "program:allocated": 184,  # without what is left out, as the resources have it
        "program:allocations": 5, "program:peak": 160,
        "program:leaked": 60,  # neither what the library holds, nor what is of no function of the program
        "program:temporary": 1, "fill.c:fill:allocated": 180, "fill.c:fill:allocations": 4,
        "fill.c:fill:peak": 160, "fill.c:fill:leaked": 60, "fill.c:fill:temporary": 1,
        "main.c:main:allocated": 4, "main.c:main:allocations": 1
    }  # fmt: skip


def test_single_events_say_the_same() -> None:
    one = process(EVENTS, SITES, raw=True)
    profile = made([one])
    assert rows(profile, "subtype", "order", "amount", "address", "timestamp", "snapshot") == [
        ("malloc", 1, 100, 16, 0.1, 0),
        ("malloc", 3, 50, 48, 1.1, 1),
        ("calloc", 2, 10, 32, 0.2, 0),
        ("malloc", 5, 20, 64, 1.6, 1),
        ("free", 4, 0, 16, 1.5, 1),
        ("free", 6, 0, 64, 2.5, 2),
        ("malloc", 7, 4, 80, 2.6, 2),
    ]
    fates = ("amount", "peak", "leaked", "temporary")
    assert rows(profile, *fates) == rows(made([process(EVENTS, SITES)]), *fates)
    assert metrics(profile) == metrics(made([process(EVENTS, SITES)]))


def test_whole_traces_begin_with_the_allocator() -> None:
    profile = made([process([(10, 1, 16, 1, 0.0), (1, 1, 32, 1, 0.0)], SITES)], Shape(whole=True))
    assert [trace[0] for (trace,) in rows(profile, "trace")] == [
        {"function": "malloc", "source": "unreachable", "line": 0},
        {"function": "operator new", "source": "unreachable", "line": 0},
    ]


def test_several_processes() -> None:
    first = process([(1, 1, 16, 100, 0.1), (1, 1, 32, 1, 3.9)], SITES, most=2)
    second = process([(1, 1, 16, 7, 0.1)], SITES, name="child")
    assert (first.interval, second.interval) == (2 * SECOND, SECOND)
    profile = made([first, second])
    assert rows(profile, "process", "amount", "snapshot") == [
        ("program", 100, 0), ("program", 1, 1), ("child", 7, 0)
    ]  # fmt: skip
    assert metrics(profile)["program:peak"] == 108
    single = made([process(EVENTS, SITES, raw=True), process(EVENTS, SITES, raw=True, name="child")])
    assert {name for (name,) in rows(single, "process")} == {"program", "child"}


def test_nothing_recorded_still_has_totals() -> None:
    analysis = Analysis(SECOND)
    empty = ProcessReplay("program", analysis.rows(), analysis.totals(), [None], SECOND)
    assert metrics(made([empty])) == {f"program:{metric}": 0 for metric in METRICS}


def deep_site(number: int, depth: int = 12) -> AllocationSite:
    frames = [
        SymbolFrame(
            f"function_{number % 997}_of_some_length(int, char const*)", f"source/file_{number}.cpp", 7
        )
    ]
    frames += [
        SymbolFrame(f"caller_{number}_{level}(int)", "source/callers.cpp", level) for level in range(depth)
    ]
    return AllocationSite(frames[0], tuple(frames))


@pytest.mark.parametrize(("sites", "seconds", "count"), [
    (8_000, 1, 24_000),
    pytest.param(20_000, 1, 300_000, marks=pytest.mark.slow),
    pytest.param(2_000, 40, 300_000, marks=pytest.mark.slow),
    pytest.param(50, 5000, 300_000, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_profile_stays_below_5_mb(sites: int, seconds: int, count: int) -> None:
    numbers = np.random.default_rng(1).integers(1, sites, count)
    times = np.linspace(0, seconds, len(numbers))
    events = [
        (1 + place % 2, int(number), 16 * place, 1 + int(number) % 100, float(time))
        for place, (number, time) in enumerate(zip(numbers, times, strict=True))
    ]
    known: list[AllocationSite | None] = [None, *map(deep_site, range(sites))]
    one = process(events, known, interval=SECOND // 40)
    profile = made([one])
    data = dumps_pending(profile)
    assert 1_000_000 < len(data) < 5_000_000
    # Nothing is lost but the callers of some sites, and when.
    found = rows(profile, "amount", "count", "peak", "leaked", "leaked-blocks")
    assert [sum(column) for column in zip(*found, strict=True)] == [
        one.totals.allocated, count, one.totals.peak, one.totals.leaked, count
    ]  # fmt: skip
    assert any(len(trace) > 10 for (trace,) in rows(profile, "trace"))


def test_what_is_shortened_is_the_least() -> None:
    sites: list[AllocationSite | None] = [None, *(deep_site(number, 40) for number in range(3000))]
    events = [(1, number, 16 * number, number, 0.0) for number in range(1, 3001)]
    result = resources([process(events, sites)], Shape(), "program")
    assert 0 < result.shortened < 3000
    full = {
        group["uid"]["source"]
        for group in result.regions.constants.values()
        if len(group.get("trace", ())) > 1
    }
    assert full == {f"source/file_{number}.cpp" for number in range(2999, 2999 - len(full), -1)}
    assert resources([process(events, sites)], Shape(whole=True), "program").shortened == 0
    others = [
        group
        for group in result.regions.constants.values()
        if group["uid"].get("function") == OTHERS.function
    ]
    assert len(others) <= 1


def test_snapshots_become_longer_only_where_nobody_asked_for_their_length() -> None:
    events = [(1, 1 + number % 3, 16 * number, 1, number / 40) for number in range(40_000)]
    one = process(events, SITES, interval=SECOND // 40)
    assert resources([one], Shape(), "program").interval > SECOND // 40
    assert resources([one], Shape(coarser=False), "program").interval == SECOND // 40


def test_keys_of_groups() -> None:
    regions = Regions()
    for amount in (1, 2):
        regions.add({"uid": {"function": "f", "source": "s"}}, {"amount": np.array([amount])})
    assert list(regions.resources) == ["s:f#0", "s:f#1"]
