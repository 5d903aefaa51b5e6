"""What is measured at the moment, as the journals of batches tell it."""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from perun.porcelain import journal_file
from perun.porcelain.repository import BATCHES, PERUN_FOLDER, Repository
from perun.porcelain.web.data import Running
from perun.wording import plural


def running(repo: Repository) -> Running | None:
    """How far the newest batch is that a process works on; None if there is none."""
    for path, plan, lines in journal_file.locked(repo.root / PERUN_FOLDER / BATCHES):
        total = _total(plan)
        begun, ends, lately = _started(path.name), dict[int, str](), set[int]()
        for line in lines:
            match line:
                case ["resumed", int() | float() as begun]:  # the pause tells nothing of what is left
                    ends = {number: end for number, end in ends.items() if end == "done"}
                    lately.clear()
                case ["done" | "failed" as end, int(number), *_]:
                    ends[number] = end
                    lately.add(number)
        each = (time.time() - begun) / len(lately) if lately else 0.0
        left = int(each * (total - len(ends))) if each and total else None
        return Running(f"measuring {plural(_versions(plan), 'version')}", len(ends), total, left)
    return None


def _total(plan: Mapping[str, Any]) -> int:
    with suppress(KeyError, TypeError, IndexError):
        return sum(len(stop[2]) for stop in plan["stops"])
    return 0


def _versions(plan: Mapping[str, Any]) -> int:
    with suppress(KeyError, TypeError):
        return len(plan["versions"])
    return 0


def _started(name: str) -> float:
    """When the journal was made, as its name says."""
    with suppress(ValueError):
        return calendar.timegm(time.strptime(name[:15], "%Y%m%d-%H%M%S"))
    return time.time()
