"""`perun fsck`: verify everything that is stored, and rebuild what can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from perun.errors import ConfigError, PerunError
from perun.plugin.api import Report, silent
from perun.porcelain import acknowledged, hooks, journal_file, stats
from perun.porcelain.changes.history import table_of
from perun.porcelain.repository import BISECTIONS, PERUN_FOLDER, Repository
from perun.porcelain.run import checkouts, in_place, matrix
from perun.store.fsck import Finding, rebuild_caches
from perun.store.fsck import fsck as check_store


def fsck(repo: Repository, report: Report = silent, *, repair: bool = False) -> Iterator[Finding]:
    """Whatever is damaged, missing or left over, as a stream. Reads only, but with `repair`.

    :param repair: do what each finding offers; what was done is in it. No repair removes the only copy of
        anything.
    """
    with repo.store.lock() if repair else nullcontext():
        for finding in _findings(repo, report):
            yield _repaired(finding) if repair and finding.repair is not None else finding


def rebuild(repo: Repository, report: Report = silent) -> int:
    """Make all caches anew: what lists show, and what `perun changes` and the dashboard read of a history.

    :returns: how many versions have profiles. :raises LockTimeout: if another process holds the lock.
    """
    store = repo.store
    with store.lock():
        report("caches of lists", 0, 0)
        rebuild_caches(store)
        states = {one: state for one in store.indexes.minors() if (state := store.indexes.state(one))}
        table_of(repo, states, lambda done, total: report("versions", done, total))
    return len(states)


def _repaired(finding: Finding) -> Finding:
    assert finding.repair is not None
    try:
        return finding._replace(done=finding.repair())
    except (PerunError, OSError) as problem:
        return finding._replace(message=f"{finding.message}; repairing it failed: {problem}")


def _findings(repo: Repository, report: Report) -> Iterator[Finding]:
    date = partial(stats.date_of, repo)
    yield from check_store(repo.store, lambda done, total: report("", done, total), date)
    yield from _journals(repo)
    yield from _acknowledged(repo)
    yield from _working_copies(repo)
    for hook, repair in hooks.problems(repo):
        yield Finding("warning", hook.path, hook.problem, repair)


def _journals(repo: Repository) -> Iterator[Finding]:
    """Damaged journals of batches, of bisections and of an in-place run."""
    for folder in (matrix.folder(repo), repo.root / PERUN_FOLDER / BISECTIONS):
        for path, message in journal_file.damaged(folder):
            yield Finding("error", path, message)
    try:
        in_place.read_journal(repo)
    except PerunError as problem:
        yield Finding("error", repo.in_place_journal, problem.message)


def _acknowledged(repo: Repository) -> Iterator[Finding]:
    """The list of acknowledged changes, where it is none."""
    path = acknowledged.path_of(repo)
    try:
        acknowledged.Acknowledged.load(repo)
    except ConfigError as problem:
        yield Finding("error", path, f"{problem.message}; {problem.hint}")


def _working_copies(repo: Repository) -> Iterator[Finding]:
    for path in checkouts.leftovers(repo):
        message = "left over from an interrupted run"
        yield Finding("info", path, message, partial(_remove_working_copy, repo, path))


def _remove_working_copy(repo: Repository, path: Path) -> str:
    checkouts.remove_leftover(repo, path)
    return "removed"
