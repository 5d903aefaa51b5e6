"""Where a new profile goes: the pending ones, and the index if the user wants that."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.config.schema import is_true
from perun.errors import ProfileError, UsageError
from perun.porcelain.repository import Repository
from perun.store.facts import fact_of, pending_key
from perun.store.index import IndexEntry
from perun.store.linking import link
from perun.store.pending import SUFFIX

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_SECOND: Final = 2
"""Age in seconds up to which a file may have the same time, in whole seconds, as one that is written now."""


def save(
    repo: Repository,
    profile: Profile,
    minor_version: str,
    *,
    name: str | None = None,
    template: str | None = None,
    counter: int = 0,
    announce: Callable[[str], None] | None = None,
    dated_back: bool = False,
) -> Path:
    """Save `profile`, collected for the version, as a pending profile; its path.

    :param name: file name; else it is made by `template`, else by `format.output_profile_template`.
    :param announce: told the SHA-1 of the file, before there is any.
    :param dated_back: whether the file gets a time of the past afterwards, as others of its name may have.
    """
    from datetime import UTC, datetime

    from perun.profile.helpers import file_name

    profile["origin"] = minor_version
    if name is None:
        text = template or str(repo.config.get("format.output_profile_template"))
        name = file_name(text, profile, now=datetime.now(UTC), counter=counter)
    oldest = 0 if dated_back else int(time.time()) - _SAME_SECOND
    path = repo.store.pending.save(profile, name, announce, _registered_since(repo, minor_version, oldest))
    _note(repo, path, profile)
    return path


def _note(repo: Repository, path: Path, profile: Profile) -> None:
    """Keep the facts of the pending profile, for lists."""
    with suppress(OSError):  # taken away meanwhile
        seconds = repo.store.files.state(path).st_mtime_ns // 10**9
        repo.store.facts.keep({pending_key(path.name, seconds): fact_of(profile)})


def _registered_since(repo: Repository, minor_version: str, oldest: int) -> set[str]:
    """Names of profiles of the version that are not older: another one of the same name and second could not
    be registered beside them."""
    try:
        return {entry.path for entry in repo.store.indexes.read(minor_version) if entry.time >= oldest}
    except ProfileError:  # the command that registers tells that the index is damaged
        return set()


class Wanted(NamedTuple):
    """A profile that is to be saved with others.

    :param registers: in the index of its version; else it stays pending. :param moment: the time of its file,
        in seconds since 1970; None for now.
    """

    profile: Profile
    minor_version: str
    registers: bool
    moment: int | None = None


def save_together(repo: Repository, wanted: Sequence[Wanted]) -> list[Path]:
    """Save profiles that were measured together: all of them or none.

    All are written as pending profiles before one of them is registered, and the signals that interrupt wait
    meanwhile. So there are all or none, whatever ends Perun before the first is registered.

    :return: the path of each as a pending profile, by the name that it is registered by.
    :raises PerunError: where the store refuses; then nothing is left.
    """
    found: list[Path] = []
    with _uninterrupted():
        paths: list[Path] = []
        try:
            for one in wanted:
                dated_back = one.moment is not None
                paths.append(save(repo, one.profile, one.minor_version, dated_back=dated_back))
        except BaseException:
            repo.store.pending.remove(paths)
            raise
        for one, path in zip(wanted, paths, strict=True):
            if one.moment is not None:
                repo.store.files.set_time(path, one.moment * 10**9)
                # The facts know it by its name and time.
                _note(repo, path, one.profile)
            name = register(repo, path, one.profile, one.minor_version) if one.registers else path.name
            found.append(path.with_name(name))
    return found


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let interruptions wait until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check_naming(repo: Repository, name: str | None, template: str | None) -> None:
    """Raise if no profile could be saved under such a name: better before it is collected than after.

    :raises ConfigError: if the template has an unknown tag.
    :raises UsageError: if the name has a slash.
    """
    if name is None:
        check_template(template or str(repo.config.get("format.output_profile_template")))
    elif not name.removesuffix(".perf") or Path(name).name != name or name[0] == ".":
        raise UsageError(
            f"{name!r} cannot be the name of a profile",
            "use a name without slashes that does not begin with a dot",
        )


def check_template(text: str) -> None:
    """Raise if no names of profiles can be made from the text.

    :raises ConfigError: if it has an unknown tag.
    """
    from datetime import UTC, datetime

    from perun.profile.helpers import file_name

    file_name(text, {}, now=datetime.now(UTC), counter=0)


def registers_after_run(repo: Repository) -> bool:
    """Whether `profiles.register_after_run` is set to a true value."""
    return is_true(repo.config.get("profiles.register_after_run"))


def register(repo: Repository, path: Path, profile: Profile, minor_version: str) -> str:
    """Link the pending profile at `path` to its version; the file goes only when the index has it.

    Where the version has another profile of this name and second, it gets the name `name(1).perf` and so on.

    :return: the name that it is registered by.
    """
    stem = path.name.removesuffix(SUFFIX)
    time = repo.store.files.state(path).st_mtime_ns / 10**9
    for number in itertools.count():
        name = f"{stem}({number}){SUFFIX}" if number else path.name
        linked = link(repo.store, minor_version, [(profile, name, time)])
        if linked.added or _is_registered(repo, minor_version, linked.duplicates[0]):
            break
    repo.store.pending.remove([path])
    return name


def _is_registered(repo: Repository, minor_version: str, entry: IndexEntry) -> bool:
    """Whether it is this very profile that has its name, as it was registered before."""
    registered = repo.store.indexes.read(minor_version)
    return any((one.path, one.checksum) == (entry.path, entry.checksum) for one in registered)
