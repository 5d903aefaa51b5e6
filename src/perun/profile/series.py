"""The points of a profile that models are made of: for each uid, one field of its resources over another.

numpy is imported here, so this module is only loaded by what computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.errors import ProfileError
from perun.profile.grouping import COLUMNS, flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Floats = NDArray[np.float64]

DEPENDENT = ("amount", "exclusive")
"""Fields taken for the dependent variable where none is named, the first that a profile has."""
INDEPENDENT = ("structure-unit-size", "workload", "snapshot", "order", "call-order", "timestamp")
"""Fields taken for the independent variable where none is named."""


class Series(NamedTuple):
    """The points of one uid, in the order of the profile.

    :param uid: the flattened uid.
    :param x: values of the independent field, shape (n,), finite.
    :param y: values of the dependent field, shape (n,), finite.
    :param left_out: resources of the uid where one of the two is missing or not a finite number.
    """

    uid: str
    x: Floats
    y: Floats
    left_out: int


def series(profile: Profile, of: str = "amount", per: str = "structure-unit-size") -> Iterator[Series]:
    """The points of each uid, uids in the order of their first resource.

    :param of: the dependent field; :param per: the independent one.
    :raises ProfileError: where no resource of the profile has a number in both fields.
    """
    points: dict[str, tuple[list[float], list[float]]] = {}
    missing: dict[str, int] = {}
    for _, resource in profile.all_resources():
        uid = str(flatten(resource.get("uid", "")))
        x, y = _number(resource.get(per)), _number(resource.get(of))
        xs, ys = points.setdefault(uid, ([], []))
        if x is None or y is None:
            missing[uid] = missing.get(uid, 0) + 1
            continue
        xs.append(x)
        ys.append(y)
    if not any(xs for xs, _ in points.values()):
        raise ProfileError(f"no resource has numbers in both {of!r} and {per!r}", _known(profile))
    for uid, (xs, ys) in points.items():
        yield Series(uid, np.array(xs, float), np.array(ys, float), missing.get(uid, 0))


def chosen_keys(profile: Profile, of: str | None, per: str | None) -> tuple[str, str]:
    """The dependent and the independent field, looked up in the profile where they are not named (None).

    :raises ProfileError: where the profile has no such field, or none of those that are looked for.
    """
    fields = numeric_fields(profile)
    return _chosen(of, DEPENDENT, fields, "--of-key"), _chosen(per, INDEPENDENT, fields, "--depending-on")


def numeric_fields(profile: Profile) -> list[str]:
    """The fields that hold numbers in some resource, columns first."""
    found: dict[str, bool] = {}
    for _, resource in profile.all_resources():
        for name, value in resource.items():
            if _number(value) is not None:
                found[name] = True
    return sorted(found, key=lambda name: (name not in COLUMNS, name))


def _chosen(name: str | None, candidates: tuple[str, ...], fields: list[str], option: str) -> str:
    if name is not None:
        if name not in fields:
            raise ProfileError(f"{option}: no resource has a number in {name!r}", _hint(fields))
        return name
    for candidate in candidates:
        if candidate in fields:
            return candidate
    raise ProfileError(f"the profile has none of {', '.join(candidates)}", f"name a field with {option}")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if np.isfinite(number) else None


def _known(profile: Profile) -> str:
    return _hint(numeric_fields(profile))


def _hint(fields: list[str]) -> str:
    return "fields with numbers: " + ", ".join(fields) if fields else "no field holds numbers"
