"""`perun pool`."""

from __future__ import annotations

import click

from perun.cli.answers.data import write_json
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import RemoteError
from perun.core.wording import plural
from perun.profile.amounts import percent, readable
from perun.running.pool import check as checking
from perun.running.pool.check import MachineState, PoolCheck
from perun.running.pool.places import DaskPlace, Place, parsed

# What `perun pool check` answers, as text or JSON.


def tell_exposed(session: Session, place: Place) -> None:
    """Say so where others in the network may use the pool."""
    if isinstance(place, DaskPlace) and place.exposed:
        session.note(
            f"note: {place} is not encrypted: who reaches it can run commands on its workers, and "
            "read what is sent; use it only in a network that you trust, or with dask+tls://"
        )


def checked(session: Session, found: PoolCheck, pool: str, *, as_json: bool) -> int:
    """The machines of the pool; the exit code: 14 if one is set aside or cannot measure."""
    fit = [one for one in found.machines if not (one.set_aside or one.problem)]
    code = 0 if fit and len(fit) == len(found.machines) else RemoteError.exit_code
    if as_json:
        machines = [one._asdict() for one in found.machines]
        answer = {"schema": "perun.pool/1", "pool": pool, "machines": machines, "unfit": found.unfit}
        write_json(session.out, answer)
        return code
    width = max((len(one.machine) for one in found.machines), default=0)
    for one in found.machines:
        session.say(f"{one_line(one.machine):{width}}  {_state(session, one)}")
    if found.unfit:
        session.note(
            f"warning: {plural(found.unfit, 'worker')} without the resource bench get no job; start them "
            "with: --nthreads 1 --resources bench=1"
        )
    return code


def _state(session: Session, one: MachineState) -> str:
    workers = plural(one.workers, "worker")
    if one.seconds is None:
        return f"{workers}  {session.paint('cannot measure', 'red')}: {one_line(one.problem)}"
    how = "as fast as it was"
    if one.set_aside:
        word = "slower" if one.drift > 0 else "faster"
        how = session.paint(f"set aside: {percent(abs(one.drift) / 100)[1:]} {word} than it was", "red")
    elif one.drift:
        how = f"{percent(one.drift / 100)} from the first time"
    if one.busy:
        how += f"; {session.paint('busy', 'yellow')}: {one_line(one.busy)}"
    return f"{workers}  {readable(one.seconds, 's')}  {how}  ({one_line(one.machine_class)})"


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
@json_option()
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
    tell_exposed(session, where)
    with session.progress(0, "calibrating") as bar:
        found = checking.check(session.repository, where, reset=reset, report=bar.update)
    ctx.exit(checked(session, found, place, as_json=as_json))
