"""`perun run` and `perun collect`: measure versions of the project and keep the profiles (manual 3.2.10-12).

The main job: versions -> (a place on the disk, pre_run) -> jobs -> profile -> saved -> registered. Everything
that happens is yielded as an event; nothing is printed here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perun import machine
from perun.errors import CollectorUnavailable, JobFailed, PerunError, UsageError
from perun.plugin.api import CollectContext, MinorVersion, PostprocessContext, Report, Run, silent
from perun.plugin.params import to_mapping
from perun.porcelain import postprocessby, saving
from perun.porcelain.jobs import Job
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.versions import IN_A_COPY, Checkouts, Placement, checkouts

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SHOWN_LINES = 10
"""Lines of the output of a failed `pre_run` command that its error shows."""
GRACE = 2.0
"""Seconds that an interrupted `pre_run` command has to tidy up, e.g. make to remove a half-made target."""
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH",
)
"""Set inside a hook of git: a git that the measured version calls would work on the user's index."""


@dataclass(frozen=True)
class VersionStarted:
    """A version is on the disk and prepared; its jobs come next. `measured_in` is the folder.

    `leaves_changes_out`: it is the current version, measured without the uncommitted changes to it.
    """

    version: MinorVersion
    measured_in: Path
    leaves_changes_out: bool = False


@dataclass(frozen=True)
class VersionSkipped:
    """A version could not be prepared; none of its jobs ran."""

    version: MinorVersion
    error: PerunError


@dataclass(frozen=True)
class JobDone:
    """A job gave a profile: its file name, and whether it was registered. `seconds` is the whole job's.

    `notes` is what its collector and its postprocessors told the user.
    """

    version: MinorVersion
    job: Job
    name: str
    path: Path
    registered: bool
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobBroke:
    """A job failed; nothing of it was stored."""

    version: MinorVersion
    job: Job
    error: PerunError


@dataclass(frozen=True)
class ChangesPutAside:
    """Measuring the version in place changed tracked files; the changes are kept by the version control."""

    version: MinorVersion


Event = VersionStarted | VersionSkipped | JobDone | JobBroke | ChangesPutAside


@dataclass(frozen=True)
class Naming:
    """How profiles are named: one fixed name, or a template other than the configured one."""

    name: str | None = None
    template: str | None = None


