"""`perun guard`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from perun.cli.answers.check.junit import HEAD, JUnitCase, suite_lines
from perun.cli.answers.data import write_json
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core import atomic
from perun.core.errors import JobFailed, UsageError
from perun.core.wording import plural
from perun.history.check.report import INCONCLUSIVE
from perun.running.guard import checking, fuzzed, lock, suggesting
from perun.running.guard.checking import ContractOutcome
from perun.running.guard.contracts import FILE, commands_in, read

_WORDS: Final = {True: "kept", False: "BROKEN", None: "unknown"}
_COLOURS: Final = {True: "green", False: "red", None: "yellow"}


@click.group()
def guard() -> None:
    """Hold programs to contracts on what they cost.

    Contracts are orders of growth, bounds, and shares of perun.lock. They stand in perun-guard.yml, which is
    committed, and are on counts, which do not depend on the load of the machine, or on the time beside
    another version, in pairs of runs. Programs run as they are in the working directory; where times are
    compared, both versions are built.

    \b
    perun guard add './parse {n}' --for 100..1600   measure it, and add what it keeps to
    perun guard check                               fails where a contract is broken
    """


@guard.command()
@click.argument("pattern", required=False, default="")
@click.option("--file", "-f", "file", type=click.Path(path_type=Path), default=None,
              help=f"The file of contracts; {FILE} in the project without it.")  # fmt: skip
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit XML to this file."
)
@json_option()
@click.pass_context
def check(ctx: click.Context, pattern: str, file: Path | None, junit: Path | None, as_json: bool) -> int:
    """Run what the contracts are about, and say whether they are kept.

    PATTERN takes those that have this text. Exits with 0 where all are kept, 1 where one is broken, 12 where
    one cannot be decided, and with the code of the error where a program cannot be measured.
    """
    session: Session = ctx.obj
    repo = session.repository
    path = file or repo.working_root / FILE
    every = read(path)
    contracts = [one for one in every if pattern in f"{one.command}: {one.text}"]
    if not contracts:
        raise UsageError(
            f"{path.name} has no contract" + (f" with {pattern!r}" if pattern else ""),
            "add one with: perun guard add COMMAND",
        )
    known = lock.read(repo.working_root / lock.FILE)
    outcomes: list[ContractOutcome] = []
    command = ""
    with session.progress(0, "checking contracts") as bar, session.writing_to(bar.out):
        for one in checking.check(repo, contracts, known.rows, path, commands_in(every), bar.update):
            outcomes.append(one)
            if as_json:
                continue
            if one.contract.command != command:
                command = one.contract.command
                session.say(clean(command))
            session.say(_line(session, one))
    if as_json:
        write_json(session.out, _data(outcomes))
    else:
        counts = Counter(_state(one) for one in outcomes)
        session.say(", ".join(f"{count} {word}" for word, count in counts.items()))
    if junit is not None:
        _write_junit(junit, outcomes)
    states = {one.keeping.kept for one in outcomes}
    if False in states:
        return 1
    if any(one.error for one in outcomes):
        return JobFailed.exit_code
    return INCONCLUSIVE if None in states else 0


def _state(one: ContractOutcome) -> str:
    return "error" if one.error else _WORDS[one.keeping.kept]


def _line(session: Session, one: ContractOutcome) -> str:
    word = session.paint(f"{_state(one):8}", _COLOURS[one.keeping.kept])
    return f"  {word} {clean(one.contract.text)}: {clean(one.error or one.keeping.reason)}"


def _data(outcomes: Sequence[ContractOutcome]) -> dict[str, Any]:
    return {
        "schema": "perun.guard/1",
        "contracts": [
            {
                "command": one.contract.command,
                "contract": one.contract.text,
                "place": one.contract.place,
                "kept": one.keeping.kept,
                "reason": one.keeping.reason,
                "error": one.error or None,
            }
            for one in outcomes
        ],
    }


def _write_junit(path: Path, outcomes: Sequence[ContractOutcome]) -> None:
    cases = [_case(one) for one in outcomes]
    lines = (HEAD, '<testsuites name="perun guard">', *suite_lines("contracts", cases), "</testsuites>", "")
    try:
        with atomic.writing(path, make_folder=False) as out:
            out.write("\n".join(lines).encode("ascii"))
    except OSError as problem:
        raise UsageError(f"--junit: cannot write {path}: {problem.strerror}") from None


def _case(one: ContractOutcome) -> JUnitCase:
    outcome = {True: "", False: "failure", None: "skipped"}[one.keeping.kept]
    message = one.error or one.keeping.reason
    return JUnitCase(one.contract.command, one.contract.text, "error" if one.error else outcome, "", message)


@guard.command()
@click.pass_context
def init(ctx: click.Context) -> int:
    """Make a file of contracts, with the commands of the job matrix held to the lock."""
    session: Session = ctx.obj
    repo = session.repository
    path = repo.working_root / FILE
    if path.exists():
        raise UsageError(f"there is {FILE} already", "add contracts with: perun guard add COMMAND")
    commands = suggesting.matrix_commands(repo)
    suggesting.make(repo, path, commands)
    session.say(
        f"made {FILE}" + (f" for {plural(len(commands), 'command')} of the job matrix" if commands else "")
    )
    session.note("next: perun guard add './prog {n}' --for 100..1600" + ("; perun lock" if commands else ""))
    return 0


@guard.command()
@click.argument("command", required=False, default="")
@click.option("--for", "sizes", metavar="A..B|A,B,...", default="",
              help="The sizes that a place as {n} of COMMAND takes, e.g. 100..1600.")  # fmt: skip
@click.option("--from-fuzz", "campaign", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Add contracts on what `perun fuzz` has found, in place of COMMAND.")  # fmt: skip
@click.pass_context
def add(ctx: click.Context, command: str, sizes: str, campaign: Path | None) -> int:
    """Measure COMMAND, and add the contracts that it keeps to.

    A COMMAND with a place, as './parse {n}', gets orders of growth, with a tenth of an exponent of room; one
    without is held to the lock. With --from-fuzz, the slow inputs of a campaign are copied to perun-guard,
    and are the commands: five sizes of those whose growth is known.
    """
    session: Session = ctx.obj
    repo = session.repository
    path = repo.working_root / FILE
    if (campaign is None) != bool(command) or (campaign and sizes):
        raise UsageError(
            "give a COMMAND, or --from-fuzz alone", "e.g. perun guard add './prog {n}' --for 1..16"
        )
    notes: list[str] = []
    with session.progress(0, "measuring") as bar:
        if campaign is None:
            added = {command: suggesting.add(repo, path, command, sizes, bar.update)}
        else:
            added, notes = fuzzed.add_from_fuzz(repo, path, campaign, bar.update)
    for one, lines in added.items():
        session.say(clean(one))
        for line in lines:
            session.say(f"  {line}")
    for note in notes:
        session.warn(clean(note))
    if not added:
        raise UsageError("no contract was added", "see the warnings")
    of_lock = any("lock" in line for lines in added.values() for line in lines)
    files = f" and {fuzzed.FOLDER}: commit both" if campaign else ""
    session.note(f"added to {FILE}{files}" + ("; next: perun lock" if of_lock else ""))
    return 0
