"""`perun blame`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from perun.cli.answers.changes import lines_of
from perun.cli.answers.data import SHORT, write_json
from perun.cli.answers.steps import entry_data
from perun.cli.commands.changes import Names, change_of, key_data, step_data, title_of
from perun.cli.options import json_option, minor_option, since_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import DamagedStore
from perun.core.wording import listed, plural
from perun.history.acknowledged import Acknowledgements
from perun.history.changes.data import SeriesKey
from perun.plugin.api import MinorVersion
from perun.profile.amounts import readable
from perun.profile.head import shortest
from perun.repository.repository import Repository, open_repository, top_of_git
from perun.running.explain.blame import Blame, BlamedChange, BlamedFunction, FormerPlace, metric_of
from perun.running.explain.blame import blame as run


def _complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Files of the newest version, as they are named from here."""
    try:
        repo = open_repository(Path.cwd(), dict(os.environ))
        top = _top(repo)
        names = [os.path.relpath(top / one, Path.cwd()) for one in repo.vcs.files("HEAD")]
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


def _top(repo: Repository) -> Path:
    """The folder that the version control names files from."""
    return top_of_git(repo.working_root) or repo.working_root


def write_text(session: Session, found: Blame, acknowledged: Acknowledgements) -> None:
    """Print each function with the versions that changed its cost, the newest first."""
    read = found.history
    names = shortest(key.configuration for key in read.keys)
    for number, one in enumerate(found.functions):
        if number:
            session.say()
        _function(session, names, one, found, acknowledged)
    left = len(read.versions) - len(read.measured)
    if not read.measured:
        session.note(f"note: nothing is registered in {plural(len(read.versions), 'version')}")
        session.note("hint: measure functions with: perun collect instructions, perun collect sample")
    elif left:
        session.note(f"note: {left} of {plural(len(read.versions), 'version')} have no profile")
    for message in read.damaged:
        session.warn(message)


def _function(
    session: Session, names: Names, one: BlamedFunction, found: Blame, acknowledged: Acknowledgements
) -> None:
    lines = ", ".join(f"{own.first}-{own.last}" for own in one.ranges)
    session.say(f"{session.paint(one_line(one.place.name), 'bold')} ({one_line(one.place.path)}:{lines})")
    events: dict[str, tuple[MinorVersion, list[BlamedChange], list[FormerPlace]]] = {}
    for change in one.changes:
        version = change.version.version
        events.setdefault(version.checksum, (version, [], []))[1].append(change)
    for former in one.former:
        events.setdefault(former.version.checksum, (former.version, [], []))[2].append(former)
    for checksum in [own.checksum for own in reversed(found.history.versions) if own.checksum in events]:
        version, changes, formers = events[checksum]
        name = session.paint(version.checksum[:SHORT], "yellow")
        session.say(f"  {name} {version.date[:10]} {one_line(version.subject)} ({one_line(version.author)})")
        for former in formers:
            session.say(f"    {one_line(_former(one, former))}")
        told = [change_of(own.step) for own in changes]
        for info, own in zip(told, changes, strict=True):
            info.location = _what(names, own.step.series, one)
        for line in lines_of(session, told, [one_line(_remark(own, acknowledged)) for own in changes]):
            session.say(f"    {line}")
    if not events and one.series and not one.unknown:
        session.say("  no version changed what it costs")
    newest = found.history.versions[found.history.measured[-1]] if found.history.measured else None
    for key, value, version in one.series:
        when = "now" if version == newest else f"in {version.checksum[:SHORT]}"
        session.say(f"  {when} {one_line(f'{readable(value, key.unit)}  {_what(names, key, one)}')}")
    if one.inlined is not None:
        session.say(f"  inlined: {readable(one.inlined, 'instr')} within the functions that call it")
    for text in one.unknown:
        session.say(f"  not known: {one_line(text)}")


def _what(names: Names, key: SeriesKey, one: BlamedFunction) -> str:
    """`./app 10 (memory): allocated`; with the location where several series are called so."""
    title, metric = title_of(names, key), metric_of(key)
    alike = [own for own, *_ in one.series if (title_of(names, own), metric_of(own)) == (title, metric)]
    text = title if metric == key.configuration.collector else f"{title}: {metric}"
    return f"{text} of {key.location}" if len(alike) > 1 else text


