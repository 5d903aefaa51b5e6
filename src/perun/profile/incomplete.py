"""What a profile lacks of the run that it describes, as its header says it.

The key `incomplete` of the region `header` is a list of mappings, one for each reason: `reason`, `amount` and
`unit`. It is missing if the profile is complete. Releases that do not know the key pass it on.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from perun.profile.amounts import readable

KEY = "incomplete"
"""The key of the header."""
UNKNOWN: Final = "for an unknown reason"


class Incomplete(NamedTuple):
    """One reason why a profile lacks a part of its run.

    :param reason: `interrupted`, `timeout`, `killed` or `lost`; of other programs whatever they write.
    :param amount: seconds after which the run was stopped (`interrupted`, `timeout`), the number of the
        signal (`killed`), or how many events were not recorded (`lost`).
    :param unit: `s`, `signal`, or what was lost: `calls`, `events`.
    """

    reason: str
    amount: float = 0
    unit: str = ""

    def __str__(self) -> str:
        match self.reason:
            case "interrupted":
                return f"interrupted after {readable(self.amount, 's')}"
            case "timeout":
                return f"stopped by the time limit of {self.amount:g} s"
            case "killed":
                return f"killed by {_signal(int(self.amount))}"
            case "lost":
                return f"{self.amount:.0f} {self.unit} lost"
        known = f" ({self.amount:g} {self.unit})" if self.amount else ""
        return self.reason + known


def interrupted(seconds: float) -> Incomplete:
    """The user ended the run after so many seconds."""
    return Incomplete("interrupted", round(seconds, 3), "s")


def timed_out(seconds: float) -> Incomplete:
    """The run was stopped by a time limit of so many seconds."""
    return Incomplete("timeout", seconds, "s")


def killed(number: int) -> Incomplete:
    """The signal of this number ended the measured command."""
    return Incomplete("killed", number, "signal")


def lost(number: int, what: str) -> Incomplete:
    """So many `calls` or `events` took place and were not recorded."""
    return Incomplete("lost", number, what)


def mark(profile: Any, reasons: Iterable[Incomplete]) -> None:
    """Add the reasons to the header of the profile; of equal ones each is there once."""
    known = reasons_of(profile)
    new = [one for one in dict.fromkeys(reasons) if one not in known]
    if new:
        header = dict(profile.get("header") or {})
        header[KEY] = [one._asdict() for one in (*known, *new)]
        profile["header"] = header


def reasons_of(profile: Mapping[str, Any]) -> tuple[Incomplete, ...]:
    """Why the profile, of which only the header is looked at, is incomplete; empty if it is complete.

    Whatever a plugin wrote there, something that is not empty says that the profile is incomplete.
    """
    header = profile.get("header")
    written = header.get(KEY) if isinstance(header, Mapping) else None
    if not written:
        return ()
    return tuple(map(_read, written if isinstance(written, (list, tuple)) else [written]))


def text_of(profile: Mapping[str, Any]) -> str:
    """The reasons in words, `interrupted after 1.2 s; 7 calls lost`; empty if the profile is complete."""
    return "; ".join(map(str, reasons_of(profile)))


def _read(written: Any) -> Incomplete:
    if not isinstance(written, Mapping):
        return Incomplete(str(written) or UNKNOWN)
    amount = written.get("amount")
    is_number = isinstance(amount, (int, float)) and not isinstance(amount, bool) and abs(amount) < 1e18
    return Incomplete(
        str(written.get("reason") or UNKNOWN),
        amount if is_number and amount is not None else 0,
        str(written.get("unit") or ""),
    )


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
