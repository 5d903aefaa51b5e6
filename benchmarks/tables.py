"""A table of many resources as text: by `tableof`, by tabulate alone, and by pandas where it is installed.

`python benchmarks/tables.py [ROWS]` prints each and its ratio; each round is a new process.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from report import Measured, Place, Row

ROWS = 100_000
PEERS = {"tabulate": "tabulate alone", "pandas": "pandas, to_string"}
_MEGABYTE = 1024  # in the unit of ru_maxrss on Linux


def tables(place: Place) -> Iterator[Row]:
    """CPU time of all, interleaved, and by how much the memory of ours grows."""
    yield from measured(max(3, place.rounds // 3), ROWS)


def measured(rounds: int, rows: int) -> Iterator[Row]:
    peers = [name for name in PEERS if importlib.util.find_spec(name) is not None]
    times: dict[str, list[float]] = {name: [] for name in ("ours", *peers)}
    grown: dict[str, list[float]] = {name: [] for name in times}
    for _ in range(rounds):
        for name, found in times.items():
            argv = [sys.executable, __file__, str(rows), name]
            answer = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
            seconds, megabytes = answer.split()
            found.append(float(seconds))
            grown[name].append(float(megabytes))
    for name in peers:
        # pandas writes neither the same columns nor the same digits: only tabulate is a goal.
        goal = 1 / 5 if name == "tabulate" else None
        table = f"table of {rows:,} resources, CPU"
        yield Row(table, Measured(times["ours"]), Measured(times[name]), PEERS[name], goal)
        yield Row("the same, memory beyond the profile", Measured(grown["ours"]), Measured(grown[name]),
                  PEERS[name], goal, "MB")  # fmt: skip


def once(name: str, rows: int) -> tuple[float, float]:
    """CPU time of one table in seconds, and by how many megabytes the most that the process took grows."""
    from perun.profile.factory import Profile

    profile = Profile({"header": {"type": "mixed", "cmd": "./app", "units": {"mixed": "us"}}})
    profile.update_resources(map(_resource, range(rows)))
    with open(os.devnull, "w", encoding="utf-8") as out:
        write = {"ours": ours, "tabulate": by_tabulate, "pandas": by_pandas}[name]
        before, memory = os.times(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        write(profile, out)
        after = os.times()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    return after.user + after.system - before.user - before.system, grown / _MEGABYTE


def _resource(number: int) -> dict[str, Any]:
    return {
        "type": "mixed",
        "subtype": "time delta",
        "uid": f"function_{number % 20}",
        "amount": number * 37 % 10_007 / 7,
        "structure-unit-size": number % 1000,
        "call-order": number,
        "timestamp": number * 1.25,
        "caller": "main" if number % 3 else "run",
        "thread": 7,
    }


def ours(profile: Any, out: Any) -> None:
    from perun.view.tableof import TableOfView, TableParams

    TableOfView().render(profile, TableParams(), out)


def by_tabulate(profile: Any, out: Any) -> None:
    from tabulate import tabulate

    rows = [item for _, item in profile.all_resources()]
    out.write(tabulate(rows, headers="keys") + "\n")


def by_pandas(profile: Any, out: Any) -> None:
    from perun.profile.convert import resources_to_pandas_dataframe

    resources_to_pandas_dataframe(profile).to_string(out, index=False)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    if len(sys.argv) > 2:
        print(*once(sys.argv[2], count))
    else:
        for row in measured(3, count):
            print(row.line)
