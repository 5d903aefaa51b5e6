"""`perun add`: link profiles to a minor version (manual 3.2.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perun.errors import PerunError, ProfileError, ProfileNotFound
from perun.porcelain import lookup
from perun.porcelain.repository import Repository
from perun.porcelain.tags import parse_tag
from perun.store.linking import link

if TYPE_CHECKING:
    from perun.profile.factory import Profile


@dataclass(frozen=True)
class Linked:
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
) -> list[Linked]:
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
        linked: list[Linked] = []
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


def _located(
    repo: Repository, spec: str, cwd: Path, minor_version: str, confirm: lookup.Confirm
) -> str:
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
) -> tuple[list[Path], list[Linked]]:
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
            done.append(Linked(spec, minor_version, False))
    return list(paths), done


def _link(repo: Repository, target: str, group: Sequence[tuple[Profile, Path]]) -> Iterator[Linked]:
    state = repo.store.files.state
    items = [(profile, path.name, state(path).st_mtime_ns / 10**9) for profile, path in group]
    done = link(repo.store, target, items)
    for entry in done.added:
        yield Linked(entry.path, target, True)
    known = (
        {entry.key: entry.checksum for entry in repo.store.indexes.read(target)} if done.duplicates else {}
    )
    for entry in done.duplicates:
        yield Linked(entry.path, target, False, clashes=known[entry.key] != entry.checksum)


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
