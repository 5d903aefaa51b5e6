"""What a disk may hold when the power fails, after Pillai et al., *All File Systems Are Not Created Equal*
(OSDI 2014).

Of the recorded calls of a command up to some moment these are certain: data of a file, and changes of names
in a folder, before the last `fsync` of that file or folder. Everything else may or may not be there, in any
order: each file system keeps more than that, but none of them all of it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fault_injection import Call, Kind

ALL_SUBSETS = 5
"""Of so many changes of names that are not certain every subset is tried; of more of them prefixes, suffixes,
and those in which one or two changes are lost, or only one is kept."""
State = Mapping[str, bytes | None]
"""Content of files by path; None is a folder."""


Place = tuple[int, str]
"""The number of a folder, and a name in it."""


class _Names(NamedTuple):
    """One change of names: the number of the file or folder that is at each place then, None for nothing."""

    changes: tuple[tuple[Place, int | None], ...]


class _Data(NamedTuple):
    """One change of the data of a file."""

    offset: int
    data: bytes
    size: int | None = None

    def apply(self, content: bytes) -> bytes:
        if self.size is not None:
            return content[: self.size].ljust(self.size, b"\0")
        content = content.ljust(self.offset, b"\0")
        return content[: self.offset] + self.data + content[self.offset + len(self.data) :]

    def half(self) -> _Data:
        return self._replace(data=self.data[: len(self.data) // 2])


ROOT = 0
"""The number of the folder whose contents are followed."""


class Disk:
    """The names and data below some folders, and which of their changes are certain.

    Files and folders have numbers, as a folder keeps its contents where it gets another name.

    :param root: only paths below it are followed.
    """

    def __init__(self, root: Path, before: State) -> None:
        self._root = str(root)
        self._shows_root = self._root in before
        self._names: list[_Names] = []
        self._uncertain_names: dict[int, set[int]] = {}
        """Of each change that is not certain the folders that are to be flushed."""
        self._before: dict[Place, int | None] = {}
        self._folders = {ROOT}
        self._data: dict[int, list[_Data]] = {ROOT: []}
        self._certain_data: dict[int, int] = {}
        self._inodes: dict[int, int] = {}
        self._start: dict[int, bytes] = {}
        self._now: dict[Place, int | None] = {}
        for path, content in sorted(before.items()):
            if path != self._root:
                self._now[self._place(path)] = self._new(content)
        self._before.update(self._now)

    def apply(self, call: Call) -> None:
        """Do the call."""
        if call.kind in (Kind.CREATE, Kind.OPEN):
            number = self._at(call.path)
            if call.flags == os.O_CREAT or number is None or number in self._folders:
                number = self._new(b"")
                self._change((self._place(call.path), number))
            elif call.flags == os.O_TRUNC:
                self._data[number].append(_Data(0, b"", 0))
            self._inodes[call.inode] = number
        elif call.kind is Kind.WRITE:
            self._data[self._file(call)].append(_Data(call.offset, call.data))
        elif call.kind is Kind.TRUNCATE:
            self._data[self._file(call)].append(_Data(0, b"", call.offset))
        elif call.kind is Kind.FLUSH:
            self._flush(call)
        elif call.kind is Kind.SYNC:
            self._uncertain_names.clear()
            self._certain_data = {number: len(data) for number, data in self._data.items()}
        elif call.kind is Kind.RENAME:
            self._change((self._place(call.path), None), (self._place(call.other), self._at(call.path)))
        elif call.kind is Kind.LINK:
            self._change((self._place(call.other), self._at(call.path)))
        elif call.kind in (Kind.UNLINK, Kind.RMDIR):
            self._change((self._place(call.path), None))
        elif call.kind is Kind.MKDIR:
            self._change((self._place(call.path), self._new(None)))
        else:
            assert call.kind in (Kind.CHMOD, Kind.UTIME), f"not known here: {call}"

    def _new(self, content: bytes | None) -> int:
        number = len(self._data)
        self._data[number], self._start[number], self._certain_data[number] = [], content or b"", 0
        if content is None:
            self._folders.add(number)
        return number

    def _at(self, path: str) -> int | None:
        """The number of what is at the path now."""
        number: int | None = ROOT
        for name in Path(path).relative_to(self._root).parts:
            number = None if number is None else self._now.get((number, name))
        return number

    def _place(self, path: str) -> Place:
        folder, name = os.path.split(path)
        number = self._at(folder)
        if number is None:  # it was there before, and nothing in it is followed
            number = self._new(None)
            self._now[self._place(folder)] = self._before[self._place(folder)] = number
        return number, name

    def _file(self, call: Call) -> int:
        found = self._at(call.path)
        if found is not None and found not in self._folders:
            return found
        return self._inodes[call.inode]  # it has no name any more

    def _change(self, *changes: tuple[Place, int | None]) -> None:
        self._uncertain_names[len(self._names)] = {folder for (folder, _), _ in changes}
        self._names.append(_Names(changes))
        self._now.update(changes)

    def _flush(self, call: Call) -> None:
        folder = self._at(call.path)
        if folder in self._folders:
            for change in list(self._uncertain_names):
                self._uncertain_names[change].discard(folder)
                if not self._uncertain_names[change]:
                    del self._uncertain_names[change]
        else:
            number = self._file(call)
            self._certain_data[number] = len(self._data[number])

    def states(self) -> Iterator[dict[str, bytes | None]]:
        """What may be there if the power fails now; the same may come twice."""
        uncertain = sorted(self._uncertain_names)
        for lost in _subsets(uncertain):
            names = self._named(lost)
            dirty = sorted(
                {
                    number
                    for number in names.values()
                    if number not in self._folders and self._certain_data[number] < len(self._data[number])
                }
            )
            for fates in _fates(dirty):
                yield {path: self._content(what, fates) for path, what in names.items()}

    def _named(self, lost: frozenset[int]) -> dict[str, int]:
        """The number of what is at each path then; what a lost folder held cannot be reached."""
        places = dict(self._before)
        for number, names in enumerate(self._names):
            if number not in lost:
                places.update(names.changes)
        below: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), there in places.items():
            if there is not None:
                below.setdefault(folder, []).append((name, there))
        found = {self._root: ROOT} if self._shows_root else {}
        reached = [(self._root, ROOT)]
        while reached:
            path, folder = reached.pop()
            inside = [(f"{path}/{name}", there) for name, there in below.get(folder, ())]
            found.update(inside)
            reached += (one for one in inside if one[1] in self._folders)
        return found

    def _content(self, what: int, fates: Mapping[int, str]) -> bytes | None:
        if what in self._folders:
            return None
        certain = self._certain_data[what]
        content = self._start[what]
        for change in self._data[what][:certain]:
            content = change.apply(content)
        later = self._data[what][certain:]
        fate = fates.get(what, "all")
        whole = content
        for change in later:
            whole = change.apply(whole)
        if fate == "none":
            return content
        if fate == "zeros":
            return content[: len(whole)].ljust(len(whole), b"\0")
        if fate == "half":
            middle = len(later) // 2
            for change in [*later[:middle], later[middle].half()]:
                content = change.apply(content)
            return content
        return whole


def _subsets(numbers: Sequence[int]) -> Iterable[frozenset[int]]:
    if len(numbers) <= ALL_SUBSETS:
        for count in range(len(numbers) + 1):
            yield from map(frozenset, itertools.combinations(numbers, count))
        return
    for place in range(len(numbers) + 1):
        yield frozenset(numbers[place:])
        yield frozenset(numbers[:place])
    for pair in itertools.combinations(numbers, 2):
        yield frozenset(pair)
    for one in numbers:
        yield frozenset((one,))
        yield frozenset(numbers) - {one}


def _fates(dirty: Sequence[int]) -> Iterable[Mapping[int, str]]:
    if not dirty:
        yield {}
        return
    for fate in ("all", "none", "half", "zeros"):
        yield dict.fromkeys(dirty, fate)
    if len(dirty) > 1:
        for number in dirty:
            yield {number: "none"}
            yield {number: "zeros"}


def read(root: Path, folders: Iterable[str]) -> dict[str, bytes | None]:
    """The files and folders below some folders of `root`."""
    found: dict[str, bytes | None] = {}
    for name in folders:
        top = root / name
        for path in [top, *top.rglob("*")] if top.is_dir() else ():
            found[str(path)] = None if path.is_dir() else path.read_bytes()
    return found


def write(state: State) -> None:
    """Make the files and folders; nothing is there before."""
    for path, content in sorted(state.items()):
        if content is None:
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)


def crash_states(root: Path, before: State, calls: Iterable[Call]) -> Iterator[State]:
    """Every distinct state in which a failure of the power during the calls may leave the disk."""
    disk, seen = Disk(root, before), set()
    for call in itertools.chain([None], calls):
        if call is not None:
            disk.apply(call)
        for state in disk.states():
            key = hash(tuple(sorted(state.items(), key=lambda item: item[0])))
            if key not in seen:
                seen.add(key)
                yield state
