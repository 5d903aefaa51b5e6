"""The recorder of allocations beside heaptrack and valgrind's massif and dhat, `--python` beside memray.

Same programs, same run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import repositories
from harness import Contestant, compete, cpu, once
from perun.collect.memory import native
from perun.collect.memory.analysis import Analysis
from perun.collect.memory.collector import LIBRARY, SAMPLING
from perun.collect.memory.python import AGENT
from perun.collect.memory.records import MemoryRecording
from perun.native.elf import read_elf
from perun.native.symboliser import Symboliser, find_tool
from report import Place, Row

SOURCE = Path(__file__).with_name("allocations.cpp")
SQL = (
    "create table a(b integer primary key, c text);"
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})"
    " insert into a select i, hex(i * 7919) || 'text' from n;"
    "select count(distinct c), sum(length(c)) from a; select c from a order by c desc limit 3;"
)
SMALL, LARGE = 150_000, 622_000
"""Rows of tables; the larger one makes four million events."""
PYTHON = "import json\nfor i in range(12): json.loads(json.dumps([{'a': [j, str(j)]} for j in range(9000)]))"
MEGABYTE = 1 << 20


class Subject(NamedTuple):
    """A program to be recorded, and its environment besides."""

    name: str
    argv: Sequence[str]
    environ: Sequence[str] = ()
    scattered: bool = False
    """Whether it releases blocks in a random order: the addresses of those are most of what is recorded."""


def memory(place: Place) -> Iterator[Row]:
    """Time and size of what is recorded, then the memory of the recorder, and symbols."""
    if not LIBRARY.is_file():
        raise SystemExit(f"{LIBRARY} was not built")
    folder = place.folder / "memory"
    folder.mkdir()
    rounds = max(3, place.rounds // 3)
    for subject in subjects(folder):
        yield from beside_heaptrack(folder, subject, rounds)
    yield from to_the_profile(place, folder, rounds)
    yield from analysing(folder, rounds)
    yield from beside_valgrind(folder)
    yield from beside_memray(place, folder, rounds)
    yield from own_memory(folder)
    yield from symbols(folder)


def subjects(folder: Path) -> Iterator[Subject]:
    """Programs made for this, and programs of the world."""
    program = str(folder / "allocations")
    subprocess.run(["c++", "-std=c++17", "-O2", "-g", "-pthread", "-o", program, str(SOURCE)], check=True)
    for kind, count in (
        ("pairs", 3_000_000),
        ("deep", 2_000_000),
        ("containers", 2_000_000),
        ("held", 2_000_000),
        ("threads", 2_000_000),
    ):
        yield Subject(f"{kind}, {count:,}", [program, kind, str(count)], (), kind == "containers")
    if shutil.which("sqlite3"):
        yield Subject("sqlite3", ["sqlite3", ":memory:", SQL.format(rows=SMALL)])
    yield Subject("python3", [sys.executable, "-c", PYTHON], ["PYTHONMALLOC=malloc"])


def beside_heaptrack(folder: Path, subject: Subject, rounds: int) -> Iterator[Row]:
    """Wall and CPU time of all processes, and the size of the file."""
    ours, theirs = folder / "ours", folder / "heaptrack"
    contestants = {
        "plain": Contestant(["env", *subject.environ, *subject.argv], folder),
        "ours": Contestant(recorded(ours, subject), folder, remover(ours)),
    }
    if shutil.which("heaptrack"):
        # What it records is interpreted as the program runs, by a process of its own, and addresses left out.
        argv = ["env", *subject.environ, "heaptrack", "-o", str(theirs), *subject.argv]
        contestants["heaptrack"] = Contestant(argv, folder, remover(theirs))
    result = compete(contestants, rounds)
    plain, wall = result["plain"], f"record {subject.name}"
    name = f"{wall}, beside the program alone"
    yield Row(name, result["ours"].wall, plain.wall, "alone", None, is_rival=False)
    if "heaptrack" in result:
        other = result["heaptrack"]
        yield Row(wall, result["ours"].wall, other.wall, "heaptrack", 1)
        yield Row(f"{wall}, CPU", result["ours"].cpu, other.cpu, "heaptrack", 1)
        size, most = size_of(ours) / 1024, None if subject.scattered else 1.5
        yield Row(f"{wall}, files", size, size_of(theirs) / 1024, "heaptrack, no addresses", most, "kB")
        remover(theirs)()
        run_quietly(["env", *subject.environ, "heaptrack", "--raw", "-o", str(theirs), *subject.argv])
        yield Row(f"{wall}, files", size, size_of(theirs) / 1024, "heaptrack --raw", 1.5, "kB")
    else:
        yield Row(wall, result["ours"].wall, 0, "heaptrack, not installed", None)


def to_the_profile(place: Place, folder: Path, rounds: int) -> Iterator[Row]:
    """The whole of `perun collect memory`, and of heaptrack with heaptrack_print: four million events.

    The program itself is the same share of both; the last row is without it.
    """
    what = "sqlite3, 4,000,000 events, to the profile"
    if not (shutil.which("sqlite3") and shutil.which("heaptrack_print")):
        yield Row(what, float("nan"), 0, "sqlite3 and heaptrack, not installed", None)
        return
    repository, theirs = folder / "whole", folder / "printed"
    repositories.history(repository, 1)
    subprocess.run([place.perun, "init", str(repository)], check=True, capture_output=True)
    (repository / "input.sql").write_text(SQL.format(rows=LARGE))
    plain = "sqlite3 :memory: < input.sql"
    file = shlex.quote(str(theirs))
    printing = f"heaptrack -o {file} {plain} && heaptrack_print {file}.*"
    collecting = [place.perun, "collect", "-c", "sqlite3 :memory:", "-w", "< input.sql", "memory"]
    result = compete(
        {
            "plain": Contestant(["sh", "-c", plain], repository),
            "ours": Contestant(collecting, repository),
            "heaptrack": Contestant(["sh", "-c", printing], repository, remover(theirs)),
        },
        rounds,
    )
    alone, ours, other = result["plain"], result["ours"], result["heaptrack"]
    # heaptrack interprets what it records in a second process, beside the program.
    yield Row(what, ours.wall, other.wall, "heaptrack, heaptrack_print", None)
    yield Row(f"{what}, CPU", ours.cpu, other.cpu, "heaptrack, heaptrack_print", 0.75)
    more = ours.cpu - alone.cpu, other.cpu - alone.cpu
    yield Row(f"{what}, CPU without that of the program", *more, "heaptrack, heaptrack_print", 0.6)
    latest = max((repository / ".perun" / "jobs").glob("*.perf"), key=lambda path: path.stat().st_mtime_ns)
    yield Row(f"{what}, stored", latest.stat().st_size / 1024, size_of(theirs) / 1024, "heaptrack", 1, "kB")


def analysing(folder: Path, rounds: int) -> Iterator[Row]:
    """Reading and replaying a recording of four million events, in C and by numpy."""
    library = native.load()
    if library is None:
        yield Row("analyse 4,000,000 events, CPU", float("nan"), 0, "numpy; the library was not built", None)
        return
    file = folder / "analysed"
    run_quietly(recorded(file, Subject("pairs", [str(folder / "allocations"), "pairs", "2000000"])))

    def of(wanted: native.Library | None) -> int:
        analysis = native.NativeAnalysis(wanted, 25_000_000, 256) if wanted else Analysis(25_000_000, 256)
        for events in MemoryRecording(file, wanted).pieces(reuse=True):
            analysis.add(events)
        return analysis.totals().events

    ours, events = cpu(lambda: of(library), rounds)
    other, same = cpu(lambda: of(None), rounds)
    assert events == same >= 4_000_000, (events, same)
    yield Row("analyse 4,000,000 events, CPU", ours, other, "numpy", 0.5)


def beside_valgrind(folder: Path) -> Iterator[Row]:
    """Wall time beside the tools of valgrind, of a shorter run."""
    subject = Subject("pairs", [str(folder / "allocations"), "pairs", "1000000"])
    ours = folder / "ours"
    contestants = {"ours": Contestant(recorded(ours, subject), folder, remover(ours))}
    for tool in ("massif", "dhat") if shutil.which("valgrind") else ():
        argv = ["valgrind", f"--tool={tool}", f"--{tool}-out-file={folder / tool}", *subject.argv]
        contestants[tool] = Contestant(argv, folder)
    if "massif" not in contestants:
        yield Row(
            "record pairs, 1,000,000", once(contestants["ours"]).wall, 0, "valgrind, not installed", None
        )
        return
    result = compete(contestants, 1)
    for tool in list(result)[1:]:
        yield Row("record pairs, 1,000,000", result["ours"].wall, result[tool].wall, tool, 0.5)


def beside_memray(place: Place, folder: Path, rounds: int) -> Iterator[Row]:
    """`perun collect memory --python`, which records by memray, beside memray itself.

    First the recording alone: ours is memray with the thread that writes the time into the recording. Then
    all from the command to the result: a profile here, there the page that memray makes of its recording.
    """
    if find_spec("memray") is None:
        yield Row("record python3 by --python", float("nan"), 0, "memray, not installed", None)
        return
    program = folder / "program.py"
    program.write_text(PYTHON)
    repository = folder / "python"
    repositories.history(repository, 1)
    subprocess.run([place.perun, "init", str(repository)], check=True, capture_output=True)
    ours, theirs, page = folder / "ours", folder / "memray", folder / "memray.html"
    memray = [sys.executable, "-m", "memray"]
    recording = [*memray, "run", "-q", "-f", "--trace-python-allocators", "-o", str(theirs), str(program)]
    reporting = [*memray, "flamegraph", "-f", "-o", str(page), str(theirs)]
    collecting = [place.perun, "collect", "-c", sys.executable, "-a", str(program), "memory", "--python"]
    agent = [sys.executable, str(AGENT), "record", str(ours), str(SAMPLING), "0", str(program)]
    result = compete(
        {
            "plain": Contestant([sys.executable, str(program)], folder),
            "agent": Contestant(agent, folder, remover(ours)),
            "memray": Contestant(recording, folder, remover(theirs)),
            "ours": Contestant(collecting, repository),
            "memray, page": Contestant(
                ["sh", "-c", f"{shlex.join(recording)} && {shlex.join(reporting)}"], folder, remover(theirs)
            ),
        },
        rounds,
    )
    name = "record python3 by --python"
    taken = {contestant: timing.wall for contestant, timing in result.items()}
    alone = f"{name}, beside the program alone"
    yield Row(alone, taken["agent"], taken["plain"], "alone", None, is_rival=False)
    yield Row(name, taken["agent"], taken["memray"], "memray run", 1.1)
    yield Row(f"{name}, files", size_of(ours) / 1024, size_of(theirs) / 1024, "memray run", 1.1, "kB")
    yield Row(f"{name}, to the profile", taken["ours"], taken["memray, page"], "memray run, flamegraph", None)


def own_memory(folder: Path) -> Iterator[Row]:
    """What the recorder itself takes at most, in a run of few and in one of many events."""
    for count in (20_000, 5_000_000):
        subject = Subject("pairs", [str(folder / "allocations"), "pairs", str(count)])
        ours = folder / "ours"
        remover(ours)()
        more = peak_memory(recorded(ours, subject)) - peak_memory(["env", *subject.argv])
        yield Row(f"memory of the recorder, {2 * count:,} events", more / MEGABYTE, 8, "limit", 1, "MB")


def symbols(folder: Path) -> Iterator[Row]:
    """Functions and lines of 10,000 addresses, with nothing in a cache."""
    import time

    count, each = 10_000, 5
    source, library = folder / "functions.c", folder / "functions.so"
    source.write_text(
        "\n".join(
            f"int function{i}(int a, int b)\n{{\n  if (a > {i}) return b * a;\n  b ^= a << {i % 7};\n"
            f"  return a / (b | 1) + {i};\n}}"
            for i in range(count // each)
        )
    )
    subprocess.run(["cc", "-g", "-O1", "-fPIC", "-shared", "-o", library, source], check=True)
    listing = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    starts = [int(line.split()[0], 16) for line in listing.splitlines() if " T function" in line]
    addresses = [start + 2 * step for start in starts for step in range(each)]
    symboliser = Symboliser(find_tool(os.environ))
    start = time.perf_counter()
    found = symboliser.frames(str(library), read_elf(str(library)), addresses)
    taken = time.perf_counter() - start
    assert len(found) == count, len(found)
    yield Row(f"symbolise {count:,} addresses", taken, 0.5, "limit", 1)


def run_quietly(argv: Sequence[str]) -> None:
    """Run a command that must succeed; nobody reads what it prints."""
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def recorded(file: Path, subject: Subject) -> list[str]:
    """The command with the recorder."""
    settings = [f"LD_PRELOAD={LIBRARY}", f"PERUN_MEMORY_FILE={file}"]
    # Set by `env`, which itself is not what is to be recorded.
    return ["env", *subject.environ, *settings, *subject.argv]


def remover(file: Path) -> Callable[[], None]:
    """What removes the files that a recording makes."""

    def remove() -> None:
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()

    return remove


def size_of(file: Path) -> int:
    """Bytes of all files of a recording."""
    return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*"))


def peak_memory(argv: Sequence[str]) -> int:
    """Most memory of the program at a time, bytes, as it says itself; files that are mapped are among it."""
    return 1024 * int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
