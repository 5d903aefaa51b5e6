"""Which versions and configurations lack profiles."""

from __future__ import annotations

from collections import defaultdict

from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.numbers import deltas
from perun.porcelain.web.state import State
from perun.profile.head import Configuration

_MEASURED, _NOT, _INCOMPLETE, _DAMAGED = "1.id"
COMMAND = "perun run --crawl-parents matrix --missing"


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
        if column is None:
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
        missing.append(data.Missing(title, text.count(_NOT), COMMAND if text.count(_NOT) else None))
    return data.Coverage(rows, deltas(main), missing, [])
