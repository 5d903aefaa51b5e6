"""What `perun status` answers, as text and as JSON; without click, so that it comes at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perun.cli import formats
from perun.cli.answers.data import TYPE_COLOURS, change_data, write_json
from perun.cli.session import Session
from perun.cli.table import Column, clean, one_line, table
from perun.porcelain.tags import identity
from perun.wording import plural

if TYPE_CHECKING:
    from perun.porcelain.status import Status
    from perun.profile.helpers import ProfileInfo
    from perun.store.changes import ChangeRecord

PAGED = ("always", "only-status")
TAGS = ("type", "cmd", "args", "workload", "collector", "time", "source", "postprocessors", "checksum")


def answer(session: Session, *, short: bool = False, as_json: bool = False) -> None:
    """Print the current version, its profiles and changes."""
    from perun.porcelain.status import status

    found = status(session.repository)
    if as_json:
        write_json(session.out, as_data(found))
        return
    from perun.cli.pager import paged

    config = session.repository.config
    pieces = formats.parse(str(config.get("format.status")), TAGS, "format.status")
    enabled = session.pager and config.get("general.paging") in PAGED
    with paged(enabled, session.environ, session.out) as out, session.writing_to(out):
        _print(session, found, pieces, short)


def _print(session: Session, found: Status, pieces: Sequence[str | formats.Tag], short: bool) -> None:
    head = found.head
    minor = "none yet" if head is None else head.checksum[:12] if short else head.checksum
    if head and found.major_version == head.checksum:
        session.say(f"On no major version, HEAD is detached (minor version: {minor})")
    else:
        major = session.paint(one_line(found.major_version), "green")
        session.say(f"On major version {major} (minor version: {minor})")
    if head and not short:
        session.say(f"\nAuthor: {one_line(head.author)} <{one_line(head.email)}> {head.date}")
        session.say("\n" + "\n".join("    " + clean(line) for line in head.desc.strip().splitlines()))
    session.say()
    _profiles(session, found.registered, "i", "registered", pieces, found)
    session.say()
    _profiles(session, found.pending, "p", "pending", pieces, found)
    for machine in sorted(set(found.from_other_machines.values())):
        session.note(
            f"note: collected on another machine, times do not compare with this one's: {one_line(machine)}"
        )
    for name, reason in found.damaged:
        session.warn(reason)
        session.note(f"remove it with: perun rm {one_line(name)}")
    if found.changes:
        from perun.cli.answers.changes import change_lines  # most versions have none

        session.say()
        session.say(change_counts(session, found.changes))
        for line in change_lines(session, found.changes):
            session.say(f"  {line}")


def _profiles(
    session: Session,
    infos: Sequence[ProfileInfo],
    kind: str,
    word: str,
    pieces: Sequence[str | formats.Tag],
    found: Status,
) -> None:
    if not infos:
        session.say(f"no {word} profiles")
        return
    untracked = partial(session.paint, style="red") if kind == "p" else None
    columns = [Column("id", [f"{n}@{kind}" for n in range(len(infos))], paint=untracked)]
    raw = " "
    if session.verbosity:
        columns.append(Column("stable id", [f"{identity(info)}@{kind}" for info in infos], raw))
    for piece in pieces:
        if isinstance(piece, str):
            raw += piece
            continue
        paint = _paints(session).get(piece.name)
        columns.append(Column(piece.name, [_cell(info, piece) for info in infos], raw, paint, shrink=True))
        raw = ""
    machines = ["other machine" if info in found.from_other_machines else "" for info in infos]
    reasons = [one_line(found.fact(info).incomplete) for info in infos]
    for name, marks in (("machine", machines), ("incomplete", reasons)):
        if any(marks):
            paint = partial(session.paint, style="yellow") if name == "incomplete" else None
            columns.append(Column(name, marks, raw + " ", paint))
            raw = ""
    session.say(f"{plural(len(infos), f'{word} profile')}:")
    for line in table(columns, after=raw, most=session.columns):
        session.say(line)


def _paints(session: Session) -> dict[str, Callable[[str], str]]:
    """What gives the cells of a column their colour, by the name of the column."""
    return {
        "cmd": partial(session.paint, style="bold"),
        "type": lambda text: session.paint(text, TYPE_COLOURS.get(text.strip("[]"), "")),
    }


def _cell(info: ProfileInfo, piece: formats.Tag) -> str:
    if piece.name == "time":
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.time))
    elif piece.name == "postprocessors":
        text = " ".join(info.head.postprocessors)
    else:
        text = str(getattr(info, piece.name))
    if piece.width:
        text = text[: max(piece.width, len(piece.name))]
    return f"[{text}]" if piece.name == "type" else text


def change_counts(session: Session, changes: Sequence[ChangeRecord]) -> str:
    """`2 changes: 1 optimization(+), 1 degradation(-)`; only the kinds that there are."""
    from perun.cli.answers.changes import kinds_of

    return f"{plural(len(changes), 'change')}: {kinds_of(session, [record.info for record in changes])}"


def profile_data(info: ProfileInfo, tag: str, found: Status) -> dict[str, Any]:
    """A profile in the JSON of `status`."""
    return {
        "tag": tag,
        "id": f"{identity(info)}@{tag[-1]}",
        "name": info.source,
        **info.head._asdict(),
        "time": info.time,
        "checksum": info.checksum or None,
        "other_machine": found.from_other_machines.get(info),
        "incomplete": found.fact(info).incomplete or None,
    }


def as_data(found: Status) -> dict[str, Any]:
    """The whole status as JSON data, schema `perun.status/1`."""
    head = found.head
    return {
        "schema": "perun.status/1",
        "major_version": found.major_version,
        "minor_version": head._asdict() if head else None,
        "registered": [profile_data(info, f"{n}@i", found) for n, info in enumerate(found.registered)],
        "pending": [profile_data(info, f"{n}@p", found) for n, info in enumerate(found.pending)],
        "damaged": [{"name": name, "reason": reason} for name, reason in found.damaged],
        "changes": [
            {**change_data(record.info), "baseline": record.baseline, "command": record.command}
            for record in found.changes
        ],
    }
