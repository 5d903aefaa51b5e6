"""Many tests at once: how many of the findings may be false."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """The adjusted p-values, in the order given, shape (n,); those up to q are wrong in a share of q on
    average.

    Source: Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, J. R. Stat. Soc. B 57, 1995.

    :param p_values: shape (n,), in [0, 1].
    """
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * given.size / np.arange(1, given.size + 1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
