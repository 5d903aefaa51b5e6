"""One job in the folder of one version: run its collector, and describe where the profile comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perun import conditions, machine
from perun.errors import JobFailed
from perun.plugin.api import Answer, CollectContext, Interrupted, MinorVersion, Report, Run, unheard
from perun.plugin.failing import errors_of
from perun.plugin.params import to_mapping
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import pre_run, workloads
from perun.porcelain.run.checkouts import scratch_folder
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.pre_run import environment
from perun.porcelain.run.statistics import VersionStatistics
from perun.porcelain.user import cache_folder

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def collect(
    repo: Repository,
    job: Job,
    version: MinorVersion,
    folder: Path,
    report: Report,
    note: Callable[[str], None],
    answer: Callable[[Answer], None] = unheard,
) -> Profile:
    """The profile that the collector of the job makes of the version in `folder`.

    :param report: called with the activity of the collector, steps done, and steps in all.
    :param note: called with each message of the collector to the user.
    :param answer: called with what the collector was asked for beside a profile.
    :raises NoProfile: where it was asked for nothing else.
    :raises Interrupted: with the incomplete profile, where the collector had one by then.
    """
    run = Run(job.cmd, job.args, job.workload, folder, environment(repo), version.checksum)
    # Before the run: the load it finds, not the one it makes.
    machine_state = describe_machine(repo)
    generated = job.generated
    context = CollectContext(
        folder,  # of its own for each run
        report,
        note,
        _cache(repo, job.collector.name),
        repo.root / PERUN_FOLDER / "logs",
        VersionStatistics(repo, version),
        answer,
    )
    try:
        if generated is None:
            profile = _run_collector(repo, job, run, context)
        elif generated.merged:
            profile = workloads.merge(_each_workload(repo, job, run, generated.inputs, context))
        else:
            profile = _run_collector(repo, job, run._replace(workload=generated.inputs[0].text), context)
    except Interrupted as interruption:
        if generated is not None and generated.merged:  # it is of one of the workloads, not of them all
            raise (interruption.__cause__ or KeyboardInterrupt()) from None
        complete(interruption.profile, job, machine_state)
        raise
    return complete(profile, job, machine_state)


def describe_machine(repo: Repository) -> dict[str, Any]:
    """What a profile that is measured now says of the machine, and of how versions are built on it."""
    return {
        **machine.describe(),
        "conditions": conditions.lasting(),
        "build": pre_run.build(repo),
    }


def complete(profile: Profile, job: Job, machine_state: Mapping[str, Any]) -> Profile:
    """The profile with what every collector would say the same of.

    What was measured is the job's to say, whatever the collector says: profiles without their command would
    be compared with those of another one.
    """
    measured = {"cmd": job.cmd, "args": job.args, "workload": job.workload}
    profile["header"] = {**(profile.get("header") or {}), **measured}
    if job.generated is not None:
        profile["workload_generator"] = job.generated.describe()
    profile["machine"] = machine_state
    params = to_mapping(job.collector.params)
    profile.setdefault("collector_info", {"name": job.collector.name, "params": params})
    profile.setdefault("postprocessors", [])
    return profile


def _each_workload(
    repo: Repository,
    job: Job,
    run: Run,
    inputs: Sequence[workloads.Input],
    context: CollectContext,
) -> Iterator[tuple[workloads.Input, Profile]]:
    """The profiles of one workload after the other."""
    for number, one in enumerate(inputs, 1):
        which = f"workload {number} of {len(inputs)}"

        def report_workload(activity: str, done: int, total: int, which: str = which) -> None:
            context.report(f"{which}: {activity}", done, total)

        own = context._replace(report=report_workload)
        yield one, _run_collector(repo, job, run._replace(workload=one.text), own)


def _run_collector(repo: Repository, job: Job, run: Run, context: CollectContext) -> Profile:
    collector = repo.registry.get("collect", job.collector.name)
    with scratch_folder(repo) as scratch:
        own = context._replace(scratch=scratch)
        with errors_of(collector, f"the collector {collector.name!r}", JobFailed):
            profile: Profile = collector.collect(run, job.collector.params, own)
    return profile


def _cache(repo: Repository, name: str) -> Path | None:
    """The folder of the user for what a collector keeps from run to run; None if there is none."""
    folder = cache_folder(repo.environ)
    return folder and folder / name
