"""One model for each uid of a profile: which fields it is made of, and what is told where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.errors import ProfileError
from perun.profile.models.result import NoModel
from perun.profile.series import Floats, chosen_keys, series

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Fit = Callable[[Floats, Floats], Mapping[str, Any] | NoModel]
"""What makes the fields of a model of x and y, or says why there is none."""

_NAMED: Final = 5


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
    lines = [f"{_names(uids)}: {reason}" for reason, uids in without.items()]
    if not models:
        raise ProfileError(
            f"no model of {of!r} over {per!r} can be made: {'; '.join(lines)}",
            "name other fields with --of-key and --per-key",
        )
    for line in lines:
        note(line)
    profile["models"] = [*profile.get("models", ()), *models]


def _taken(of_key: str, per_key: str, of: str, per: str) -> str:
    taken = [] if of_key else [f"--of-key {of!r}"]
    return ", ".join(taken if per_key else [*taken, f"--per-key {per!r}"])


def _names(uids: Sequence[str]) -> str:
    named = ", ".join(map(repr, uids[:_NAMED]))
    return named if len(uids) <= _NAMED else f"{named} and {len(uids) - _NAMED} more"
