"""`perun bench`."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import click

from perun.cli.answers import data as values
from perun.cli.answers.data import write_json
from perun.cli.commands.measuring import MatrixOptions, VersionOptions
from perun.cli.commands.run import run_matrix
from perun.cli.completing import opened
from perun.cli.options import AnswerOptions, CommandOptions, with_options_of
from perun.cli.session import Session
from perun.cli.table import clean, one_line, width
from perun.core.errors import ForeignRepository, NotPerunRepository, UsageError
from perun.core.process.command import exit_status
from perun.core.wording import plural
from perun.history.baseline import BaselineComparison
from perun.measurement import present
from perun.measurement.estimate import sample_of
from perun.plugin.params import param
from perun.profile.amounts import factor, readable
from perun.repository.init import init
from perun.repository.repository import Repository, top_of_git
from perun.running.bench import plan as asked
from perun.running.bench.bench import BenchOutcome, BenchResult, fastest
from perun.running.bench.bench import bench as verb
from perun.running.compare.plan import share
from perun.running.suite.programs import KEY, detected

# What `perun bench` answers: as text, JSON, Markdown and CSV.

_COLUMNS: Final = (
    *("command", "value", "low", "high", "n", "spread", "user", "system", "min", "max"),
    *("ratio", "ratio_low", "ratio_high"),
)
_LEGEND: Final = "since: measured at another time; perun compare measures both in turns, and decides"


def as_text(session: Session, found: BenchOutcome) -> None:
    """Print a line for each command, and below them what several have to do with each other."""
    rows = [_row(session, one) for one in found.results]
    widths = [max((width(row[place]) for row, _ in rows), default=0) for place in range(2)]
    for (title, value), rest in rows:
        first = title + " " * (widths[0] - width(title))
        second = value + " " * (widths[1] - width(value)) if rest else value
        session.say("   ".join(filter(None, (session.paint(first, "bold"), second, rest))))
    if session.verbosity:
        for one in found.results:
            session.say(session.paint(_details(one), "dim"))
    if any(one.ratio for one in found.results):
        _summary(session, found.results)
    if any(map(_since, found.results)):
        session.say(session.paint(_LEGEND, "dim"))


def _row(session: Session, one: BenchResult) -> tuple[tuple[str, str], str]:
    """The title and the value, and what has no column: the difference."""
    value = present.value(one.value, "s")
    return (one_line(one.benchmark.title), value), values.difference_text(
        session, one.judged
    ) if one.judged else ""


def _since(one: BenchResult) -> BaselineComparison | None:
    """The value beside the version before, if there is one."""
    return one.judged if one.judged and one.judged.verdict else None


def _details(one: BenchResult) -> str:
    parts = [f"{name} {readable(amount, 's')}" for name, amount in _others(one).items() if amount is not None]
    return f"  {one_line(one.benchmark.title)}: {', '.join(parts)}"


def _summary(session: Session, results: Sequence[BenchResult]) -> None:
    """The ratios of the slower ones to the fastest, as `1.98x [1.94, 2.02]`."""
    best = fastest(results)
    session.say(f"\n{session.paint(one_line(best.benchmark.title), 'bold')} is the fastest; the others take")
    others = sorted((one for one in results if one.ratio), key=lambda one: one.value.value)
    for one in others:
        session.say(f"  {ratio(one)}  {one_line(one.benchmark.title)}")


def ratio(one: BenchResult) -> str:
    """How many times the fastest a command takes: `1.98x [1.94, 2.02]`; empty for the fastest."""
    if one.ratio is None:
        return ""
    known = one.ratio.high < math.inf
    return factor(one.ratio.difference.ratio, (one.ratio.low, one.ratio.high) if known else None)


def as_json(out: TextIO, found: BenchOutcome) -> None:
    """The answer as JSON, schema `perun.bench/2` (docs/json.md)."""
    write_json(
        out,
        {
            "schema": "perun.bench/2",
            "minor_version": found.version.checksum,
            "uncommitted": found.uncommitted,
            "environment": list(found.conditions),
            "interrupted": found.interruption is not None,
            "benchmarks": [_data(one, found) for one in found.results],
            "saved": [setting.key for setting in found.saved],
        },
    )


def _data(one: BenchResult, found: BenchOutcome) -> dict[str, Any]:
    job = one.benchmark.job
    return {
        "command": one.benchmark.title,
        "cmd": job.cmd,
        "args": job.args,
        "workload": job.workload,
        "parameters": dict(one.benchmark.parameters),
        "measured": {"metric": "real time", **present.value_data(one.value, "s")},
        "precision": None if one.precision is None else 100 * one.precision,
        **_others(one),
        "times": [sample.real for sample in one.samples],
        "exit_codes": [exit_status(sample.status) for sample in one.samples],
        **_ratio_data(one),
        "difference": values.difference_data(one.judged) if one.judged else None,
        "notes": list(one.notes),
        "profile": one.profile or None,
        "registered": bool(one.profile) and not found.uncommitted,
    }


def _ratio_data(one: BenchResult) -> dict[str, float | None]:
    """The ratio to the fastest; null of that itself, and of one command alone."""
    data = {} if one.ratio is None else present.verdict_data(one.ratio)
    return {name: data.get(name) for name in ("ratio", "ratio_low", "ratio_high")}


def as_markdown(out: TextIO, found: BenchOutcome) -> None:
    """A table, as a merge request shows it."""
    several = any(one.ratio for one in found.results)
    since = any(map(_since, found.results))
    titles = ["Command", "Time", "Range", *["Ratio"] * several, *["Since"] * since]
    out.write(f"| {' | '.join(titles)} |\n| :--- |{' ---: |' * (len(titles) - 1)}\n")
    for one in found.results:
        others = _others(one)
        cells = [f"`{_cell(one.benchmark.title)}`", present.value(one.value, "s")]
        cells.append(f"{readable(others['min'], 's')} … {readable(others['max'], 's')}")
        if several:
            cells.append(ratio(one) or "1")
        if since:
            judged = _since(one)
            short = judged.since[: values.SHORT] if judged else ""
            cells.append(f"{values.difference(judged)} since {short}" if judged else "")
        out.write(f"| {' | '.join(cells)} |\n")


def as_csv(out: TextIO, found: BenchOutcome) -> None:
    """One line for each command, times in seconds."""
    parameters = list(dict.fromkeys(name for one in found.results for name in one.benchmark.parameters))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(f"parameter_{name}" for name in parameters)])
    for one in found.results:
        row = {
            "command": one.benchmark.title, **present.value_data(one.value, "s"), **_others(one),
            **_ratio_data(one),
        }  # fmt: skip
        given = [one.benchmark.parameters.get(name, "") for name in parameters]
        writer.writerow([*(row[name] for name in _COLUMNS), *given])


FORMATS: Final[dict[str, Callable[[TextIO, BenchOutcome], None]]] = {
    "json": as_json,
    "markdown": as_markdown,
    "csv": as_csv,
}
"""What writes the answer in each format but text."""
ENDINGS: Final = {".json": "json", ".md": "markdown", ".csv": "csv"}
"""The format that the name of a file stands for."""


def _others(one: BenchResult) -> dict[str, Any]:
    """What else there is to say of the runs: seconds; no spread of a single one."""
    times = [sample.real for sample in one.samples]
    sample = sample_of(times)
    return {
        "user": sum(sample.user for sample in one.samples) / len(times),
        "system": sum(sample.system for sample in one.samples) / len(times),
        "min": min(times),
        "max": max(times),
        "spread": sample.spread * sample.median if sample and sample.spread is not None else None,
    }


def _cell(text: str) -> str:
    return clean(text, keep="").replace("|", "\\|").replace("`", "'")


@dataclass(frozen=True)
class BenchMeasuringOptions:
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
        1,
        formerly=["-w"],
        minimum=0,
        metavar="N",
        help="Run each command N times first, without counting that.",
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
class ExportOptions(AnswerOptions):
    """How the answer leaves the program: with a file, the text is printed all the same."""

    @property
    def name(self) -> str:
        """The format.

        :raises click.UsageError: if two are asked for, or none where a file is to be written.
        """
        if self.named is not None:
            return self.named
        if self.path is None:
            return "text"
        known = ENDINGS.get(self.path.suffix)
        if known is None:
            endings = ", ".join(ENDINGS)
            raise click.UsageError(f"--output {self.path}: give --format, or a name ending with {endings}.")
        return known


@click.command()
@click.argument("commands", metavar="CMD...", nargs=-1)
@click.option("--init", "initializes", is_flag=True, help="First make a Perun repository of this git one.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask whether the benchmarks found are measured.")
@with_options_of(
    CommandOptions,
    "one",
    cmd={"help": "Measure this command, the same as CMD."},
    workload={"short": "", "help": "Its input: last arguments."},
)
@with_options_of(BenchMeasuringOptions, "given")
@with_options_of(
    ExportOptions,
    "answer",
    format={
        "type": click.Choice(("text", *FORMATS), case_sensitive=False),
        "help": "Format of the answer; that of the name of --output by default, else text.",
    },
    output={
        "help": "Write the answer to FILE, too, which is replaced once it is complete; - is standard output."
    },
)
@click.pass_obj
def bench(
    session: Session,
    /,
    commands: tuple[str, ...],
    initializes: bool,
    yes: bool,
    one: CommandOptions,
    given: BenchMeasuringOptions,
    answer: ExportOptions,
) -> None:
    """Measure commands now, and keep the times by commit.

    Each CMD is one command with its arguments, in quotes. They run in the folder of the repository, in turns,
    until the mean of each is known to 2 % or the time is over. The times are registered for the current
    version, and shown beside those of the nearest ancestor; those of uncommitted changes stay pending.

    Without CMD the named benchmarks of the project are measured, where `harnesses` is configured: in rounds,
    beside the version before that was measured, as by perun run matrix --suite. --init finds them.

    \b
    perun bench './prog 1000'
    perun bench './old 1000' './new 1000'              which is faster, and how much
    perun bench './prog {n}' --parameter n=10,100,1000
    perun bench --init --save './prog 1000'            and let perun run matrix measure it from now on
    perun bench --init                                 the benchmarks of Go, pytest, Rust ... that are there
    """
    if one.cmd:
        commands += (" ".join(filter(None, (one.cmd, one.args, one.workload))),)
    elif one.args or one.workload:
        raise click.UsageError("--args and --workload are those of --cmd; CMD has its own in it.")
    if not commands:
        _benchmarks(session, given, answer, initializes=initializes, yes=yes)
        return
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
            FORMATS[name](file, found)
        if file is not None or name == "text":
            as_text(session, found)
        else:
            FORMATS[name](session.out, found)
        _notes(session, found)
        if options.save and (options.prepare or options.conclude):
            session.note("note: perun run matrix does not run what --prepare and --conclude name")
        if found.interruption is not None:
            raise found.interruption


def _benchmarks(
    session: Session,
    given: BenchMeasuringOptions,
    answer: ExportOptions,
    *,
    initializes: bool,
    yes: bool,
) -> None:
    """Measure the suites of the project.

    :raises click.UsageError: where none are configured, or the user does not want those that are there.
    """
    missing = click.UsageError("Missing argument 'CMD...'.")
    plain = BenchMeasuringOptions()
    for one in dataclasses.fields(plain):
        if one.name != "budget" and getattr(given, one.name) != getattr(plain, one.name):
            raise click.UsageError(f"{missing.message[:-1]}: --{one.name.replace('_', '-')} is of commands.")
    if answer.path is not None or answer.name not in ("text", "json"):
        raise click.UsageError(f"{missing.message[:-1]}: of benchmarks there is only text and --json.")
    try:
        repository = _repository(session, initializes)
    except NotPerunRepository:
        if not initializes:
            raise missing from None
        raise
    if not repository.config.get(KEY):
        if not initializes:
            raise missing
        found = detected(repository, repository.working_root)
        if not found:
            raise UsageError(
                f"no benchmarks are found in {repository.working_root}",
                "name a command to measure: perun bench './prog 1000'",
            )
        texts = [f"{name} ({plural(files, 'file')})" for name, files in found.items()]
        if not (yes or _wants(session, texts)):
            raise missing
        asked.write(repository, asked.suites(repository, list(found)))
        session.note(f"{KEY}: {', '.join(found)}; change it with: perun config edit")
        del session.repository  # which has read the configuration before
    options = MatrixOptions(budget=given.budget, suite=True, without_vcs_history=True)
    run_matrix(session, options, VersionOptions(), None, as_json=answer.name == "json")


def _wants(session: Session, found: Sequence[str]) -> bool:
    """Whether the user wants these benchmarks measured, where he can be asked; --init says that he does."""
    if not (sys.stdin.isatty() and session.err.isatty()):
        return True
    question = f"This project has benchmarks of {', '.join(found)}. Measure them?"
    return click.confirm(question, default=True, err=True)


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


def _notes(session: Session, found: BenchOutcome) -> None:
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
