"""`perun hooks`: have git call Perun after commits and before pushes."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import NotPerunRepository, NotTrusted, PerunError
from perun.core.process import programs
from perun.core.regular import open_for_writing
from perun.repository import hooks as operations
from perun.repository.hooks import CHECKING, MEASURING
from perun.repository.repository import Repository
from perun.running.run import background

COMMAND = (sys.executable, "-P", "-m", "perun")
"""The command that starts this Perun, whatever the PATH of the committing user."""
DEFAULT = ",".join(MEASURING)
_DEGRADED = 1
"""Exit code of `perun check --fail-on`."""
_NOTHING_COMPARED = 13
"""The same where there is no older profile to compare with."""
_GRACE = 30.0
"""Seconds that Perun has to end what it measures where a hook is interrupted."""
_CONFIRMATION = ("--fail-on", "inconclusive", "--budget", "120")
"""Options of the comparison with the parent, which must not take the machine for hours."""
_NOTHING = "0"
"""Git writes zeros if there is no checksum."""


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str]:
    return [name.strip() for name in (value or "").split(",") if name.strip()]


@click.group()
def hooks() -> None:
    """Have git call Perun: measure commits, check before a push.

    \b
    perun hooks install
    perun hooks install --on post-commit,post-merge,pre-push
    """


@hooks.command()
@click.option(
    "--on",
    "names",
    default=DEFAULT,
    show_default=True,
    metavar="HOOKS",
    callback=_names,
    help="The hooks, separated by commas; pre-push is the third one.",
)
@click.pass_obj
def install(session: Session, names: list[str]) -> None:
    """Let git call Perun in these hooks. What is in them already is kept.

    After a commit or a merge the job matrix is run for it in the background, in a working directory of
    Perun's own. Before a push what is pushed is checked; a degradation stops it.
    """
    repo = session.repository
    for hook in operations.install(repo, names, COMMAND):
        kept = "; the hook that was there before still runs" if hook.keeps else ""
        session.say(f"{one_line(str(hook.path))} calls perun{kept}")
    if operations.are_shared(repo):
        session.note("note: core.hooksPath is outside of this repository; without a .perun they do nothing")
    if not repo.trust_state.decided:
        session.note("note: Perun measures nothing until you trust this repository: perun trust")
    measuring = set(names) & set(MEASURING)
    config = repo.config
    if measuring and not (config.get("cmds") and config.get("collectors")):
        session.note(
            "next: configure what to measure with `perun config edit`; until then the hooks do nothing"
        )
    elif measuring and not config.get("execute.pre_run"):
        session.note(
            "note: commits are measured in a fresh working directory; set execute.pre_run to build there"
        )
    if measuring and not repo.registers_after_run:
        session.note(
            "note: profiles stay pending, and nothing is checked; "
            "to register them: perun config set profiles.register_after_run true"
        )


@hooks.command()
@click.option(
    "--on",
    "names",
    default=",".join(operations.HOOKS),
    show_default=True,
    metavar="HOOKS",
    callback=_names,
    help="The hooks, separated by commas.",
)
@click.pass_obj
def uninstall(session: Session, names: list[str]) -> None:
    """Take Perun out of the hooks; what was there before is as it was."""
    changed = operations.uninstall(session.repository, names)
    for hook in changed:
        left = "; your hook is as it was" if hook.other else ""
        session.say(f"{one_line(str(hook.path))} no longer calls perun{left}")
    if not changed:
        session.say("nothing to uninstall: none of these hooks calls perun")


@hooks.command()
@click.option("--wait", is_flag=True, help="First wait until all queued commits are measured.")
@json_option()
@click.pass_obj
def status(session: Session, wait: bool, as_json: bool) -> None:
    """Show which hooks call Perun, and what is going on in the background."""
    repo = session.repository
    found = operations.status(repo)
    if wait:
        background.wait(repo)
    state = background.state(repo)
    if as_json:
        rows = [{**dataclasses.asdict(hook), "path": str(hook.path)} for hook in found]
        log = str(state.log) if state.log else None
        data = {"hooks": rows, "working": state.working, "waiting": state.waiting, "log": log}
        session.say(json.dumps({"schema": "perun.hooks/1", **data}, indent=2))
        return
    for hook in found:
        word = "calls perun" if hook.installed else "is not Perun's" if hook.other else "not installed"
        if hook.keeps:
            word += ", and the hook that was there before"
        session.say(f"{hook.name:<12} {word}")
        if hook.problem:
            session.warn(
                f"{hook.path}: {hook.problem}; repair it with perun hooks install or perun fsck --repair"
            )
    _print_news(session, repo)
    if state.waiting:
        names = ", ".join(one_line(version[:10]) for version in state.waiting)
        left = "left by an interrupted run, measured with the next commit"
        word = "being measured" if state.working else left
        session.say(f"{word}: {names}")
    if state.log:
        session.say(f"newest log: {one_line(str(state.log))}")


@hooks.command(hidden=True)
@click.argument("name")
@click.argument("arguments", nargs=-1)
@click.pass_obj
def run(session: Session, name: str, arguments: tuple[str, ...]) -> int:
    """Run a hook; git calls this."""
    try:
        repo = session.repository
        return _before_push(session, repo) if name in CHECKING else _after_commit(session, repo)
    except NotPerunRepository:
        return 0
    except PerunError as problem:
        # An error of Perun never stops a commit or a push.
        hint = f"\nhint: {problem.hint}" if isinstance(problem, NotTrusted) else ""
        session.warn(f"perun hooks: {problem.message}{hint}")
        return 0


def _after_commit(session: Session, repo: Repository) -> int:
    _print_news(session, repo)
    if not (repo.config.get("cmds") and repo.config.get("collectors")):
        return 0
    is_rebasing = getattr(repo.vcs, "is_rebasing", None)
    if is_rebasing is not None and is_rebasing():
        return 0
    repo.require_trust("measuring commits")
    head = repo.vcs.get_minor_head()
    log = background.start(repo, head, COMMAND)
    session.note(f"perun: {head[:10]} is measured in the background; log: {one_line(str(log))}")
    return 0


def _print_news(session: Session, repo: Repository) -> None:
    for line in background.news(repo):
        session.note(f"perun: {one_line(line)}")


def _before_push(session: Session, repo: Repository) -> int:
    pushed = dict.fromkeys(_pushed(sys.stdin))
    waiting = background.waiting(repo)
    degraded = []
    for local, remote in pushed:
        if local in waiting:
            session.note(f"perun: {local[:10]} is still being measured")
        baseline = ["--baseline", remote] if remote and _is_known(repo, remote) else []
        if _perun(session, "check", "--fail-on", "degradation", "head", local, *baseline) == _DEGRADED:
            degraded.append(local)
    if degraded:
        session.fail("the pushed commits make something slower", "push anyway with: git push --no-verify")
        return 1
    return 0


def _pushed(lines: IO[str]) -> list[tuple[str, str]]:
    """What is pushed, and what the remote has there: checksums; the second is empty if there is none."""
    found = []
    for line in lines:
        words = line.split()
        if len(words) == 4 and words[1].strip(_NOTHING):
            found.append((words[1], words[3] if words[3].strip(_NOTHING) else ""))
    return found


def _is_known(repo: Repository, version: str) -> bool:
    try:
        repo.version(version)
    except PerunError:
        return False
    return True


def _perun(session: Session, *arguments: str, log: IO[str] | None = None) -> int:
    """Run Perun, its answer among the messages of git or in the log; returns the exit code."""
    flush: Sequence[IO[str]] = (session.out, session.err) if log is None else (log,)
    for stream in flush:
        stream.flush()
    return programs.run(
        [*COMMAND, "--no-pager", *arguments],
        cwd=session.cwd,
        environ=session.environ,
        stdout=sys.stderr if log is None else log,
        stderr=None if log is None else programs.STDOUT,
        foreground=True,
        grace=_GRACE,
    ).code


@hooks.command(hidden=True)
@click.pass_obj
def work(session: Session) -> None:
    """Measure the queued commits; a hook starts this in the background."""
    repo = session.repository

    def measure(version: str) -> str:
        path = background.log_of(repo, version)
        path.parent.mkdir(exist_ok=True)
        with io.TextIOWrapper(open_for_writing(path), encoding="utf-8") as log:
            return _measure(session, version, path, log)

    background.work(repo, measure)


def _measure(session: Session, version: str, path: Path, log: IO[str]) -> str:
    """Run the matrix for the version, and check it; the result in one line.

    What the check finds was measured at different times. So the version is measured side by side with its
    parent, too, which says whether the time has grown."""
    code = _perun(session, "run", "-m", version, "--in-a-copy", "matrix", "--missing", log=log)
    news = "" if code == 0 else "could not be measured completely"
    if session.repository.registers_after_run:
        code = _perun(session, "check", "--fail-on", "degradation", "head", version, log=log)
        if code == _DEGRADED:
            confirmed = _confirmed(session, version, log) or _unconfirmed(session, version)
            news = f"made something slower{confirmed}: perun check head {version[:10]}"
        elif code not in (0, _NOTHING_COMPARED) and not news:
            news = "could not be checked"
    log.write(f"perun hooks: {news or 'measured; nothing got slower'}\n")
    return news and f"{news}  (see {path})"


def _confirmed(session: Session, version: str, log: IO[str]) -> str:
    """What measuring the version beside its parent says of the degradation that a check has found.

    Nothing if the job matrix does not measure times, or the answer is inconclusive.
    """
    parents = session.repository.vcs.get_minor_version_info(version).parents
    if not (parents and _measures_times(session.repository)):
        return ""
    code = _perun(session, "compare", parents[0], version, *_CONFIRMATION, log=log)
    if code == _DEGRADED:
        return ", also side by side with its parent"
    return ", but took no more time side by side with its parent" if code == 0 else ""


def _unconfirmed(session: Session, version: str) -> str:
    """Whether the check has seen no degradation of the version more than once."""
    from perun.history.check.check import check_head

    return ", unconfirmed" if check_head(session.repository, version).unconfirmed else ""


def _measures_times(repo: Repository) -> bool:
    collectors = repo.config.get("collectors") or []
    return "time" in [one if isinstance(one, str) else one.get("name") for one in collectors]
