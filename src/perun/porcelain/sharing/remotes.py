"""`perun remote`:

the places where the team keeps its profiles, in the local configuration (key `remotes`).
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from perun.errors import ConfigError, UsageError
from perun.porcelain.config import set_value
from perun.porcelain.repository import Repository
from perun.remote.contract import Remote
from perun.remote.opening import checked_url, opened
from perun.wording import listed, without_secrets

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
