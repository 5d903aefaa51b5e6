"""`perun lock`."""

from __future__ import annotations

import click

from perun.cli.answers.data import write_json
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.running.guard import lock as locked
from perun.running.guard import locking


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
@json_option()
@click.pass_context
def lock(
    ctx: click.Context, commands: tuple[str, ...], is_check: bool, tolerance: float, as_json: bool
) -> int:
    """Keep what programs cost in a committed file, and compare.

    The file is perun.lock: instructions, allocations, allocated and peak memory of each command, and its ten
    largest functions, a line a row.
    Without COMMANDS those of perun-guard.yml, of the job matrix, and of the lock. With --check, exits with 1
    where a count grew.
    """
    session: Session = ctx.obj
    repo = session.repository
    path = repo.working_root / locked.FILE
    before = locked.read(path)
    wanted = list(commands) or locking.commands_of(repo, before)
    if not wanted:
        raise UsageError("there is no command to lock", "name one: perun lock './prog 100'")
    with session.progress(0, "counting") as bar:
        now = locking.counted(repo, wanted, bar.update)
    if not is_check:
        kept = locked.CountLock(now.toolchain, {**(before.rows if commands else {}), **now.rows})
        locking.keep(repo, kept)
        session.say(f"wrote {locked.FILE}: {plural(len(now.rows), 'command')}")
        return 0
    old = before._replace(rows={command: before.rows.get(command, {}) for command in wanted})
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
        session.say(f"{plural(len(rows), 'row')} of {plural(len(wanted), 'command')} differ")
    if not alike:
        session.warn(f"the lock is of {before.toolchain}, and this is {now.toolchain}: no count is judged")
        return 0
    return 1 if grown else 0
