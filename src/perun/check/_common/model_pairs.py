"""The models of two profiles by uid, for checks that compare the results of a regression analysis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.models.curves import interval
from perun.models.record import ModelRecord
from perun.profile.amounts import units, written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.records import record_of
from perun.profile.series import subtype_of
from perun.profile.strategies import ALL, BEST_OF_ONE, best, filtered_models
from perun.profile.uid import flatten, location

if TYPE_CHECKING:
    from perun.profile.factory import Profile


MODELS: Final = ("constant", "linear", "logarithmic", "quadratic", "power", "exponential")
"""The models of a regression analysis."""
ABSENT: Final = "-"
_NO_MODEL: Final = "no model"
_AMOUNT: Final = "amount"
_Keys = tuple[str, str]


class ModelPair(NamedTuple):
    """One uid of the two profiles.

    :param baseline: its models that depend on the same field in both profiles; :param target: the same.
    :param unit: of what is modelled; empty where the profiles do not say, or not the same.
    :param unpaired: a change that says why there is nothing to compare; None where there is.
    """

    uid: str
    baseline: tuple[ModelRecord, ...]
    target: tuple[ModelRecord, ...]
    unit: str = ""
    unpaired: DegradationInfo | None = None


def model_pairs(baseline: Profile, target: Profile) -> Iterator[ModelPair]:
    """Each uid of the two profiles, in the order of their names.

    A model is usable if it is one of :data:`MODELS` and has an `r_square` above 0. A uid in one of the
    profiles only is NotInBaseline or NotInTarget; Unknown is one that has no usable model in one of them, or
    where the models of both do not say how the same field depends on the same other one. A uid that has
    a usable model in neither is left out, as these checks have nothing to say of it.

    :raises ProfileError: where one of the profiles has no model of a regression analysis at all.
    """
    old, new = _models(baseline), _models(target)
    _require(old, new)
    old_units, new_units = units_by_uid(baseline), units_by_uid(target)
    for uid in sorted(old.keys() | new.keys() | old_units.keys() | new_units.keys()):
        before, after = old.get(uid, []), new.get(uid, [])
        if uid not in old and uid not in old_units:
            yield _unpaired(uid, PerformanceChange.NotInBaseline, ABSENT, _best_name(after))
        elif uid not in new and uid not in new_units:
            yield _unpaired(uid, PerformanceChange.NotInTarget, _best_name(before), ABSENT)
        elif before and after:
            yield _paired(uid, before, after, (old_units.get(uid, ""), new_units.get(uid, "")))
        elif before or after:
            yield _unpaired(uid, PerformanceChange.Unknown, _best_name(before), _best_name(after))


def _unpaired(uid: str, kind: PerformanceChange, before: str, after: str) -> ModelPair:
    return ModelPair(uid, (), (), "", DegradationInfo(kind, uid, before, after))


def _paired(uid: str, before: list[ModelRecord], after: list[ModelRecord], of: tuple[str, str]) -> ModelPair:
    """The models of the two fields that are modelled best in both profiles."""
    old, new = _by_keys(before), _by_keys(after)
    common = [keys for keys in old if keys in new]
    if not common:
        return _unpaired(uid, PerformanceChange.Unknown, _of_keys(old), _of_keys(new))
    keys = max(common, key=lambda keys: (min(_best(old[keys]), _best(new[keys])), keys))
    unit = of[0] if keys[0] == _AMOUNT and of[0] == of[1] else ""
    return ModelPair(uid, tuple(old[keys]), tuple(new[keys]), unit)


def _models(profile: Profile) -> dict[str, list[ModelRecord]]:
    """The usable models by uid; a uid whose models are not usable has none of them."""
    found: dict[str, list[ModelRecord]] = {}
    for _, model in profile.all_models("param"):
        record = record_of(model)
        models = found.setdefault(record.uid, [])
        if record.type in MODELS and record.r_square > 0:
            models.append(record)
    return found


def _require(old: object, new: object) -> None:
    without = [name for name, models in (("baseline", old), ("target", new)) if not models]
    if without:
        verb = "have" if len(without) > 1 else "has"
        raise ProfileError(
            f"the {' and the '.join(without)} {verb} no models of a regression analysis",
            "make them with 'perun postprocessby <profile> regression-analysis -m full' for both profiles",
        )


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


def _by_keys(records: list[ModelRecord]) -> dict[_Keys, list[ModelRecord]]:
    found: dict[_Keys, list[ModelRecord]] = {}
    for record in records:
        keys = str(record.model.get("of_key") or _AMOUNT), record.per_key or "structure-unit-size"
        found.setdefault(keys, []).append(record)
    return found


def _best(records: list[ModelRecord]) -> float:
    return max(record.r_square for record in records)


def _of_keys(found: Iterable[_Keys]) -> str:
    return " and ".join(f"model of {of!r} depending on {per!r}" for of, per in found)


def _best_name(records: list[ModelRecord]) -> str:
    leader = best(records)
    return leader.type if leader else _NO_MODEL


# The models of two profiles by uid and kind, as `perun check --models-type` chooses them (manual 3.2.13).

DEFAULT: Final = "best-model"
_PIECEWISE: Final = ("bisection", "interval")
"""Methods of the regression analysis that make models of pieces of x."""
_KINDS: Final = {True: "parametric", False: "non-parametric"}
_MAKERS: Final = {
    "param": "'perun postprocessby <profile> regression-analysis -m full'",
    "nonparam": "'perun postprocessby <profile> regressogram', moving-average or kernel-regression",
}
_PER: Final = "structure-unit-size"
_Kinds = dict[tuple[str, str, str], list[ModelRecord]]
"""By kind, dependent and independent field."""
_Models = dict[str, _Kinds]


class KindPair(NamedTuple):
    """The models of one uid to be compared with each other.

    :param kind: what tells it from other pairs of the uid; empty where a uid has one pair only.
    :param baseline: models of the old version, several only where each is of a piece of x.
    :param target: those of the new version.
    :param unit: of what is modelled; empty where the profiles do not say, or not the same.
    :param unpaired: why there is nothing to compare; None where there is.
    """

    uid: str
    kind: str
    baseline: tuple[ModelRecord, ...]
    target: tuple[ModelRecord, ...]
    unit: str = ""
    unpaired: PerformanceChange | None = None

    def type(self, what: str) -> str:
        """The type of a change of the pair that is one of `what`; no two pairs of a uid have the same."""
        return f"{what} of {self.kind}" if self.kind else what

    def without_comparison(self, what: str) -> DegradationInfo:
        """The change of a pair of which there is nothing to compare."""
        before, after = (
            ABSENT if self.unpaired is absent else _names(records) or "no model"
            for records, absent in (
                (self.baseline, PerformanceChange.NotInBaseline),
                (self.target, PerformanceChange.NotInTarget),
            )
        )
        return DegradationInfo(
            self.unpaired or PerformanceChange.Unknown, self.uid, before, after, self.type(what)
        )

    def change(
        self,
        what: str,
        kind: PerformanceChange,
        means: tuple[float, float],
        rate: float,
        common: Sequence[Part],
    ) -> DegradationInfo:
        """The change of a pair that was compared; its confidence is the lowest `r_square` of its models.

        :param means: of the curve of the baseline and of that of the target, over the parts of x in `common`.
        """
        names = _names([part.baseline for part in common]), _names([part.target for part in common])
        return DegradationInfo(
            res=kind,
            loc=self.uid,
            fb=f"{written(means[0], self.unit)} ({names[0]})",
            tt=f"{written(means[1], self.unit)} ({names[1]})",
            t=self.type(what),
            rd=rate,
            ct="r_square",
            cr=min(part.r_square for part in common),
            rdr=100 * rate,
            values=means,
            unit=self.unit,
        )


def kind_pairs(baseline: Profile, target: Profile, strategy: str = DEFAULT) -> Iterator[KindPair]:
    """The pairs of each uid, in the order of their names.

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
    old, new = _chosen(baseline, strategy), _chosen(target, strategy)
    _require_kinds(old, new, strategy)
    old_units, new_units = units_by_uid(baseline), units_by_uid(target)
    for uid in sorted(old.keys() | new.keys()):
        before, after = old.get(uid, {}), new.get(uid, {})
        common = [found for found in before if found in after]
        if not common:
            yield KindPair(uid, "", _first(before), _first(after), "", _absent(uid, old_units, new_units))
        for found in common:
            unit = _unit(found[1], old_units.get(uid, ""), new_units.get(uid, ""))
            yield KindPair(uid, _kind_name(*found), tuple(before[found]), tuple(after[found]), unit)


