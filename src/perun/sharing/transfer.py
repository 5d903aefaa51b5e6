"""Sending profiles to a remote, and fetching those of others.

Objects go first and what names them second, there and here, so that whatever ends a transfer leaves nothing
half visible, and the next one goes on where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from perun.core.errors import ProfileError, RemoteError
from perun.plugin.api import MinorVersion
from perun.profile.head import ProfileHeader
from perun.repository import walking
from perun.repository.repository import Repository
from perun.sharing.known import CachingReader, caches, registered_here
from perun.store.index import IndexEntry
from perun.store.objects import ObjectFile
from perun.store.remote import pack, register
from perun.store.remote.contract import MissingPiece, Remote
from perun.store.remote.pack import PackSlice, in_parallel
from perun.store.remote.reading import prepare
from perun.store.remote.register import Register, RegisterAddition, RegisterEntry, RegisterUnion

Progress = Callable[[int, int], None]
"""Is told how many profiles are done, and how many there are in all."""
_WHOLE_FROM: Final = 0.5
"""Share of a pack from which on it is fetched whole, and not each object by itself."""
_SINGLE: Final = 8
"""Objects of a pack that are fetched by themselves, at most."""
_ENTRIES_AT_ONCE: Final = 20_000
"""Profiles that one register names, at most."""
_ROUNDS: Final = 10
"""Times that what others have deleted meanwhile is sent again."""


class TransferResult(NamedTuple):
    """What a transfer did, or would do.

    :param entries: the profiles that were sent or fetched. :param known: how many were there already.
    :param removed: those that are here and were removed from the remote: they are not sent again.
    :param refused: why a profile was left out, a sentence each. :param sent: bytes that went over the line.
    :param seconds: how long it took.
    """

    entries: list[RegisterEntry]
    known: int
    removed: list[RegisterEntry]
    refused: list[str]
    sent: int
    seconds: float


def push(
    repo: Repository,
    remote: Remote,
    minors: Collection[str] | None = None,
    *,
    again: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> TransferResult:
    """Send what is registered here, and not there.

    :param minors: only profiles of these minor versions; all if None.
    :param again: also those that were removed from the remote.
    :param dry_run: send nothing.
    :raises RemoteError: if the remote cannot be read or written. What was sent stays, and is not sent again.
    :raises ProfileError: if an index here is damaged.
    """
    began = time.monotonic()
    known = CachingReader(remote, caches(repo))
    union = known.refresh()
    registered = registered_here(repo, minors)
    missing = [entry for entry in union.lacking(registered) if unclashed(entry) not in union]
    removed = [] if again else [entry for entry in missing if union.was_removed(entry)]
    gone = set(removed)
    new = [entry for entry in missing if entry not in gone]
    there = len(registered) - len(missing)
    if dry_run:
        return TransferResult(new, there, removed, [], 0, time.monotonic() - began)
    if new:
        prepare(remote)
    refused: dict[RegisterEntry, str] = {}
    sent = _settled(repo, known, new, refused, progress)
    known.keep()
    done = [entry for entry in new if entry not in refused]
    return TransferResult(done, there, removed, list(refused.values()), sent, time.monotonic() - began)


def _settled(
    repo: Repository,
    known: CachingReader,
    new: Sequence[RegisterEntry],
    refused: dict[RegisterEntry, str],
    progress: Progress,
) -> int:
    """Send until all of it is there to stay, whoever cleans up meanwhile; the bytes that were sent.

    Why that is certain in the end, :mod:`perun.store.remote.cleaning` says.
    """
    sent = 0
    for _ in range(_ROUNDS):
        known.rescue()
        missing = [entry for entry in new if entry not in known.union and entry not in refused]
        if not missing:
            return sent
        packs: set[str] = set()
        done = len(new) - len(missing)
        for entries, objects in _in_packs(repo, missing, known.union, refused):
            sent += _sent(repo, known, entries, objects, packs)
            done += len(entries)
            progress(done, len(new))
        if known.counts_on(packs):
            return sent
        known.refresh()
    raise RemoteError(
        f"{known.remote.url} is being cleaned up all the time",
        "push again when nobody runs perun gc --remote there",
    )


def pull(
    repo: Repository,
    remote: Remote,
    minors: Collection[str] | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> TransferResult:
    """Fetch what is registered there, and not here. What is fetched is data only, and is verified.

    :param minors: only profiles of these minor versions; all if None.
    :param dry_run: fetch nothing.
    :raises RemoteError: if the remote cannot be read. What was fetched stays, and is not fetched again.
    """
    began = time.monotonic()
    known = CachingReader(remote, caches(repo))
    union = known.refresh()
    known.keep()
    here = {unclashed(entry) for entry in registered_here(repo, minors)}
    there = [one for one in union if minors is None or one.entry.minor in minors]
    new = [one for one in there if one.entry not in here]
    done: list[RegisterEntry] = [one.entry for one in new] if dry_run else []
    refused: list[str] = []
    sent = 0
    left = [] if dry_run else new
    for _ in range(_ROUNDS):
        gone: dict[RegisterEntry, str] = {}
        for wanted, (size, objects) in _fetched_packs(repo, remote, left):
            if objects is None:
                gone |= {one.entry: one.place.pack for one in wanted}
                continue
            sent += size
            done += _take_in(repo, wanted, objects, refused)
            progress(len(done) + len(refused), len(new))
        if not gone:
            break
        # Somebody cleans up: what is registered is in another pack by then.
        left = [one for one in known.refresh() if one.entry in gone]
        refused += (_not_there(one, remote) for one in left if one.place.pack == gone[one.entry])
        left = [one for one in left if one.place.pack != gone[one.entry]]
    return TransferResult(done, len(there) - len(new), [], refused, sent, time.monotonic() - began)


def _fetched_packs(
    repo: Repository, remote: Remote, wanted: Iterable[RegisterAddition]
) -> Iterator[tuple[list[RegisterAddition], tuple[int, dict[str, bytes] | None]]]:
    """The profiles pack by pack, with the bytes that were fetched and the objects, None if it is gone."""
    by_pack: dict[str, list[RegisterAddition]] = {}
    for one in wanted:
        by_pack.setdefault(one.place.pack, []).append(one)

    def fetch(some: list[RegisterAddition]) -> tuple[int, dict[str, bytes] | None]:
        try:
            return _fetched(remote, some, repo.store.limit)
        except MissingPiece:
            return 0, None

    with ThreadPoolExecutor(remote.parallel) as pool:
        yield from in_parallel(pool, fetch, by_pack.values(), remote.parallel)


def _not_there(one: RegisterAddition, remote: Remote) -> str:
    name, minor = one.entry.name, one.entry.minor[:10]
    return f"{name} of {minor} is not fetched: {remote.url} has no {pack.FOLDER}{one.place.pack}"


def _clashing(name: str, checksum: str) -> str:
    """The name of a profile where the index has another one of its name and time, as of two machines."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem or suffix}~{checksum[:12]}{dot + suffix if stem else ''}"