def run_jobs(
    repo: Repository,
    jobs: Sequence[Job],
    versions: Sequence[MinorVersion],
    *,
    placement: Placement = IN_A_COPY,
    naming: Naming = Naming(),
    register: bool | None = None,
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """Run every job on every version. A failing job or version is an event, and the others go on.

    :param register: register each profile in the index of its version; as configured where None.
    :param report: told what runs now, jobs done and jobs in all; :param report_inside: told by the collector
        what it does within its job.
    """
    saving.check_naming(repo, naming.name, naming.template)
    batch = _Batch(repo, naming, saving.registers_after_run(repo) if register is None else register)
    total = len(jobs) * len(versions)
    with checkouts(repo, placement) as places:
        for position, version in enumerate(versions):
            done = position * len(jobs)
            report(f"preparing {version.checksum[:10]}", done, total)
            try:
                folder = _prepare(repo, places, version)
            except PerunError as error:
                if not places.usable:
                    raise
                yield VersionSkipped(version, error)
            else:
                yield VersionStarted(version, folder, places.leaves_changes_out(version.checksum))
                for number, job in enumerate(jobs, done):
                    report(f"{version.checksum[:10]} {job}", number, total)
                    yield batch.run(job, version, folder, report_inside)
            if places.put_aside():
                yield ChangesPutAside(version)
    report("done", total, total)


class _Batch:
    """Runs jobs one after the other, and keeps their profiles."""

    def __init__(self, repo: Repository, naming: Naming, registering: bool) -> None:
        self._repo = repo
        self._naming = naming
        self._registering = registering
        self._counter = 0

    def run(self, job: Job, version: MinorVersion, folder: Path, report: Report) -> JobDone | JobBroke:
        started = time.monotonic()
        repo, naming = self._repo, self._naming
        notes: list[str] = []
        try:
            profile = _measure(repo, job, version, folder, report, notes.append)
            for unit in job.postprocessors:
                context = PostprocessContext(report, notes.append)
                profile = postprocessby.process(repo, profile, unit.name, unit.params, context)
            path = saving.save(
                repo,
                profile,
                version.checksum,
                name=naming.name,
                template=naming.template,
                counter=self._counter,
            )
            self._counter += 1
            if self._registering:
                saving.register(repo, path, profile, version.checksum)
        except PerunError as error:
            return JobBroke(version, job, error)
        seconds = time.monotonic() - started
        return JobDone(version, job, path.name, path, self._registering, seconds, tuple(notes))


def _prepare(repo: Repository, places: Checkouts, version: MinorVersion) -> Path:
    folder = places.enter(version.checksum)
    commands = repo.config.get("execute.pre_run") or []
    if commands:
        log = repo.root / PERUN_FOLDER / "logs" / f"{version.checksum}-pre-run.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("wb") as file:
            for command in [commands] if isinstance(commands, str) else commands:
                _pre_run(str(command), folder, repo, file, log)
    return folder


def _pre_run(command: str, folder: Path, repo: Repository, file: Any, log: Path) -> None:
    try:
        argv = shlex.split(command)
    except ValueError as problem:
        raise UsageError(f"execute.pre_run: {command!r} cannot be split: {problem}") from None
    if not argv:
        return
    file.write(f"$ {command}\n".encode())
    file.flush()
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=_environment(repo),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            process_group=0,  # so that what it starts can be ended with it
        )
    except OSError as problem:
        raise JobFailed(
            f"execute.pre_run: {command!r} cannot be started in {folder}: {problem.strerror}",
            "it runs without a shell; write `sh -c '...'` where one is needed",
        ) from None
    try:
        status = process.wait()
    except BaseException:
        _end(process)
        raise
    if status:
        lines = log.read_text(errors="replace").rpartition(f"$ {command}\n")[2].splitlines()
        shown = ["the end of its output:", *("  " + line for line in lines[-SHOWN_LINES:])] if lines else []
        how = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        raise JobFailed(
            "\n".join([f"execute.pre_run: {command!r} {how}", *shown]), f"all of its output: {log}"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it started: politely, then not."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        time.sleep(GRACE / 20)  # for those that it did not wait for
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(repo: Repository) -> dict[str, str]:
    return {name: value for name, value in repo.environ.items() if name not in _OF_A_HOOK}


def _measure(
    repo: Repository,
    job: Job,
    version: MinorVersion,
    folder: Path,
    report: Report,
    note: Callable[[str], None],
) -> Profile:
    collector = repo.registry.get("collect", job.collector.name)
    run = Run(job.cmd, job.args, job.workload, folder, _environment(repo), version.checksum)
    temporary = repo.root / PERUN_FOLDER / "tmp"
    temporary.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"collect-{os.getpid()}-", dir=temporary) as scratch:
        described = machine.describe()  # before the run: the load it finds, not the one it makes
        context = CollectContext(Path(scratch), report, note, _cache(repo, collector.name))
        profile: Profile = collector.collect(run, job.collector.params, context)
    profile["machine"] = described
    profile.setdefault("collector_info", {"name": collector.name, "params": to_mapping(job.collector.params)})
    profile.setdefault("postprocessors", [])
    return profile


def _cache(repo: Repository, name: str) -> Path | None:
    """The folder of the user for what a collector keeps from run to run, by the XDG base directories."""
    home = repo.environ.get("HOME", "")
    folder = repo.environ.get("XDG_CACHE_HOME", "") or os.path.join(home, ".cache")
    return Path(folder, "perun", name) if os.path.isabs(folder) else None


def failure_of(events: Sequence[Event]) -> PerunError | None:
    """The error that the verb should end with: None where every job gave a profile.

    One unavailable collector keeps its own exit code; any other failure is a :class:`JobFailed`.
    """
    errors = [event.error for event in events if isinstance(event, (JobBroke, VersionSkipped))]
    if not errors:
        return None
    if all(isinstance(error, CollectorUnavailable) for error in errors):
        return errors[0]
    done = sum(isinstance(event, JobDone) for event in events)
    skipped = sum(isinstance(event, VersionSkipped) for event in events)
    counts = [_count(done, "profile", "collected"), _count(len(errors) - skipped, "job", "failed")]
    counts.append(_count(skipped, "version", "skipped"))
    first = errors[0].message.partition("\n")[0]
    beginning = "the first: " if len(errors) > 1 else ""
    return JobFailed(
        f"{', '.join(filter(None, counts)) or 'nothing collected'}; {beginning}{first}",
        "a failed job stores nothing; the others are stored",
    )


def _count(number: int, noun: str, verb: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)} {verb}" if number else ""
