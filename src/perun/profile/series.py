"""The points of a profile that models are made of: for each uid, one field of its resources over another.

numpy is imported here, so this module is only loaded by what computes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Iterator
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import ProfileError
from perun.profile.format.columns import Column, is_packed
from perun.profile.format.grouping import COLUMNS, ResourceGroup
from perun.profile.uid import flatten, location, shown_subtype

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Floats = NDArray[np.float64]

_NUMBERS: Final = {int, float}

DEPENDENT = ("amount", "exclusive")
"""Fields taken for the dependent variable if none is named, the first that a profile has."""
INDEPENDENT = ("structure-unit-size", "workload", "snapshot")
"""Fields taken for the independent variable if none is named."""
ORDERS = ("order", "call-order", "timestamp")
"""Fields that say when something was measured. Amounts do not depend on that, so one has to be asked for."""


class ResourceSeries(NamedTuple):
    """The points of one uid, in the order of the profile.

    :param uid: the flattened uid.
    :param x: values of the independent field, shape (n,), finite.
    :param y: values of the dependent field, shape (n,), finite.
    :param left_out: resources of the uid if one of the two is missing or not a finite number.
    :param subtype: what was measured of the uid, where these are told apart and the uid does not say it all.
    """

    uid: str
    x: Floats
    y: Floats
    left_out: int
    subtype: str = ""

    @property
    def location(self) -> str:
        """The uid with the subtype, as :attr:`perun.measurement.series.Metric.location`."""
        return location(self.uid, self.subtype)


def series(
    profile: Profile,
    of: str = "amount",
    per: str = "structure-unit-size",
    *,
    separate: bool = False,
    uids: Container[str] | None = None,
) -> Iterator[ResourceSeries]:
    """The points of each uid, uids in the order of their first resource.

    :param of: the dependent field; :param per: the independent one.
    :param separate: whether what was measured of a uid in several ways, such as `real` and `user` time, are
        series of their own.
    :param uids: only these, given as text; nothing else is unpacked of a profile by columns.
    :raises ProfileError: if no resource of the profile has a number in both fields.
    """
    found: dict[tuple[str, str], list[ResourceGroup]] = {}
    for uid, group in _by_uid(profile, uids):
        found.setdefault((uid, subtype_of(uid, group) if separate else ""), []).append(group)
    without: list[ResourceSeries] = []
    has_points = False
    for uid, subtype in list(found):
        xs, ys = _FieldValues(), _FieldValues()
        # What is unpacked of one uid is not kept beside that of the next.
        for group in found.pop((uid, subtype)):
            xs.add(group, per)
            ys.add(group, of)
        points = _points(uid, subtype, xs.numbers(), ys.numbers())
        if not has_points and not points.x.size:
            without.append(points)  # an error may come of it
            continue
        has_points = True
        yield from without
        without.clear()
        yield points
    if not has_points:
        raise ProfileError(f"no resource has numbers in both {of!r} and {per!r}", _known(profile))


def chosen_keys(
    profile: Profile, of: str | None, per: str | None, options: tuple[str, str] = ("--of-key", "--per-key")
) -> tuple[str, str]:
    """The dependent and the independent field, looked up in the profile if they are not named (None).

    :param options: what the user names them with, for the message of the error.
    :raises ProfileError: if the profile has no such field, or none of those that are looked for. Where all
        that an amount could depend on is when it was measured, the message says that.
    """
    fields = numeric_fields(profile)
    return _chosen(of, DEPENDENT, fields, options[0]), _chosen(per, INDEPENDENT, fields, options[1])


def numeric_fields(profile: Profile) -> list[str]:
    """The fields that hold numbers in some resource, columns first."""
    found: set[str] = set()
    for _, constants, columns, size in profile.groups():
        if not size:
            continue
        for name, value in constants.items():
            if name not in found and name not in columns and _number(value) is not None:
                found.add(name)
        for name, column in columns.items():
            if name not in found and any(_number(value) is not None for value in column):
                found.add(name)
    return sorted(found, key=lambda name: (name not in COLUMNS, name))


def _chosen(name: str | None, candidates: tuple[str, ...], fields: list[str], option: str) -> str:
    if name is not None:
        if name not in fields:
            raise ProfileError(f"{option}: no resource has a number in {name!r}", _hint(fields))
        return name
    for candidate in candidates:
        if candidate in fields:
            return candidate
    orders = [name for name in ORDERS if name in fields]
    if candidates is INDEPENDENT and orders:
        raise ProfileError(
            f"there is no size that the amounts could depend on, only the order of measuring: {orders[0]!r}",
            "measure several sizes in one profile, by a generator of the type integer in workloads, or by a "
            f"collector that records sizes; to model the order all the same: {option} {orders[0]}",
        )
    raise ProfileError(f"the profile has none of {', '.join(candidates)}", f"name a field with {option}")


def subtype_of(uid: str, group: ResourceGroup) -> str:
    """What was measured of the uid, where there may be several things and it does not say that itself."""
    kind, subtype = (str(group.constants.get(name, "")) for name in ("type", "subtype"))
    return shown_subtype(uid, kind, subtype)


class _FieldValues:
    """The values of one field, group by group: packed columns as they are, others put together in lists."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def add(self, group: ResourceGroup, field: str) -> None:
        column = group.columns.get(field)
        if column is None:
            column = [group.constants.get(field)] * group.size
        if is_packed(column):
            self._parts.append(column)
            return
        if not self._parts or is_packed(self._parts[-1]):
            self._parts.append([])
        self._parts[-1].extend(column)

    def numbers(self) -> Floats:
        """The values as numbers, shape (n,); NaN if one is no number."""
        packed = [part if is_packed(part) else _parsed(part) for part in self._parts]
        # Packed columns are looked at, not copied, until they are put together.
        return np.concatenate([np.frombuffer(part, part.typecode) for part in packed], dtype=np.float64)


