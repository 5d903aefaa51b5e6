"""`perun remote`, `perun push`, `perun pull`, `perun fetch` and `perun clone-profiles`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from perun.cli.answers.data import write_json
from perun.cli.options import json_option, since_option, version_argument
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.wording import plural
from perun.profile.amounts import readable
from perun.repository.repository import open_repository
from perun.running.cleaning import CleaningResult
from perun.running.run.builds import CachedBuild
from perun.sharing import remotes as cloning
from perun.sharing import remotes as remotes_module
from perun.sharing import transfer
from perun.sharing import transfer as listing
from perun.sharing.remotes import NamedRemote, versions_of
from perun.sharing.transfer import HeldVersion, TransferResult

# What `perun remote`, `push`, `pull`, `fetch` and `gc` answer, as text or JSON.

_SHOWN = 10
"""Profiles that were refused which are named."""


def remotes(session: Session, found: Sequence[NamedRemote], *, as_json: bool) -> None:
    """The remotes of the configuration."""
    if as_json:
        rows = [{"name": one.name, "url": one.shown} for one in found]
        write_json(session.out, {"schema": "perun.remotes/1", "remotes": rows})
        return
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        session.say(f"{one.name:{width}}  {one_line(one.shown)}")
    if not found:
        session.say("there is no remote; add one with: perun remote add NAME URL")


def transferred(
    session: Session,
    done: TransferResult,
    url: str,
    verb: Literal["push", "pull"],
    *,
    some: bool = False,
    dry_run: bool,
    as_json: bool,
) -> int:
    """What a transfer did, or would do; the exit code: 6 if profiles were refused.

    :param some: it was about some versions only.
    """
    code = 6 if done.refused else 0
    if as_json:
        write_json(
            session.out,
            {
                "schema": f"perun.{verb}/1",
                "remote": url,
                "dry_run": dry_run,
                "profiles": [entry._asdict() for entry in done.entries],
                "known": done.known,
                "removed": [entry._asdict() for entry in done.removed],
                "refused": done.refused,
                "bytes": done.sent,
                "seconds": round(done.seconds, 3),
            },
        )
        return code
    word = {"push": "sent", "pull": "fetched"}[verb]
    sign = {"push": "to", "pull": "from"}[verb]
    count = plural(len(done.entries), "profile")
    if dry_run:
        session.say(f"would have {word} {count} {sign} {url}")
    elif done.entries:
        rate = readable(done.sent / max(done.seconds, 1e-3), "B")
        session.say(f"{word} {count} {sign} {url}: {readable(done.sent, 'B')}, {rate}/s")
    elif not (done.refused or done.known or done.removed):
        of = " of these versions" if some else ""
        session.say(
            f"nothing to push: no profile{of} is registered; register some with: perun add"
            if verb == "push"
            else f"nothing to pull: {url} has no profile{of}"
        )
    elif not done.refused:
        where = "there" if verb == "push" else "here"
        session.say(f"nothing to {verb}: {plural(done.known, 'profile')} of {url} {where} already")
    if done.removed:
        what = plural(len(done.removed), "profile")
        session.note(f"note: {what} that were removed from {url} are not sent; perun push --again sends them")
    for why in done.refused[:_SHOWN]:
        session.note(f"warning: {one_line(why)}")
    if len(done.refused) > _SHOWN:
        session.note(f"warning: and {len(done.refused) - _SHOWN} more; see perun fsck")
    return code


def held(session: Session, found: Sequence[HeldVersion], url: str, *, as_json: bool) -> None:
    """Which profiles of which versions a remote has."""
    if as_json:
        write_json(
            session.out,
            {"schema": "perun.fetch/1", "remote": url, "versions": [_held(one) for one in found]},
        )
        return
    for one in found:
        session.say(_held_line(session, one))
    there = sum(len(one.there) for one in found)
    versions = plural(sum(bool(one.there) for one in found), "version")
    session.say(f"{url} has {plural(there, 'profile')} of {versions}" if there else f"{url} has no profile")
    if not_here := sum(one.not_here for one in found):
        session.say(f"{plural(not_here, 'profile')} of them not here: perun pull fetches them")
    if not_there := sum(one.not_there for one in found):
        session.say(f"{plural(not_there, 'profile')} of here not there: perun push sends them")
    if any(one.info is None for one in found):
        session.note("note: versions without a date are not in this clone; git fetch may get them")


def _held(one: HeldVersion) -> dict[str, Any]:
    return {
        "version": one.version,
        "date": one.info and one.info.date,
        "subject": one.info and one.info.subject,
        "profiles": [entry._asdict() for entry in one.there],
        "not_here": one.not_here,
        "not_there": one.not_there,
    }


def _held_line(session: Session, one: HeldVersion) -> str:
    date = one.info.date[:10] if one.info else " " * 10
    parts = [plural(len(one.there), "profile")]
    if one.not_here:
        parts.append(f"{one.not_here} not here")
    if one.not_there:
        parts.append(f"{one.not_there} of here not there")
    subject = f"  {one_line(one.info.subject)}" if one.info else ""
    return f"{session.paint(one.version[:10], 'yellow')}  {date}  {', '.join(parts)}{subject}"


def collected(
    session: Session, done: CleaningResult, url: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """What `perun gc` removed, here or at a remote, or would remove."""
    if as_json:
        write_json(
            session.out,
            {
                "schema": "perun.gc/1",
                "remote": url,
                "dry_run": dry_run,
                "profiles": [entry._asdict() for entry in done.entries],
                "deleted": done.deleted,
                "bytes": done.freed,
                "waiting": done.waiting,
                "moved": done.moved,
                "unknown": len(done.unknown),
                "builds": sum(one.size for one in done.builds),
                "builds_removed": sum(one.size for one in done.gone_builds),
            },
        )
        return
    would = "would have " if dry_run else ""
    by_version = Counter(entry.minor for entry in done.entries)
    if dry_run:
        for version, many in list(by_version.items())[:_SHOWN]:
            session.say(f"{session.paint(version[:10], 'yellow')}  {plural(many, 'profile')}")
        if len(by_version) > _SHOWN:
            session.say(f"and {plural(len(by_version) - _SHOWN, 'version')} more; --json names every profile")
    where = f" from {url}" if url else ""
    if done.entries:
        count = plural(len(done.entries), "profile")
        session.say(f"{would}removed {count} of {plural(len(by_version), 'version')}{where}")
    what = "piece" if url else "object"
    if done.deleted:
        count = plural(len(done.deleted), what)
        session.say(f"{would}deleted {count}: {readable(done.freed - done.moved, 'B')} freed")
    if done.gone_builds:
        count = plural(len(done.gone_builds), "built version")
        session.say(f"{would}removed {count}: {_size(done.gone_builds)} freed")
    if done.waiting:
        session.say(f"{readable(done.waiting, 'B')} more are deleted by perun gc --remote after the grace")
    if not (done.entries or done.deleted or done.waiting or done.gone_builds):
        session.say(f"nothing to remove{where}")
    if done.unknown:
        versions = plural(len({entry.minor for entry in done.unknown}), "version")
        count = f"{plural(len(done.unknown), 'profile')} of {versions}"
        lacks = done.lacks or "it does not have these versions; git fetch --tags may get them"
        if set(done.unknown) <= set(done.entries):
            session.note(f"note: this clone cannot know whether {count} of these are to be kept: {lacks}")
        else:
            session.note(
                f"note: {count} stay, as this clone cannot know whether they are to be kept: {lacks}; "
                "--unknown removes them, too"
            )
    if done.builds:
        count = f"{plural(len(done.builds), 'built version')} ({_size(done.builds)})"
        session.note(f"note: {count} stay for later runs, or are in use; perun gc --built removes them")
    if done.entries and not url:
        lost = "would be" if dry_run else "are"
        session.note(
            f"note: removed profiles {lost} lost, unless a remote has them: perun pull fetches these"
        )


def _size(builds: Sequence[CachedBuild]) -> str:
    return readable(sum(one.size for one in builds), "B")


T = TypeVar("T", bound=Callable[..., Any])


def complete_remote(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The remotes whose names begin so, for the shell."""
    try:
        names = [one.name for one in remotes_module.remotes(open_repository(Path.cwd(), dict(os.environ)))]
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


