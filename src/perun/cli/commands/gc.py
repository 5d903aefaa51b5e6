"""`perun gc`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from functools import partial

import click

from perun.cli.commands import remote as answers
from perun.cli.commands.remote import remote_option
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.running import cleaning as collecting
from perun.running.cleaning import CleaningResult
from perun.sharing.remotes import open_remote
from perun.store.remote.register import RegisterEntry


@click.command()
@click.option(
    "--keep-days", type=float, metavar="DAYS", help="Keep profiles that were measured in the last DAYS days."
)
@click.option("--keep-tags", is_flag=True, help="Keep profiles of versions that have a tag.")
@click.option(
    "--keep-last", type=int, metavar="N", help="Keep profiles of the last N versions that have any."
)
@click.option(
    "--unknown",
    is_flag=True,
    help="Remove also profiles of which this clone cannot know whether these options keep them.",
)
@click.option("--built", is_flag=True, help="Remove also the built versions that are kept for later runs.")
@remote_option("Clean up this remote, and nothing here; the only one if no name is given.")
@click.option(
    "--grace",
    type=float,
    metavar="DAYS",
    help="Of a remote: how long a piece that nothing needs stays there; 1 day by default.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask on a terminal before something is removed.")
@click.option("--dry-run", "-n", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option()
@click.pass_obj
def gc(
    session: Session,
    keep_days: float | None,
    keep_tags: bool,
    keep_last: int | None,
    unknown: bool,
    built: bool,
    remote_name: str | None,
    grace: float | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Remove profiles that are not kept, and give back room.

    Without --keep-days, --keep-tags and --keep-last every registered profile stays: what is deleted is what
    `perun rm` has left. With them, registered profiles that none of them keeps are removed, for good unless a
    remote has them; --dry-run tells which. On a terminal it tells so first, and asks. Pending profiles stay.

    A clone that is shallow, has one branch or no tags, or whose history was rewritten, does not know all
    versions. Of those, --keep-last and --keep-tags keep all profiles, unless you give --unknown.

    Versions that were built stay in .perun/cache/builds, up to `execute.build_cache`; --built removes them.

    With --remote, the same is done at the remote, for all who use it. Others may push and pull meanwhile.

    \b
    perun gc --keep-days 90 --keep-tags --dry-run
    perun gc --remote team --keep-last 500
    """
    keep = collecting.RetentionPolicy(keep_days, keep_tags, keep_last, unknown=not unknown)
    if grace is not None and (remote_name is None or grace < 0):
        raise UsageError("--grace is about a remote, and not negative", "e.g. --remote team --grace 7")
    if built and remote_name is not None:
        raise UsageError("--built is about this machine, and a remote has none", "leave out one of the two")
    repo = session.repository
    now = time.time()

    def collect(
        dry_run: bool, agreed: Collection[RegisterEntry] | None = None
    ) -> tuple[CleaningResult, str | None]:
        progress = session.progress(0, "deleting", enabled=not (as_json or dry_run))
        if remote_name is None:
            with progress as bar:
                told = partial(bar.update, "")
                done = collecting.collect_here(
                    repo, keep, now=now, dry_run=dry_run, agreed=agreed, with_builds=built, progress=told
                )
            return done, None
        seconds = collecting.DAY if grace is None else grace * collecting.DAY
        with open_remote(repo, remote_name or None) as remote, progress as bar:
            told = partial(bar.update, "")
            done = collecting.collect_remote(
                repo, remote, keep, grace=seconds, now=now, dry_run=dry_run, agreed=agreed, progress=told
            )
            return done, remote.url

    agreed = None
    if not (yes or dry_run) and sys.stdin.isatty() and session.err.isatty():
        agreed = _agreed(session, collect, as_json)
        if agreed is None:
            return
    answers.collected(session, *collect(dry_run, agreed), dry_run=dry_run, as_json=as_json)


def _agreed(
    session: Session, collect: Callable[[bool], tuple[CleaningResult, str | None]], as_json: bool
) -> set[RegisterEntry] | None:
    """The profiles that would be removed, after the user was asked; None if they are to stay."""
    planned, url = collect(True)
    if not (planned.entries or planned.deleted or planned.gone_builds):
        return set()
    if not as_json:
        answers.collected(session, planned, url, dry_run=True, as_json=False)
    parts = [plural(len(planned.entries), "profile")] * bool(planned.entries)
    parts += [plural(len(planned.deleted), "piece" if url else "object")] * bool(planned.deleted)
    parts += [plural(len(planned.gone_builds), "built version")] * bool(planned.gone_builds)
    if click.confirm(f"remove {' and '.join(parts)}{f' from {url}' if url else ''}?", err=True):
        return set(planned.entries)
    session.note("nothing was removed")
    return None
