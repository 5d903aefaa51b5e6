"""The counts that guide the search: which input executes an edge, or a line, most often.

An input that raises the count of any edge is kept, as well as one that executes more lines in all: C.
Lemieux, R. Padhye, K. Sen, D. Song, PerfFuzz: Automatically Generating Pathological Inputs, ISSTA 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Counts = NDArray[np.int64]

MARGIN: Final = 0.05
"""Share by which a count has to rise. Else each input that is a byte longer would be kept."""


class Compass:
    """The largest count of each edge, and who has it.

    :ivar best: shape (n,). :ivar holders: who has the count, by number; -1 for nobody. :ivar base: the
        largest counts of the seeds.
    """

    def __init__(self) -> None:
        self.best: Counts = np.zeros(0, np.int64)
        self.base: Counts = np.zeros(0, np.int64)
        self.holders: NDArray[np.int64] = np.zeros(0, np.int64)
        self._limits: Counts = np.zeros(0, np.int64)

    def rises(self, counts: Any) -> NDArray[np.intp]:
        """The edges whose count is larger than any before, by a twentieth at least."""
        found = np.asarray(counts)
        self._fit(found.size)
        if found.size < self._limits.size:
            return np.flatnonzero(found > self._limits[: found.size])
        return np.flatnonzero(found > self._limits)

    def larger(self, edges: NDArray[np.intp], counts: Counts) -> tuple[NDArray[np.intp], Counts]:
        """Those of these edges, and their counts, that :meth:`rises` would find."""
        if not edges.size:
            return edges, counts
        self._fit(int(edges.max()) + 1)
        chosen = counts > self._limits[edges]
        return edges[chosen], counts[chosen]

    def take(self, edges: NDArray[np.intp], counts: Sequence[int] | Counts, holder: int) -> None:
        """Note that `holder` has these counts of these edges, where they are larger than those before."""
        values = np.asarray(counts, np.int64)
        if not edges.size:
            return
        self._fit(int(edges.max()) + 1)
        larger = values > self.best[edges]
        edges, values = edges[larger], values[larger]
        self.best[edges] = values
        self.holders[edges] = holder
        self._limits[edges] = values + (values * MARGIN).astype(np.int64)

    def close_base(self) -> None:
        """All seeds have run: what they executed is what counts of others are compared with."""
        self.base = self.best.copy()

    def hottest(self, edges: NDArray[np.intp], counts: Sequence[int] | Counts) -> tuple[int, float]:
        """The edge whose count rose most against the seeds, and by how much; (-1, 0.0) where there is none.

        An edge that no seed executes counts as executed once.
        """
        if not edges.size:
            return -1, 0.0
        base = np.ones(edges.size)
        known = edges < self.base.size
        base[known] = np.maximum(self.base[edges[known]], 1)
        ratios = np.asarray(counts, np.float64) / base
        place = int(ratios.argmax())
        return int(edges[place]), float(ratios[place])

    @property
    def favoured(self) -> list[int]:
        """Who holds the largest count of some edge, in order."""
        found = np.unique(self.holders)
        return [int(one) for one in found if one >= 0]

    def _fit(self, size: int) -> None:
        missing = size - self.best.size
        if missing > 0:
            self.best = np.pad(self.best, (0, missing))
            self._limits = np.pad(self._limits, (0, missing))
            self.holders = np.pad(self.holders, (0, missing), constant_values=-1)
