"""What pages say of versions: all in short, and in chunks with their profiles and values."""

from __future__ import annotations

import calendar
import os
import stat
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from perun.core.errors import PerunError
from perun.core.wording import plural
from perun.history.trend import text_of
from perun.measurement.present import NAMES
from perun.profile.head import Configuration
from perun.profile.helpers import ProfileInfo
from perun.repository import journal
from perun.repository.lookup import identity
from perun.repository.repository import BATCHES, KEPT_INPUTS, PERUN_FOLDER, Repository
from perun.store.changes import ChangeRecord
from perun.web.data import form
from perun.web.data.changed import positions
from perun.web.data.form import Running
from perun.web.data.naming import deltas, halves, short, shorts
from perun.web.data.naming import identity as identity_of
from perun.web.data.series import PIECE
from perun.web.data.state import WebState

# What is measured at the moment, as the journals of batches tell it.


def running(repo: Repository) -> Running | None:
    """How far the newest batch is that a process works on; None if there is none."""
    for path, plan, lines in journal.locked(repo.root / PERUN_FOLDER / BATCHES):
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


CHUNK: Final = 100
"""Versions of one piece `commits/K` or `values/K`."""
_SHORT: Final = 8
PAGES: Final = {
    "trace": ("flamegraph",),
    "instructions": ("flamegraph",),
    "sample": ("flamegraph",),
    "memory": ("flamegraph", "heapmap"),
    "complexity": ("flamegraph",),
}
"""Views that show profiles of a collector as a page without being asked more."""
MOST_PROBLEMS: Final = 50


def site(state: WebState, *, name: str, served: bool) -> form.Site:
    """The piece `site`. :param name: of the state. :param served: whether a server answers."""
    commits = state.commits
    head = commits.head
    branches = zip(commits.branches, commits.heads, strict=True)
    return form.Site(
        project=state.repo.root.resolve().name,
        branch=commits.branches[0] if commits.branches else "",
        head=head.checksum if head else None,
        generated=int(time.time()),
        state=name,
        commits=len(commits.versions),
        measured=len(state.measured),
        profiles=sum(state.table.profiles[column] for column in state.columns if column >= 0),
        pending=len(state.repo.store.pending.list()),
        series=len(state.groups),
        chunk=CHUNK,
        piece=PIECE,
        can_acknowledge=served,
        feed=True,
        machines=state.machines,
        branches=[form.Named(one, state.place_of(checksum)) for one, checksum in branches],
        tags=[form.Named(*one) for one in commits.tags],
        problems=list(state.problems[:MOST_PROBLEMS]),
        running=running(state.repo) if served else None,
        hint=_hint(state),
        explained=positions(state),
    )


def _hint(state: WebState) -> str:
    if not state.commits.versions:
        return "commit something, and measure it: perun run matrix"
    if state.measured.size:
        return ""
    if pending := len(state.repo.store.pending.list()):
        return f"register what was measured: perun add --to-origin 0@p{f'-{pending - 1}@p' * (pending > 1)}"
    return "measure this version: perun run matrix"


def history(state: WebState) -> form.History:
    """The piece `history`."""
    commits = state.commits
    measured = np.full(len(commits.versions), ".")
    measured[state.measured] = "1"
    return form.History(
        "".join(one.checksum[:_SHORT].ljust(_SHORT) for one in commits.versions),
        deltas(commits.dates), list(commits.line), "".join(measured),
    )  # fmt: skip


def commits(state: WebState, chunk: int) -> form.Commits:
    """The piece `commits/K`."""
    first = chunk * CHUNK
    tags: defaultdict[int, list[str]] = defaultdict(list)
    for name, place in state.commits.tags:
        tags[place].append(name)
    last = min(first + CHUNK, len(state.commits.versions))
    return form.Commits(first, [_commit(state, place, tags[place]) for place in range(first, last)])


def _commit(state: WebState, position: int, tags: list[str]) -> form.Commit:
    one = state.commits.versions[position]
    damaged = state.damaged.get(one.checksum, "")
    profiles: list[form.Profile] = []
    checks: list[form.Checked] = []
    try:
        if state.repo.store.indexes.has(one.checksum):
            profiles = _profiles(state, one.checksum)
        checks = [_checked(record) for record in state.repo.store.changes.read(one.checksum)]
    except PerunError as problem:
        damaged = damaged or problem.message
    places = [state.place_of(parent) for parent in one.parents]
    return form.Commit(
        one.checksum, int(state.commits.dates[position]), one.author, one.subject,
        [place if place >= 0 else None for place in places], tags, int(state.lines[position]), profiles,
        checks, damaged,
    )  # fmt: skip


