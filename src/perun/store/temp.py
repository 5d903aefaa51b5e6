"""Temporary files of collectors and postprocessors, in `.perun/tmp` (manual 3.6.3)."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from perun.core import atomic, leftovers
from perun.core.errors import DamagedStore, ProfileNotFound, UsageError
from perun.store import tree
from perun.store import tree as limits
from perun.store.stats import deflate, inflate, read_json, write_json

INDEX = ".index"
_HINT = "remove it; the files beside it stay"
_FLAG_NAMES = ("json", "protected", "compressed")
_Flags = dict[str, dict[str, bool]]


class TempFile(NamedTuple):
    """One temporary file: its path below `.perun/tmp`, its size in bytes and its flags."""

    path: str
    size: int
    json: bool = False
    protected: bool = False
    compressed: bool = False


class Temp:
    """A tree of temporary files, and an index of those with a flag.

    Paths are relative to the folder, or absolute but inside it.

    :param root: `.perun/tmp`.
    :param lock: the lock of the repository, taken by what writes.
    :param limit: largest accepted size of a file before compression, in bytes.
    """

    def __init__(
        self, root: Path, lock: Callable[[], AbstractContextManager[None]], limit: int = limits.DEFAULT
    ) -> None:
        self.root = root
        self._lock = lock
        self._limit = limit

    def path(self, path: Path | str) -> Path:
        """The file, there or not.

        :raises UsageError: if it is outside of the folder, or is the index.
        """
        return self.root / self._relative(path)

    def write(
        self,
        path: Path | str,
        content: Any,
        *,
        json_: bool = False,
        protect: bool = False,
        compress: bool = False,
    ) -> Path:
        """Make a file, or replace it; its folders are made.

        :param content: text or bytes; with `json_` anything that JSON can hold.
        :param protect: such a file is only deleted by force.
        """
        name = self._relative(path)
        data = json.dumps(content, indent=2) if json_ else content
        encoded = data if isinstance(data, bytes) else str(data).encode()
        with self._lock():
            flags_of = self._flags()
            atomic.write(self.root / name, deflate(encoded, name, self._limit) if compress else encoded)
            flags_of[name] = {"json": json_, "protected": protect, "compressed": compress}
            self._write_flags(flags_of)
        return self.root / name

    def read(self, path: Path | str) -> Any:
        """The content: what JSON held if the file was written as JSON, else text, or bytes if no text.

        :raises ProfileNotFound: if there is no such file.
        :raises DamagedStore: if it is not what its flags say.
        """
        name = self._relative(path)
        flags_of = self._flags().get(name, {})
        data = tree.read(self.root / name)
        if data is None:
            raise ProfileNotFound(f"there is no {self.root / name}", "perun temp list lists all")
        try:
            if flags_of.get("compressed"):
                data = inflate(data, self._limit)
            if flags_of.get("json"):
                return json.loads(data)
        except (zlib.error, ValueError, RecursionError) as problem:
            raise DamagedStore(f"{self.root / name}: {problem}", "delete it, it is temporary") from None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def files(self, below: Path | str = "") -> list[TempFile]:
        """The files in a folder (or the one file) and all below it, sorted by path.

        Without a folder these are all but those of runs that are not over.

        :raises ProfileNotFound: if it is not there.
        """
        start = self._relative(below) if str(below) not in ("", ".") else ""
        if start and not os.path.lexists(self.root / start):
            raise ProfileNotFound(f"there is no {self.root / start}", "perun temp list lists all")
        flags_of = self._flags()
        found = []
        for name in self._walk(start):
            try:
                size = os.lstat(self.root / name).st_size
            except FileNotFoundError:
                continue
            found.append(TempFile(name, size, **flags_of.get(name, {})))
        return sorted(found)

    def delete(self, path: Path | str, *, force: bool = False, keep_folders: bool = False) -> list[str]:
        """Delete a file, or a folder with all below it, but no protected files unless forced.

        :param keep_folders: leave folders that are empty then.
        :returns: the paths of the protected files that stayed.
        :raises ProfileNotFound: if there is nothing of that name.
        """
        with self._lock():
            files = self.files(path)
            kept = [file.path for file in files if file.protected and not force]
            for file in files:
                if file.path not in kept:
                    (self.root / file.path).unlink(missing_ok=True)
            if not keep_folders:
                self._drop_empty_folders(self._relative(path) if str(path) not in ("", ".") else "")
            self.sync()
        return kept

    def stale(self) -> list[str]:
        """The paths of the files that are gone though the index still has their flags."""
        return sorted(name for name in self._flags() if not (self.root / name).is_file())

    def sync(self) -> None:
        """Remove the flags of files that are gone."""
        with self._lock():
            flags_of, gone = self._flags(), set(self.stale())
            if gone:
                self._write_flags({name: flags for name, flags in flags_of.items() if name not in gone})

    def _relative(self, path: Path | str) -> str:
        root = os.path.realpath(self.root)
        name = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
        if name == "." or name == ".." or name.startswith("../"):
            raise UsageError(f"{path} does not lie in {self.root}", "give a path in that folder")
        if name == INDEX:
            raise UsageError(f"{path} is Perun's own file", "choose another name")
        return name

    def _walk(self, start: str) -> Iterator[str]:
        if start and not (self.root / start).is_dir():
            yield start
            return
        for folder, folders, names in os.walk(self.root / start):
            if folder == str(self.root):
                folders[:] = [name for name in folders if not self._is_in_use(name)]
            for name in names:
                relative = os.path.relpath(os.path.join(folder, name), self.root)
                if relative != INDEX:
                    yield relative

    def _is_in_use(self, name: str) -> bool:
        return leftovers.is_of_a_run(name) and not leftovers.is_left_over(self.root / name)

    def _drop_empty_folders(self, start: str) -> None:
        if not (self.root / start).is_dir():
            return
        for folder, _, _ in os.walk(self.root / start, topdown=False):
            top = "" if start else os.path.relpath(folder, self.root).partition("/")[0]
            if Path(folder) != self.root and not os.listdir(folder) and not self._is_in_use(top):
                os.rmdir(folder)

    def _flags(self) -> _Flags:
        # The index names files by absolute paths; what counts is the part below tmp, as repositories move.
        path = self.root / INDEX
        stored = read_json(path, dict, _HINT) or {}
        flags_of: _Flags = {}
        for name, flags in stored.items():
            if not isinstance(flags, dict):
                raise DamagedStore(f"{path} holds no flags for {name}", _HINT)
            relative = name.rpartition("/.perun/tmp/")[2].removeprefix(f"{self.root}/")
            flags_of[relative] = {flag: bool(flags.get(flag)) for flag in _FLAG_NAMES}
        return flags_of

    def _write_flags(self, flags_of: _Flags) -> None:
        flagged = {name: flags for name, flags in sorted(flags_of.items()) if any(flags.values())}
        write_json(self.root / INDEX, {str(self.root / name): flags for name, flags in flagged.items()})
