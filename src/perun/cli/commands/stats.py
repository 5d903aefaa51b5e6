"""`perun stats`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from perun.cli.completing import complete_minor
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.profile.amounts import readable
from perun.repository import stats as operations
from perun.repository.repository import open_repository

F = TypeVar("F", bound=Callable[..., Any])
Row = TypeVar("Row", operations.StatsFile, operations.StatsVersion)
SCHEMA = "perun.stats/1"


@click.group()
def stats() -> None:
    """Show and delete statistics of versions.

    Collectors and checks keep them in `.perun/stats`, in a folder for each minor version. They can be made
    again.
    """


def _listing(what: str) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in (
            json_option("Answer as JSON, with sizes in bytes."),
            click.option(
                "--sort-by-size",
                "-s",
                is_flag=True,
                help=f"Sort the {what} by size, not by the order of versions.",
            ),
            click.option(
                "--no-total-size", "-t", is_flag=True, help=f"Leave out the size of all the {what} together."
            ),
            click.option(
                "--from-minor",
                "-m",
                metavar="VERSION",
                shell_complete=complete_minor,
                help="Start at this version and continue with older ones; HEAD by default.",
            ),
            click.option(
                "--top",
                "-N",
                metavar="N",
                type=click.IntRange(min=0),
                default=20,
                show_default=True,
                help="Only the newest N versions from there; 0 for all.",
            ),
        ):
            command = option(command)
        return command

    return decorate


@stats.command("list-files")
@_listing("files")
@click.option("--no-minor", "-i", is_flag=True, help="Leave out the versions.")
@click.option("--no-file-size", "-f", is_flag=True, help="Leave out the size of each file.")
@click.pass_obj
def list_files(
    session: Session,
    top: int,
    from_minor: str | None,
    no_minor: bool,
    no_file_size: bool,
    no_total_size: bool,
    sort_by_size: bool,
    as_json: bool,
) -> None:
    """List the files: size, version, name."""
    chosen = operations.versions(session.repository, top, from_minor)
    rows = operations.files(session.repository, chosen)

    def cells(file: operations.StatsFile) -> list[str]:
        return [
            "" if no_file_size else f"{readable(file.size, 'B'):>10}",
            "" if no_minor else session.paint(file.minor_version, "yellow"),
            one_line(file.name),
        ]

    _print(session, "files", rows, cells, chosen.left_out, sort_by_size, not no_total_size, as_json)


@stats.command("list-versions")
@_listing("versions")
@click.option("--no-dir-size", "-d", is_flag=True, help="Leave out the size of each version's files.")
@click.option("--no-file-count", "-f", is_flag=True, help="Leave out how many files each version has.")
@click.pass_obj
def list_versions(
    session: Session,
    top: int,
    from_minor: str | None,
    no_dir_size: bool,
    no_file_count: bool,
    no_total_size: bool,
    sort_by_size: bool,
    as_json: bool,
) -> None:
    """List the versions that have statistics: size, version, number of files."""
    chosen = operations.versions(session.repository, top, from_minor)
    rows = operations.sizes(session.repository, chosen)

    def cells(version: operations.StatsVersion) -> list[str]:
        return [
            "" if no_dir_size else f"{readable(version.size, 'B'):>10}",
            session.paint(version.minor_version, "yellow"),
            "" if no_file_count else plural(version.files, "file"),
        ]

    _print(session, "versions", rows, cells, chosen.left_out, sort_by_size, not no_total_size, as_json)


@stats.group()
def delete() -> None:
    """Delete one file, all of one version, or everything."""


_keep = click.option(
    "--keep-directory", "-k", is_flag=True, help="Keep folders of versions that become empty."
)


def _complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    try:
        kept = open_repository(Path.cwd(), dict(os.environ)).store.stats
        names = {name for minor in kept.found() for name in kept.names(minor)}
    except Exception:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


@delete.command("file")
@click.argument("name", shell_complete=_complete_name)
@click.option(
    "--in-minor",
    "-m",
    metavar="VERSION",
    shell_complete=complete_minor,
    help="The version, HEAD by default; `.` for all versions.",
)
@_keep
@click.pass_obj
def delete_file(session: Session, name: str, in_minor: str | None, keep_directory: bool) -> None:
    """Delete the file NAME of one version, or of all."""
    having = operations.delete_file(session.repository, name, in_minor, keep_folder=keep_directory)
    where = having[0][:10] if len(having) == 1 else plural(len(having), "version")
    session.say(f"deleted {one_line(name)} of {where}")


@delete.command("minor")
@click.argument("version", shell_complete=complete_minor)
@_keep
@click.pass_obj
def delete_minor(session: Session, version: str, keep_directory: bool) -> None:
    """Delete all statistics of VERSION."""
    minor = operations.delete_version(session.repository, version, keep_folder=keep_directory)
    session.say(f"deleted the statistics of {minor[:10]}")


def _delete_all(session: Session, keep_directory: bool) -> None:
    """Delete the statistics of all versions."""
    count = operations.delete_all(session.repository, keep_folders=keep_directory)
    session.say(f"deleted the statistics of {plural(count, 'version')}")


for _name, _is_hidden in ((".", False), ("all", False), ("ll", True)):  # the last as the manual is headed
    delete.command(_name, hidden=_is_hidden)(_keep(click.pass_obj(_delete_all)))


@stats.command()
@click.option("--keep-custom", "-c", is_flag=True, help="Keep files that are not statistics.")
@click.option("--keep-empty", "-e", is_flag=True, help="Keep empty folders of versions.")
@click.option("--unknown", is_flag=True, help="Remove statistics of versions that this clone does not know.")
@click.pass_obj
def clean(session: Session, keep_custom: bool, keep_empty: bool, unknown: bool) -> None:
    """Remove what cannot be statistics, and empty folders.

    That are files and folders of another layout, and files that do not hold statistics. It also rebuilds the
    index of versions.

    A clone that is shallow or has one branch, or whose history was rewritten, does not know all versions. The
    statistics of those stay, unless you give --unknown.
    """
    if unknown and keep_custom:
        raise UsageError("--unknown removes what --keep-custom keeps", "give one of them")
    removed, lacking = operations.clean(
        session.repository, keep_custom=keep_custom, keep_empty=keep_empty, keep_unknown=not unknown
    )
    for path in removed:
        session.say(f"removed {one_line(str(path.relative_to(session.repository.root)))}")
    if lacking:
        what = f"statistics of {plural(lacking, 'version')} that this clone does not know"
        session.note(f"note: {what} {'were removed' if unknown else 'stay; --unknown removes them, too'}")


@stats.command()
@click.pass_obj
def sync(session: Session) -> None:
    """Rebuild the index of versions, after you made or deleted folders by hand."""
    session.say(f"{plural(operations.sync(session.repository), 'version')} with statistics")


def _print(
    session: Session,
    what: str,
    rows: Sequence[Row],
    cells: Callable[[Row], list[str]],
    left_out: int,
    by_size: bool,
    with_total: bool,
    as_json: bool,
) -> None:
    """Print the rows, a line of cells each; empty cells are omitted."""
    if by_size:
        rows = sorted(rows, key=lambda row: -row.size)
    total = sum(row.size for row in rows)
    if as_json:
        answer = {
            "schema": SCHEMA,
            what: [row._asdict() for row in rows],
            "total_size": total,
            "versions_left_out": left_out,
        }
        session.say(json.dumps(answer, indent=2))
        return
    if with_total:
        session.say(f"Total size of all the {what}: {readable(total, 'B')}")
    for row in rows:
        session.say(" | ".join(cell for cell in cells(row) if cell))
    if left_out:
        session.note(f"{plural(left_out, 'older version')} not shown; show all with --top 0")
