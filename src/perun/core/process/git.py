"""Running the git program, so that neither settings nor a surrounding hook change what it answers or does.

A repository may come from a stranger, its `.git` too. Two kinds of calls are told apart:

:attr:`Purpose.READ` runs nothing but git itself: no hook, no file system monitor, no filter or text
conversion, no signature program, no pager or editor, and no transport, so that objects missing in a partial
clone are not fetched either. Whatever Perun does without trust is of this kind.

:attr:`Purpose.WORK` changes files of a working tree. It runs the filters of the repository (git LFS needs
them) and fetches what a partial clone lacks; hooks, monitors, pagers and editors do not run here either.
Only what the user has decided to trust is worked on: see `docs/security.md`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import VersionControlError
from perun.core.process import ending
from perun.core.wording import without_secrets

if TYPE_CHECKING:
    from perun.core.process.ending import SignalGuard

_REPOSITORY_LOCAL: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What git sets for its hooks and aliases: inside one, these would point at another repository or index.

`GIT_CONFIG_COUNT` and `GIT_CONFIG_PARAMETERS` stay: containers set `safe.directory` that way.
"""

_SHAPING: Final = frozenset({"GIT_ATTR_SOURCE", "GIT_DIFF_OPTS", "GIT_LITERAL_PATHSPECS"})
"""What would change answers, as settings do."""

_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Whole blocks instead of one write for each version, which is a fifth of the time of a long `git log`.
    "GIT_FLUSH": "0",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
}

_OFFLINE: Final = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_ATTR_NOSYSTEM": "1"}
"""No transport has that name, so that a missing object is an error, and no reason to start a program.

The second is understood since git 2.44, the first by every git. The third is of the machine's attributes.
"""

_SETTINGS: Final = (
    # What git writes into its answers. Settings of programs, and of what a folder is like, are the user's.
    *(f"color.{what}=false" for what in (
        "advice", "branch", "diff", "interactive", "push", "remote", "showBranch", "status", "transport", "ui"
    )),
    "column.ui=never",
    "core.abbrev=auto",
    "core.bigFileThreshold=512m",  # of a larger file git tells no lines
    "core.quotePath=false",
    "diff.algorithm=default",
    "diff.colorMoved=no",
    "diff.context=3",
    "diff.ignoreSubmodules=none",
    "diff.indentHeuristic=true",
    "diff.interHunkContext=0",
    "diff.mnemonicPrefix=false",
    "diff.noprefix=false",
    "diff.orderFile=/dev/null",
    "diff.relative=false",
    "diff.renameLimit=1000",
    "diff.renames=true",
    "diff.submodule=short",
    "diff.suppressBlankEmpty=false",
    "diff.wsErrorHighlight=none",
    "i18n.logOutputEncoding=UTF-8",
    "log.decorate=false",
    "log.diffMerges=separate",
    "log.follow=false",
    "log.mailmap=false",
    "log.showRoot=true",
    "log.showSignature=false",
    "status.branch=false",
    "status.renames=true",
    "status.short=false",
    "status.showStash=false",
    "status.submoduleSummary=false",
    # What was staged comes back byte for byte.
    "apply.ignoreWhitespace=no",
    "apply.whitespace=nowarn",
    # A file system monitor would go on running in the folder, and disturb what is measured there.
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # A bare repository may be committed as plain files of another one, its configuration included.
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)  # fmt: skip
"""They stand before those of the user, of the repository and of the machine."""

_NO_PROGRAMS: Final = (
    "core.alternateRefsCommand=false",
    "core.askPass=false",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "credential.helper=",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "protocol.allow=never",
)
"""Programs that the configuration of a repository names; filters run in no call of that kind, so that
attributes of the user would change nothing but which differences have lines."""

_CHUNK: Final = 1 << 16
_SOON: Final = 0.25
"""Seconds that a git which only reads runs without a guard: nearly all have ended by then, and to start the
guard takes as long as to answer some of them."""
_GRACE: Final = 2.0
"""Seconds that git has to end where Perun is interrupted."""
_STDERR_TIMEOUT: Final = 1.0
"""Seconds to wait for the last words of a git that has ended; a program it started may keep the pipe open."""


class Purpose(Enum):
    """What calls of git are for, and so what they may run."""

    READ = "read"
    WORK = "work"


