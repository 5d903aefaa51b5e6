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
        help=f"A run that takes longer is stopped, and {then}; 0 lets it take as long as it likes.",
    )


def ignore_failure() -> Any:
    """Whether there is a profile also of a command that fails, a `bool`; of one that a signal ends always."""
    return param(
        False,
        short="-i",
        help="Make a profile also where the command fails; one that a signal ends always gets one.",
    )
