"""`perun bench`."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from perun.cli.answers import bench as answers
from perun.cli.answers import measured as values
from perun.cli.options import with_options_of
from perun.cli.output import opened
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.errors import ForeignRepository, NotPerunRepository, UsageError
from perun.plugin.params import param
from perun.porcelain.bench import options as asked
from perun.porcelain.bench.bench import Outcome
from perun.porcelain.bench.bench import bench as verb
from perun.porcelain.compare.options import share
from perun.porcelain.init import init
from perun.porcelain.repository import Repository, top_of_git
from perun.wording import plural


@dataclass(frozen=True)
class MeasuringOptions:
    """How often the commands run, and what goes with them."""

    runs: int | None = param(
        None, short="-r", minimum=1, metavar="N", help="Run each command N times, however precise that is."
    )
    min_runs: int = param(asked.MIN_RUNS, minimum=1, metavar="N", help="Run each command N times at least.")
    max_runs: int | None = param(None, minimum=1, metavar="N", help="Run each command N times at most.")
    precision: str | None = param(
        None,
        metavar="SHARE",
        help="Measure until the mean is known to so much, with 95 % confidence; 2% by default.",
    )
    budget: float | None = param(
        None,
        metavar="SECONDS",
        help=f"Time for measuring; {asked.SECONDS:g} for each command by default.",
    )
    warmup: int = param(
        1, short="-w", minimum=0, metavar="N", help="Run each command N times first, without counting that."
    )
    prepare: str = param("", short="-p", metavar="CMD", help="Run CMD before each run.")
    conclude: str = param("", metavar="CMD", help="Run CMD after each run.")
    cleanup: str = param("", metavar="CMD", help="Run CMD after all runs of a command.")
    shell: str = param(
        asked.SHELLS[0],
        short="-S",
        choices=asked.SHELLS,
        help="What runs all commands that are given here; none: they are split as by a shell, without one.",
    )
    parameter: tuple[str, ...] = param(
        (),
        short="-P",
        metavar="NAME=A,B,C",
        help="Measure with each of these values in place of {NAME}; may be repeated, for all combinations.",
    )
    input: str = param("", metavar="FILE", help="Give FILE to each command as its standard input.")
    ignore_failure: bool = param(
        False, short="-i", help="Go on if a command fails, and keep the exit code of each run."
    )
    save: bool = param(False, help="Write the commands into the job matrix of the repository.")

    def of(self, commands: tuple[str, ...]) -> asked.BenchOptions:
        """These options for some commands.

        :raises UsageError: if they contradict each other, or one is of a wrong form.
        """
        if self.budget is not None and not self.budget > 0:
            raise click.BadParameter(f"{self.budget:g} is no time", param_hint="'--budget'")
        if self.max_runs is not None and self.max_runs < self.min_runs:
            raise UsageError(
                f"--max-runs {self.max_runs} is less than --min-runs {self.min_runs}",
                "give both, or --runs N for a fixed number",
            )
        return asked.BenchOptions(
            commands,
            tuple(asked.parameter(one) for one in self.parameter),
            asked.PRECISION if self.precision is None else share(self.precision, "--precision"),
            self.budget,
            self.runs,
            self.min_runs,
            self.max_runs,
            self.warmup,
            self.prepare,
            self.conclude,
            self.cleanup,
            self.input,
            self.shell,
            self.ignore_failure,
            self.save,
        )


@dataclass(frozen=True)
class AnswerOptions:
    """How the answer leaves the program."""

    format: str | None = param(
        None,
        choices=("text", *answers.FORMATS),
        help="Format of the answer; that of the name of --output by default, else text.",
    )
    as_json: bool = param(False, long="--json", help="Answer as JSON: short for --format json.")
    output: str | None = param(
        None,
        metavar="FILE",
        help="Write the answer to FILE, too, which is replaced once it is complete; - is standard output.",
    )

    @property
    def path(self) -> Path | None:
        """The file that the answer goes to; None for standard output alone."""
        return None if self.output in (None, "-") else Path(self.output)

    @property
    def name(self) -> str:
        """The format.

        :raises click.UsageError: if two are asked for, or none where a file is to be written.
        """
        if self.as_json and self.format not in (None, "json"):
            raise click.UsageError(f"--json and --format {self.format} contradict each other.")
        if self.as_json or self.format:
            return "json" if self.as_json else str(self.format)
        if self.path is None:
            return "text"
        known = answers.ENDINGS.get(self.path.suffix)
        if known is None:
            endings = ", ".join(answers.ENDINGS)
            raise click.UsageError(f"--output {self.path}: give --format, or a name ending with {endings}.")
        return known


@click.command()
@click.argument("commands", metavar="CMD...", nargs=-1, required=True)
@click.option("--init", "initializes", is_flag=True, help="First make a Perun repository of this git one.")
@with_options_of(MeasuringOptions, "given")
@with_options_of(AnswerOptions, "answer", output={"type": click.Path()})
@click.pass_obj
def bench(
    session: Session,
    /,
    commands: tuple[str, ...],
    initializes: bool,
    given: MeasuringOptions,
    answer: AnswerOptions,
) -> None:
    """Measure commands now, and keep the times by commit.

    Each CMD is one command with its arguments, in quotes. They run in the folder of the repository, in turns,
    until the mean of each is known to 2 % or the time is over. The times are registered for the current
    version, and shown beside those of the nearest ancestor; those of uncommitted changes stay pending.

    \b
    perun bench './prog 1000'
    perun bench './old 1000' './new 1000'              which is faster, and how much
    perun bench './prog {n}' --parameter n=10,100,1000
    perun bench --init --save './prog 1000'            and let perun run matrix measure it from now on
    """
    options, name = given.of(commands), answer.name
    if answer.path is not None and name == "text":
        raise click.UsageError("--output: the format text is for the terminal; give json, markdown or csv.")
    repository = _repository(session, initializes)
    if session.cwd.resolve() != repository.working_root.resolve():
        session.note(f"note: commands run in {one_line(str(repository.working_root))}")
    # Opened before: nobody measures for minutes to learn that the file cannot be written.
    with contextlib.nullcontext() if answer.path is None else opened(answer.path) as file:
        with session.progress(0, "measuring") as bar:
            found = verb(repository, options, bar.update, bar.expect)
        if file is not None:
            answers.FORMATS[name](file, found)
        if file is not None or name == "text":
            answers.as_text(session, found)
        else:
            answers.FORMATS[name](session.out, found)
        _notes(session, found)
        if options.save and (options.prepare or options.conclude):
            session.note("note: perun run matrix does not run what --prepare and --conclude name")
        if found.interruption is not None:
            raise found.interruption


def _repository(session: Session, initializes: bool) -> Repository:
    """The repository that the user stands in, which is made where he wants that.

    :raises NotPerunRepository: says how to make one.
    """
    try:
        return session.repository
    except ForeignRepository:
        raise
    except NotPerunRepository as problem:
        top = top_of_git(session.cwd)
        if top is None or (top / ".perun").exists():
            if top is None:
                problem.hint = "times are kept by commit: git init, commit, and then perun bench --init"
            raise
        if not initializes and not _confirms(session, top):
            raise NotPerunRepository(
                f"{top} is a git repository, but not a Perun repository yet",
                "make it one with: perun bench --init ...  (or: perun init)",
            ) from None
    done = init(top, session.environ, asks=session.ask_trust)
    session.note(f"Initialized empty Perun repository in {one_line(str(done.repository.root / '.perun'))}")
    return session.repository


def _confirms(session: Session, top: Path) -> bool:
    if not (sys.stdin.isatty() and session.err.isatty()):
        return False
    question = f"{one_line(str(top))} is not a Perun repository yet. Make it one?"
    return click.confirm(question, default=True, err=True)


def _notes(session: Session, found: Outcome) -> None:
    """What is odd, and what became of the profiles."""
    for condition in found.conditions:
        session.note(f"environment: {condition}")
    for one in found.results:
        for note in one.notes:
            session.note(f"note: {one_line(one.benchmark.title)}: {one_line(note)}")
    short = found.version.checksum[: values.SHORT]
    profiles = [one.profile for one in found.results if one.profile]
    if found.interruption is not None:
        session.note("interrupted: this is what was measured by then; nothing is stored")
    elif found.uncommitted:
        count = plural(len(profiles), "profile")
        session.note(f"stored {count} of uncommitted changes: pending, not registered in {short}")
    else:
        what = one_line(profiles[0]) if len(profiles) == 1 else plural(len(profiles), "profile")
        session.note(f"registered in {short}: {what}")
    for setting in found.saved:
        session.note(f"set {setting.key} in .perun/local.yml: {one_line(setting.what)}")
