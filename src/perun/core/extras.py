"""How what Perun can do without is installed beside it: its extras, as its package metadata lists them."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterator
from typing import Any, Final

_PACKAGE = "perun-pvs"


def install_command(extra: str) -> str:
    """The command that installs what an extra of Perun consists of, for the Python that runs Perun.

    It names the packages and not Perun itself, so that it works wherever Perun came from: a wheel, a
    repository or a checkout. Where Perun runs from its sources without being installed, it is a command for
    their folder. Environments that `uv` made have no pip; `uv pip` installs into these.
    """
    return f"{_installer()} {shlex.join(_requirements(extra))}"


def reinstall_command() -> str:
    """The command that builds and installs Perun anew, in the folder of its sources."""
    return f"{_installer()} --force-reinstall ."


def _installer() -> str:
    python = shlex.quote(sys.executable or "python3")
    with_pip = importlib.util.find_spec("pip") is not None
    return f"{python} -m pip install" if with_pip else f"uv pip install --python {python}"


def _requirements(extra: str) -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        listed = requires(_PACKAGE) or ()
    except PackageNotFoundError:  # run from a folder of sources
        listed = ()
    found = False
    for line in listed:
        requirement, _, marker = line.partition(";")
        if f'extra == "{extra}"' in marker.replace("'", '"'):
            found = True
            yield requirement.strip()
    if not found:
        yield f".[{extra}]"


# How Perun is connected to PostgreSQL, as a store and as a remote.

WAIT: Final = 60
"""Seconds that are waited for the server."""
LINE: Final[dict[str, Any]] = {
    "connect_timeout": WAIT,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": WAIT * 1000,
}
"""What its library is told, so that nobody waits for hours on a line that is dead."""
