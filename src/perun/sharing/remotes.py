"""`perun remote`:

the places where the team keeps its profiles, in the local configuration (key `remotes`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import ConfigError, NotPerunRepository, PerunError, UsageError
from perun.core.wording import listed, without_secrets
from perun.plugin.api import Report, silent
from perun.repository.config import set_value
from perun.repository.init import init
from perun.repository.lookup import ends_of
from perun.repository.repository import Repository, open_repository
from perun.repository.trust import Ask
from perun.repository.walking import since
from perun.sharing.transfer import push
from perun.store.remote.contract import Remote
from perun.store.remote.opening import checked_url, opened
from perun.store.remote.verifying import RemoteFinding, Verifier
from perun.store.unpacking import decode

KEY: Final = "remotes"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class NamedRemote(NamedTuple):
    """A remote of the configuration."""

    name: str
    url: str

    @property
    def shown(self) -> str:
        """The URL for messages: without a password or a token that somebody wrote into the file."""
        return without_secrets(self.url)


def remotes(repo: Repository) -> list[NamedRemote]:
    """The remotes, in the order of the configuration.

    :raises ConfigError: if two have one name, or a URL is none of a remote.
    """
    found: dict[str, NamedRemote] = {}
    for entry in repo.config.get(KEY) or []:
        name, url = str(entry["name"]), str(entry["url"])
        if name in found:
            raise ConfigError(f"two remotes have the name {name!r}", "change one: perun config edit")
        found[name] = NamedRemote(name, url)
    return list(found.values())


def add(repo: Repository, name: str, url: str) -> NamedRemote:
    """Add a remote to the local configuration; nothing is asked of it yet.

    :raises UsageError: if it can have no such name or URL, or there is one of that name.
    """
    check_name(name)
    known = remotes(repo)
    if name in (one.name for one in known):
        hint = f"remove it first: perun remote remove {name}"
        raise UsageError(f"there is a remote {name!r} already", hint)
    one = NamedRemote(name, checked_url(url))
    _write(repo, [*known, one])
    return one


def check_name(name: str) -> None:
    """See that a remote can have this name.

    :raises UsageError: if it cannot.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a remote", "letters, digits, dots and dashes can")


def remove(repo: Repository, name: str) -> NamedRemote:
    """Take a remote out of the local configuration; what it holds stays.

    :raises UsageError: if there is none of that name.
    """
    known = remotes(repo)
    gone = _named(known, name)
    _write(repo, [one for one in known if one is not gone])
    return gone


def open_remote(repo: Repository, name: str | None) -> Remote:
    """The remote of that name; the only one if it is None.

    Where it came with somebody else's configuration, Perun would send there, so the user is asked for trust.

    :raises UsageError: if there is none of that name, or several and none is named.
    :raises NotTrusted: if the repository is not trusted.
    """
    known = remotes(repo)
    if name is None and len(known) != 1:
        names = listed([one.name for one in known])
        hint = f"name one: {names}" if known else "add one: perun remote add NAME URL"
        raise UsageError("there are several remotes" if known else "there is no remote", hint)
    one = known[0] if name is None else _named(known, name)
    repo.require_trust(f"using the remote {one.name} ({one.shown})")
    scratch = repo.store.root / "cache" / "remotes"
    return opened(one.url, folder=repo.working_root, environ=repo.environ, scratch=scratch)


def _named(known: list[NamedRemote], name: str) -> NamedRemote:
    for one in known:
        if one.name == name:
            return one
    names = listed([one.name for one in known])
    hint = f"there are: {names}" if known else "add it: perun remote add NAME URL"
    raise UsageError(f"there is no remote {name!r}", hint)


def _write(repo: Repository, entries: list[NamedRemote]) -> None:
    set_value(repo, KEY, json.dumps([one._asdict() for one in entries]), scope="local")


# Which versions a transfer is about.


def versions_of(repo: Repository, text: str | None, start: str | None = None) -> frozenset[str] | None:
    """The checksums of the versions that a RANGE names; None, which stands for all, if there is none.

    :param text: a revision, for that version; `A..B` for the versions of B that A does not have, where an A
        or B
        that is left out is HEAD.
    :param start: of a version that `text` names (HEAD if None) and its ancestors those that are newer; see
        :func:`perun.repository.walking.since`.
    :raises VersionControlError: if there is no such revision. :raises UsageError: for `A..B` and `start`.
    """
    if text is None and start is None:
        return None
    ends = ends_of(text or "")
    if start is not None:
        if ends is not None:
            raise UsageError(f"{text} and --since contradict each other", "give one of them")
        walk = repo.vcs.walk_subjects(repo.version(text))
        return frozenset(one.checksum for one in since(repo, walk, start))
    if ends is None:
        return frozenset([repo.version(text)])
    old, new = ({one.checksum for one in repo.vcs.walk_subjects(repo.version(end or None))} for end in ends)
    return frozenset(new - old)


