"""`perun run` and `perun collect`: measure versions of the project and keep the profiles (manual 3.2.10-12).

The main job: versions -> (a place on the disk, pre_run) -> jobs -> profile -> saved -> registered. Everything
that happens is yielded as an event; nothing is printed here.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perun import machine
from perun.errors import CollectorUnavailable, JobFailed, PerunError, UsageError
from perun.plugin.api import CollectContext, MinorVersion, Report, Run, silent
from perun.plugin.params import to_mapping
from perun.porcelain import postprocessby, saving
from perun.porcelain.jobs import Job
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.versions import Checkouts, Placement, checkouts

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SHOWN_LINES = 10
"""Lines of the output of a failed `pre_run` command that its error shows."""


@dataclass(frozen=True)
class VersionStarted:
    """A version is on the disk and prepared; its jobs come next. `measured_in` is the folder."""

    version: MinorVersion
    measured_in: Path


@dataclass(frozen=True)
class VersionSkipped:
    """A version could not be prepared; none of its jobs ran."""

    version: MinorVersion
    error: PerunError


@dataclass(frozen=True)
class JobDone:
    """A job gave a profile: its file name, and whether it was registered too. `seconds` is the whole job's."""

    version: MinorVersion
    job: Job
    name: str
    path: Path
    registered: bool
    seconds: float


@dataclass(frozen=True)
class JobBroke:
    """A job failed; nothing of it was stored."""

    version: MinorVersion
    job: Job
    error: PerunError


Event = VersionStarted | VersionSkipped | JobDone | JobBroke


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
    placement: Placement = Placement(),
    naming: Naming = Naming(),
    register: bool | None = None,
    report: Report = silent,
    report_inside: Report = silent,
) -> Iterator[Event]:
    """Run every job on every version. A failing job or version is an event, and the others go on.

    :param register: register each profile in the index of its version; as configured where None.
    :param report: told what runs now, jobs done and jobs in all; :param report_inside: told by the collector
        what it does within its job.
    """
    registering = saving.registers_after_run(repo) if register is None else register
    total = len(jobs) * len(versions)
    counter = 0
    with checkouts(repo, placement) as places:
        for position, version in enumerate(versions):
            report(f"preparing {version.checksum[:10]}", position * len(jobs), total)
            try:
                folder = _prepare(repo, places, version)
            except PerunError as error:
                yield VersionSkipped(version, error)
                continue
            yield VersionStarted(version, folder)
            for number, job in enumerate(jobs):
                report(f"{version.checksum[:10]} {job}", position * len(jobs) + number, total)
                started = time.monotonic()
                try:
                    profile = _measure(repo, job, version, folder, report_inside)
                    path = saving.save(
                        repo, profile, version.checksum, name=naming.name, template=naming.template, counter=counter
                    )
                    counter += 1
                    if registering:
                        saving.register(repo, path, profile, version.checksum)
                except PerunError as error:
                    yield JobBroke(version, job, error)
                    continue
                seconds = time.monotonic() - started
                yield JobDone(version, job, path.name, path, registering, seconds)
    report("done", total, total)


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
        done = subprocess.run(
            argv, cwd=folder, env=dict(repo.environ), stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    except OSError as problem:
        raise JobFailed(
            f"execute.pre_run: {command!r} cannot be started: {problem.strerror}",
            "it runs without a shell; write `sh -c '...'` where one is needed",
        ) from None
    if done.returncode:
        lines = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
        raise JobFailed(
            f"execute.pre_run: {command!r} ended with status {done.returncode}\n    " + "\n    ".join(lines),
            f"all of its output: {log}",
        )


def _measure(repo: Repository, job: Job, version: MinorVersion, folder: Path, report: Report) -> Profile:
    collector = repo.registry.get("collect", job.collector.name)
    run = Run(job.cmd, job.args, job.workload, folder, repo.environ, version.checksum)
    temporary = repo.root / PERUN_FOLDER / "tmp"
    temporary.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"collect-{os.getpid()}-", dir=temporary) as scratch:
        described = machine.describe()  # before the run: the load it finds, not the one it makes
        profile: Profile = collector.collect(run, job.collector.params, CollectContext(Path(scratch), report))
    profile["machine"] = described
    profile.setdefault("collector_info", {"name": collector.name, "params": to_mapping(job.collector.params)})
    profile.setdefault("postprocessors", [])
    for unit in job.postprocessors:
        profile = postprocessby.process(repo, profile, unit.name, unit.params)
    return profile


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
    parts = [f"{done} profiles collected", f"{len(errors) - skipped} jobs failed"]
    if skipped:
        parts.append(f"{skipped} versions skipped")
    return JobFailed(", ".join(parts), "the failed jobs stored nothing; their reasons are above")
