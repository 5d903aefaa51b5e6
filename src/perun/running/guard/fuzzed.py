"""`perun guard add --from-fuzz`: what a campaign found becomes contracts.

Inputs are written into a folder that is committed: of a result whose growth is known five of its pattern,
with a contract on the order; of any other one the input itself, held to the lock.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.errors import PerunError, UsageError
from perun.core.regular import read_regular
from perun.fuzz import results
from perun.fuzz.coverage.api import PLACE
from perun.fuzz.patterns import InputPattern
from perun.fuzz.results import SLOW, Result
from perun.plugin.api import Report
from perun.repository.repository import Repository
from perun.running.fuzz.keep import BEST, LARGEST, safe_name
from perun.running.fuzz.options import FuzzOptions, trusted
from perun.running.guard.suggesting import add

FOLDER: Final = "perun-guard"
_SPAN: Final = 16
"""The largest size by the smallest one."""
_LONGEST: Final = 0.1
"""Seconds of a run of the largest size: counting takes up to 60 times as long."""


class FuzzedContracts(NamedTuple):
    """What was added: contracts by command; and why there are none of some results."""

    added: dict[str, list[str]]
    notes: list[str]


def add_from_fuzz(repo: Repository, path: Path, campaign: Path, report: Report) -> FuzzedContracts:
    """Make contracts of the best slow results of a campaign, and add them to the file.

    :param campaign: the folder that `perun fuzz` wrote.
    :raises ProfileError: if it holds no results. :raises UsageError: if none is slow.
    :raises NotTrusted: if the user did not begin the campaign, and has not said that he trusts it.
    """
    found = results.load(campaign)
    slow = found.of_kind(SLOW)[:BEST]
    if not slow:
        raise UsageError(f"{campaign} holds no slow input", "fuzz for longer: perun fuzz --resume")
    options = trusted(repo, campaign, found.settings, "making contracts of results")
    if options.input == "argument":
        raise UsageError("--from-fuzz: the input is an argument, and no file", "write the contract by hand")
    added: dict[str, list[str]] = {}
    notes: list[str] = []
    for one in slow:
        try:
            name, sizes = _written(repo, campaign, one)
            command = _command(options, name)
            added[command] = add(repo, path, command, sizes, report)
        except (PerunError, OSError) as problem:
            notes.append(f"{one.file}: {getattr(problem, 'message', problem)}")
    return FuzzedContracts(added, notes)


def _written(repo: Repository, campaign: Path, one: Result) -> tuple[str, str]:
    """Write the inputs; their path in the project, with a place, and its sizes; without where it is one."""
    plain = Path(safe_name(Path(one.file).name))
    home = Path(FOLDER)
    largest = _largest(one.growth or {})
    if largest < _SPAN:
        data = read_regular(campaign / (one.minimized or one.file), LARGEST)
        atomic.write(repo.working_root / home / plain, data)
        return str(home / plain), ""
    pattern = _pattern((one.growth or {})["pattern"])
    low = largest // _SPAN
    for size in (low * 2**power for power in range(5)):
        name = f"{plain.stem}-{size}{plain.suffix}"
        atomic.write(repo.working_root / home / name, pattern.input(size))
    return str(home / f"{plain.stem}-{{n}}{plain.suffix}"), f"{low}..{low * _SPAN}"


def _largest(growth: Mapping[str, Any]) -> int:
    """The largest number of repetitions that runs long enough to count; 0 where no growth is known."""
    if not any(order.get("name") for order in growth.get("orders", ())):
        return 0
    points = growth.get("points", ())
    return max((one["times"] for one in points if one["seconds"] <= _LONGEST), default=0)


def _pattern(data: Mapping[str, Any]) -> InputPattern:
    """What :meth:`CostGrowth.as_json` wrote."""
    texts = ("before", "unit", "after", "middle", "close", "gap")
    parts = {name: str(data[name]).encode("latin-1") for name in texts}
    return InputPattern(kind=data["kind"], **parts, times=data["times"])


def _command(options: FuzzOptions, name: str) -> str:
    whole = " ".join(filter(None, (options.cmd, options.args)))
    word = name if "{" in name else shlex.quote(name)
    if PLACE in whole:
        return whole.replace(PLACE, word)
    return f"{whole} {'< ' if options.input == 'stdin' else ''}{word}"
