"""The text that names a pool: `local:N`, `dask://HOST:PORT`, `dask+tls://HOST:PORT` or `ssh:FILE`; and how
fast its machines have been, as this repository knows it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic, conditions
from perun.core.config.reader import loads
from perun.core.errors import ConfigError, DamagedStore, UsageError
from perun.core.regular import read_regular
from perun.plugin.registry import Registry
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.repository.trust import Brought, RunnableItem
from perun.running.pool.folders import MachineLock, machine_name
from perun.store import tree

FORMS: Final = "local:N, dask://HOST:PORT, dask+tls://HOST:PORT or ssh:FILE"
MAX_LOCAL: Final = 64
"""Workers on this machine: they only build versions at once."""
_ADDRESS: Final = re.compile(
    r"(dask|dask\+tls)://((?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):([0-9]{1,5}))/?"
)
_LOOPBACK: Final = re.compile(r"(localhost|127(\.\d+){3}|\[::1\]):\d+")


class LocalPlace(NamedTuple):
    """This machine, with so many workers, which live in the process of the client."""

    workers: int

    def __str__(self) -> str:
        return f"local:{self.workers}"


class DaskPlace(NamedTuple):
    """A scheduler of dask.distributed that is there already; `address` is as dask writes it."""

    address: str
    encrypted: bool

    def __str__(self) -> str:
        return f"dask{'+tls' if self.encrypted else ''}://{self.address.partition('://')[2]}"

    @property
    def exposed(self) -> bool:
        """Whether others in the network may read what is sent, and send what is run."""
        return not self.encrypted and _LOOPBACK.fullmatch(self.address.partition("://")[2]) is None


class SshPlace(NamedTuple):
    """Machines that are reached by ssh, listed in a file."""

    file: Path

    def __str__(self) -> str:
        return f"ssh:{self.file}"


Place = LocalPlace | DaskPlace | SshPlace


def parsed(text: str) -> Place:
    """What the text names.

    :raises UsageError: if it is none of the forms.
    """
    kind, colon, rest = text.partition(":")
    if kind == "local" and re.fullmatch("[0-9]{1,4}", rest or "2" if not colon else rest):
        number = int(rest or 2)
        if not 1 <= number <= MAX_LOCAL:
            raise UsageError(f"--on {text}: 1 to {MAX_LOCAL} workers can be on this machine")
        return LocalPlace(number)
    match = _ADDRESS.fullmatch(text)
    if match is not None and 0 < int(match[3]) < 1 << 16:
        encrypted = match[1] == "dask+tls"
        return DaskPlace(f"{'tls' if encrypted else 'tcp'}://{match[2]}", encrypted)
    if kind == "ssh" and rest:
        return SshPlace(Path(rest))
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
    if not isinstance(place, SshPlace):
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


# How fast the machines of pools have been, as this repository knows it: `.perun/cache/machines.json`.

# How fast a machine is now, and how busy: a fixed piece of work, to see when it is not as fast as it was.

REPEATS: Final = 15
_SHORTEST: Final = 0.5
"""Seconds that it takes at least: the kernel counts in hundredths of a second who was busy."""
_BLOCK: Final = bytes(1 << 20)
_BLOCKS: Final = 16
BUSY_PROCESSORS: Final = 0.5
"""Processors that others use on a machine that counts as busy; the services of a quiet one need less."""
BUSY_WAITING: Final = 0.1
"""Share of its time that the work waits for a processor on a machine that counts as busy."""


class Calibration(NamedTuple):
    """What the work took.

    :param seconds: of processor time, the least of several times.
    :param waited: the share of the time, from 0 to 1, in which the work could have run and did not.
    :param others: how many processors other programs kept busy meanwhile, in the mean.
    :param processors: how many there are.
    """

    seconds: float
    waited: float
    others: float
    processors: int

    @property
    def busy(self) -> str:
        """What keeps the machine busy, in words; empty where nothing does."""
        if self.others >= BUSY_PROCESSORS:
            return f"other programs need {self.others:.1f} of its {self.processors} processors"
        if self.waited > BUSY_WAITING:
            return f"the calibration had no processor for {100 * self.waited:.0f} % of its time"
        return ""


def measure(environ: Mapping[str, str]) -> Calibration:
    """Time the work; nothing else is measured then.

    The least of many times is what the machine can do: whatever else runs there can only make it slower.
    """
    lock = MachineLock(machine_name(environ))
    try:
        lock.alone()
        before, own = conditions.now(), time.process_time()
        times: list[tuple[float, float]] = []
        while len(times) < REPEATS or sum(wall for wall, _ in times) < _SHORTEST:
            times.append(_once())
        own = time.process_time() - own
        return judged(times, before, conditions.now(), own, os.cpu_count() or 1)
    finally:
        lock.close()


def judged(
    times: Sequence[tuple[float, float]],
    before: conditions.Moment,
    after: conditions.Moment,
    own: float,
    processors: int,
) -> Calibration:
    """The calibration.

    :param times: of each repetition the wall time and the processor time. :param before: and :param after:
        the counters of the system around them. :param own: processor time of this process between the two.
    """
    wall, cpu = (sum(column) for column in zip(*times, strict=True))
    elapsed = after.clock - before.clock
    others = (after.busy - before.busy - own) / elapsed if elapsed > 0 else 0.0
    return Calibration(
        min(cpu for _, cpu in times),
        round(max(0.0, 1 - cpu / wall) if wall else 0.0, 3),
        round(max(0.0, others), 2),
        processors,
    )


def _once() -> tuple[float, float]:
    start, start_cpu = time.perf_counter(), time.thread_time()
    digest = hashlib.sha256()
    for _ in range(_BLOCKS):
        digest.update(_BLOCK)
    return time.perf_counter() - start, time.thread_time() - start_cpu


def drift(seconds: float, reference: float) -> float:
    """By how many percent the machine is slower than it was; below 0 where it is faster."""
    return (seconds / reference - 1) * 100


MAX_MACHINES: Final = 1000
"""Machines that are known; those that were calibrated the longest ago go first."""


class KnownMachines:
    """The first calibration of each machine, which later ones are compared with: of a machine that was busy
    then, the first one while it is not."""

    def __init__(self, repo: Repository) -> None:
        self._path = repo.root / PERUN_FOLDER / "cache" / "machines.json"
        self._lock = repo.store.lock

    def drift(self, machine: str, machine_class: str, found: Calibration) -> float:
        """By how many percent it is slower than at first; 0 of an unknown machine, which is noted."""
        reference = self._reference(machine, machine_class, found)
        if reference is None:
            self.note(machine, machine_class, found)
            return 0.0
        return drift(found.seconds, reference)

    def _reference(self, machine: str, machine_class: str, found: Calibration) -> float | None:
        noted = self._read().get(machine)
        if not isinstance(noted, dict) or noted.get("class") != machine_class:
            return None  # it is not known, or is another machine by now
        if noted.get("busy") and not found.busy:
            return None
        seconds = noted.get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None

    def note(self, machine: str, machine_class: str, found: Calibration) -> None:
        """Take this calibration for the one that later ones are compared with."""
        with self._lock():
            content = self._read()
            content.pop(machine, None)
            seconds = round(found.seconds, 6)
            content[machine] = {"class": machine_class, "seconds": seconds, "busy": bool(found.busy)}
            kept = dict(list(content.items())[-MAX_MACHINES:])
            with suppress(OSError):  # without it only a drift is not seen
                atomic.write(self._path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, Any]:
        with suppress(DamagedStore, ValueError, RecursionError):
            content = json.loads(tree.read(self._path) or b"{}")
            if isinstance(content, dict):
                return content
        return {}
