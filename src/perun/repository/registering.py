"""Where a new profile goes: the pending ones, and the index if the user wants that."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import PerunError, ProfileError, ProfileNotFound, UsageError
from perun.repository import lookup
from perun.repository.lookup import parse_tag
from perun.repository.repository import Repository
from perun.store.index import IndexEntry
from perun.store.pending import SUFFIX, link, unlink
from perun.store.summaries import pending_key, profile_summary_of

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
) -> Path:
    """Save `profile`, collected for the version, as a pending profile; its path.

    :param name: file name; else it is made by `template`, else by `format.output_profile_template`.
    :param announce: told the SHA-1 of the file, before there is any.
    """
    profile["origin"] = minor_version
    if name is None:
        name = _name_of(repo, profile, template, counter)
    taken = _registered_since(repo, minor_version, int(time.time()) - _SAME_SECOND)
    path = repo.store.pending.save(profile, name, announce, taken)
    _note(repo, {path: profile})
    return path


def _name_of(repo: Repository, profile: Profile, template: str | None = None, counter: int = 0) -> str:
    from datetime import UTC, datetime

    from perun.profile.helpers import file_name

    text = template or str(repo.config.get("format.output_profile_template"))
    return file_name(text, profile, now=datetime.now(UTC), counter=counter)


def _note(repo: Repository, profiles: Mapping[Path, Profile]) -> None:
    """Keep the facts of the pending profiles, for lists."""
    facts = {}
    for path, profile in profiles.items():
        with suppress(OSError):  # taken away meanwhile
            seconds = repo.store.files.state(path).st_mtime_ns // 10**9
            facts[pending_key(path.name, seconds)] = profile_summary_of(profile)
    repo.store.profile_summaries.keep(facts)


def _registered_since(repo: Repository, minor_version: str, oldest: int) -> set[str]:
    """Names of profiles of the version that are not older: another one of the same name and second could not
    be registered beside them."""
    try:
        return {entry.path for entry in repo.store.indexes.read(minor_version) if entry.time >= oldest}
    except ProfileError:  # the command that registers tells that the index is damaged
        return set()


class SaveRequest(NamedTuple):
    """A profile that is to be saved with others.

    :param registers: in the index of its version; else it stays pending. :param moment: the time of its file,
        in seconds since 1970; None for now.
    """

    profile: Profile
    minor_version: str
    registers: bool
    moment: int | None = None


def save_together(repo: Repository, wanted: Sequence[SaveRequest], template: str | None = None) -> list[Path]:
    """Save profiles that were measured together: all of them or none.

    Those that one index registers, it registers at once. Else all are written as pending profiles before one
    of them is registered, and the signals that interrupt wait meanwhile. So there are all or none, whatever
    ends Perun before the first is registered.

    :param template: of their names, else `format.output_profile_template`.
    :return: the path of each as a pending profile, by the name that it is registered by.
    :raises PerunError: where the store refuses; then nothing is left.
    """
    pending = repo.store.pending
    names: dict[Path, str] = {}
    if len({one.minor_version for one in wanted}) == 1 and all(one.registers for one in wanted):
        return _registered_directly(repo, wanted, template)
    with _uninterrupted(), pending.changing():
        paths: list[Path] = []
        try:
            # Those that are dated back may get the time of any that is there.
            since = lru_cache(partial(_registered_since, repo))
            recently = int(time.time()) - _SAME_SECOND
            for number, one in enumerate(wanted):
                one.profile["origin"] = one.minor_version
                taken = since(one.minor_version, recently if one.moment is None else 0)
                name = _name_of(repo, one.profile, template, number)
                paths.append(pending.save(one.profile, name, None, taken))
                if one.moment is not None:
                    repo.store.files.set_time(paths[-1], one.moment * 10**9)
        except BaseException:
            pending.remove(paths)
            raise
        both = list(zip(wanted, paths, strict=True))
        _note(repo, {path: one.profile for one, path in both if not one.registers})
        for version in dict.fromkeys(one.minor_version for one in wanted):
            own = {path: one.profile for one, path in both if one.registers and one.minor_version == version}
            names |= register_all(repo, own, version)
    return [path.with_name(names.get(path, path.name)) for path in paths]


def _registered_directly(repo: Repository, wanted: Sequence[SaveRequest], template: str | None) -> list[Path]:
    """As :func:`save_together`, of profiles that are all registered in one version."""
    pending, version, now = repo.store.pending, wanted[0].minor_version, int(time.time())
    with _uninterrupted(), repo.store.lock():
        dated = any(one.moment is not None for one in wanted)
        taken = _registered_since(repo, version, 0 if dated else now - _SAME_SECOND)
        items: list[tuple[Profile, str, float]] = []
        for number, one in enumerate(wanted):
            one.profile["origin"] = version
            name = pending.free_name(_name_of(repo, one.profile, template, number), taken)
            taken.add(name)
            items.append((one.profile, name, now if one.moment is None else one.moment))
        link(repo.store, version, items)
    return [pending.root / name for _, name, _ in items]


def register_all(repo: Repository, profiles: Mapping[Path, Profile], version: str) -> dict[Path, str]:
    """As :func:`register`, for many pending profiles of the version: the name of each."""
    if not profiles:
        return {}
    times = {path: repo.store.files.state(path).st_mtime_ns / 10**9 for path in profiles}
    linked = link(repo.store, version, [(one, path.name, times[path]) for path, one in profiles.items()])
    known = {entry.path for entry in linked.duplicates}
    repo.store.pending.remove(path for path in profiles if path.name not in known)
    return {
        path: register(repo, path, one, version) if path.name in known else path.name
        for path, one in profiles.items()
    }


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


# `perun add`: link profiles to a minor version (manual 3.2.6).


@dataclass(frozen=True)
class Registration:
    """A profile that is registered now, or was already (`is_new` False), in `minor_version`.

    Where another profile of that name and time was there (`clashes`), this one is not registered, and kept.
    """

    name: str
    minor_version: str
    is_new: bool
    clashes: bool = False


def add(
    repo: Repository,
    specs: Sequence[str],
    *,
    cwd: Path,
    minor: str | None = None,
    to_origin: bool = False,
    keep_profile: bool = False,
    force: bool = False,
    confirm: lookup.Confirm | None = None,
) -> list[Registration]:
    """Register the profiles that `specs` name in the index of `minor` (HEAD if None).

    All of them are read and verified before the first is stored, so a wrong one leaves nothing half done.

    :param to_origin: link each profile to the version it was collected for, instead of `minor`.
    :param keep_profile: do not delete the files afterwards.
    :param force: link although the profile's origin is another version.
    :param confirm: asked of each file below the project whose name matches where nothing else does.
    :raises ProfileError: if a profile is not one, or belongs to another version.
    """
    minor_version = "" if to_origin else repo.version(minor)
    if confirm is not None:  # while nobody waits for the lock
        specs = [_located(repo, spec, cwd, minor_version, confirm) for spec in specs]
    with repo.store.lock():
        paths, done = _find(repo, specs, cwd, minor_version)
        items: dict[str, list[tuple[Profile, Path]]] = {}
        for path in paths:
            profile = repo.store.pending.load(path)
            items.setdefault(_target(profile, path, minor_version, force), []).append((profile, path))
        for target in items:
            repo.vcs.check_minor_version_validity(target)
            repo.store.indexes.read(target)  # a damaged one is refused before anything is registered
        linked: list[Registration] = []
        try:
            for target, group in items.items():
                linked += _link(repo, target, group)
            if not keep_profile:
                kept = {one.name for one in linked if one.clashes}
                _delete(repo, [path for path in paths if path.name not in kept])
        except (PerunError, OSError) as problem:
            for one in linked:
                if one.is_new:
                    problem.add_note(f"{one.name} was registered in {one.minor_version[:10]} before that")
            raise
    return done + linked


def _located(repo: Repository, spec: str, cwd: Path, minor_version: str, confirm: lookup.Confirm) -> str:
    """`spec`, or the path of the file that the user accepts where it names no profile (manual 13.2.3)."""
    if parse_tag(spec):
        return spec
    try:
        _find(repo, [spec], cwd, minor_version)
    except ProfileNotFound:
        path = lookup.in_files(repo, spec, confirm)
        return spec if path is None else str(path)
    return spec


def _find(
    repo: Repository, specs: Sequence[str], cwd: Path, minor_version: str
) -> tuple[list[Path], list[Registration]]:
    """The files that `specs` name, each once, and the profiles that are registered in the version already.

    A command that was ended while it removed the files can so be typed again.
    """
    paths: dict[Path, None] = {}
    done = []
    for spec in specs:
        try:
            paths.update((found.path, None) for found in lookup.find_pending(repo, spec, cwd))
        except ProfileNotFound:
            registered = lookup.registered(repo, minor_version) if minor_version else []
            if spec not in {info.source for info in registered}:
                raise
            done.append(Registration(spec, minor_version, False))
    return list(paths), done


def _link(repo: Repository, target: str, group: Sequence[tuple[Profile, Path]]) -> Iterator[Registration]:
    state = repo.store.files.state
    items = [(profile, path.name, state(path).st_mtime_ns / 10**9) for profile, path in group]
    done = link(repo.store, target, items)
    for entry in done.added:
        yield Registration(entry.path, target, True)
    known = (
        {entry.key: entry.checksum for entry in repo.store.indexes.read(target)} if done.duplicates else {}
    )
    for entry in done.duplicates:
        yield Registration(entry.path, target, False, clashes=known[entry.key] != entry.checksum)


def _delete(repo: Repository, paths: Iterable[Path]) -> None:
    jobs = repo.store.pending.root.resolve()
    repo.store.pending.remove([path for path in paths if path.resolve().parent == jobs])
    for path in paths:
        if path.resolve().parent != jobs:
            path.unlink()


def _target(profile: Profile, path: Path, minor_version: str, force: bool) -> str:
    origin = profile.get("origin")
    if not minor_version:
        if not isinstance(origin, str):
            raise ProfileError(
                f"{path.name} does not say which version it was collected for",
                f"if you know it: perun add --force --minor HASH {path.name}",
            )
        return origin
    if origin == minor_version or force:
        return minor_version
    if origin is None:
        raise ProfileError(
            f"{path.name} does not say which version it was collected for",
            "if it was this one: perun add --force " + path.name,
        )
    raise ProfileError(
        f"{path.name} was collected for {str(origin)[:10]}, not for {minor_version[:10]}",
        f"add it to its own version: perun add -m {str(origin)[:10]} {path.name}  (or --to-origin)",
    )


# `perun rm`: unlink registered profiles, delete pending ones (manual 3.2.7).


@dataclass(frozen=True)
class Removal:
    """A profile that is not there any more: from the index of `minor_version`, or (None) from the pending."""

    name: str
    minor_version: str | None


def rm(repo: Repository, specs: Sequence[str], *, minor: str | None = None) -> list[Removal]:
    """Unlink the profiles that `specs` name from the index of `minor` (HEAD if None), or delete them
    if they are pending. The objects of unlinked profiles are kept.

    Tags are resolved before the first removal, so `rm 0@i 1@i` takes the two that `status` showed. Typed
    again, positions name the next ones, and stable ids none.

    :raises ProfileNotFound: if one of them is not there; nothing is removed then.
    """
    with repo.store.lock():
        found = [one for spec in specs for one in lookup.find_removable(repo, spec, minor)]
        unique = list({(one.minor_version, one.info.source, one.info.time): one for one in found}.values())
        by_version: dict[str, list[IndexEntry]] = {}
        for one in unique:
            if one.minor_version is not None:
                entry = IndexEntry(one.info.time, one.info.checksum, one.info.source)
                by_version.setdefault(one.minor_version, []).append(entry)
        done: list[str] = []
        try:
            for minor_version, entries in by_version.items():
                unlink(repo.store, minor_version, entries)
                where = minor_version[:10]
                done += (f"{entry.path} was removed from {where} before that" for entry in entries)
            repo.store.pending.remove([one.path for one in unique if one.minor_version is None])
        except (PerunError, OSError) as problem:
            for one_done in done:
                problem.add_note(one_done)
            raise
    return [Removal(one.info.source, one.minor_version) for one in unique]
