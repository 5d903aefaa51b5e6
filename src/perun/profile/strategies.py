"""Which models of a profile are looked at: the strategies of `perun check --models-type` (manual 2.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from perun.core.errors import UsageError
from perun.models.record import ModelRecord
from perun.models.regression.methods import FitQuality, best_of
from perun.profile.records import record_of

BEST_OF_ONE: Final = {
    "best-model": ("param", "nonparam"),
    "best-param": ("param",),
    "best-nonparam": ("nonparam",),
}
ALL: Final = {"all-models": ("param", "nonparam"), "all-param": ("param",), "all-nonparam": ("nonparam",)}
STRATEGIES: Final = (*BEST_OF_ONE, *ALL, "best-both")
"""The strategies, in the order of the manual but for `best-both`."""


def named_models(models: Iterable[Mapping[str, Any]], strategy: str) -> dict[str, ModelRecord]:
    """The models that the strategy chooses, each by a name.

    See :meth:`perun.profile.factory.Profile.all_filtered_models`.

    :raises UsageError: names the strategy that does not exist.
    """
    found = filtered_models(models, strategy)
    if strategy in BEST_OF_ONE:
        return {uid: record for uid, (record,) in found.items()}
    named: dict[str, ModelRecord] = {}
    for record in (record for records in found.values() for record in records):
        names = _names(record)
        named[next(name for name in names if name not in named)] = record
    return named


def filtered_models(models: Iterable[Mapping[str, Any]], strategy: str) -> dict[str, list[ModelRecord]]:
    """The models that the strategy chooses, by uid in the order of the first model of each.

    :raises UsageError: names the strategy that does not exist.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"no strategy is called {strategy!r}", "known are: " + ", ".join(STRATEGIES))
    by_uid: dict[str, list[ModelRecord]] = {}
    for model in models:
        record = record_of(model)
        by_uid.setdefault(record.uid, []).append(record)
    chosen = {uid: _chosen(found, strategy) for uid, found in by_uid.items()}
    return {uid: found for uid, found in chosen.items() if found}


def _chosen(records: list[ModelRecord], strategy: str) -> list[ModelRecord]:
    if strategy in ALL:
        return _of_kind(records, ALL[strategy])
    kinds = [BEST_OF_ONE[strategy]] if strategy in BEST_OF_ONE else [("param",), ("nonparam",)]
    return [found for found in (best(_of_kind(records, one)) for one in kinds) if found]


def _names(record: ModelRecord) -> Iterator[str]:
    """Names of the model, the shortest first."""
    name = f"{record.uid}, {record.type}"
    yield name
    if math.isfinite(record.x_start) and math.isfinite(record.x_end):
        name += f", x {record.x_start:g} to {record.x_end:g}"
        yield name
    yield from (f"{name}, {number}" for number in count(2))


def _of_kind(records: Iterable[ModelRecord], kinds: Sequence[str]) -> list[ModelRecord]:
    return [record for record in records if ("param" if record.is_parametric else "nonparam") in kinds]


def best(records: Iterable[ModelRecord]) -> ModelRecord | None:
    """The best model of those with an R^2 above 0, see :mod:`perun.models.regression.methods`."""
    return best_of((record for record in records if record.r_square > 0), rating)


def rating(record: ModelRecord) -> FitQuality:
    """What of a model says how well it fits."""
    interval = record.x_start, record.x_end
    return FitQuality(record.type, record.r_square, record.explained, record.points, interval)
