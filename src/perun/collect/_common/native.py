"""The compiled libraries that some collectors need, which the build puts beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from perun.errors import CollectorUnavailable
from perun.plugin.api import Readiness

_REINSTALL: Final = (
    "on 64-bit Linux with glibc, reinstall Perun from its sources: pip install --force-reinstall ."
)


def readiness(library: Path, what: str) -> Readiness:
    """Whether the library is there; `what` says what it is: `the recorder of allocations`."""
    return Readiness() if library.is_file() else Readiness("", f"{what} is missing", _REINSTALL)


def require(library: Path, what: str) -> None:
    """Do nothing where the library is there.

    :raises CollectorUnavailable: where it was not built.
    """
    missing = readiness(library, what)
    if missing.missing:
        raise CollectorUnavailable(f"{missing.missing}: {library}", missing.hint)
