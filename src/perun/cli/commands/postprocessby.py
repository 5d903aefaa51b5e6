"""`perun postprocessby`."""

from __future__ import annotations

import functools
from typing import Any

import click

from perun.cli.answers.data import write_json
from perun.cli.completing import complete_any
from perun.cli.options import json_option, minor_option
from perun.cli.plugins import PluginGroup
from perun.cli.session import Session
from perun.cli.table import one_line


def _run(session: Session, name: str, params: Any) -> None:
    session.run_postprocessor(session.profile, name, params)


class _Postprocessors(PluginGroup):
    family = "postprocess"
    runner = staticmethod(_run)


@click.group(cls=_Postprocessors)
@click.argument("profile", shell_complete=complete_any)
@click.option(
    "--output-filename-template",
    "-ot",
    "template",
    metavar="TEMPLATE",
    help="Template for the name of the new profile, instead of format.output_profile_template.",
)
@minor_option()
@json_option()
@click.pass_context
def postprocessby(
    ctx: click.Context, profile: str, template: str | None, minor: str | None, as_json: bool
) -> None:
    """Process a profile into a new one.

    The new one is pending afterwards. PROFILE is a tag (`0@i` registered, `0@p` pending), a stable id
    (`kxmzpqrstv@i`), the name of a registered or pending profile or its beginning, or a path. A tag or name
    after a version is that of a profile registered there (`HEAD~1:0@i`, `v1.2:time`).

    \b
    perun postprocessby 0@p regression-analysis -m full
    perun postprocessby moving-average sma --help
    """
    from perun.plugin.api import PostprocessContext
    from perun.plugin.params import from_mapping
    from perun.repository import lookup
    from perun.repository.postprocessing import postprocessby as process

    session: Session = ctx.obj

    @functools.cache
    def found() -> lookup.ProfileLocation:
        return lookup.find(session.repository, profile, minor, session.confirm)

    session.profile_loader = lambda: lookup.load(session.repository, found())

    def runner(given: Any, name: str, values: Any) -> None:
        repo = session.repository
        plugin = session.registry.get("postprocess", name)
        params = from_mapping(plugin.Params, values, f"{name!r}") if isinstance(values, dict) else values
        notes: list[str] = []
        try:
            with session.progress(0, "postprocessing") as bar:
                context = PostprocessContext(bar.update, notes.append)
                version = found().minor_version or repo.version(minor)
                path = process(repo, given, version, name, params, template, context)
        finally:  # not earlier: a note would run into the bar
            for note in notes:
                session.note(one_line(note))
        if as_json:
            write_json(session.out, {"schema": "perun.postprocessby/1", "name": path.name, "notes": notes})
            return
        session.say(f"stored {session.paint(one_line(path.name), 'bold')}")

    session.postprocessor_runner = runner
