"""What collectors do after a run: refuse one that failed, and mark an incomplete profile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from perun.plugin.api import Interrupted
from perun.process.execution import INTERRUPTED, TIMEOUT, Sample
from perun.process.outcome import failed, outcome
from perun.profile import incomplete
from perun.profile.incomplete import Incomplete

if TYPE_CHECKING:
    from perun.process.command import Run
    from perun.profile.factory import Profile

IGNORE_FAILURE: Final = "correct the command, or measure it anyway with --ignore-failure (-i)"
"""The hint for a command that fails."""
CONFINED: Final = 4095
"""The number of an error in files of recorders: RECORD_CONFINED of `native/confining.h`."""
_CONFINED_ITSELF: Final = (
    " and forbids itself system calls (seccomp), so that what the recorder does within it may be the reason"
)
_INSTEAD: Final = (
    "; measure it without its seccomp, or by what does nothing within it: perun collect time, or trace with "
    "--engine ebpf"
)


def require_recorded(
    run: Run, sample: Sample, errors: Sequence[str], *, ignore_failure: bool, hint: str = IGNORE_FAILURE
) -> None:
    """Refuse a run of a command that failed.

    A run that was stopped or killed by a signal is not refused: what it did until then may be what the user
    looks for.

    :param errors: the last lines of the standard error of the command.
    :raises JobFailed: where the command ended by itself and failed, unless `ignore_failure` is true.
    """
    if sample.early or not sample.status or os.WIFSIGNALED(sample.status) or ignore_failure:
        return
    raise failed(run, sample.status, errors, hint)


def shortfalls(sample: Sample, timeout: float, lost: int = 0, what: str = "calls") -> list[Incomplete]:
    """What a recording of the run lacks.

    :param timeout: the time limit of the run in seconds. :param lost: number of events that were lost.
    :param what: what these events are, in the plural.
    """
    found = []
    if sample.early == INTERRUPTED:
        found.append(incomplete.interrupted(sample.real))
    elif sample.early == TIMEOUT:
        found.append(incomplete.timed_out(timeout))
    elif os.WIFSIGNALED(sample.status):
        found.append(incomplete.killed(os.WTERMSIG(sample.status)))
    if lost:
        found.append(incomplete.lost(lost, what))
    return found


def stopped_because(error: int) -> str:
    """Why a recorder stopped recording, for the number of an error in its files."""
    if error == CONFINED:
        return "the program took system calls or the clock from itself: seccomp or PR_SET_TSC"
    return os.strerror(error)


def ended(sample: Sample) -> str:
    """How the run ended, in words; also that a recorder may be why a program that confines itself did so."""
    return outcome(sample.status) + _CONFINED_ITSELF * sample.confined


def instead(sample: Sample) -> str:
    """How to measure a program that a recorder within it may have ended, to go on from :func:`ended`."""
    return _INSTEAD * sample.confined


def early_end(sample: Sample, timeout: float) -> str:
    """How the run ended early, in words; empty if it ended normally."""
    if os.WIFSIGNALED(sample.status) and not sample.early:
        return ended(sample)
    return "".join(f"was {reason}" for reason in shortfalls(sample, timeout))


def completed(profile: Profile, sample: Sample, lacks: Iterable[Incomplete]) -> Profile:
    """The profile, marked as incomplete where it lacks a part of the run.

    :raises Interrupted: where the user interrupted the run; it has the profile.
    """
    incomplete.mark(profile, lacks)
    if sample.interruption is not None:
        raise Interrupted(profile) from sample.interruption
    return profile
