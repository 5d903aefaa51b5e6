"""`perun lock`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from perun.cli.answers.data import write_json
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.running.guard import lock as locked
from perun.running.guard import locking
from perun.running.guard.contracts import Contract
from perun.running.guard.suggesting import PLACE


@click.command()
@click.argument("commands", nargs=-1)
@click.option("--check", "is_check", is_flag=True, help="Compare with the file, and write nothing.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="Percent by which a count may differ with --check.",
)
@click.option("--for", "sizes", metavar="A..B|A,B,...", default="",
              help="The sizes that a place as {n} of COMMANDS takes: its growth is kept.")  # fmt: skip
@click.option("--merge", "sides", nargs=3, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              metavar="BASE OURS THEIRS", help="Merge locks by rows into OURS, as git asks a driver to.",
)  # fmt: skip
@click.option(
    "--install-merge-driver",
    "install",
    is_flag=True,
    help="Let `git merge` do that: a line in .gitattributes, and the driver in the configuration of git.",
)
@json_option()
@click.pass_context
def lock(
    ctx: click.Context,
    commands: tuple[str, ...],
    is_check: bool,
    tolerance: float,
    sizes: str,
    sides: tuple[Path, Path, Path] | None,
    install: bool,
    as_json: bool,
) -> int:
    """Keep what programs cost in a committed file, and compare.

    The file is perun.lock: instructions, allocations, allocated and peak memory of each command, and its ten
    largest functions, a line a row; of a command with a place for sizes, as './parse {n}', how they grow.
    Without COMMANDS those of perun-guard.yml, of the job matrix, and of the lock. With --check, exits with 1
    where a count grew.
    """
    session: Session = ctx.obj
    if (sides or install) and (commands or is_check or sizes or as_json or (sides and install)):
        raise UsageError("--merge and --install-merge-driver do nothing else", "leave out the rest")
    if sides:
        return _merge(session, *sides)
    repo = session.repository
    if install:
        locking.install_merge_driver(repo)
        session.say(f"git merges {locked.FILE} by rows; commit .gitattributes")
        session.note("in each other clone: perun lock --install-merge-driver")
        return 0
    path = repo.working_root / locked.FILE
    before = locked.read(path)
    wanted, growth = _named(commands, sizes) if commands else locking.wanted(repo, before)
    if (sizes and not (commands and growth)) or not (wanted or growth):
        hint = "name one: perun lock './prog 100', or perun lock './prog {n}' --for 100..1600"
        raise UsageError("--for: no command has a place" if sizes else "there is no command to lock", hint)
    with session.progress(0, "counting") as bar:
        now = locking.counted(repo, wanted, growth, bar.update)
    if not is_check:
        kept = locked.CountLock(now.toolchain, {**(before.rows if commands else {}), **now.rows})
        locking.keep(repo, kept)
        session.say(f"wrote {locked.FILE}: {plural(len(now.rows), 'command')}")
        return 0
    old = before._replace(rows={command: before.rows.get(command, {}) for command in now.rows})
    alike = before.toolchain in ("", now.toolchain)
    rows = list(locked.differing(old, now, tolerance / 100))
    grown = [row for row, keeping in rows if keeping.kept is False]
    if as_json:
        write_json(session.out, {
            "schema": "perun.lock/1",
            "toolchain": {"before": before.toolchain, "now": now.toolchain, "same": alike},
            "rows": [
                {"command": row.command, "name": row.name, "before": row.before, "now": row.now,
                 "kept": keeping.kept}
                for row, keeping in rows
            ],
        })  # fmt: skip
    else:
        command = ""
        for row, keeping in rows:
            if row.command != command:
                command = row.command
                session.say(clean(command))
            session.say(f"  {'+' if keeping.kept is False else '-'} {clean(row.name)}: {keeping.reason}")
        session.say(f"{plural(len(rows), 'row')} of {plural(len(now.rows), 'command')} differ")
    if not alike:
        told = f"the lock is of {before.toolchain}, and this is {now.toolchain}"
        session.warn(f"{told}: counts are not compared, but growth")
    return 1 if grown else 0


def _named(commands: Sequence[str], sizes: str) -> tuple[list[str], list[Contract]]:
    """Those that are counted as they are, and those of which the growth is.

    :raises UsageError: where one has a place, and there are no sizes.
    """
    places = {command: PLACE.search(command) for command in commands}
    if missing := next((one[0] for one in places.values() if one and not sizes), ""):
        raise UsageError(f"which sizes does {missing} take?", "say so, e.g. --for 100..1600")
    growth = [locked.growing(command, sizes, one[1]) for command, one in places.items() if one]
    return [command for command, one in places.items() if one is None], growth


def _merge(session: Session, base: Path, ours: Path, theirs: Path) -> int:
    apart = locking.merge(base, ours, theirs)
    for command, name in apart:
        session.warn(f"{clean(': '.join(filter(None, (command, name))))}: both sides changed it")
    if apart:
        session.note(f"measure it: perun lock; git add {locked.FILE}")
    return 1 if apart else 0
