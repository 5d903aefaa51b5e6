"""Sending profiles to a remote, and fetching those of others.

Objects go first and what names them second, there and here, so that whatever ends a transfer leaves nothing
half visible, and the next one goes on where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from perun.errors import ProfileError, RemoteError
from perun.porcelain.repository import Repository
from perun.porcelain.sharing.known import union_of
from perun.remote import pack, register
from perun.remote.contract import Remote
from perun.remote.pack import Place
from perun.remote.register import Added, Entry
from perun.store.index import IndexEntry

T = TypeVar("T")
U = TypeVar("U")

Progress = Callable[[int, int], None]
"""Is told how many profiles are done, and how many there are in all."""
FORMAT_KEY: Final = "format"
FORMAT: Final = b"perun-remote 1\n"
_WHOLE_FROM: Final = 0.5
"""Share of a pack from which on it is fetched whole, and not each object by itself."""
_SINGLE: Final = 8
"""Objects of a pack that are fetched by themselves, at most."""
_ENTRIES_AT_ONCE: Final = 20_000
"""Profiles that one register names, at most."""


class Transferred(NamedTuple):
    """What a transfer did, or would do.

    :param entries: the profiles that were sent or fetched. :param known: how many were there already.
    :param removed: those that are here and were removed from the remote: they are not sent again.
    :param refused: why a profile was left out, a sentence each. :param sent: bytes that went over the line.
    :param seconds: how long it took.
    """

    entries: list[Entry]
    known: int
    removed: list[Entry]
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
) -> Transferred:
    """Send what is registered here, and not there.

    :param minors: only profiles of these minor versions; all if None.
    :param again: also those that were removed from the remote.
    :param dry_run: send nothing.
    :raises RemoteError: if the remote cannot be read or written. What was sent stays, and is not sent again.
    :raises ProfileError: if an index here is damaged.
    """
    began = time.monotonic()
    union = union_of(remote, _caches(repo))
    registered = list(_registered(repo, minors))
    missing = [entry for entry in registered if entry not in union and _unclashed(entry) not in union]
    removed = [] if again else [entry for entry in missing if union.was_removed(entry)]
    gone = set(removed)
    new = [entry for entry in missing if entry not in gone]
    known = len(registered) - len(missing)
    if dry_run or not new:
        return Transferred(new, known, removed, [], 0, time.monotonic() - began)
    prepare(remote)
    places = union.places()
    refused: list[str] = []
    done: list[Entry] = []
    sent = 0
    for entries, objects in _in_packs(repo, new, places, refused):
        sent += _sent(repo, remote, entries, objects, places)
        done += entries
        progress(len(done), len(new))
    return Transferred(done, known, removed, refused, sent, time.monotonic() - began)


def pull(
    repo: Repository,
    remote: Remote,
    minors: Collection[str] | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> Transferred:
    """Fetch what is registered there, and not here. What is fetched is data only, and is verified.

    :param minors: only profiles of these minor versions; all if None.
    :param dry_run: fetch nothing.
    :raises RemoteError: if the remote cannot be read. What was fetched stays, and is not fetched again.
    """
    began = time.monotonic()
    union = union_of(remote, _caches(repo))
    here = {_unclashed(entry) for entry in _registered(repo, minors)}
    there = [one for one in union if minors is None or one.entry.minor in minors]
    new = [one for one in there if one.entry not in here]
    if dry_run or not new:
        entries = [one.entry for one in new]
        return Transferred(entries, len(there) - len(new), [], [], 0, time.monotonic() - began)
    refused: list[str] = []
    done: list[Entry] = []
    sent = 0
    by_pack: dict[str, list[Added]] = {}
    for one in new:
        by_pack.setdefault(one.place.pack, []).append(one)

    def fetch(wanted: list[Added]) -> tuple[int, dict[str, bytes]]:
        return _fetched(remote, wanted, repo.store.limit)

    with ThreadPoolExecutor(remote.parallel) as pool:
        for wanted, (size, objects) in _in_parallel(pool, fetch, by_pack.values(), remote.parallel):
            sent += size
            done += _take_in(repo, wanted, objects, refused)
            progress(len(done) + len(refused), len(new))
    return Transferred(done, len(there) - len(new), [], refused, sent, time.monotonic() - began)


def _caches(repo: Repository) -> Path:
    return repo.store.root / "cache" / "remotes"


def _registered(repo: Repository, minors: Collection[str] | None) -> Iterator[Entry]:
    """What is registered here, version by version."""
    for minor in repo.store.indexes.minors():
        if minors is None or minor in minors:
            for one in repo.store.indexes.read(minor):
                yield Entry(minor, one.checksum, one.time, one.path)


def _clashing(name: str, checksum: str) -> str:
    """The name of a profile where the index has another one of its name and time, as of two machines."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem or suffix}~{checksum[:12]}{dot + suffix if stem else ''}"


