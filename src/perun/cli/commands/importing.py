"""`perun import`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Final

import click

from perun.cli.answers.data import write_json
from perun.cli.options import Option, json_option, minor_option, read_params
from perun.cli.plugins import lists_formats
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.plugin.api import Report
from perun.plugin.interchange import ImportFile
from perun.running.interchange import ImportOptions, ImportOutcome, StoredImport, import_files

FORMERLY: Final = {
    ("perf", "record"): "perf",
    ("perf", "script"): "perf",
    ("perf", "stack"): "folded",
    ("elk", "json"): "elk",
}
"""Two words of the older release, and the format that they stand for."""
_SHOWN: Final = 12


@click.command(cls=lists_formats("importer"))
@click.argument("words", nargs=-1, required=True, metavar="[FORMAT] FILE...|-")
@minor_option("Register in this version; HEAD by default.", formerly=["--minor-version"])
@click.option(
    "--as", "command", cls=Option, formerly=["--cmd", "-c"], metavar="NAME", default="",
    help="The command that the profiles are of, in place of what the file says.",
)  # fmt: skip
@click.option("--workload", "-w", metavar="WORKLOAD", default="", help="Its workload.")
@click.option(
    "--history",
    is_flag=True,
    help="Register each profile in the version that the file says, or its name; FILE may be a folder.",
)
@click.option(
    "--params", "-p", metavar="PARAMS", multiple=True, help="Parameters of the importer: key=value."
)
@json_option()
@click.pass_obj
def import_profiles(
    session: Session,
    words: tuple[str, ...],
    minor: str | None,
    command: str,
    workload: str,
    history: bool,
    params: tuple[str, ...],
    as_json: bool,
) -> None:
    """Take over results and profiles of other tools.

    What they measured is registered in a version, sample by sample, so that check, changes, trend and show
    work on it. FORMAT is guessed where it is left out. `-` is standard input.

    \b
    perun import results.json
    perun import pprof cpu.pb.gz --as ./server -m v1.2
    perf script | perun import perf - --as ./prog
    perun import asv results/ --history
    """
    form, names = _split(session, words)
    if history and minor:
        raise click.UsageError("--history and --minor exclude each other")
    with session.progress(0, "importing", enabled=not as_json) as bar, ExitStack() as opened:
        files = [_file(session, name, bar.update, opened) for name in names]
        options = ImportOptions(form, read_params(params), minor, command, workload, history)
        found = import_files(session.repository, files, options)
    if as_json:
        write_json(session.out, _data(found))
        return
    for name, guess in found.guessed.items():
        session.note(f"{one_line(name)} is taken for {guess}")
    _say(session, found)
    for text in found.notes:
        session.note(f"note: {one_line(text)}")


def _split(session: Session, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The format, empty where none is named, and the files."""
    if former := FORMERLY.get((words[0], words[1] if len(words) > 1 else "")):
        form, names = former, words[2:]
    elif words[0].replace("_", "-") in session.registry.names("importer"):
        form, names = words[0], words[1:]
    else:
        form, names = "", words
    if not names:
        raise click.UsageError(f"name the file, or - for standard input: perun import {' '.join(words)} FILE")
    return form, names


def _file(session: Session, name: str, report: Report, opened: ExitStack) -> ImportFile:
    if name == "-":
        return ImportFile("standard input", sys.stdin.buffer, report)
    path = session.cwd / name
    if not path.exists():
        formats = ", ".join(session.registry.names("importer"))
        raise UsageError(f"there is no file {name}", f"formats are: {formats}")
    if not (path.is_file() or path.is_dir()) and not path.is_fifo():
        raise UsageError(f"{name} is neither a file nor a folder", "name what the other tool has written")
    pipe = opened.enter_context(path.open("rb")) if path.is_fifo() else None
    return ImportFile(name, pipe or path, report)


def _say(session: Session, found: ImportOutcome) -> None:
    for one in found.profiles[:_SHOWN]:
        what = " ".join(part for part in _configuration(one)[1:] if part)
        size = plural(_samples(one), "resource")
        session.say(f"registered {session.paint(one_line(one.name), 'bold')} in {one.version[:10]}: "
                    f"{one_line(what)}, {size}")  # fmt: skip
    rest = len(found.profiles) - _SHOWN
    if rest > 0:
        versions = len({one.version for one in found.profiles})
        session.say(f"and {rest} more; {len(found.profiles)} in {plural(versions, 'version')}")


def _configuration(one: StoredImport) -> tuple[str, str, str, str]:
    found = one.profile.configuration
    return found.collector, found.cmd, found.args, found.workload


def _samples(one: StoredImport) -> int:
    return sum(group.size for group in one.profile.groups())


def _data(found: ImportOutcome) -> dict[str, object]:
    rows = []
    for one in found.profiles:
        collector, cmd, args, workload = _configuration(one)
        rows.append({
            "name": one.name, "minor_version": one.version, "format": one.format.replace("_", "-"),
            "file": one.file, "collector": collector, "cmd": cmd, "args": args, "workload": workload,
            "resources": _samples(one), "means": one.means,
        })  # fmt: skip
    return {"schema": "perun.import/1", "profiles": rows, "notes": list(found.notes)}
