"""What is sent to a machine for one job, as JSON: a version, a command, a collector, and how to build.

Nothing else of the repository goes there but generated files: no plugin, no other configuration, and nothing
of the environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from perun.core.errors import ConfigError, JobFailed, PluginError, UsageError
from perun.core.regular import open_for_writing, open_regular
from perun.plugin.api import MinorVersion
from perun.plugin.params import to_mapping
from perun.plugin.registry import Registry
from perun.repository import workloads
from perun.repository.copies import inside
from perun.repository.jobs import Job, PluginConfig, make_unit
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.repository.workloads import Input
from perun.running.pool.folders import RESULTS_KEPT

# Files that workload generators made, as jobs name them: here, on their way, and on a machine.
#
# They lie in folders of `.perun/tmp/workloads` that are named after what they hold. So a machine knows
# whether it has them, and takes in nothing else under such a name; a job finds them at the same paths in each
# run.

MAX_ARCHIVE: Final = 1 << 40


def home(repo: Repository) -> Path:
    """The folder that they are all in."""
    return repo.root / PERUN_FOLDER / "tmp" / workloads.FOLDER


def described(repo: Repository, one: Input) -> list[Any]:
    """An input as it is sent: a file by its place in :func:`home`, anything else as it is."""
    start, path = _parts(one.text)
    if path is not None and path.is_relative_to(home(repo)):
        return [start, one.amount, path.relative_to(home(repo)).as_posix()]
    return [one.text, one.amount]


def input_of(repo: Repository, written: Sequence[Any]) -> Input:
    """The input that was described, as commands on this machine get it."""
    text, amount, *place = written
    if place:
        text += shlex.quote(str(home(repo) / place[0]))
    return Input(text, amount)


def folder_of(written: Sequence[Any]) -> str | None:
    """The name of the folder with the file of a described input; None if it is no file."""
    return PurePosixPath(written[2]).parts[0] if len(written) == 3 else None


def _parts(text: str) -> tuple[str, Path | None]:
    start = "< " if text.startswith("< ") else ""
    try:
        words = shlex.split(text.removeprefix(start))
    except ValueError:
        return start, None
    return start, Path(words[0]) if len(words) == 1 else None


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of the archive below the folder; there are no links, which could lead out of it."""
    for member in archive:
        place = PurePosixPath(member.name)
        content = archive.extractfile(member) if member.isreg() else None
        if content is None or place.is_absolute() or ".." in place.parts:
            raise UsageError(f"{member.name!r} cannot be a generated file")
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_for_writing(path) as file:
            shutil.copyfileobj(content, file)
        path.chmod(member.mode & 0o700)


class MachineFiles:
    """The generated files that a machine has of a project."""

    def __init__(self, repo: Repository) -> None:
        self._home = home(repo)
        self._home.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the folder of that name is there; it is kept for some time then."""
        folder = self._folder(name)
        if not folder.is_dir():
            return False
        os.utime(folder)
        return True

    def check(self, name: str) -> None:
        """See that the files are those of the name.

        :raises JobFailed: if they are not, as a program has changed them; they are removed.
        """
        folder = self._folder(name)
        if not (folder.is_dir() and name.endswith(f"-{workloads.checksum_of(folder)}")):
            shutil.rmtree(folder, ignore_errors=True)
            raise JobFailed(
                f"the generated files {name} were changed or removed on this machine",
                "perun run matrix --resume sends them again",
            )

    def add_piece(self, name: str, offset: int, data: bytes, last: bool) -> None:
        """Take in a piece of an archive with the files of a folder; with the last one the folder is there.

        :raises UsageError: if the archive is not what the name says, or a piece before is missing.
        """
        folder = self._folder(name)
        part = folder.with_name(f"{name}.tar")
        with open_for_writing(part, append=offset > 0) as file:
            file.truncate(offset)
            file.write(data)
        if not last:
            return
        with tempfile.TemporaryDirectory(prefix="new-", dir=self._home) as scratch:
            made = Path(scratch, name)
            made.mkdir()
            try:
                with open_regular(part, MAX_ARCHIVE) as file, tarfile.TarFile(fileobj=file) as archive:
                    _extract(archive, made)
            except tarfile.TarError:
                raise UsageError(f"what was sent as the files of {name} is no archive") from None
            part.unlink()
            if not name.endswith(f"-{workloads.checksum_of(made)}"):
                raise UsageError(f"the files that were sent are not those of {name}")
            self._forget_old()
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)

    def _folder(self, name: str) -> Path:
        if PurePosixPath(name).parts != (name,) or name == "..":
            raise UsageError(f"{name!r} names no folder of generated files")
        return self._home / name

    def _forget_old(self) -> None:
        for path in self._home.iterdir():
            if path.is_dir() and path.stat().st_mtime < time.time() - RESULTS_KEPT:
                shutil.rmtree(path, ignore_errors=True)


FORMAT: Final = 2


class JobOrder(NamedTuple):
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


def read(written: Mapping[str, Any]) -> JobOrder:
    """The order that was sent.

    :raises ConfigError: if it is of another release.
    """
    if written.get("format") != FORMAT:
        raise ConfigError("the job was sent by another release of Perun", "install the same on all machines")
    date, author, email, checksum, desc, parents = written["version"]
    version = MinorVersion(date, author, email, checksum, desc, tuple(parents))
    return JobOrder(**{**written, "version": version})


class Orders:
    """Makes the orders of one batch."""

    def __init__(self, repo: Repository, batch: str, project: str) -> None:
        self._repo = repo
        self._batch = batch
        self._project = project
        self._place = inside(repo).as_posix()
        execute = {key: repo.config.get(f"execute.{key}") for key in ("pre_run", "timeout")}
        self._config = {"execute": execute}

    def make(self, number: int, job: Job, version: MinorVersion) -> JobOrder:
        """The order of a task of the schedule."""
        described = describe(self._repo, job)
        return JobOrder(self._batch, number, self._project, self._place, version, described, self._config)


def describe(repo: Repository, job: Job) -> dict[str, Any]:
    """The job as JSON; :func:`job_of` reads it."""
    made = None
    if job.generated is not None:
        inputs = [described(repo, one) for one in job.generated.inputs]
        made = {**job.generated.describe(), "merged": job.generated.merged, "inputs": inputs}
    return {
        "cmd": job.cmd,
        "args": job.args,
        "workload": job.workload,
        "collector": _unit(job.collector),
        "postprocessors": [_unit(unit) for unit in job.postprocessors],
        "generated": made,
    }


def _unit(unit: PluginConfig) -> list[Any]:
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
        inputs = tuple(input_of(repo, written) for written in given["inputs"])
        generated_for = workloads.Generated(
            given["generator"], given["type"], given["seed"], given["merged"], given["content"], inputs
        )
    cmd, args, workload = (str(described[key]) for key in ("cmd", "args", "workload"))
    return Job(cmd, args, workload, made[0], tuple(made[1:]), generated_for)


def folders(described: Mapping[str, Any]) -> set[str]:
    """The names of the folders with generated files that the described job needs."""
    inputs = (described["generated"] or {"inputs": ()})["inputs"]
    return {name for one in inputs if (name := folder_of(one)) is not None}


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
