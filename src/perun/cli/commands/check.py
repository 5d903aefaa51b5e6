"""`perun check`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from perun.cli.answers.data import change_data
from perun.cli.commands.completing import complete_any, complete_minor
from perun.cli.report import Reporter, Tally
from perun.cli.session import Session
from perun.porcelain.check import Comparison, Options, VersionReport, is_degradation

MODELS = (
    "best-model",
    "best-param",
    "best-nonparam",
    "all-param",
    "all-nonparam",
    "all-models",
    "best-both",
)


@dataclass(frozen=True)
class Edge:
    """How the answer leaves the program: as JSON, and which changes make the exit code 1."""

    as_json: bool = False
    fail_on: str | None = None


def _options(*, models_short: bool) -> Callable[[Any], Any]:
    """The options of `check`, taken before and behind the name of the subcommand, as in git."""
    models = ("-m", "--models-type") if models_short else ("--models-type",)
    options = [
        click.option(
            "--force", "-f", is_flag=True, help="Compare profiles although their configurations differ."
        ),
        click.option(
            "--compute-missing",
            "-c",
            is_flag=True,
            help="Run the job matrix first where a version lacks profiles.",
        ),
        click.option(
            *models,
            type=click.Choice(MODELS),
            help="Which models INT and LOC compare; best-model by default.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Answer as JSON."),
        click.option(
            "--fail-on",
            type=click.Choice(["degradation", "maybe"]),
            help="Exit code 1 where a degradation (with maybe: also a possible one) was found.",
        ),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group()
@_options(models_short=True)
@click.pass_context
def check(ctx: click.Context, /, **given: Any) -> None:
    """Find changes of performance between versions.

    Each registered profile (the target) is compared with the one of the same configuration in the nearest
    ancestor that has it (the baseline), by the methods that `degradation.strategies` names.
    """
    ctx.meta["given"] = given


def _settled(ctx: click.Context, given: Mapping[str, Any]) -> tuple[Options, Edge]:
    """What was asked for, before or behind the name of the subcommand."""
    both = {name: given[name] or value for name, value in ctx.meta["given"].items()}
    options = Options(both["force"], both["compute_missing"], both["models_type"] or MODELS[0])
    return options, Edge(both["as_json"], both["fail_on"])


@check.command()
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@_options(models_short=True)
@click.pass_context
def head(ctx: click.Context, /, minor: str | None, **given: Any) -> int:
    """Check one version, HEAD by default, against its nearest ancestors that have profiles."""
    from perun.porcelain.check import check_head

    session: Session = ctx.obj
    options, edge = _settled(ctx, given)
    with session.progress(0, "checking") as bar:
        report = check_head(session.repository, minor, options, bar.update)
    return _answer(session, [report], edge, single=True)


@check.command("all")
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@_options(models_short=True)
@click.pass_context
def all_(ctx: click.Context, /, minor: str | None, **given: Any) -> int:
    """Check every version from HASH (HEAD by default) down to the root."""
    from perun.porcelain.check import check_all

    session: Session = ctx.obj
    options, edge = _settled(ctx, given)
    with session.progress(0, "checking") as bar, session.writing_to(bar.out):
        reports = check_all(session.repository, minor, options, bar.update)
        return _answer(session, reports, edge, single=False)


@check.command()
@click.argument("baseline", shell_complete=complete_any)
@click.argument("target", shell_complete=complete_any)
@click.option(
    "--minor",
    "-m",
    metavar="HASH",
    shell_complete=complete_minor,
    help="Look in the index of this version; HEAD by default.",
)
@_options(models_short=False)
@click.pass_context
def profiles(ctx: click.Context, /, baseline: str, target: str, minor: str | None, **given: Any) -> int:
    """Check two profiles, wherever they are: tags, names or paths."""
    from perun.porcelain.check import check_profiles

    session: Session = ctx.obj
    options, edge = _settled(ctx, given)
    comparison = check_profiles(session.repository, baseline, target, minor, options, session.confirm)
    if edge.as_json:
        data = {"schema": "perun.check/1", "comparisons": [comparison_data(comparison)]}
        session.say(json.dumps(data, indent=2))
    else:
        reporter = Reporter(session, single=True)
        reporter.comparison(comparison)
        reporter.summary()
    return _code([comparison], edge)


def _answer(session: Session, reports: Iterable[VersionReport], edge: Edge, *, single: bool) -> int:
    comparisons: list[Comparison] = []
    if edge.as_json:
        _json(session, _collecting(reports, comparisons))
    else:
        reporter = Reporter(session, single=single)
        for report in _collecting(reports, comparisons):
            reporter.version(report)
        reporter.summary()
    return _code(comparisons, edge)


def _collecting(reports: Iterable[VersionReport], seen: list[Comparison]) -> Iterator[VersionReport]:
    for report in reports:
        seen.extend(report.comparisons)
        yield report


def _code(comparisons: Sequence[Comparison], edge: Edge) -> int:
    if edge.fail_on is None:
        return 0
    found = (change.result for comparison in comparisons for change in comparison.changes)
    return int(any(is_degradation(result, edge.fail_on) for result in found))


def _json(session: Session, reports: Iterable[VersionReport]) -> None:
    """One comparison a line, so that a long history can be read as it comes."""
    tally = Tally()
    session.out.write('{"schema": "perun.check/1", "comparisons": [')
    separator = "\n"
    for report in reports:
        tally.add(report)
        if report.failure:
            checksum = report.version.checksum[:10]
            session.warn(f"{checksum}: not all profiles could be collected: {report.failure}")
        for comparison in report.comparisons:
            data = {"minor_version": report.version.checksum, **comparison_data(comparison)}
            session.out.write(separator + json.dumps(data))
            separator = ",\n"
    session.out.write("\n]}\n")
    if tally.nothing_compared:
        session.note(tally.nothing_compared)


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON data; `reason` is null where it was made."""
    target = comparison.target
    return {
        "baseline": comparison.baseline_version.checksum if comparison.baseline_version else None,
        "target_profile": target.source,
        "baseline_profile": comparison.baseline.source if comparison.baseline else None,
        "collector": target.collector,
        "postprocessors": list(target.postprocessors),
        "cmd": target.cmd,
        "args": target.args,
        "workload": target.workload,
        "reason": comparison.reason or None,
        "changes": [
            {"method": result.method, **change_data(change)}
            for result in comparison.results
            for change in result.changes
            if change.result.value
        ],
    }
