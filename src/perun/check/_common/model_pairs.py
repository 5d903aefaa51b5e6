"""The models of two profiles by uid, for checks that compare the results of a regression analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.errors import ProfileError
from perun.models.record import ModelRecord
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.records import record_of
from perun.profile.series import subtype_of
from perun.profile.strategies import best
from perun.profile.uid import flatten, location
from perun.profile.units import units

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
            yield _unpaired(uid, PerformanceChange.NotInBaseline, ABSENT, _name(after))
        elif uid not in new and uid not in new_units:
            yield _unpaired(uid, PerformanceChange.NotInTarget, _name(before), ABSENT)
        elif before and after:
            yield _paired(uid, before, after, (old_units.get(uid, ""), new_units.get(uid, "")))
        elif before or after:
            yield _unpaired(uid, PerformanceChange.Unknown, _name(before), _name(after))


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


def _name(records: list[ModelRecord]) -> str:
    leader = best(records)
    return leader.type if leader else _NO_MODEL
