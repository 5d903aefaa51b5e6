"""`execute.pre_run`: the commands that prepare a version, such as its build, before its jobs (manual 7.3)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from perun.core import atomic
from perun.core.config.layers import item_place
from perun.core.errors import ConfigError, DamagedStore, JobFailed, UsageError
from perun.core.process.command import exit_status, outcome, split
from perun.core.process.execution import Execution
from perun.core.regular import open_for_writing
from perun.plugin.api import Run
from perun.repository.jobs import texts
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.store import tree

_KEY = "execute.pre_run"
SHOWN_LINES = 10
"""Lines of the output of a failed command that its error shows."""
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH",
)
"""Set inside a hook of git: a git that the measured version calls would work on the user's index."""

_BUILD = ("CC", "CXX", "CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS")
"""Variables that make, CMake, meson and most scripts build by."""


class PreparationFailed(JobFailed):
    """A command of `execute.pre_run` ended by itself and said that it failed: it would do so again."""


def commands(repo: Repository) -> list[str]:
    """The commands of `execute.pre_run`, as they are written.

    :raises ConfigError: names file and line of one that cannot be split, or that needs a shell.
    """
    found = []
    for position, command in enumerate(texts(repo.config.get(_KEY))):
        try:
            words = split("command", command)
        except UsageError as problem:
            place = item_place(repo.config, _KEY, position)
            raise ConfigError(f"{place}: {_KEY}: {problem.message}", problem.hint) from None
        if words:
            found.append(command)
    return found


def build(repo: Repository) -> str:
    """What decides how a version is built, as one text: profiles of unlike builds are not comparable.

    It names the compilers and flags of the environment that there are. Of `execute.pre_run` it has a checksum
    only, as commands may hold what is not to be published with a profile.
    """
    from hashlib import sha256

    parts = [f"{name}={repo.environ[name]}" for name in _BUILD if repo.environ.get(name)]
    prepared_by = "\n".join(commands(repo))
    if prepared_by:
        parts.append(f"execute.pre_run {sha256(prepared_by.encode()).hexdigest()[:8]}")
    return " ".join(parts) or "as usual"


def run_commands(repo: Repository, version: str, folder: Path) -> None:
    """Run the commands in `folder`; their output goes to `.perun/logs/<version>-pre-run.log`.

    :raises PreparationFailed: if a command ends with a status other than 0.
    :raises JobFailed: if a command cannot start, or a signal kills it.
    """
    prepared_by = commands(repo)
    if not prepared_by:
        return
    log = repo.root / PERUN_FOLDER / "logs" / f"{version}-pre-run.log"
    log.parent.mkdir(exist_ok=True)
    try:
        with open_for_writing(log) as file:
            for command in prepared_by:
                _run_command(command, folder, repo, file, log)
    except OSError as problem:
        problem.filename = problem.filename or str(log)  # the system names no file when the disk is full
        raise


def _run_command(command: str, folder: Path, repo: Repository, file: BinaryIO, log: Path) -> None:
    file.write(f"$ {command}\n".encode())
    file.flush()
    run = Run(command, cwd=folder, environ=environment(repo))
    seconds = max(float(repo.config.get("execute.timeout")), 0.0)
    try:
        with Execution(run, log.parent, seconds, output=file.fileno()) as execution:
            sample = execution.record()
    except JobFailed as problem:
        raise JobFailed(
            f"execute.pre_run: {problem.message}",
            "it runs without a shell; write `sh -c '...'` if one is needed",
        ) from None
    if sample.interruption is not None:
        raise sample.interruption
    if sample.early:
        raise JobFailed(
            f"execute.pre_run: {command!r} did not end within {seconds:g} s",
            f"set execute.timeout to more; its output: {log}",
        )
    status = sample.status
    if status:
        lines = log.read_text(errors="replace").rpartition(f"$ {command}\n")[2].splitlines()
        shown = ["the end of its output:", *("  " + line for line in lines[-SHOWN_LINES:])] if lines else []
        killed = os.WIFSIGNALED(status)
        how = outcome(status) if killed else f"ended with status {exit_status(status)}"
        # A kill may have a cause outside the command, such as too little memory: it is worth another try.
        raise (JobFailed if killed else PreparationFailed)(
            "\n".join([f"execute.pre_run: {command!r} {how}", *shown]), f"all of its output: {log}"
        )


def environment(repo: Repository) -> dict[str, str]:
    """The environment of the user, without the variables that git sets inside its hooks."""
    return {name: value for name, value in repo.environ.items() if name not in _OF_A_HOOK}


# The record of preparations: versions that `execute.pre_run` failed on, and how long it takes.
#
# It is the file `.perun/cache/preparations.json`, with one part for each list of commands: a version that one
# list of commands cannot build may well build with another.

MAX_VERSIONS = 20
"""Durations that are kept: enough for a typical one, and few enough to follow when a build gets slower."""


class PreparationRecord:
    """What one repository records of the commands that are configured now."""

    def __init__(self, repo: Repository) -> None:
        self._path = repo.root / PERUN_FOLDER / "cache" / "preparations.json"
        self._lock = repo.store.lock
        written = "\0".join(commands(repo))
        self._has_commands = bool(written)
        self._key = tree.sha1(written.encode("utf-8", "surrogateescape")).hex()
        self._known = self._read().get(self._key, {})

    def why_broken(self, version: str) -> str:
        """How preparing the version failed; empty if it is not known to fail."""
        return str(self._part("broken").get(version, ""))

    @property
    def seconds(self) -> float | None:
        """How long preparing a version usually takes; None if that is not known."""
        from statistics import median

        known = [one for one in self._part("seconds").values() if isinstance(one, (int, float))]
        return median(known) if known else None

    def failed(self, version: str, why: str) -> None:
        """Remember that the version cannot be prepared."""
        self._record("broken", version, why)

    def succeeded(self, version: str, seconds: float) -> None:
        """Remember that it can, and how long that took."""
        if self._has_commands:
            self._record("seconds", version, round(seconds, 3), forget="broken")

    def _record(self, part: str, version: str, value: Any, forget: str = "") -> None:
        with self._lock():
            content = self._read()
            self._known = content.setdefault(self._key, {})
            values = {**self._part(part)}
            values.pop(version, None)  # so that it comes last
            values[version] = value
            if part == "seconds":
                values = dict(list(values.items())[-MAX_VERSIONS:])
            self._known[part] = values
            if forget:
                self._known[forget] = {one: why for one, why in self._part(forget).items() if one != version}
            with suppress(OSError):  # without it only time is lost
                atomic.write(self._path, json.dumps(content, indent=1).encode())

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self._known.get(name)
        return part if isinstance(part, dict) else {}

    def _read(self) -> dict[str, Any]:
        with suppress(DamagedStore, ValueError, RecursionError):
            content = json.loads(tree.read(self._path) or b"{}")
            if isinstance(content, dict) and all(isinstance(one, dict) for one in content.values()):
                return content
        return {}
