"""`perun collect`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from perun.cli.commands.measuring import VersionOptions, measure, with_version_options
from perun.cli.options import json_option, read_params, with_options_of
from perun.cli.plugins import PARAMS, PluginGroup, with_params
from perun.cli.session import Session
from perun.plugin.params import param, specs
from perun.repository.jobs import PluginConfig, combine_units, needs_command, subject_of


def _run(session: Session, name: str, params: Any) -> None:
    session.run_collector(name, params)


METHODS: Final = (
    "baseline-static",
    "baseline-dynamic",
    "cg-shaping",
    "dynamic-sampling",
    "diff-tracing",
    "dynamic-probing",
    "timed-sampling",
)
"""The optimizations, as the manual's 3.3.1 lists them."""


@dataclass(frozen=True)
class OptimizationOptions:
    """The options of the manual's 3.3.1, which collectors that choose functions have as their parameters."""

    optimization_pipeline: str | None = param(
        None,
        short="-op",
        choices=("custom", "basic", "advanced", "full"),
        help="Trace fewer functions by a combination of optimizations.",
    )
    optimization_on: tuple[str, ...] = param(
        (), short="-on", choices=METHODS, help="Also use this optimization; may be repeated."
    )
    optimization_off: tuple[str, ...] = param(
        (), short="-off", choices=METHODS, help="Do not use this optimization; may be repeated."
    )
    optimization_args: tuple[tuple[str, str], ...] = param(
        (), short="-oa", metavar="NAME VALUE", help="Set a parameter of an optimization; may be repeated."
    )
    optimization_cache_off: bool = param(
        False, help="Ignore what is kept for optimizations, e.g. the call graph."
    )
    optimization_reset_cache: bool = param(
        False, help="Remove what is kept for optimizations of the program."
    )
    use_cg_type: str | None = param(
        None,
        short="-cg",
        choices=("static", "dynamic", "mixed"),
        help="The call graph that optimizations use.",
    )

    def given(self) -> dict[str, Any]:
        """The options that were given, as parameters of a collector."""
        return {name: value for name, value in asdict(self).items() if value}


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
@with_options_of(OptimizationOptions, "optimization")
@json_option("Answer as JSON: the profile, or what failed.")
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
    optimization: OptimizationOptions,
    as_json: bool,
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
    given = optimization.given()
    values = {key.replace("-", "_"): value for key, value in read_params(params).items()}
    ctx.meta[PARAMS] = {**values, **given}
    _require_optimizable(session, ctx, given)

    def runner(name: str, values: Any) -> None:
        plugin = session.registry.get("collect", name)
        unit = PluginConfig(plugin.name, values if not isinstance(values, dict) else _params(plugin, values))
        if not (cmd or subject_of(session.registry, unit)) and needs_command(session.registry, name):
            raise click.UsageError("name the command to measure with --cmd (-c)", ctx)
        jobs = combine_units(session.repository, cmd or [""], [" ".join(args)], workload, [unit])
        measure(session, jobs, where, profile_name, as_json=as_json)

    session.collector_runner = runner


def _require_optimizable(session: Session, ctx: click.Context, given: dict[str, Any]) -> None:
    """:raises UsageError: where options of optimisations are given to a collector that has none."""
    name = ctx.invoked_subcommand
    if not given or name is None:
        return
    plugin = session.registry.get("collect", name)
    known = {spec.name for spec in specs(plugin.Params)}
    if not known.issuperset(given):
        option = "--" + next(one for one in given if one not in known).replace("_", "-")
        raise click.UsageError(
            f"the collector {name} does not choose functions, so that {option} has no meaning for it", ctx
        )


def _params(plugin: Any, values: dict[str, Any]) -> Any:
    """What a plugin's own click command was called with, completed by `--params`."""
    from perun.plugin.params import from_mapping

    return from_mapping(plugin.Params, with_params(click.get_current_context(), values), f"{plugin.name!r}")
