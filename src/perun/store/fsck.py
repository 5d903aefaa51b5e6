"""A check of the whole store: every file is read, nothing is changed.

A finding that can be rebuilt, or is left over from a killed process, comes with its repair. No repair removes
the only copy of anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from perun.core import atomic, leftovers
from perun.core.errors import PerunError, ProfileError
from perun.core.wording import plural
from perun.store import tree
from perun.store.files import Files
from perun.store.index import parse
from perun.store.objects import KNOWN_TYPES, Checksums, NotedChecksums
from perun.store.pending import CACHE
from perun.store.summaries import READ_BY_LISTS, key_of, profile_summary_of

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo
    from perun.store import Store

_AT_ONCE = 200
_CACHE = "this cache cannot be read; what it holds is read anew each time"
Progress = Callable[[int, int], None]
"""Called with the number of files that are done and of all files."""


class FsckFinding(NamedTuple):
    """Something wrong (`error`), suspicious (`warning`) or merely worth knowing (`info`) in the store."""

    severity: Literal["error", "warning", "info"]
    path: Path
    message: str
    repair: Callable[[], str] | None = None
    """Repairs it, and says what was done; by who holds the lock of the repository."""
    done: str = ""
    """What was done to repair it."""


def fsck(
    store: Store, progress: Progress | None = None, date: Callable[[str], str | None] | None = None
) -> Iterator[FsckFinding]:
    """Read every object, index, pending profile, file of changes, statistics and temporary file.

    Other processes may write meanwhile: what they replace is seen as it was before or after.

    :param date: the date of a minor version, None if it does not exist; what repairs statistics needs it.
    """
    return _Check(store, progress or (lambda done, total: None), date).run()


class _Check:
    def __init__(self, store: Store, progress: Progress, date: Callable[[str], str | None] | None) -> None:
        self._store = store
        self._progress = progress
        self._date = date
        self._types: dict[str, str] = {}
        self._referenced: set[str] = set()

    def run(self) -> Iterator[FsckFinding]:
        steps: list[Callable[[], Iterator[FsckFinding]]] = [
            *self._tree_steps(),
            self._pending,
            self._stats,
            self._temp,
            partial(check_caches, self._store),
            self._leftovers_and_foreign_files,
        ]
        for done, step in enumerate(steps):
            self._progress(done, len(steps))
            try:
                yield from step()
            except PerunError as problem:
                yield FsckFinding("error", self._store.root, problem.message)
        self._progress(len(steps), len(steps))

    def _tree_steps(self) -> Iterator[Callable[[], Iterator[FsckFinding]]]:
        # Objects first, as the indexes are compared with them; then what needs all of both.
        root = self._store.objects.root
        objects: list[Callable[[], Iterator[FsckFinding]]] = []
        others: list[Callable[[], Iterator[FsckFinding]]] = []
        for name, start in tree.beginnings(root, self._store.files, lambda _name: True):
            path = root / name[:2] / name[2:]
            if tree.is_checksum(name) and not tree.is_index(start):
                objects.append(partial(self._object, name, path))
            elif tree.is_minor_version(name):
                others.append(partial(self._index, path))
            elif name.endswith(tree.CHANGES_SUFFIX) and tree.is_minor_version(
                name[: -len(tree.CHANGES_SUFFIX)]
            ):
                others.append(partial(self._changes, name, path))
            elif not path.name.startswith(atomic.TEMPORARY_PREFIX):
                others.append(partial(self._foreign, path))
        yield from objects
        yield from others
        yield self._unreferenced

    def _object(self, checksum: str, path: Path) -> Iterator[FsckFinding]:
        self._types[checksum] = ""
        try:
            type_ = self._types[checksum] = self._store.objects.check(checksum)
        except ProfileError as problem:
            yield FsckFinding("error", path, problem.message)
            return
        if type_ not in KNOWN_TYPES:
            yield FsckFinding("warning", path, f"its type {type_!r} is not one that Perun itself makes")

    def _index(self, path: Path) -> Iterator[FsckFinding]:
        data = tree.read(path, files=self._store.files)
        try:
            entries = parse(data, str(path)).entries if data is not None else []
        except ProfileError as problem:
            yield FsckFinding("error", path, problem.message)
            return
        keys = set()
        for entry in entries:
            self._referenced.add(entry.checksum)
            if entry.checksum not in self._types and entry.checksum not in self._store.objects:
                yield FsckFinding("error", path, f"the object {entry.checksum} of {entry.path} is missing")
            known_type = self._types.get(entry.checksum)
            if known_type and entry.head.type and known_type != entry.head.type:
                yield FsckFinding(
                    "warning", path, f"{entry.path} is of type {known_type}, not {entry.head.type}"
                )
            if entry.key in keys:
                yield FsckFinding("warning", path, f"{entry.path} is registered twice with the same time")
            if "/" in entry.path:
                yield FsckFinding("warning", path, f"{entry.path} is not the plain name of a file")
            keys.add(entry.key)

    def _changes(self, name: str, path: Path) -> Iterator[FsckFinding]:
        minor = name.removesuffix(tree.CHANGES_SUFFIX)
        try:
            self._store.changes.read(minor)
        except ProfileError as problem:
            yield FsckFinding("error", path, problem.message)
            return
        yield from self._verified(self._store.changes.checksums, self._noted_changes, minor, path)

    @cached_property
    def _noted_changes(self) -> NotedChecksums:
        return self._store.changes.checksums.read()

    def _foreign(self, path: Path) -> Iterator[FsckFinding]:
        yield FsckFinding("info", path, "this is not a file of Perun")

    def _unreferenced(self) -> Iterator[FsckFinding]:
        if count := len(self._types.keys() - self._referenced):
            root = self._store.objects.root
            yield FsckFinding("info", root, f"no index names {count} of {len(self._types)} objects")

    def _pending(self) -> Iterator[FsckFinding]:
        root = self._store.pending.root
        noted = self._store.pending.checksums.read()
        for name in sorted(tree.listing(root, self._store.files)):
            if name.endswith(".perf"):
                try:
                    sha1 = self._store.pending.check(name)
                except ProfileError as problem:
                    if self._store.files.exists(root / name):
                        yield FsckFinding("error", root / name, problem.message)
                    continue
                yield from self._verified(self._store.pending.checksums, noted, name, root / name, sha1)
        for checksums in (self._store.pending.checksums, self._store.changes.checksums):
            if damaged := checksums.read().damaged:
                message = f"{damaged} of its checksums cannot be read"
                yield FsckFinding("warning", checksums.path, message, partial(_compact, checksums))

    def _stats(self) -> Iterator[FsckFinding]:
        stats = self._store.stats
        found = stats.found()
        for minor in found:
            for name in stats.names(minor):
                try:
                    stats.get(minor, name)
                except ProfileError as problem:
                    yield FsckFinding("error", stats.folder(minor) / name, problem.message)
        repair = partial(self._sync_stats, self._date) if self._date is not None else None
        try:
            out_of_step = {minor for minor, _ in stats.versions()}.symmetric_difference(found)
        except ProfileError as problem:
            yield FsckFinding("error", stats.root, problem.message, repair)
            return
        if out_of_step:
            message = f"its index is out of step with {len(out_of_step)} versions: perun stats sync"
            yield FsckFinding("warning", stats.root, message, repair)

    def _sync_stats(self, date: Callable[[str], str | None]) -> str:
        self._store.stats.sync(date)
        return f"made its index anew: {len(self._store.stats.versions())} versions"

    def _temp(self) -> Iterator[FsckFinding]:
        temp = self._store.temp
        for file in temp.files():
            top = file.path.partition("/")[0]
            if leftovers.is_of_a_run(top) or leftovers.is_unfinished(top):
                continue  # files of the project, or of what is measured: the folder has a finding as a whole
            if (temp.root / file.path).is_symlink():
                yield from self._foreign(temp.root / file.path)
                continue
            try:
                temp.read(file.path)
            except PerunError as problem:
                if os.path.lexists(temp.root / file.path):
                    yield FsckFinding("error", temp.root / file.path, problem.message)
        if gone := temp.stale():
            message = f"its index names {len(gone)} files that are gone: perun temp sync"
            yield FsckFinding("warning", temp.root, message, partial(self._sync_temp, len(gone)))

    def _sync_temp(self, count: int) -> str:
        self._store.temp.sync()
        return f"its index names no file that is gone: it named {count}"

    def _leftovers_and_foreign_files(self) -> Iterator[FsckFinding]:
        for path in leftovers.found(self._store.root):
            if leftovers.is_left_over(path):
                message = "left over by a process that was ended; remove it"
                yield FsckFinding("info", path, message, partial(_remove_left_over, path))
            else:
                yield FsckFinding(
                    "info", path, "not finished; a process may be writing it, or has been ended"
                )
        root, files = self._store.objects.root, self._store.files
        for name in sorted(set(tree.listing(root, files)) - set(tree.folders(root, files))):
            if not name.startswith(atomic.TEMPORARY_PREFIX):
                yield from self._foreign(root / name)

    def _verified(
        self, checksums: Checksums, noted: NotedChecksums, name: str, path: Path, sha1: str = ""
    ) -> Iterator[FsckFinding]:
        """Whether a file that could be read is the one whose checksum was noted.

        :param sha1: of the file, if it is known; otherwise the file is read.
        """
        if name not in noted.checksums:
            return
        files = self._store.files
        try:
            time = files.state(path).st_mtime_ns
            verdict = noted.verdict(name, sha1 or tree.sha1_of_file(path, sys.maxsize, files), time)
        except OSError:
            return
        if verdict == "damaged":
            yield FsckFinding(
                "error", path, "its checksum does not match its content: it changed on the disk"
            )
        elif verdict == "changed":
            yield FsckFinding(
                "warning",
                path,
                "another program or release changed it: its checksum is that of an older content",
                partial(_accept, checksums, name, path, files),
            )


def _accept(checksums: Checksums, name: str, path: Path, files: Files) -> str:
    checksums.note(name, tree.sha1_of_file(path, sys.maxsize, files), files.state(path).st_mtime_ns)
    return "accepted its content, and stored the new checksum"


def _compact(checksums: Checksums) -> str:
    checksums.compact()
    return "removed the checksums that cannot be read"


def _remove_left_over(path: Path) -> str:
    return "removed" if leftovers.remove(path) else "it is in use, or gone"


def check_caches(store: Store) -> Iterator[FsckFinding]:
    """Caches that cannot be read, or hold other numbers than what they were made from."""
    path = store.pending.root / CACHE
    if store.files.exists(path) and not store.pending.is_cache_valid():
        yield FsckFinding("info", path, _CACHE, partial(_rebuild, store.pending.refresh))
    if store.cache.damage():
        yield FsckFinding("info", store.cache.path, _CACHE, partial(_rebuild, partial(rebuild_caches, store)))
    if wrong := store.summaries.wrong():
        message = f"its numbers are out of step with {plural(len(wrong), 'version')}"
        yield FsckFinding("warning", store.cache.path, message, partial(_rebuild, store.summaries.rebuild))
    if unknown := _unknown(store):
        them = plural(len(unknown), "profile")
        message = f"lists cannot show what was measured in {them}: they were not read yet"
        yield FsckFinding("info", store.cache.path, message, partial(_learn, store, unknown))


def rebuild_caches(store: Store) -> None:
    """Make the caches anew that the store can make of its profiles; by who holds the lock."""
    store.cache.clear()
    store.pending.refresh()
    store.summaries.rebuild()
    _learn(store, _unknown(store))


def _unknown(store: Store) -> list[ProfileInfo]:
    """The profiles of which no facts are known: registered ones, and pending ones that are too large to be
    read by a list."""
    found: list[ProfileInfo] = []
    for minor in store.indexes.minors():
        with suppress(PerunError):  # what is damaged has a finding of its own
            infos = {entry.checksum: entry.info() for entry in store.indexes.read(minor)}
            for checksum in infos.keys() - store.profile_summaries.of(infos).keys():
                if checksum in store.objects:
                    found.append(infos[checksum])
    pending = {key_of(info): info for info in store.pending.list()}
    for key in pending.keys() - store.profile_summaries.of(pending).keys():
        with suppress(OSError):  # taken away meanwhile
            if store.files.state(pending[key].realpath).st_size > READ_BY_LISTS:
                found.append(pending[key])
    return found


def _learn(store: Store, infos: Sequence[ProfileInfo]) -> str:
    """Read the profiles, and note what they say; one that is damaged has a finding of its own."""
    failed = 0
    found = {}
    for number, info in enumerate(infos, 1):
        try:
            load = store.objects.get if info.checksum else store.pending.load
            found[key_of(info)] = profile_summary_of(load(info.checksum or info.realpath))
        except PerunError:
            failed += 1
        if number % _AT_ONCE == 0 or number == len(infos):
            store.profile_summaries.keep(found)
            found = {}
    return f"read them, but {plural(failed, 'damaged one')}" if failed else "read them"


def _rebuild(make: Callable[[], object]) -> str:
    make()
    return "made anew"
