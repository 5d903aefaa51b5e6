"""The text that names a pool: `local:N`, `dask://HOST:PORT`, `dask+tls://HOST:PORT` or `ssh:FILE`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.config.reader import loads
from perun.core.errors import ConfigError, UsageError
from perun.core.regular import read_regular
from perun.plugin.registry import Registry
from perun.repository.trust import Brought, RunnableItem

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


# The file of a pool that is reached by ssh: which machines, and which Python there has Perun.

_MAX_BYTES: Final = 1 << 20
_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:%\[\]-]*")
"""No dash in front: ssh would take it for an option."""
_EXAMPLE: Final = "e.g. hosts: [bench1, {host: me@bench2, python: /opt/perun/bin/python}]"


class Host(NamedTuple):
    """A machine as ssh knows it, and the Python there that has Perun."""

    host: str
    python: str = "python3"


def read(path: Path) -> list[Host]:
    """The hosts of the file.

    :raises ConfigError: names the file, and what is wrong with it.
    """
    try:
        text = read_regular(path.resolve(), _MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is no text in UTF-8", _EXAMPLE) from None
    except OSError as problem:
        raise ConfigError(f"cannot read {path}: {problem.strerror or problem}", _EXAMPLE) from None
    content = loads(text, str(path))
    if not isinstance(content, dict) or not isinstance(content.get("hosts"), list):
        raise ConfigError(f"{path}: expected the key hosts with a list of machines", _EXAMPLE)
    _refuse_unknown(content, {"hosts"}, str(path))
    hosts = [_host(entry, path) for entry in content["hosts"]]
    if not hosts:
        raise ConfigError(f"{path}: no machine is listed", _EXAMPLE)
    return hosts


def brought(place: Place, environ: Mapping[str, str]) -> Brought | None:
    """What the file would have run by ssh, where version control has it, so that a pull may change it.

    :raises ConfigError: as :func:`read`.
    """
    if not isinstance(place, Hosts):
        return None
    listed = read(place.file)
    if not Registry().get("vcs", "git").tracks(place.file.resolve(), environ):
        return None
    runs = tuple(RunnableItem(one.host, one.python) for one in listed)
    return Brought(str(place.file.resolve()), runs, listed)


def _refuse_unknown(found: dict[Any, Any], known: set[str], where: str) -> None:
    if unknown := [str(key) for key in found if key not in known]:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}", _EXAMPLE)


def _host(entry: Any, path: Path) -> Host:
    values = {"host": entry} if isinstance(entry, str) else entry
    if not isinstance(values, dict) or "host" not in values:
        raise ConfigError(f"{path}: {entry!r} is no machine: expected a name, or the key host", _EXAMPLE)
    _refuse_unknown(values, set(Host._fields), f"{path}: the machine {values['host']!r}")
    made = Host(**{key: str(value) for key, value in values.items()})
    if not _HOST.fullmatch(made.host):
        raise ConfigError(f"{path}: {made.host!r} cannot be the name of a machine", _EXAMPLE)
    return made
