"""The models of a profile as records, without what chooses among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from perun.models.record import ModelRecord
from perun.profile.uid import flatten, location

_VALUES: Final = ("bucket_stats", "kernel_stats")


def record_of(model: Mapping[str, Any]) -> ModelRecord:
    """The record of a model of a profile; what is missing or no number is 0, but for the interval."""
    coefficients = {one.get("name"): one.get("value") for one in model.get("coeffs") or ()}
    method = str(model.get("method", ""))
    values = next((model[key] for key in _VALUES if isinstance(model.get(key), (list, tuple))), ())
    size = _number(model.get("points"), 0.0)
    return ModelRecord(
        type=str(model.get("model") or method),
        r_square=_number(model.get("r_square"), 0.0),
        b0=_number(coefficients.get("b0"), 0.0),
        b1=_number(coefficients.get("b1"), 0.0),
        b2=_number(coefficients.get("b2"), 0.0),
        x_start=_number(model.get("x_start"), math.nan),
        x_end=_number(model.get("x_end"), math.nan),
        uid=location(str(flatten(model.get("uid", ""))), str(model.get("subtype") or "")),
        method=method,
        values=tuple(_number(value, math.nan) for value in values),
        per_key=str(model.get("per_key") or ""),
        model=model,
        explained=_number(model.get("explained"), math.nan),
        points=int(size) if math.isfinite(size) else 0,
    )


def _number(value: Any, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return default
    try:
        return float(value)
    except (ValueError, OverflowError):
        return default
