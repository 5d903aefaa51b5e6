"""`perun run`."""

from __future__ import annotations

from typing import Any

import click

from perun.cli.commands.measuring import SEED, MatrixOptions, VersionOptions, measure, with_version_options
from perun.cli.commands.remote import complete_remote
from perun.cli.completing import complete_minor
from perun.cli.options import read_params, with_options_of
from perun.cli.plugins import write_plugins
from perun.cli.session import Session


@click.group()
@with_version_options("-c")
@click.pass_context
def run(ctx: click.Context, /, where: VersionOptions) -> None:
    """Run a batch of jobs, or the job matrix.

    A job is a command with its arguments and workload, a collector, and the postprocessors applied later.
    `-c` is --crawl-parents here, and --collector behind `job`.
    """
    ctx.meta["where"] = where


def _names(family: str) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from perun.plugin.registry import Registry

        return [name for name in Registry().names(family) if name.startswith(incomplete)]

    return complete


class _Job(click.Command):
    """A command whose help ends with the units that a job is made of."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The collectors and postprocessors, each with a line."""
        write_plugins(ctx.obj, "collect", "Collectors", formatter)
        write_plugins(ctx.obj, "postprocess", "Postprocessors", formatter)


@run.command(cls=_Job)
@click.option(
    "--cmd",
    "-b",
    multiple=True,
    metavar="CMD",
    help="The command to measure; may be repeated.",
)
@click.option(
    "--args", "-a", multiple=True, metavar="ARGS", help="Arguments of the command; may be repeated."
)
@click.option(
    "--workload", "-w", multiple=True, metavar="WORKLOAD", help="Input of the command; may be repeated."
)
@click.option(
    "--collector",
    "-c",
    required=True,
    multiple=True,
    metavar="NAME",
    shell_complete=_names("collect"),
    help="The collector; may be repeated.",
)
@click.option(
    "--collector-params",
    "-cp",
    nargs=2,
    multiple=True,
    metavar="NAME PARAMS",
    help="Parameters of a collector: a YAML file, key=value, or YAML.",
)
@click.option(
    "--postprocessor",
    "-p",
    multiple=True,
    metavar="NAME",
    shell_complete=_names("postprocess"),
    help="Postprocess each profile with this; may be repeated, applied in order.",
)
@click.option(
    "--postprocessor-params",
    "-pp",
    nargs=2,
    multiple=True,
    metavar="NAME PARAMS",
    help="Parameters of a postprocessor: a YAML file, key=value, or YAML.",
)
@click.option("--seed", type=int, metavar="N", help=SEED)
@click.pass_context
def job(
    ctx: click.Context,
    cmd: tuple[str, ...],
    args: tuple[str, ...],
    workload: tuple[str, ...],
    collector: tuple[str, ...],
    collector_params: tuple[tuple[str, str], ...],
    postprocessor: tuple[str, ...],
    postprocessor_params: tuple[tuple[str, str], ...],
    seed: int | None,
) -> None:
    """Run one batch of jobs: every command with every argument, workload and collector.

    The parameters of a unit are named by its own help, e.g. `perun collect time --help`.

    \b
    perun run job -c time -b ./mybin -w file.in -w file2.in
    perun run job -c time -cp time repeat=30 -b ./mybin -p normalizer
    """
    from perun.porcelain.run.jobs import combine, needs_command

    session: Session = ctx.obj
    if not cmd and any(needs_command(session.registry, name) for name in collector):
        raise click.UsageError("name the command to measure with --cmd (-b)", ctx)
    jobs = combine(
        session.repository,
        cmd,
        args,
        workload,
        _units(collector, collector_params, "--collector-params"),
        _units(postprocessor, postprocessor_params, "--postprocessor-params"),
        "the command line",
        seed,
    )
    measure(session, jobs, ctx.meta["where"])


@run.command()
@with_options_of(
    MatrixOptions,
    "options",
    since={"shell_complete": complete_minor},
    push={"is_flag": False, "flag_value": "", "shell_complete": complete_remote},
)
@click.pass_context
def matrix(ctx: click.Context, /, options: MatrixOptions) -> None:
    """Run the job matrix of the local configuration.

    `cmds`, `args`, `workloads`, `collectors` and `postprocessors` in `.perun/local.yml` are combined, each
    with each; the commands of `execute.pre_run` are run first, in every version. The whole of it is checked
    before anything runs.

    \b
    perun run matrix --since v1.0 --every 5 --dry-run
    perun run matrix --since v1.0 --missing
    perun run matrix --resume
    perun run matrix --since v1.0 --on ssh:hosts.yml --push team
    """
    from perun.cli.commands.matrix import run_matrix

    run_matrix(ctx.obj, options, ctx.meta["where"])


def _units(
    names: tuple[str, ...], params: tuple[tuple[str, str], ...], option: str
) -> list[tuple[str, dict[str, Any]]]:
    plain = [name.replace("-", "_") for name in names]
    for name, _ in params:
        if name.replace("-", "_") not in plain:
            raise click.UsageError(f"{option} {name}: this job does not use it")
    return [
        (name, read_params(tuple(text for owner, text in params if owner.replace("-", "_") == key)))
        for name, key in zip(names, plain, strict=True)
    ]
