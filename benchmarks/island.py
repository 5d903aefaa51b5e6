"""The recorders of calls beside cProfile and `sys.setprofile`: costs of a call, memory, real programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness import Contestant, compete
from perun.island import record, recorder
from report import Measured, Place, Row

PROJECT = Path(__file__).parents[1]
PACKAGE = Path(record.__file__).parent
IN_C, IN_PYTHON = 100, 450
"""ns that a recorder may add to a call."""
BURSTS, CALLS = 300, 2000
WRITES = 1_000_000
MEBIBYTE = 1 << 20
READING, READING_MEMORY = 2.0, 150
"""s of CPU time and MiB that the analysis of :data:`WRITES` writes and as many reads may take."""
RECORDED = """\
import sys, tempfile, types
package = types.ModuleType("_perun_island")
package.__path__ = [{package!r}]
sys.modules["_perun_island"] = package
from _perun_island import hooks
from _perun_island.recorder import open_recorder
folder = tempfile.TemporaryDirectory()
recorder = open_recorder(folder.name, {native})
hooks.install(recorder)
"""
WAYS = {
    "the program alone": "",
    "Perun's recorder in C": RECORDED.format(package=str(PACKAGE), native=True),
    "Perun's recorder in Python": RECORDED.format(package=str(PACKAGE), native=False),
    "cProfile": "import cProfile\nprofile = cProfile.Profile()\nprofile.enable()\n",
    "sys.setprofile": "import sys\nsys.setprofile(lambda frame, event, argument: None)\n",
}
"""What is executed before a program, in the same process."""
RUN = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
# The least of many short bursts: others on the machine do not disturb all of them.
BURST = f"""
import json, sys, time
path, mode, data = sys.argv[1:]
data = data.encode() if "b" in mode else data
def burst():
    file = open(path, mode)
    start = time.perf_counter_ns()
    for _ in range({CALLS}):
        file.write(data)
    taken = time.perf_counter_ns() - start
    file.close()
    return taken / {CALLS}
print(json.dumps(min(burst() for _ in range({BURSTS}))))
"""
MEMORY = f"""
import json, resource, sys
file = open(sys.argv[1], "w")
file.write("12345678")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range({WRITES}):
    file.write("12345678")
print(json.dumps((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024))
"""

CALLS_OF_FILES = f"""
with open("written", "w") as file:
    for _ in range({WRITES}):
        file.write("12345678")
with open("written", "rb", buffering=0) as file:
    for _ in range({WRITES}):
        file.read(8)
"""
READ = """
import json, resource, sys, time
from pathlib import Path
from perun.collect.island import TIMELINE_ENTRIES, facts_of, rows_of, timeline_region
from perun.island import opening
before = time.process_time()
opened = opening.read(Path(sys.argv[1]))
rows_of(opened.usage, opened.processes), facts_of(opened), timeline_region(opened, TIMELINE_ENTRIES, str)
taken = time.process_time() - before
print(json.dumps([taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def island(place: Place) -> Iterator[Row]:
    """ns of a write of 8 bytes in each way, memory for a million of them, and programs of the world."""
    folder = place.folder / "island"
    folder.mkdir()
    rounds = max(3, place.rounds // 3)
    for mode, kind in (("w", "text"), ("wb", "bytes")):
        yield from writes(folder, mode, kind, rounds)
    for way in recorders():
        grown = outcome(WAYS[way] + MEMORY, str(folder / "memory"))
        allowed = 4 * MEBIBYTE
        what = f"memory of {WRITES:,} writes, {way}"
        yield Row(what, grown / MEBIBYTE, allowed / MEBIBYTE, "allowed", 1, "MiB", is_rival=False)
    yield from reading(folder, rounds)
    yield from programs(folder, place.rounds)


def recorders() -> Iterator[str]:
    """Those of the ways that are Perun's and can be used here."""
    yield from (way for way in WAYS if way.startswith("Perun") and ("in C" not in way or recorder.load()))


def writes(folder: Path, mode: str, kind: str, rounds: int) -> Iterator[Row]:
    """A write of 8 bytes into a file with a buffer."""
    samples: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, before in WAYS.items():
            samples[way].append(outcome(before + BURST, str(folder / "written"), mode, "12345678"))
    ns = {way: Measured(found) for way, found in samples.items()}
    alone = ns["the program alone"]
    for way in recorders():
        allowed = IN_C if "in C" in way else IN_PYTHON
        what = f"a write of 8 bytes ({kind}), {way}"
        yield Row(what, ns[way], alone, "the program alone", None, "ns", is_rival=False)
        pairs = zip(samples[way], samples["the program alone"], strict=True)
        added = Measured([one - other for one, other in pairs])
        yield Row(f"{what}: added", added, allowed, "allowed", 1, "ns", is_rival=False)
        for other in ("cProfile", "sys.setprofile"):
            limit = 1 if "in C" in way else None
            yield Row(what, ns[way], ns[other], other, limit, "ns", is_rival="in C" in way)


def reading(folder: Path, rounds: int) -> Iterator[Row]:
    """The analysis of many calls, with the imports that it needs."""
    record_to = folder / "recording"
    argv = [sys.executable, "-m", "perun.island", "--record-to", str(record_to), "-c", CALLS_OF_FILES]
    subprocess.run(argv, check=True, cwd=folder)
    taken, peaks = zip(*(printed(READ, str(record_to)) for _ in range(rounds)), strict=True)
    what = f"analysis of {2 * WRITES:,} calls"
    yield Row(f"{what} (CPU)", Measured(taken), READING, "allowed", 1, is_rival=False)
    peak = Measured([size / MEBIBYTE for size in peaks])
    yield Row(f"{what}: largest memory", peak, READING_MEMORY, "allowed", 1, "MiB", is_rival=False)


def outcome(program: str, *arguments: str) -> float:
    """The number that a program prints."""
    return float(printed(program, *arguments))


def printed(program: str, *arguments: str) -> Any:
    """What a program prints as JSON."""
    argv = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def programs(folder: Path, rounds: int) -> Iterator[Row]:
    """Programs of the world, under the recorder that is used where it can be."""
    before = RECORDED.format(package=str(PACKAGE), native=recorder.load() is not None)
    commands = {
        "pip list": ["pip", "list", "--format", "json"],
        "compiling Perun": ["compileall", "-q", "-f", str(PROJECT / "src")],
    }
    if find_spec("sphinx"):
        commands["building the manual"] = ["sphinx", "-q", "-E", str(PROJECT / "docs"), str(folder / "docs")]
    for name, words in commands.items():
        timed = compete(
            {
                "alone": Contestant([sys.executable, "-c", RUN, *words], folder),
                "recorded": Contestant([sys.executable, "-c", before + RUN, *words], folder),
            },
            rounds,
        )
        ours, alone = timed["recorded"].cpu, timed["alone"].cpu
        yield Row(f"{name} (CPU), recorded", ours, alone, "the program alone", 1.05, is_rival=False)
