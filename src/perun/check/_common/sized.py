"""What a profile measured over sizes: for each location the points that its growth is seen from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.errors import ProfileError
from perun.measurement.series import EXACT
from perun.models.growth.centres import Centres, centres
from perun.profile.series import series, subtype_of
from perun.profile.uid import flatten, location
from perun.profile.units import units

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SIZES: Final = ("structure-unit-size", "workload")
"""Fields that are sizes, where none is named: the first that has numbers."""


class Sized(NamedTuple):
    """The points of one location. `unit`: of the values; `exact`: whether they are counted, not timed."""

    points: Centres
    unit: str
    exact: bool


def sized(profile: Profile, of_key: str, per_key: str, what: str) -> dict[str, Sized]:
    """The locations that were measured over sizes, and those without any size as ones without points.

    :param per_key: empty for one of :data:`SIZES`. :param what: which profile it is, for the error.
    :raises ProfileError: where there are resources, but not one with a value and a size.
    """
    known = dict(_known(profile))
    if not known:
        return {}
    problem: ProfileError | None = None
    for per in (per_key,) if per_key else SIZES:
        try:
            found = list(series(profile, of_key, per, apart=True))
        except ProfileError as error:
            problem = problem or error
            continue
        nothing = "", False
        return {
            one.location: Sized(centres(one.x, one.y), *known.get(one.location, nothing)) for one in found
        }
    assert problem is not None
    raise ProfileError(
        f"the {what} profile has no sizes: {problem.message}",
        "measure with a workload generator, or by 'perun collect complexity' or 'perun collect trace' with a "
        "size of each function; or name the field with degradation.growth.per_key",
    )


def _known(profile: Profile) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Unit and exactness of each location."""
    unit_of = units(profile)
    for group in profile.groups():
        if not group.size:
            continue
        kind, subtype = group.constants.get("type"), group.constants.get("subtype")
        uid = group.columns.get("uid")
        names = {str(flatten(value)) for value in (uid or [group.constants.get("uid", "")])}
        for name in names:
            place = location(name, subtype_of(name, group))
            yield place, (unit_of(kind, subtype), bool(EXACT & {str(kind), str(subtype)}))
