"""What is sent to a machine for one job, as JSON: a version, a command, a collector, and how to build.

Nothing else of the repository goes there but generated files: no plugin, no other configuration, and nothing
of the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from perun.errors import ConfigError, PluginError
from perun.plugin.api import MinorVersion
from perun.plugin.params import to_mapping
from perun.plugin.registry import Registry
from perun.porcelain.pool import generated
from perun.porcelain.repository import Repository
from perun.porcelain.run import workloads
from perun.porcelain.run.checkouts import inside
from perun.porcelain.run.jobs import Job, Unit, make_unit

FORMAT: Final = 2


class Order(NamedTuple):
    """A job of a batch on one version, as it goes to a machine.

    `project` names its commits there. `place` is the folder of the Perun root in a version, `.` for the top.
    `config` holds the keys of `execute`.
    """

    batch: str
    number: int
    project: str
    place: str
    version: MinorVersion
    job: Mapping[str, Any]
    config: Mapping[str, Any]
    format: int = FORMAT

    def as_json(self) -> dict[str, Any]:
        """As JSON; :func:`read` reads it."""
        return {**self._asdict(), "version": list(self.version)}


def read(written: Mapping[str, Any]) -> Order:
    """The order that was sent.

    :raises ConfigError: if it is of another release.
    """
    if written.get("format") != FORMAT:
        raise ConfigError("the job was sent by another release of Perun", "install the same on all machines")
    date, author, email, checksum, desc, parents = written["version"]
    version = MinorVersion(date, author, email, checksum, desc, tuple(parents))
    return Order(**{**written, "version": version})


class Orders:
    """Makes the orders of one batch."""

    def __init__(self, repo: Repository, batch: str, project: str) -> None:
        self._repo = repo
        self._batch = batch
        self._project = project
        self._place = inside(repo).as_posix()
        execute = {key: repo.config.get(f"execute.{key}") for key in ("pre_run", "timeout")}
        self._config = {"execute": execute}

    def make(self, number: int, job: Job, version: MinorVersion) -> Order:
        """The order of a task of the schedule."""
        described = describe(self._repo, job)
        return Order(self._batch, number, self._project, self._place, version, described, self._config)


def describe(repo: Repository, job: Job) -> dict[str, Any]:
    """The job as JSON; :func:`job_of` reads it."""
    made = None
    if job.generated is not None:
        inputs = [generated.described(repo, one) for one in job.generated.inputs]
        made = {**job.generated.describe(), "merged": job.generated.merged, "inputs": inputs}
    return {
        "cmd": job.cmd,
        "args": job.args,
        "workload": job.workload,
        "collector": _unit(job.collector),
        "postprocessors": [_unit(unit) for unit in job.postprocessors],
        "generated": made,
    }


def _unit(unit: Unit) -> list[Any]:
    return [unit.name, to_mapping(unit.params)]


def job_of(repo: Repository, described: Mapping[str, Any]) -> Job:
    """The job that was described.

    :raises PluginError: if this machine lacks a plugin of it. :raises ConfigError: if one has other
        parameters.
    """
    units = [described["collector"], *described["postprocessors"]]
    families = ["collect", *("postprocess" for _ in units[1:])]
    made = [
        make_unit(repo, family, name, params, "the job")
        for family, (name, params) in zip(families, units, strict=True)
    ]
    generated_for = None
    if (given := described["generated"]) is not None:
        inputs = tuple(generated.input_of(repo, written) for written in given["inputs"])
        generated_for = workloads.Generated(
            given["generator"], given["type"], given["seed"], given["merged"], given["content"], inputs
        )
    cmd, args, workload = (str(described[key]) for key in ("cmd", "args", "workload"))
    return Job(cmd, args, workload, made[0], tuple(made[1:]), generated_for)


def folders(described: Mapping[str, Any]) -> set[str]:
    """The names of the folders with generated files that the described job needs."""
    inputs = (described["generated"] or {"inputs": ()})["inputs"]
    return {name for one in inputs if (name := generated.folder_of(one)) is not None}


def check(repo: Repository, jobs: tuple[Job, ...]) -> None:
    """Raise where a job cannot be sent, before anything is measured.

    :raises PluginError: if it needs a plugin of the repository, which is not sent.
    """
    installed = Registry()
    for job in jobs:
        units = [("collect", job.collector), *(("postprocess", unit) for unit in job.postprocessors)]
        for family, unit in units:
            if unit.name.replace("-", "_") not in {
                name.replace("-", "_") for name in installed.names(family)
            }:
                raise PluginError(
                    f"the plugin {unit.name} of {repo.root / '.perun' / 'plugins'} is not sent to a pool",
                    "install it as a package on all machines, or measure without --on",
                )
