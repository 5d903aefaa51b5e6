"""`perun ack`."""

from __future__ import annotations

import click

from perun.cli.answers import acknowledged as answers
from perun.cli.completing import complete_minor
from perun.cli.session import Session
from perun.errors import UsageError
from perun.porcelain import acknowledged as porcelain


@click.command()
@click.argument("commit", required=False, shell_complete=complete_minor)
@click.argument("location", required=False)
@click.option("--until", metavar="DATE", default="", help="The last day that it holds, as 2026-11-22.")
@click.option("--because", metavar="TEXT", default="", help="Why the change is accepted.")
@click.option("--list", "-l", "listing", is_flag=True, help="List what is acknowledged.")
@click.option("--remove", is_flag=True, help="Take back what was acknowledged at LOCATION, or all of COMMIT.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def ack(
    session: Session, commit: str | None, location: str | None, until: str, because: str, listing: bool,
    remove: bool, as_json: bool,
) -> None:
    """Acknowledge a change of performance, which fails nothing then.

    It is shown as acknowledged by all commands, and neither `--fail-on` nor the hooks fail on it.
    COMMIT is the version that changed it, LOCATION what `perun check` and `perun changes` name: a function, a
    command with or without its metric in brackets, or a pattern with `*`, `?` and `[`. Where a comparison
    spans several versions, what is acknowledged of any of them counts.

    \b
    perun ack 4baf672 'compare' --because 'correct for all locales now'
    perun ack HEAD '*' --until 2027-01-31
    perun ack --list
    perun ack --remove 4baf672 'compare'
    """
    repository = session.repository
    if listing or (commit is None and not remove):
        given = {"COMMIT": commit, "--remove": remove, "--until": until, "--because": because}
        wrong = next((name for name, value in given.items() if value), None)
        if wrong:
            what = "--list" if listing else "no COMMIT"
            raise UsageError(f"{what} and {wrong} contradict each other", "see perun ack --help")
        answers.listed(session, porcelain.Acknowledged.load(repository).entries, as_json=as_json)
        return
    if commit is None or (location is None and not remove):
        missing = "COMMIT" if commit is None else "LOCATION"
        hint = f"perun ack {'--remove COMMIT [LOCATION]' if remove else 'COMMIT LOCATION'}; " + (
            "perun changes shows what changed where"
        )
        raise UsageError(f"{missing} is missing", hint)
    if remove:
        if until or because:
            raise UsageError("--remove takes neither --until nor --because", "leave them out")
        answers.removed(session, porcelain.remove(repository, commit, location), as_json=as_json)
        return
    assert location is not None
    entry, known = porcelain.acknowledge(repository, commit, location, until=until, because=because)
    answers.added(session, entry, known=known, as_json=as_json)
