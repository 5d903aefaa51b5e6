"""`perun gc`."""

from __future__ import annotations

import time
from functools import partial

import click

from perun.cli.answers import sharing as answers
from perun.cli.commands.remote import remote_option
from perun.cli.session import Session
from perun.errors import UsageError
from perun.porcelain import gc as collecting
from perun.porcelain.sharing.remotes import open_remote


@click.command()
@click.option(
    "--keep-days", type=float, metavar="DAYS", help="Keep profiles that were measured in the last DAYS days."
)
@click.option("--keep-tags", is_flag=True, help="Keep profiles of versions that have a tag.")
@click.option(
    "--keep-last", type=int, metavar="N", help="Keep profiles of the last N versions that have any."
)
@remote_option("Clean up this remote, and nothing here; the only one if no name is given.")
@click.option(
    "--grace",
    type=float,
    metavar="DAYS",
    help="Of a remote: how long a piece that nothing needs stays there; 1 day by default.",
)
@click.option("--dry-run", "-n", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def gc(
    session: Session,
    keep_days: float | None,
    keep_tags: bool,
    keep_last: int | None,
    remote_name: str | None,
    grace: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove profiles that are not kept, and give back room.

    Without --keep-days, --keep-tags and --keep-last every registered profile stays: what is deleted is what
    `perun rm` has left. With them, registered profiles that none of them keeps are removed, for good unless a
    remote has them; --dry-run tells which. Pending profiles stay.

    With --remote, the same is done at the remote, for all who use it. Others may push and pull meanwhile.
    Profiles of versions that are not in this clone stay, but for --keep-days alone, which needs no version.

    \b
    perun gc --keep-days 90 --keep-tags --dry-run
    perun gc --remote team --keep-last 500
    """
    keep = collecting.Keep(keep_days, keep_tags, keep_last)
    if grace is not None and (remote_name is None or grace < 0):
        raise UsageError("--grace is about a remote, and not negative", "e.g. --remote team --grace 7")
    repo = session.repository
    now = time.time()
    progress = session.progress(0, "deleting", enabled=not as_json)
    if remote_name is None:
        with progress as bar:
            told = partial(bar.update, "")
            done = collecting.collect_here(repo, keep, now=now, dry_run=dry_run, progress=told)
        url = None
    else:
        seconds = collecting.DAY if grace is None else grace * collecting.DAY
        with open_remote(repo, remote_name or None) as remote, progress as bar:
            told = partial(bar.update, "")
            done = collecting.collect_remote(
                repo, remote, keep, grace=seconds, now=now, dry_run=dry_run, progress=told
            )
            url = remote.url
    answers.collected(session, done, url, dry_run=dry_run, as_json=as_json)
