"""Window functions of weighted moving averages, symmetric, as :mod:`scipy.signal.windows` has them.

They are written down here because importing that module takes a second, more than a whole moving average.

F. J. Harris: On the use of windows for harmonic analysis with the discrete Fourier transform. Proc. IEEE 66
(1978); A. H. Nuttall: Some windows with very good sidelobe behavior. IEEE Trans. ASSP 29 (1981);
Y. H. Ha, J. A. Pearce: A new window and comparison to standard windows. IEEE Trans. ASSP 37 (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_KAISER_BETA: Final = 14.0  # of the manual: "a good starting point"


def weights(kind: str, width: int, position: NDArray[np.int64]) -> Floats:
    """The weights at some positions of a window.

    :param kind: one of :data:`KINDS`. :param width: points in the whole window.
    :param position: from 0 to width - 1, shape (n,). :returns: shape (n,), at most 1.
    """
    if width == 1:
        return np.ones(position.size)
    return KINDS[kind](position.astype(np.float64), width)


def _boxcar(position: Floats, width: int) -> Floats:
    return np.ones(position.size)


def _triang(position: Floats, width: int) -> Floats:
    nearest = np.minimum(position, width - 1 - position) + 1
    return 2 * nearest / (width + 1) if width % 2 else (2 * nearest - 1) / width


def _bartlett(position: Floats, width: int) -> Floats:
    return np.where(position <= (width - 1) / 2, 2 * position / (width - 1), 2 - 2 * position / (width - 1))


def _cosines(*factors: float) -> Callable[[Floats, int], Floats]:
    def window(position: Floats, width: int) -> Floats:
        angle = np.where(position == width - 1, np.pi, position * (2 * np.pi / (width - 1)) - np.pi)
        total = np.zeros(position.size)
        for multiple, factor in enumerate(factors):
            total += factor * np.cos(multiple * angle)
        return total

    return window


def _parzen(position: Floats, width: int) -> Floats:
    distance = np.abs(position - (width - 1) / 2)
    share = distance / (width / 2)
    near = 1 - 6 * share**2 + 6 * share**3
    return np.where(distance <= (width - 1) / 4, near, 2 * (1 - share) ** 3)


def _bohman(position: Floats, width: int) -> Floats:
    share = np.abs(position * (2 / (width - 1)) - 1)
    inner = (1 - share) * np.cos(np.pi * share) + np.sin(np.pi * share) / np.pi
    return np.where((position == 0) | (position == width - 1), 0.0, inner)


def _barthann(position: Floats, width: int) -> Floats:
    share = np.abs(position / (width - 1) - 0.5)
    return 0.62 - 0.48 * share + 0.38 * np.cos(2 * np.pi * share)


def _kaiser(position: Floats, width: int) -> Floats:
    share = (position - (width - 1) / 2) / ((width - 1) / 2)
    return np.asarray(np.i0(_KAISER_BETA * np.sqrt(1 - share**2)) / np.i0(_KAISER_BETA))


KINDS: Final[Mapping[str, Callable[[Floats, int], Floats]]] = {
    "boxcar": _boxcar,
    "triang": _triang,
    "blackman": _cosines(0.42, 0.50, 0.08),
    "hamming": _cosines(0.54, 1.0 - 0.54),
    "bartlett": _bartlett,
    "parzen": _parzen,
    "bohman": _bohman,
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "barthann": _barthann,
    "kaiser": _kaiser,
}
"""The window functions of the manual, of a position and the width of the window."""
