"""Which versions and configurations lack profiles."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from perun.porcelain.repository import KEPT_INPUTS, PERUN_FOLDER
from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.numbers import deltas
from perun.porcelain.web.state import State
from perun.profile.head import Configuration

_MEASURED, _NOT, _INCOMPLETE, _DAMAGED = b"1.id"
MOST_KEPT: Final = 200
"""Kept workloads that are listed."""
COMMAND: Final = "perun run --crawl-parents matrix --missing"


def coverage(state: State) -> data.Coverage:
    """The piece `coverage`."""
    main = state.commits.main
    cells: defaultdict[tuple[Configuration, str], list[tuple[int, int]]] = defaultdict(list)
    empty = bytearray([_NOT] * len(main))
    for place, position in enumerate(main.tolist()):
        if state.damaged and state.commits.versions[position].checksum in state.damaged:
            empty[place] = _DAMAGED
    for place, column in enumerate(state.columns[main].tolist()):
        if column < 0:
            continue
        for configuration in state.table.incomplete[column]:
            cells[configuration, ""].append((place, _INCOMPLETE))
        for key in state.table.conditions[column]:
            cells[key].append((place, _MEASURED))
    rows = []
    missing = []
    for (configuration, machine), own in cells.items():
        row = bytearray(empty)
        for place, cell in own:
            row[place] = cell
        text = row.decode("ascii")
        title = f"{text_of(configuration)} ({configuration.collector})"
        rows.append(
            data.Covered(title, configuration.collector, text_of(configuration._replace(workload="")),
                         configuration.workload, state.machine_place(machine), text)
        )  # fmt: skip
        if count := row.count(_NOT):
            missing.append(data.Missing(title, rows[-1].machine, count, COMMAND))
    return data.Coverage(rows, deltas(main), missing, _fuzzed(state, rows))


def _fuzzed(state: State, rows: Sequence[data.Covered]) -> list[data.Fuzzed]:
    """The workloads that fuzzing found and that are kept, by name."""
    found = []
    with suppress(OSError), os.scandir(state.repo.root / PERUN_FOLDER / KEPT_INPUTS) as files:
        for file in sorted(files, key=lambda one: one.name)[:MOST_KEPT]:
            status = file.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and not file.name.startswith("."):
                # The job matrix calls it `ID/NAME`, or `< ID/NAME` where it is read from the standard input.
                own = [one for one in rows if one.workload.partition("/")[2] == file.name]
                measured = max((one.cells.count("1") for one in own), default=0)
                titles = list(dict.fromkeys(one.title for one in own))
                found.append(data.Fuzzed(file.name, status.st_size, int(status.st_mtime), titles, measured))
    return found
