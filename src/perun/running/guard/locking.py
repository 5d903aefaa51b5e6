"""`perun lock`: which commands, and what they count now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from perun.core.errors import PerunError
from perun.plugin.api import Report
from perun.repository import trust
from perun.repository.repository import Repository
from perun.running.guard import contracts
from perun.running.guard.checking import RunKey, measured, named_by
from perun.running.guard.lock import FILE, CountLock, rows_of, toolchain, write
from perun.running.guard.suggesting import matrix_commands

_COLLECTORS: Final = ("instructions", "memory")


def commands_of(repo: Repository, lock: CountLock) -> list[str]:
    """Those of the contracts, of the job matrix, and of the lock.

    :raises NotTrusted: where the user has not said that he trusts the files that name them.
    """
    path = repo.working_root / contracts.FILE
    named = contracts.commands_in(contracts.read(path)) if path.exists() else []
    if named:
        repo.require_trust("counting what programs cost", named_by(path, named))
    own = dict.fromkeys((*named, *matrix_commands(repo)))
    if lock.rows and not lock.rows.keys() <= own.keys():
        repo.require_trust("counting what programs cost", named_by(repo.working_root / FILE, lock.rows))
    return list(dict.fromkeys((*own, *lock.rows)))


def keep(repo: Repository, lock: CountLock) -> None:
    """Write the lock, whose commands the user has measured, and so trusts."""
    path = repo.working_root / FILE
    write(path, lock)
    if repo.trust_state.decided:
        trust.grant(repo.root, repo.config, repo.environ, named_by(path, lock.rows))


def counted(repo: Repository, commands: Sequence[str], report: Report) -> CountLock:
    """What the commands count now.

    :raises PerunError: where one cannot be measured.
    """
    repo.require_trust("counting what programs cost")
    keys = [RunKey(command, collector) for command in commands for collector in _COLLECTORS]
    found: dict[str, dict[str, float]] = {}
    for key, own in measured(repo, keys, report):
        if isinstance(own, PerunError):
            raise type(own)(f"{key.command}: {own.message}", own.hint)
        found.setdefault(key.command, {}).update(own)
    rows: Mapping[str, Mapping[str, float]] = {command: rows_of(found[command]) for command in commands}
    return CountLock(toolchain(repo, commands), rows)
