"""`perun remote`, `perun push`, `perun pull`, `perun fetch` and `perun clone-profiles`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from perun.cli.answers import sharing as answers
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.repository import open_repository
from perun.porcelain.sharing import cloning, listing, remotes, transfer
from perun.porcelain.sharing.selecting import versions_of

T = TypeVar("T", bound=Callable[..., Any])


def complete_remote(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The remotes whose names begin so, for the shell."""
    try:
        names = [one.name for one in remotes.remotes(open_repository(Path.cwd(), dict(os.environ)))]
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
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def list_(session: Session, as_json: bool = False) -> None:
    """List the remotes."""
    answers.remotes(session, remotes.remotes(session.repository), as_json=as_json)


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
    one = remotes.add(session.repository, name, url)
    session.say(f"added the remote {one.name}; send what is registered with: perun push {one.name}")


@remote.command()
@click.argument("name", shell_complete=complete_remote)
@click.pass_obj
def remove(session: Session, name: str) -> None:
    """Forget the remote NAME; what it holds stays."""
    one = remotes.remove(session.repository, name)
    session.say(f"removed the remote {one.name}; what is at {one.shown} stays")


def _transfer_options(command: click.Command) -> click.Command:
    for parameter in reversed(
        (
            click.Argument(["name"], metavar="[REMOTE]", required=False, shell_complete=complete_remote),
            click.Argument(["versions"], metavar="[RANGE]", required=False),
            click.Option(["--json", "as_json"], is_flag=True, help="Answer as JSON."),
        )
    ):
        command.params.insert(0, parameter)
    return command


_dry_run = click.option("--dry-run", "-n", is_flag=True, help="Say what would be done, and do nothing.")


@_transfer_options
@click.command()
@_dry_run
@click.option("--again", is_flag=True, help="Also send what was removed from the remote.")
@click.pass_obj
def push(
    session: Session, name: str | None, versions: str | None, dry_run: bool, as_json: bool, again: bool
) -> int:
    """Send registered profiles to a remote.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have; without it, the profiles of all versions are sent. What is there already is not sent, and an
    interrupted push goes on where it ended. Exit code 14 if the remote refuses.
    """
    repo = session.repository
    minors = versions_of(repo, versions)
    progress = session.progress(0, "sending", enabled=not as_json)
    with remotes.open_remote(repo, name) as remote, progress as bar:
        told = partial(bar.update, "")
        done = transfer.push(repo, remote, minors, again=again, dry_run=dry_run, progress=told)
        url = remote.url
    some = minors is not None
    return answers.transferred(session, done, url, "push", some=some, dry_run=dry_run, as_json=as_json)


@_transfer_options
@click.command()
@_dry_run
@click.pass_obj
def pull(session: Session, name: str | None, versions: str | None, dry_run: bool, as_json: bool) -> int:
    """Fetch the profiles that others have sent to a remote.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have; without it, the profiles of all versions are fetched. What is fetched is verified, and is data only:
    no configuration, plugin or hook comes with it. Nothing here is removed.
    """
    repo = session.repository
    minors = versions_of(repo, versions)
    progress = session.progress(0, "fetching", enabled=not as_json)
    with remotes.open_remote(repo, name) as remote, progress as bar:
        done = transfer.pull(repo, remote, minors, dry_run=dry_run, progress=partial(bar.update, ""))
        url = remote.url
    some = minors is not None
    return answers.transferred(session, done, url, "pull", some=some, dry_run=dry_run, as_json=as_json)


@_transfer_options
@click.command()
@click.pass_obj
def fetch(session: Session, name: str | None, versions: str | None, as_json: bool) -> None:
    """List what a remote has, version by version; no profile is fetched.

    REMOTE may be left out where there is one only. RANGE is a version, or A..B for those of B that A does not
    have. The newest version comes first; the last ones are those that this clone does not have.
    """
    repo = session.repository
    minors = versions_of(repo, versions)
    with remotes.open_remote(repo, name) as remote:
        found = listing.fetch(repo, remote, minors)
        url = remote.url
    answers.held(session, found, url, as_json=as_json)


@click.command("clone-profiles")
@click.argument("url")
@click.option("--name", default="team", show_default=True, help="What the remote is called here.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
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
    with remotes.open_remote(joined.repo, joined.remote.name) as remote, progress as bar:
        done = transfer.pull(joined.repo, remote, progress=partial(bar.update, ""))
        shown = remote.url
    return answers.transferred(session, done, shown, "pull", dry_run=False, as_json=as_json)
