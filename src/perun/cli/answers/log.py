"""What `perun log` answers, as text and as JSON; without click, so that it comes at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perun.cli import formats
from perun.cli.answers.data import TYPE_COLOURS
from perun.cli.session import Session
from perun.cli.table import clean, one_line
from perun.errors import DamagedStore
from perun.porcelain.log import LogEntry
from perun.porcelain.log import log as run
from perun.wording import plural

PAGED = ("always", "only-log")
TAGS = ("checksum", "stats", "changes", "desc", "date", "author", "email", "parents")
TYPES = tuple((name, letter, TYPE_COLOURS[name]) for name, letter in zip(TYPE_COLOURS, "mxt", strict=True))
"""Types of profiles that `%stats%` counts, with the letter of its header and the colour."""
NO_PROFILES = "--no--profiles--"
DAMAGED = "--damaged--"
FLUSHED = 500
"""Lines written at once; the first ones go out alone, so that a reader sees them at once."""


def answer(
    session: Session,
    minor: str | None = None,
    *,
    short: bool = False,
    as_json: bool = False,
    changes_only: bool = False,
    limit: int | None = None,
) -> int:
    """Print the history down from `minor`, HEAD if None; the exit code, which reports damage."""
    damages: list[str] = []
    entries = run(session.repository, minor, subjects_only=short, changes_only=changes_only, limit=limit)
    counted = _CountedEntries(entries, damages)
    if as_json:
        _json(session, counted)
    else:
        _text(session, counted, short)
    if changes_only and not counted.count and limit != 0:
        session.note("no version has stored changes; find them with: perun check all")
    for damage in damages:
        session.warn(damage)
    if not damages:
        return 0
    session.note("perun fsck lists all damage")
    return DamagedStore.exit_code


class _CountedEntries:
    """The entries as they are printed: how many there were, and what is damaged."""

    def __init__(self, entries: Iterable[LogEntry], damages: list[str]) -> None:
        self.count = 0
        self._entries = entries
        self._damages = damages

    def __iter__(self) -> Iterator[LogEntry]:
        for entry in self._entries:
            self.count += 1
            if entry.damage:
                self._damages.append(entry.damage)
            yield entry


def _text(session: Session, entries: Iterable[LogEntry], short: bool) -> None:
    from perun.cli.pager import paged

    enabled = session.pager and session.repository.config.get("general.paging") in PAGED
    with paged(enabled, session.environ, session.out) as out, session.writing_to(out):
        if short:
            _short(session, entries)
        else:
            for entry in entries:
                _long(session, entry)


def _short(session: Session, entries: Iterable[LogEntry]) -> None:
    line = short_line(session)
    write = session.out.write
    batch: list[str] = []
    size = 1
    for entry in entries:
        batch.append(line(entry))
        if len(batch) >= size:
            write("".join(batch))
            session.out.flush()
            batch.clear()
            size = min(size * 4, FLUSHED)
    write("".join(batch))


def short_line(session: Session) -> Callable[[LogEntry], str]:
    """What makes one line of `log --short`, compiled from `format.shortlog`; the header is written now.

    The pieces are put together once, so that a history of 100,000 versions costs little more than git's own.
    """
    pieces = formats.parse(str(session.repository.config.get("format.shortlog")), TAGS, "format.shortlog")
    title = "".join(_title(piece) for piece in pieces)
    session.say(session.paint(title.rstrip(), "bold"))
    makers = [_maker(session, piece) for piece in pieces]
    nothing, damaged = session.paint(NO_PROFILES, "dim"), session.paint(DAMAGED, "bold red")
    stats = _stats(session)
    changes = _changes(session)

    def line(entry: LogEntry) -> str:
        version, summary, damage = entry
        parts = []
        for maker in makers:
            if maker == "stats":
                parts.append(stats(summary) if summary else damaged if damage else nothing)
            elif maker == "changes":
                parts.append(changes(summary) if summary else "")
            elif isinstance(maker, str):
                parts.append(maker)
            else:
                parts.append(maker(version))
        return "".join(parts).rstrip() + "\n"

    return line


def _title(piece: str | formats.Tag) -> str:
    if isinstance(piece, str):
        return piece
    if piece.name == "stats":
        return "a|m|x|t profiles"
    name = {"checksum": "minor", "desc": "info"}.get(piece.name, piece.name)
    return name.ljust(max(piece.width, len(piece.name))) if piece.width else name


def _maker(session: Session, piece: str | formats.Tag) -> Any:
    if isinstance(piece, str) or piece.name in ("stats", "changes"):
        return piece if isinstance(piece, str) else piece.name
    name = piece.name
    size = max(piece.width, len(name)) if piece.width else None

    def make(version: Any) -> str:
        if name == "desc":
            text = one_line(version.desc.partition("\n")[0])
        elif name == "parents":
            text = " ".join(parent[:size] if size else parent for parent in version.parents)
            return text
        else:
            text = one_line(getattr(version, name))
        return text if size is None else text[:size].ljust(size)

    if name == "checksum":
        colour = session.paint("\0", "yellow").split("\0") if session.coloured else ["", ""]
        return lambda version: colour[0] + version.checksum[:size] + colour[1]
    return make


def _stats(session: Session) -> Callable[[Any], str]:
    def stats(summary: Any) -> str:
        counts = summary.profiles
        total = sum(counts.values())
        if not total:
            return session.paint(NO_PROFILES, "dim")
        numbers = [session.paint(str(total), "bold")]
        numbers += [session.paint(str(counts.get(kind, 0)), colour) for kind, _, colour in TYPES]
        return "|".join(numbers) + " profiles"

    return stats


def _changes(session: Session) -> Callable[[Any], str]:
    def changes(summary: Any) -> str:
        better = session.paint("+" * summary.optimizations, "bold green")
        return better + session.paint("-" * summary.degradations, "bold red")

    return changes


def _long(session: Session, entry: LogEntry) -> None:
    version, summary, damage = entry
    session.say(session.paint(f"Minor Version {version.checksum}", "yellow"))
    if summary and sum(summary.profiles.values()):
        total = sum(summary.profiles.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.profiles.items()))
        session.say(f"{plural(total, 'registered profile')} ({kinds})")
    elif damage:
        session.say(session.paint("damaged: ", "bold red") + one_line(damage))
    else:
        session.say("(no registered profiles)")
    changes = session.repository.store.changes.read(version.checksum) if summary else []
    if changes:
        from perun.cli.answers.changes import change_lines, kinds_of  # most versions have none

        session.say(f"Changes: {kinds_of(session, [record.info for record in changes])}")
        for line in change_lines(session, changes):
            session.say(f"  {line}")
    if version.parents:
        word = "Parent: " if len(version.parents) == 1 else "Parents: "
        session.say(word + " ".join(parent[:10] for parent in version.parents))
    session.say(f"Author: {one_line(version.author)} <{one_line(version.email)}> {version.date}\n")
    for line in version.desc.strip().splitlines():
        session.say("    " + clean(line))
    session.say()


def _json(session: Session, entries: Iterable[LogEntry]) -> None:
    session.out.write('{"schema": "perun.log/1", "versions": [')
    separator = "\n"
    for version, summary, damage in entries:
        data = {
            **version._asdict(),
            "profiles": dict(summary.profiles) if summary else {},
            "optimizations": summary.optimizations if summary else 0,
            "degradations": summary.degradations if summary else 0,
            "damage": damage or None,
        }
        session.out.write(separator + json.dumps(data))
        separator = ",\n"
    session.out.write("\n]}\n")
