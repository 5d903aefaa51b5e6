"""Call graphs of programs: from their machine code, and read again as they are kept.

`python benchmarks/callgraph.py [PROGRAM]` prints the times, beside those of only disassembling the code: by
capstone, which our graph is made with, and by objdump, which prints it. A program of 5,000 functions is to
take less than 5 s, and a graph that is kept 50 ms. By default, it measures the installed git, which has some
5,900 functions. Each round of each is a new process.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from report import Measured, Place, Row

LIMIT, CACHED_LIMIT = 5.0, 0.05
"""Seconds for a program of 5,000 functions, and for its graph when that is kept."""
FUNCTIONS = 5_000
KEPT_ROUNDS = 20
"""How often the kept graph is read, at least: it takes as long as a few interruptions."""
JOBS = ("graph", "kept", "capstone", "objdump")


def callgraphs(place: Place) -> Iterator[Row]:
    """CPU time of each, interleaved."""
    program = shutil.which("git")
    if program is not None:
        yield from measured(program, max(3, place.rounds // 3))


def measured(program: str, rounds: int) -> Iterator[Row]:
    times: dict[str, list[float]] = {name: [] for name in JOBS if name != "objdump" or shutil.which(name)}
    functions = 0
    for number_of_round in range(max(rounds, KEPT_ROUNDS)):
        for name, found in times.items():
            if number_of_round >= rounds and name != "kept":
                continue
            argv = [sys.executable, __file__, program, name]
            seconds, number = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
            found.append(float(seconds))
            functions = functions or int(number)
    what = f"call graph of {os.path.basename(program)} ({functions:,} functions)"
    graph = Measured(times["graph"])
    for name in ("capstone", "objdump"):
        if name in times:
            peer = f"{name}, disassembly alone"
            yield Row(f"{what}, CPU", graph, Measured(times[name]), peer, None, is_rival=False)
    share = FUNCTIONS / functions
    for name, limit in (("graph", LIMIT), ("kept", CACHED_LIMIT)):
        own = Measured([share * one for one in times[name]])
        yield Row(f"{name}: {what}, for each {FUNCTIONS:,}, CPU", own, limit, "bound", 1)


def once(program: str, name: str) -> tuple[float, int]:
    """CPU seconds of one job without the imports, those of processes that it starts included; and the number
    of functions, where it makes the graph."""
    job, functions = _jobs(program)[name]()
    before = _cpu_time()
    job()
    return _cpu_time() - before, functions()


def _cpu_time() -> float:
    """Seconds of this process and its children, to the microsecond: `os.times` counts in hundredths."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def _jobs(program: str) -> dict[str, Callable[[], tuple[Callable[[], object], Callable[[], int]]]]:
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    from perun.callgraph.files import from_values, to_values
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.image import read_image, static_graph
    from perun.store.stats import read_json, write_json

    def graph() -> tuple[Callable[[], object], Callable[[], int]]:
        found = []
        return lambda: found.append(static_graph(program)), lambda: len(found[0].functions)

    def kept() -> tuple[Callable[[], object], Callable[[], int]]:
        file = Path(tempfile.mkdtemp(), "graph")
        write_json(file, to_values(static_graph(program)))
        from_values(to_values(CallGraph("", "", {}, ())))  # imports what it needs

        def read() -> None:
            from_values(read_json(file, dict, ""))
            shutil.rmtree(file.parent)

        return read, int

    def capstone() -> tuple[Callable[[], object], Callable[[], int]]:
        engine = Cs(CS_ARCH_X86, CS_MODE_64)
        engine.skipdata = True
        code = [area for area in read_image(program).areas if area.executable]
        return lambda: [list(engine.disasm_lite(area.data, area.address)) for area in code], int

    def objdump() -> tuple[Callable[[], object], Callable[[], int]]:
        argv = ["objdump", "-d", program]
        return lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=True), int

    return {"graph": graph, "kept": kept, "capstone": capstone, "objdump": objdump}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(*once(*sys.argv[1:3]))
    else:
        for row in measured(sys.argv[1] if len(sys.argv) > 1 else shutil.which("git") or "", 3):
            print(row.line)
