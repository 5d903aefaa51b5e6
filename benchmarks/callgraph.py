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
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "graph")
        _in_new_process(program, "keep", kept)
        for number_of_round in range(max(rounds, KEPT_ROUNDS)):
            for name, found in times.items():
                if number_of_round >= rounds and name != "kept":
                    continue
                seconds, number = _in_new_process(program, name, kept)
                found.append(seconds)
                functions = functions or number
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


def _in_new_process(program: str, name: str, kept: str) -> tuple[float, int]:
    """What :func:`once` says in a process of its own."""
    argv = [sys.executable, __file__, program, name, kept]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    seconds, number = done.stdout.split()
    return float(seconds), int(number)


def once(program: str, name: str, kept: str) -> tuple[float, int]:
    """CPU seconds of one job without the imports, those of processes that it starts included; and the number
    of functions, where it makes the graph. What it made is freed after the time is taken."""
    job = _jobs(program, Path(kept))[name]()
    before = _cpu_time()
    found = job()
    seconds = _cpu_time() - before
    return seconds, len(getattr(found, "functions", ()))


def _cpu_time() -> float:
    """Seconds of this process and its children, to the microsecond: `os.times` counts in hundredths."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def _jobs(program: str, file: Path) -> dict[str, Callable[[], Callable[[], object]]]:
    """What makes each job, all that it imports and needs included.

    :param file: where the graph is kept.
    """
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    from perun.native.callgraph.files import from_values, to_values
    from perun.native.callgraph.graph import CallGraph
    from perun.native.image import read_image, static_graph
    from perun.store.stats import read_json, write_json

    def kept() -> Callable[[], object]:
        from_values(to_values(CallGraph("", "", {}, ())))  # imports what it needs
        return lambda: from_values(read_json(file, dict, ""))

    def capstone() -> Callable[[], object]:
        engine = Cs(CS_ARCH_X86, CS_MODE_64)
        engine.skipdata = True
        code = [area for area in read_image(program).areas if area.executable]
        return lambda: [list(engine.disasm_lite(area.data, area.address)) for area in code]

    argv = ["objdump", "-d", program]
    return {
        "graph": lambda: lambda: static_graph(program),
        "keep": lambda: lambda: write_json(file, to_values(static_graph(program))),
        "kept": kept,
        "capstone": capstone,
        "objdump": lambda: lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=True),
    }


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(*once(*sys.argv[1:4]))
    else:
        for row in measured(sys.argv[1] if len(sys.argv) > 1 else shutil.which("git") or "", 3):
            print(row.line)