def keys_of(model: Mapping[str, Any]) -> tuple[str, str]:
    """The dependent and the independent field of a model; only other ones than the usual are written down."""
    return str(model.get("of_key") or _AMOUNT), str(model.get("per_key") or _PER)


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
                kind = "" if strategy in BEST_OF_ONE else _KINDS[record.is_parametric]
                own[kind, *keys_of(record.model)] = _with_pieces(record, every[uid])
    return chosen


def _with_pieces(best: ModelRecord, every: list[ModelRecord]) -> list[ModelRecord]:
    if best.method not in _PIECEWISE:
        return [best]
    wanted = best.method, *keys_of(best.model)
    return [one for one in every if one.r_square > 0 and (one.method, *keys_of(one.model)) == wanted]


def _require_kinds(old: _Models, new: _Models, strategy: str) -> None:
    without = [name for name, models in (("baseline", old), ("target", new)) if not models]
    if not without:
        return
    verb = "have" if len(without) > 1 else "has"
    kinds = {**BEST_OF_ONE, **ALL}.get(strategy, ("param", "nonparam"))
    what = "models" if len(kinds) > 1 else f"models of the kind {strategy!r}"
    raise ProfileError(
        f"the {' and the '.join(without)} {verb} no {what}",
        f"make them with {', or '.join(_MAKERS[kind] for kind in kinds)}, for both profiles",
    )


