"""`perun pool`."""

from __future__ import annotations

import click

from perun.cli.answers import pool as answers
from perun.cli.session import Session
from perun.porcelain.pool import check as checking
from perun.porcelain.pool.places import parsed


@click.group()
def pool() -> None:
    """Show the machines of a pool, and how fast they are.

    `perun run matrix --on POOL` measures on them.
    """


@pool.command()
@click.argument("place", metavar="POOL")
@click.option(
    "--reset", is_flag=True, help="Take what the machines do now for what they are compared with later."
)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_context
def check(ctx: click.Context, place: str, reset: bool, as_json: bool) -> None:
    """Calibrate the machines of POOL, and show which is slower or faster than it was.

    A fixed piece of work is timed on each machine while nothing else is measured there, and compared with
    the first time. A machine that differs by more than `pool.drift` percent is set aside by `perun run matrix
    --on`; the exit code is 14 then.

    \b
    perun pool check dask://farm:8786
    perun pool check ssh:hosts.yml --json
    """
    session: Session = ctx.obj
    where = parsed(place)
    answers.tell_exposed(session, where)
    with session.progress(0, "calibrating") as bar:
        found = checking.check(session.repository, where, reset=reset, report=bar.update)
    ctx.exit(answers.checked(session, found, place, as_json=as_json))
