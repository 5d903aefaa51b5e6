"""What several postprocessors need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from perun.core.errors import ProfileError
from perun.models.record import NoModel
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.profile.format.columns import is_packed, pack
from perun.profile.format.grouping import ResourceGroup
from perun.profile.uid import flatten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.series import Floats, ResourceSeries


Fit = Callable[["Floats", "Floats"], Mapping[str, Any] | NoModel]
"""Makes the fields of a model from x and y, or returns why there is no model."""

_NAMED: Final = 5
_EXACT: Final = 2.0**53
_IDENTITY: Final = ("uid", "subtype", "model", "method", "x_start", "x_end")


class FieldParams(Protocol):
    """The fields of the models; one that is empty is chosen from the profile, and a note says which."""

    @property
    def of_key(self) -> str:
        """The dependent field."""

    @property
    def per_key(self) -> str:
        """The independent field."""


def add_models(profile: Profile, params: FieldParams, ctx: PostprocessContext, fit: Fit) -> Profile:
    """Add the models that `fit` makes of each uid to those of the profile, with `uid` and both keys.

    Of a uid that several things were measured of, such as the clocks of a command, each gets models of its
    own, with a `subtype`.

    :raises ProfileError: if the profile lacks the fields, or no uid has points for a model.
    """
    from perun.profile.series import chosen_keys, series

    of, per = chosen_keys(profile, params.of_key or None, params.per_key or None)
    note_keys(ctx, ("--of-key", params.of_key, of), ("--per-key", params.per_key, per))
    points = list(series(profile, of, per, separate=True))
    models: list[dict[str, Any]] = []
    without: dict[str, list[str]] = {}
    for number, one in enumerate(points):
        ctx.report(f"model of {one.location}", number, len(points))
        model = fit(one.x, one.y)
        if isinstance(model, NoModel):
            without.setdefault(f"no model: {model.reason}", []).append(one.location)
        else:
            models.append({**measured(one), **model, "per_key": per, "of_key": of})
        if one.left_out:
            without.setdefault("left out resources without a number in both fields", []).append(one.location)
    lines = [f"{names(uids)}: {reason}" for reason, uids in without.items()]
    if not models:
        raise ProfileError(
            f"no uid has a model of {of!r} per {per!r}: {'; '.join(lines)}",
            "name other fields with --of-key and --per-key",
        )
    for line in lines:
        ctx.note(line)
    store(profile, models)
    return profile


def note_keys(ctx: PostprocessContext, *keys: tuple[str, str, str]) -> None:
    """Note the fields that were chosen from the profile.

    :param keys: of each its option, what that says, and the field.
    """
    if chosen := [f"{option} {field!r}" for option, given, field in keys if not given]:
        ctx.note("chosen from the profile: " + ", ".join(chosen))


def check_amounts(ctx: PostprocessContext, invalid: int, total: int, verb: str, then: str) -> None:
    """Note how many amounts are no finite numbers.

    :param verb: what is done with the others. :param then: what becomes of these.
    :raises ProfileError: if there is no other.
    """
    if invalid == total:
        raise ProfileError(
            f"no resource has a finite number as its amount, so there is nothing to {verb}",
            "postprocess a profile whose resources have amounts",
        )
    if invalid:
        ctx.note(f"{invalid} of {total} amounts are not finite numbers; they {then}")


def measured(series: ResourceSeries) -> dict[str, str]:
    """The fields of a model that say what it is of: the uid, and the subtype where it has several."""
    return {"uid": series.uid, **({"subtype": series.subtype} if series.subtype else {})}


def store(profile: Profile, models: Sequence[dict[str, Any]]) -> None:
    """Add the models to those of the profile, except those that it has already."""
    import json  # here, because listing the postprocessors must be fast

    old = list(profile.get("models", ()))
    similar: dict[tuple[str, ...], list[Any]] = {}
    for model in old:
        similar.setdefault(_identity(model), []).append(model)
    # Compared as text, in which NaN is equal to itself.
    new = (
        model
        for model in models
        if json.dumps(model) not in map(json.dumps, similar.get(_identity(model), ()))
    )
    profile["models"] = [*old, *new]


def names(uids: Sequence[str]) -> str:
    """The first uids, and the number of the others."""
    named = ", ".join(map(repr, uids[:_NAMED]))
    return named if len(uids) <= _NAMED else f"{named} and {len(uids) - _NAMED} more"


def plain(value: float) -> float:
    """The number for a profile: an integer if it is whole."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _identity(model: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(model.get(key)) for key in _IDENTITY)


