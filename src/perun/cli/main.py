"""The command tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from perun import __version__
from perun.cli import boundary, streams
from perun.cli.options import LazyGroup
from perun.cli.session import Session

COMMANDS = {
    "init": ("perun.cli.commands.init:init", "Make a folder a Perun repository."),
    "config": ("perun.cli.commands.config:config", "Read and change the configuration."),
    "status": ("perun.cli.commands.status:status", "Show the current version and its profiles."),
    "log": ("perun.cli.commands.log:log", "Show the history with what is stored for each version."),
    "trend": ("perun.cli.commands.trend:trend", "Show how measured values developed over the versions."),
    "changes": (
        "perun.cli.commands.changes:changes",
        "Find the versions that changed the level of what was measured.",
    ),
    "blame": (
        "perun.cli.commands.blame:blame",
        "Show which versions changed what the functions of FILE cost.",
    ),
    "explain": (
        "perun.cli.commands.explain:explain",
        "Say why a version costs more: functions, and lines of the diff.",
    ),
    "ack": ("perun.cli.commands.ack:ack", "Acknowledge a change of performance, which fails nothing then."),
    "collect": ("perun.cli.commands.collect:collect", "Measure one command with one collector."),
    "bench": ("perun.cli.commands.bench:bench", "Measure commands now, and keep the times by commit."),
    "run": ("perun.cli.commands.run:run", "Run a batch of jobs, or the job matrix."),
    "hooks": ("perun.cli.commands.hooks:hooks", "Have git call Perun: measure commits, check before a push."),
    "add": ("perun.cli.commands.add:add", "Register profiles in the index of a version."),
    "rm": ("perun.cli.commands.rm:rm", "Unlink registered profiles, delete pending ones."),
    "trust": ("perun.cli.commands.trust:trust", "Trust a repository: allow what it configures to run."),
    "tag": ("perun.cli.commands.tag:tag", "Make a snapshot of a folder that is under tagit."),
    "remote": (
        "perun.cli.commands.remote:remote",
        "List, add and remove the places where the team keeps its profiles.",
    ),
    "push": ("perun.cli.commands.remote:push", "Send registered profiles to a remote."),
    "pull": ("perun.cli.commands.remote:pull", "Fetch the profiles that others have sent to a remote."),
    "fetch": (
        "perun.cli.commands.remote:fetch",
        "List what a remote has, version by version; no profile is fetched.",
    ),
    "clone-profiles": (
        "perun.cli.commands.remote:clone_profiles",
        "Get all profiles of the team, in a fresh clone of the project.",
    ),
    "pool": ("perun.cli.commands.pool:pool", "Show the machines of a pool, and how fast they are."),
    "check": ("perun.cli.commands.check:check", "Find changes of performance between versions."),
    "compare": (
        "perun.cli.commands.compare:compare",
        "Measure two versions side by side, and say what changed.",
    ),
    "import": (
        "perun.cli.commands.importing:import_profiles",
        "Take over results and profiles of other tools.",
    ),
    "export": ("perun.cli.commands.exporting:export", "Write a profile for another tool."),
    "ci": ("perun.cli.commands.ci:ci", "Gate merge requests: measure in one job, tell in another."),
    "guard": ("perun.cli.commands.guard:guard", "Hold programs to contracts on what they cost."),
    "lock": ("perun.cli.commands.lock:lock", "Keep what programs cost in a committed file, and compare."),
    "bisect": (
        "perun.cli.commands.bisect:bisect",
        "Find the version that changed what a program costs.",
    ),
    "fuzz": ("perun.cli.commands.fuzz:fuzz", "Find inputs that make a program slow."),
    "show": ("perun.cli.commands.show:show", "Interpret a profile: as a table, as text, as a picture."),
    "web": ("perun.cli.commands.web:web", "Show the dashboard: what got slower, since when and why."),
    "mcp": ("perun.cli.commands.mcp:mcp", "Serve tools to an agent: compare, bench, explain, changes."),
    "postprocessby": ("perun.cli.commands.postprocessby:postprocessby", "Process a profile into a new one."),
    "doctor": (
        "perun.cli.commands.doctor:doctor",
        "Show what can be measured on this machine, and how reliably.",
    ),
    "fsck": ("perun.cli.commands.fsck:fsck", "Verify everything that is stored."),
    "gc": ("perun.cli.commands.gc:gc", "Remove profiles that are not kept, and give back room."),
    "recover": (
        "perun.cli.commands.recover:recover",
        "Restore the working directory after an interrupted --in-place run.",
    ),
    "stats": ("perun.cli.commands.stats:stats", "Show and delete statistics of versions."),
    "temp": ("perun.cli.commands.temp:temp", "Show and delete temporary files."),
    "utils": ("perun.cli.commands.utils:utils", "Commands for developers of plugins: create, stats, temp."),
    "completion": ("perun.cli.commands.completion:completion", "Print the completion script for a shell."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dev-mode",
    "-d",
    is_flag=True,
    help="Show the traceback of each error; write no report of an unexpected one.",
)
@click.option("--no-pager", is_flag=True, help="Do not page the output of status and log.")
@click.option("--no-color", "-nc", is_flag=True, help="Do not colour the output.")
@click.option(
    "--verbose", "-v", count=True, help="Print more details; -vv: also the traceback of each error."
)
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
    perun bench './prog 10'  measure a command now, without any configuration
    perun init               make this folder a Perun repository
    perun config edit        choose what to measure (the job matrix)
    perun run matrix         measure the current version
    perun check head         find what got slower since the previous version
    perun compare            measure what my changes do, beside what they are based on
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
    """Run the command line; the exit code (see :data:`perun.core.errors.EXIT_CODES`)."""
    return boundary.run(arguments, lambda session: _command(session, list(arguments)))


def _command(session: Session, arguments: list[str]) -> int:
    try:
        return _invoke(session, arguments)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as problem:
        session.trace(problem)
        _report_usage_error(session, problem, arguments)
        return 2


def _invoke(session: Session, arguments: list[str]) -> int:
    if streams.COMPLETE in session.environ:
        import perun.cli.commands.completion  # noqa: F401 - what click lacks for some shells

        cli.main(arguments, prog_name="perun", obj=session)  # completes, and exits
    # Not through `cli.main`, which ends with 1 if the reader of the output is gone.
    with cli.make_context("perun", arguments, obj=session) as context:
        outcome = cli.invoke(context)
    return outcome if isinstance(outcome, int) else 0


def _missing(command: click.Group, context: click.Context) -> str:
    """What to say where a group is called without a command."""
    from perun.cli.plugins import PluginGroup

    if isinstance(command, PluginGroup):
        return command.missing(context)
    return f"{context.command_path}: name one of {', '.join(command.list_commands(context))}"


def _place_of(option: str, context: click.Context) -> str:
    """The hint for an option that belongs to a command above, such as `perun`; empty if none has it."""
    while (above := context.parent) is not None:
        for one in above.command.params:
            if option in one.opts:
                long = next((name for name in one.opts if name.startswith("--")), option)
                name = f"{option} ({long})" if long != option else option
                word = f"{above.command_path} {option}{' ...' * (not _is_flag(one))} {context.info_name}"
                return f"{name} stands before the word {context.info_name!r}: {word}"
        context = above
    return ""


def _is_flag(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and (option.is_flag or option.count)


def _report_usage_error(session: Session, problem: click.ClickException, arguments: Sequence[str]) -> None:
    if isinstance(problem, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        problem.show()  # the whole help
        return
    message = problem.format_message()
    name = next((one for one in arguments if one in COMMANDS), "")
    hint = f"see: perun {name} --help" if name else "see: perun --help"
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is not None:
        command = context.command
        if isinstance(command, click.Group) and message == "Missing command.":
            message = _missing(command, context)
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        hint = f"usage: {usage}  (more: {context.command_path} --help)"
        if isinstance(problem, click.NoSuchOption):
            hint = _place_of(problem.option_name, context) or hint
    session.fail(message, hint)
