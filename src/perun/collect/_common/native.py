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
    """Whether the library was built; `what` it is, for the message: `the recorder of allocations`."""
    return Readiness() if library.is_file() else Readiness("", f"{what} is missing", _REINSTALL)


def require(library: Path, what: str) -> None:
    """Check that the library was built.

    :raises CollectorUnavailable: where it was not.
    """
    missing = readiness(library, what)
    if missing.missing:
        raise CollectorUnavailable(f"{missing.missing}: {library}", missing.hint)
