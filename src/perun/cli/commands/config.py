"""`perun config`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from perun.cli.answers import data, log, status
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import ConfigError
from perun.core.process import programs
from perun.repository import config as operations

SCOPES = (
    ("--local", "-l", "local", "Use .perun/local.yml of the nearest repository."),
    ("--shared", "-h", "shared", "Use the shared configuration of the user."),
    ("--nearest", "-n", "nearest", "Use the nearest configuration that has the key (the default)."),
)
_FORMATS = {"format.status": status.TAGS, "format.shortlog": log.TAGS}


def _complete_key(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from perun.core.config.schema import KEYS

    return [name for name in KEYS if name.startswith(incomplete)]


@click.group(invoke_without_command=True)
@click.option("--local", "-l", "scope", flag_value="local", help=SCOPES[0][3])
@click.option("--shared", "-h", "scope", flag_value="shared", help=SCOPES[1][3])
@click.option("--nearest", "-n", "scope", flag_value="nearest", default="nearest", help=SCOPES[2][3])
@click.option(
    "--edit", "-e", "edit_now", is_flag=True, help="Open the configuration in the editor, as `config edit`."
)
@click.pass_context
def config(ctx: click.Context, scope: str, edit_now: bool) -> None:
    """Read and change the configuration.

    The local configuration (`.perun/local.yml`) says what is measured in this project; the shared one holds
    what is common to all projects of the user. A KEY is a path of sections, e.g. `degradation.apply`.
    """
    ctx.meta["scope"] = scope
    if edit_now:
        ctx.invoke(edit)
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@config.command()
@click.argument("key", shell_complete=_complete_key)
@json_option()
@click.pass_context
def get(ctx: click.Context, key: str, as_json: bool) -> None:
    """Look KEY up in the hierarchy of configurations."""
    session: Session = ctx.obj
    setting = operations.get_value(session.cwd, session.environ, key, ctx.meta["scope"])
    if as_json:
        answer = {
            "schema": "perun.config/1",
            "key": key,
            "value": setting.value,
            "source": setting.source,
        }
        session.say(json.dumps(answer, indent=2, default=str))
        return
    session.say(f"{key}: {readable(setting.value)}")


@config.command("set")
@click.argument("key", shell_complete=_complete_key)
@click.argument("value")
@click.pass_context
def set_(ctx: click.Context, key: str, value: str) -> None:
    """Set KEY to VALUE, which is read as YAML; comments and order of the file are kept."""
    session: Session = ctx.obj
    if key in _FORMATS:
        data.parse_format(value, _FORMATS[key], key)  # raises where a tag is unknown
    setting = operations.set_in(session.cwd, session.environ, key, value, ctx.meta["scope"])
    session.say(f"{key}: {readable(setting.value)}")


@config.command()
@click.pass_context
def edit(ctx: click.Context) -> None:
    """Open the configuration in the editor that `general.editor` names."""
    session: Session = ctx.obj
    open_editor(session, operations.file_of(session.cwd, session.environ, ctx.meta["scope"]))


@config.command()
@click.argument("template", required=False)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_context
def reset(ctx: click.Context, template: str | None, yes: bool) -> None:
    """Replace the configuration by TEMPLATE: user, developer or master (the default)."""
    session: Session = ctx.obj
    scope = ctx.meta["scope"]
    path = operations.file_of(session.cwd, session.environ, scope)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"what {path} holds would be lost, and there is no terminal to ask on; confirm with --yes"
            )
        if not click.confirm(f"replace {path}? what it holds now is lost", err=True):
            session.note("nothing was changed")
            return
    session.say(f"reset {one_line(str(operations.reset(session.cwd, session.environ, scope, template)))}")


def open_editor(session: Session, path: Path) -> None:
    """Open `path` in the user's editor and wait; raises what is wrong in it afterwards."""
    with operations.edited(session.cwd, session.environ):
        start_editor(session, [path])
        operations.verify(path)
    operations.cache(session.cwd, session.environ)


def start_editor(session: Session, paths: Sequence[Path]) -> None:
    """Open the files in the user's editor and wait.

    :raises ConfigError: if it cannot be started, or fails.
    """
    command = operations.editor_command(session.cwd, session.environ, session.ask_trust)
    try:
        code = programs.run(
            [*command, *map(str, paths)], stdin=None, stdout=None, stderr=None, foreground=True, outlives=True
        ).code
    except OSError as problem:
        raise ConfigError(
            f"the editor {command[0]!r} cannot be started: {problem.strerror}",
            "set another one with: perun config --shared set general.editor NAME",
        ) from None
    if code:
        raise ConfigError(f"the editor {command[0]!r} ended with status {code}")


def readable(value: Any) -> str:
    """A value as `config get` prints it: text as it is, lists and sections as one line of JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