def _by_uid(profile: Profile, uids: Container[str] | None) -> Iterator[tuple[str, ResourceGroup]]:
    """Each group with the uid of its resources, if that is wanted; a group of several uids is taken apart."""
    names: dict[int, str] = {}  # of nested uids, which many groups share
    for group in profile.groups(uids):
        if not group.size:
            continue
        if "uid" in group.columns:
            yield from (one for one in _split_by_uid(group) if uids is None or one[0] in uids)
            continue
        uid = group.constants.get("uid", "")
        if type(uid) is not str:
            if id(uid) not in names:
                names[id(uid)] = str(flatten(uid))
            uid = names[id(uid)]
        if uids is None or uid in uids:
            yield uid, group


def _split_by_uid(group: ResourceGroup) -> Iterator[tuple[str, ResourceGroup]]:
    uids = [str(flatten(value)) for value in group.columns["uid"]]
    for uid in dict.fromkeys(uids):
        own = [one == uid for one in uids]
        columns: dict[str, Column] = {
            name: list(compress(column, own)) for name, column in group.columns.items()
        }
        yield uid, group._replace(columns=columns, size=sum(own))


def _points(uid: str, subtype: str, x: Floats, y: Floats) -> ResourceSeries:
    good = np.isfinite(x)
    good &= np.isfinite(y)
    left_out = len(good) - int(np.count_nonzero(good))
    if left_out:
        x, y = x[good], y[good]
    return ResourceSeries(uid, x, y, left_out, subtype)


def _parsed(values: list[Any]) -> array[float]:
    if set(map(type, values)) <= _NUMBERS:
        try:
            return array("d", values)
        except OverflowError:
            pass  # one of the values is too large for a float
    return array("d", map(_float, values))


def _float(value: object) -> float:
    number = _number(value)
    return math.nan if number is None else number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _known(profile: Profile) -> str:
    return _hint(numeric_fields(profile))


def _hint(fields: list[str]) -> str:
    return "fields with numbers: " + ", ".join(fields) if fields else "no field holds numbers"
