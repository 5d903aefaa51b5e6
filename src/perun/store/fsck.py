"""A check of the whole store: every file is read, nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from perun import atomic
from perun.errors import PerunError, ProfileError
from perun.store import tree
from perun.store.index_file import parse
from perun.store.objects import KNOWN_TYPES

if TYPE_CHECKING:
    from perun.store import Store

Progress = Callable[[int, int], None]
"""Called with the number of files that are done and of all files."""


class Finding(NamedTuple):
    """Something wrong (`error`), suspicious (`warning`) or merely worth knowing (`info`) in the store."""

    severity: Literal["error", "warning", "info"]
    path: Path
    message: str


def fsck(store: Store, progress: Progress | None = None) -> Iterator[Finding]:
    """Read every object, index, pending profile, file of changes, statistics and temporary file.

    Other processes may write meanwhile: what they replace is seen as it was before or after.
    """
    return _Check(store, progress or (lambda done, total: None)).run()


class _Check:
    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._types: dict[str, str] = {}
        self._named: set[str] = set()

    def run(self) -> Iterator[Finding]:
        steps = [*self._tree_steps(), self._pending, self._stats, self._temp, self._odd_files]
        for done, step in enumerate(steps):
            self._progress(done, len(steps))
            try:
                yield from step()
            except PerunError as problem:
                yield Finding("error", self._store.root, problem.message)
        self._progress(len(steps), len(steps))

    def _tree_steps(self) -> Iterator[Callable[[], Iterator[Finding]]]:
        # Objects first, as the indexes are held against them; then what only all of them tell.
        root = self._store.objects.root
        objects: list[Callable[[], Iterator[Finding]]] = []
        others: list[Callable[[], Iterator[Finding]]] = []
        for name in tree.names(root):
            path = root / name[:2] / name[2:]
            if tree.is_checksum(name) and not tree.is_index(path):
                objects.append(partial(self._object, name, path))
            elif tree.is_minor_version(name):
                others.append(partial(self._index, path))
            elif name.endswith(tree.CHANGES_SUFFIX) and tree.is_minor_version(
                name[: -len(tree.CHANGES_SUFFIX)]
            ):
                others.append(partial(self._changes, name, path))
            elif not path.name.startswith(atomic.TEMPORARY_PREFIX):
                others.append(partial(self._odd, path))
        yield from objects
        yield from others
        yield self._unnamed

    def _object(self, checksum: str, path: Path) -> Iterator[Finding]:
        self._types[checksum] = ""
        try:
            type_ = self._types[checksum] = self._store.objects.check(checksum)
        except ProfileError as problem:
            yield Finding("error", path, problem.message)
            return
        if type_ not in KNOWN_TYPES:
            yield Finding("warning", path, f"its type {type_!r} is not one that Perun itself makes")

    def _index(self, path: Path) -> Iterator[Finding]:
        data = tree.read(path)
        try:
            entries = parse(data, str(path)).entries if data is not None else []
        except ProfileError as problem:
            yield Finding("error", path, problem.message)
            return
        keys = set()
        for entry in entries:
            self._named.add(entry.checksum)
            if entry.checksum not in self._types and entry.checksum not in self._store.objects:
                yield Finding("error", path, f"the object {entry.checksum} of {entry.path} is missing")
            known_type = self._types.get(entry.checksum)
            if known_type and entry.type and known_type != entry.type:
                yield Finding("warning", path, f"{entry.path} is of type {known_type}, not {entry.type}")
            if entry.key in keys:
                yield Finding("warning", path, f"{entry.path} is registered twice with the same time")
            if "/" in entry.path:
                yield Finding("warning", path, f"{entry.path} is not the plain name of a file")
            keys.add(entry.key)

    def _changes(self, name: str, path: Path) -> Iterator[Finding]:
        try:
            self._store.changes.read(name.removesuffix(tree.CHANGES_SUFFIX))
        except ProfileError as problem:
            yield Finding("error", path, problem.message)

    def _odd(self, path: Path) -> Iterator[Finding]:
        yield Finding("info", path, "this is not a file of Perun")

    def _unnamed(self) -> Iterator[Finding]:
        if count := len(self._types.keys() - self._named):
            root = self._store.objects.root
            yield Finding("info", root, f"no index names {count} of {len(self._types)} objects")

    def _pending(self) -> Iterator[Finding]:
        root = self._store.pending.root
        for name in sorted(tree.listing(root)):
            if name.endswith(".perf"):
                try:
                    self._store.pending.check(name)
                except ProfileError as problem:
                    if os.path.lexists(root / name):
                        yield Finding("error", root / name, problem.message)

    def _stats(self) -> Iterator[Finding]:
        stats = self._store.stats
        found = stats.found()
        for minor in found:
            for name in stats.names(minor):
                try:
                    stats.get(minor, name)
                except ProfileError as problem:
                    yield Finding("error", stats.folder(minor) / name, problem.message)
        if out_of_step := {minor for minor, _ in stats.versions()}.symmetric_difference(found):
            yield Finding(
                "warning",
                stats.root,
                f"its index is out of step with {len(out_of_step)} versions: perun stats sync",
            )

    def _temp(self) -> Iterator[Finding]:
        temp = self._store.temp
        for file in temp.files():
            try:
                temp.read(file.path)
            except PerunError as problem:
                if os.path.lexists(temp.root / file.path):
                    yield Finding("error", temp.root / file.path, problem.message)
        if gone := temp.forgotten():
            yield Finding(
                "warning", temp.root, f"its index names {len(gone)} files that are gone: perun temp sync"
            )

    def _odd_files(self) -> Iterator[Finding]:
        for folder, _, names in os.walk(self._store.root):
            for name in sorted(names):
                if name.startswith(atomic.TEMPORARY_PREFIX):
                    yield Finding(
                        "info", Path(folder, name), "left over by a process that was ended; remove it"
                    )
        root = self._store.objects.root
        for name in sorted(set(tree.listing(root)) - set(tree.folders(root))):
            if not name.startswith(atomic.TEMPORARY_PREFIX):
                yield from self._odd(root / name)
