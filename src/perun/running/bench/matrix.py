"""The commands that were measured as part of the job matrix: what `--save` writes into `local.yml`."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.config.layers import LOCAL_FILE, Config
from perun.core.config.templates import recognise
from perun.core.errors import PerunError, UsageError
from perun.core.process.command import find_executable
from perun.repository import config as settings
from perun.repository.jobs import texts
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.bench.plan import Benchmark
from perun.running.run.pre_run import commands

BUILD: Final = "execute.pre_run"
REGISTERS: Final = "profiles.register_after_run"
_ELF: Final = b"\x7fELF"
_Jobs = set[tuple[str, str, str]]


class Setting(NamedTuple):
    """A key of `local.yml`, its new value, or the items that its list gets at the end, and these in words."""

    key: str
    value: Any
    what: str


def additions(repo: Repository, benchmarks: Sequence[Benchmark], option: str = "--save") -> list[Setting]:
    """What makes the benchmarks jobs of the matrix; nothing of what is there already.

    :param option: what the user gave, for messages.
    :raises UsageError: where the matrix, which combines each command with each workload, would get other jobs
        as well.
    """
    old = {key: texts(repo.config.get(key)) for key in ("cmds", "args", "workloads")}
    there = _product(old) if old["cmds"] else set()
    wanted = {(one.job.cmd, "", one.job.workload) for one in benchmarks}
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
        Setting(key, items, ", ".join(map(_shown, items)))
        for key in ("workloads", "cmds")
        if (items := new[key][len(old[key]) :])
    ]
    return [*_build(repo, benchmarks), *_collector(repo), *_registering(repo), *found]


def with_build(repo: Repository, wanted: Iterable[Setting]) -> Repository:
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


def write(repo: Repository, wanted: Iterable[Setting]) -> None:
    """Write the settings into `local.yml`, whose comments and order stay.

    :raises ConfigError: where the file cannot be changed.
    """
    for one in wanted:
        if isinstance(one.value, list):
            settings.append_in(repo, one.key, one.value)
        else:
            settings.set_value(repo, one.key, json.dumps(one.value), scope="local")


def _product(lists: Mapping[str, Sequence[str]]) -> _Jobs:
    return set(itertools.product(lists["cmds"], lists["args"] or [""], lists["workloads"] or [""]))


def _united(old: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*old, *more]))


def _collector(repo: Repository) -> list[Setting]:
    units = repo.config.get("collectors") or []
    names = [one if isinstance(one, str) else str(one["name"]) for one in units]
    return [] if "time" in names else [Setting("collectors", [{"name": "time"}], "time")]


def _registering(repo: Repository) -> list[Setting]:
    """Profiles of the matrix are registered as that of `perun bench` is, where nobody has decided that."""
    if repo.config.origin(REGISTERS).name != "defaults":
        return []
    return [Setting(REGISTERS, True, "true")]


def _build(repo: Repository, benchmarks: Iterable[Benchmark]) -> list[Setting]:
    """How the project is built, where a command runs a compiled program of it: other versions have none."""
    if commands(repo) or not any(_is_built(repo, one) for one in benchmarks):
        return []
    build = recognise(repo.working_root, makes_programs=True)
    return [Setting(BUILD, list(build.commands), "; ".join(build.commands))] if build else []


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