def _profiles(state: WebState, checksum: str) -> list[form.Profile]:
    infos = [entry.info() for entry in state.repo.store.indexes.read(checksum)]
    known = state.repo.store.profile_summaries.of(info.checksum for info in infos)
    found = []
    for info in infos:
        one = known.get(info.checksum)
        machine = state.machine_place(one.machine) if one else None
        found.append(_profile(info, machine, one.incomplete or None if one else None))
    return found


def _profile(info: ProfileInfo, machine: int | None, incomplete: str | None) -> form.Profile:
    configuration = info.configuration
    return form.Profile(
        identity(info), info.source, configuration.collector, text_of(configuration._replace(workload="")),
        configuration.workload, info.time, incomplete, machine,
        list(PAGES.get(configuration.collector, ())),
    )  # fmt: skip


def _checked(record: ChangeRecord) -> form.Checked:
    info = record.info
    return form.Checked(
        info.result.name, info.location, info.from_baseline, info.to_target, short(info.rate_degradation),
        record.baseline, record.command, NAMES[info.result],
    )  # fmt: skip


def values(state: WebState, chunk: int) -> form.Values:
    """The piece `values/K`: rows of the series that were measured in the chunk.

    They are in the order in which they were first measured: which are important changes with each version,
    and an older chunk shall not.
    """
    first = chunk * CHUNK
    columns = state.columns[first : first + CHUNK]
    there = columns >= 0
    found = np.full((len(state.table.row), len(columns)), np.nan)
    half = found.copy()
    found[:, there] = state.table.values[:, columns[there]]
    half[:, there] = state.table.halves[:, columns[there]]
    measured = np.isfinite(found).any(axis=1)
    keys = state.table.keys
    rows = [(identity_of(keys[row]), row) for row in np.flatnonzero(measured).tolist()]
    return form.Values(
        first, [name for name, _ in rows], [state.machine_of(row) for _, row in rows],
        [shorts(found[row]) for _, row in rows], [halves(found[row], half[row]) for _, row in rows],
    )  # fmt: skip


def message(repo: Repository, checksum: str) -> form.Message:
    """The piece `message/CHECKSUM`.

    :raises VersionControlError: if there is no such version.
    """
    return form.Message(repo.vcs.get_minor_version_info(repo.version(checksum)).desc)


# Which versions and configurations lack profiles.

_MEASURED, _NOT, _INCOMPLETE, _DAMAGED = b"1.id"
MOST_KEPT: Final = 200
"""Kept workloads that are listed."""
COMMAND: Final = "perun run --crawl-parents matrix --missing"


def coverage(state: WebState) -> form.Coverage:
    """The piece `coverage`."""
    main = state.commits.main
    cells: defaultdict[tuple[Configuration, str], list[tuple[int, int]]] = defaultdict(list)
    empty = bytearray([_NOT] * len(main))
    for place, position in enumerate(main.tolist()):
        if state.damaged and state.commits.versions[position].checksum in state.damaged:
            empty[place] = _DAMAGED
    for place, column in enumerate(state.columns[main].tolist()):
        if column < 0:
            continue
        for configuration in state.table.incomplete[column]:
            cells[configuration, ""].append((place, _INCOMPLETE))
        for key in state.table.conditions[column]:
            cells[key].append((place, _MEASURED))
    rows = []
    missing = []
    for (configuration, machine), own in cells.items():
        row = bytearray(empty)
        for place, cell in own:
            row[place] = cell
        text = row.decode("ascii")
        title = f"{text_of(configuration)} ({configuration.collector})"
        rows.append(
            form.Covered(title, configuration.collector, text_of(configuration._replace(workload="")),
                         configuration.workload, state.machine_place(machine), text)
        )  # fmt: skip
        if count := row.count(_NOT):
            missing.append(form.Missing(title, rows[-1].machine, count, COMMAND))
    return form.Coverage(rows, deltas(main), missing, _fuzzed(state, rows))


def _fuzzed(state: WebState, rows: Sequence[form.Covered]) -> list[form.Fuzzed]:
    """The workloads that fuzzing found and that are kept, by name."""
    found = []
    with suppress(OSError), os.scandir(state.repo.root / PERUN_FOLDER / KEPT_INPUTS) as files:
        for file in sorted(files, key=lambda one: one.name)[:MOST_KEPT]:
            status = file.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and not file.name.startswith("."):
                # The job matrix calls it `ID/NAME`, or `< ID/NAME` where it is read from the standard input.
                own = [one for one in rows if one.workload.partition("/")[2] == file.name]
                measured = max((one.cells.count("1") for one in own), default=0)
                titles = list(dict.fromkeys(one.title for one in own))
                found.append(form.Fuzzed(file.name, status.st_size, int(status.st_mtime), titles, measured))
    return found
