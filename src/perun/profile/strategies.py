"""Which models of a profile are looked at: the strategies of `perun check --models-type` (manual 2.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from perun.errors import UsageError
from perun.models.record import ModelRecord
from perun.models.regression.best import Rating, best_of
from perun.profile.uid import flatten, location

BEST_OF_ONE: Final = {
    "best-model": ("param", "nonparam"),
    "best-param": ("param",),
    "best-nonparam": ("nonparam",),
}
ALL: Final = {"all-models": ("param", "nonparam"), "all-param": ("param",), "all-nonparam": ("nonparam",)}
STRATEGIES: Final = (*BEST_OF_ONE, *ALL, "best-both")
"""The strategies, in the order of the manual but for `best-both`."""

_VALUES: Final = ("bucket_stats", "kernel_stats")


def record_of(model: Mapping[str, Any]) -> ModelRecord:
    """The record of a model of a profile; what is missing or no number is 0, but for the interval."""
    coefficients = {one.get("name"): one.get("value") for one in model.get("coeffs") or ()}
    method = str(model.get("method", ""))
    values = next((model[key] for key in _VALUES if isinstance(model.get(key), (list, tuple))), ())
    count = _number(model.get("points"), 0.0)
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
        points=int(count) if math.isfinite(count) else 0,
    )


def filtered_models(
    models: Iterable[Mapping[str, Any]], strategy: str
) -> dict[str, ModelRecord] | dict[str, list[ModelRecord]]:
    """The models that the strategy chooses, by uid in the order of the first model of each.

    See :meth:`perun.profile.factory.Profile.all_filtered_models`.

    :raises UsageError: names the strategy that does not exist.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"no strategy is called {strategy!r}", "known are: " + ", ".join(STRATEGIES))
    by_uid: dict[str, list[ModelRecord]] = {}
    for model in models:
        record = record_of(model)
        by_uid.setdefault(record.uid, []).append(record)
    if strategy in BEST_OF_ONE:
        leaders = {uid: best(_of_kind(found, BEST_OF_ONE[strategy])) for uid, found in by_uid.items()}
        return {uid: record for uid, record in leaders.items() if record}
    if strategy in ALL:
        chosen = {uid: _of_kind(found, ALL[strategy]) for uid, found in by_uid.items()}
    else:
        chosen = {uid: _best_of_both(found) for uid, found in by_uid.items()}
    return {uid: found for uid, found in chosen.items() if found}


def _of_kind(records: Iterable[ModelRecord], kinds: Sequence[str]) -> list[ModelRecord]:
    return [record for record in records if ("param" if record.is_parametric else "nonparam") in kinds]


def best(records: Iterable[ModelRecord]) -> ModelRecord | None:
    """The best model of those with an R^2 above 0, see :mod:`perun.models.regression.best`."""
    return best_of((record for record in records if record.r_square > 0), rating)


def rating(record: ModelRecord) -> Rating:
    """What of a model says how well it fits."""
    interval = record.x_start, record.x_end
    return Rating(record.type, record.r_square, record.explained, record.points, interval)


def _best_of_both(records: list[ModelRecord]) -> list[ModelRecord]:
    chosen = (best(_of_kind(records, (kind,))) for kind in ("param", "nonparam"))
    return [record for record in chosen if record]


def _number(value: Any, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return default
    try:
        return float(value)
    except (ValueError, OverflowError):
        return default
