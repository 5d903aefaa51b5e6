"""Sessions: stretches of measuring without another in between, in which each version is visited in rounds.

A profile names its session in the header. Where the session visits versions run by run, in turns, the k-th
run of each is its k-th round, and `side` says which of the two versions of a comparison it is of, or is
empty; elsewhere the profile is of the round that is named. What disturbs the machine for a while disturbs all
of a round, so it drops out of their ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from perun.profile.factory import Profile


Side = Literal["base", "head", "noise"]
"""What was measured: the two versions, and once more the base, which tells the noise of the session."""
KEY: Final = "session"
DUET: Final = "duet"
"""Key of what a profile says of its session: the processors of the two sides, where these ran at the same
time."""
SHARES: Final = "shares"
"""Key of what a profile says of its session: the version that it shares the measurement of, and why."""
POOLED_ROUNDS: Final = "pooled-rounds"
"""Key in the header of a pooled profile: the visit that each of the profiles is of."""


class Visit(NamedTuple):
    """One round of a session. :param measured: as of :class:`Session`."""

    session: str
    round: int
    measured: str = ""


class Session(NamedTuple):
    """What a profile says of its session.

    :param side: of a comparison; else "". :param round: the number of the round, from 0.
    :param noise: by location, the interval of the ratio of the base of a comparison to itself.
    :param runs_are_rounds: whether the k-th measurement is of the k-th round.
    :param levels: the error probabilities that the last look at a session spent that ended when it was
        certain: of the confidence that decides, and of the weaker one.
    :param measured: the version that was measured, where several that are the same share that; else "".
    :param reason: why this one shares it; empty of the measured one.
    """

    id: str
    side: str = ""
    round: int = 0
    runs_are_rounds: bool = False
    levels: tuple[float, float] | None = None
    noise: Mapping[str, tuple[float, float]] = {}
    measured: str = ""
    reason: str = ""

    def noise_of(self, location: str) -> tuple[float, float] | None:
        """The interval at the location; of a comparison that did not measure it there, all that may be."""
        return self.noise.get(location, (0.0, math.inf) if self.side and self.levels else None)


def mark(profile: Profile, session: Session) -> None:
    """Note in the header of the profile what session it is of."""
    noted: dict[str, Any] = {"id": session.id}
    if session.side or session.runs_are_rounds:
        noted["side"] = session.side
    if not session.runs_are_rounds:
        noted["round"] = session.round
    if session.levels is not None:
        noted["levels"] = list(session.levels)
    if session.reason:
        noted[SHARES] = {"minor_version": session.measured, "reason": session.reason}
    elif session.measured:
        noted["minor_version"] = session.measured
    profile["header"] = {**profile.get("header", {}), KEY: noted}


def session_of(profile: Mapping[str, Any]) -> Session | None:
    """The session of the profile; None if it was measured alone, as profiles of older releases were."""
    session = _noted(profile)
    found = session.get("id")
    if not isinstance(found, str) or not found:
        return None
    side, number = session.get("side"), session.get("round")
    if not isinstance(side, str) and not isinstance(number, int):
        return None
    return Session(
        found,
        side if isinstance(side, str) else "",
        number if isinstance(number, int) else 0,
        not isinstance(number, int),
        _pair(session.get("levels")),
        _noise(session.get("noise")),
        *_shared(session),
    )


def _shared(noted: Mapping[str, Any]) -> tuple[str, str]:
    """The measured version that several share, and why this one does."""
    shares = noted.get(SHARES)
    found = shares if isinstance(shares, Mapping) else noted
    version, reason = (found.get(name) for name in ("minor_version", "reason"))
    return version if isinstance(version, str) else "", reason if isinstance(reason, str) else ""


def is_uncommitted(profile: Mapping[str, Any]) -> bool:
    """Whether what was measured was the working directory, with changes that its origin does not have."""
    return _noted(profile).get("uncommitted") is True


def is_duet(profile: Mapping[str, Any]) -> bool:
    """Whether another program ran beside this one at the same time: the other side of its comparison."""
    return bool(_noted(profile).get(DUET))


def are_pairs(baseline: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    """Whether the two profiles are the sides of one comparison, whose k-th measurements belong together."""
    old, new = session_of(baseline), session_of(target)
    return (
        old is not None and new is not None and old.id == new.id and bool(old.side and new.side)
        and old.side != new.side
    )  # fmt: skip


def is_shared(profile: Mapping[str, Any]) -> bool:
    """Whether several versions share its measurement, or one of those that were pooled into it."""
    visits: list[Visit | Session | None] = [*pooled(profile), session_of(profile)]
    return any(one is not None and one.measured for one in visits)


def pooled(profile: Mapping[str, Any]) -> list[Visit | None]:
    """The visit of each of the profiles that were pooled into this one; None of one without a session."""
    header = profile.get("header")
    noted = header.get(POOLED_ROUNDS) if isinstance(header, Mapping) else None
    return [None if one is None else Visit(str(one[0]), int(one[1]), *one[2:]) for one in noted or ()]


def _noted(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    header = profile.get("header")
    session = header.get(KEY) if isinstance(header, Mapping) else None
    return session if isinstance(session, Mapping) else {}


def _noise(noted: object) -> dict[str, tuple[float, float]]:
    rows = [one for one in noted if isinstance(one, Mapping)] if isinstance(noted, list) else []
    found = {str(one.get("location")): _pair(one.get("interval")) for one in rows}
    return {location: interval for location, interval in found.items() if interval is not None}


def _pair(numbers: object) -> tuple[float, float] | None:
    """Two numbers above 0 of JSON; None of anything else."""
    if isinstance(numbers, list) and len(numbers) == 2:
        one, other = numbers
        if isinstance(one, (int, float)) and isinstance(other, (int, float)) and one > 0 and other > 0:
            return float(one), float(other)
    return None


# Several profiles of one version and configuration as one: repeated measurements are one sample.
#
# A profile that is judged alone takes the moment when it was measured for the program. Together, the profiles
# of several rounds show how much these moments differ.

POOLED_PROFILES: Final = "pooled"
"""Key in the header of a pooled profile: how many profiles were pooled into it."""
RUN: Final = "pooled-run"
"""Field of the resources of a pooled profile: the number of the profile that they are of, from 0."""
_OF_RESOURCES: Final = ("resources", "resource_type_map", "models")
"""Regions that are not taken over from a single profile."""


def pool(profiles: Iterable[Profile]) -> Profile:
    """The resources of all the profiles, in the order of the profiles; without models, as those are of one.

    All other regions are those of the last profile. The header says how many profiles there were, and names a
    session only where all of them are of the same side of it.

    :param profiles: one at least; they are taken one by one, and none but the first and the last is kept.
    """
    pooled: Profile | None = None
    sessions: list[Session | None] = []
    last: Profile | None = None
    for number, last in enumerate(profiles):
        if pooled is None:
            pooled = type(last)()
        pooled.add_groups(last.groups(), {RUN: number})
        sessions.append(session_of(last))
    if pooled is None or last is None:
        raise ValueError("there is nothing to pool")
    for region, value in last.regions().items():
        if region not in _OF_RESOURCES:
            pooled[region] = value
    rounds = [None if one is None else Visit(one.id, one.round, one.measured) for one in sessions]
    header = {**_header(last), POOLED_PROFILES: len(sessions), POOLED_ROUNDS: rounds}
    if any(one != sessions[0] for one in sessions):
        # What was measured alike has this in common, whatever session it is of.
        noted = header.pop(KEY, {})
        if is_duet(last):
            header[KEY] = {DUET: noted[DUET]}
    pooled["header"] = header
    return pooled


def count_of(profile: Mapping[str, Any]) -> int:
    """The number of profiles that were pooled into this one; 1 for any other profile."""
    number = _header(profile).get(POOLED_PROFILES)
    return number if isinstance(number, int) and number > 0 else 1


def _header(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    header = profile.get("header")
    return header if isinstance(header, Mapping) else {}
