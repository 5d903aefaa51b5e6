"""Parameters that several collectors have."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param


def timeout(*, kept: bool = False) -> Any:
    """Seconds after which a run is stopped, a `float`.

    :param kept: what was recorded until then is kept; otherwise the job fails.
    """
    then = "fail the job"
    if kept:
        then = "keep what was recorded until then as an incomplete profile"
    return param(
        0.0,
        metavar="<seconds>",
        minimum=0,
        help=f"Stop the command after so many seconds, and {then}; 0 means no limit.",
    )


def ignore_failure() -> Any:
    """Whether a command that fails has a profile, a `bool`; one that a signal kills always has one."""
    return param(
        False,
        short="-i",
        help="Also make a profile if the command fails; a command killed by a signal always gets one.",
    )
