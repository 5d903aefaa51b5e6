"""`perun utils`."""

from __future__ import annotations

from pathlib import Path

import click

from perun.cli.options import LazyGroup
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.repository import create as operations
from perun.repository.config import edited
from perun.repository.repository import open_repository

COMMANDS = {
    "create": ("perun.cli.commands.utils:create", "Write a plugin of your own, complete with a test."),
    "stats": ("perun.cli.commands.stats:stats", "Show and delete statistics of versions."),
    "temp": ("perun.cli.commands.temp:temp", "Show and delete temporary files."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def utils() -> None:
    """Commands for developers of plugins: create, stats, temp."""


# `perun utils create`.


@click.command()
@click.argument("family", metavar="TEMPLATE", type=click.Choice(tuple(operations.FAMILIES)))
@click.argument("name", metavar="NAME")
@click.option(
    "--package",
    "-p",
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write an installable package into this new folder, instead of a plugin of the repository.",
)
@click.option(
    "--legacy",
    "-l",
    is_flag=True,
    help="Use the functions of the manual's chapters 4.2, 5.2, 6.2 and 8.4, not a class.",
)
@click.option("--no-before-phase", "-nb", is_flag=True, help="With --legacy: leave before() out.")
@click.option("--no-after-phase", "-na", is_flag=True, help="With --legacy: leave after() out.")
@click.option(
    "--supported-type",
    "-st",
    "types",
    multiple=True,
    metavar="TYPE",
    help="The type of profiles that it makes or takes, e.g. time; may be repeated.",
)
@click.option("--no-edit", "-ne", is_flag=True, help="Do not open the files in the editor afterwards.")
@click.pass_obj
def create(
    session: Session,
    family: str,
    name: str,
    package: Path | None,
    legacy: bool,
    no_before_phase: bool,
    no_after_phase: bool,
    types: tuple[str, ...],
    no_edit: bool,
) -> None:
    """Write a plugin of your own, complete with a test that passes.

    TEMPLATE is collect, postprocess, view, check, workload, harness, importer, exporter or fuzz-rules.
    The plugin goes into `.perun/plugins` of the repository, or is an installable package (--package), as
    fuzz-rules always are. It does something simple that works; put what you want in its place. On a
    terminal its files are opened in the editor that `general.editor` names.
    """
    left_out = {"before": no_before_phase, "after": no_after_phase}
    phases = frozenset(phase for phase, without in left_out.items() if not without)
    request = operations.PluginRequest(family, name, legacy, types, phases)
    if package is not None:
        created = operations.as_package(request, session.cwd / package)
    else:
        with edited(session.repository.root, session.environ):
            created = operations.in_repository(request, session.repository.root, session.repository.registry)
    for path in created.files:
        session.say(f"created {one_line(str(path))}")
    session.note(f"test it with: {created.test}")
    if package is None:
        _note_missing_trust(session)
    session.note(f"use it with: {created.usage}")
    if not no_edit and session.out.isatty():
        from perun.cli.commands.config import start_editor

        with edited(session.cwd, session.environ):
            start_editor(session, created.files)


def _note_missing_trust(session: Session) -> None:
    repository = open_repository(session.cwd, session.environ)
    if not repository.trust_state.trusted:
        session.note("Perun loads plugins of a repository only if you trust it: perun trust")
