"""`perun init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.config.templates import Build


def _key_values(
    ctx: click.Context, param: click.Parameter, values: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    return dict(values)


@click.command()
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--vcs-type",
    metavar="TYPE",
    help="The version control to wrap, initialised too if there is none: git (default), tagit (snapshots "
    "of a folder), svs (a folder with one version), or a plugin.",
)
@click.option(
    "--vcs-path",
    metavar="PATH",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the wrapped repository, if it is not PATH itself.",
)
@click.option(
    "--vcs-param",
    "vcs_params",
    nargs=2,
    multiple=True,
    metavar="KEY VALUE",
    callback=_key_values,
    help="Parameter for its initialisation, e.g. separate-git-dir DIR.",
)
@click.option(
    "--vcs-flag", "vcs_flags", multiple=True, metavar="FLAG", help="Flag for its initialisation, e.g. bare."
)
@click.option(
    "--store",
    metavar="URL",
    help="Keep profiles and statistics in a database: sqlite (a file in .perun), sqlite:///PATH, or "
    "postgresql://HOST/DATABASE. By default they are files in .perun.",
)
@click.option(
    "--configure", "-c", is_flag=True, help="Open the local configuration in the editor afterwards."
)
@click.option(
    "--config-template",
    "-t",
    "template",
    metavar="TEMPLATE",
    default="master",
    show_default=True,
    help="Template of the local configuration: user, developer or master.",
)
@click.pass_obj
def init(
    session: Session,
    path: Path | None,
    vcs_type: str | None,
    vcs_path: Path | None,
    vcs_params: dict[str, Any],
    vcs_flags: tuple[str, ...],
    store: str | None,
    configure: bool,
    template: str,
) -> None:
    """Make a folder a Perun repository.

    Makes `.perun` in PATH (the current folder by default): `jobs` for profiles that are not registered yet,
    `objects` for registered ones, and `local.yml`, the configuration. What is there already is kept.
    """
    from perun.repository.init import init as run

    folder = session.cwd / (path or ".")
    done = run(
        folder,
        session.environ,
        vcs_type=vcs_type,
        vcs_path=session.cwd / vcs_path if vcs_path else None,
        vcs_params=vcs_params | dict.fromkeys(vcs_flags, True),
        template=template,
        store=store,
        asks=session.ask_trust,
    )
    word = "Reinitialized existing" if done.reinitialized else "Initialized empty"
    session.say(f"{word} Perun repository in {one_line(str(done.repository.root / '.perun'))}")
    if done.store:
        session.say(f"Its profiles are kept in {one_line(done.store)}")
    if done.vcs_initialized:
        session.say(
            f"Initialized {done.repository.vcs.type} repository in {one_line(str(done.repository.vcs.root))}"
        )
    if not done.trusted:
        session.note(
            "note: what was in .perun before runs only if you trust it; review it with: perun trust --show"
            if done.reinitialized
            else "note: your settings cannot record that you trust this repository; set PERUN_TRUST=1"
        )
    if done.build is not None and not done.reinitialized:
        _propose(session, done.build, is_set=template != "master")
    if configure:
        from perun.cli.commands.config import open_editor

        open_editor(session, done.config_file)
    elif not done.reinitialized and template == "master":
        session.note("next: configure what to measure with `perun config edit`, then `perun run matrix`")


def _propose(session: Session, build: Build, *, is_set: bool) -> None:
    """Print how every version is built before it is measured, or the command that sets it."""
    what = f"this project is built by {build.system} ({build.file})"
    if is_set:
        session.note(f"{what}; execute.pre_run is set: {'; '.join(build.commands)}")
    else:
        session.note(f"{what}; to build each version before it is measured:\n  {build.command}")
