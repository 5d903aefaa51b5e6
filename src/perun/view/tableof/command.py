"""The command `tableof` of `perun show`, with options before and after its sub-command (manual 6.1.5)."""

from __future__ import annotations

from typing import Any, Final

import click

from perun.view.tableof.view import FORMATS, TableOfView, TableParams

_GROUP_OPTIONS: Final = "perun.view.tableof.options"
# `-h` is --headers in the sub-commands, so that it cannot be --help as elsewhere.
_SETTINGS: Final = {"help_option_names": ["--help"]}


@click.group("tableof", help=TableOfView.help, context_settings=_SETTINGS)
@click.option(
    "-tf",
    "--to-file",
    is_flag=True,
    help="The table will be saved into a file. By default, the name of the output file is automatically "
    "generated, unless `--output-file` option does not specify the name of the output file.",
)
@click.option("-ts", "--to-stdout", is_flag=True, help="The table will be output to standard output.")
@click.option(
    "-of",
    "--output-file",
    metavar="<output_file>",
    default="",
    help="Target output file, where the transformed table will be saved; replaced where it exists.",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(FORMATS),
    metavar="<tablefmt>",
    default="simple",
    show_default=True,
    help="Format of the outputted table: " + ", ".join(FORMATS) + ".",
)
@click.pass_context
def tableof(context: click.Context, /, **options: Any) -> None:
    """Keep the options for the sub-command, which renders the table."""
    context.meta[_GROUP_OPTIONS] = options


def _table_options(command: Any) -> Any:
    decorators = (
        click.option(
            "-h",
            "--headers",
            metavar="<key>",
            multiple=True,
            help="Sets the headers that will be displayed in the table. If none are stated then all of the "
            "headers will be outputed.",
        ),
        click.option("-s", "--sort-by", metavar="<key>", multiple=True, help="Sorts the table by <key>."),
        click.option(
            "-f",
            "--filter-by",
            metavar="<key> <value>",
            nargs=2,
            multiple=True,
            help="Filters the table to rows, where <key> == <value>. If the `--filter` is set several "
            "times, then rows satisfying all rules will be selected for different keys; and the rows "
            "satisfying some rule will be selected for same key.",
        ),
        click.pass_context,
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


@tableof.command("resources", context_settings=_SETTINGS)
@_table_options
def resources(context: click.Context, /, **options: Any) -> None:
    """Outputs the resources of the profile as a table."""
    _render(context, "resources", options)


@tableof.command("models", context_settings=_SETTINGS)
@_table_options
def models(context: click.Context, /, **options: Any) -> None:
    """Outputs the models of the profile as a table."""
    _render(context, "models", options)


def _render(context: click.Context, kind: str, options: dict[str, Any]) -> None:
    params = TableParams(kind=kind, **context.meta[_GROUP_OPTIONS], **options)
    context.obj.render(TableOfView.name, params)
