"""What `perun ack` answers: the acknowledged changes, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from perun.cli.answers.data import write_json
from perun.cli.answers.measured import SHORT
from perun.cli.answers.steps import entry_data
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.errors import VersionControlError
from perun.porcelain.acknowledged import Entry, this_day


def listed(session: Session, entries: Sequence[Entry], *, as_json: bool) -> None:
    """The acknowledged changes, in the order in which they were; what is over is said to be."""
    if as_json:
        _write(session, entries)
        return
    for line in _lines(session, entries):
        session.say(line)
    if not entries:
        session.say("nothing is acknowledged")
    over = sum(entry.expired(this_day()) for entry in entries)
    if over:
        what = "1 entry has" if over == 1 else f"{over} entries have"
        session.note(f"{what} expired; remove what is over with: perun ack --remove COMMIT LOCATION")


def added(session: Session, entry: Entry, *, known: bool, as_json: bool) -> None:
    """What was acknowledged. :param known: whether a change is known that it is of."""
    if as_json:
        _write(session, [entry])
    else:
        until = f" until {entry.until}" if entry.until else ""
        session.say(f"acknowledged: {entry.version[:SHORT]} at {one_line(entry.location)}{until}")
    if not known:
        hint = "perun check and perun changes find them"
        session.note(f"note: no change of {entry.version[:SHORT]} is known yet; {hint}")


def removed(session: Session, entries: Sequence[Entry], *, as_json: bool) -> None:
    """What is acknowledged no more."""
    if as_json:
        _write(session, entries)
        return
    for entry in entries:
        session.say(f"acknowledged no more: {entry.version[:SHORT]} at {one_line(entry.location)}")


def _lines(session: Session, entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        try:
            subject = session.repository.vcs.get_minor_version_info(entry.version).subject
        except VersionControlError:
            subject = "(there is no such version any more)"
        name = session.paint(entry.version[:SHORT], "yellow")
        yield f"{name} {one_line(subject)}"
        place = session.paint(one_line(entry.location), "bold")
        until = ""
        if entry.until:
            over = entry.expired(this_day())
            text = f"expired on {entry.until}" if over else f"until {entry.until}"
            until = "  " + (session.paint(text, "red") if over else text)
        yield f"  {place}{until}{'  ' if entry.because else ''}{one_line(entry.because)}"


def _write(session: Session, entries: Iterable[Entry]) -> None:
    today = this_day()
    found: list[dict[str, Any]] = [
        {**(entry_data(entry) or {}), "expired": entry.expired(today)} for entry in entries
    ]
    write_json(session.out, {"schema": "perun.ack/1", "acknowledged": found})
