"""`perun guard init` and `perun guard add`: contracts that a program keeps to, written into the file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perun.core import atomic
from perun.core.errors import PerunError, UsageError
from perun.measurement.contract import suggested as order
from perun.plugin.api import Report
from perun.repository import jobs, trust
from perun.repository.jobs import EmptyMatrix
from perun.repository.repository import Repository
from perun.running.guard.checking import CONFIDENCE, Counts, RunKey, keys_of, measured, named_by
from perun.running.guard.contracts import LARGEST, commands_in, contract, read, text_of

_HEAD: Final = """\
# Contracts on what programs cost, checked by `perun guard check`: see docs/guard.md of Perun.
# A line for each command, or a list of contracts on it:
#
# ./parse {n}:
#   - instructions grow at most n^1.1 for n 100..1600
#   - allocations at most 3 n + 200 for n 100..1600
# ./parse 400:
#   - peak memory at most 40 MB
#   - instructions of read_value at most 2 M
#   - instructions at most +2 % of the lock
"""
_OF_LOCK: Final = ("instructions at most +2 % of the lock", "allocations at most +2 % of the lock")
_GROWING: Final = ("instructions", "allocations", "peak memory")
PLACE: Final = re.compile(r"\{(\w+)\}")


def matrix_commands(repo: Repository) -> list[str]:
    """The commands of the job matrix; none where there is none."""
    try:
        found = jobs.matrix(repo)
    except EmptyMatrix:
        return []
    return list(dict.fromkeys(str(one) for one in found if one.generated is None))


def make(repo: Repository, path: Path, commands: Sequence[str]) -> None:
    """Write the file, each of the commands held to the lock."""
    atomic.write(path, "".join((_HEAD, *(_entry(command, _OF_LOCK) for command in commands))).encode())
    _trust(repo, path)


def _trust(repo: Repository, path: Path) -> None:
    """Keep the trust in a file that the user has changed by a command: he need not say it again."""
    if repo.trust_state.decided:
        trust.grant(repo.root, repo.config, repo.environ, named_by(path, commands_in(read(path))))


def add(repo: Repository, path: Path, command: str, sizes: str, report: Report) -> list[str]:
    """Measure the command, and add what it keeps to at the end of the file, which is made if it is not there.

    :param sizes: that its place takes, as in a contract. :return: the contracts.
    :raises UsageError: where the file has that command already, or as :func:`suggested`.
    :raises PerunError: where the command fails.
    """
    text = text_of(path, LARGEST)
    before = read(path) if text is not None else []
    if any(one.command == command for one in before):
        raise UsageError(f"{path.name} has contracts of {command} already", f"edit {path}")
    if before:
        repo.require_trust("adding a contract", named_by(path, commands_in(before)))
    lines = suggested(repo, command, sizes, report)
    text = _HEAD if text is None else text
    ends = text if text.endswith("\n") or not text else f"{text}\n"
    atomic.write(path, f"{ends}{_entry(command, lines)}".encode())
    _trust(repo, path)
    return lines


def _entry(command: str, lines: Sequence[str]) -> str:
    plain = re.fullmatch(r"[\w./][\w./ {}=-]*", command) and ": " not in command
    return f"{command if plain else json.dumps(command)}:\n" + "".join(f"  - {line}\n" for line in lines)


def suggested(repo: Repository, command: str, sizes: str, report: Report) -> list[str]:
    """Contracts that the command keeps to now.

    :param sizes: that its place takes, as in a contract.
    :raises UsageError: where it has a place and there are no sizes. :raises PerunError: where it fails.
    """
    place = PLACE.search(command)
    if place is None:
        if sizes:
            raise UsageError(f"--for: {command!r} has no place for sizes", "write one, as in './parse {n}'")
        return list(_OF_LOCK)
    if not sizes:
        raise UsageError(f"which sizes does {place[0]} take?", "say so, e.g. --for 100..1600")
    lines = [f"{name} grow at most n^1 for {place[1]} {sizes}" for name in _GROWING]
    wanted = [contract(command, line) for line in lines]
    keys = list(dict.fromkeys(key for one in wanted for key in reversed(keys_of(one))))
    counted: dict[RunKey, Counts] = {}
    repo.require_trust("measuring a command")
    for key, own in measured(repo, keys, report):
        if isinstance(own, PerunError):
            raise own
        counted[key] = own
    found = []
    for name, one in zip(_GROWING, wanted, strict=True):
        values = [counted[key].get(name, 0.0) for key in keys_of(one)]
        if values[0] > 0 and (form := order(one.sizes, values, CONFIDENCE)):
            found.append(f"{name} {'grows' if name == 'peak memory' else 'grow'} at most "
                         f"{form.replace('n', place[1])} for {place[1]} {sizes}")  # fmt: skip
    return found
