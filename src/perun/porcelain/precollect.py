"""Collecting before a check what is missing (`check --compute-missing`, `degradation.collect_before_check`)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TextIO

from perun.config.schema import is_true
from perun.plugin.api import MinorVersion, Report
from perun.porcelain import lookup
from perun.porcelain.jobs import Job, matrix
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import (
    ChangesPutAside,
    Event,
    JobBroke,
    JobDone,
    VersionSkipped,
    VersionStarted,
    run_jobs,
)
from perun.profile.factory import Configuration


def collect_missing(repo: Repository, versions: Sequence[MinorVersion], report: Report) -> dict[str, str]:
    """Run and register, for each version, the jobs of the matrix that it has no profile of.

    What happens goes to `.perun/logs/<version>-precollect.log` where `degradation.log_collect` is true, and
    nowhere else; a job that fails leaves its profile missing.

    :return: by checksum of the version, why the first of its jobs that failed did so.
    :raises ConfigError: where the job matrix is empty or wrong.
    """
    jobs = matrix(repo)
    failures: dict[str, str] = {}
    for version in versions:
        missing = _missing(repo, version, jobs)
        if not missing:
            continue
        with _log(repo, version) as log:
            for event in run_jobs(repo, missing, [version], register=True, report=report):
                if isinstance(event, (JobBroke, VersionSkipped)):
                    failures.setdefault(version.checksum, event.error.message)
                if log is not None:
                    log.write(_line(event) + "\n")
                    log.flush()
    return failures


def _log(repo: Repository, version: MinorVersion) -> contextlib.AbstractContextManager[TextIO | None]:
    if not is_true(repo.config.get("degradation.log_collect")):
        return contextlib.nullcontext()
    path = repo.root / PERUN_FOLDER / "logs" / f"{version.checksum}-precollect.log"
    path.parent.mkdir(exist_ok=True)
    return path.open("w", encoding="utf-8", errors="backslashreplace")


def _missing(repo: Repository, version: MinorVersion, jobs: Sequence[Job]) -> list[Job]:
    present = {info.configuration for info in lookup.registered(repo, version.checksum)}
    return [job for job in jobs if configuration_of(job) not in present]


def configuration_of(job: Job) -> Configuration:
    """The configuration that profiles of the job have."""
    postprocessors = tuple(unit.name.replace("-", "_") for unit in job.postprocessors)
    collector = job.collector.name.replace("-", "_")
    return Configuration(collector, job.cmd, job.args, job.workload, postprocessors)


def _line(event: Event) -> str:
    match event:
        case VersionStarted():
            return f"version {event.version.checksum} measured in {event.measured_in}"
        case VersionSkipped():
            return f"skipped {event.version.checksum}: {event.error.message}"
        case JobDone():
            return f"done    {event.job}: {event.name} ({event.seconds:.2f} s)"
        case JobBroke():
            return f"failed  {event.job}: {event.error.message}"
        case ChangesPutAside():
            return f"changes of tracked files were kept after {event.version.checksum}"
