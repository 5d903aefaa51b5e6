"""`perun check`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TextIO

import click

from perun.cli.answers.check import FORMATS, answer_in
from perun.cli.answers.check.page import Answer, Page, plain
from perun.cli.answers.check.tally import Tally
from perun.cli.commands.completing import complete_any, complete_minor, minor_option
from perun.cli.output import opened
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.errors import PerunError
from perun.porcelain.check.report import LEVELS, Comparison, Options, Verdict, VersionReport
from perun.porcelain.repository import Repository

MODELS = (
    "best-model",
    "best-param",
    "best-nonparam",
    "all-param",
    "all-nonparam",
    "all-models",
    "best-both",
)
TOLD_TROUBLES = 10
"""Troubles that are told one by one on standard error."""


@dataclass(frozen=True)
class Edge:
    """How the answer leaves the program: in which format, where to, and what makes the exit code 1."""

    format: str
    output: Path | None
    fail_on: str | None


def _compiled(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(map(re.compile, value))
    except re.error as problem:
        message = f"{problem.pattern!r} is not a regular expression: {problem}"
        raise click.BadParameter(message, ctx, param) from None


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
        click.option(
            "--ignore",
            multiple=True,
            callback=_compiled,
            metavar="REGEX",
            help="Leave out what is found at locations in which REGEX is found; may be repeated.",
        ),
        click.option("--format", type=click.Choice(list(FORMATS)), help="How to answer; text by default."),
        click.option("--json", "as_json", is_flag=True, help="Answer as JSON: short for --format json."),
        click.option(
            "--output",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Write the answer to FILE, which is replaced once it is complete; - is standard output.",
        ),
        click.option(
            "--fail-on",
            type=click.Choice(list(LEVELS)),
            help="Exit code 1 where a degradation was found; maybe: also a possible one; severe: only those.",
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
    ignore = (*ctx.meta["given"]["ignore"], *given["ignore"])
    options = Options(both["force"], both["compute_missing"], both["models_type"] or MODELS[0], ignore)
    if both["as_json"] and both["format"] not in (None, "json"):
        raise click.UsageError(f"--json and --format {both['format']} contradict each other.")
    name = "json" if both["as_json"] else both["format"] or "text"
    output = both["output"] if str(both["output"]) != "-" else None
    return options, Edge(name, output, both["fail_on"])


@check.command()
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@click.option(
    "--baseline",
    metavar="REV",
    shell_complete=complete_minor,
    help="Compare with this version, e.g. a release, or the nearest of its ancestors that has profiles.",
)
@_options(models_short=True)
@click.pass_context
def head(ctx: click.Context, /, minor: str | None, baseline: str | None, **given: Any) -> int:
    """Check one version, HEAD by default, against its nearest ancestors that have profiles."""
    from perun.porcelain.check.check import check_head

    options, edge = _settled(ctx, given)
    words = ["check", "head", *([minor] if minor else []), *(["--baseline", baseline] if baseline else [])]
    with _answering(ctx.obj, edge, words) as (told, report):
        told.version(check_head(_repository(ctx), minor, options, report, baseline))
    return told.code


@check.command("all")
@click.argument("minor", metavar="[HASH]", required=False, shell_complete=complete_minor)
@_options(models_short=True)
@click.pass_context
def all_(ctx: click.Context, /, minor: str | None, **given: Any) -> int:
    """Check every version from HASH (HEAD by default) down to the root."""
    from perun.porcelain.check.check import check_all

    options, edge = _settled(ctx, given)
    words = ["check", "all", *([minor] if minor else [])]
    with _answering(ctx.obj, edge, words, single=False) as (told, report):
        for version in check_all(_repository(ctx), minor, options, report):
            told.version(version)
    return told.code


@check.command()
@click.argument("base", shell_complete=complete_minor)
@click.argument("target", shell_complete=complete_minor)
@_options(models_short=True)
@click.pass_context
def diff(ctx: click.Context, /, base: str, target: str, **given: Any) -> int:
    """Check version TARGET against version BASE, any two of them.

    Profiles are paired by their configuration; nothing is stored.
    """
    from perun.porcelain.check.check import check_diff

    options, edge = _settled(ctx, given)
    with _answering(ctx.obj, edge, ["check", "diff", base, target]) as (told, report):
        told.version(check_diff(_repository(ctx), base, target, options, report))
    return told.code


@check.command()
@click.argument("baseline", shell_complete=complete_any)
@click.argument("target", shell_complete=complete_any)
@minor_option()
@_options(models_short=False)
@click.pass_context
def profiles(ctx: click.Context, /, baseline: str, target: str, minor: str | None, **given: Any) -> int:
    """Check two profiles, wherever they are: tags, names or paths."""
    from perun.porcelain.check.check import check_profiles

    session: Session = ctx.obj
    options, edge = _settled(ctx, given)
    words = ["check", "profiles", baseline, target, *(["--minor", minor] if minor else [])]
    # Who has to confirm which profile is meant needs no progress beside the question.
    with _answering(session, edge, words, progress=False) as (told, _):
        told.pair(check_profiles(_repository(ctx), baseline, target, minor, options, session.confirm))
    return told.code


def _repository(ctx: click.Context) -> Repository:
    session: Session = ctx.obj
    return session.repository


@contextmanager
def _answering(
    session: Session, edge: Edge, words: Iterable[str], *, single: bool = True, progress: bool = True
) -> Iterator[tuple[_Told, Callable[[str, int, int], None]]]:
    """The answer to the command `words`, and where its progress is reported; the block tells what was found.

    Where the block raises, the answer is left as it is, and a file that it would be written to as it was.
    """
    with (
        _output(edge.output) as file,
        session.progress(0, "checking", enabled=progress) as bar,
        session.writing_to(bar.out),
    ):
        page = Page(
            out=bar.out if file is None else file,
            command=shlex.join(words),
            paint=session.paint if file is None else plain,
            verbose=session.verbosity > 0,
            single=single,
            level=edge.fail_on or "degradation",
            describe=partial(_description, session),
        )
        told = _Told(edge.fail_on, partial(answer_in, edge.format, page))
        yield told, bar.update
        told.end()
    if edge.output is not None:
        session.say(f"{told.tally.summary(session.paint)}; see {one_line(str(edge.output))}")
    elif edge.format != "text" and told.tally.nothing_compared:
        session.note(told.tally.nothing_compared)
    told.tell_troubles(session)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with opened(path) as file:
        yield file


class _Told:
    """Passes on to the answer what was found, and counts it for the exit code and the last words."""

    def __init__(self, fail_on: str | None, make: Callable[[], Answer]) -> None:
        self.tally = Tally()
        self._troubles: dict[str, str] = {}
        self._untold = 0
        self._verdict = Verdict(fail_on)
        self._make = make

    def version(self, report: VersionReport) -> None:
        """Tell of a version."""
        self.tally.add(report)
        self._verdict.add(report)
        for error in report.errors:
            unmeasured = error.message in report.failure
            where = f"{report.version.checksum[:10]}: not all profiles could be collected: "
            self._note(error, where if unmeasured else "")
        for comparison in report.comparisons:
            self._note(comparison.error)
        self.answer.version(report)

    def pair(self, comparison: Comparison) -> None:
        """Tell of two profiles."""
        self.tally.add_pair(comparison)
        self._verdict.add(comparison)
        self._note(comparison.error)
        self.answer.pair(comparison)

    def end(self) -> None:
        """All was told."""
        self.answer.end()

    @cached_property
    def answer(self) -> Answer:
        """The answer, which begins once there is something to tell: where the check fails before, it has
        not begun."""
        return self._make()

    @property
    def code(self) -> int:
        """The exit code."""
        return self._verdict.code

    def tell_troubles(self, session: Session) -> None:
        """What is damaged or could not be measured, on standard error, as the exit code speaks of it."""
        for message, hint in self._troubles.items():
            session.fail(message, hint)
        if self._untold:
            session.note(f"and {self._untold} more")

    def _note(self, error: PerunError | None, where: str = "") -> None:
        if error is None or where + error.message in self._troubles:
            return
        if len(self._troubles) < TOLD_TROUBLES:
            self._troubles[where + error.message] = error.hint
        else:
            self._untold += 1


def _description(session: Session, method: str) -> str:
    try:
        return session.registry.help("check", method)
    except PerunError:
        return ""
