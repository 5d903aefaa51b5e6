"""Collecting what is missing before a check (`check --compute-missing`, `degradation.collect_before_check`)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TextIO

from perun.config.schema import is_true
from perun.plugin.api import MinorVersion, Report
from perun.porcelain import lookup
from perun.porcelain.jobs import Job, matrix
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import Event, JobBroke, JobDone, VersionSkipped, run_jobs
from perun.profile.factory import Configuration


def collect_missing(repo: Repository, version: MinorVersion, report: Report) -> bool:
    """Run and register the jobs of the matrix that have no profile in the version; whether any succeeded.

    What happens goes to `.perun/logs/<version>-precollect.log` where `degradation.log_collect` is true, and
    nowhere else; a job that fails leaves its profile missing.
    """
    missing = _missing(repo, version, matrix(repo))
    if not missing:
        return False
    events = run_jobs(repo, missing, [version], register=True, report=report)
    with contextlib.ExitStack() as stack:
        log: TextIO | None = None
        if is_true(repo.config.get("degradation.log_collect")):
            path = repo.root / PERUN_FOLDER / "logs" / f"{version.checksum}-precollect.log"
            path.parent.mkdir(exist_ok=True)
            log = stack.enter_context(path.open("w", encoding="utf-8"))
        collected = False
        for event in events:
            collected = collected or isinstance(event, JobDone)
            if log is not None:
                log.write(_line(event) + "\n")
    return collected


def _missing(repo: Repository, version: MinorVersion, jobs: Sequence[Job]) -> list[Job]:
    present = {info.configuration for info in lookup.registered(repo, version.checksum)}
    return [job for job in jobs if configuration_of(job) not in present]


def configuration_of(job: Job) -> Configuration:
    """The configuration that profiles of the job have."""
    postprocessors = tuple(unit.name.replace("-", "_") for unit in job.postprocessors)
    collector = job.collector.name.replace("-", "_")
    return Configuration(collector, job.cmd, job.args, job.workload, postprocessors)


def _line(event: Event) -> str:
    if isinstance(event, JobDone):
        return f"done    {event.job}: {event.name} ({event.seconds:.2f} s)"
    if isinstance(event, JobBroke):
        return f"failed  {event.job}: {event.error.message}"
    if isinstance(event, VersionSkipped):
        return f"skipped {event.version.checksum}: {event.error.message}"
    return f"version {event.version.checksum} measured in {event.measured_in}"
