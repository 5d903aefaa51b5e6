"""The one place where errors become messages and exit codes, whichever way a command came in."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from perun.cli import streams
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core.atomic import TEMPORARY_PREFIX
from perun.core.errors import PerunError, Terminated

# Keeps numpy's library for linear algebra to one thread.
#
# OpenBLAS starts a thread for each further processor as numpy is loaded, and each first waits for work in a
# busy loop: 0.1 s of CPU time, beside the very command that is measured. The matrices of Perun are small.

VARIABLE: Final = "OPENBLAS_NUM_THREADS"
_CHOSEN_BY: Final = (VARIABLE, "OMP_NUM_THREADS", "GOTO_NUM_THREADS")


def keep_to_one_thread() -> None:
    """Let the library start no threads once numpy is loaded, unless the user says how many."""
    if "numpy" not in sys.modules and not any(name in os.environ for name in _CHOSEN_BY):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds numpy as Python does, and sets the variable while it is loaded, and no longer: a program that is
    measured meanwhile or later must not inherit it."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "numpy":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                os.putenv(VARIABLE, "1")  # `os.environ` stays as it is
                try:
                    load(module)
                finally:
                    os.unsetenv(VARIABLE)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


ENVIRONMENT: Final = frozenset(
    (
        errno.EACCES,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
    )
)
"""Reasons of the system to refuse a file, whichever it is: not errors of Perun."""


def run(arguments: Sequence[str], action: Callable[[Session], int]) -> int:
    """Do `action`; the exit code (see :data:`perun.core.errors.EXIT_CODES`).

    :param arguments: the command line, for the report of a bug.
    """
    # Profiles are large trees without cycles: looking for some among them takes longer than reading them.
    gc.set_threshold(100_000, 50, 100)
    _end_on_signals()
    keep_to_one_thread()
    session = Session(dict(os.environ), _current_directory())
    code = streams.finish(_guarded(session, arguments, action))
    _tell_of_cache(session)
    if session.metrics is not None:
        try:
            session.metrics.write(code)
        except (OSError, PerunError) as problem:
            session.warn(f"--metrics: nothing was recorded: {problem}")
    return code


def _tell_of_cache(session: Session) -> None:
    """With -v, why what is known of profiles had to be read from them."""
    repository = vars(session).get("repository") if session.verbosity else None
    if repository is not None and (problem := repository.store.cache.problem):
        session.warn(f"{repository.store.cache.path} was not used: {problem}")


def _guarded(session: Session, arguments: Sequence[str], action: Callable[[Session], int]) -> int:
    try:
        code = action(session)
        session.out.flush()
        return code
    except PerunError as problem:
        if streams.COMPLETE not in session.environ:
            _report(session, problem, arguments)
        return problem.exit_code
    except KeyboardInterrupt:
        if session.err.isatty():
            session.note("")  # the terminal shows ^C; what follows belongs on a line of its own
        return 130
    except Exception as bug:
        if isinstance(bug, BrokenPipeError) and streams.reader_is_gone():
            return streams.failed(bug)
        if isinstance(bug, OSError) and bug.errno in ENVIRONMENT:
            return _report_refusal(session, bug)
        if session.dev_mode:
            raise
        from perun.cli.crash import report_crash

        return report_crash(session, bug, list(arguments))


def _report(session: Session, problem: PerunError, arguments: Sequence[str]) -> None:
    """Print the error, and with `-vv` where it comes from.

    What the code of a plugin raised is written to a file then: its authors are elsewhere. `--dev-mode` makes
    no such file (manual 3.1).
    """
    session.trace(problem)
    session.fail(problem.message, problem.hint)
    _print_notes(session, problem)
    cause = problem.__cause__
    if session.verbosity > 1 and not session.dev_mode and isinstance(cause, Exception):
        from perun.cli.crash import write_report

        path = write_report(session, problem, list(arguments))
        if path is not None:
            session.note(f"the traceback is also in {path}")


def _report_refusal(session: Session, problem: OSError) -> int:
    """A full disk, a file that may not be written and the like; the exit code."""
    where = str(problem.filename or "")
    folder, _, name = where.rpartition("/")
    if name.startswith(TEMPORARY_PREFIX):
        where = folder
    session.trace(problem)
    session.fail(
        f"cannot read or write {where}: {problem.strerror}" if where else f"cannot write: {problem.strerror}",
        "check the free disk space and your permission to write there",
    )
    _print_notes(session, problem)
    return PerunError.exit_code


def _print_notes(session: Session, problem: BaseException) -> None:
    """Print the notes of the error: what the command changed before it failed."""
    for note in getattr(problem, "__notes__", ()):
        session.note(f"note: {clean(note)}")


def _end_on_signals() -> None:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that a measured program is not left running."""

    def end(number: int, frame: object) -> None:
        raise Terminated(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        sys.stderr.write("error: the current directory does not exist any more\nhint: cd to another one\n")
        sys.exit(PerunError.exit_code)
