"""`perun check`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from perun.cli.commands.completing import complete_any, complete_minor
from perun.cli.report import Reporter
from perun.cli.session import Session
from perun.porcelain.check import Comparison, Options, VersionReport, is_degradation
from perun.profile.changes import DegradationInfo

MODELS = (
    "best-model",
    "best-param",
    "best-nonparam",
    "all-param",
    "all-nonparam",
    "all-models",
    "best-both",
)


@click.group()
@click.option("--force", "-f", is_flag=True, help="Compare profiles although their configurations differ.")
@click.option("--compute-missing", "-c", is_flag=True, help="Run the job matrix first where a version lacks profiles.")
@click.option("--models-type", "-m", type=click.Choice(MODELS), default="best-model", show_default=True, help="Which models the methods INT and LOC compare.")
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.option("--fail-on", type=click.Choice(["degradation", "maybe"]), help="Exit code 1 where a degradation (with maybe: also a possible one) was found.")
@click.pass_context
def check(
    ctx: click.Context, force: bool, compute_missing: bool, models_type: str, as_json: bool, fail_on: str | None
) -> None:
    """Find changes of performance between versions.

    Each registered profile (the target) is compared with the one of the same configuration in the nearest
    ancestor that has it (the baseline), by the methods that `degradation.strategies` names.
    """
    ctx.meta["options"] = Options(force, compute_missing, models_type)
    ctx.meta["json"] = as_json
    ctx.meta["fail_on"] = fail_on


def _edge(command: Any) -> Any:
    """The options of the group are taken behind its commands too: `check head --json`, as in git."""
    command = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")(command)
    return click.option("--fail-on", type=click.Choice(["degradation", "maybe"]), help="Exit code 1 where one was found.")(command)


@check.command()
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@_edge
@click.pass_context
def head(ctx: click.Context, minor: str | None, as_json: bool, fail_on: str | None) -> int:
    """Check one version, HEAD by default, against its nearest ancestors that have profiles."""
    from perun.porcelain.check import check_head

    session: Session = ctx.obj
    with session.progress(0, "checking") as bar:
        report = check_head(session.repository, minor, ctx.meta["options"], bar.update)
    return _answer(ctx, [report], as_json, fail_on)


@check.command("all")
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@_edge
@click.pass_context
def all_(ctx: click.Context, minor: str | None, as_json: bool, fail_on: str | None) -> int:
    """Check every version from HASH (HEAD by default) down to the root."""
    from perun.porcelain.check import check_all

    session: Session = ctx.obj
    with session.progress(0, "checking") as bar, session.writing_to(bar.out):
        reports = check_all(session.repository, minor, ctx.meta["options"], bar.update)
        return _answer(ctx, reports, as_json, fail_on)


@check.command()
@click.argument("baseline", shell_complete=complete_any)
@click.argument("target", shell_complete=complete_any)
@click.option("--minor", "-m", metavar="HASH", shell_complete=complete_minor, help="Look in the index of this version; HEAD by default.")
@_edge
@click.pass_context
def profiles(
    ctx: click.Context, baseline: str, target: str, minor: str | None, as_json: bool, fail_on: str | None
) -> int:
    """Check two profiles, wherever they are: tags, names or paths."""
    from perun.porcelain.check import check_profiles

    session: Session = ctx.obj
    comparison = check_profiles(
        session.repository, baseline, target, minor, ctx.meta["options"], session.confirm
    )
    if as_json or ctx.meta["json"]:
        session.say(json.dumps({"schema": "perun.check/1", "comparisons": [comparison_data(comparison)]}, indent=2))
    else:
        reporter = Reporter(session)
        reporter.comparison(comparison, "")
        reporter.summary()
    return _code([comparison], fail_on or ctx.meta["fail_on"])


def _answer(ctx: click.Context, reports: Iterable[VersionReport], as_json: bool, fail_on: str | None) -> int:
    session: Session = ctx.obj
    comparisons: list[Comparison] = []
    if as_json or ctx.meta["json"]:
        _json(session, _collecting(reports, comparisons))
    else:
        reporter = Reporter(session)
        for report in _collecting(reports, comparisons):
            reporter.version(report)
        reporter.summary()
    return _code(comparisons, fail_on or ctx.meta["fail_on"])


def _collecting(reports: Iterable[VersionReport], seen: list[Comparison]) -> Iterator[VersionReport]:
    for report in reports:
        seen.extend(report.comparisons)
        yield report


def _code(comparisons: Sequence[Comparison], fail_on: str | None) -> int:
    if fail_on is None:
        return 0
    found = (change.result for comparison in comparisons for change in comparison.changes)
    return int(any(is_degradation(result, maybe=fail_on == "maybe") for result in found))


def _json(session: Session, reports: Iterable[VersionReport]) -> None:
    session.out.write('{"schema": "perun.check/1", "comparisons": [')
    separator = "\n"
    for report in reports:
        for comparison in report.comparisons:
            data = {"minor_version": report.version.checksum, **comparison_data(comparison)}
            session.out.write(separator + json.dumps(data))
            separator = ",\n"
    session.out.write("\n]}\n")


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


def change_data(change: DegradationInfo) -> dict[str, Any]:
    """A change as JSON data."""
    return {
        "result": change.result.name,
        "location": change.location,
        "type": change.type,
        "from": change.from_baseline,
        "to": change.to_target,
        "rate": change.rate_degradation,
        "relative_rate": change.rate_degradation_relative,
        "confidence_type": change.confidence_type,
        "confidence": change.confidence_rate,
    }