class GitResult(NamedTuple):
    """What one call of git gave: exit code, standard output as it is, standard error as text."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """The output without its last line end; bytes that are not UTF-8 survive as surrogates."""
        return self.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    @property
    def left_files(self) -> bool:
        """Whether a checkout could not replace files, as when the disk fails: git warns, and ends with 0."""
        lines = self.stderr.splitlines()
        return any(line.startswith(("error: ", "warning: unable to unlink")) for line in lines)


class GitCommand:
    """The git program at work in one folder.

    :param folder: where git runs (`git -C`).
    :param environ: the environment of the user; what belongs to another repository is left out of it.
    :param purpose: what git may run.
    :param named: the user or the configuration names this very folder as the repository, so that it may be a
        bare one; git does not look for a bare one by itself.
    :ivar inherited: descriptors that git gets, such as that of a lock, which git holds as long as it runs.
    """

    inherited: tuple[int, ...] = ()

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        purpose: Purpose = Purpose.READ,
        *,
        named: bool = False,
    ) -> None:
        self.folder = folder
        self._named = named
        left_out = _REPOSITORY_LOCAL | _SHAPING
        self._environ = {key: value for key, value in environ.items() if key not in left_out}
        self._environ.update(_ENVIRONMENT)
        reads = self._reads = purpose is Purpose.READ
        if reads:
            self._environ.update(_OFFLINE)
            self._environ.pop("GIT_EXTERNAL_DIFF", None)
        self._prefix = ["git", "-C", str(folder), "--no-pager"]
        for setting in (*_SETTINGS, *(_NO_PROGRAMS if reads else ())):
            self._prefix += ["-c", setting]

    def attempt(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        shield: bool = False,
        given: bytes | None = None,
    ) -> GitResult:
        """Run git to its end, whatever its exit code.

        :param env: variables beside those of the user.
        :param given: the standard input of git, which is empty otherwise.
        :param shield: for a call that changes the user's files: Ctrl-C does not reach git, and takes effect
            here only after git has finished.
        :raises VersionControlError: if git cannot be started.
        """
        with ending.interruptions_deferred() if shield else nullcontext():
            process = self._start(
                arguments, env, shield, subprocess.DEVNULL if given is None else subprocess.PIPE
            )
            try:
                stdout, stderr = process.answer(given)
            except BaseException:
                with process:  # nobody reads its streams any more
                    if shield:
                        process.wait()
                    else:
                        process.end()
                raise
            finally:
                process.unguard()
        return GitResult(process.returncode, stdout, stderr.decode("utf-8", "replace").strip())

    def ask(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """The output of a call that must succeed.

        :raises VersionControlError: with what git says.
        """
        return self._checked(arguments, self.attempt(*arguments, env=env))

    def alter(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """As :meth:`ask`, for a call that changes the user's repository or files: it is never cut short."""
        return self._checked(arguments, self.attempt(*arguments, env=env, shield=True))

    def stream(self, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """The output piece by piece as it comes; git is ended if the caller stops early.

        :raises VersionControlError: after the last piece, if git failed.
        """
        process = self._start(arguments, env)
        assert process.stdout is not None
        assert process.stderr is not None
        stderr_pieces: list[bytes] = []
        # Read aside: git would stand still at a full pipe of warnings while we wait for its output.
        reader = threading.Thread(target=_read_to_end, args=(process.stderr, stderr_pieces), daemon=True)
        ending.start(reader)
        try:
            ready = select.poll()
            ready.register(process.stdout, select.POLLIN)
            while True:
                process.await_output(ready)
                if not (piece := process.stdout.read(_CHUNK)):
                    break
                yield piece
            code = process.wait()
            reader.join(_STDERR_TIMEOUT)
        finally:
            process.stdout.close()
            process.end()
            process.unguard()
        stderr = b"".join(stderr_pieces).decode("utf-8", "replace").strip()
        self._checked(arguments, GitResult(code, b"", stderr))

    def failure(self, verb: str, answer: GitResult) -> VersionControlError:
        """The error that tells what git answered, with a next step if we know one."""
        said = answer.stderr
        if "not a git repository" in said:
            return VersionControlError(
                f"{self.folder} is not in a git repository",
                "make one with `git init` or `perun init --vcs-type git`, or set `vcs.url` to its folder",
            )
        if "safe.directory" in said:
            return VersionControlError(
                f"git refuses {self.folder}: the repository belongs to another user",
                f"if you trust it: git config --global --add safe.directory {_owned(said) or self.folder}",
            )
        if "safe.bareRepository" in said:
            return VersionControlError(
                f"{self.folder} is inside a bare git repository, which git does not use unless it is named",
                "name it: set `vcs.url` to its folder",
            )
        if ("transport" in said and "not allowed" in said) or "lazy fetching disabled" in said:
            return VersionControlError(
                f"git lacks objects in {self.folder}, a partial clone, and Perun lets it fetch none",
                "fetch them all: git fetch --refetch --no-filter",
            )
        if answer.code < 0:
            said = f"ended by signal {-answer.code}. {said}".strip()
        hint = ""
        if ".lock': File exists" in said:
            hint = "another git is at work: wait for it; if none is running, remove the lock"
        said = without_secrets(said.removeprefix("fatal: ").removeprefix("error: "))
        return VersionControlError(f"git {verb} failed in {self.folder}: {said or 'without a message'}", hint)

    @property
    def typed(self) -> str:
        """What the user types to act on the same repository."""
        return "git"

    @property
    def make_version(self) -> str:
        """What the user does to have a version of changed files."""
        return "commit them"

    def _checked(self, arguments: Sequence[str], answer: GitResult) -> str:
        if answer.code:
            raise self.failure(arguments[0], answer)
        return answer.text

    def _start(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str] | None,
        shield: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> _Git:
        bare = ("--git-dir=.",) if self._named and looks_bare(self.folder) else ()
        process: _Git | None = None
        try:
            # A signal that came while it starts would leave behind a git that nobody ends.
            with ending.interruptions_deferred():
                process = _Git(
                    [*self._prefix, *bare, *arguments],
                    bufsize=0,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env={**self._environ, **(env or {})},
                    pass_fds=self.inherited,
                    start_new_session=shield,
                )
                process.shielded = shield
                if shield or not self._reads:
                    process.guard()
        except FileNotFoundError:
            raise VersionControlError(
                "git is not installed, or not on PATH", "install git 2.30 or newer, e.g. `apt install git`"
            ) from None
        except (OSError, ValueError) as problem:
            raise VersionControlError(f"git cannot be started: {problem}") from None
        except BaseException:
            if process is not None:
                with process:
                    process.end()
                process.unguard()
            raise
        return process


class _Git(subprocess.Popen[bytes]):
    """A git that runs, not guarded from the start on as what :mod:`perun.core.process.programs` starts."""

    shielded = False
    _guard: SignalGuard | None = None

    def guard(self) -> None:
        """Let it end where Perun is killed, with what it has started; one that alters files is asked first,
        so that it removes its locks."""
        if self._guard is None:
            from perun.core.process.ending import guard

            self._guard = guard()
            if self._guard is not None:
                self._guard.add(self.pid, self._guard.starting(), ask=self.shielded)

    def await_output(self, ready: select.poll) -> list[int]:
        """The descriptors that have something to read or are at their end; guarded if that takes long."""
        while not (found := ready.poll(_SOON * 1000)):
            self.guard()
        return [one for one, _ in found]

    def answer(self, given: bytes | None) -> tuple[bytes, bytes]:
        """What it writes to its end, as output and as errors."""
        if given is not None:
            self.guard()
            return self.communicate(given)
        assert self.stdout is not None
        assert self.stderr is not None
        pieces: dict[int, list[bytes]] = {self.stdout.fileno(): [], self.stderr.fileno(): []}
        ready = select.poll()
        for one in pieces:
            ready.register(one, select.POLLIN)
        left = set(pieces)
        with self.stdout, self.stderr:
            while left:
                for one in self.await_output(ready):
                    if piece := os.read(one, _CHUNK):
                        pieces[one].append(piece)
                    else:
                        ready.unregister(one)
                        left.remove(one)
        self.wait()
        stdout, stderr = (b"".join(found) for found in pieces.values())
        return stdout, stderr

    def unguard(self) -> None:
        """It has ended."""
        if self._guard is not None:
            self._guard.remove(self.pid)
            self._guard = None

    def end(self) -> None:
        """End it now, if it has not, with what it has started, and wait for it."""
        if self.poll() is not None:
            return
        from perun.core.process.ending import descendants

        started = descendants(self.pid)
        self.terminate()
        try:
            self.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
        for one in started:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
        self.wait()


def looks_bare(folder: Path | str) -> bool:
    """Whether git would take the folder itself for a bare repository."""
    if not os.path.lexists(f"{folder}/HEAD") or os.path.lexists(f"{folder}/.git"):
        return False
    return os.path.isdir(f"{folder}/objects") and os.path.isdir(f"{folder}/refs")


def _read_to_end(pipe: IO[bytes], pieces: list[bytes]) -> None:
    with pipe:
        pieces.extend(pipe)


def _owned(stderr: str) -> str:
    """The folder that git wants to be trusted; it ends its message with the command to type."""
    return stderr.rpartition("safe.directory ")[2].strip()
