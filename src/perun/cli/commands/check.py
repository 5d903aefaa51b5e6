"""`perun check`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TextIO

import click

from perun.cli.answers.check import FORMATS, answer_in
from perun.cli.answers.check.wording import CheckAnswer, CheckTally, Page, command_of, plain
from perun.cli.completing import complete_any, complete_minor, opened
from perun.cli.options import (
    VERSION,
    AnswerOptions,
    minor_option,
    since_option,
    version_argument,
    with_options_of,
)
from perun.cli.progress import Progress
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import PerunError
from perun.history.check.report import (
    INCONCLUSIVE,
    LEVELS,
    NOTHING_COMPARED,
    CheckExitCode,
    Comparison,
    ComparisonOptions,
    VersionReport,
)
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo
from perun.profile.helpers import ProfileInfo
from perun.profile.uid import uid_in
from perun.repository.lookup import ProfileLocation, load, parse_tag, registered
from perun.repository.repository import Repository
from perun.running.run.execute import collect_missing

MODELS = (
    "best-model",
    "best-param",
    "best-nonparam",
    "all-param",
    "all-nonparam",
    "all-models",
    "best-both",
)
LISTED_TROUBLES = 10
"""Errors that are listed one by one on standard error."""


@dataclass(frozen=True)
class OutputOptions:
    """The format of the answer, the file it goes to, and which changes make the exit code 1."""

    format: str
    output: Path | None
    fail_on: str | None


@dataclass(frozen=True)
class VerdictOptions(AnswerOptions):
    """The options of what answers as `check` does."""

    fail_on: str | None = param(
        None,
        choices=tuple(LEVELS),
        help="Exit with code 1 on a degradation; maybe: also on a possible one; severe: only on those; "
        f"inconclusive: and with code {INCONCLUSIVE} where something could not be decided. Any of them: with "
        f"code {NOTHING_COMPARED} where nothing was compared.",
    )

    @property
    def destination(self) -> OutputOptions:
        """How the answer leaves the program.

        :raises click.UsageError: if two formats are asked for.
        """
        return OutputOptions(self.named or "text", self.path, self.fail_on)


FORMAT: Final[Mapping[str, Any]] = {
    "type": click.Choice(tuple(FORMATS), case_sensitive=False),
    "help": "Format of the answer: text by default, for people; manual has lines for scripts to parse.",
}
"""What `--format` of these is."""


@dataclass(frozen=True)
class CheckOptions(VerdictOptions):
    """The options of `check`, before or behind the name of the subcommand, as in git."""

    force: bool = param(
        False,
        short="-f",
        help="Compare profiles even if their configurations or machines differ, or one is incomplete.",
    )
    compute_missing: bool = param(
        False, short="-c", help="Run the job matrix first if a version lacks profiles."
    )
    models_type: str | None = param(
        None, short="-m", choices=MODELS, help="Which models INT and LOC compare; best-model by default."
    )
    ignore: tuple[str, ...] = param(
        (),
        metavar="REGEX",
        help="Ignore changes at locations that REGEX matches; may be repeated.",
    )

    def over(self, before: CheckOptions) -> CheckOptions:
        """These options, completed by those in front of the subcommand."""
        both = {name: value or getattr(before, name) for name, value in vars(self).items()}
        return CheckOptions(**both | {"ignore": before.ignore + self.ignore})

    @property
    def options(self) -> ComparisonOptions:
        """How to compare.

        :raises click.UsageError: if one of `ignore` is not a regular expression.
        """
        try:
            ignore = tuple(map(re.compile, self.ignore))
        except re.error as problem:
            message = f"{problem.pattern!r} is not a regular expression: {problem}"
            raise click.BadParameter(message, param_hint="'--ignore'") from None
        return ComparisonOptions(
            self.force, self.compute_missing, self.models_type or MODELS[0], ignore, collect_missing
        )


def _with_check_options(models_short: str = "-m") -> Callable[[Any], Any]:
    """Give a command the options of :class:`CheckOptions`, as its keyword `given`."""
    return with_options_of(CheckOptions, "given", models_type={"short": models_short}, format=FORMAT)


@click.group()
@_with_check_options()
@click.pass_context
def check(ctx: click.Context, /, given: CheckOptions) -> None:
    """Find changes of performance between versions.

    Each registered profile (the target) is compared with the one of the same configuration in the nearest
    ancestor that has it (the baseline), by the methods that `degradation.strategies` names.
    """
    ctx.meta["given"] = given


@check.command()
@version_argument(short="")
@click.option(
    "--baseline",
    metavar=VERSION,
    shell_complete=complete_minor,
    help="Compare with this version, e.g. a release, or the nearest of its ancestors that has profiles.",
)
@_with_check_options()
@click.pass_context
def head(ctx: click.Context, /, minor: str | None, baseline: str | None, given: CheckOptions) -> int:
    """Check one version, HEAD by default, against its nearest ancestors that have profiles."""
    from perun.history.check.check import check_head

    given = given.over(ctx.meta["given"])
    options, destination = given.options, given.destination
    words = ["check", "head", *([minor] if minor else []), *(["--baseline", baseline] if baseline else [])]
    with answering(ctx.obj, destination, words) as (writer, bar):
        report = check_head(_repository(ctx), minor, options, bar.update, baseline, _note(ctx))
        writer.version(report)
    return writer.code


@check.command("all")
@version_argument(short="")
@since_option()
@_with_check_options()
@click.pass_context
def all_(ctx: click.Context, /, minor: str | None, since: str | None, given: CheckOptions) -> int:
    """Check every version from VERSION (HEAD by default) down to the root, or to `--since`."""
    from perun.history.check.check import check_all

    given = given.over(ctx.meta["given"])
    options, destination = given.options, given.destination
    words = ["check", "all", *([minor] if minor else []), *(["--since", since] if since else [])]
    with answering(ctx.obj, destination, words, single=False) as (writer, bar):
        for version in check_all(_repository(ctx), minor, options, bar.update, _note(ctx), since):
            writer.version(version)
    return writer.code


@check.command()
@click.argument("base", shell_complete=complete_minor)
@click.argument("target", shell_complete=complete_minor)
@_with_check_options()
@click.pass_context
def diff(ctx: click.Context, /, base: str, target: str, given: CheckOptions) -> int:
    """Check version TARGET against version BASE, any two of them.

    Profiles are paired by their configuration; nothing is stored.
    """
    from perun.history.check.check import check_diff

    given = given.over(ctx.meta["given"])
    options, destination = given.options, given.destination
    with answering(ctx.obj, destination, ["check", "diff", base, target]) as (writer, bar):
        writer.version(check_diff(_repository(ctx), base, target, options, bar.update, _note(ctx)))
    return writer.code


@check.command()
@click.argument("baseline", shell_complete=complete_any)
@click.argument("target", shell_complete=complete_any)
@minor_option()
@_with_check_options(models_short="")
@click.pass_context
def profiles(
    ctx: click.Context, /, baseline: str, target: str, minor: str | None, given: CheckOptions
) -> int:
    """Check two profiles, wherever they are: tags, names or paths, also of versions (`HEAD~1:0@i`)."""
    from perun.history.check.check import check_profiles

    session: Session = ctx.obj
    given = given.over(ctx.meta["given"])
    options, destination = given.options, given.destination
    words = ["check", "profiles", baseline, target, *(["--minor", minor] if minor else [])]
    # No progress beside a question to the user.
    named = _with_version(baseline, minor), _with_version(target, minor)
    with answering(session, destination, words, progress="", profiles=named) as (writer, _):
        writer.pair(check_profiles(_repository(ctx), baseline, target, minor, options, session.confirm))
    return writer.code


def _with_version(spec: str, minor: str | None) -> str:
    """The profile as it is named without `--minor`."""
    tag = parse_tag(spec)
    return f"{minor}:{spec}" if minor and tag and tag.kind == "i" and tag.revision is None else spec


def _repository(ctx: click.Context) -> Repository:
    session: Session = ctx.obj
    return session.repository


def _note(ctx: click.Context) -> Callable[[str], None]:
    """Tells the user something before the answer."""
    session: Session = ctx.obj
    return lambda text: session.note(f"note: {one_line(text)}")


@contextmanager
def answering(
    session: Session,
    destination: OutputOptions,
    words: Iterable[str],
    *,
    single: bool = True,
    progress: str = "checking",
    verbose: bool = False,
    profiles: tuple[str, str] | None = None,
) -> Iterator[tuple[AnswerWriter, Progress]]:
    """The writer of the answer to the command `words`, and what gets the progress.

    :param progress: the title of that; empty for none. :param verbose: also what did not change.
    :param profiles: baseline and target as the user named them, where two profiles are compared.

    Where the block raises, the answer ends there, and its file stays as it was.
    """
    with (
        _output(destination.output) as file,
        session.progress(0, progress, enabled=bool(progress)) as bar,
        session.writing_to(bar.out),
    ):
        page = Page(
            out=bar.out if file is None else file,
            command=shlex.join(words),
            paint=session.paint if file is None else plain,
            verbose=verbose or session.verbosity > 0,
            single=single,
            level=destination.fail_on or "degradation",
            describe=partial(_description, session),
            head=_current(session) if destination.format == "text" else "",
            profiles=profiles,
            place=ChangePlaces(session),
        )
        writer = AnswerWriter(destination.fail_on, partial(answer_in, destination.format, page))
        yield writer, bar
        writer.end()
    if destination.output is not None:
        session.say(f"{writer.tally.summary(session.paint)}; see {one_line(str(destination.output))}")
    elif destination.format not in ("text", "manual") and writer.tally.nothing_compared:
        session.note(writer.tally.nothing_compared)
    if destination.format not in ("text", "manual", "markdown") or destination.output is not None:
        for incomplete in list(writer.tally.incomplete)[:LISTED_TROUBLES]:
            session.warn(incomplete)
    writer.report_troubles(session)


def write_report(
    session: Session,
    name: str,
    path: Path,
    report: VersionReport,
    level: str,
    explained: Mapping[str, tuple[str, int]] = MappingProxyType({}),
) -> None:
    """Write one version to a file, in one of the formats. :param level: of `--fail-on`. :param explained: see
    :class:`ChangePlaces`."""
    with opened(path) as file:
        words = ["check", "diff", *(f"{report.version.checksum}^", report.version.checksum)]
        bases = {one.baseline_version.checksum for one in report.comparisons if one.baseline_version}
        if len(bases) == 1:
            words[2] = bases.pop()
        describe = partial(_description, session)
        place = ChangePlaces(session, explained)
        page = Page(file, shlex.join(words), level=level, describe=describe, place=place)
        answer = answer_in(name, page)
        answer.version(report)
        answer.end()


class ChangePlaces:
    """Where what changed is in the sources, for formats that have annotations.

    :param explained: by command, or by benchmark of a suite, the file and line that explains it.
    """

    def __init__(
        self, session: Session, explained: Mapping[str, tuple[str, int]] = MappingProxyType({})
    ) -> None:
        self._session = session
        self._explained = explained
        self._of_functions = lru_cache(1)(self._lines)

    def __call__(self, minor: str, comparison: Comparison, change: DegradationInfo) -> tuple[str, int] | None:
        """What explains a benchmark; the first line of a function, if profiles of the version have its lines;
        what explains the command.

        :param minor: the version of the target; empty where it has none.
        """
        name = uid_in(change.location)
        found = self._explained.get(name)
        if found is None and name != comparison.target.head.cmd:
            found = self._of_functions(minor, comparison.target).get(name.removesuffix(":inclusive"))
        return found or self._explained.get(command_of(comparison.target))

    def _lines(self, minor: str, target: ProfileInfo) -> dict[str, tuple[str, int]]:
        from perun.profile.lines import first_lines

        repository = self._session.repository
        found: dict[str, tuple[str, int]] = {}
        try:
            for info in registered(repository, minor) if minor else [target]:
                if info.configuration == target.configuration:  # they were compared together
                    for name, place in first_lines(load(repository, ProfileLocation(info))).items():
                        found[name] = min(found.get(name, place), place)
        except PerunError:  # who compares it says so
            pass
        return {name: place for name, place in found.items() if not place[0].startswith("/")}


def _current(session: Session) -> str:
    """The checksum of the current version; empty where there is none."""
    try:
        return session.repository.version(None)
    except PerunError:
        return ""


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with opened(path) as file:
        yield file


class AnswerWriter:
    """Writes what was found to the answer, and counts it for the exit code and the summary."""

    def __init__(self, fail_on: str | None, make: Callable[[], CheckAnswer]) -> None:
        self.tally = CheckTally()
        self._troubles: dict[str, PerunError] = {}
        self._unlisted = 0
        self._verdict = CheckExitCode(fail_on)
        self._make = make

    def version(self, report: VersionReport) -> None:
        """Write a version."""
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
        """Write two profiles."""
        self.tally.add_pair(comparison)
        self._verdict.add(comparison)
        self._note(comparison.error)
        self.answer.pair(comparison)

    def end(self) -> None:
        """The check is complete."""
        self.answer.end()

    @cached_property
    def answer(self) -> CheckAnswer:
        """The answer, which begins with the first result: if the check fails before, it has not begun."""
        return self._make()

    @property
    def code(self) -> int:
        """The exit code."""
        return self._verdict.code

    def report_troubles(self, session: Session) -> None:
        """Print what is damaged or could not be measured to standard error, as the exit code reports it."""
        for message, error in self._troubles.items():
            session.trace(error)
            session.fail(message, error.hint)
        if self._unlisted:
            session.note(f"and {self._unlisted} more")

    def _note(self, error: PerunError | None, where: str = "") -> None:
        if error is None or where + error.message in self._troubles:
            return
        if len(self._troubles) < LISTED_TROUBLES:
            self._troubles[where + error.message] = error
        else:
            self._unlisted += 1


def _description(session: Session, method: str) -> str:
    try:
        return session.registry.help("check", method)
    except PerunError:
        return ""