def remote_option(help: str) -> Callable[[T], T]:
    """The option `--remote [NAME]` of a command: empty for the only remote, None where it is not given."""
    return click.option(
        "--remote",
        "remote_name",
        is_flag=False,
        flag_value="",
        metavar="[NAME]",
        shell_complete=complete_remote,
        help=help,
    )


@click.group(invoke_without_command=True)
@click.pass_context
def remote(ctx: click.Context) -> None:
    """List, add and remove the places where the team keeps its profiles.

    A remote needs no server of Perun's own: it is a folder that all can reach, an object store, a
    database, or the git repository. Without a command, the remotes are listed.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@remote.command("list")
@json_option()
@click.pass_obj
def list_(session: Session, as_json: bool = False) -> None:
    """List the remotes."""
    remotes(session, remotes_module.remotes(session.repository), as_json=as_json)


@remote.command()
@click.argument("name")
@click.argument("url")
@click.pass_obj
def add(session: Session, name: str, url: str) -> None:
    """Add the remote NAME at URL.

    It is written to the local configuration. No password is: each kind finds it where its other
    tools do, e.g. in `~/.pgpass` or `~/.aws`.

    \b
    perun remote add team file:///srv/perf
    perun remote add team s3://bucket/perf
    perun remote add team git:origin
    perun remote add team postgresql://db.example.org/perf
    perun remote add mine sqlite:////home/me/perf.db
    """
    one = remotes_module.add(session.repository, name, url)
    session.say(f"added the remote {one.name}; send what is registered with: perun push {one.name}")


@remote.command()
@click.argument("name", shell_complete=complete_remote)
@click.pass_obj
def remove(session: Session, name: str) -> None:
    """Forget the remote NAME; what it holds stays."""
    one = remotes_module.remove(session.repository, name)
    session.say(f"removed the remote {one.name}; what is at {one.shown} stays")


def _transfer_options(function: Any) -> Any:
    """The remote, and the versions whose profiles are told, sent or fetched."""
    for decorate in (
        json_option(),
        since_option(),
        version_argument("versions", metavar="[RANGE]", text="Only this version, the same as RANGE."),
        click.argument("name", metavar="[REMOTE]", required=False, shell_complete=complete_remote),
    ):
        function = decorate(function)
    return function


_dry_run = click.option("--dry-run", "-n", is_flag=True, help="Say what would be done, and do nothing.")


@click.command()
@_transfer_options
@_dry_run
@click.option("--again", is_flag=True, help="Also send what was removed from the remote.")
@click.pass_obj
def push(
    session: Session,
    name: str | None,
    versions: str | None,
    since: str | None,
    dry_run: bool,
    as_json: bool,
    again: bool,
) -> int:
    """Send registered profiles to a remote.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have; without it, the profiles of all versions are sent. What is there already is not sent, and an
    interrupted push goes on where it ended. Exit code 14 if the remote refuses.
    """
    repo = session.repository
    minors = versions_of(repo, versions, since)
    progress = session.progress(0, "sending", enabled=not as_json)
    with remotes_module.open_remote(repo, name) as remote, progress as bar:
        told = partial(bar.update, "")
        done = transfer.push(repo, remote, minors, again=again, dry_run=dry_run, progress=told)
        url = remote.url
    some = minors is not None
    return transferred(session, done, url, "push", some=some, dry_run=dry_run, as_json=as_json)


@click.command()
@_transfer_options
@_dry_run
@click.pass_obj
def pull(
    session: Session,
    name: str | None,
    versions: str | None,
    since: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Fetch the profiles that others have sent to a remote.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have; without it, the profiles of all versions are fetched. What is fetched is verified, and is data only:
    no configuration, plugin or hook comes with it. Nothing here is removed.
    """
    repo = session.repository
    minors = versions_of(repo, versions, since)
    progress = session.progress(0, "fetching", enabled=not as_json)
    with remotes_module.open_remote(repo, name) as remote, progress as bar:
        done = transfer.pull(repo, remote, minors, dry_run=dry_run, progress=partial(bar.update, ""))
        url = remote.url
    some = minors is not None
    return transferred(session, done, url, "pull", some=some, dry_run=dry_run, as_json=as_json)


