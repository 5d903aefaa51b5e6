"""Parameters that several collectors have."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param


def timeout() -> Any:
    """Seconds after which a run is killed, a `float`."""
    return param(
        0.0,
        metavar="<seconds>",
        minimum=0,
        help="A run that takes longer is killed and the job fails; 0 lets it take as long as it likes.",
    )


def ignore_failure() -> Any:
    """Whether there is a profile also of a command that fails, a `bool`; of one that a signal ends always."""
    return param(
        False,
        short="-i",
        help="Make a profile also where the command fails; one that a signal ends always gets one.",
    )
