"""Large profiles: loading them, making a data frame of them, and the memory that takes.

python benchmarks/profiles.py --peer PATH/TO/perun [--perun PATH/TO/perun] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import perun as package
import repositories
from harness import Contestant, compete
from run import Row

MILLION = 1_000_000
UIDS = 20
PEER = "0.28.3"
# The profiles have one model, so that this command has little to do but to load them.
LOAD = ["tableof", "--to-stdout", "models"]
# No resource is left of these; the peer makes a data frame of all of them first.
TO_TABLE = ["tableof", "--to-stdout", "resources", "--filter-by", "uid", "no such uid"]
TO_DATAFRAME = (
    "import sys; sys.path.insert(0, sys.argv[2])\n"
    "from perun.profile.convert import resources_to_pandas_dataframe\n"
    "from perun.profile.factory import load_profile\n"
    "frame = resources_to_pandas_dataframe(load_profile(sys.argv[1]))\n"
    "print(len(frame[frame.uid == 'no such uid']))"
)


class ProfileBench:
    """The scenarios of profiles; each yields its rows. Rows of memory have the unit MB."""

    def __init__(self, perun: str, peer: str, folder: Path, rounds: int) -> None:
        self.perun = perun
        self.peer = peer
        self.folder = folder / "profiles"
        self.rounds = max(3, rounds // 5)

    def scenarios(self) -> list[Callable[[], Iterator[Row]]]:
        return [self.columns, self.dataframe, self.rows, self.ten_million]

    def columns(self) -> Iterator[Row]:
        file = self.file("columns.perf", columns(MILLION))
        yield self.load("load 1,000,000 resources, columns", file)
        peak = peak_memory([self.perun, "show", file, *LOAD], self.folder)
        yield Row("the same, peak memory", peak, 200, "limit", 1, "MB")

    def dataframe(self) -> Iterator[Row]:
        file = self.file("columns.perf", columns(MILLION))
        sources = str(Path(package.__file__).parents[1])
        result = compete(
            {
                "ours": Contestant([sys.executable, "-c", TO_DATAFRAME, file, sources], self.folder),
                "peer": Contestant([self.peer, "show", file, *TO_TABLE], self.folder),
            },
            self.rounds,
        )
        name = "1,000,000 resources to a data frame, CPU"
        yield Row(name, result["ours"].cpu, result["peer"].cpu, PEER, 1 / 3)

    def rows(self) -> Iterator[Row]:
        for name, regions in (("global", old_global(MILLION)), ("snapshots", old_snapshots(MILLION, 100))):
            file = self.file(f"{name}.perf", regions)
            yield self.load(f"load 1,000,000 resources, rows of `{name}`", file)

    def ten_million(self) -> Iterator[Row]:
        file = self.file("ten-million.perf", columns(10 * MILLION))
        command = [self.perun, "postprocessby", file, "regression-analysis", "-m", "full"]
        peak = peak_memory(command, self.folder)
        yield Row(
            "10,000,000 resources: load, full regression, save: peak memory", peak, 2000, "limit", 1, "MB"
        )

    def load(self, name: str, file: str) -> Row:
        result = compete(
            {
                "ours": Contestant([self.perun, "show", file, *LOAD], self.folder),
                "peer": Contestant([self.peer, "show", file, *LOAD], self.folder),
            },
            self.rounds,
        )
        return Row(name + ", CPU", result["ours"].cpu, result["peer"].cpu, PEER, 1 / 3)

    def file(self, name: str, regions: Iterator[str]) -> str:
        """The path of a profile in the repository of these benchmarks, both made where they are missing."""
        if not self.folder.exists():
            repositories.history(self.folder, 1)
            subprocess.run([self.perun, "init", str(self.folder)], check=True, capture_output=True)
        path = self.folder / name
        if not path.exists():
            with open(path, "w", encoding="ascii") as file:
                file.writelines(regions)
        return "./" + name


def peak_memory(argv: Sequence[str], cwd: Path) -> float:
    """The most memory in megabytes that a command has at once; it must succeed."""
    process = subprocess.Popen(argv, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}: {complaint.decode()}")
    return usage.ru_maxrss * 1024 / 1e6


def columns(count: int) -> Iterator[str]:
    """A profile in today's layout, piece by piece."""
    numbers = random.Random(1)
    yield from _head()
    yield '"resource_type_map": ' + json.dumps({f"{uid}#0": constants(uid) for uid in _uids()})
    yield ', "resources": {'
    for position, uid in enumerate(_uids()):
        values = range(count // UIDS)
        yield (", " if position else "") + json.dumps(f"{uid}#0") + ': {"amount": ['
        yield ", ".join(repr(round(numbers.random() * 1e5, 8)) for _ in values)
        yield '], "structure-unit-size": ['
        yield ", ".join(str(numbers.randrange(1, 100_000)) for _ in values)
        yield "]}"
    yield '}, "models": [' + json.dumps(model()) + "]}"


def old_global(count: int) -> Iterator[str]:
    """A profile with all its resources in `global`, row by row."""
    yield from _head()
    yield '"global": {"time": "0.5", "resources": ['
    yield from _rows(count, random.Random(2))
    yield '], "models": [' + json.dumps(model()) + "]}}"


def old_snapshots(count: int, snapshots: int) -> Iterator[str]:
    """A profile with its resources in `snapshots`, row by row."""
    numbers = random.Random(3)
    yield from _head()
    yield '"snapshots": ['
    for number in range(snapshots):
        yield (", " if number else "") + f'{{"time": "{number / 100:.6f}", "resources": ['
        yield from _rows(count // snapshots, numbers)
        yield '], "models": [' + ("" if number else json.dumps(model())) + "]}"
    yield "]}"


def _head() -> Iterator[str]:
    units = {"mixed(time delta)": "us"}
    header = {"type": "mixed", "units": units, "cmd": "./mybin", "args": "", "workload": ""}
    regions = {"header": header, "collector_info": {"name": "trace", "params": {}}, "postprocessors": []}
    yield json.dumps(regions)[:-1] + ", "


def _uids() -> list[str]:
    return [f"SLList_search{number}(SLList*, int)" for number in range(UIDS)]


def constants(uid: str) -> dict[str, Any]:
    """What the resources of a function have in common."""
    return {"type": "mixed", "subtype": "time delta", "uid": uid}


def _rows(count: int, numbers: random.Random) -> Iterator[str]:
    starts = [json.dumps(constants(uid))[:-1] for uid in _uids()]
    for number in range(count):
        amount, size = round(numbers.random() * 1e3, 2), numbers.randrange(1, 100_000)
        yield (", " if number else "") + starts[number % UIDS]
        yield f', "amount": {amount}, "structure-unit-size": {size}}}'


def model() -> dict[str, Any]:
    """Any model."""
    coefficients = [{"name": "b0", "value": 1.5}, {"name": "b1", "value": 2.5}]
    interval = {"x_start": 0, "x_end": 100_000}
    return {
        "uid": _uids()[0],
        "model": "linear",
        "method": "full",
        "r_square": 0.5,
        "coeffs": coefficients,
    } | interval


def line(row: Row) -> str:
    """One row as text, in its own unit."""
    scale, unit = (1, row.unit) if row.unit == "MB" else (1000, row.unit)
    limit = "" if row.limit is None else f"limit {row.limit:.2f}" + ("" if row.met else " (missed)")
    there = f"{row.peer_name} {row.peer * scale:.1f} {unit}"
    return f"{row.what}: {row.ours * scale:.1f} {unit}; {there}; ratio {row.ratio:.3f}; {limit}"


def main() -> int:
    """Print the rows; 1 where a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the perun command of perun-toolsuite 0.28.3")
    parser.add_argument("--perun", default=str(Path(sys.executable).with_name("perun")))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        home = Path(folder, "home")
        (home / "perun").mkdir(parents=True)  # the peer does not make it
        os.environ |= {
            "HOME": str(home),
            "PERUN_CONFIG_DIR": str(home / "perun"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        perun, peer = os.path.abspath(options.perun), os.path.abspath(options.peer)
        bench = ProfileBench(perun, peer, Path(folder), options.rounds)
        for scenario in bench.scenarios():
            if options.only and scenario.__name__ not in options.only:
                continue
            for row in scenario():
                print(line(row), flush=True)
                met = met and row.met
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
