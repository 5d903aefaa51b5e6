"""Profiles that were measured side by side: run by run in turns, in the same minutes.

Such profiles name their session in the header, and the k-th measurement of the base was made next to the k-th
of the head. What disturbs the machine for a while disturbs both of a pair, so it drops out of their ratio.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Side = Literal["base", "head", "noise"]
"""What was measured: the two versions, and once more the base, which tells the noise of the session."""
KEY: Final = "session"


def mark(profile: Profile, session_id: str, side: Side) -> None:
    """Note in the header of the profile that it is this side of the session."""
    profile["header"] = {**profile.get("header", {}), KEY: {"id": session_id, "side": side}}


def of(profile: Mapping[str, Any]) -> tuple[str, str] | None:
    """The id of the session of the profile and its side; None if it was measured alone."""
    header = profile.get("header")
    session = header.get(KEY) if isinstance(header, Mapping) else None
    if not isinstance(session, Mapping):
        return None
    found, side = session.get("id"), session.get("side")
    return (found, side) if isinstance(found, str) and found and isinstance(side, str) else None


def is_uncommitted(profile: Mapping[str, Any]) -> bool:
    """Whether what was measured was the working directory, with changes that its origin does not have."""
    header = profile.get("header")
    session = header.get(KEY) if isinstance(header, Mapping) else None
    return isinstance(session, Mapping) and session.get("uncommitted") is True


def are_pairs(baseline: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    """Whether the k-th measurements of the two profiles belong together."""
    old, new = of(baseline), of(target)
    return old is not None and new is not None and old[0] == new[0] and old[1] != new[1]
