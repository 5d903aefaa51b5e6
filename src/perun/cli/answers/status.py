"""What `perun status` answers, as text and as JSON; without click, so that it comes at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perun.cli.answers import data
from perun.cli.answers.data import TYPE_COLOURS, Placeholder, change_data, parse_format, write_json
from perun.cli.answers.steps import VersionSteps, entry_data
from perun.cli.session import Session
from perun.cli.table import Column, clean, one_line, table
from perun.core.wording import ago, plural
from perun.repository.lookup import identity

if TYPE_CHECKING:
    from perun.history.baseline import BaselineComparison
    from perun.history.status import RepositoryStatus
    from perun.profile.helpers import ProfileInfo
    from perun.store.changes import ChangeRecord

UNCUT = ("value", "age")
"""Tags that are never cut: a part of a number is another number."""
PAGED = ("always", "only-status")
TAGS = (
    *("type", "cmd", "args", "workload", "collector", "time", "source", "postprocessors", "checksum"),
    *("command", "value", "difference", "age"),
)


def answer(
    session: Session, revision: str | None = None, *, short: bool = False, as_json: bool = False
) -> None:
    """Print a version, the current one if None, with its profiles and changes."""
    from perun.history.status import status

    found = status(session.repository, revision)
    if as_json:
        write_json(session.out, as_data(found, VersionSteps(session)))
        return
    from perun.cli.pager import paged

    config = session.repository.config
    pieces = parse_format(str(config.get("format.status")), TAGS, "format.status")
    enabled = session.pager and config.get("general.paging") in PAGED
    with paged(enabled, session.environ, session.out) as out, session.writing_to(out):
        _print(session, found, pieces, short)


def _print(
    session: Session, found: RepositoryStatus, pieces: Sequence[str | Placeholder], short: bool
) -> None:
    head = found.head
    minor = "none yet" if head is None else head.checksum[:12] if short else head.checksum
    if found.revision:
        session.say(f"Minor version {session.paint(minor, 'yellow')}")
    elif head and found.major_version == head.checksum:
        session.say(f"On no major version, HEAD is detached (minor version: {minor})")
    else:
        major = session.paint(one_line(found.major_version), "green")
        session.say(f"On major version {major} (minor version: {minor})")
    if head and not short:
        session.say(f"\nAuthor: {one_line(head.author)} <{one_line(head.email)}> {head.date}")
        session.say("\n" + "\n".join("    " + clean(line) for line in head.desc.strip().splitlines()))
    session.say()
    _profiles(session, found.registered, "i", "registered", pieces, found)
    if not found.revision:
        session.say()
        _profiles(session, found.pending, "p", "pending", pieces, found)
    for machine in sorted(set(found.from_other_machines.values())):
        session.note(
            f"note: collected on another machine, times do not compare with this one's: {one_line(machine)}"
        )
    if any(isinstance(piece, Placeholder) and piece.name == "value" for piece in pieces):
        data.note_unread(session, found.unread)
    if any(isinstance(piece, Placeholder) and piece.name == "difference" for piece in pieces):
        data.note_marks(session, found.judged.values())
    for name, reason in found.damaged:
        session.warn(reason)
        session.note(f"remove it with: perun rm {one_line(name)}")
    if found.bisection:
        session.note(
            f"note: a bisection is not finished: {one_line(found.bisection)}; go on with: "
            "perun bisect --resume  (or forget it: perun bisect --reset)"
        )
    steps = VersionSteps(session)
    if found.changes:
        from perun.cli.answers.changes import change_lines  # most versions have none

        session.say()
        session.say(change_counts(session, found.changes))
        for line in change_lines(session, found.changes, partial(steps.covering, minor_of(found))):
            session.say(f"  {line}")
    if found.registered and (lines := steps.lines(minor_of(found))):
        session.say("\n" + "\n".join(lines))


def minor_of(found: RepositoryStatus) -> str:
    """The checksum of the version; empty before the first commit."""
    return found.head.checksum if found.head else ""


def _profiles(
    session: Session,
    infos: Sequence[ProfileInfo],
    kind: str,
    word: str,
    pieces: Sequence[str | Placeholder],
    found: RepositoryStatus,
) -> None:
    if not infos:
        session.say(f"no {word} profiles")
        return
    untracked = partial(session.paint, style="red") if kind == "p" else None
    names = [f"{found.prefix}{n}@{kind}" for n in range(len(infos))]
    columns = [Column("id", names, paint=untracked)]
    raw = " "
    if session.verbosity:
        columns.append(Column("stable id", [f"{identity(info)}@{kind}" for info in infos], raw))
    for piece in pieces:
        if isinstance(piece, str):
            raw += piece
            continue
        column = _column(session, piece, infos, raw, found)
        if column is not None:
            columns.append(column)
        raw = ""
    if session.verbosity and not any(
        isinstance(piece, Placeholder) and piece.name == "source" for piece in pieces
    ):
        columns.append(Column("source", [info.source for info in infos], raw + " "))
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
    bold = partial(session.paint, style="bold")
    return {
        "cmd": bold,
        "command": bold,
        "type": lambda text: session.paint(text, TYPE_COLOURS.get(text.strip("[]"), "")),
    }


def _column(
    session: Session, tag: Placeholder, infos: Sequence[ProfileInfo], raw: str, found: RepositoryStatus
) -> Column | None:
    """The column of a tag; None for differences where no profile of the list has one."""
    if tag.name != "difference":
        paint = _paints(session).get(tag.name)
        shrink = tag.name not in UNCUT
        cells = [_cell(info, tag, found) for info in infos]
        # The command says more than how often it was measured.
        shorter = [_value(info, found, counted=False) for info in infos] if tag.name == "value" else ()
        return Column(tag.name, cells, raw, paint, shrink=shrink, shorter=shorter)
    differences = [_compared(info, found) for info in infos]
    if not any(differences):
        return None
    wide = session.verbosity > 0
    texts = [data.difference(one, interval=wide) if one else "" for one in differences]
    if wide:
        pairs = zip(texts, differences, strict=True)
        texts = [f"{text} since {one.since[: data.SHORT]}" if one else "" for text, one in pairs]
    styles = [data.style(one) if one else "" for one in differences]
    return Column(tag.name, texts, raw, styled=[partial(session.paint, style=style) for style in styles])


def _compared(info: ProfileInfo, found: RepositoryStatus) -> BaselineComparison | None:
    """The value beside the version before, if there is one."""
    one = found.judged.get(info)
    return None if one is None or one.verdict is None else one


def _value(info: ProfileInfo, found: RepositoryStatus, *, counted: bool = True) -> str:
    value = found.value(info)
    return "" if value is None else data.value(value, counted=counted)


def _cell(info: ProfileInfo, piece: Placeholder, found: RepositoryStatus) -> str:
    name = piece.name
    if name == "time":
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.time))
    elif name == "postprocessors":
        text = " ".join(info.head.postprocessors)
    elif name == "command":
        text = " ".join(filter(None, (info.head.cmd, info.head.args, info.head.workload)))
    elif name == "value":
        return _value(info, found)
    elif name == "age":
        return ago(time.time() - info.time)
    else:
        text = str(getattr(info, name))
    if piece.width:
        text = text[: max(piece.width, len(name))]
    return f"[{text}]" if name == "type" else text


def change_counts(session: Session, changes: Sequence[ChangeRecord]) -> str:
    """`2 changes: 1 optimization(+), 1 degradation(-)`; only the kinds that there are."""
    from perun.cli.answers.changes import kinds_of

    return f"{plural(len(changes), 'change')}: {kinds_of(session, [record.info for record in changes])}"


def _measured(info: ProfileInfo, found: RepositoryStatus) -> dict[str, Any]:
    """The value of a profile and its difference in the JSON of `status`."""
    value = found.value(info)
    return {
        "measured": None if value is None else data.value_data(value),
        "difference": data.difference_data(found.judged[info]) if info in found.judged else None,
    }


def _profiles_data(
    infos: Sequence[ProfileInfo], before: str, kind: str, found: RepositoryStatus
) -> Iterator[dict[str, Any]]:
    """The profiles of a list in the JSON of `status`."""
    shared: dict[int, dict[str, Any]] = {}  # by comparison, which all profiles of a series may have in common
    for number, info in enumerate(infos):
        judged = found.judged.get(info)
        measured = shared.get(id(judged)) if judged else None
        if measured is None:
            measured = shared[id(judged)] = _measured(info, found)
        yield {
            "tag": f"{before}{number}@{kind}",
            "id": f"{identity(info)}@{kind}",
            "name": info.source,
            **info.head._asdict(),
            "time": info.time,
            "checksum": info.checksum or None,
            "other_machine": found.from_other_machines.get(info),
            "incomplete": found.fact(info).incomplete or None,
            **measured,
        }


def as_data(found: RepositoryStatus, steps: VersionSteps) -> dict[str, Any]:
    """The whole status as JSON data, schema `perun.status/2`; its profiles are made as they are read."""
    head = found.head
    return {
        "schema": "perun.status/2",
        "major_version": found.major_version,
        "minor_version": head._asdict() if head else None,
        "registered": _profiles_data(found.registered, found.prefix, "i", found),
        "pending": _profiles_data(found.pending, "", "p", found),
        "damaged": [{"name": name, "reason": reason} for name, reason in found.damaged],
        "changes": [
            {
                **change_data(record.info),
                "baseline": record.baseline,
                "command": record.command,
                "acknowledged": entry_data(steps.covering(minor_of(found), record.info)),
            }
            for record in found.changes
        ],
        "steps": steps.data(minor_of(found)) if found.registered else [],
        "bisection": found.bisection or None,
    }
