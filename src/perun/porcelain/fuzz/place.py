"""Where the fuzzed program is: the working directory as it is, or a copy of a version that is built there.

With `--build` there are two copies, one that counts and one as users build it, which is measured: counting
takes its time, and not everywhere the same.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import JobFailed, UsageError
from perun.plugin.api import MinorVersion, Report, Run
from perun.porcelain.compare.plan import Side
from perun.porcelain.compare.sides import prepared
from perun.porcelain.fuzz.options import FuzzOptions
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import pre_run
from perun.porcelain.run.checkouts import remove_leftovers
from perun.porcelain.run.in_place import refuse_after_interruption
from perun.process.command import split
from perun.process.execution import Execution
from perun.process.outcome import outcome
from perun.process.streams import Output

PLAIN_FLAGS: Final = "-O2 -g"
"""What `{flags}` is for the program that is measured."""


class Flags(NamedTuple):
    """What a build is told: options of the compiler, and which compilers."""

    flags: str
    cc: str = "cc"
    cxx: str = "c++"


class Place(NamedTuple):
    """The folders of the program that counts and of the one that is measured, often the same; the version,
    and whether there are changes that it does not have; a folder for temporary files."""

    counting: Path
    measured: Path
    version: MinorVersion
    uncommitted: bool
    scratch: Path
    environ: Mapping[str, str]


@contextmanager
def entered(repo: Repository, options: FuzzOptions, flags: Flags, report: Report) -> Iterator[Place]:
    """The place of the program, built; copies are removed at the end.

    :param flags: for `--build`.
    :raises PerunError: where the version cannot be checked out or built.
    """
    version = repo.vcs.get_minor_version_info(repo.version(options.minor))
    environ = pre_run.environment(repo)
    with ExitStack() as stack:
        temporary = repo.root / PERUN_FOLDER / "tmp"
        temporary.mkdir(exist_ok=True)
        if options.build or options.minor is not None:
            changed = () if options.minor is not None else tuple(repo.vcs.changed_files())
            side = Side("head", version, changed)
            copies = stack.enter_context(prepared(repo, [side], 2 if options.build else 1, report))["head"]
            for folder, own in zip(copies, (flags, Flags(PLAIN_FLAGS)), strict=False):
                if options.build:
                    report("building", 0, 0)
                    _build(options.build, own, folder, environ, repo)
            counting, measured, uncommitted = copies[0], copies[-1], bool(changed)
        else:
            refuse_after_interruption(repo)
            remove_leftovers(repo)
            uncommitted = repo.vcs.is_dirty()
            report("preparing", 0, 0)
            state = version.checksum + "-uncommitted" * uncommitted
            pre_run.run_commands(repo, state, repo.working_root)
            counting = measured = repo.working_root
        prefix = f"collect-{os.getpid()}-"
        scratch = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=prefix, dir=temporary, ignore_cleanup_errors=True)
        )
        yield Place(counting, measured, version, uncommitted, Path(scratch), environ)


def _build(command: str, flags: Flags, folder: Path, environ: Mapping[str, str], repo: Repository) -> None:
    """Run the command of `--build` in `folder`, without a shell.

    :raises JobFailed: with the end of what it printed, where it fails.
    """
    what = f"--build {command!r}"
    if "{flags}" not in command:
        raise UsageError(
            f"{what} does not say where the options of the compiler belong",
            "write {flags} there, e.g. --build 'make CFLAGS={flags}'",
        )
    line = shlex.join(_filled(word, flags) for word in split("command of --build", command))
    run = Run(line, cwd=folder, environ=environ)
    seconds = max(float(repo.config.get("execute.timeout")), 0.0)
    temporary = repo.root / PERUN_FOLDER / "tmp"
    with (
        tempfile.TemporaryDirectory(prefix=f"collect-{os.getpid()}-", dir=temporary) as log,
        Execution(run, Path(log), seconds, output=Output.KEEP) as execution,
    ):
        sample = execution.record()
        errors = execution.last_errors()
    if sample.interruption is not None:
        raise sample.interruption
    if sample.early:
        raise JobFailed(f"{what} did not end within {seconds:g} s", "set execute.timeout to more")
    if sample.status:
        text = "\n".join(["the end of its standard error:", *("  " + one for one in errors)])
        raise JobFailed(f"{what} {outcome(sample.status)}\n{text}", f"it ran as: {line}")


def _filled(word: str, flags: Flags) -> str:
    for name, value in flags._asdict().items():
        word = word.replace(f"{{{name}}}", value)
    return word