@click.command()
@_transfer_options
@click.pass_obj
def fetch(session: Session, name: str | None, versions: str | None, since: str | None, as_json: bool) -> None:
    """List what a remote has, version by version; no profile is fetched.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have. The newest version comes first; the last ones are those that this clone does not have.
    """
    repo = session.repository
    minors = versions_of(repo, versions, since)
    with remotes_module.open_remote(repo, name) as remote:
        found = listing.fetch(repo, remote, minors)
        url = remote.url
    held(session, found, url, as_json=as_json)


@click.command("clone-profiles")
@click.argument("url")
@click.option("--name", default="team", show_default=True, help="What the remote is called here.")
@json_option()
@click.pass_obj
def clone_profiles(session: Session, url: str, name: str, as_json: bool) -> int:
    """Get all profiles of the team, in a fresh clone of the project.

    That is `perun init`, `perun remote add` and `perun pull` at once; what was done already is not done
    again, so that it can be typed again after an interruption. URL is that of the remote.

    \b
    git clone https://example.org/project && cd project
    perun clone-profiles file:///srv/perf
    """
    joined = cloning.join(session.cwd, session.environ, name, url, session.ask_trust)
    if not as_json:
        if joined.made:
            session.say(f"made a Perun repository in {one_line(str(joined.repo.root / '.perun'))}")
        session.say(f"the remote {joined.remote.name} is {one_line(joined.remote.url)}")
    progress = session.progress(0, "fetching", enabled=not as_json)
    with remotes_module.open_remote(joined.repo, joined.remote.name) as remote, progress as bar:
        done = transfer.pull(joined.repo, remote, progress=partial(bar.update, ""))
        shown = remote.url
    return transferred(session, done, shown, "pull", dry_run=False, as_json=as_json)
