"""The models of two profiles side by side, for checks that compare models: by uid, kind and parts of x."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.models.curves import interval
from perun.models.record import ModelRecord
from perun.profile.amounts import units, written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.records import record_of
from perun.profile.series import subtype_of
from perun.profile.strategies import ALL, BEST_OF_ONE, best, filtered_models
from perun.profile.uid import flatten, location

MODELS: Final = ("constant", "linear", "logarithmic", "quadratic", "power", "exponential")
"""The models of a regression analysis."""
ABSENT: Final = "-"
DEFAULT: Final = "best-model"
_PIECEWISE: Final = ("bisection", "interval")
"""Methods of the regression analysis that make models of pieces of x."""
_MAKERS: Final = {
    "param": "'perun postprocessby <profile> regression-analysis -m full'",
    "nonparam": "'perun postprocessby <profile> regressogram', moving-average or kernel-regression",
}
_AMOUNT: Final = "amount"
_PER: Final = "structure-unit-size"
_Kind = tuple[str, str, str]
"""A kind of models, with their dependent and their independent field."""
_Models = dict[str, dict[_Kind, list[ModelRecord]]]
"""By uid and kind."""


class ModelPair(NamedTuple):
    """The models of one uid to be compared with each other.

    :param baseline: models of the old version, several only where each is of a piece of x.
    :param target: those of the new version, which depend on the same fields.
    :param unit: of what is modelled; empty where the profiles do not say, or not the same.
    :param kind: what tells it from other pairs of the uid; empty where a uid has one pair only.
    """

    uid: str
    baseline: tuple[ModelRecord, ...]
    target: tuple[ModelRecord, ...]
    unit: str = ""
    kind: str = ""

    def unknown(self, what: str, before: str = "", after: str = "") -> DegradationInfo:
        """The change of a pair whose models cannot be compared; its texts are the types of the models."""
        before, after = before or names_of(self.baseline), after or names_of(self.target)
        return DegradationInfo(PerformanceChange.Unknown, self.uid, before, after, self._type(what))

    def change(
        self,
        what: str,
        result: tuple[PerformanceChange, str],
        means: tuple[float, float],
        rates: tuple[float, float],
        common: Sequence[ModelInterval],
    ) -> DegradationInfo:
        """The change of a pair that was compared; its confidence is the lowest `r_square` of its models.

        :param what: its type; no two pairs of a uid have the same. :param result: the change, and the rule.
        :param means: of the curve of the baseline and of that of the target, over the parts of x in `common`.
        :param rates: the rate of the change, and the relative one.
        """
        names = names_of(part.baseline for part in common), names_of(part.target for part in common)
        before, after = (
            f"{written(mean, self.unit)} ({name})" for mean, name in zip(means, names, strict=True)
        )
        return DegradationInfo(
            *(result[0], self.uid, before, after, self._type(what), rates[0], "r_square"),
            cr=min(part.r_square for part in common),
            rdr=rates[1],
            rule=result[1],
            values=means,
            unit=self.unit,
        )

    def _type(self, what: str) -> str:
        return f"{what} of {self.kind}" if self.kind else what


def model_pairs(baseline: Profile, target: Profile) -> Iterator[ModelPair | DegradationInfo]:
    """The best models of a regression analysis of each uid, in the order of their names.

    A model is usable if it is one of :data:`MODELS` and has an `r_square` above 0. A uid in one of the
    profiles only is NotInBaseline or NotInTarget; Unknown is one that has no usable model in one of them, or
    where the models of both do not say how the same field depends on the same other one. A uid that has
    a usable model in neither is left out, as these checks have nothing to say of it.

    :returns: pairs, and a change that says why in place of each where there is nothing to compare.
    :raises ProfileError: where one of the profiles has no model of a regression analysis at all.
    """
    sides = _usable(baseline), _usable(target)
    _require(sides, "models of a regression analysis", f"{_MAKERS['param']} for both profiles")
    of_units = units_by_uid(baseline), units_by_uid(target)
    known = [side.keys() | own.keys() for side, own in zip(sides, of_units, strict=True)]
    for uid in sorted(known[0] | known[1]):
        before, after = (side.get(uid, {}) for side in sides)
        common = [kind for kind in before if kind in after]
        if common:
            kind = max(common, key=lambda kind: (min(_r_square(before[kind]), _r_square(after[kind])), kind))
            unit = _unit(kind, uid, of_units)
            yield ModelPair(uid, tuple(before[kind]), tuple(after[kind]), unit)
        elif before and after:
            yield DegradationInfo(PerformanceChange.Unknown, uid, _fields(before), _fields(after))
        elif (change := _unpaired(uid, known)) is not PerformanceChange.Unknown or before or after:
            yield _absent(change, uid, _name_of_best(before), _name_of_best(after))


def kind_pairs(
    baseline: Profile, target: Profile, strategy: str = DEFAULT
) -> Iterator[ModelPair | DegradationInfo]:
    """The pairs of each uid that `perun check --models-type` chooses, in the order of their names.

    `best-model`, `best-param` and `best-nonparam` give one pair of each uid; `best-both` one of the best
    parametric and one of the best non-parametric models; the others one of each type of model that both
    have. Where the best model is one of a piece of x (methods `bisection` and `interval`), all models of that
    method stand for the uid.

    A uid in one of the profiles only is NotInBaseline or NotInTarget; Unknown is one that has no model with
    an `r_square` above 0 in one of them, or none of a kind and of fields that the other has too. A uid
    without such a model in either is left out.

    :raises ProfileError: where one of the profiles has no model of these kinds at all.
    :raises UsageError: names the strategy that does not exist.
    """
    sides = _chosen(baseline, strategy), _chosen(target, strategy)
    kinds = {**BEST_OF_ONE, **ALL}.get(strategy, tuple(_MAKERS))
    what = "models" if len(kinds) > 1 else f"models of the kind {strategy!r}"
    _require(sides, what, f"{', or '.join(_MAKERS[kind] for kind in kinds)}, for both profiles")
    of_units = units_by_uid(baseline), units_by_uid(target)
    for uid in sorted(sides[0].keys() | sides[1].keys()):
        before, after = (side.get(uid, {}) for side in sides)
        common = [kind for kind in before if kind in after]
        if not common:
            yield _absent(_unpaired(uid, of_units), uid, _name_of_first(before), _name_of_first(after))
        for kind in common:
            unit = _unit(kind, uid, of_units)
            yield ModelPair(uid, tuple(before[kind]), tuple(after[kind]), unit, _name(*kind))


def keys_of(model: Mapping[str, Any]) -> tuple[str, str]:
    """The dependent and the independent field of a model; only other ones than the usual are written down."""
    return str(model.get("of_key") or _AMOUNT), str(model.get("per_key") or _PER)


def names_of(records: Iterable[ModelRecord]) -> str:
    """The types of the models along x, those of neighbours of one type once: `constant, linear`."""
    return ", ".join(kind for kind, _ in groupby(record.type for record in records))


def _usable(profile: Profile) -> _Models:
    """The usable models of a regression analysis; a uid whose models are not usable has none of them."""
    found: _Models = {}
    for _, model in profile.all_models("param"):
        record = record_of(model)
        own = found.setdefault(record.uid, {})
        if record.type in MODELS and record.r_square > 0:
            own.setdefault(("", *keys_of(record.model)), []).append(record)
    return found


def _chosen(profile: Profile, strategy: str) -> _Models:
    models = [model for _, model in profile.all_models()]
    every = filtered_models(models, "all-models")
    chosen: _Models = {}
    for uid, records in filtered_models(models, strategy).items():
        for record in records:
            if not record.r_square > 0:
                continue
            own = chosen.setdefault(uid, {})
            if strategy in ALL:
                own.setdefault((record.type, *keys_of(record.model)), []).append(record)
            else:
                one = "parametric" if record.is_parametric else "non-parametric"
                kind = "" if strategy in BEST_OF_ONE else one
                own[kind, *keys_of(record.model)] = _with_pieces(record, every[uid])
    return chosen


def _with_pieces(best: ModelRecord, every: list[ModelRecord]) -> list[ModelRecord]:
    if best.method not in _PIECEWISE:
        return [best]
    wanted = best.method, *keys_of(best.model)
    return [one for one in every if one.r_square > 0 and (one.method, *keys_of(one.model)) == wanted]


def _require(sides: tuple[_Models, _Models], what: str, makers: str) -> None:
    without = [name for name, models in zip(("baseline", "target"), sides, strict=True) if not models]
    if without:
        verb = "have" if len(without) > 1 else "has"
        raise ProfileError(f"the {' and the '.join(without)} {verb} no {what}", f"make them with {makers}")


def units_by_uid(profile: Profile) -> dict[str, str]:
    """The uids and the locations of all resources with the unit of their amounts, "" where that is not the
    same for all."""
    unit_of = units(profile)
    found: dict[str, str] = {}
    for group in profile.groups():
        if not group.size:
            continue
        column = group.columns.get("uid")
        values = [group.constants.get("uid", "")] if column is None else list(column)
        unit = unit_of(group.constants.get("type"), group.constants.get("subtype"))
        for uid in {str(flatten(value)) for value in values}:
            for place in (uid, location(uid, subtype_of(uid, group))):
                found[place] = unit if found.get(place, unit) == unit else ""
    return found


def _unpaired(uid: str, known: Sequence[Collection[str]]) -> PerformanceChange:
    """What a uid is that may be known in one of the versions only."""
    in_old, in_new = (uid in side for side in known)
    if in_old == in_new:
        return PerformanceChange.Unknown
    return PerformanceChange.NotInTarget if in_old else PerformanceChange.NotInBaseline


def _absent(change: PerformanceChange, uid: str, before: str, after: str) -> DegradationInfo:
    before = ABSENT if change is PerformanceChange.NotInBaseline else before
    return DegradationInfo(change, uid, before, ABSENT if change is PerformanceChange.NotInTarget else after)


def _unit(kind: _Kind, uid: str, of_units: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    found = {side.get(uid, "") for side in of_units}
    return found.pop() if kind[1] == _AMOUNT and len(found) == 1 else ""


def _name(kind: str, of: str, per: str) -> str:
    """The kind, with the fields where models of several ones may be compared and these are not the usual."""
    return kind if not kind or (of, per) == (_AMOUNT, _PER) else f"{kind} ({of} by {per})"


def _r_square(records: list[ModelRecord]) -> float:
    return max(record.r_square for record in records)


def _fields(kinds: Iterable[_Kind]) -> str:
    return " and ".join(f"model of {of!r} depending on {per!r}" for _, of, per in kinds)


def _name_of_best(kinds: Mapping[_Kind, list[ModelRecord]]) -> str:
    leader = best(record for records in kinds.values() for record in records)
    return leader.type if leader else "no model"


def _name_of_first(kinds: Mapping[_Kind, list[ModelRecord]]) -> str:
    return names_of(next(iter(kinds.values()), ())) or "no model"


# The best models of two versions side by side, part by part of the x that they have in common.
#
# Where every model of a uid is made of all its points, there is one part. The methods `bisection` and
# `interval` of the regression analysis make models of pieces of x; then the best model at an x is the best
# one of those whose interval holds it, and a new part begins wherever that changes in one of the two
# versions.


class ModelInterval(NamedTuple):
    """An interval of x, and the best model on it in both versions."""

    start: float
    end: float
    baseline: ModelRecord
    target: ModelRecord

    @property
    def r_square(self) -> float:
        """The lower R^2 of the two: how much the comparison can be relied on."""
        return min(self.baseline.r_square, self.target.r_square)


def parts(baseline: Sequence[ModelRecord], target: Sequence[ModelRecord]) -> list[ModelInterval]:
    """The parts of the x that both versions have models for, ascending; empty where there is none."""
    sides = [[(record, interval(record)) for record in records] for records in (baseline, target)]
    found = {bound for side in sides for _, bounds in side if bounds for bound in bounds}
    edges = sorted(filter(math.isfinite, found))
    result: list[ModelInterval] = []
    for start, end in pairwise(edges):
        old, new = (
            best(record for record, bounds in side if bounds and bounds[0] <= start and end <= bounds[1])
            for side in sides
        )
        if old is None or new is None:
            continue
        last = result[-1] if result else None
        if last and (last.end, last.baseline, last.target) == (start, old, new):
            result[-1] = last._replace(end=end)
        else:
            result.append(ModelInterval(start, end, old, new))
    return result


def without_fringes(found: list[ModelInterval]) -> list[ModelInterval]:
    """The parts without those that are there because two pieces do not end at quite the same x.

    Such a part covers less than half of both pieces. Where all do, none is left out.
    """
    return [part for part in found if _covers(part)] or found


def extent(records: Sequence[ModelRecord]) -> str:
    """What the models are of, as text: why those of two versions without a common x cannot be compared."""
    bounds = [one for one in map(interval, records) if one]
    if not bounds:
        return "models without an interval"
    return f"models for x = {min(one[0] for one in bounds):g} to {max(one[1] for one in bounds):g}"


def _covers(part: ModelInterval) -> bool:
    lengths = [end - start for start, end in filter(None, map(interval, (part.baseline, part.target)))]
    return part.end - part.start >= min(lengths) / 2
