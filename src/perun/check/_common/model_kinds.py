"""The models of two profiles by uid and kind, as `perun check --models-type` chooses them (manual 3.2.13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.check._common.model_pairs import ABSENT, units_by_uid
from perun.errors import ProfileError
from perun.models.record import ModelRecord
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.strategies import ALL, BEST_OF_ONE, filtered_models

if TYPE_CHECKING:
    from perun.check._common.parts import Part
    from perun.profile.factory import Profile

DEFAULT: Final = "best-model"
_PIECEWISE: Final = ("bisection", "interval")
"""Methods of the regression analysis that make models of pieces of x."""
_KINDS: Final = {True: "parametric", False: "non-parametric"}
_MAKERS: Final = {
    "param": "'perun postprocessby <profile> regression-analysis -m full'",
    "nonparam": "'perun postprocessby <profile> regressogram', moving-average or kernel-regression",
}
_AMOUNT: Final = "amount"
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
    _require(old, new, strategy)
    old_units, new_units = units_by_uid(baseline), units_by_uid(target)
    for uid in sorted(old.keys() | new.keys()):
        before, after = old.get(uid, {}), new.get(uid, {})
        common = [found for found in before if found in after]
        if not common:
            yield KindPair(uid, "", _first(before), _first(after), "", _absent(uid, old_units, new_units))
        for found in common:
            unit = _unit(found[1], old_units.get(uid, ""), new_units.get(uid, ""))
            yield KindPair(uid, _name(*found), tuple(before[found]), tuple(after[found]), unit)


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


def _require(old: _Models, new: _Models, strategy: str) -> None:
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


def _name(kind: str, of: str, per: str) -> str:
    """The kind, with the fields where models of several ones may be compared and these are not the usual."""
    return kind if not kind or (of, per) == (_AMOUNT, _PER) else f"{kind} ({of} by {per})"


def _unit(of: str, *units_of_amount: str) -> str:
    return units_of_amount[0] if of == _AMOUNT and len(set(units_of_amount)) == 1 else ""


def _names(records: Iterable[ModelRecord]) -> str:
    """The types of the models along x, those of neighbours of one type once: `constant, linear`."""
    return ", ".join(kind for kind, _ in groupby(record.type for record in records))
