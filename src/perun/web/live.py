"""What a server answers with: the pieces of the state of the store as it is now, as bytes to send."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock, RLock
from typing import Final, NamedTuple

from perun.core.errors import PerunError
from perun.history.changes.data import VersionChanges
from perun.measurement import present
from perun.pages import escape
from perun.profile.amounts import readable_pair
from perun.repository.repository import PERUN_FOLDER, Repository, open_repository
from perun.running.explain import kept
from perun.web.data.naming import title_of
from perun.web.data.pieces import Pieces, encoded
from perun.web.data.state import WebState, load
from perun.web.data.versions import running

# The changes as a feed (RFC 4287), which a reader of news or a chat tells of.

MOST: Final = 50
"""Versions of the feed."""
_STEPS: Final = 20
_CONTROLS: Final = {number: 0xFFFD for number in range(32) if number not in (9, 10, 13)}


def atom(state: WebState, address: str) -> bytes:
    """The feed. :param address: of the site, with a slash at its end; empty where it is not known."""
    project = state.repo.root.resolve().name
    found = [one for one in reversed(state.found.found) if one.steps][:MOST]
    updated = found[0].version.date if found else _EPOCH
    entries = Counter(one.version.checksum for one in found)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>Performance of {_text(project)}</title>",
        f"<id>urn:perun:{_text(_root_of(state))}</id>",
        f"<updated>{_time(updated)}</updated>",
        *([f'<link href="{_text(address)}"/>'] if address else []),
        *(line for one in found for line in _entry(one, address, alone=entries[one.version.checksum] == 1)),
        "</feed>",
        "",
    ]
    return "\n".join(lines).encode("utf-8")


_EPOCH: Final = "1970-01-01 00:00:00"


def _root_of(state: WebState) -> str:
    """What stands for the project wherever it is published: its first version."""
    return state.commits.versions[0].checksum if state.commits.versions else "empty"


def _entry(one: VersionChanges, address: str, *, alone: bool) -> Iterator[str]:
    """:param alone: whether the version has no other entry; else the version before tells it apart."""
    version = one.version
    name = version.checksum if alone else f"{version.checksum}:{one.since.checksum}"
    worse = [step for step in one.steps if step.is_degradation]
    kind = f"{len(worse)} worse" if worse else ""
    better = len(one.steps) - len(worse)
    kinds = ", ".join(filter(None, (kind, f"{better} better" if better else "")))
    yield "<entry>"
    yield f"<title>{_text(kinds)}: {_text(version.subject)}</title>"
    yield f"<id>urn:perun:{_text(name)}</id>"
    yield f"<updated>{_time(version.date)}</updated>"
    yield f"<author><name>{_text(version.author)}</name></author>"
    yield f'<link href="{_text(address)}commit.html?c={_text(version.checksum)}"/>'
    steps = one.steps[:_STEPS]
    more = [f"and {len(one.steps) - _STEPS} more"] if len(one.steps) > _STEPS else []
    told = "\n".join(
        f"{title_of(step.series)}: {present.NAMES[step.verdict]}, "
        f"{' -> '.join(readable_pair(*step.values, step.series.unit))}  "
        f"{present.step(step.values, step.ratio, step.low, step.high, step.series.unit)}"
        f"{f'  {step.remark}' if step.remark else ''}"
        for step in steps
    )
    yield f'<content type="text">{_text(chr(10).join([told, *more]))}</content>'
    yield "</entry>"


def _text(text: str) -> str:
    """The text without characters that XML does not have."""
    return escape(text.translate(_CONTROLS)).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _time(date: str) -> str:
    try:
        return datetime.strptime(date[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return "1970-01-01T00:00:00+00:00"


LARGEST_CACHE: Final = 48 << 20
"""Bytes of answers that are kept."""
_SMALL: Final = 1024
_LEVEL: Final = 5
_REFRESHED: Final = 1.0
"""Seconds after which the store is looked at again."""
_VCS_REFRESHED: Final = 10.0
"""The same of the version control, which has to be asked by a program."""


class HttpResponse(NamedTuple):
    """Bytes to send.

    :param packed: the same by gzip; empty where that is not worth it. :param tag: its ETag.
    """

    body: bytes
    packed: bytes
    tag: str


def answer_of(body: bytes) -> HttpResponse:
    """The bytes with what a server needs beside them."""
    packed = gzip.compress(body, _LEVEL, mtime=0) if len(body) > _SMALL else b""
    return HttpResponse(body, packed, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


class ServerState:
    """The pieces of a repository, of a state that is never much older than what is stored.

    All threads may call it.

    :param revision: the version whose first parents are the main line, HEAD if None.
    """

    def __init__(self, repo: Repository, revision: str | None = None) -> None:
        self.repo = repo
        self._revision = revision
        self._lock = RLock()
        self._state: WebState | None = None
        self._name = ""
        self._signature: object = None
        self._stored: object = None
        self._looked = 0.0
        self._answers: OrderedDict[str, HttpResponse] = OrderedDict()
        self._size = 0
        self._keeping = Lock()
        self._makers: dict[str, Lock] = {}
        """Of answers that are being made."""
        self._heads: tuple[float, object] = (0.0, None)

    def pieces(self) -> Pieces:
        """The pieces of the state as it is now.

        :raises PerunError: if the repository cannot be read.
        """
        with self._lock:
            self.refresh()
            assert self._state is not None
            return Pieces(self._state, self._name)

    def refresh(self) -> str:
        """Read what is new in the store; the name of the state, which is another one then."""
        with self._lock:
            now = time.monotonic()
            if self._state is not None and now - self._looked < _REFRESHED:
                return self._name
            signature = self._signature_now(now)
            if self._state is None or signature != self._signature:
                self._configure()
                self._state = load(self.repo, self._revision, before=self._state)
                self._signature = signature
                self._name = hashlib.blake2b(repr(signature).encode(), digest_size=8).hexdigest()
                with self._keeping:
                    self._answers.clear()
                    self._size = 0
            self._looked = time.monotonic()
            return self._name

    def _configure(self) -> None:
        """Read the configuration again; while it is wrong, what was read before holds."""
        with suppress(PerunError):
            found = open_repository(self.repo.working_root, self.repo.environ, self.repo.asks)
            if _values(found) != _values(self.repo):
                self.repo = found

    def forget(self) -> None:
        """Look at the store again before the next answer, as something was written there."""
        with self._lock:
            self._looked, self._signature = 0.0, None

    def piece(self, name: str) -> HttpResponse:
        """The piece of that name.

        :raises PerunError: if there is none, or what it is of cannot be read.
        """
        # What runs at the moment changes without anything being stored.
        moment = repr(running(self.repo)) if name == "site" else ""
        return self._kept(f"{name} {moment}", lambda pieces: encoded(pieces.piece(name)))

    def points(self, series: str, first: int, last: int) -> HttpResponse:
        """The points of a series at positions `first` to `last`, both included."""
        return answer_of(encoded(self.pieces().points(series, first, last)))

    def feed(self, address: str) -> HttpResponse:
        """The feed of changes. :param address: of the pages."""
        return self._kept(f"feed {address}", lambda pieces: atom(pieces.state, address))

    def _kept(self, name: str, make: Callable[[Pieces], bytes]) -> HttpResponse:
        pieces = self.pieces()
        key = f"{pieces.name} {name}"
        with self._keeping:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
            maker = self._makers.setdefault(key, Lock())
        with maker:  # who asks while it is made waits for it
            with self._keeping:
                if key in self._answers:
                    return self._answers[key]
            try:
                made = answer_of(make(pieces))
                self._keep(key, made, pieces.name)
            finally:
                with self._keeping:
                    self._makers.pop(key, None)
        return made

    def _keep(self, key: str, made: HttpResponse, state: str) -> None:
        with self._keeping:
            if state == self._name and key not in self._answers:
                self._answers[key] = made
                self._size += len(made.body) + len(made.packed)
                while self._size > LARGEST_CACHE:
                    _, old = self._answers.popitem(last=False)
                    self._size -= len(old.body) + len(old.packed)

    def _signature_now(self, now: float) -> object:
        """What is another one whenever something was stored."""
        asked, heads = self._heads
        stored = tuple(_times(self.repo))
        if heads is None or now - asked > _VCS_REFRESHED or stored != self._stored:
            heads = self._heads_now()
            self._heads = now, heads
        self._stored = stored
        return stored, heads

    def _heads_now(self) -> object:
        vcs = self.repo.vcs
        try:
            head = self.repo.version(self._revision)
            return head, tuple((one.name, one.head) for one in vcs.walk_major_versions()), tuple(vcs.tags())
        except PerunError:
            return ()


def _values(repo: Repository) -> list[object]:
    return [layer.values for layer in repo.config.layers]


def _times(repo: Repository) -> Iterator[object]:
    """What changes when something is stored, accepted, or configured."""
    yield repo.store.files.signature()
    own = (repo.root / PERUN_FOLDER / "acknowledged.json", kept.folder_of(repo))
    for path in (*own, *(layer.path for layer in repo.config.layers if layer.path)):
        with suppress(OSError):
            status = os.stat(path)
            yield str(path), status.st_mtime_ns, status.st_size
