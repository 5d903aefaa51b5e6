"""Pages made from the program itself: its commands, configuration keys and exit codes.

`python docs/reference.py` prints them; a build of the manual writes them to `docs/generated`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from perun.cli.main import cli
from perun.cli.session import Session
from perun.core.config.schema import KEYS, ConfigKey, KeyKind, Scope
from perun.core.errors import EXIT_CODES
from perun.plugin.registry import Registry

WIDE = 10_000
"""Columns: click must not break lines, Markdown does."""

OPTIONS = """
`-h` is `--help` in every command that does not list another `-h`. A short option may mean something else in
another command, as in the manual of earlier releases; a long option means the same in all of them. Where the
manual calls one thing by several names, all of them work, and one of them in every command: see
[the options that commands have in common](../commands.md#options-that-commands-have-in-common).
"""

SCOPES = {
    Scope.LOCAL: "looked up in the local configuration only",
    Scope.RECURSIVE: "looked up from the nearest configuration outwards",
    Scope.GATHERED: "gathered from all configurations, the nearest first",
    Scope.SHARED: "looked up in the shared configuration only",
}


def write_reference(folder: Path) -> None:
    """Write the pages to `folder`; those that are the same already are not touched, so a rebuild is quick."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Name of each page without its suffix, and its Markdown."""
    return {
        "commands": "\n".join(command_lines()),
        "configuration": "\n".join(configuration_lines()),
        "exit-codes": "\n".join(exit_code_lines()),
    }


def command_lines() -> Iterator[str]:
    """The tree of commands with their options."""
    session = Session({}, Path("/"))
    session.registry = Registry()  # the installed plugins, whatever repository the manual is built in
    context = click.Context(cli, info_name="perun", obj=session, terminal_width=WIDE, max_content_width=WIDE)
    yield "# Commands"
    yield OPTIONS
    yield from _command(cli, context, 1)


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    if level > 1:
        yield f"\n{'#' * level} {context.command_path}"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"\n```text\n{usage}\n```"
    yield from _help(command.help or "")
    for parameter in command.params:  # without --help, which every command has
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option):
            yield f"\n`{record[0]}`\n: {escape(record[1]) or 'No description.'}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                inner = click.Context(child, info_name=name, parent=context, obj=context.obj)
                yield from _command(child, inner, min(level + 1, 4))


def _help(text: str) -> Iterator[str]:
    """Paragraphs of a help text; one that starts with click's `\\b` is kept as it is."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text.partition("\f")[0])):
        if paragraph.startswith("\b"):
            yield "\n```text" + paragraph[1:].rstrip() + "\n```"
        else:
            yield "\n" + escape(" ".join(paragraph.split()))


def configuration_lines() -> Iterator[str]:
    """Every key with what it holds, where it is looked up and what it defaults to."""
    yield "# Configuration keys"
    yield "\n[Configuration](../configuration.md) tells where the files are and how to change them."
    for key in KEYS.values():
        yield f"\n## `{key.name}`"
        yield from _key(key)


def _key(key: ConfigKey) -> Iterator[str]:
    yield f"\n{escape(key.help)}"
    if key.kind is KeyKind.IGNORED:
        return
    yield f"\nHolds {escape(key.expected)}; {SCOPES[key.scope]}."
    if key.default not in (None, "", [], {}):
        yield f"\nDefault:\n\n```yaml\n{_yaml(key.default)}\n```"
    if key.example is not None:
        yield f"\nExample:\n\n```yaml\n{_yaml(key.example)}\n```"


def _yaml(value: object) -> str:
    """A value in YAML's flow style, one item of a list a line."""
    if isinstance(value, list):
        return "\n".join(f"- {_yaml(item)}" for item in value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_yaml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, str) and re.fullmatch(r"[\w./-]+", value):
        return value
    return json.dumps(value)


def exit_code_lines() -> Iterator[str]:
    """The table of exit codes."""
    yield "# Exit codes"
    yield "\nScripts may rely on these; a message on standard error says more.\n"
    yield "| code | meaning |\n| --- | --- |"
    for code, meaning in EXIT_CODES.items():
        yield f"| {code} | {escape(meaning)} |"


def escape(text: str) -> str:
    """`text` as Markdown that shows it unchanged; what stands between backticks is code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return re.sub(r"([\\`<>*_\[\]{}|#%$])", r"\\\1", text)
    pieces[::2] = [re.sub(r"([\\<>*_\[\]{}|#%$])", r"\\\1", piece) for piece in pieces[::2]]
    return "`".join(pieces)


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(pages().values()) + "\n")
