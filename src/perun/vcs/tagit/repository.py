"""Tagit as the version control system of a project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun import atomic
from perun.errors import VersionControlError
from perun.plugin.api import MajorVersion, MinorVersion, SavedState, Vcs, WorkingCopy
from perun.regular import read_regular
from perun.vcs.tagit import history
from perun.vcs.tagit.files import Tree
from perun.vcs.tagit.history import LINE, History, Snapshot
from perun.vcs.tagit.objects import Objects
from perun.vcs.tagit.trees import Trees, with_changes

if TYPE_CHECKING:
    from perun.vcs.tagit.saved import Saved

FOLDER: Final = ".tagit"
_MAX_MARKER: Final = 1 << 20
_RESERVED: Final = frozenset({"HEAD", "@", LINE})
_NO_TAG = re.compile(r"[\x00-\x1f\x7f~^]|^-|^\s|\s$|^[0-9a-f]{40,}$")


class Tagit(Vcs):
    """Snapshots of a folder, each named by a tag, one after the other; see :class:`perun.plugin.api.Vcs`.

    Everything is in `.tagit`: contents by their SHA-256, compressed, and the list of snapshots. A minor
    version is a snapshot, named by the SHA-256 of what it holds and of the one before; the only major
    version is `main`. A snapshot takes all files that `.tagitignore` does not leave out; no program is run.
    """

    type: ClassVar[str] = "tagit"

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(root, environ)
        self._folder = root / FOLDER
        self._history = History(self._folder)
        self._trees = Trees(root, Objects(self._folder / "objects"))

    def init(self, params: Mapping[str, Any]) -> bool:
        """Make `.tagit`; there are no parameters."""
        given = [str(key) for key, value in params.items() if value not in (False, None)]
        if given:
            raise VersionControlError(
                f"tagit has no parameter {given[0]!r}", "it has none: leave --vcs-param and --vcs-flag out"
            )
        try:
            (self._folder / "objects").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise VersionControlError(
                f"cannot make the folder {self._folder}: {problem.strerror}",
                "name a folder that you may write to",
            ) from None
        return True

    def snapshot(self, name: str, message: str = "") -> str:
        """Make a snapshot of all files that are not ignored, named `name`; its checksum.

        :raises VersionControlError: where the name is taken or cannot be one; where the folder does not hold
            the newest snapshot, since history is linear; where a file cannot be read.
        """
        with self._history.lock():
            self._refuse_name(name)
            newest = self._history.newest
            if newest is not None and (self._history.head() != newest or self._marker().exists()):
                raise VersionControlError(
                    f"{self.root} does not hold the newest snapshot {newest.tag!r}, and history is linear",
                    f"go there first: perun tag --restore {newest.tag!r}",
                )
            snapshot = self._described(name, message, newest)
            self._history.append(snapshot)
        return snapshot.checksum

    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """The snapshot and all before it."""
        return (snapshot.version() for snapshot in self._history.down_from(self._history.find(head)))

    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """The one line there is, as soon as it has a snapshot."""
        if self._history.newest is not None:
            yield MajorVersion(LINE, self._history.newest.checksum)

    def get_minor_head(self) -> str:
        """Checksum of the snapshot that the folder holds."""
        return self._head().checksum

    def get_head_major_version(self) -> str:
        """`main`; the checksum of the snapshot where the folder holds an older one."""
        head = self._history.head()
        return LINE if head is None or head == self._history.newest else head.checksum

    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """The snapshot: the tag is the subject, the message the rest of the description."""
        return self._history.find(minor_version).version()

    def check_minor_version_validity(self, minor_version: str) -> None:
        """Raise unless it is the full checksum of a snapshot."""
        self._snapshot(minor_version)

    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """The checksum for a tag, HEAD, main, or a prefix of a checksum, also with `~2` or `^` after it."""
        return self._history.find(parameter).checksum

    def is_dirty(self) -> bool:
        """Whether files of the current snapshot are otherwise in the folder, or gone."""
        head = self._history.head()
        return head is not None and not self._trees.is_held(self._trees.get(head.tree))

    def checkout(self, minor_version: str) -> None:
        """Make the files of the folder those of the snapshot; changed files that do not differ stay changed.

        :raises VersionControlError: names the files, untracked ones included, that would be overwritten.
        """
        snapshot = self._history.find(minor_version)
        with self._history.lock():
            self._move([self._current()], self._trees.get(snapshot.tree))
            self._arrive(snapshot)

    def prepare_save(self) -> SavedState:
        """First half of :meth:`save_state`: a copy of changed files; the folder is not touched yet."""
        head = self._head()
        with self._history.lock():
            changes = self._trees.changed(self._trees.get(head.tree))
            if not changes:
                return SavedState(False, head.checksum)
            tree = self._trees.put(with_changes(self._trees.get(head.tree), changes))
            record = self._saved().add(head.checksum, tree, changes, is_left_over=False)
        return SavedState(True, head.checksum, record.name)

    def finish_save(self, saved: SavedState) -> None:
        """Second half of :meth:`save_state`: take the changes out of the folder.

        :raises VersionControlError: where files are in the way; the folder is then as before.
        """
        record = self._saved().find(saved.stash) if saved.saved else None
        if record is None:
            return
        with self._history.lock():
            try:
                self._move([self._trees.get(record.tree)], self._current())
            except VersionControlError:
                self._saved().drop(record)  # nothing was taken out
                raise
            self._marker().unlink(missing_ok=True)

    def save_state(self) -> tuple[bool, str]:
        """Put changes to files of the current snapshot into `.tagit/saved`."""
        saved = self.prepare_save()
        self.finish_save(saved)
        return saved.saved, saved.state

    def restore_state(self, saved: bool, state: str) -> None:
        """As :meth:`resume`, the changes being those of `state` that were put aside last."""
        record = self._saved().newest(state) if saved else None
        self.resume(SavedState(record is not None, state, record.name if record else ""))

    def resume(self, saved: SavedState) -> None:
        """Go back to the snapshot `state` and bring back the changes that were put aside.

        Changes that are there now (the measured command made them, or an editor) are put into `.tagit/saved`
        and stay there. It may be called in another process, wherever that or an earlier call was cut off.

        :raises VersionControlError: where files are in the way; tells where the changes are.
        """
        snapshot = self._snapshot(saved.state)
        record = self._saved().find(saved.stash) if saved.saved else None
        with self._history.lock():
            if saved.saved and record is None:
                if self._history.head() == snapshot and not self._marker().exists():
                    return  # an earlier call was cut off when all was back already
                raise VersionControlError(
                    f"the changes put aside as {saved.stash!r} are not in {self._saved().folder} any more"
                )
            target = self._trees.get(record.tree if record else snapshot.tree)
            known = [self._current(), self._trees.get(snapshot.tree), target, *self._interrupted()]
            try:
                self._move([*known, self._keep_left_overs(known)], target)
            except VersionControlError as problem:
                where = f"your changes are safe in {self._saved().folder / saved.stash}; " if record else ""
                raise VersionControlError(problem.message, f"{where}move the files in the way") from None
            self._arrive(snapshot)
            if record is not None:
                self._saved().drop(record)

    def working_copy(self, folder: Path) -> WorkingCopy:
        """A folder with the files of one snapshot after the other."""
        from perun.vcs.tagit.copy import TagitWorkingCopy

        self._head()
        return TagitWorkingCopy(self.root, folder, self._trees.objects, self._tree_of)

    def _tree_of(self, minor_version: str) -> Tree:
        return self._trees.get(self._history.find(minor_version).tree)

    def _head(self) -> Snapshot:
        head = self._history.head()
        if head is None:
            raise history.empty(self.root)
        return head

    def _snapshot(self, checksum: str) -> Snapshot:
        snapshot = self._history.get(checksum)
        if snapshot is None:
            raise VersionControlError(f"{checksum!r} is not the full checksum of a snapshot", "see perun log")
        return snapshot

    def _refuse_name(self, name: str) -> None:
        if not name or name in _RESERVED or _NO_TAG.search(name) or not name.isprintable():
            raise VersionControlError(
                f"{name!r} cannot be the name of a snapshot",
                "take a text without ~ and ^ that does not begin with a dash, e.g. v1.0",
            )
        if any(snapshot.tag == name for snapshot in self._history.snapshots):
            raise VersionControlError(f"there is a snapshot {name!r} already", "take another name")

    def _described(self, name: str, message: str, parent: Snapshot | None) -> Snapshot:
        from perun.vcs._common import person

        author, email = person.current(self.environ)
        content = {
            "tag": name,
            "date": person.moment(),
            "author": author,
            "email": email,
            "message": message.strip("\n"),
            "tree": self._trees.put(self._trees.of_folder()),
            "parent": parent.checksum if parent else "",
        }
        return history.named(content)

    def _current(self) -> Tree:
        head = self._history.head()
        return self._trees.get(head.tree) if head else {}

    def _saved(self) -> Saved:
        from perun.vcs.tagit.saved import Saved

        return Saved(self._folder / "saved", self._trees.objects)

    def _keep_left_overs(self, known: list[Tree]) -> Tree:
        """Put what files of `known` hold now, and none of these knows, aside; the files as they are now.

        Files that only the version to come has are not the run's to change: these are in the way.
        """
        current = known[0]
        changes = {
            path: entry
            for path, entry in self._trees.changed(current).items()
            if entry is not None and entry not in {tree.get(path) for tree in known}
        }
        if changes:
            tree = with_changes(current, dict(changes))
            base = self._head().checksum
            self._saved().add(base, self._trees.put(tree), changes, is_left_over=True)
        return changes

    def _marker(self) -> Path:
        return self._folder / "moving"

    def _move(self, known: list[Tree], target: Tree) -> None:
        """Bring the folder from `known` to `target`; a note of both is there until :meth:`_arrive`.

        Where this is cut off, the note tells the next one which files may be a mixture of what.
        """
        from perun.vcs.tagit import moving

        mixture = self._interrupted()
        moving.sweep(self.root, mixture)
        known = [*known, *mixture]
        plan = moving.plan(self.root, known, target)
        if not plan.in_the_way:
            noted = [self._trees.put(tree) for tree in (*known, target)]
            atomic.write(self._marker(), json.dumps(noted).encode())
        moving.move(self.root, plan, self._trees.objects)

    def _arrive(self, snapshot: Snapshot) -> None:
        self._history.set_head(snapshot)
        self._marker().unlink(missing_ok=True)

    def _interrupted(self) -> list[Tree]:
        with suppress(FileNotFoundError):
            noted = json.loads(read_regular(self._marker(), _MAX_MARKER))
            return [self._trees.get(checksum) for checksum in noted]
        return []
