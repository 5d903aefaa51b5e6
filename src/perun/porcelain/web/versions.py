"""What pages say of versions: all in short, and in chunks with their profiles and values."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Final

import numpy as np

from perun.errors import PerunError
from perun.measurement.present import NAMES
from perun.porcelain.repository import Repository
from perun.porcelain.tags import identity
from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.explained import positions
from perun.porcelain.web.naming import identity as identity_of
from perun.porcelain.web.numbers import deltas, halves, short, shorts
from perun.porcelain.web.running import running
from perun.porcelain.web.series import PIECE
from perun.porcelain.web.state import State
from perun.profile.helpers import ProfileInfo
from perun.store.changes import ChangeRecord

CHUNK: Final = 100
"""Versions of one piece `commits/K` or `values/K`."""
_SHORT: Final = 8
PAGES: Final = {
    "trace": ("flamegraph",),
    "instructions": ("flamegraph",),
    "memory": ("flamegraph", "heapmap"),
    "complexity": ("flamegraph",),
}
"""Views that show profiles of a collector as a page without being asked more."""
MOST_PROBLEMS: Final = 50


def site(state: State, *, name: str, served: bool) -> data.Site:
    """The piece `site`. :param name: of the state. :param served: whether a server answers."""
    commits = state.commits
    head = commits.head
    branches = zip(commits.branches, commits.heads, strict=True)
    return data.Site(
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
        branches=[data.Named(one, state.place_of(checksum)) for one, checksum in branches],
        tags=[data.Named(*one) for one in commits.tags],
        problems=list(state.problems[:MOST_PROBLEMS]),
        running=running(state.repo) if served else None,
        hint=_hint(state),
        explained=positions(state),
    )


def _hint(state: State) -> str:
    if not state.commits.versions:
        return "commit something, and measure it: perun run matrix"
    if state.measured.size:
        return ""
    if state.repo.store.pending.list():
        return "register what was measured: perun add --all"
    return "measure this version: perun run matrix"


def history(state: State) -> data.History:
    """The piece `history`."""
    commits = state.commits
    measured = np.full(len(commits.versions), ".")
    measured[state.measured] = "1"
    return data.History(
        "".join(one.checksum[:_SHORT].ljust(_SHORT) for one in commits.versions),
        deltas(commits.dates), list(commits.line), "".join(measured),
    )  # fmt: skip


def commits(state: State, chunk: int) -> data.Commits:
    """The piece `commits/K`."""
    first = chunk * CHUNK
    tags: defaultdict[int, list[str]] = defaultdict(list)
    for name, place in state.commits.tags:
        tags[place].append(name)
    last = min(first + CHUNK, len(state.commits.versions))
    return data.Commits(first, [_commit(state, place, tags[place]) for place in range(first, last)])


def _commit(state: State, position: int, tags: list[str]) -> data.Commit:
    one = state.commits.versions[position]
    damaged = state.damaged.get(one.checksum, "")
    profiles: list[data.Profile] = []
    checks: list[data.Checked] = []
    try:
        if state.repo.store.indexes.has(one.checksum):
            profiles = _profiles(state, one.checksum)
        checks = [_checked(record) for record in state.repo.store.changes.read(one.checksum)]
    except PerunError as problem:
        damaged = damaged or problem.message
    places = [state.place_of(parent) for parent in one.parents]
    return data.Commit(
        one.checksum, int(state.commits.dates[position]), one.author, one.subject,
        [place if place >= 0 else None for place in places], tags, int(state.lines[position]), profiles,
        checks, damaged,
    )  # fmt: skip


def _profiles(state: State, checksum: str) -> list[data.Profile]:
    infos = [entry.info() for entry in state.repo.store.indexes.read(checksum)]
    known = state.repo.store.facts.of(info.checksum for info in infos)
    found = []
    for info in infos:
        one = known.get(info.checksum)
        machine = state.machine_place(one.machine) if one else None
        found.append(_profile(info, machine, one.incomplete or None if one else None))
    return found


def _profile(info: ProfileInfo, machine: int | None, incomplete: str | None) -> data.Profile:
    configuration = info.configuration
    return data.Profile(
        identity(info), info.source, configuration.collector, text_of(configuration._replace(workload="")),
        configuration.workload, info.time, incomplete, machine,
        list(PAGES.get(configuration.collector, ())),
    )  # fmt: skip


def _checked(record: ChangeRecord) -> data.Checked:
    info = record.info
    return data.Checked(
        info.result.name, info.location, info.from_baseline, info.to_target, short(info.rate_degradation),
        record.baseline, record.command, NAMES[info.result],
    )  # fmt: skip


def values(state: State, chunk: int) -> data.Values:
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
    return data.Values(
        first, [name for name, _ in rows], [state.machine_of(row) for _, row in rows],
        [shorts(found[row]) for _, row in rows], [halves(found[row], half[row]) for _, row in rows],
    )  # fmt: skip


def message(repo: Repository, checksum: str) -> data.Message:
    """The piece `message/CHECKSUM`.

    :raises VersionControlError: if there is no such version.
    """
    return data.Message(repo.vcs.get_minor_version_info(repo.version(checksum)).desc)
