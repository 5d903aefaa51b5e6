"""`perun status`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from perun.cli import formats
from perun.cli.session import Session
from perun.cli.table import clean, width
from perun.profile.helpers import ProfileInfo

if TYPE_CHECKING:
    from perun.porcelain.status import Status

PAGED = ("always", "only-status")
BUNDLE = 5
"""Profiles between two lines of the table (manual 14.42)."""
TAGS = ("type", "cmd", "args", "workload", "collector", "time", "source", "postprocessors", "checksum")
COLOURS = {"memory": "red", "mixed": "cyan", "time": "blue"}


@click.command()
@click.option("--short", "-s", is_flag=True, help="Only the most necessary.")
@click.option("--sort-by", "-sb", "sort_by", type=click.Choice(ProfileInfo.valid_attributes), help="Set the order of profiles, and so of tags, from now on.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def status(session: Session, short: bool, sort_by: str | None, as_json: bool) -> None:
    """Show the current version and its profiles.

    Registered profiles have tags such as `0@i`, pending ones such as `0@p`; other commands take these tags.
    """
    from perun.porcelain.status import set_sort_key
    from perun.porcelain.status import status as run

    if sort_by:
        set_sort_key(session.repository, sort_by)
        del session.repository
    found = run(session.repository)
    if as_json:
        session.say(json.dumps(as_data(found), indent=2))
        return
    from perun.cli.pager import paged

    enabled = session.pager and session.repository.config.get("general.paging") in PAGED
    colours = session.coloured
    with paged(enabled, session.environ, session.out) as out:
        session.out, session.coloured = out, colours
        _print(session, found, short)


def _print(session: Session, found: Status, short: bool) -> None:
    head = found.head
    checksum = head.checksum if head else "no version yet"
    major = session.paint(clean(found.major_version), "green")
    session.say(f"On major version {major} (minor version: {checksum[:12] if short else checksum})")
    if head and not short:
        session.say(f"\nAuthor: {clean(head.author)} <{clean(head.email)}> {head.date}")
        session.say("\n" + "\n".join("    " + clean(line) for line in head.desc.strip().splitlines()))
    session.say()
    template = str(session.repository.config.get("format.status"))
    _profiles(session, found.registered, "i", "registered", template)
    session.say()
    _profiles(session, found.pending, "p", "pending", template)
    for name, reason in found.damaged:
        session.warn(f"{name}: {reason}")
    if found.changes:
        session.say()
        session.say(change_counts(session, [record.info.result.value for record in found.changes]))


def _profiles(session: Session, infos: Sequence[ProfileInfo], kind: str, word: str, template: str) -> None:
    if not infos:
        session.say(f"no {word} profiles")
        return
    pieces = formats.parse(template, TAGS, "format.status")
    rows = [[f"{n}@{kind}", *(_cell(info, piece) for piece in pieces)] for n, info in enumerate(infos)]
    title = ["id", *(piece.name if isinstance(piece, formats.Tag) else piece for piece in pieces)]
    widths = [max(map(width, column)) for column in zip(title, *rows)]
    session.say(f"{len(infos)} {word} profile{'s' * (len(infos) > 1)}:")
    rule = session.paint("─" * (sum(widths) + 1), "dim")
    session.say(rule)
    session.say(session.paint(_line(title, widths), "bold"))
    for number, row in enumerate(rows):
        if number % BUNDLE == 0:
            session.say(rule)
        line = _line(row, widths)
        session.say(session.paint(line, COLOURS.get(infos[number].type, "")))
    session.say(rule)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return cells[0].ljust(widths[0]) + " " + "".join(
        cell + " " * (size - width(cell)) for cell, size in zip(cells[1:], widths[1:])
    )


def _cell(info: ProfileInfo, piece: str | formats.Tag) -> str:
    if isinstance(piece, str):
        return piece
    if piece.name == "time":
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.time))
    elif piece.name == "postprocessors":
        text = " ".join(info.postprocessors)
    else:
        text = str(getattr(info, piece.name))
    text = clean(text).replace("\n", " ")
    if piece.name == "type":
        text = f"[{text}]"
    return text[: max(piece.width, len(piece.name))] if piece.width else text


def change_counts(session: Session, results: Sequence[int]) -> str:
    """`2 changes: 1 optimization(+), 1 degradation(-)` out of the values of PerformanceChange."""
    worse = sum(-5 < value < 0 for value in results)
    better = sum(0 < value < 5 for value in results)
    plus = session.paint(f"{better} optimization{'s' * (better != 1)}(+)", "green")
    minus = session.paint(f"{worse} degradation{'s' * (worse != 1)}(-)", "red")
    return f"{len(results)} change{'s' * (len(results) != 1)}: {plus}, {minus}"


def profile_data(info: ProfileInfo, tag: str) -> dict[str, Any]:
    """A profile in the JSON of `status`."""
    return {
        "tag": tag,
        "name": info.source,
        "type": info.type,
        "cmd": info.cmd,
        "args": info.args,
        "workload": info.workload,
        "collector": info.collector,
        "postprocessors": list(info.postprocessors),
        "time": info.time,
        "checksum": info.checksum or None,
    }


def as_data(found: Status) -> dict[str, Any]:
    """The whole status as JSON data, schema `perun.status/1`."""
    from perun.cli.commands.check import change_data

    head = found.head
    return {
        "schema": "perun.status/1",
        "major_version": found.major_version,
        "minor_version": head._asdict() if head else None,
        "registered": [profile_data(info, f"{n}@i") for n, info in enumerate(found.registered)],
        "pending": [profile_data(info, f"{n}@p") for n, info in enumerate(found.pending)],
        "damaged": [{"name": name, "reason": reason} for name, reason in found.damaged],
        "changes": [
            {**change_data(record.info), "baseline": record.baseline, "command": record.command}
            for record in found.changes
        ],
    }
