"""The text that names a pool: `local:N`, `dask://HOST:PORT`, `dask+tls://HOST:PORT` or `ssh:FILE`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import UsageError

FORMS: Final = "local:N, dask://HOST:PORT, dask+tls://HOST:PORT or ssh:FILE"
MAX_LOCAL: Final = 64
"""Workers on this machine: they only build versions at once."""
_ADDRESS: Final = re.compile(
    r"(dask|dask\+tls)://((?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):([0-9]{1,5}))/?"
)
_LOOPBACK: Final = re.compile(r"(localhost|127(\.\d+){3}|\[::1\]):\d+")


class Local(NamedTuple):
    """This machine, with so many workers, which live in the process of the client."""

    workers: int

    def __str__(self) -> str:
        return f"local:{self.workers}"


class Scheduler(NamedTuple):
    """A scheduler of dask.distributed that is there already; `address` is as dask writes it."""

    address: str
    encrypted: bool

    def __str__(self) -> str:
        return f"dask{'+tls' if self.encrypted else ''}://{self.address.partition('://')[2]}"

    @property
    def exposed(self) -> bool:
        """Whether others in the network may read what is sent, and send what is run."""
        return not self.encrypted and _LOOPBACK.fullmatch(self.address.partition("://")[2]) is None


class Hosts(NamedTuple):
    """Machines that are reached by ssh, listed in a file."""

    file: Path

    def __str__(self) -> str:
        return f"ssh:{self.file}"


Place = Local | Scheduler | Hosts


def parsed(text: str) -> Place:
    """What the text names.

    :raises UsageError: if it is none of the forms.
    """
    kind, colon, rest = text.partition(":")
    if kind == "local" and re.fullmatch("[0-9]{1,4}", rest or "2" if not colon else rest):
        number = int(rest or 2)
        if not 1 <= number <= MAX_LOCAL:
            raise UsageError(f"--on {text}: 1 to {MAX_LOCAL} workers can be on this machine")
        return Local(number)
    match = _ADDRESS.fullmatch(text)
    if match is not None and 0 < int(match[3]) < 1 << 16:
        encrypted = match[1] == "dask+tls"
        return Scheduler(f"{'tls' if encrypted else 'tcp'}://{match[2]}", encrypted)
    if kind == "ssh" and rest:
        return Hosts(Path(rest))
    raise UsageError(f"{text!r} names no pool", f"a pool is {FORMS}; see docs/pool.md")
