"""Heat maps: series by versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.naming import name_of, title_of
from perun.porcelain.web.numbers import bucket_size, medians, shorts
from perun.porcelain.web.state import Group, State

COLUMNS: Final = 400
ROWS: Final = 400
"""Rows of the grid: the most important ones."""


def grid(state: State) -> data.Grid:
    """The piece `grid`: the whole main line in at most 400 columns."""
    every = [(one, row) for one in state.groups.values() for row in one.rows]
    wanted = every[:ROWS]
    positions = state.measured_main[state.there_main[[row for _, row in wanted]].any(axis=0)]
    size = bucket_size(len(positions), COLUMNS)
    made = rows(state, wanted, positions, size)
    return data.Grid(positions[::size].tolist(), made, max(0, len(every) - ROWS))


def rows(
    state: State, wanted: Sequence[tuple[Group, int]], positions: NDArray[np.intp], size: int
) -> list[data.Row]:
    """The medians of each `size` of the positions, a row for each row of the table."""
    if not (wanted and positions.size):
        return []
    numbers = np.array([row for _, row in wanted])
    values = medians(state.table.values[numbers[:, np.newaxis], state.columns[positions]], size)
    return [
        data.Row(one.id, title_of(one.key), one.key.unit, one.key.larger_is_better, state.machine_of(row),
                 shorts(own), text_of(one.key.configuration), name_of(one.key, state.names))
        for (one, row), own in zip(wanted, values, strict=True)
    ]  # fmt: skip
