"""`--script`: a command that says whether a version is good, in the convention of `git bisect run`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from perun.errors import JobFailed
from perun.plugin.api import MinorVersion, Run
from perun.porcelain.bisect.journal import Journal
from perun.porcelain.bisect.measuring import Copies, Skipped
from perun.porcelain.compare.instruments import BudgetSpent
from perun.porcelain.repository import Repository
from perun.porcelain.run.checkouts import scratch_folder
from perun.porcelain.run.pre_run import environment
from perun.process.execution import Execution
from perun.process.outcome import exit_status
from perun.process.streams import Output

SKIP: Final = 125
ABORT: Final = 128


class Script:
    """Runs the command in working copies, once for each version; what the journal knows is not run again."""

    def __init__(
        self,
        repo: Repository,
        command: str,
        built_in: Copies,
        journal: Journal,
        budget: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self._repo = repo
        self._command = command
        self._copies = built_in
        self._journal = journal
        self._budget = budget
        self._tell = tell
        self._spent = 0.0

    def is_bad(self, version: MinorVersion) -> bool:
        """Whether the script says so.

        :raises Skipped: where it says 125, or the version cannot be built.
        :raises JobFailed: where it says 128 or more, which ends the bisection.
        :raises BudgetSpent: where there is no time left for it.
        """
        status = self._journal.known("script", version.checksum)
        if status is None:
            if self._budget is not None and self._spent >= self._budget:
                raise BudgetSpent
            begun = time.monotonic()
            status = self._run(version)
            self._spent += time.monotonic() - begun
            if status < ABORT:
                self._journal.keep(status, "script", version.checksum)
        if status == SKIP:
            raise Skipped(self._journal.known("skipped", version.checksum) or f"the script exits with {SKIP}")
        if status >= ABORT:
            raise JobFailed(
                f"--script: {self._command!r} exits with {status} at {version.checksum[:7]}",
                "128 and more end the bisection; once that is mended: perun bisect --resume",
            )
        return bool(status)

    def _run(self, version: MinorVersion) -> int:
        try:
            folder = self._copies.folder(version)
        except JobFailed as problem:
            self._journal.keep(problem.message, "skipped", version.checksum)
            return SKIP
        self._tell(f"running the script at {version.checksum[:7]}")
        run = Run(self._command, cwd=folder, environ=environment(self._repo))
        try:
            with (
                scratch_folder(self._repo) as scratch,
                Execution(run, scratch, 0.0, output=Output.DISCARD) as execution,
            ):
                return exit_status(execution.run().status)
        except JobFailed as problem:
            raise JobFailed(
                f"--script cannot be run: {problem.message}",
                "name a program in the PATH, or of the version with ./; for the shell: "
                "--script \"sh -c '...'\"",
            ) from None
