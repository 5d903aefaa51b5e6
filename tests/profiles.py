"""The one builder of profiles: whole ones of a few resources, for whatever reads, compares or shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perun.profile.factory import Profile


def profile_of(
    resources: Iterable[Mapping[str, Any]] = (), kind: str = "time", unit: str | Mapping[str, str] = "s", *,
    cmd: str = "./app", args: str = "", workload: str = "", collector: str = "",
    postprocessors: Iterable[str] = (), **regions: Any,
) -> Profile:  # fmt: skip
    """A profile with these resources, which are of its type where they do not say another one.

    :param unit: of the amounts of that type; or the units as the header has them.
    :param collector: its name; that of the type by default.
    :param regions: more of them, or others than these.
    """
    units = {kind: unit} if isinstance(unit, str) else dict(unit)
    made = Profile({
        "header": {"type": kind, "cmd": cmd, "args": args, "workload": workload, "units": units},
        "collector_info": {"name": collector or kind, "params": {}},
        "postprocessors": [{"name": name, "params": {}} for name in postprocessors],
        **regions,
    })  # fmt: skip
    made.update_resources({"type": kind, **resource} for resource in resources)
    return made


def columns_of(amounts: Mapping[str, Iterable[Any]], **constants: Any) -> list[dict[str, Any]]:
    """A resource of each amount of each uid."""
    return [{"uid": uid, "amount": one, **constants} for uid, several in amounts.items() for one in several]
