"""`perun lock`: which commands, and what they count now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from perun.core.errors import PerunError
from perun.plugin.api import Report
from perun.repository.repository import Repository
from perun.running.guard import contracts
from perun.running.guard.checking import RunKey, measured
from perun.running.guard.lock import FILE, Lock, rows_of, toolchain
from perun.running.guard.suggesting import matrix_commands

_COLLECTORS: Final = ("instructions", "memory")


def commands_of(repo: Repository, lock: Lock) -> list[str]:
    """Those of the contracts, of the job matrix, and of the lock."""
    path = repo.working_root / contracts.FILE
    named = [command for one in contracts.read(path) for command in one.commands()] if path.exists() else []
    return list(dict.fromkeys((*named, *matrix_commands(repo), *lock.rows)))


def counted(repo: Repository, commands: Sequence[str], report: Report) -> Lock:
    """What the commands count now.

    :raises PerunError: where one cannot be measured.
    """
    keys = [RunKey(command, collector) for command in commands for collector in _COLLECTORS]
    found: dict[str, dict[str, float]] = {}
    for key, own in measured(repo, keys, repo.working_root / FILE, report):
        if isinstance(own, PerunError):
            raise type(own)(f"{key.command}: {own.message}", own.hint)
        found.setdefault(key.command, {}).update(own)
    rows: Mapping[str, Mapping[str, float]] = {command: rows_of(own) for command, own in found.items()}
    return Lock(toolchain(repo, commands), rows)
