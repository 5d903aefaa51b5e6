"""`perun ack`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from perun.cli.answers.data import SHORT, write_json
from perun.cli.answers.steps import entry_data
from perun.cli.options import json_option, version_argument
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError, VersionControlError
from perun.history import acknowledged as operations
from perun.history.acknowledged import Acknowledgement, this_day

# What `perun ack` answers: the acknowledged changes, as text or JSON.


def listed(session: Session, entries: Sequence[Acknowledgement], *, as_json: bool) -> None:
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


def added(session: Session, entry: Acknowledgement, *, known: bool, as_json: bool) -> None:
    """What was acknowledged. :param known: whether a change is known that it is of."""
    if as_json:
        _write(session, [entry])
    else:
        until = f" until {entry.until}" if entry.until else ""
        session.say(f"acknowledged: {entry.version[:SHORT]} at {one_line(entry.location)}{until}")
    if not known:
        hint = "perun check and perun changes find them"
        session.note(f"note: no change of {entry.version[:SHORT]} is known yet; {hint}")


def removed(session: Session, entries: Sequence[Acknowledgement], *, as_json: bool) -> None:
    """What is acknowledged no more."""
    if as_json:
        _write(session, entries)
        return
    for entry in entries:
        session.say(f"acknowledged no more: {entry.version[:SHORT]} at {one_line(entry.location)}")


def _lines(session: Session, entries: Iterable[Acknowledgement]) -> Iterator[str]:
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


def _write(session: Session, entries: Iterable[Acknowledgement]) -> None:
    today = this_day()
    found: list[dict[str, Any]] = [
        {**(entry_data(entry) or {}), "expired": entry.expired(today)} for entry in entries
    ]
    write_json(session.out, {"schema": "perun.ack/1", "acknowledged": found})


@click.command()
@version_argument("commit", metavar="[VERSION]", before="location")
@click.argument("location", required=False)
@click.option("--until", metavar="DATE", default="", help="The last day that it holds, as 2026-11-22.")
@click.option("--because", metavar="TEXT", default="", help="Why the change is accepted.")
@click.option("--list", "-l", "listing", is_flag=True, help="List what is acknowledged.")
@click.option("--remove", is_flag=True, help="Take back what was acknowledged at LOCATION, or all of COMMIT.")
@json_option()
@click.pass_obj
def ack(
    session: Session,
    commit: str | None,
    location: str | None,
    until: str,
    because: str,
    listing: bool,
    remove: bool,
    as_json: bool,
) -> None:
    """Acknowledge a change of performance, which fails nothing then.

    It is shown as acknowledged by all commands, and neither `--fail-on` nor the hooks fail on it.
    COMMIT is the version that changed it, LOCATION what `perun check` and `perun changes` name: a function, a
    command with or without its metric in brackets, or a pattern with `*`, `?` and `[`. Where a comparison
    spans several versions, what is acknowledged of any of them counts.

    \b
    perun ack 4baf672 'compare' --because 'correct for all locales now'
    perun ack HEAD '*' --until 2027-01-31
    perun ack --list
    perun ack --remove 4baf672 'compare'
    """
    repository = session.repository
    if listing or (commit is None and not remove):
        given = {"COMMIT": commit, "--remove": remove, "--until": until, "--because": because}
        wrong = next((name for name, value in given.items() if value), None)
        if wrong:
            what = "--list" if listing else "no COMMIT"
            raise UsageError(f"{what} and {wrong} contradict each other", "see perun ack --help")
        listed(session, operations.Acknowledgements.load(repository).entries, as_json=as_json)
        return
    if commit is None or (location is None and not remove):
        missing = "COMMIT" if commit is None else "LOCATION"
        hint = f"perun ack {'--remove COMMIT [LOCATION]' if remove else 'COMMIT LOCATION'}; " + (
            "perun changes shows what changed where"
        )
        raise UsageError(f"{missing} is missing", hint)
    if remove:
        if until or because:
            raise UsageError("--remove takes neither --until nor --because", "leave them out")
        removed(session, operations.remove(repository, commit, location), as_json=as_json)
        return
    assert location is not None
    entry, known = operations.acknowledge(repository, commit, location, until=until, because=because)
    added(session, entry, known=known, as_json=as_json)
