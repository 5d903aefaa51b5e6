"""A remote in a git repository that the team has already: `git:origin`.

Each piece is an object of git (a blob) that two refs name: `refs/perun/pieces/NAME`, and
`refs/perun/sizes/NAME/BYTES`, so that a list of refs is a list of pieces with their sizes. Both are pushed
together, on the condition that the server has the first not yet, or as it was. Nobody who clones or fetches
gets them, as git fetches branches and tags only.

git runs in the repository of the user, with his settings and credentials, but with a folder of objects for
each call, that is removed afterwards: neither his objects nor his refs change.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from perun.core import atomic
from perun.core.errors import RemoteError, UsageError
from perun.core.leftovers import is_left_over
from perun.core.process.git import GitCommand, GitResult, Purpose
from perun.core.wording import without_secrets
from perun.store.remote.contract import (
    AGAIN,
    MAX_PIECE,
    PieceInfo,
    Refusal,
    Remote,
    checked,
    is_key,
    refusal_in,
)

# What git says of a remote that it cannot use, in words of who uses it.

_ROOM: Final = 300
_BEATEN: Final = re.compile(
    r"cannot lock ref|failed to lock|Unable to create '[^']*\.lock'|reference already exists|"
    r"incorrect old value|failed to update ref|is at [0-9a-f]{40,64} but expected|atomic transaction failed"
)
_CUT: Final = re.compile(
    r"hung up|RPC failed|early EOF|unexpected disconnect|Connection reset|Broken pipe|Empty reply|"
    r"transfer closed|Operation too slow|Connection closed by"
)


_ANSWERS: Final = (
    Refusal.of(
        r"No space left|[Dd]isk quota|out of disk|exceeds? .{0,40}(quota|limit|size)|GH001",
        "{key} cannot be {done}: the server has no room for it",
        "make room there, and push again: what was sent is not sent again",
    ),
    Refusal.of(
        r"terminal prompts disabled|could not read (Username|Password)|Authentication failed|"
        r"Permission denied \(|HTTP Basic: Access denied|returned error: 401",
        "the server does not accept the credentials that git has, or git has none",
        "see that `git ls-remote {place}` asks for no password, e.g. by a credential helper or an SSH agent",
    ),
    Refusal.of(
        r"certificate|Host key verification failed|SSL",
        "this machine does not trust the certificate, or the key, of the server",
        "see what `git ls-remote {place}` says, and that the clock of this machine is right",
    ),
    Refusal.of(
        r"[Cc]ould not resolve|unable to access.*(Failed to connect|Could ?n.t connect)|"
        r"Connection refused|Connection timed out|[Nn]etwork is unreachable|No route to host",
        "the server cannot be reached",
        "see that the network is there: git ls-remote {place}",
    ),
    Refusal.of(
        r"does not appear to be a git repository|[Rr]epository not found|repository '.*' not found|"
        r"does not exist|No such remote",
        "there is no git repository",
        "`git remote -v` lists the remotes of git; its server makes the repository, or `git init --bare`",
    ),
    Refusal.of(
        r"not a git repository",
        "the project is in no git repository, whose remotes could be used",
        "name a folder, a database or an object store as the remote: perun remote add --help",
    ),
    Refusal.of(
        r"returned error: 403|[Pp]ermission( to \S+)? denied|insufficient permission|read-only|"
        r"Read-only file system|unable to create temporary|not allowed to (push|upload)",
        "{key} cannot be {done}: the server does not let you do that",
        "ask who owns the repository; `perun pull` needs to read only",
    ),
    Refusal.of(
        r"remote rejected|hook declined|funny refname|hidden ref|prohibited|denied by",
        "the server takes no refs below refs/perun",
        "ask who owns the repository to allow them, or use another kind of remote: perun remote add --help",
    ),
)
_SILENT: Final = Refusal.of(
    r"Could not read from remote repository",
    "{key} cannot be {done}: the server ended the connection without a word",
    "see what `git ls-remote {place}` says",
)
"""Said behind many of the others, too."""


def named(remote: Remote, key: str, done: str, answer: GitResult) -> RemoteError:
    """The error that tells what git answered.

    :param done: what was to become of the piece: read, written, listed or removed.
    """
    text = f"{answer.stderr}\n{answer.text}"
    place = remote.url.partition(":")[2]
    if found := refusal_in(remote, (*_ANSWERS, _SILENT), text, key=key, done=done, place=place):
        return found
    said = next((line for line in answer.stderr.splitlines() if line.startswith(("fatal:", "error:"))), "")
    said = without_secrets(said.partition(": ")[2] or answer.stderr.strip().partition("\n")[0])
    return RemoteError(
        f"{remote.url}: {key} cannot be {done}: git says: {said[:_ROOM] or answer.code}", AGAIN
    )


def was_beaten(answer: GitResult) -> bool:
    """Whether the server refused a push, wholly, as another one changed refs at the same time."""
    return _BEATEN.search(f"{answer.text}\n{answer.stderr}") is not None


def was_cut(answer: GitResult) -> bool:
    """Whether the line was cut, so that another attempt may succeed."""
    if _CUT.search(answer.stderr):
        return True
    is_known = any(one.pattern.search(answer.stderr) for one in _ANSWERS)
    return _SILENT.pattern.search(answer.stderr) is not None and not is_known


SCHEME: Final = "git"
_REFS: Final = "refs/perun"
_PIECES: Final = f"{_REFS}/pieces/"
_SIZES: Final = f"{_REFS}/sizes/"
_HEADS: Final = "heads/"
"""Pieces that change, so that what is known of them may be old."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}|(https|ssh|file)://\S{1,500}")
_AT_ONCE: Final = 200
"""Pieces that one call of git fetches."""
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.1
"""Seconds before the second attempt, doubled before each further one."""
_SETTINGS: Final = (
    "-c", "fetch.bundleURI=",
    "-c", "fetch.negotiationAlgorithm=noop",
    "-c", "http.lowSpeedLimit=1",
    "-c", "http.lowSpeedTime=60",
    "-c", "protocol.ext.allow=never",
    "-c", "push.negotiate=false",
    "-c", "push.pushOption=",
    "-c", "transfer.bundleURI=false",
)  # fmt: skip
_FETCH: Final = (
    *_SETTINGS, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
    "--no-recurse-submodules", "--no-filter", "--no-prune", "--no-prune-tags", "--no-write-commit-graph",
    "--refmap=", "--end-of-options",
)  # fmt: skip
_PUSH: Final = (
    *_SETTINGS, "push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed",
    "--no-force-if-includes", "--recurse-submodules=no",
)  # fmt: skip
"""Nothing but what it names is pushed, whatever the user has set for what he pushes himself."""
_OF_REMOTE: Final = {"mirror": "false", "fetch": f"^{_REFS}/*"}
"""Settings of one remote. A mirror pushes all or nothing, and would keep refs of pieces without objects."""


