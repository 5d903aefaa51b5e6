"""`perun recover`."""

from __future__ import annotations

import click

from perun.cli.session import Session


@click.command()
@click.pass_obj
def recover(session: Session) -> None:
    """Restore the working directory after an interrupted --in-place run.

    Returns to the branch or version that was checked out before the run, and reapplies the uncommitted
    changes. Where that is not possible nothing is lost: the message names the git commands to finish by hand.
    """
    from perun.repository.copies import recover as run

    state = run(session.repository)
    session.say(f"back at {state}" if state else "nothing to recover: no in-place run was interrupted")
