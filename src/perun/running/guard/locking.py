"""`perun lock`: which commands, what they count now, and how git merges two locks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perun.core import atomic
from perun.core.errors import PerunError
from perun.core.process.git import GitCommand
from perun.measurement.contract import MIN_SIZES
from perun.plugin.api import Report
from perun.repository import trust
from perun.repository.repository import Repository
from perun.running.guard import contracts
from perun.running.guard.checking import RunKey, measured, named_by
from perun.running.guard.contracts import Contract, LockedShare
from perun.running.guard.lock import (
    FILE,
    LARGEST,
    CountLock,
    growing,
    growing_in,
    growth_of,
    merged,
    read,
    rows_of,
    toolchain,
    write,
)
from perun.running.guard.suggesting import matrix_commands

_COLLECTORS: Final = ("instructions", "memory")
DRIVER: Final = "perun-lock"
"""The name of the merge driver in the configuration of git."""


def wanted(repo: Repository, lock: CountLock) -> tuple[list[str], list[Contract]]:
    """The commands of the contracts, of the job matrix, and of the lock; and those whose growth is kept.

    :raises NotTrusted: where the user has not said that he trusts the files that name them.
    """
    path = repo.working_root / contracts.FILE
    every = contracts.read(path) if path.exists() else []
    named = contracts.commands_in(every)
    if named:
        repo.require_trust("counting what programs cost", named_by(path, named))
    sized = [one for one in every if len(one.sizes) >= MIN_SIZES]
    growth = [growing(one.command, one.text.rpartition(f" for {one.parameter} ")[2], one.parameter)
              for one in sized]  # fmt: skip
    plain = contracts.commands_in(
        [one for one in every if one not in sized or isinstance(one.limit, LockedShare)]
    )
    own = dict.fromkeys((*plain, *matrix_commands(repo)))
    of_lock = growing_in(lock)
    kept = [command for command in lock.rows if command not in {one.command for one in of_lock}]
    if not {*kept, *contracts.commands_in(of_lock)} <= {*own, *named}:
        repo.require_trust("counting what programs cost", named_by(repo.working_root / FILE, lock.rows))
    return list(dict.fromkeys((*own, *kept))), list(dict.fromkeys((*growth, *of_lock)))


def keep(repo: Repository, lock: CountLock) -> None:
    """Write the lock, whose commands the user has measured, and so trusts."""
    path = repo.working_root / FILE
    write(path, lock)
    if repo.trust_state.decided:
        trust.grant(repo.root, repo.config, repo.environ, named_by(path, lock.rows))


def counted(
    repo: Repository, commands: Sequence[str], growth: Sequence[Contract], report: Report
) -> CountLock:
    """What the commands count now, and how that grows.

    :raises PerunError: where one cannot be measured.
    """
    repo.require_trust("counting what programs cost")
    every = dict.fromkeys((*commands, *contracts.commands_in(growth)))
    keys = [RunKey(command, collector) for command in every for collector in _COLLECTORS]
    found: dict[str, dict[str, float]] = {}
    for key, own in measured(repo, keys, report):
        if isinstance(own, PerunError):
            raise type(own)(f"{key.command}: {own.message}", own.hint)
        found.setdefault(key.command, {}).update(own)
    rows = {command: rows_of(found[command]) for command in commands}
    for one in growth:
        rows.setdefault(one.command, {}).update(growth_of(one, [found[each] for each in one.commands()]))
    return CountLock(toolchain(repo, list(every)), rows)


def merge(base: Path, ours: Path, theirs: Path) -> list[tuple[str, str]]:
    """Write into `ours` what both sides changed since `base`; the rows that have to be measured, as both
    changed them.

    :raises ConfigError: where one of them is no lock.
    """
    made, apart = merged(*(read(path) for path in (base, ours, theirs)))
    write(ours, made)
    return apart


def install_merge_driver(repo: Repository) -> None:
    """Let git merge locks by their rows: the attribute is committed, the driver is in the configuration of
    this clone.

    :raises VersionControlError: where the project is in no git repository.
    """
    git = GitCommand(repo.working_root, repo.environ)
    git.alter("config", f"merge.{DRIVER}.name", "rows of perun.lock")
    git.alter("config", f"merge.{DRIVER}.driver", "perun lock --merge %O %A %B")
    path, line = repo.working_root / ".gitattributes", f"{FILE} merge={DRIVER}"
    text = contracts.text_of(path, LARGEST) or ""
    if line not in text.splitlines():
        ends = text if text.endswith("\n") or not text else f"{text}\n"
        atomic.write(path, f"{ends}{line}\n".encode())
