"""`perun export`."""

from __future__ import annotations

import sys
from typing import Any

import click

from perun.cli.completing import complete_any
from perun.cli.options import FILE, minor_option, read_params
from perun.cli.plugins import lists_formats
from perun.cli.session import Session
from perun.core import atomic
from perun.core.errors import PluginError, UsageError
from perun.plugin.loading import errors_of
from perun.plugin.params import from_mapping
from perun.running.showing import load_profile


@click.command(cls=lists_formats("exporter"))
@click.argument("format")
@click.argument("profile", shell_complete=complete_any)
@minor_option()
@click.option("--output", "-o", metavar=FILE, help="Write to FILE, which is replaced; standard output else.")
@click.option(
    "--params", "-p", metavar="PARAMS", multiple=True, help="Parameters of the exporter: key=value."
)
@click.pass_obj
def export(
    session: Session,
    format: str,
    profile: str,
    minor: str | None,
    output: str | None,
    params: tuple[str, ...],
) -> None:
    """Write a profile for another tool.

    PROFILE is named as for `perun show`.

    \b
    perun export pprof 0@i -o cpu.pb.gz
    perun export benchstat HEAD~1:0@i
    """
    exporter: Any = session.registry.get("exporter", format)
    values = from_mapping(exporter.Params, read_params(params), f"exporter {format!r}")
    found = load_profile(session.repository, profile, minor, session.confirm)
    with errors_of(exporter, f"the exporter {exporter.name!r}", PluginError):
        pieces = exporter.write(found, values, session.note)
        if output not in (None, "-"):
            path = session.cwd / str(output)
            data = b"".join(pieces)
            try:
                atomic.write(path, data)
            except OSError as problem:
                raise UsageError(f"cannot write {output}: {problem.strerror}") from None
            session.say(str(output))
            return
        if session.out is sys.stdout and session.out.isatty() and exporter.suffix.endswith(".gz"):
            raise UsageError(f"{format} is binary", f"name a file: --output profile{exporter.suffix}")
        for piece in pieces:
            session.out.flush()
            session.out.buffer.write(piece)
