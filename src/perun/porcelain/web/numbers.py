"""Numbers for pages: as many digits as can be seen, and as few places as a picture has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_WHOLE: Final = 1e15
HALVES: Final = 10_000
"""Half the width of an interval is given in such parts of its value."""


def short(value: float) -> float | int | None:
    """The number with six digits; None if it is none."""
    if value != value or value in (np.inf, -np.inf):
        return None
    value = float(f"{value:.6g}")
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


def shorts(values: Iterable[float]) -> list[float | int | None]:
    """Numbers with six digits, as :func:`short`; whole ones stay so only together."""
    numbers = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.float64)
    there = np.isfinite(numbers)
    # One text of all is made and read in a third of the time of single ones.
    texts = ("%.6g " * numbers.size % tuple(np.where(there, numbers, 0.0).tolist())).split()
    found: list[float | int | None] = list(map(float, texts))
    if (numbers == np.rint(numbers)).all() and (np.abs(numbers) < _WHOLE).all():
        return [int(one) for one in map(float, texts)]
    if not there.all():
        found = [one if known else None for one, known in zip(found, there, strict=True)]
    return found


def deltas(places: NDArray[np.integer]) -> list[int]:
    """Ascending numbers as the first one, and how much each of the others is more than the one before."""
    return [int(one) for one in np.diff(places, prepend=0)]


def halves(values: Floats, half: NDArray[np.floating]) -> list[int | None] | None:
    """Half the width of each interval in parts of its value; None where none is known.

    :param values: above 0, shape (n,). :param half: NaN where it is not known.
    """
    if not np.isfinite(half).any():
        return None
    parts = np.rint(half / values * HALVES)
    return [int(one) if one == one and one < 1e9 else None for one in parts]


def counts(samples: NDArray[np.integer]) -> list[int] | int:
    """How many samples each value has; one number where all have the same."""
    found = np.unique(samples)
    return int(found[0]) if len(found) == 1 else [int(one) for one in samples]


def bucket_size(count: int, most: int) -> int:
    """How many of `count` things one of at most `most` places holds, at least 1."""
    return max(1, -(-count // most))


def medians(values: Floats, size: int) -> Floats:
    """The median of each `size` values, of what is no NaN: shape (..., n) becomes (..., places)."""
    parts = _parts(values, size)
    parts.sort(axis=-1)  # NaN comes last
    there = np.isfinite(parts).sum(axis=-1, keepdims=True)
    lower = np.take_along_axis(parts, np.maximum(there - 1, 0) // 2, axis=-1)
    upper = np.take_along_axis(parts, there // 2 % size, axis=-1)
    middle: Floats = np.where(there % 2, lower, (lower + upper) / 2)[..., 0]
    return middle


def ranges(values: Floats, size: int) -> tuple[Floats, Floats]:
    """The least and the largest of each `size` values, shape (places,); one finite in each at least."""
    parts = _parts(values, size)
    return np.fmin.reduce(parts, axis=-1), np.fmax.reduce(parts, axis=-1)


def _parts(values: Floats, size: int) -> Floats:
    """A copy of the values, shape (..., places, size), with NaN at the end of the last one."""
    places = -(-values.shape[-1] // size)
    padded = np.full((*values.shape[:-1], places * size), np.nan)
    padded[..., : values.shape[-1]] = values
    return padded.reshape(*values.shape[:-1], places, size)
