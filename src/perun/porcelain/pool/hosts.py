"""The file of a pool that is reached by ssh: which machines, and which Python there has Perun."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.config.reader import loads
from perun.errors import ConfigError
from perun.plugin.registry import Registry
from perun.porcelain.pool.places import Hosts, Place
from perun.porcelain.trust import Brought, RunnableItem
from perun.regular import read_regular

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
