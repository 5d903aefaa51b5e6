"""The regions that the profiles of all collectors begin with (manual 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.process.command import Run


def new_profile(
    run: Run, kind: str, units: Mapping[str, str], collector: str, params: Mapping[str, Any]
) -> Profile:
    """A profile of a run without resources.

    :param kind: the type of the profile, e.g. `time`. :param units: type of resources to its unit.
    :param collector: name of the collector, and :param params: its parameters.
    """
    return Profile(
        {
            "header": {
                "type": kind,
                "units": dict(units),
                "cmd": run.cmd,
                "args": run.args,
                "workload": run.workload,
            },
            "collector_info": {"name": collector, "params": dict(params)},
            "postprocessors": [],
        }
    )
