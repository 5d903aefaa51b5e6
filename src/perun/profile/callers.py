"""The callers of functions in a profile of calls, by the constant `caller` of its groups."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def callers_by_uid(profile: Profile) -> dict[str, set[str]]:
    """The direct callers of each function that has any."""
    found: dict[str, set[str]] = {}
    for group in profile.groups():
        if caller := str(group.constants.get("caller", "")):
            found.setdefault(str(group.constants.get("uid", "")), set()).add(caller)
    return found


def callers_of(profile: Profile, uids: Collection[str]) -> frozenset[str]:
    """The functions that call one of these directly."""
    if not uids:
        return frozenset()
    callers = callers_by_uid(profile)
    return frozenset(one for uid in uids for one in callers.get(uid, ()))


def all_callers(profile: Profile, uids: Collection[str]) -> frozenset[str]:
    """The functions that call one of these, or a function that does, and so on."""
    callers = callers_by_uid(profile)
    found: set[str] = set()
    open_ = list(uids)
    while open_:
        new = callers.get(open_.pop(), set()) - found
        found |= new
        open_ += new
    return frozenset(found)


def nearest_callers(callers: dict[str, set[str]], uid: str, hidden: Collection[str]) -> frozenset[str]:
    """The functions that call one directly, or through hidden ones only.

    :param callers: of :func:`callers_by_uid`.
    """
    found: set[str] = set()
    seen = {uid}
    open_ = [uid]
    while open_:
        for caller in callers.get(open_.pop(), set()) - seen:
            seen.add(caller)
            if caller in hidden:
                open_.append(caller)
            else:
                found.add(caller)
    return frozenset(found)
