"""Models of a profile: one for each uid, which fields they are made of, and what is told where there is none.

What needs numpy is imported inside the functions, so that the postprocessors may import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.errors import ProfileError
from perun.models.result import NoModel

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.series import Floats

Fit = Callable[["Floats", "Floats"], Mapping[str, Any] | NoModel]
"""What makes the fields of a model of x and y, or says why there is none."""

_NAMED: Final = 5
_EXACT: Final = 2.0**53
_IDENTITY: Final = ("uid", "model", "method", "x_start", "x_end")


def add_models(
    profile: Profile,
    of_key: str,
    per_key: str,
    fit: Fit,
    note: Callable[[str], None],
    report: Callable[[str, int, int], None],
) -> None:
    """Add the models that `fit` makes of each uid to those of the profile, with `uid` and both keys.

    :param of_key: the dependent field; empty where it is to be looked up, which is then told by `note`.
    :param per_key: the independent one, likewise.
    :param note: takes a line for the user. :param report: takes what is done, steps done, steps in all.
    :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
    """
    from perun.profile.series import chosen_keys, series

    of, per = chosen_keys(profile, of_key or None, per_key or None)
    if not (of_key and per_key):
        note(f"taken from the profile: {_taken(of_key, per_key, of, per)}")
    points = list(series(profile, of, per))
    models: list[dict[str, Any]] = []
    without: dict[str, list[str]] = {}
    for number, (uid, x, y, left_out) in enumerate(points):
        report(f"model of {uid}", number, len(points))
        model = fit(x, y)
        if isinstance(model, NoModel):
            without.setdefault(f"no model, {model.reason}", []).append(uid)
        else:
            models.append({"uid": uid, **model, "per_key": per, "of_key": of})
        if left_out:
            without.setdefault("resources without a number in both fields are left out", []).append(uid)
    lines = [f"{names(uids)}: {reason}" for reason, uids in without.items()]
    if not models:
        raise ProfileError(
            f"no model of {of!r} over {per!r} can be made: {'; '.join(lines)}",
            "name other fields with --of-key and --per-key",
        )
    for line in lines:
        note(line)
    store(profile, models)


def store(profile: Profile, models: Sequence[dict[str, Any]]) -> None:
    """Add the models to those of the profile, but for those that it has already."""
    import json  # listing the postprocessors shall not wait for it

    old = list(profile.get("models", ()))
    alike: dict[tuple[str, ...], list[Any]] = {}
    for model in old:
        alike.setdefault(_identity(model), []).append(model)
    # As text, in which a missing value (NaN) is equal to itself.
    new = (
        model for model in models if json.dumps(model) not in map(json.dumps, alike.get(_identity(model), ()))
    )
    profile["models"] = [*old, *new]


def names(uids: Sequence[str]) -> str:
    """The first few of the uids, and how many more there are."""
    named = ", ".join(map(repr, uids[:_NAMED]))
    return named if len(uids) <= _NAMED else f"{named} and {len(uids) - _NAMED} more"


def plain(value: float) -> float:
    """The number as it is written to a profile: a whole one as an integer."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _identity(model: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(model.get(key)) for key in _IDENTITY)


def _taken(of_key: str, per_key: str, of: str, per: str) -> str:
    taken = [] if of_key else [f"--of-key {of!r}"]
    return ", ".join(taken if per_key else [*taken, f"--per-key {per!r}"])
