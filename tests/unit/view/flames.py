"""Profiles that flame graphs are made of, and what is shown of them."""

import io
from typing import Any

from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.profile.stacks import stacks_of
from perun.view.flamegraph import PLUGIN, FlameParams


def timed(*calls: tuple[str, float, float], unit: str = "us", **constants: Any) -> Profile:
    """A profile of calls: name, beginning and duration."""
    profile = Profile(header={"type": "mixed", "cmd": "./app", "units": {"mixed(time delta)": unit}})
    profile.update_resources(
        {"type": "mixed", "uid": uid, "timestamp": start, "amount": amount, **constants}
        for uid, start, amount in calls
    )
    return profile


def named(profile: Profile, of: str = "amount") -> dict[str, float]:
    """Stacks as text, and their amounts."""
    found = stacks_of(profile, of).amounts
    return {";".join(frame.name for frame in stack): amount for stack, amount in found.items()}


def shown(profile: Profile, ctx: ViewContext | None = None, **options: Any) -> str:
    """What the view writes."""
    out = io.StringIO()
    PLUGIN().render(profile, FlameParams(**options), out, ctx or ViewContext())
    return out.getvalue()