def unclashed(entry: RegisterEntry) -> RegisterEntry:
    """The entry under the name that it has at the remote."""
    mark = f"~{entry.checksum[:12]}"
    stem, found, suffix = entry.name.rpartition(mark)
    name = stem + suffix
    return entry._replace(name=name) if found and _clashing(name, entry.checksum) == entry.name else entry


def _in_packs(
    repo: Repository,
    entries: Iterable[RegisterEntry],
    union: RegisterUnion,
    refused: dict[RegisterEntry, str],
) -> Iterator[tuple[list[RegisterEntry], list[tuple[str, bytes]]]]:
    """The entries with the objects that they need, which are together about as large as a pack."""
    group: list[RegisterEntry] = []
    objects: dict[str, bytes] = {}
    size = 0
    for entry in entries:
        if entry.checksum not in objects and union.where(entry.checksum) is None:
            try:
                objects[entry.checksum] = repo.store.objects.exported(entry.checksum)
            except ProfileError as problem:
                refused[entry] = f"{entry.name} of {entry.minor[:10]} is not sent: {problem.message}"
                continue
            size += len(objects[entry.checksum])
        group.append(entry)
        if size >= pack.TARGET or len(group) >= _ENTRIES_AT_ONCE:
            yield group, list(objects.items())
            group, objects, size = [], {}, 0
    if group:
        yield group, list(objects.items())


def _sent(
    repo: Repository,
    known: CachingReader,
    entries: Sequence[RegisterEntry],
    objects: Sequence[tuple[str, bytes]],
    packs: set[str],
) -> int:
    """Send a pack, then the register that names what is in it; the bytes that were sent.

    :param packs: takes the packs that the register names.
    """
    sent = 0
    places: dict[str, PackSlice] = {}
    if objects:
        made = pack.packed(objects)
        if made.name in known.union.dead:
            made = pack.packed(objects, renamed=True)
        known.remote.put(pack.FOLDER + made.name, made.data)
        places = made.places
        sent += len(made.data)
    added = []
    for entry in entries:
        place = places.get(entry.checksum) or known.union.where(entry.checksum)
        assert place is not None  # it is packed where the union has none
        added.append(RegisterAddition(entry, _file_time(repo, entry), place))
        packs.add(place.pack)
    saying = register.written(added, now=time.time())
    known.put(saying, Register(added))
    return sent + len(saying.data)


def _file_time(repo: Repository, entry: RegisterEntry) -> int:
    try:
        return repo.store.objects.time(entry.checksum)
    except OSError:
        return entry.time * 10**9


