"""Where the fuzzed program is: the working directory as it is, or a copy of a version that is built there.

With `--build` there are two copies, one that counts and one as users build it, which is measured: counting
takes its time, and not everywhere the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.fuzz.coverage.build import Flags, build
from perun.plugin.api import MinorVersion, Report
from perun.porcelain.compare.plan import Side
from perun.porcelain.compare.sides import prepared
from perun.porcelain.fuzz.options import FuzzOptions
from perun.porcelain.repository import Repository
from perun.porcelain.run import pre_run
from perun.porcelain.run.checkouts import remove_leftovers, scratch_folder
from perun.porcelain.run.in_place import refuse_after_interruption

PLAIN: Final = Flags("-O2 -g", "cc", "c++")
"""What the program that is measured is built with."""


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
def entered(repo: Repository, options: FuzzOptions, report: Report) -> Iterator[Place]:
    """The place of the program, built; copies are removed at the end.

    :raises PerunError: where the version cannot be checked out or built.
    """
    version = repo.vcs.get_minor_version_info(repo.version(options.minor))
    environ = pre_run.environment(repo)
    with ExitStack() as stack:
        if options.build or options.minor is not None:
            changed = () if options.minor is not None else tuple(repo.vcs.changed_files())
            side = Side("head", version, changed)
            copies = stack.enter_context(prepared(repo, [side], 2 if options.build else 1, report))["head"]
            if options.build:
                report("building", 0, 0)
                backend: Any = options.backend
                build(options.build, backend, copies[0], environ)
                build(options.build, backend, copies[-1], environ, PLAIN)
            counting, measured, uncommitted = copies[0], copies[-1], bool(changed)
        else:
            refuse_after_interruption(repo)
            remove_leftovers(repo)
            uncommitted = repo.vcs.is_dirty()
            report("preparing", 0, 0)
            state = version.checksum + "-uncommitted" * uncommitted
            pre_run.run_commands(repo, state, repo.working_root)
            counting = measured = repo.working_root
        scratch = stack.enter_context(scratch_folder(repo))
        yield Place(counting, measured, version, uncommitted, scratch, environ)
