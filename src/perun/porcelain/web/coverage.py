"""Which versions and configurations lack profiles."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.numbers import deltas
from perun.porcelain.web.state import State
from perun.profile.head import Configuration

_MEASURED, _NOT, _INCOMPLETE, _DAMAGED = "1.id"
COMMAND: Final = "perun run --crawl-parents matrix --missing"


def coverage(state: State) -> data.Coverage:
    """The piece `coverage`."""
    main = state.commits.main
    cells: defaultdict[tuple[Configuration, str], dict[int, str]] = defaultdict(dict)
    damaged = {}
    for place, position in enumerate(main):
        checksum = state.commits.versions[position].checksum
        if checksum in state.damaged:
            damaged[place] = _DAMAGED
        column = state.table.place.get(checksum)
        if column is None or checksum not in state.indexed:
            continue
        for key in state.table.conditions[column]:
            cells[key][place] = _MEASURED
        for configuration in state.table.incomplete[column]:
            cells[configuration, ""].setdefault(place, _INCOMPLETE)
    rows = []
    missing = []
    for (configuration, machine), own in cells.items():
        text = "".join(own.get(place, damaged.get(place, _NOT)) for place in range(len(main)))
        title = f"{text_of(configuration)} ({configuration.collector})"
        rows.append(
            data.Covered(title, configuration.collector, text_of(configuration._replace(workload="")),
                         configuration.workload, state.machine_place(machine), text)
        )  # fmt: skip
        if count := text.count(_NOT):
            missing.append(data.Missing(title, rows[-1].machine, count, COMMAND))
    return data.Coverage(rows, deltas(main), missing, [])