def _unclashed(entry: Entry) -> Entry:
    """The entry under the name that it has at the remote."""
    mark = f"~{entry.checksum[:12]}"
    stem, found, suffix = entry.name.rpartition(mark)
    name = stem + suffix
    return entry._replace(name=name) if found and _clashing(name, entry.checksum) == entry.name else entry


def prepare(remote: Remote) -> None:
    """See that the remote is one, of a format that this Perun writes; an empty place becomes one.

    :raises RemoteError: if it is of another format, or cannot be written.
    """
    if remote.replace(FORMAT_KEY, FORMAT, None):
        return
    found = remote.get(FORMAT_KEY, 1000)
    if found != FORMAT:
        raise RemoteError(
            f"{remote.url} has the format {found[:60]!r}, this Perun writes {FORMAT!r}",
            "install the Perun that the others of the team have",
        )


def _in_packs(
    repo: Repository, entries: Iterable[Entry], places: Collection[str], refused: list[str]
) -> Iterator[tuple[list[Entry], list[tuple[str, bytes]]]]:
    """The entries with the objects that they need, which are together about as large as a pack."""
    group: list[Entry] = []
    objects: dict[str, bytes] = {}
    size = 0
    for entry in entries:
        if entry.checksum not in places and entry.checksum not in objects:
            try:
                objects[entry.checksum] = repo.store.objects.exported(entry.checksum)
            except ProfileError as problem:
                refused.append(f"{entry.name} of {entry.minor[:10]} is not sent: {problem.message}")
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
    remote: Remote,
    entries: Sequence[Entry],
    objects: Sequence[tuple[str, bytes]],
    places: dict[str, Place],
) -> int:
    """Send a pack, then the register that names what is in it; the bytes that were sent."""
    sent = 0
    if objects:
        made = pack.packed(objects)
        remote.put(pack.FOLDER + made.name, made.data)
        places.update(made.places)
        sent += len(made.data)
    added = [Added(entry, _file_time(repo, entry), places[entry.checksum]) for entry in entries]
    saying = register.written(added, now=time.time())
    remote.put(register.FOLDER + saying.name, saying.data)
    return sent + len(saying.data)


def _file_time(repo: Repository, entry: Entry) -> int:
    try:
        return repo.store.objects.time(entry.checksum)
    except OSError:
        return entry.time * 10**9


def _fetched(remote: Remote, wanted: Sequence[Added], limit: int) -> tuple[int, dict[str, bytes]]:
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
    repo: Repository, wanted: Iterable[Added], objects: Mapping[str, bytes], refused: list[str]
) -> list[Entry]:
    """Store the objects, each after its content was verified, then register them."""
    entries: dict[str, list[IndexEntry]] = {}
    taken = []
    for one in wanted:
        entry = one.entry
        try:
            if entry.checksum not in repo.store.objects:
                repo.store.objects.take_in(entry.checksum, objects.get(entry.checksum, b""))
                repo.store.objects.set_time(entry.checksum, one.file_time / 10**9)
            head = repo.store.objects.head(entry.checksum)
        except ProfileError as problem:
            refused.append(f"{entry.name} of {entry.minor[:10]} is not registered here: {problem.message}")
            continue
        entries.setdefault(entry.minor, []).append(IndexEntry(entry.time, entry.checksum, entry.name, head))
        taken.append(entry)
    with repo.store.lock():
        for minor, found in entries.items():
            known = {one.key: one.checksum for one in repo.store.indexes.read(minor)}
            for number, new in enumerate(found):
                if known.setdefault(new.key, new.checksum) != new.checksum:
                    found[number] = new._replace(path=_clashing(new.path, new.checksum))
            repo.store.indexes.add(minor, found)
        repo.store.summaries.update(entries)
    return taken


def _in_parallel(
    pool: ThreadPoolExecutor, work: Callable[[T], U], items: Iterable[T], ahead: int
) -> Iterator[tuple[T, U]]:
    """Each item with what `work` makes of it, as it is done; at most `ahead` are begun beforehand."""
    left = iter(items)
    running: dict[Future[U], T] = {pool.submit(work, one): one for one in islice(left, ahead)}
    try:
        while running:
            done, _rest = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                item = running.pop(future)
                running.update((pool.submit(work, one), one) for one in islice(left, 1))
                yield item, future.result()
    finally:
        for future in running:
            future.cancel()
