"""The documented entry to profiles: :class:`Profile`, and loading and storing one (manual 2.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from functools import update_wrapper
from pathlib import Path
from typing import TypeVar

from perun.core.errors import ProfileError, ProfileNotFound
from perun.profile.format.core import MODEL_GROUPS, Profile
from perun.profile.format.grouping import COLUMNS, ResourceGroup
from perun.profile.head import Configuration
from perun.profile.uid import flatten

R = TypeVar("R")

__all__ = [
    "COLUMNS",
    "MODEL_GROUPS",
    "Configuration",
    "Profile",
    "ResourceGroup",
    "flatten",
    "load_profile",
    "pass_profile",
    "store_profile",
    "store_profile_at",
]


def load_profile(path: str | os.PathLike[str], *, uids: Container[str] | None = None) -> Profile:
    """The profile in a file of `.perun/jobs` or an exported one, in any layout that Perun reads.

    The file may be a link to one.

    :param uids: only the resources that have one of these uids, nested ones flattened. Of a profile that is
        stored by columns no more than these is read. A group whose resources differ in their uids is kept.
    :raises ProfileNotFound: if there is no such file.
    :raises ProfileError: if it cannot be read, is a pipe or a device, is too large, or holds no profile.
    """
    from perun.core.regular import open_regular
    from perun.profile.format.head import load
    from perun.profile.format.json import SIZE_LIMIT

    name = os.fspath(path)
    try:
        with open_regular(os.path.realpath(name), SIZE_LIMIT) as file:
            return load(file, name, uids=uids)
    except FileNotFoundError:
        raise ProfileNotFound(f"there is no profile {name}", "perun status lists the profiles") from None
    except OSError as problem:
        raise ProfileError(f"cannot read {name}: {problem.strerror}") from None


def store_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write the profile to a file as uncompressed JSON, in place of what the file may hold.

    :raises ProfileError: if a value has no JSON, or the file cannot be written.
    """
    from perun.core import atomic
    from perun.profile.format.json import dumps_pending

    data = dumps_pending(profile)
    try:
        atomic.write(Path(path), data)
    except OSError as problem:
        raise ProfileError(f"cannot write {os.fspath(path)}: {problem.strerror}") from None


def pass_profile(function: Callable[..., R]) -> Callable[..., R]:
    """Give the profile that is shown or postprocessed to a click command, as its first argument.

    The command gets it from what runs it: Perun, or a program that runs the command with the profile as the
    `obj` of its context (manual 1.6.3).
    """
    import click

    @click.pass_context
    def with_profile(ctx: click.Context, /, *args: object, **kwargs: object) -> R:
        profile = ctx.find_object(Profile) or ctx.obj.profile
        return ctx.invoke(function, profile, *args, **kwargs)

    return update_wrapper(with_profile, function)


def store_profile_at(profile: Profile, file_path: str | os.PathLike[str]) -> None:
    """As :func:`store_profile`, by the name that older releases document."""
    store_profile(profile, file_path)
