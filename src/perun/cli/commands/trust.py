"""`perun trust`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import NotPerunRepository, PerunError, UsageError
from perun.repository import trust as operations
from perun.repository.repository import Repository, locate, read_config

REASONS = {
    "record": "trusted",
    "environment": f"trusted, as {operations.VARIABLE} says",
    "plugins.trusted": "trusted whatever it holds, as plugins.trusted of the shared configuration says",
}


@click.command()
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--show", is_flag=True, help="Only show what would run, and whether it is trusted.")
@click.option("--revoke", is_flag=True, help="Trust it no longer.")
@json_option()
@click.pass_obj
def trust(session: Session, path: Path | None, show: bool, revoke: bool, as_json: bool) -> None:
    """Trust a repository: allow what it configures to run.

    That is the one at PATH, or here. A `.perun` names programs: commands, builds, generators of workloads, an
    editor, plugins. One that came with a clone runs nothing before you say so. What you make by `perun init`
    and change by `perun config` is trusted already. Perun asks again when what would run has changed.

    In continuous integration set PERUN_TRUST=1, or to a list of folders with colons between them.
    """
    if show and revoke:
        raise UsageError("--show and --revoke contradict each other", "give one of them")
    repository = _opened(session, path)
    root, environ = repository.root, session.environ
    try:
        if revoke:
            operations.revoke(root, environ)
        elif not show:
            operations.grant(root, repository.config, environ)
    except OSError as problem:
        raise PerunError(
            f"cannot record the decision: {problem.strerror}: {problem.filename}",
            f"check your permission to write there, or set {operations.VARIABLE}=1",
        ) from None
    _print(session, repository.trust_state, as_json)


def _opened(session: Session, path: Path | None) -> Repository:
    folder = (session.cwd / (path or ".")).resolve()
    # Of another user too: this command is the way to say that it may be used.
    roots, working_root = locate(folder, session.environ, foreign=True)
    if not roots:
        raise NotPerunRepository(f"no Perun repository at {folder} or above it", "make one with: perun init")
    return Repository(roots[0], working_root, read_config(roots[:1], session.environ), session.environ)


def _print(session: Session, found: operations.TrustState, as_json: bool) -> None:
    if as_json:
        answer = {
            "schema": "perun.trust/1",
            "root": str(found.root),
            "trusted": found.decided,
            "because": found.because or None,
            "changed_since": found.since or None,
            "runs": [one._asdict() for one in found.runs],
        }
        session.say(json.dumps(answer, indent=2))
        return
    state = REASONS.get(found.because, "not trusted")
    if found.since:
        state += f": what would run has changed since you trusted it on {found.since}"
    session.say(f"{one_line(str(found.root / '.perun'))}: {state}")
    for one in found.runs:
        session.say(f"  {one_line(str(one))}")
    if not found.runs:
        session.say("  nothing in it would run")
