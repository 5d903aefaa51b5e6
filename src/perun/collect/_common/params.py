"""Parameters that several collectors have."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param


def timeout(*, kept: bool = False) -> Any:
    """Seconds after which a run is stopped, a `float`.

    :param kept: what was recorded until then is kept; otherwise the job fails.
    """
    then = "the job fails"
    if kept:
        then = "what was recorded until then is kept as an incomplete profile"
    return param(
        0.0,
        metavar="<seconds>",
        minimum=0,
        help=f"Stops a run that takes longer, and {then}; 0 means no limit.",
    )


def ignore_failure() -> Any:
    """Whether there is a profile also of a command that fails, a `bool`; of one that a signal ends always."""
    return param(
        False,
        short="-i",
        help="Also make a profile where the command fails; a command killed by a signal always gets one.",
    )
