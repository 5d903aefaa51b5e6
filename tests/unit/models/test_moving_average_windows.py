from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import windows

from perun.models.rolling import KINDS, weights

WIDTHS = (*range(1, 40), 500, 501)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_as_scipy(kind: str) -> None:
    function = getattr(windows, kind)
    for width in WIDTHS:
        expected = function(width, 14) if kind == "kaiser" else function(width)
        found = weights(kind, width, np.arange(width))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
        # A weight of exactly 0 decides whether a window that is cut short has a mean.
        assert np.array_equal(found == 0, expected == 0)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_part_of_a_window_too_wide_for_the_memory(kind: str) -> None:
    part = weights(kind, 10**12, np.arange(5 * 10**11, 5 * 10**11 + 3))
    np.testing.assert_allclose(part, 1.0, atol=1e-9)
