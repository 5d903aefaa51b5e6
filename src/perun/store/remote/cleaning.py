"""Cleaning up a remote: what nothing needs is deleted, while others push and pull, and nobody loses anything.

Nobody can know whether a pack that no register names yet is left over, or was sent a moment ago by somebody
who is about to send the register. Times decide nothing here, as clocks differ and laptops sleep. The head
(:mod:`perun.store.remote.snapshot`), which changes by compare-and-swap only, decides:

1. Packs that nothing needs are *condemned*: the head lists them.
2. After a grace a condemned pack becomes *dead*, by a change of the head as well. What is dead stays so. Of a
   dead pack nothing counts: for every reader, who registers an object in it registers nothing.
3. Dead packs are deleted, by anybody, at any time after.

Who pushes puts the pack, then the register that names it, then reads the head. A condemned pack that is
needed is taken out of the list by a change of the head; what is in a dead one is sent again, in a pack of
another name. The push ends when it reads a head in which nothing that it names is condemned or dead.

**No profile of a push that has ended is lost.** Let a register *r* name an object *c*, and let the push end
by a reading *H* of the head. Assume the first moment at which each pack with *c* is dead. It is a change of a
head *h* by somebody who cleans up, who read, in this order, *h*, in which the packs that he lets die were
condemned; all registers; *h* again. Either *h* was read for the first time after *H*, so that *r* was among
the registers that he read: then *c* was registered (or removed, by a record that somebody made), and the
change leaves one pack with *c* alone. Or *h* was read before *H*. The head did not change from then to the
change of *h*, and *H* was read before that (else the pack would be dead in *H*), so *H* is *h*: then the pack
was condemned in *H*, and the push had not ended. A deleted pack was dead before, so what counts is there.

**An interrupted push loses nothing.** Its register is read by who cleans up, as above, or its packs are dead:
then it registers nothing, and the next push sends them again.

**Registers that a snapshot stands for** are deleted after the head names the snapshot. Each later snapshot is
made from the union of the one that the head names and of registers, and put in its place by a change of that
head; so it says all that the former did. Who reads lists registers before he reads the head, so that what is
not listed any more is in the snapshot of that head or of a later one.

Who is slow, or was stopped in the middle of cleaning up, does no harm when he goes on: he deletes only what
was dead, or in a snapshot, when he read it, and that stays so. Snapshots get names that nobody had before,
and are condemned like packs when the head does not name them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from perun.core.errors import RemoteError
from perun.store.remote import pack, register, snapshot
from perun.store.remote.pack import PackSlice
from perun.store.remote.reading import RemoteReader
from perun.store.remote.register import PackMove, Register, RegisterEntry, RegisterRemoval
from perun.store.remote.snapshot import SnapshotState

Progress = Callable[[int, int], None]
"""Is told how many pieces are deleted, and how many there are to delete."""
AT_ONCE: Final = 4000
"""Pieces that are condemned at most: the head is a small piece."""
DEAD_IN_HEAD: Final = 1000
"""Dead packs that the head lists before a snapshot takes them over."""
REGISTERS: Final = 64
"""Registers beside the snapshot from which on a new one is made."""
SPARSE: Final = 0.5
"""Share of a pack that is needed, below which that is moved and the pack is given up."""
SMALL: Final = pack.TARGET // 8
"""Bytes below which a pack is small."""
SMALL_PACKS: Final = 64
"""Small packs from which on they are moved together: each costs a first pull a request, and a server of git
two refs that it lists to everybody who asks."""
_TRIES: Final = 30


class RemoteCleaningResult(NamedTuple):
    """What was done, or would be.

    :param deleted: the keys of the pieces that were deleted, and :param freed: the bytes of packs among them.
    :param condemned: those that a later cleaning deletes, and :param waiting: their bytes.
    :param moved: bytes that were copied out of packs most of which nothing needs.
    """

    deleted: list[str]
    freed: int
    condemned: list[str]
    waiting: int
    moved: int


def remove(reader: RemoteReader, entries: Collection[RegisterEntry], *, now: float) -> None:
    """Put the record that these profiles, which are registered, are removed; their objects stay for now.

    :param now: seconds since 1970.
    """
    removed = [RegisterRemoval(entry, reader.union.saying(entry)) for entry in entries]
    if removed:
        reader.put(register.written([], removed, now=now), Register([], removed))


def planned(reader: RemoteReader, entries: Collection[RegisterEntry]) -> RemoteCleaningResult:
    """What a cleaning without a grace would do after these profiles were removed; nothing is changed there.

    The reader is of no use afterwards.
    """
    for entry in entries:
        reader.union.remove(entry, reader.union.saying(entry))
    sizes = _sizes(reader)
    avoided = _avoided(reader, sizes)
    needed = reader.union.needed(avoid=avoided)
    moved = sum(place.size for name in avoided & needed.keys() for place in needed[name].values())
    keys = [key for key in sizes if key.startswith(pack.FOLDER)]
    gone = [key for key in keys if (name := key.removeprefix(pack.FOLDER)) in avoided or name not in needed]
    return RemoteCleaningResult(sorted(gone), sum(sizes[key] for key in gone), [], 0, moved)


def clean(
    reader: RemoteReader, *, grace: float, now: float, progress: Progress = lambda done, total: None
) -> RemoteCleaningResult:
    """Delete what nothing needs, and make one snapshot of many registers.

    :param reader: one that has been refreshed. :param now: seconds since 1970.
    :param grace: seconds that a piece is condemned before it is deleted.
    :raises RemoteError: if the remote cannot be read or written, or others change it all the time. What was
        done by then is right by itself.
    """
    reader.remote.sweep()
    moved, made = _gather(reader, now)
    deleted: list[str] = []
    freed = 0
    for _ in range(_TRIES):
        sizes = _read(reader)
        if sizes is None:
            continue
        before = reader.head.state
        wanted = _with_snapshot(reader, _next(reader, sizes, made, grace, now), now)
        if wanted != before and not reader.change(wanted):
            continue
        dying = before.condemned.keys() - wanted.condemned.keys()
        gone = _delete(reader, sizes, {key for key in dying if key.startswith(snapshot.FOLDER)}, progress)
        deleted += gone
        freed += sum(sizes.get(key, 0) for key in gone)
        # Without a grace, what was condemned just now is looked at again, and deleted.
        if grace > 0 or not wanted.condemned:
            waiting = sorted(wanted.condemned)
            return RemoteCleaningResult(
                deleted, freed, waiting, sum(sizes.get(key, 0) for key in waiting), moved
            )
    raise RemoteError(f"{reader.remote.url} is being changed all the time", "try again later")


def _sizes(reader: RemoteReader) -> dict[str, int]:
    """The sizes of all packs and snapshots by key."""
    folders = (pack.FOLDER, snapshot.FOLDER)
    return {one.key: one.size for folder in folders for one in reader.remote.list(folder)}


def _read(reader: RemoteReader) -> dict[str, int] | None:
    """The sizes, after the head, the registers and the head were read in this order.

    None where the head has changed meanwhile.
    """
    head = snapshot.read(reader.remote)
    reader.refresh()
    return _sizes(reader) if reader.head.data == head.data else None


def _avoided(reader: RemoteReader, sizes: Mapping[str, int], made: Collection[str] = ()) -> set[str]:
    """The packs that are not there, those most of which nothing needs, and the small ones of many.

    What is condemned is avoided, too: what is needed of it was moved.

    :param made: the packs that it was moved to.
    """
    live = reader.union.sizes()
    condemned = _condemned(reader)
    sparse = {name for name, size in live.items() if size < SPARSE * sizes.get(pack.FOLDER + name, size * 3)}
    small = {name for name in live if sizes.get(pack.FOLDER + name, SMALL) < SMALL}
    small -= condemned.union(sparse, made)
    return sparse | (condemned & live.keys()) | (small if len(small) >= SMALL_PACKS else set())


def _condemned(reader: RemoteReader) -> set[str]:
    return {key.removeprefix(pack.FOLDER) for key in reader.head.state.condemned}


def _next(
    reader: RemoteReader, sizes: Mapping[str, int], made: Collection[str], grace: float, now: float
) -> SnapshotState:
    """What the head is to say: what is condemned anew, still, and not any more; and what is dead now."""
    before = reader.head.state
    used = {pack.FOLDER + name for name in reader.union.needed(avoid=_avoided(reader, sizes, made))}
    used.add(snapshot.FOLDER + str(before.snapshot))
    used.update(pack.FOLDER + name for name in reader.union.dead)
    condemned = {key: time for key, time in before.condemned.items() if key in sizes and key not in used}
    dying = {key for key, time in condemned.items() if now - time >= grace}
    for key in sizes:
        if key not in used and len(condemned) < AT_ONCE:
            condemned.setdefault(key, int(now))
    packs = {key.removeprefix(pack.FOLDER) for key in dying if key.startswith(pack.FOLDER)}
    left = {key: time for key, time in condemned.items() if key not in dying}
    return before._replace(condemned=left, dead=tuple(sorted(packs.union(before.dead))))


def _with_snapshot(reader: RemoteReader, wanted: SnapshotState, now: float) -> SnapshotState:
    """The same with a new snapshot, which is put, where one is due."""
    if len(reader.applied) < REGISTERS and len(wanted.dead) <= DEAD_IN_HEAD:
        return wanted
    made = snapshot.written(reader.union, reader.union.dead.union(wanted.dead), now=now)
    key = snapshot.FOLDER + made.name
    reader.remote.put(key, made.data)
    reader.pieces[key] = made.data
    condemned = dict(wanted.condemned)
    if wanted.snapshot is not None:
        condemned[snapshot.FOLDER + wanted.snapshot] = int(now)
    return wanted._replace(snapshot=made.name, dead=(), condemned=condemned)


def _delete(
    reader: RemoteReader, sizes: Mapping[str, int], snapshots: Collection[str], progress: Progress
) -> list[str]:
    """Delete dead packs, registers that are in the snapshot, and these snapshots; the keys of all."""
    reader.refresh()
    dead = [key for key in sizes if key.removeprefix(pack.FOLDER) in reader.union.dead]
    covered = reader.union.registers - reader.applied
    listed = [one.key for one in reader.remote.list(register.FOLDER)]
    keys = [*dead, *snapshots, *(key for key in listed if key.removeprefix(register.FOLDER) in covered)]
    with ThreadPoolExecutor(reader.remote.parallel) as pool:
        for number, _ in enumerate(pool.map(reader.remote.delete, keys), 1):
            progress(number, len(keys))
    return sorted(keys)


def _gather(reader: RemoteReader, now: float) -> tuple[int, set[str]]:
    """Copy what is needed out of packs that are to be deleted for the rest, or as they are small and many.

    The bytes that were copied, and the packs that they are in now.
    """
    avoided = _avoided(reader, _sizes(reader))
    needed = reader.union.needed(avoid=avoided)
    made: set[str] = set()
    objects: list[tuple[str, bytes]] = []
    size = moved = 0
    for name in sorted(avoided.difference(_condemned(reader)) & needed.keys()):
        for checksum, content in _contents(reader, name, needed[name]):
            objects.append((checksum, content))
            size += len(content)
        if size >= pack.TARGET:
            made.add(move(reader, objects, now))
            objects, size, moved = [], 0, moved + size
    if objects:
        made.add(move(reader, objects, now))
    return moved + size, made


def _contents(
    reader: RemoteReader, name: str, places: Mapping[str, PackSlice]
) -> Iterator[tuple[str, bytes]]:
    """The objects of a pack at these places; none of one that is damaged, which is left to `fsck`."""
    try:
        data = reader.remote.get(pack.FOLDER + name)
        found = dict(pack.unpacked(name, data))
    except RemoteError:
        return
    for checksum, place in places.items():
        if found.get(checksum) == place:
            yield checksum, data[place.start : place.start + place.size]


def move(reader: RemoteReader, objects: Sequence[tuple[str, bytes]], now: float) -> str:
    """Put the objects into a pack of their own, beside where they are; its name.

    :param now: seconds since 1970.
    """
    made = pack.packed(objects, renamed=True)
    reader.remote.put(pack.FOLDER + made.name, made.data)
    moved = [PackMove(checksum, made.places[checksum]) for checksum, _data in objects]
    reader.put(register.written([], (), moved, now=now), Register([], (), moved))
    return made.name
