"""`perun temp`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.wording import plural
from perun.profile.amounts import readable
from perun.repository.repository import open_repository
from perun.running import cleaning as operations


def _complete_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    try:
        paths = [file.path for file in open_repository(Path.cwd(), dict(os.environ)).store.temp.files()]
    except Exception:
        return []
    folders = {path.rpartition("/")[0] for path in paths if "/" in path}
    return sorted(path for path in {*paths, *folders} if path.startswith(incomplete))


@click.group()
def temp() -> None:
    """Show and delete temporary files.

    Collectors and postprocessors keep them in `.perun/tmp`. A PATH is absolute, or begins there.
    """


@temp.command("list")
@click.argument("root", required=False, default="", shell_complete=_complete_path)
@click.option("--no-total-size", "-t", is_flag=True, help="Leave out the size of all the files together.")
@click.option("--no-file-size", "-f", is_flag=True, help="Leave out the size of each file.")
@click.option("--no-protection-level", "-p", is_flag=True, help="Leave out whether a file is protected.")
@click.option(
    "--sort-by",
    "-s",
    type=click.Choice(operations.SORTED_BY),
    default="name",
    show_default=True,
    help="The order of the files.",
)
@click.option(
    "--filter-protection",
    "-fp",
    type=click.Choice(operations.PROTECTION),
    default="all",
    show_default=True,
    help="Only files of this kind.",
)
@json_option("Answer as JSON, with sizes in bytes.")
@click.pass_obj
def list_(
    session: Session,
    root: str,
    no_total_size: bool,
    no_file_size: bool,
    no_protection_level: bool,
    sort_by: str,
    filter_protection: str,
    as_json: bool,
) -> None:
    """List the files below ROOT, all by default: size, protection, path."""
    found = operations.files(session.repository, root, sort_by=sort_by, protection=filter_protection)
    total = sum(file.size for file in found)
    if as_json:
        answer = {"schema": "perun.temp/1", "files": [file._asdict() for file in found], "total_size": total}
        session.say(json.dumps(answer, indent=2))
        return
    if not no_total_size:
        session.say(f"Total size of all the files: {readable(total, 'B')}")
    for file in found:
        protection = f"{'protected' if file.protected else 'unprotected':<11}"
        cells = [
            "" if no_file_size else f"{readable(file.size, 'B'):>10}",
            "" if no_protection_level else session.paint(protection, "red" if file.protected else ""),
            one_line(file.path),
        ]
        session.say(" | ".join(cell for cell in cells if cell))


@temp.command()
@click.argument("path", shell_complete=_complete_path)
@click.option("--warn", "-w", is_flag=True, help="Delete nothing if any file is protected.")
@click.option("--force", "-f", is_flag=True, help="Delete protected files too, whatever --warn says.")
@click.option("--keep-directories", "-k", is_flag=True, help="Keep folders that become empty.")
@click.pass_obj
def delete(session: Session, path: str, warn: bool, force: bool, keep_directories: bool) -> None:
    """Delete the file or folder PATH; all of `.perun/tmp` if it is `.`.

    Protected files stay without --force. Do not delete what another Perun, still running, may need.
    """
    count, kept = operations.delete(
        session.repository, path, warn=warn, force=force, keep_folders=keep_directories
    )
    session.say(f"deleted {plural(count, 'file')}")
    if kept:
        names = ", ".join(map(one_line, kept))
        session.note(f"protected, so kept: {names}; delete with --force")


@temp.command()
@click.pass_obj
def sync(session: Session) -> None:
    """Remove the flags of files that no longer exist, after you deleted files by hand."""
    gone = operations.sync(session.repository)
    lines = [f"removed the flags of {one_line(path)}, which is gone" for path in gone]
    session.say("\n".join(lines) or "every file that has flags exists")
