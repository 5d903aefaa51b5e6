"""The dashboard as a folder of files: no server, it opens from disk and from any web server.

A build writes what changed since the last one. What a piece was made of is noted in the folder, so that of a
long history only the newest pieces are made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from perun import __version__
from perun.core import atomic
from perun.core.atomic import temporary_name
from perun.core.errors import PerunError, UsageError
from perun.core.regular import read_regular
from perun.measurement.noise import REACH
from perun.native.callgraph.graph import no_search_for_cycles
from perun.repository.repository import Repository
from perun.web import pages
from perun.web.data import changed
from perun.web.data.changed import pair_of
from perun.web.data.form import AnyPiece
from perun.web.data.pieces import PLAIN, Pieces, encoded
from perun.web.data.series import PIECE, series_page, tail_of
from perun.web.data.state import WebState, load
from perun.web.data.versions import CHUNK
from perun.web.live import atom

Progress = Callable[[str, int, int], None]
MANIFEST: Final = "perun-site.json"
"""What the folder holds, by which a build knows its own."""
FORMAT: Final = 1
COMPARED: Final = 20
"""Newest changed versions that are compared with those before them."""
_LARGEST: Final = 64 << 20


class SiteBuild(NamedTuple):
    """What a build made.

    :param files: and :param size: in bytes, of the whole site; :param written: files of this build.
    """

    folder: Path
    files: int
    size: int
    written: int


class _Made(NamedTuple):
    """A file of the site. :param key: of what it was made of; empty where that is its content."""

    key: str
    size: int
    digest: str


class _Folder:
    """The files of a site that are there, and those that a build makes."""

    def __init__(self, root: Path, before: dict[str, _Made]) -> None:
        self.root = root
        self.now: dict[str, _Made] = {}
        self.written = 0
        self._before = before
        self._start = f"{root}/"
        self._folders: set[str] = set()
        """Those that are there for sure."""

    @classmethod
    def open(cls, root: Path) -> _Folder:
        """The folder, with what an earlier build left there.

        :raises UsageError: if it holds something else.
        """
        try:
            there = os.listdir(root)
        except FileNotFoundError:
            there = []
        except OSError as problem:
            raise UsageError(f"{root} cannot be read: {problem.strerror}", "name another folder") from None
        before: dict[str, _Made] = {}
        if there and MANIFEST not in there:
            raise UsageError(f"{root} holds other files", "name an empty or a new folder")
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            data = json.loads(read_regular(root / MANIFEST, _LARGEST))
            if data["format"] == FORMAT:
                for name, (key, size, digest) in data["files"].items():
                    before[name] = _Made(str(key), int(size), str(digest))
        return cls(root, before)

    @property
    def known(self) -> Collection[str]:
        """The files of the build before."""
        return self._before.keys()

    def keep(self, name: str, key: str) -> bool:
        """Whether the file is there as it was made of the same."""
        known = self._before.get(name)
        if known is None or not key or known.key != key or not self._is_there(name, known):
            return False
        self.now[name] = known
        return True

    def put(self, name: str, data: bytes, key: str = "") -> None:
        """Make `data` the content of the file, if it is not that yet.

        :raises UsageError: if it cannot be written.
        """
        made = _Made(key, len(data), hashlib.blake2b(data, digest_size=12).hexdigest())
        known = self._before.get(name)
        self.now[name] = made
        if known is not None and known.digest == made.digest and self._is_there(name, known):
            return
        with self._writing():
            self._write(name, data)
        self.written += 1

    def _write(self, name: str, data: bytes) -> None:
        folder = os.path.dirname(self._start + name)
        if folder not in self._folders:
            os.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        # Not flushed to the disk, file by file: whatever is lost is made again, as its size is another one.
        temporary = f"{folder}/{temporary_name()}"
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            os.replace(temporary, self._start + name)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """:raises UsageError: if the block cannot write to the folder."""
        try:
            yield
        except OSError as problem:
            raise UsageError(
                f"{self.root} cannot be written: {problem.strerror or problem}",
                "name a folder that you may write to, with enough space",
            ) from None

    def close(self) -> None:
        """Remove what is of no use any more, and note what is there."""
        for name in self._before.keys() - self.now.keys():
            if _is_inside(name):
                with suppress(OSError):
                    (self.root / name).unlink()
        content = {"format": FORMAT, "files": self.now}
        with self._writing():
            atomic.write(self.root / MANIFEST, json.dumps(content).encode())

    def _is_there(self, name: str, known: _Made) -> bool:
        try:
            status = os.lstat(self._start + name)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and status.st_size == known.size


def _is_inside(name: str) -> bool:
    parts = Path(name).parts
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts


def build(
    repo: Repository,
    folder: Path,
    revision: str | None = None,
    address: str = "",
    progress: Progress = lambda what, done, total: None,
) -> SiteBuild:
    """Write the site.

    :param folder: new, empty, or with a site that is brought up to date.
    :param revision: the version whose first parents are the main line, HEAD if None.
    :param address: where the site will be published, for its feed.
    :raises UsageError: if the folder holds something else, or cannot be written. :raises VersionControlError:
        if there is no such version.
    """
    site = _Folder.open(folder)
    with no_search_for_cycles():
        state = load(repo, revision, progress)
        _Build(site, state, progress).run(address)
    site.close()
    size = sum(one.size for one in site.now.values())
    return SiteBuild(folder, len(site.now), size, site.written)


class _Build:
    """One build of one state."""

    def __init__(self, site: _Folder, state: WebState, progress: Progress) -> None:
        self._site = site
        self._state = state
        self._progress = progress
        self._pairs: dict[str, None] = {}
        self._rules = state.repo.config.section("degradation")
        self._checked = frozenset(state.repo.store.changes.minors())
        self._states = [self._index_state(one.checksum) for one in state.commits.versions]
        self._pieces = Pieces(state, _name_of(state), served=False, reported=self._pairs.__contains__)

    def run(self, address: str) -> None:
        """Write all files but the list of them."""
        state = self._state
        steps: list[Callable[[], None]] = [self._documents, self._comparisons, self._chunks, self._explained]
        steps += [partial(self._piece, name) for name in PLAIN]
        steps += [partial(self._series, name) for name in state.groups]
        for number, step in enumerate(steps):
            self._progress("pages", number, len(steps))
            step()
        self._site.put("feed.atom", atom(state, address))
        self._progress("pages", len(steps), len(steps))

    def _documents(self) -> None:
        project = self._state.repo.root.resolve().name
        key = _digest(__version__, project, pages.digest())
        for page in pages.PAGES:
            name = pages.file_name(page)
            if not self._site.keep(name, key):
                text = pages.html(page, project=project, live=False)
                self._site.put(name, text.encode("utf-8", "replace"), key)
        for name, data in pages.assets().items():
            self._site.put(name, data)

    def _comparisons(self) -> None:
        """Compare the newest changed versions with those before them."""
        for one in self._state.changes:
            if len(self._pairs) >= COMPARED:
                break
            self._pairs[pair_of(one)] = None
        drawn = [one for one in self._site.known if one.startswith("flame/")]
        measured = [place for place, one in enumerate(self._state.columns) if one >= 0]
        for pair in list(self._pairs):
            old, _, new = pair.partition("..")
            places = tuple(map(self._state.place_of, (old, new)))
            end = bisect_left(measured, places[0])
            # What was measured before says how much of a difference is noise.
            earlier = [self._states[one] for one in measured[max(0, end - REACH) : end]]
            own = [self._index_state(one) for one in (old, new)]
            key = _digest(__version__, self._rules, pair, places, own, earlier)
            name = f"compare/{pair}"
            flames = [one for one in drawn if one.startswith(f"flame/{pair}/")]
            if self._site.keep(_file_of(name), key) and all(self._site.keep(one, key) for one in flames):
                continue
            try:
                self._compare(name, pair, key)
            except PerunError:
                del self._pairs[pair]  # the page makes a table of the values; `site` tells the problem

    def _compare(self, name: str, pair: str, key: str) -> None:
        from perun.web.data import comparing

        made = comparing.compare(self._state, pair)
        cases = []
        for case in made.cases:
            flame = case.flame
            if flame is not None:
                try:
                    number = int(Path(flame).stem)
                    self._site.put(flame, comparing.flame(self._state.repo, pair, number).encode(), key)
                except PerunError:
                    flame = None
            cases.append(replace(case, flame=flame))
        self._write(name, replace(made, cases=cases), key)

    def _explained(self) -> None:
        """What `perun explain` found of versions."""
        state = self._state
        for position in changed.positions(state):
            checksum = state.commits.versions[position].checksum
            key = _digest(__version__, position, changed.stamp(state, checksum))
            name = f"explained/{checksum}"
            if self._site.keep(_file_of(name), key):
                continue
            try:
                made = changed.explained(state, checksum)
            except PerunError as problem:
                made = changed.damaged(state, position, problem)
            self._write(name, made, key)

    def _chunks(self) -> None:
        """The pieces of versions: `commits/K` and `values/K`."""
        state = self._state
        states = self._states
        context = _digest(__version__, *state.machines)
        for number in range(-(-len(states) // CHUNK)):
            places = range(number * CHUNK, min((number + 1) * CHUNK, len(states)))
            tags = [tag for tag in state.commits.tags if tag[1] in places]
            versions = [state.commits.versions[place].checksum for place in places]
            lines = [state.commits.line[place] for place in places]
            damaged = [state.damaged.get(checksum, "") for checksum in versions]
            key = _digest(context, versions, lines, states[places.start : places.stop], tags, damaged)
            for kind in ("commits", "values"):
                self._piece(f"{kind}/{number}", key)

    @cached_property
    def _keys_of_points(self) -> list[str]:
        """What each piece of points of whatever series is made of."""
        state = self._state
        parts = []
        tail = tail_of(state)
        for first in range(0, tail, PIECE):
            versions = slice(first, min(first + PIECE, tail))
            checksums = [one.checksum for one in state.commits.versions[versions]]
            parts.append((checksums, self._states[versions], state.commits.line[versions]))
        return [_digest(__version__, state.machines, *part) for part in parts]

    def _series(self, name: str) -> None:
        page = series_page(self._state, name, self._pairs.__contains__)
        self._write(f"series/{name}", page)
        for number in page.chunks:
            self._piece(f"series/{name}/{number}", self._keys_of_points[number])

    def _piece(self, name: str, key: str = "") -> None:
        if not self._site.keep(_file_of(name), key):
            self._write(name, self._pieces.piece(name), key)

    def _write(self, name: str, piece: AnyPiece, key: str = "") -> None:
        text = encoded(piece).decode("utf-8")
        self._site.put(_file_of(name), pages.piece(name, text).encode("utf-8", "replace"), key)

    def _index_state(self, checksum: str) -> tuple[object, ...]:
        """What is another one when profiles or changes of the version are stored."""
        state = self._state
        table = state.table
        # What is damaged has no place.
        place = table.place.get(checksum) if checksum in state.indexed else None
        own = None if place is None else table.states[place]
        if checksum in self._checked:
            with suppress(OSError):
                store = state.repo.store
                return own, store.files.state(store.changes.path(checksum)).st_mtime_ns
        return (own,)


def _name_of(state: WebState) -> str:
    head = state.commits.head
    rules = state.repo.config.section("degradation")
    return _digest(head.checksum if head else "", state.table.states, state.acknowledged.entries, rules)


def _file_of(piece: str) -> str:
    return f"data/{piece}.js"


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
