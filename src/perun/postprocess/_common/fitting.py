"""Adds models to a profile, one for each uid, and tells the user which uids have none, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.errors import ProfileError
from perun.models.result import NoModel

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.series import Floats, Series

Fit = Callable[["Floats", "Floats"], Mapping[str, Any] | NoModel]
"""Makes the fields of a model from x and y, or returns why there is no model."""

_NAMED: Final = 5
_EXACT: Final = 2.0**53
_IDENTITY: Final = ("uid", "subtype", "model", "method", "x_start", "x_end")


def add_models(
    profile: Profile,
    of_key: str,
    per_key: str,
    fit: Fit,
    note: Callable[[str], None],
    report: Callable[[str, int, int], None],
) -> None:
    """Add the models that `fit` makes of each uid to those of the profile, with `uid` and both keys.

    Of a uid that several things were measured of, such as the clocks of a command, each gets models of its
    own, with a `subtype`.

    :param of_key: the dependent field; if empty, it is chosen from the profile, and `note` says which.
    :param per_key: the independent field; likewise.
    :param note: shows a line to the user. :param report: shows an activity, steps done and steps in all.
    :raises ProfileError: if the profile lacks the fields, or no uid has points for a model.
    """
    from perun.profile.series import chosen_keys, series

    of, per = chosen_keys(profile, of_key or None, per_key or None)
    if not (of_key and per_key):
        note(f"chosen from the profile: {_chosen(of_key, per_key, of, per)}")
    points = list(series(profile, of, per, apart=True))
    models: list[dict[str, Any]] = []
    without: dict[str, list[str]] = {}
    for number, one in enumerate(points):
        report(f"model of {one.location}", number, len(points))
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
        note(line)
    store(profile, models)


def measured(series: Series) -> dict[str, str]:
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


def _chosen(of_key: str, per_key: str, of: str, per: str) -> str:
    chosen = [] if of_key else [f"--of-key {of!r}"]
    return ", ".join(chosen if per_key else [*chosen, f"--per-key {per!r}"])
