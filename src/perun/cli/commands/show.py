"""`perun show`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from perun.cli.completing import complete_any
from perun.cli.options import minor_option
from perun.cli.plugins import PluginGroup
from perun.cli.session import Session
from perun.running.showing import VersionSources, chosen_view, load_profile, statistics_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def _run(session: Session, name: str, params: Any) -> None:
    session.render(name, params)


class _Views(PluginGroup):
    family = "view"
    runner = staticmethod(_run)


@click.group(cls=_Views, invoke_without_command=True, no_args_is_help=True)
@click.argument("profile", shell_complete=complete_any)
@minor_option()
@click.pass_context
def show(ctx: click.Context, profile: str, minor: str | None) -> None:
    """Interpret a profile: as a table, as text, as a picture.

    PROFILE is a tag (`0@i` registered, `0@p` pending), a stable id (`kxmzpqrstv@i`), the name of a registered
    or pending profile or its beginning, or a path. A tag or name after a version is that of a profile
    registered there (`HEAD~1:0@i`, `v1.2:time`).

    Without a command, the view that suits the collector of the profile shows it.

    \b
    perun show 0@i
    perun show 0@i tableof resources
    perun show 0@i flamegraph --diff HEAD~1:0@i
    perun show bars --help
    """
    session: Session = ctx.obj

    def load(spec: str) -> Profile:
        return load_profile(session.repository, spec, minor, session.confirm)

    session.profile_loader = lambda: load(profile)
    session.other_profile_loader = load
    session.statistics_loader = lambda: statistics_of(session.repository, profile, minor, session.confirm)
    session.source_loader = VersionSources(lambda: session.repository, profile, minor, session.confirm)
    if ctx.invoked_subcommand is None:
        assert isinstance(ctx.command, PluginGroup)
        if ctx.command.plugin_as_argument(ctx):
            ctx.fail(ctx.command.missing(ctx))
        _show_chosen(ctx, session, ["-m", minor] if minor else [], profile)


def _show_chosen(ctx: click.Context, session: Session, options: list[str], profile: str) -> None:
    """Show the profile by the view of its collector, and say which one that is."""
    assert isinstance(ctx.command, click.Group)
    name, *rest = chosen = chosen_view(session.profile, session.registry, session.environ)
    command = ctx.command.get_command(ctx, name)
    assert command is not None
    with command.make_context(name, rest, parent=ctx) as inner:
        command.invoke(inner)
    others = ", ".join(one for one in ctx.command.list_commands(ctx) if one != name)
    session.note(f"shown by: {shlex.join(['perun', 'show', *options, profile, *chosen])}")
    session.note(f"name another view in place of {name}: {others}")
