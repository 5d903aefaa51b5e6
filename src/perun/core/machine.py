"""What of this machine decides how fast a program runs on it, small enough to keep with every profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TEXT_LIMIT = 80
_READ_LIMIT = 16 * 1024
_CPU_KEYS = ("model name", "Processor", "Hardware", "cpu model", "cpu")
"""Keys of `/proc/cpuinfo` that name the processor: x86, then ARM, MIPS and POWER."""


def describe(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, Any]:
    """The machine as a JSON-able mapping of less than 1 KiB; what cannot be found out is left out.

    `cpu.total` counts logical processors, `cpu.available` those that this process may run on,
    `memory.total` is in bytes, `load` are the averages over 1, 5 and 15 minutes. The name of the host is
    not among them, for profiles are published.

    :param proc: the file system of processes; :param sys: the file system of devices.
    """
    system = os.uname()
    available = _available()
    cpu: dict[str, Any] = {
        "model": _cpu_model(proc),
        "total": os.cpu_count(),
        "available": len(available) or None,
        "governor": _governor(sys, min(available, default=0)),
    }
    machine: dict[str, Any] = {
        "architecture": _clean(system.machine),
        "system": _clean(system.sysname),
        "release": _clean(system.release),
        "libc": _libc(),
        "cpu": _known(cpu),
        "memory": _known({"total": _memory()}),
        "load": _load(),
    }
    return _known(machine)


def class_of(described: Mapping[str, Any]) -> str:
    """What machines whose times compare have in common: the processor, and how many there are.

    :param described: what :func:`describe` says; of too little of that the class is empty.
    """
    cpu = described.get("cpu")
    if not isinstance(cpu, Mapping) or not cpu.get("model"):
        return ""
    return f"{cpu['model']}, {cpu.get('total', '?')} processors, {described.get('architecture', '?')}"


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def _clean(text: str) -> str:
    # Each character kept is one byte of JSON, so the limit on characters limits the size of the whole.
    kept = (char if " " <= char <= "~" and char not in '"\\' else "?" for char in text.strip()[:_TEXT_LIMIT])
    return "".join(kept)


def _head(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_READ_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _cpu_model(proc: Path) -> str:
    found: dict[str, str] = {}
    for line in _head(proc / "cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value)
    return _clean(next((found[key] for key in _CPU_KEYS if found.get(key, "").strip()), ""))


def _governor(sys: Path, cpu: int) -> str:
    return _clean(_head(sys / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))


def usable_processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _available() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except (AttributeError, OSError):
        return set()


def _libc() -> str:
    # The module `platform` would know as well, but takes milliseconds to import.
    try:
        return _clean(os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        return ""


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _load() -> list[float]:
    try:
        return [round(average, 2) for average in os.getloadavg()]
    except OSError:
        return []
