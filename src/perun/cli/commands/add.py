"""`perun add`."""

from __future__ import annotations

import click

from perun.cli.answers.data import write_json
from perun.cli.completing import complete_pending
from perun.cli.options import json_option, minor_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import ProfileError


@click.command()
@click.argument("profile", nargs=-1, required=True, shell_complete=complete_pending)
@minor_option("Register in this version; HEAD by default.")
@click.option("--to-origin", is_flag=True, help="Register each profile in the version it was collected for.")
@click.option("--keep-profile", is_flag=True, help="Keep the files afterwards.")
@click.option(
    "--force", "-f", is_flag=True, help="Register although the profile was collected for another version."
)
@json_option()
@click.pass_obj
def add(
    session: Session,
    profile: tuple[str, ...],
    minor: str | None,
    to_origin: bool,
    keep_profile: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Register profiles in the index of a version.

    PROFILE is a pending tag (`0@p`), a range of tags (`0@p-5@p`), a stable id (`kxmzpqrstv@p`), the name of a
    pending profile or a part of it, or a path. Where it is none of these, you are asked about the files below
    the project whose names have it as a part.
    """
    from perun.repository.registering import add as run

    if to_origin and minor:
        raise click.UsageError("--to-origin and --minor exclude each other")
    linked = run(
        session.repository,
        profile,
        cwd=session.cwd,
        minor=minor,
        to_origin=to_origin,
        keep_profile=keep_profile,
        force=force,
        confirm=session.confirm,
    )
    if as_json:
        rows = [
            {
                "name": one.name,
                "minor_version": one.minor_version,
                "registered": one.is_new,
                "refused": one.clashes,
            }
            for one in linked
        ]
        write_json(session.out, {"schema": "perun.add/1", "profiles": rows})
    else:
        for one in linked:
            name, version = one_line(one.name), one.minor_version[:10]
            if one.is_new:
                session.say(f"registered {session.paint(name, 'bold')} in {version}")
            elif not one.clashes:
                session.warn(f"{name} was registered in {version} already")
    for one in linked:
        if one.clashes:
            raise ProfileError(
                f"{one.name} is not registered: "
                f"{one.minor_version[:10]} has another profile of that name and time",
                "rename the file",
            )
    if not linked:
        session.note("no profile is in this range; perun status shows the tags")
