"""`perun collect`."""

from __future__ import annotations

from typing import Any

import click

from perun.cli.commands.measuring import VersionOptions, measure, with_version_options
from perun.cli.options import read_params
from perun.cli.plugins import PARAMS, PluginGroup, with_params
from perun.cli.session import Session
from perun.porcelain.run.jobs import Unit, combine_units, needs_command


def _run(session: Session, name: str, params: Any) -> None:
    session.run_collector(name, params)


class _Collectors(PluginGroup):
    family = "collect"
    runner = staticmethod(_run)


@click.group(cls=_Collectors)
@click.option("--profile-name", "-pn", metavar="NAME", help="Name of the profile, e.g. profile.perf.")
@with_version_options("-cp")
@click.option("--cmd", "-c", metavar="CMD", multiple=True, help="The command to measure, e.g. ./mybin.")
@click.option("--args", "-a", metavar="ARGS", multiple=True, help="Arguments of the command.")
@click.option(
    "--workload",
    "-w",
    metavar="WORKLOAD",
    multiple=True,
    help="Input of the command: last arguments, '< file', or '<< \"text\"'.",
)
@click.option(
    "--params",
    "-p",
    metavar="PARAMS",
    multiple=True,
    help="Parameters of the collector: a YAML file, key=value, or YAML.",
)
@click.pass_context
def collect(
    ctx: click.Context,
    /,
    profile_name: str | None,
    cmd: tuple[str, ...],
    args: tuple[str, ...],
    workload: tuple[str, ...],
    params: tuple[str, ...],
    where: VersionOptions,
) -> None:
    """Measure one command with one collector.

    The profile is pending afterwards: `perun status` shows it, `perun add` registers it. The current version
    is measured where it is, others (and it too where there are uncommitted changes) in a working copy.
    Options before the collector are those below; behind it they are the collector's own.

    \b
    perun collect -c ./mybin -w input.txt time --repeat 20
    perun collect -m HEAD~3 -c ./mybin time
    """
    session: Session = ctx.obj
    ctx.meta[PARAMS] = {key.replace("-", "_"): value for key, value in read_params(params).items()}

    def runner(name: str, values: Any) -> None:
        plugin = session.registry.get("collect", name)
        unit = Unit(plugin.name, values if not isinstance(values, dict) else _params(plugin, values))
        if not cmd and needs_command(session.registry, name):
            raise click.UsageError("name the command to measure with --cmd (-c)", ctx)
        jobs = combine_units(session.repository, cmd or [""], [" ".join(args)], workload, [unit])
        measure(session, jobs, where, profile_name)

    session.collector_runner = runner


def _params(plugin: Any, values: dict[str, Any]) -> Any:
    """What a plugin's own click command was called with, completed by `--params`."""
    from perun.plugin.params import from_mapping

    return from_mapping(plugin.Params, with_params(click.get_current_context(), values), f"{plugin.name!r}")