def _absent(uid: str, old: Mapping[str, str], new: Mapping[str, str]) -> PerformanceChange:
    if uid in old or uid not in new:
        return PerformanceChange.Unknown if uid in new or uid not in old else PerformanceChange.NotInTarget
    return PerformanceChange.NotInBaseline


def _first(kinds: _Kinds) -> tuple[ModelRecord, ...]:
    return tuple(next(iter(kinds.values()), ()))


def _kind_name(kind: str, of: str, per: str) -> str:
    """The kind, with the fields where models of several ones may be compared and these are not the usual."""
    return kind if not kind or (of, per) == (_AMOUNT, _PER) else f"{kind} ({of} by {per})"


def _unit(of: str, *units_of_amount: str) -> str:
    return units_of_amount[0] if of == _AMOUNT and len(set(units_of_amount)) == 1 else ""


def _names(records: Iterable[ModelRecord]) -> str:
    """The types of the models along x, those of neighbours of one type once: `constant, linear`."""
    return ", ".join(kind for kind, _ in groupby(record.type for record in records))


# The best models of two versions side by side, part by part of the x that they have in common.
#
# Where every model of a uid is made of all its points, there is one part. The methods `bisection` and
# `interval` of the regression analysis make models of pieces of x; then the best model at an x is the best
# one of those whose interval holds it, and a new part begins wherever that changes in one of the two
# versions.


class Part(NamedTuple):
    """An interval of x, and the best model on it in both versions."""

    start: float
    end: float
    baseline: ModelRecord
    target: ModelRecord

    @property
    def r_square(self) -> float:
        """The lower R^2 of the two: how much the comparison can be relied on."""
        return min(self.baseline.r_square, self.target.r_square)


def parts(baseline: Sequence[ModelRecord], target: Sequence[ModelRecord]) -> list[Part]:
    """The parts of the x that both versions have models for, ascending; empty where there is none."""
    sides = [[(record, interval(record)) for record in records] for records in (baseline, target)]
    found = {bound for side in sides for _, bounds in side if bounds for bound in bounds}
    edges = sorted(filter(math.isfinite, found))
    result: list[Part] = []
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
            result.append(Part(start, end, old, new))
    return result


def without_fringes(found: list[Part]) -> list[Part]:
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


def _covers(part: Part) -> bool:
    lengths = [end - start for start, end in filter(None, map(interval, (part.baseline, part.target)))]
    return part.end - part.start >= min(lengths) / 2
