"""What is measured: the commands, each with every combination of the values of its parameters."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.config.layers import LOCAL_FILE, Config
from perun.core.config.templates import recognise
from perun.core.errors import PerunError, UsageError
from perun.core.process.command import find_executable, split
from perun.plugin.api import Run
from perun.repository import config as settings
from perun.repository.jobs import Job, PluginConfig, combinations, texts
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.run.pre_run import commands

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


# The commands that were measured as part of the job matrix: what `--save` writes into `local.yml`.

BUILD: Final = "execute.pre_run"
REGISTERS: Final = "profiles.register_after_run"
_ELF: Final = b"\x7fELF"
_Jobs = set[tuple[str, str, str]]


class SettingChange(NamedTuple):
    """A key of `local.yml`, its new value, or the items that its list gets at the end, and these in words."""

    key: str
    value: Any
    what: str


def additions(
    repo: Repository, benchmarks: Sequence[Benchmark], option: str = "--save"
) -> list[SettingChange]:
    """What makes the benchmarks jobs of the matrix; nothing of what is there already.

    :param option: what the user gave, for messages.
    :raises UsageError: where the matrix, which combines each command with each workload, would get other jobs
        as well.
    """
    old = {key: texts(repo.config.get(key)) for key in ("cmds", "args", "workloads")}
    there = _product(old) if old["cmds"] else set()
    wanted = {(one.job.cmd, one.job.args, one.job.workload) for one in benchmarks}
    new = {**old, "cmds": _united(old["cmds"], (one.job.cmd for one in benchmarks))}
    workloads = _united(old["workloads"], (one.job.workload for one in benchmarks))
    if old["workloads"] or workloads != [""]:
        new["workloads"] = workloads
    made = _product(new)
    more, less = sorted(made - there - wanted), sorted(wanted - made)
    if more or less:
        odd = " ".join(filter(None, (more or less)[0]))
        problem = f"it would also run {odd!r}" if more else f"it would not run {odd!r}"
        raise UsageError(
            f"{option}: the job matrix in {_file(repo)} runs each of its cmds with each of its args and "
            f"workloads; with these commands {problem}",
            f"leave {option} out, or change the matrix: perun config edit",
        )
    found = [
        SettingChange(key, items, ", ".join(map(_shown, items)))
        for key in ("workloads", "cmds")
        if (items := new[key][len(old[key]) :])
    ]
    return [*_build(repo, benchmarks), *_collector(repo), *_registering(repo), *found]


def suites(repo: Repository, harnesses: Sequence[str]) -> list[SettingChange]:
    """What makes the benchmarks of these harnesses be measured from now on."""
    units = [{"name": name} for name in harnesses]
    return [*_registering(repo), SettingChange("harnesses", units, ", ".join(harnesses))]


def with_build(repo: Repository, wanted: Iterable[SettingChange]) -> Repository:
    """The repository as it is once the build is among its settings; nothing is written."""
    build = next((one.value for one in wanted if one.key == BUILD), None)
    if build is None:
        return repo
    layers = []
    for layer in repo.config.layers:
        if layer.name == "local":
            section = layer.values.get("execute")
            execute = {**(section if isinstance(section, Mapping) else {}), "pre_run": build}
            layer = layer._replace(values={**layer.values, "execute": execute})
        layers.append(layer)
    return repo._replace(config=Config(tuple(layers)))


def write(repo: Repository, wanted: Iterable[SettingChange]) -> None:
    """Write the settings into `local.yml`, whose comments and order stay.

    :raises ConfigError: where the file cannot be changed.
    """
    for one in wanted:
        if isinstance(one.value, list):
            settings.append_in(repo, one.key, one.value)
        else:
            settings.set_value(repo, one.key, json.dumps(one.value), scope="local")


def _product(lists: Mapping[str, Sequence[str]]) -> _Jobs:
    return set(combinations(lists))


def _united(old: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*old, *more]))


def _collector(repo: Repository) -> list[SettingChange]:
    units = repo.config.get("collectors") or []
    names = [one if isinstance(one, str) else str(one["name"]) for one in units]
    return [] if "time" in names else [SettingChange("collectors", [{"name": "time"}], "time")]


def _registering(repo: Repository) -> list[SettingChange]:
    """Profiles of the matrix are registered as that of `perun bench` is, where nobody has decided that."""
    if repo.config.origin(REGISTERS).name != "defaults":
        return []
    return [SettingChange(REGISTERS, True, "true")]


def _build(repo: Repository, benchmarks: Iterable[Benchmark]) -> list[SettingChange]:
    """How the project is built, where a command runs a compiled program of it: other versions have none."""
    if commands(repo) or not any(_is_built(repo, one) for one in benchmarks):
        return []
    build = recognise(repo.working_root, makes_programs=True)
    return [SettingChange(BUILD, list(build.commands), "; ".join(build.commands))] if build else []


def _is_built(repo: Repository, benchmark: Benchmark) -> bool:
    """Whether the command runs a compiled program that lies in the project."""
    try:
        program = find_executable(benchmark.run.command().argv[0], repo.working_root, repo.environ)
        with open(program, "rb") as file:
            is_compiled = file.read(len(_ELF)) == _ELF
    except (PerunError, OSError):
        return False
    return is_compiled and Path(os.path.realpath(program)).is_relative_to(repo.working_root.resolve())


def _file(repo: Repository) -> Path:
    return repo.root / PERUN_FOLDER / LOCAL_FILE


def _shown(text: str) -> str:
    return text or "(none)"
