"""Models as lines: formulas by their coefficients, averages through points, regressograms as steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from perun.errors import ProfileError
from perun.models.record import ModelRecord
from perun.profile.amounts import readable
from perun.profile.convert import plot_data_from_coefficients_of
from perun.profile.strategies import best
from perun.view._common.chart import Series

if TYPE_CHECKING:
    from perun.view._common.chart import Floats

_STRAIGHT: Final = ("constant", "linear")
_EVERY: Final = 10
"""Every tenth point of a curved model is drawn, which looks the same and makes the page smaller."""
_MAX_POINTS: Final = 300
_STEPS: Final = "regressogram"
_FORMULAS: Final = {
    "constant": "{b0}",
    "linear": "{b0} + {b1} x",
    "logarithmic": "{b0} + {b1} ln x",
    "quadratic": "{b0} + {b1} x + {b2} x²",
    "power": "{b0} x^{b1}",
    "exponential": "{b0} · {b1}^x",
}


def curves(models: Iterable[ModelRecord], x: Floats) -> tuple[list[Series], list[str]]:
    """The models as series, the best one first, and a sentence for each model that cannot be drawn.

    :param x: the x of the points that the models were made of, shape (n,).
    """
    given = list(models)
    leader = best(given)
    records = sorted(given, key=lambda record: (record is not leader, -record.r_square))
    several = {kind for kind, count in Counter(record.type for record in records).items() if count > 1}
    found: list[Series] = []
    problems: list[str] = []
    for record in records:
        name = f"{record.type.replace('_', ' ')}, R² {record.r_square:.3f}"
        if record.type in several:
            name += f", x {readable(record.x_start)} to {readable(record.x_end)}"
        try:
            line = _curve(record, x)
        except ProfileError as problem:
            problems.append(f"Not drawn: {problem.message}.")
            continue
        number = len(found) + 1
        found.append(line._replace(name=name, colour=number, note=_formula(record), dashed=number > 1))
    return found, problems


def _curve(record: ModelRecord, x: Floats) -> Series:
    if record.is_parametric:
        data = plot_data_from_coefficients_of(record.model)
        points = np.array([data["plot_x"], data["plot_y"]])
        every = max(1, points.shape[1] - 1) if record.type in _STRAIGHT else _EVERY
        kept = np.unique(np.append(np.arange(0, points.shape[1], every), points.shape[1] - 1))
        line = Series("", "line", points[0, kept], points[1, kept]) if points.size else None
    else:
        line = _averages(record, np.unique(x), np.sort(x))
    if line is None or not line.x.size:
        raise ProfileError(f"the model {record.type!r} of {record.uid!r} has no finite point to draw")
    return line


def _averages(record: ModelRecord, different: Floats, ascending: Floats) -> Series | None:
    values = np.array(record.values, np.float64)
    values[~np.isfinite(values)] = np.nan
    if not (values.size and np.isfinite([record.x_start, record.x_end]).all()):
        return None
    if record.type == _STEPS:
        edges = np.linspace(record.x_start, record.x_end, values.size + 1)
        return Series("", "step", edges, np.append(values, values[-1]))
    # The number of values says where they are: at each point, at each different x, or evenly spaced.
    at = next(
        (known for known in (ascending, different) if known.size == values.size),
        np.linspace(record.x_start, record.x_end, values.size),
    )
    good = np.flatnonzero(np.isfinite(values))
    if good.size > _MAX_POINTS:
        good = good[np.linspace(0, good.size - 1, _MAX_POINTS).astype(int)]
    return Series("", "line", at[good], values[good])


def _formula(record: ModelRecord) -> str:
    formula = _FORMULAS.get(record.type)
    if formula is None or not record.is_parametric:
        return ""
    b0, b1, b2 = (f"{value:.4g}" for value in (record.b0, record.b1, record.b2))
    return "y = " + formula.format(b0=b0, b1=b1, b2=b2).replace("+ -", "- ")
