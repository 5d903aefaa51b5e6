"""What is measured: the commands, each with every combination of the values of its parameters."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from perun.core.errors import UsageError
from perun.core.process.command import split
from perun.plugin.api import Run
from perun.repository.jobs import Job, PluginConfig

# What the user of `perun bench` asks for.

SHELLS: Final = ("none", "sh")
SECONDS: Final = 10.0
"""Budget of each command, where the user gives none for all of them together."""
MIN_RUNS: Final = 3
"""Runs of each command, however long they take: fewer tell nothing of how much they vary."""
FIRST_LOOK: Final = 10
"""Runs before which no interval is narrow enough: it is too uncertain itself."""
PRECISION: Final = 0.02


@dataclass(frozen=True)
class BenchOptions:
    """How to measure.

    :ivar commands: each with its arguments, as one text. :ivar parameters: names with their values, which are
        put in for `{NAME}`.
    :ivar precision: half the width of the interval of the mean, as a share of it, at which a command is
        measured well enough. :ivar budget: seconds for all; None for :data:`SECONDS` for each command.
    :ivar runs: of each command; then neither precision nor budget end it. :ivar min_runs: and
        :ivar max_runs: of each command, else.
    :ivar warmup: runs of each command that are not counted.
    :ivar prepare: a command that runs before each run, :ivar conclude: after each, :ivar cleanup: after all
        runs of a command. :ivar input: a file for standard input.
    :ivar shell: `none`, or `sh`, which runs all of these commands then.
    :ivar save: write the commands into the job matrix.
    """

    commands: tuple[str, ...]
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    precision: float = PRECISION
    budget: float | None = None
    runs: int | None = None
    min_runs: int = MIN_RUNS
    max_runs: int | None = None
    warmup: int = 1
    prepare: str = ""
    conclude: str = ""
    cleanup: str = ""
    input: str = ""
    shell: str = SHELLS[0]
    ignore_failure: bool = False
    save: bool = False


def parameter(text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the values of `NAME=a,b,c`.

    :raises UsageError: where it is not of that form.
    """
    name, equals, values = text.partition("=")
    found = tuple(values.split(","))
    if not name.isidentifier() or not equals or not all(found):
        what = f"--parameter {text!r} is not of the form NAME=a,b,c"
        raise UsageError(what, "e.g. --parameter n=10,100,1000")
    return name, tuple(dict.fromkeys(found))


TIME: Final = PluginConfig("time", None)
"""The collector of the profiles; how often it ran is known afterwards."""


class Benchmark(NamedTuple):
    """One command that is measured.

    :param title: the command as the user wrote it, with the values of its parameters.
    :param job: its configuration; the part of the command from the first parameter on is the workload, so
        that profiles of several values are one command with several workloads.
    :param prepare: and :param conclude: and :param cleanup: are commands, empty for none.
    """

    title: str
    job: Job
    parameters: Mapping[str, str]
    prepare: str = ""
    conclude: str = ""
    cleanup: str = ""

    @property
    def run(self) -> Run:
        """The command without the place where it runs."""
        return Run(self.job.cmd, self.job.args, self.job.workload)


def plan(options: BenchOptions) -> list[Benchmark]:
    """The commands in the order in which they were given; nothing runs.

    :raises UsageError: where a command is empty, has an unclosed quote or an operator that only a shell
        knows, or where a parameter is not used.
    """
    known = dict(options.parameters)
    if len(known) < len(options.parameters):
        raise UsageError("--parameter: a name is given twice", "list all values at once: NAME=a,b,c")
    texts = [*options.commands, options.input]
    for name in known:
        if not any(_placeholder(name) in text for text in texts):
            raise UsageError(
                f"--parameter {name}: no command holds {_placeholder(name)}, so that profiles of its values "
                "could not be told apart",
                f"write it where the values belong: perun bench './prog {_placeholder(name)}' -P {name}=...",
            )
    return [one for command in options.commands for one in _benchmarks(command, options, known)]


def _benchmarks(
    command: str, options: BenchOptions, known: Mapping[str, tuple[str, ...]]
) -> Iterator[Benchmark]:
    used = [name for name in known if _placeholder(name) in command + options.input]
    for values in itertools.product(*(known[name] for name in used)):
        chosen = dict(zip(used, values, strict=True))
        cmd, workload = _configuration(command, options, chosen)
        title = " ".join(filter(None, (_filled(command, chosen), _stdin(options, chosen))))
        hooks = (options.prepare, options.conclude, options.cleanup)
        for name in known:
            if name not in used and _placeholder(name) in " ".join(hooks):
                raise UsageError(
                    f"--prepare, --conclude or --cleanup holds {_placeholder(name)}, {command!r} does not",
                    "measure this command apart from the others",
                )
        prepare, conclude, cleanup = (_as_run(_filled(hook, chosen), options.shell) for hook in hooks)
        found = Benchmark(title, Job(cmd, "", workload, TIME), chosen, prepare, conclude, cleanup)
        found.run.command()
        yield found


def _configuration(command: str, options: BenchOptions, values: Mapping[str, str]) -> tuple[str, str]:
    """The command and the workload of the profiles."""
    whole = _filled(command, values)
    if not whole.strip():
        raise UsageError("a command is empty", "give it as one word with its arguments: './prog 1000'")
    _as_run(whole, options.shell)  # a part of it would hide an operator
    if options.shell != "none" or options.input:
        return _as_run(whole, options.shell), _stdin(options, values)
    before, after = _split_at_parameter(command, values)
    return _filled(before, values), _filled(after, values)


def _split_at_parameter(command: str, names: Mapping[str, str]) -> tuple[str, str]:
    """The command before the first word that holds a parameter, and the rest."""
    places = [command.find(_placeholder(name)) for name in names]
    first = min((place for place in places if place >= 0), default=len(command) + 1)
    for blank in reversed([found.start() for found in re.finditer(r"\s", command) if found.start() < first]):
        before = command[:blank].strip()
        if first <= len(command) and before and _is_whole(before):
            return before, command[blank:].strip()
    return command.strip(), ""


def _is_whole(text: str) -> bool:
    """Whether no quote is open at the end."""
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True


def _as_run(text: str, shell: str) -> str:
    """The command as it is run and stored.

    :raises UsageError: where it cannot be split, or needs a shell and has none.
    """
    if shell != "none":
        return f"{shell} -c {shlex.quote(text)}" if text else ""
    try:
        split("command", text)
    except UsageError as problem:
        if not _is_whole(text):
            raise
        hint = "run it by a shell: --shell sh  (or put quotes around what is an argument"
        raise UsageError(problem.message, f"{hint}; a file for standard input: --input FILE)") from None
    return text.strip()


def _stdin(options: BenchOptions, values: Mapping[str, str]) -> str:
    """The workload that gives the file as standard input; empty without a file."""
    return f"< {shlex.quote(_filled(options.input, values))}" if options.input else ""


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(_placeholder(name), value)
    return text


def _placeholder(name: str) -> str:
    return f"{{{name}}}"
