"""`perun rm`."""

from __future__ import annotations

import click

from perun.cli.answers.data import write_json
from perun.cli.completing import complete_any
from perun.cli.options import json_option, minor_option
from perun.cli.session import Session
from perun.cli.table import one_line


@click.command()
@click.argument("profile", nargs=-1, required=True, shell_complete=complete_any)
@minor_option("Unlink from this version; HEAD by default.")
@json_option()
@click.pass_obj
def rm(session: Session, profile: tuple[str, ...], minor: str | None, as_json: bool) -> None:
    """Unlink registered profiles, delete pending ones.

    PROFILE is a tag (`0@i` registered, `0@p` pending), a range of tags (`0@i-2@i`), a stable id as `perun -v
    status` shows (`kxmzpqrstv@i`) or a whole name. `HEAD~1:0@i` and `v1.2:app.perf` are in that version.
    Typed again, a tag is the next profile, an id none. What an unlinked profile holds is kept in
    `.perun/objects`.
    """
    from perun.repository.registering import rm as run

    removed = run(session.repository, profile, minor=minor)
    if as_json:
        rows = [{"name": one.name, "minor_version": one.minor_version} for one in removed]
        write_json(session.out, {"schema": "perun.rm/1", "profiles": rows})
    else:
        for one in removed:
            where = "the pending profiles" if one.minor_version is None else one.minor_version[:10]
            session.say(f"removed {session.paint(one_line(one.name), 'bold')} from {where}")
    if not removed:
        session.note("no profile is in this range; perun status shows the tags")