# Parameters that several postprocessors have.


def of_key() -> Any:
    """The dependent field of models, a `str`."""
    return param(
        "",
        short="-of",
        metavar="<of_resource_key>",
        help="The dependent field (Y) of the models, e.g. amount. By default it is chosen from the profile.",
    )


def per_key() -> Any:
    """The independent field of models, a `str`."""
    return param(
        "",
        short="-per",
        metavar="<per_resource_key>",
        help="The independent field (X) of the models, e.g. structure-unit-size. By default it is chosen "
        "from the profile.",
    )


# The amounts of a profile, group by group, for postprocessors that read or replace all of them.

T = TypeVar("T")
_NUMBERS: Final = {int, float}
_DEFAULTS: Final = {"snapshot": 0}
"""The values of fields that a resource lacks."""


def groups_by(profile: Profile, names: tuple[str, ...]) -> list[list[ResourceGroup]]:
    """The groups of the profile in its order, those with equal values of the named fields in one list.

    If one of these fields is a column, the profile is grouped anew.
    """
    groups = list(profile.groups())
    fields = {name for group in groups for name in group.columns}
    if not fields.isdisjoint(names):
        groups = _regrouped(profile, fields.difference(names))
    found: dict[tuple[Any, ...], list[ResourceGroup]] = {}
    for group in groups:
        values = [group.constants.get(name, _DEFAULTS.get(name)) for name in names]
        key = tuple([value if type(value) is str else flatten(value) for value in values])
        found.setdefault(key, []).append(group)
    return list(found.values())


def amounts_of(groups: Iterable[ResourceGroup]) -> list[Any]:
    """The amounts of the groups, one group after the other; None for a resource without one."""
    amounts: list[Any] = []
    for group in groups:
        amounts += amounts_of_group(group)
    return amounts


def amounts_of_group(group: ResourceGroup) -> Sequence[Any]:
    """The amounts of one group, packed if its column is."""
    column = group.columns.get("amount")
    return [group.constants.get("amount")] * group.size if column is None else column


def split_by_group(
    groups: Iterable[ResourceGroup], values: Sequence[T]
) -> Iterator[tuple[ResourceGroup, Sequence[T]]]:
    """Each group with its part of `values`, which has one value for each resource of the groups."""
    begin = 0
    for group in groups:
        end = begin + group.size
        yield group, values[begin:end]
        begin = end


def set_field(profile: Profile, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Set a field of all resources of some groups.

    :param columns: key of a group to its new column, with one value for each of its resources.
    """
    resources, constants = {}, {}
    for group in profile.groups():
        resources[group.key] = group.columns
        constants[group.key] = group.constants
        if group.key in columns:
            column: Any = columns[group.key]
            new = column if is_packed(column) else pack(list(column))
            resources[group.key] = {**group.columns, name: new}
            if name in group.constants:
                constants[group.key] = {
                    field: value for field, value in group.constants.items() if field != name
                }
    profile["resources"], profile["resource_type_map"] = resources, constants


def floats(values: Sequence[Any]) -> NDArray[np.float64]:
    """The values as numbers, shape (n,); NaN for a value that is not a finite number."""
    import numpy as np

    try:
        if is_packed(values) or set(map(type, values)) <= _NUMBERS:
            numbers = np.array(values, dtype=np.float64)
            numbers[~np.isfinite(numbers)] = np.nan
            return numbers
    except OverflowError:  # an integer beyond the range of a float
        pass
    return np.array([_float(value) for value in values], dtype=np.float64)


def _regrouped(profile: Profile, columns: Iterable[str]) -> list[ResourceGroup]:
    grouped = type(profile)()
    grouped.update_resources((resource for _, resource in profile.all_resources()), columns=columns)
    for region in ("resources", "resource_type_map"):
        profile[region] = grouped[region]
    return list(profile.groups())


def _float(value: Any) -> float:
    # Old profiles have some numbers as text.
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return np.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return np.nan
    return number if np.isfinite(number) else np.nan
