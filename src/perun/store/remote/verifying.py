"""Verifying all that a remote holds, by fetching it; and what can be repaired without losing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Literal, NamedTuple

from perun.core.errors import PerunError, RemoteError
from perun.core.wording import listed, plural
from perun.store.remote import pack, register, snapshot
from perun.store.remote.cleaning import move
from perun.store.remote.contract import MissingPiece, Remote
from perun.store.remote.pack import PackSlice, in_parallel
from perun.store.remote.reading import FORMAT_KEY, RemoteReader, check_format
from perun.store.remote.register import RegisterEntry, RegisterUnion
from perun.store.remote.snapshot import SnapshotHead, SnapshotState

Verify = Callable[[str, bytes], None]
"""Raises an error where the bytes are not the object of a checksum."""
Progress = Callable[[int, int], None]
"""Is told how many pieces are done, and how many there are."""
ASIDE: Final = "damaged/"
"""Where a repair puts registers that cannot be read."""
_TRIES: Final = 20


class RemoteFinding(NamedTuple):
    """Something wrong (`error`), suspicious (`warning`) or merely worth knowing (`info`) about a piece.

    :param profiles: how many registered profiles cannot be fetched for it.
    """

    severity: Literal["error", "warning", "info"]
    key: str
    message: str
    profiles: int = 0
    repair: Callable[[], str] | None = None
    """Repairs it, and says what was done."""
    done: str = ""
    """What was done to repair it."""


class Verifier:
    """Finds what is wrong with a remote, and changes nothing.

    :param verify: raises where bytes are not the object of a checksum.
    :param limit: bytes of the largest object that is accepted. :param now: seconds since 1970, for repairs.
    """

    def __init__(self, remote: Remote, verify: Verify, limit: int, progress: Progress, *, now: float) -> None:
        self._remote = remote
        self._verify = verify
        self._limit = 2 * limit + pack.TARGET
        self._progress = progress
        self._now = now
        self._union = RegisterUnion()
        self._head = SnapshotHead(None, SnapshotState())
        self._is_whole = True  # whether all registers could be read

    def run(self) -> Iterator[RemoteFinding]:
        """What was found, as a stream."""
        try:
            is_there = check_format(self._remote)
        except RemoteError as problem:
            yield RemoteFinding("error", FORMAT_KEY, f"{problem.message}; {problem.hint}")
            return
        registers = [one.key for one in self._remote.list(register.FOLDER)]
        if not is_there and registers:
            yield RemoteFinding("error", FORMAT_KEY, "it is missing: push to make it again")
        yield from self._read_head()
        yield from self._read_registers(registers)
        self._union.dead.update(self._head.state.dead)
        yield from self._packs()

    def _read_head(self) -> Iterator[RemoteFinding]:
        try:
            self._head = snapshot.read(self._remote)
        except RemoteError as problem:
            self._is_whole = False
            yield RemoteFinding("error", snapshot.KEY, f"{problem.message}; {problem.hint}")
            return
        name = self._head.state.snapshot
        if name is not None:
            try:
                data = self._remote.get(snapshot.FOLDER + name, snapshot.MAX)
                snapshot.apply(name, data, self._union)
            except RemoteError as problem:
                self._is_whole = False
                self._union = RegisterUnion()
                key, forget = snapshot.FOLDER + name, self._forget_snapshot
                yield RemoteFinding("error", key, f"{problem.message}; {problem.hint}", repair=forget)

    def _forget_snapshot(self) -> str:
        done = snapshot.replace(self._remote, self._head, self._head.state._replace(snapshot=None))
        if done is None:
            raise RemoteError("another one has changed the remote meanwhile", "try again")
        self._head = done
        return "the remote goes on without it; let all who have profiles push again"

    def _read_registers(self, keys: Sequence[str]) -> Iterator[RemoteFinding]:
        covered = 0
        for key in keys:
            name = key.removeprefix(register.FOLDER)
            if name in self._union.registers:
                covered += 1
                continue
            try:
                self._union.apply(name, register.parse(name, self._remote.get(key, register.MAX)))
            except MissingPiece:
                pass  # in a snapshot by now
            except RemoteError as problem:
                self._is_whole = False
                put_aside = partial(self._put_aside, key)
                yield RemoteFinding("error", key, problem.message, repair=put_aside)
        if covered:
            what = f"{plural(covered, 'register')} in the snapshot already; perun gc --remote deletes them"
            yield RemoteFinding("info", register.FOLDER, what)

    def _put_aside(self, key: str) -> str:
        data = self._remote.get(key)
        aside = ASIDE + key.removeprefix(register.FOLDER)
        self._remote.put(aside, data)
        self._remote.delete(key)
        return f"put aside as {aside}; let all who have profiles push again"

    def _packs(self) -> Iterator[RemoteFinding]:
        there = {one.key.removeprefix(pack.FOLDER): one.size for one in self._remote.list(pack.FOLDER)}
        needed = self._union.needed()
        users: dict[str, list[RegisterEntry]] = {}
        for one in self._union:
            users.setdefault(one.entry.checksum, []).append(one.entry)
        for name in sorted(needed.keys() - there.keys()):
            yield self._lost(name, needed[name], users, "it is missing")
        dead = there.keys() & self._union.dead
        names = sorted(there.keys() - dead)
        self._progress(0, len(names))
        with ThreadPoolExecutor(self._remote.parallel) as pool:
            fetched = in_parallel(pool, self._fetched, names, self._remote.parallel)
            for done, (name, data) in enumerate(fetched, 1):
                yield from self._pack(name, data, needed.get(name, {}), users)
                self._progress(done, len(names))
        unneeded = there.keys() - needed.keys()
        if unneeded and self._is_whole:
            size = sum(there[name] for name in unneeded)
            what = f"nothing needs {plural(len(unneeded), 'pack')} of {size} bytes"
            yield RemoteFinding("info", pack.FOLDER, f"{what}; perun gc --remote deletes them")

    def _fetched(self, name: str) -> bytes | RemoteError:
        try:
            return self._remote.get(pack.FOLDER + name, self._limit)
        except RemoteError as problem:
            return problem

    def _pack(
        self,
        name: str,
        data: bytes | RemoteError,
        needed: Mapping[str, PackSlice],
        users: Mapping[str, Sequence[RegisterEntry]],
    ) -> Iterator[RemoteFinding]:
        if isinstance(data, MissingPiece):
            return  # deleted meanwhile, as nothing needed it
        try:
            if isinstance(data, RemoteError):
                raise data
            found = dict(pack.unpacked(name, data))
        except RemoteError as problem:
            yield self._lost(name, needed, users, problem.message)
            return
        wrong = {checksum for checksum, place in needed.items() if found.get(checksum) != place}
        for checksum, place in found.items():
            try:
                if place.size:
                    self._verify(checksum, data[place.start : place.start + place.size])
            except PerunError as problem:
                wrong.add(checksum)
                if checksum not in needed:
                    yield RemoteFinding("warning", pack.FOLDER + name, problem.message)
        wrong &= needed.keys()
        if wrong:
            lost = {checksum: needed[checksum] for checksum in wrong}
            yield self._lost(name, lost, users, "it does not hold what registers say")

    def _lost(
        self,
        name: str,
        lost: Mapping[str, PackSlice],
        users: Mapping[str, Sequence[RegisterEntry]],
        why: str,
    ) -> RemoteFinding:
        """The finding for a pack of which these objects cannot be had."""
        if not lost:
            return RemoteFinding("warning", pack.FOLDER + name, f"{why}; nothing needs it")
        entries = [entry for checksum in sorted(lost) for entry in users[checksum]]
        names = listed([f"{entry.name} of {entry.minor[:10]}" for entry in entries])
        message = f"{why}; {plural(len(entries), 'profile')} cannot be fetched: {names}"
        repair = Repair(self._remote, self._verify, self._limit)
        return RemoteFinding(
            "error", pack.FOLDER + name, message, len(entries), lambda: repair.give_up(name, self._now)
        )


class Repair:
    """Gives up packs that are damaged or missing: what is whole in them is put into another pack first."""

    def __init__(self, remote: Remote, verify: Verify, limit: int) -> None:
        self._remote = remote
        self._verify = verify
        self._limit = limit

    def give_up(self, name: str, now: float) -> str:
        """Make the pack a dead one, so that who has its profiles sends them again; what was done.

        :raises RemoteError: if others change the remote all the time.
        """
        reader = RemoteReader(self._remote)
        reader.refresh()
        needed = reader.union.needed().get(name, {})
        whole = self._whole(name, needed)
        if whole:
            move(reader, whole, now)
        for _ in range(_TRIES):
            before = reader.head.state
            condemned = {key: time for key, time in before.condemned.items() if key != pack.FOLDER + name}
            if reader.change(before._replace(dead=(*before.dead, name), condemned=condemned)):
                left = len(needed) - len(whole)
                kept = f"kept {plural(len(whole), 'profile')} of it; " if whole else ""
                return f"{kept}the next perun push of who has the other {left} sends them again"
            reader.refresh()
        raise RemoteError(f"{self._remote.url} is being changed all the time", "try again later")

    def _whole(self, name: str, needed: Mapping[str, PackSlice]) -> list[tuple[str, bytes]]:
        try:
            data = self._remote.get(pack.FOLDER + name, self._limit)
        except RemoteError:
            return []
        found = []
        for checksum, place in needed.items():
            content = data[place.start : place.start + place.size]
            try:
                self._verify(checksum, content)
            except PerunError:
                continue
            found.append((checksum, content))
        return found