def _former(one: BlamedFunction, former: FormerPlace) -> str:
    if former.place is None:
        return "new"
    parts = []
    later = [own.place for own in one.former[: one.former.index(former)]]
    now = next((own for own in reversed(later) if own is not None), one.place)
    if former.place.name != now.name:
        parts.append(f"renamed from {former.place.name}")
    if former.place.path != now.path:
        parts.append(f"moved from {former.place.path}")
    return ", ".join(parts)


def _remark(own: BlamedChange, acknowledged: Acknowledgements) -> str:
    entry = own.version.entry_of(own.step, acknowledged)
    parts = [one for one in (own.step.remark, entry.text if entry else "") if one]
    others = [version.checksum[:SHORT] for version in own.version.possible[:-1]]
    if others:
        parts.append(f"or {plural(len(others), 'version')} before it, not measured: {listed(others, 4)}")
    if own.step.conditions:
        parts.append(f"or no version at all: the machine changed: {listed(own.step.conditions, 4)}")
    return ", ".join(parts)


def write_data(session: Session, found: Blame, acknowledged: Acknowledgements) -> None:
    """Write it as JSON, schema `perun.blame/1`."""
    write_json(
        session.out,
        {
            "schema": "perun.blame/1",
            "path": found.path,
            "version": found.version.checksum,
            "versions": len(found.history.versions),
            "measured": len(found.history.measured),
            "damaged": found.history.damaged,
            "functions": [_function_data(one, acknowledged) for one in found.functions],
        },
    )


def _function_data(one: BlamedFunction, acknowledged: Acknowledgements) -> dict[str, Any]:
    return {
        "function": one.place.name,
        "lines": [[own.first, own.last] for own in one.ranges],
        "series": [
            {**key_data(key), "value": value, "version": version.checksum}
            for key, value, version in one.series
        ],
        "changes": list(_changes_data(one, acknowledged)),
        "former": [
            {
                **_version_data(own.version),
                "path": own.place.path if own.place else None,
                "function": own.place.name if own.place else None,
            }
            for own in one.former
        ],
        "inlined": one.inlined,
        "unknown": list(one.unknown),
    }


def _version_data(version: MinorVersion) -> dict[str, str]:
    return {
        "version": version.checksum, "date": version.date,
        "author": version.author, "subject": version.subject,
    }  # fmt: skip


def _changes_data(one: BlamedFunction, acknowledged: Acknowledgements) -> Iterator[dict[str, Any]]:
    for own in one.changes:
        found = own.version
        yield {
            **_version_data(found.version),
            "since": found.since.checksum,
            "possible": [other.checksum for other in found.possible],
            **step_data(own.step),
            "acknowledged": entry_data(found.entry_of(own.step, acknowledged)),
        }


@click.command()
@click.argument("file", shell_complete=_complete_file)
@click.argument("functions", nargs=-1, metavar="[FUNCTION]...")
@minor_option("End with this version; HEAD by default.", name="revision")
@since_option()
@click.option("--all", "every", is_flag=True, help="Also what functions cost with all that they call.")
@json_option()
@click.pass_obj
def blame(
    session: Session,
    /,
    file: str,
    functions: tuple[str, ...],
    revision: str | None,
    since: str | None,
    every: bool,
    as_json: bool,
) -> int:
    """Show which versions changed what the functions of FILE cost.

    For each function, or each FUNCTION, the versions along first parents whose profiles say that it executes
    more or fewer instructions, is called more often or less, or uses more or less memory or CPU time than
    before: with the words and intervals of `perun changes`. A function is followed through renames and moves
    to other files. Nothing is measured; what no profile tells is said.

    \b
    perun blame src/parse.c
    perun blame src/parse.c read_value --since v1.0
    perun blame shop/cart.py total --json
    """
    name = Path(os.path.relpath(session.cwd / file, _top(session.repository))).as_posix()
    with session.progress(0, "reading versions") as bar:
        found = run(
            session.repository, name, functions, revision, since, every=every,
            progress=lambda what, done, total: bar.update(what, done, total),
        )  # fmt: skip
    (write_data if as_json else write_text)(session, found, Acknowledgements.load(session.repository))
    return DamagedStore.exit_code if found.history.damaged else 0