# `perun clone-profiles`: what somebody new in the team types once, in a clone of the project.


class JoinResult(NamedTuple):
    """The repository, whether it was made, and the remote that its profiles come from."""

    repo: Repository
    made: bool
    remote: NamedRemote


def join(
    folder: Path, environ: Mapping[str, str], name: str, url: str, asks: Ask | None = None
) -> JoinResult:
    """Make the clone that `folder` is in a Perun repository with this remote; what is there already stays.

    :raises UsageError: if the URL is none of a remote, or the name is that of another remote.
    :raises NotPerunRepository: if the folder is in no clone.
    """
    check_name(name)
    checked_url(url)  # before anything is made
    made = False
    try:
        repo = open_repository(folder, environ, asks)
    except NotPerunRepository:
        if not _is_clone(folder):
            raise NotPerunRepository(
                f"{folder} is no clone of a project",
                "clone the project first: git clone URL FOLDER; then call this in FOLDER",
            ) from None
        repo = init(folder, environ, asks=asks).repository
        made = True
    for one in remotes(repo):
        if one.name == name and one.url != url:
            raise UsageError(
                f"there is a remote {name!r} already, at {one.shown}",
                f"remove it first: perun remote remove {name}; or give another name: --name NAME",
            )
        if one.url == url:
            return JoinResult(repo, made, one)
    added = add(repo, name, url)
    return JoinResult(open_repository(repo.root, environ, asks), made, added)


def _is_clone(folder: Path) -> bool:
    return (folder / ".git").exists()


# Sending to a remote what a batch measures, while it goes on: `perun run matrix --push`.

EVERY: Final = 30.0
"""Seconds after which what was registered meanwhile is sent."""


class SendResult(NamedTuple):
    """What was sent in all: how many profiles, how many bytes, and why some were refused."""

    profiles: int
    bytes: int
    refused: list[str]


class Sender:
    """Sends what is registered as `perun push` does, again and again.

    :param meanwhile: whether to send before the end: not where that would disturb what is measured.
    :raises RemoteError: if the remote cannot be read: nobody wants to know that after hours.
    """

    def __init__(
        self,
        repo: Repository,
        remote: Remote,
        *,
        meanwhile: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repo = repo
        self._remote = remote
        self._meanwhile = meanwhile
        self._clock = clock
        self._next = clock()
        self._sent = SendResult(0, 0, [])
        self._told = ""
        push(repo, remote, dry_run=True)

    @property
    def url(self) -> str:
        """Where it sends to."""
        return self._remote.url

    def look(self) -> str:
        """Send if it is time for it; why that could not be done, which is told once and tried again later."""
        if not self._meanwhile or self._clock() < self._next:
            return ""
        before, self._told = self._told, ""
        try:
            self.send()
        except PerunError as problem:
            self._told = problem.message
        self._next = self._clock() + EVERY
        return self._told if self._told != before else ""

    def send(self) -> SendResult:
        """Send now what is not there; what was sent in all.

        :raises PerunError: as :func:`perun.sharing.transfer.push`. What was sent stays.
        """
        done = push(self._repo, self._remote)
        before = self._sent
        self._sent = SendResult(before.profiles + len(done.entries), before.bytes + done.sent, done.refused)
        return self._sent


# `perun fsck --remote`: verify all that a remote holds, and repair what can be where that is asked for.


def fsck(
    repo: Repository, remote: Remote, report: Report = silent, *, repair: bool = False
) -> Iterator[RemoteFinding]:
    """Whatever is damaged, missing or left over at the remote, as a stream. All of it is fetched.

    :param repair: do what each finding offers; what was done is in its message. No repair deletes what can be
        read.
    :raises RemoteError: if the remote cannot be reached.
    """

    def verify(checksum: str, data: bytes) -> None:
        decode(data, checksum, f"the object {checksum[:10]}", repo.store.limit)

    def progress(done: int, total: int) -> None:
        report("packs", done, total)

    for finding in Verifier(remote, verify, repo.store.limit, progress, now=time.time()).run():
        yield _repaired(finding) if repair and finding.repair is not None else finding


def _repaired(finding: RemoteFinding) -> RemoteFinding:
    assert finding.repair is not None
    try:
        return finding._replace(done=finding.repair())
    except PerunError as problem:
        return finding._replace(message=f"{finding.message}; repairing it failed: {problem.message}")
