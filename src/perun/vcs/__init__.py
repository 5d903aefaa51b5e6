"""The version control system of the current Perun instance, as functions (manual 13.1.1).

They act on what :func:`use` was told last, in this thread or task; if it was told nothing, on the nearest
Perun instance at or above the current folder. Perun itself passes a :class:`~perun.plugin.api.Vcs` around.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from perun.plugin.api import MajorVersion, MinorVersion, Vcs

_chosen: ContextVar[Vcs | None] = ContextVar("perun.vcs", default=None)


def use(vcs: Vcs | None) -> None:
    """Make the functions of this module act on `vcs`; None goes back to the nearest Perun instance."""
    _chosen.set(vcs)


def init(vcs_init_params: dict[str, Any]) -> bool:
    """Initialise or reinitialise the version control system; true if that succeeded."""
    return _current().init(vcs_init_params)


def walk_minor_versions(head_minor_version: str) -> Iterator[MinorVersion]:
    """All ancestors of the given version, itself first."""
    return _current().walk_minor_versions(head_minor_version)


def walk_major_versions() -> Iterator[MajorVersion]:
    """All lines of development, for git the local branches."""
    return _current().walk_major_versions()


def get_minor_head() -> str:
    """Checksum of the current version.

    :raises ~perun.core.errors.NoHead: if there is none yet; it is a :class:`ValueError`, too.
    """
    from perun.core.errors import NoHead, VersionControlError  # who imports this module pays for nothing else

    vcs = _current()
    try:
        return vcs.get_minor_head()
    except VersionControlError as problem:
        raise NoHead(problem.message, problem.hint) from None


def get_head_major_version() -> str:
    """Name of the current line of development; if HEAD is detached, its checksum."""
    return _current().get_head_major_version()


def get_minor_version_info(minor_version: str) -> MinorVersion:
    """Date, author, description and parents of a version."""
    return _current().get_minor_version_info(minor_version)


def check_minor_version_validity(minor_version: str) -> None:
    """Raise :class:`~perun.core.errors.VersionControlError` unless it is the full checksum of a version."""
    _current().check_minor_version_validity(minor_version)


def massage_parameter(parameter: str, parameter_type: str | None = None) -> str:
    """The full checksum for any spelling of a version, e.g. `HEAD~1`."""
    return _current().massage_parameter(parameter, parameter_type)


def is_dirty() -> bool:
    """Whether tracked files differ from the current version, staged or not."""
    return _current().is_dirty()


def save_state() -> tuple[bool, str]:
    """Put uncommitted changes aside; whether there were any, and where HEAD was."""
    return _current().save_state()


def restore_state(saved: bool, state: str) -> None:
    """Go back to `state`, and bring back what :func:`save_state` put aside."""
    _current().restore_state(saved, state)


def checkout(minor_version: str) -> None:
    """Make the working directory that of the given version."""
    _current().checkout(minor_version)


def _current() -> Vcs:
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    # By name: this layer is below the one that knows where Perun instances are.
    from importlib import import_module  # costs more than all else here, and most callers use `use`

    repository = import_module("perun.repository.repository").open_nearest()
    vcs: Vcs = repository.vcs
    return vcs
