"""Sizes of files as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def readable(size: int) -> str:
    """E.g. `12 B`, `1.5 MiB`; at most eleven characters."""
    value, unit = float(size), _UNITS[0]
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def column(size: int) -> str:
    """The size at the right of a column ten wide."""
    return f"{readable(size):>10}"