def _fetched(remote: Remote, wanted: Sequence[RegisterAddition], limit: int) -> tuple[int, dict[str, bytes]]:
    """How many bytes were fetched, and the objects of one pack. It is fetched as a whole where most of it is
    wanted, else object by object."""
    places = {one.entry.checksum: one.place for one in wanted}
    name = wanted[0].place.pack
    span = max(place.start + place.size for place in places.values())
    if sum(place.size for place in places.values()) >= _WHOLE_FROM * span or len(places) > _SINGLE:
        data = remote.get(pack.FOLDER + name, 2 * limit + pack.TARGET)
        found = dict(pack.unpacked(name, data))
        objects = {
            checksum: data[place.start : place.start + place.size]
            for checksum, place in found.items()
            if checksum in places
        }
        return len(data), objects
    objects = {
        checksum: remote.get_range(pack.FOLDER + name, place.start, min(place.size, limit))
        for checksum, place in places.items()
    }
    return sum(map(len, objects.values())), objects


def _take_in(
    repo: Repository, wanted: Sequence[RegisterAddition], objects: Mapping[str, bytes], refused: list[str]
) -> list[RegisterEntry]:
    """Store the objects, each after its content was verified, then register them."""
    # Locked so that nobody removes, as unused, what is about to be registered.
    with repo.store.lock(), repo.store.files.together():
        heads = _stored(repo, wanted, objects)
        entries: dict[str, list[IndexEntry]] = {}
        taken = []
        for (entry, _file_time, _place), head in zip(wanted, heads, strict=True):
            if isinstance(head, ProfileError):
                refused.append(f"{entry.name} of {entry.minor[:10]} is not registered here: {head.message}")
                continue
            made = IndexEntry(entry.time, entry.checksum, entry.name, head)
            entries.setdefault(entry.minor, []).append(made)
            taken.append(entry)
        for minor, found in entries.items():
            known = {one.key: one.checksum for one in repo.store.indexes.read(minor)}
            for number, new in enumerate(found):
                if known.setdefault(new.key, new.checksum) != new.checksum:
                    found[number] = new._replace(path=_clashing(new.path, new.checksum))
        repo.store.indexes.add_many(entries)
        repo.store.summaries.update(entries)
    return taken


def _stored(
    repo: Repository, wanted: Sequence[RegisterAddition], objects: Mapping[str, bytes]
) -> list[ProfileHeader | ProfileError]:
    """Store the objects that are not here; the head of each profile, or why it is none."""
    store = repo.store.objects
    times = {one.entry.checksum: one.file_time for one in wanted}
    heads = store.take_in(
        ObjectFile(checksum, objects.get(checksum, b""), times[checksum]) for checksum in store.lacking(times)
    )
    for one in wanted:
        checksum = one.entry.checksum
        if checksum not in heads:
            try:
                heads[checksum] = store.head(checksum)
            except ProfileError as problem:
                heads[checksum] = problem
    return [heads[one.entry.checksum] for one in wanted]


# `perun fetch`: which profiles a remote has, of which versions; none of them is fetched.


class HeldVersion(NamedTuple):
    """A version of which the remote has profiles, or which has profiles here.

    :param info: what version control says of it, None if it is not in this clone.
    :param there: profiles that the remote has. :param not_here: those of them that are not here.
    :param not_there: profiles that are here, and that the remote does not have.
    """

    version: str
    info: MinorVersion | None
    there: list[RegisterEntry]
    not_here: int
    not_there: int


def fetch(repo: Repository, remote: Remote, minors: Collection[str] | None = None) -> list[HeldVersion]:
    """The versions with profiles there or here, the newest first; those that are not in this clone last.

    :param minors: only these versions; all if None.
    :raises RemoteError: if the remote cannot be read.
    """
    known = CachingReader(remote, caches(repo))
    union = known.refresh()
    known.keep()
    here: dict[str, set[RegisterEntry]] = {}
    for entry in registered_here(repo, minors):
        here.setdefault(entry.minor, set()).add(unclashed(entry))
    there: dict[str, list[RegisterEntry]] = {}
    for one in union:
        if minors is None or one.entry.minor in minors:
            there.setdefault(one.entry.minor, []).append(one.entry)
    infos = walking.infos(repo, here.keys() | there.keys())
    found = []
    for version in here.keys() | there.keys():
        ours, theirs = here.get(version, set()), there.get(version, [])
        not_here = sum(entry not in ours for entry in theirs)
        not_there = len(ours.difference(theirs))
        theirs.sort(key=_by_time)
        found.append(HeldVersion(version, infos.get(version), theirs, not_here, not_there))
    return sorted(found, key=_by_date, reverse=True)


def _by_date(one: HeldVersion) -> tuple[str, str]:
    return (one.info.date if one.info else "", one.version)


def _by_time(entry: RegisterEntry) -> tuple[int, str, str]:
    return entry.time, entry.name, entry.checksum
