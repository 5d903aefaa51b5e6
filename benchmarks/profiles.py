"""Large profiles: loading them, making a data frame of them, and the memory that takes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import perun as package
import repositories
from harness import Contestant, compete
from report import Place, Row

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


def columns(place: Place) -> Iterator[Row]:
    """Loading today's layout."""
    file = _file(place, "columns.perf", in_columns(MILLION))
    yield _load(place, "load 1,000,000 resources, columns", file)
    peak = peak_memory([place.perun, "show", file, *LOAD], _folder(place))
    yield Row("the same, peak memory", peak, 200, "limit", 1, "MB")


def dataframe(place: Place) -> Iterator[Row]:
    """From the file to a data frame."""
    file = _file(place, "columns.perf", in_columns(MILLION))
    sources = str(Path(package.__file__).parents[1])
    result = compete(
        {
            "ours": Contestant([sys.executable, "-c", TO_DATAFRAME, file, sources], _folder(place)),
            "peer": Contestant([place.peer, "show", file, *TO_TABLE], _folder(place)),
        },
        few(place.rounds),
    )
    name = "1,000,000 resources to a data frame, CPU"
    yield Row(name, result["ours"].cpu, result["peer"].cpu, PEER, 1 / 3)


def rows(place: Place) -> Iterator[Row]:
    """Loading the two older layouts."""
    for name, regions in (("global", old_global(MILLION)), ("snapshots", old_snapshots(MILLION, 100))):
        file = _file(place, f"{name}.perf", regions)
        yield _load(place, f"load 1,000,000 resources, rows of `{name}`", file)


def ten_million(place: Place) -> Iterator[Row]:
    """The memory that a very large profile takes."""
    file = _file(place, "ten-million.perf", in_columns(10 * MILLION))
    peak = peak_memory(
        [place.perun, "postprocessby", file, "regression-analysis", "-m", "full"], _folder(place)
    )
    yield Row("10,000,000 resources: load, full regression, save: peak memory", peak, 2000, "limit", 1, "MB")


def few(rounds: int) -> int:
    """Rounds of what takes seconds."""
    return max(3, rounds // 5)


def _load(place: Place, name: str, file: str) -> Row:
    result = compete(
        {
            "ours": Contestant([place.perun, "show", file, *LOAD], _folder(place)),
            "peer": Contestant([place.peer, "show", file, *LOAD], _folder(place)),
        },
        few(place.rounds),
    )
    return Row(name + ", CPU", result["ours"].cpu, result["peer"].cpu, PEER, 1 / 3)


def _folder(place: Place) -> Path:
    """The repository of these benchmarks, made where it is missing."""
    folder = place.folder / "profiles"
    if not folder.exists():
        repositories.history(folder, 1)
        subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
    return folder


def _file(place: Place, name: str, regions: Iterator[str]) -> str:
    path = _folder(place) / name
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


def in_columns(count: int) -> Iterator[str]:
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
