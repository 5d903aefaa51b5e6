"""The command tree and the one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from perun import __version__
from perun.atomic import TEMPORARY_PREFIX
from perun.cli import streams
from perun.cli.lazy import LazyGroup
from perun.cli.session import Session
from perun.errors import PerunError

COMMANDS = {
    "init": ("perun.cli.commands.init:init", "Make a folder a Perun repository."),
    "config": ("perun.cli.commands.config:config", "Read and change the configuration."),
    "status": ("perun.cli.commands.status:status", "Show the current version and its profiles."),
    "log": ("perun.cli.commands.log:log", "Show the history with what is stored for each version."),
    "collect": ("perun.cli.commands.collect:collect", "Measure one command with one collector."),
    "run": ("perun.cli.commands.run:run", "Run a batch of jobs, or the job matrix."),
    "add": ("perun.cli.commands.add:add", "Register profiles in the index of a version."),
    "rm": ("perun.cli.commands.rm:rm", "Unlink registered profiles, delete pending ones."),
    "check": ("perun.cli.commands.check:check", "Find changes of performance between versions."),
    "show": ("perun.cli.commands.show:show", "Interpret a profile: as a table, as text, as a picture."),
    "postprocessby": ("perun.cli.commands.postprocessby:postprocessby", "Make a new profile out of one."),
    "fsck": ("perun.cli.commands.fsck:fsck", "Verify everything that is stored."),
    "recover": ("perun.cli.commands.recover:recover", "Give back what an interrupted --in-place run put aside."),
    "completion": ("perun.cli.commands.completion:completion", "Print the completion script for a shell."),
}


ENVIRONMENT: Final = frozenset(
    (
        errno.EACCES,
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


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["--help"]})
@click.option("--dev-mode", "-d", is_flag=True, help="Show the traceback of an unexpected error instead of writing a report.")
@click.option("--no-pager", is_flag=True, help="Do not page the output of status and log.")
@click.option("--no-color", "-nc", is_flag=True, help="Do not colour the output.")
@click.option("--verbose", "-v", count=True, help="Say more; may be repeated.")
@click.version_option(__version__, "--version", message="perun %(version)s")
@click.option(
    "--metrics",
    "-m",
    nargs=2,
    metavar="FILE ID",
    help="Append how long the command and its parts took to the JSON in FILE, under ID.",
)
@click.pass_context
def cli(
    ctx: click.Context,
    dev_mode: bool,
    no_pager: bool,
    no_color: bool,
    verbose: int,
    metrics: tuple[str, str] | None,
) -> None:
    """Perun, a performance version system: profiles of your program, kept by commit.

    \b
    perun init               make this folder a Perun repository
    perun config edit        say what is to be measured (the job matrix)
    perun run matrix         measure the current version
    perun check head         what got slower since the version before
    """
    session: Session = ctx.obj
    session.command = ctx.invoked_subcommand or ""
    session.dev_mode = dev_mode
    session.pager = not no_pager
    session.colour = False if no_color else None
    session.verbosity = verbose
    if metrics:
        from perun.cli.metrics import Metrics

        session.metrics = Metrics(Path(metrics[0]), metrics[1], ctx.invoked_subcommand or "")


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code (see :data:`perun.errors.EXIT_CODES`)."""
    # Profiles are large trees without cycles: looking for some among them takes longer than reading them.
    gc.set_threshold(100_000, 50, 100)
    _end_on_signals()
    session = Session(dict(os.environ), _current_directory())
    code = streams.finish(_run(session, list(arguments)))
    if session.metrics is not None:
        try:
            session.metrics.write(code)
        except (OSError, PerunError) as problem:
            session.warn(f"--metrics: nothing was recorded: {problem}")
    return code


def _run(session: Session, arguments: list[str]) -> int:
    try:
        return _invoke(session, arguments)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as problem:
        _tell_usage(session, problem)
        return 2
    except PerunError as problem:
        session.fail(problem.message, problem.hint)
        return problem.exit_code
    except (KeyboardInterrupt, click.Abort):
        if session.err.isatty():
            session.note("")  # the terminal shows ^C; what follows belongs on a line of its own
        return 130
    except Exception as bug:
        if isinstance(bug, BrokenPipeError) and streams.reader_is_gone():
            return streams.failed(bug)
        if isinstance(bug, OSError) and bug.errno in ENVIRONMENT:
            return _tell_environment(session, bug)
        if session.dev_mode:
            raise
        from perun.cli.crash import report_crash

        return report_crash(session, bug, arguments)


def _invoke(session: Session, arguments: list[str]) -> int:
    if "_PERUN_COMPLETE" in session.environ:
        cli.main(arguments, prog_name="perun", obj=session)  # completes, and exits
    # Not through `cli.main`, which ends with 1 where the reader of the output is gone.
    with cli.make_context("perun", arguments, obj=session) as context:
        outcome = cli.invoke(context)
    session.out.flush()
    return outcome if isinstance(outcome, int) else 0


def _tell_usage(session: Session, problem: click.ClickException) -> None:
    if isinstance(problem, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        problem.show()  # the whole help
        return
    message, hint = problem.format_message(), ""
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is not None:
        command = context.command
        if isinstance(command, click.Group) and message == "Missing command.":
            message = f"{context.command_path}: name one of " + ", ".join(command.list_commands(context))
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        hint = f"usage: {usage}  (more: {context.command_path} --help)"
    session.fail(message, hint)


def _tell_environment(session: Session, problem: OSError) -> int:
    """A full disk, a file that may not be written and the like; the exit code."""
    where = str(problem.filename or "")
    folder, _, name = where.rpartition("/")
    if name.startswith(TEMPORARY_PREFIX):
        where = folder
    session.fail(
        f"cannot read or write {where}: {problem.strerror}" if where else f"cannot write: {problem.strerror}",
        "see that there is space left, and that you may write there",
    )
    return PerunError.exit_code


def _end_on_signals() -> None:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that a measured program is not left running."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        sys.stderr.write("error: the current directory does not exist any more\nhint: cd to another one\n")
        sys.exit(PerunError.exit_code)