class _Piece(NamedTuple):
    """What refs say of a piece: the name of its object, and its size in bytes."""

    blob: str
    size: int


def place_of(url: str) -> str:
    """What follows `git:`: the name of a remote of git, or a URL.

    :raises UsageError: if it is neither.
    """
    place = url.partition(":")[2]
    if _NAME.fullmatch(place) is None or ".." in place:
        raise UsageError(
            f"{url!r} is no URL of a remote",
            "name a remote of git, as in git:origin, or a URL: git:https://host/team/perf.git",
        )
    return place


class GitRemote(Remote):
    """Pieces are objects of git, below `refs/perun` of the repository that a remote of git names.

    :param folder: the repository of the user, or a folder in it.
    :param environ: the environment of the user.
    :param scratch: where folders for objects under way are made; that of the system if None.
    """

    parallel = 4

    def __init__(
        self, url: str, folder: Path, environ: Mapping[str, str], scratch: Path | None = None
    ) -> None:
        self._url = url
        self._place = place_of(url)
        self._git = GitCommand(folder, environ, Purpose.WORK)
        self._pinned: tuple[str, ...] = ()
        if "://" not in self._place:
            settings = (f"remote.{self._place}.{name}={value}" for name, value in _OF_REMOTE.items())
            self._pinned = tuple(chain.from_iterable(("-c", one) for one in settings))
        self._scratch = scratch
        self._pieces: dict[str, _Piece] = {}
        self._sizes: dict[str, int] = {}
        self._objects = ""
        self.sweep()

    @property
    def url(self) -> str:
        """As the interface describes it."""
        return self._url

    def put(self, key: str, data: bytes) -> bool:
        """As the interface describes it."""
        checked(key)
        return self._pushed(key, data, None)

    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        """As the interface describes it."""
        checked(key)
        [(_key, data)] = self.get_many([key], limit)
        return data

    def get_many(self, keys: Sequence[str], limit: int = MAX_PIECE) -> Iterator[tuple[str, bytes]]:
        """As the interface describes it, by a call of git for many."""
        left = iter(keys)
        while some := list(islice(left, _AT_ONCE)):
            yield from self._fetched(some, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """As the interface describes it. The whole piece is fetched, as git knows no parts of objects."""
        return self.get(key)[start : start + length]

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        """As the interface describes it."""
        found = self._refreshed().items()
        yield from sorted(PieceInfo(key, piece.size) for key, piece in found if key.startswith(prefix))

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        """As the interface describes it."""
        checked(key)
        if expected is None:
            return self._pushed(key, data, None, sure=True)
        for attempt in range(_ATTEMPTS):
            now = self._refreshed().get(key)
            if now is None or now.blob != _name_of(expected, len(now.blob)):
                return False
            # Where it changes between the two calls, it is read again.
            if self._pushed(key, data, now, sure=True):
                return True
            time.sleep(_PAUSE * 2**attempt)
        raise RemoteError(f"{self.url}: {key} cannot be written: others write it all the time", "try again")

    def delete(self, key: str) -> None:
        """As the interface describes it."""
        checked(key)
        for attempt in range(_ATTEMPTS):
            piece = self._refreshed().get(key)
            if piece is None:
                return
            lease = f"--force-with-lease={_piece_ref(key)}:{piece.blob}"
            gone = (f":{_piece_ref(key)}", f":{_size_ref(key, piece.size)}")
            answer = self._git.attempt(*self._pinned, *_PUSH, lease, "--end-of-options", self._place, *gone)
            if not answer.code:
                return
            if not was_beaten(answer):
                break
            time.sleep(_PAUSE * 2**attempt)
        raise named(self, key, "removed", answer)

    def _pushed(self, key: str, data: bytes, old: _Piece | None, *, sure: bool = False) -> bool:
        """Whether the piece, which is `old` there, or is not there if that is None, became `data`.

        :param sure: send it once only, so that the answer is what became of it.
        :raises RemoteError: if the server refuses it, or cannot be reached.
        """
        ref = _piece_ref(key)
        with self._folder_of_objects() as environ:
            file = Path(environ["GIT_OBJECT_DIRECTORY"], "piece")
            file.write_bytes(data)
            blob = self._asked("hash-object", "-w", "--no-filters", "--", str(file), env=environ)
            lease = f"--force-with-lease={ref}:{old.blob if old else ''}"
            wanted = [f"{blob}:{ref}", f"+{blob}:{_size_ref(key, len(data))}"]
            if old and old.size != len(data):
                wanted.append(f":{_size_ref(key, old.size)}")
            command = (*self._pinned, *_PUSH, lease, "--end-of-options", self._place, *wanted)
            for attempt in range(_ATTEMPTS):
                answer = self._git.attempt(*command, env=environ)
                said = _said_of(ref, answer)
                if not answer.code:
                    # git asks for no condition where the ref is as it shall be: another one did it.
                    return not said.startswith("=") or (old is not None and old.blob == blob)
                if "(stale info)" in said:
                    return False
                if not was_beaten(answer) and (sure or not was_cut(answer)):
                    break
                time.sleep(_PAUSE * 2**attempt)
        raise named(self, key, "written", answer)

    def _fetched(self, keys: Sequence[str], limit: int) -> Iterator[tuple[str, bytes]]:
        """The pieces, by one call of git, in this order."""
        known = self._pieces
        if any(key not in known or key.startswith(_HEADS) for key in keys):
            known = self._refreshed()
        for attempt in range(_ATTEMPTS):
            pieces = {}
            for key in keys:
                if key not in known:
                    raise self.missing(key)
                pieces[key] = known[key]
                if pieces[key].size > limit:
                    raise self.too_large(key, limit)
            with self._folder_of_objects() as environ:
                refs = map(_piece_ref, keys)
                answer = self._git.attempt(*self._pinned, *_FETCH, self._place, *refs, env=environ)
                found = {key: self._content(piece.blob, environ) for key, piece in pieces.items()}
                if None not in found.values():
                    yield from ((key, data) for key, data in found.items() if data is not None)
                    return
            if answer.code and not was_cut(answer) and "couldn't find remote ref" not in answer.stderr:
                raise named(self, keys[0], "read", answer)
            # Something changed since, or the line was cut.
            time.sleep(_PAUSE * 2**attempt)
            known = self._refreshed()
        raise named(self, keys[0], "read", answer)

    def _content(self, blob: str, environ: Mapping[str, str]) -> bytes | None:
        answer = self._git.attempt("cat-file", "blob", blob, env=environ)
        return None if answer.code else answer.stdout

    def _refreshed(self) -> dict[str, _Piece]:
        """What the server has now: each piece by its name."""
        for attempt in range(2):
            answer = self._git.attempt(*_SETTINGS, "ls-remote", "--end-of-options", self._place, f"{_REFS}/*")
            if answer.code:
                if not attempt and was_cut(answer):
                    continue
                raise named(self, "what it holds", "listed", answer)
            pieces, unsized = _pieces(answer.text, self._sizes)
            if not unsized:
                break
            time.sleep(_PAUSE)  # the refs of a piece appear one after the other
        # Where the server was stopped between the two, only the piece itself tells how large it is.
        for key, blob in unsized.items():
            with self._folder_of_objects() as environ:
                self._git.attempt(*self._pinned, *_FETCH, self._place, _piece_ref(key), env=environ)
                if (data := self._content(blob, environ)) is not None:
                    self._sizes[blob] = len(data)
                    pieces[key] = _Piece(blob, len(data))
        self._pieces = pieces
        return pieces

    @contextmanager
    def _folder_of_objects(self) -> Iterator[dict[str, str]]:
        """The environment in which git writes objects to a folder that exists for the block only."""
        if not self._objects:
            path = Path(self._asked("rev-parse", "--git-path", "objects"))
            self._objects = str((self._git.folder / path).resolve())
        if self._scratch is not None:
            self._scratch.mkdir(parents=True, exist_ok=True)
        parent = Path(tempfile.gettempdir() if self._scratch is None else self._scratch)
        folder = parent / atomic.temporary_name()
        folder.mkdir(mode=0o700)
        try:
            also = f'"{self._objects}"' if ":" in self._objects else self._objects
            yield {"GIT_OBJECT_DIRECTORY": str(folder), "GIT_ALTERNATE_OBJECT_DIRECTORIES": also}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _asked(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        answer = self._git.attempt(*arguments, env=env)
        if answer.code:
            raise named(self, "a piece", "written or read", answer)
        return answer.text

    def sweep(self) -> None:
        """As the interface describes it: objects that were under way, on this machine."""
        if self._scratch is not None and self._scratch.is_dir():
            for path in self._scratch.glob(f"{atomic.TEMPORARY_PREFIX}*"):
                if path.is_dir() and is_left_over(path):
                    shutil.rmtree(path, ignore_errors=True)


def _name_of(data: bytes, digits: int) -> str:
    """The name that git gives an object: its SHA-1 or SHA-256, of 40 or 64 digits."""
    made = hashlib.sha1 if digits == 40 else hashlib.sha256
    return made(b"blob %d\0" % len(data) + data).hexdigest()


def _piece_ref(key: str) -> str:
    # The last character keeps it apart from a folder of that name, and from what git keeps for itself.
    return f"{_PIECES}{key}="


def _size_ref(key: str, size: int) -> str:
    return f"{_SIZES}{key}=/{size}"


def _said_of(ref: str, answer: GitResult) -> str:
    """The line of a push that tells what became of a ref: a sign, names, and a summary; empty if none."""
    for line in answer.text.splitlines():
        parts = line.split("\t")
        if len(parts) == 3 and parts[1].rpartition(":")[2] == ref:
            return line
    return ""


def _pieces(listing: str, known: Mapping[str, int]) -> tuple[dict[str, _Piece], dict[str, str]]:
    """The pieces that refs name, and the objects of those whose size is not told, by their names.

    :param known: sizes of objects.
    """
    blobs: dict[str, str] = {}
    sizes = dict(known)
    for line in listing.splitlines():
        blob, _, ref = line.partition("\t")
        _name, _, size = ref.rpartition("=")
        if ref.startswith(_PIECES) and ref.endswith("="):
            blobs[ref.removeprefix(_PIECES).removesuffix("=")] = blob
        elif ref.startswith(_SIZES) and size[1:].isdecimal():
            sizes[blob] = int(size[1:])
    valid = {key: blob for key, blob in blobs.items() if is_key(key)}
    pieces = {key: _Piece(blob, sizes[blob]) for key, blob in valid.items() if blob in sizes}
    return pieces, {key: blob for key, blob in valid.items() if key not in pieces}
