"""How series are named for people, and identified in addresses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.history.changes.data import SeriesKey
from perun.history.trend import text_of
from perun.profile.head import Configuration

_DIGITS_OF_IDS: Final = 12
_TIMES: Final[Mapping[str, str]] = MappingProxyType(
    {"real": "real time", "user": "user time", "sys": "system time", "cpu": "processor time"}
)


def identity(key: SeriesKey) -> str:
    """What stands for the series, on whatever machine, in addresses: 12 hexadecimal digits."""
    text = json.dumps(key._replace(machine=""))
    return hashlib.blake2b(text.encode(), digest_size=_DIGITS_OF_IDS // 2).hexdigest()


def metric_of(key: SeriesKey) -> str:
    """What is measured at the location: `real`, `peak`, `total`, `instructions` ..."""
    name, bracket, rest = key.location.rpartition(" [")
    if bracket and name and rest.endswith("]"):
        return rest[:-1]
    return key.subtype or key.type


def is_whole(key: SeriesKey) -> bool:
    """Whether it is of the whole program or benchmark, and not of a function of it."""
    own = key.configuration
    return _place(key) in (own.cmd, text_of(own), own.benchmark)


def group_of(configuration: Configuration) -> str:
    """What the name of a benchmark of a suite begins with: its file, package or class; else empty."""
    name = configuration.args if configuration.benchmark else ""
    if "::" in name:
        return name.rpartition("::")[0]
    return name[: max(name.rfind("/"), name.rfind("."), 0)]


def title_of(key: SeriesKey) -> str:
    """`real time of ./app big.txt`, `insert [total] in ./app big.txt`."""
    command = text_of(key.configuration)
    if is_whole(key):
        return f"{words_of(key)} of {command}"
    return f"{key.location} in {command}" if command else key.location


def words_of(key: SeriesKey) -> str:
    """What of a whole program is measured, in words: `real time`, `peak`."""
    metric = metric_of(key)
    return _TIMES.get(metric, metric) if key.type == "time" else metric


def name_of(key: SeriesKey, short: Mapping[Configuration, str]) -> str:
    """The title in few words. :param short: the :func:`~perun.profile.head.shortest` names."""
    if is_whole(key):
        return f"{short[key.configuration]} [{metric_of(key)}]"
    return f"{key.location} in {short[key.configuration]}" if len(short) > 1 else key.location


def _place(key: SeriesKey) -> str:
    """The location without what is measured there."""
    name, bracket, _ = key.location.rpartition(" [")
    return name if bracket else key.location


# Numbers for pages: as many digits as can be seen, and as few places as a picture has.

Floats = NDArray[np.float64]
_WHOLE: Final = 1e15
_DIGITS: Final = 6
_LEAST, _MOST = 1e-16, 1e27
"""Between these the power of ten of the last of six digits is a float."""
_FEW: Final = 50
"""Up to so many numbers are rounded one by one sooner than all together."""
_WIDEST: Final = 1e15
HALVES: Final = 1_000_000
"""Half the width of an interval is given in such parts of its value."""


def short(value: float) -> float | int | None:
    """The number with six digits; None if it is none."""
    if value != value or value in (np.inf, -np.inf):
        return None
    value = float(f"{value:.{_DIGITS}g}")
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


def shorts(values: Iterable[float]) -> list[float | int | None]:
    """Numbers with six digits, as :func:`short`; whole ones stay so only together."""
    numbers = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.float64)
    size = np.abs(numbers)
    there = np.isfinite(numbers)
    if there.all() and (numbers == np.rint(numbers)).all() and (size < _WHOLE).all():
        return [int(one) for one in _rounded(numbers, size).tolist()]
    found: list[float | int | None] = _rounded(np.where(there, numbers, 0.0), size).tolist()
    if not there.all():
        found = [one if known else None for one, known in zip(found, there.tolist(), strict=True)]
    return found


def _rounded(numbers: Floats, size: Floats) -> Floats:
    """The finite numbers with six digits. :param size: their absolute values.

    An integer of six digits by or times a power of ten that is a float itself is the float nearest to the
    decimal number, so that no digits but these are written.
    """
    if numbers.size < _FEW:
        return np.array([float(f"{one:.{_DIGITS}g}") for one in numbers.tolist()])
    there = (size > _LEAST) & (size < _MOST)
    powers = np.floor(np.log10(np.where(there, size, 1.0))) - (_DIGITS - 1)
    scale = 10.0 ** np.abs(powers)
    found: Floats = np.where(powers < 0, np.rint(numbers * scale) / scale, np.rint(numbers / scale) * scale)
    for place in np.flatnonzero(~there & (numbers != 0)):
        found[place] = float(f"{numbers[place]:.{_DIGITS}g}")
    return found


def deltas(places: NDArray[np.integer]) -> list[int]:
    """Ascending numbers as the first one, and how much each of the others is more than the one before."""
    apart = np.array(places)
    apart[1:] -= places[:-1]
    found: list[int] = apart.tolist()
    return found


def halves(values: Floats, half: NDArray[np.floating]) -> list[float | int | None] | None:
    """Half the width of each interval, NaN where it is not known, in parts of its value; of 0 as it is. None
    where none is known.

    :param values: shape (n,), as `half`.
    """
    size = np.abs(values)
    zeros = size == 0
    with np.errstate(over="ignore"):
        parts = np.rint(half / np.where(zeros, 1.0, size) * HALVES)
    there = parts < _WIDEST  # NaN is not
    if there.all() and not zeros.any():
        whole: list[float | int | None] = parts.astype(np.int64).tolist()
        return whole
    if not np.isfinite(half).any():
        return None
    found = np.where(there, parts, 0).astype(np.int64).tolist()
    return [
        (short(half[place]) if zeros[place] else one) if there[place] else None
        for place, one in enumerate(found)
    ]


def counts(samples: NDArray[np.integer]) -> list[int] | int:
    """How many samples each value has; one number where all have the same."""
    if (samples == samples[0]).all():
        return int(samples[0])
    found: list[int] = samples.tolist()
    return found


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


def _parts(values: Floats, size: int) -> Floats:
    """A copy of the values, shape (..., places, size), with NaN at the end of the last one."""
    places = -(-values.shape[-1] // size)
    padded = np.full((*values.shape[:-1], places * size), np.nan)
    padded[..., : values.shape[-1]] = values
    return padded.reshape(*values.shape[:-1], places, size)
