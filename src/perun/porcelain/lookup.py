"""Finding profiles by tag, name or path, in the order of the manual's 13.2.3.

A tag is a position (`0@i` registered, `0@p` pending), which changes with the list, or a stable id
(`kxmzpqrstv@i`), of which any beginning that is unique does. `REV:` before that of a registered profile names
the minor version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.errors import ProfileNotFound, UsageError
from perun.porcelain.repository import Repository
from perun.profile.head import Head
from perun.profile.helpers import ProfileInfo, sort_key
from perun.store import tree

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_TAG = re.compile(r"(\d{0,18}|[k-z]{3,16})@([ip])(?:-(\d{0,18})@([ip]))?", re.ASCII)
_LETTERS = str.maketrans("0123456789abcdef", "zyxwvutsrqponmlk")
# Of an id: never taken for a position, nor for a checksum.
_ID_LENGTH = 10
WALK_LIMIT = 200_000
"""Files looked at in the walk of the file system before it gives up."""

Confirm = Callable[[Path], bool]


class Found(NamedTuple):
    """A profile and where it was found; for a registered one, the minor version whose index lists it."""

    info: ProfileInfo
    minor_version: str | None = None

    @property
    def path(self) -> Path:
        """Its file; of a registered one only the name that it had."""
        return Path(self.info.realpath)


class Tag(NamedTuple):
    """A tag as it was typed: a position or the beginning of an id, or of a range both ends."""

    revision: str | None
    first: str
    kind: str
    last: str | None

    @property
    def is_id(self) -> bool:
        """Whether it names a profile by its stable id."""
        return self.first.isalpha()


def parse_tag(spec: str) -> Tag | None:
    """The tag that `spec` is, else None.

    :raises UsageError: if it mixes what cannot be.
    """
    revision, colon, rest = spec.rpartition(":")
    match = _TAG.fullmatch(rest)
    if match is None or (colon and not revision):
        return None
    first, kind, last, last_kind = match.groups()
    if last_kind and last_kind != kind:
        raise UsageError(f"{spec} mixes registered and pending tags", "write 0@p-2@p or 0@i-2@i")
    if last_kind and first.isalpha():
        raise UsageError(f"{spec}: a range needs positions", "write 0@p-2@p or 0@i-2@i")
    if colon and kind == "p":
        raise UsageError(f"{spec}: a pending profile is in no version yet", f"write {rest}")
    return Tag(revision if colon else None, first, kind, last if last_kind else None)


def identity(info: ProfileInfo) -> str:
    """The stable id of the profile: ten letters made from its name and time, also after it is registered.

    Name and time are what an index holds only once: two profiles of a list have the same id only by accident
    (one in 10**12 pairs).
    """
    key = f"{info.time} {info.source}".encode(errors="surrogateescape")
    return tree.sha1(key).hex()[:_ID_LENGTH].translate(_LETTERS)


def registered(repo: Repository, minor_version: str) -> list[ProfileInfo]:
    """The profiles in the index of the version, in the order of `format.sort_profiles_by`: that of tags."""
    return in_order(repo, (entry.info() for entry in repo.store.indexes.read(minor_version)))


def pending(repo: Repository) -> list[ProfileInfo]:
    """The pending profiles in the order of `format.sort_profiles_by`: that of tags."""
    return in_order(repo, repo.store.pending.list())


def in_order(repo: Repository, infos: Iterable[ProfileInfo]) -> list[ProfileInfo]:
    """The profiles in the order of `format.sort_profiles_by`."""
    infos = list(infos)
    if len(infos) < 2:
        return infos
    key = sort_key(repo.config.get("format.sort_profiles_by"))
    # Profiles of one batch may share a second; the name keeps tags the same from call to call.
    return sorted(infos, key=lambda info: (key(info), info.source))


def head(repo: Repository, info: ProfileInfo) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin` of the profile, without the rest.

    :raises ProfileError: if it is damaged, or gone.
    """
    if info.is_registered:
        return repo.store.objects.regions(info.checksum)
    return repo.store.pending.regions(info.realpath)


def load(repo: Repository, found: Found) -> Profile:
    """The whole profile."""
    if found.info.is_registered:
        return repo.store.objects.get(found.info.checksum)
    return repo.store.pending.load(found.path)


def find(repo: Repository, spec: str, minor: str | None, confirm: Confirm | None) -> Found:
    """The one profile that `spec` names (for `show`, `check profiles` and `postprocessby`).

    Tags first, then the index of the version `minor` (HEAD if None), a path, pending profiles by
    (part of) their name, and at last a walk of the repository's files, each match of which `confirm`
    accepts or not; without `confirm` nothing is walked.

    :raises ProfileNotFound: if nothing answers.
    """
    tag = parse_tag(spec)
    if tag:
        found = list(tagged(repo, tag, minor, spec))
        if len(found) != 1:
            raise UsageError(f"{spec} names {len(found)} profiles, one is needed", "give a single tag")
        return found[0]
    return (
        _in_index(repo, spec, minor)
        or _at_path(repo, spec)
        or _in_pending(repo, spec)
        or _in_files(repo, spec, confirm)
    )


def find_pending(repo: Repository, spec: str, cwd: Path) -> list[Found]:
    """The profiles that `perun add` is to register: a pending tag or range, a path, or a name."""
    tag = parse_tag(spec)
    if tag:
        if tag.kind == "i":
            raise UsageError(f"{spec} is registered already", "add takes pending tags, such as 0@p")
        return list(tagged(repo, tag, None, spec))
    found = _at_path(repo, str(cwd / spec)) or _in_pending(repo, spec)
    if found is None:
        raise _not_found(spec, "pending profile or file", pending(repo))
    return [found]


def find_removable(repo: Repository, spec: str, minor: str | None) -> list[Found]:
    """The profiles that `perun rm` is to unlink or delete: a tag, a range, or a name."""
    tag = parse_tag(spec)
    if tag:
        return list(tagged(repo, tag, minor, spec))
    found = _among_jobs(repo, spec) or _in_index(repo, spec, minor)
    if found is None:
        minor_version = repo.version(minor)
        known = [*pending(repo), *registered(repo, minor_version)]
        raise _not_found(spec, f"profile pending or registered in {minor_version[:10]}", known)
    return [found]


def _among_jobs(repo: Repository, spec: str) -> Found | None:
    """The pending file of that name or path, whether it holds a profile or is damaged."""
    jobs = repo.store.pending.root
    path = Path(spec)
    if "/" in spec and path.parent.resolve() != jobs.resolve():
        return None
    for name in (path.name, path.name + ".perf"):
        if name.endswith(".perf") and _is_file(jobs / name):
            return Found(ProfileInfo(name, str(jobs / name), Head(), 0))
    return None


def tagged(repo: Repository, tag: Tag, minor: str | None, spec: str) -> Iterator[Found]:
    """The profiles of a tag or an inclusive range of tags; of a range, those that exist (manual 3.2.6).

    :param minor: the version whose registered profiles are meant if the tag names none.
    :param spec: the tag as it was typed, for messages.
    """
    minor_version = None if tag.kind == "p" else repo.version(minor if tag.revision is None else tag.revision)
    infos = pending(repo) if minor_version is None else registered(repo, minor_version)
    if tag.is_id:
        yield Found(_of_id(infos, tag.first, spec), minor_version)
        return
    start = int(tag.first or 0)
    if tag.last is None:
        if start >= len(infos):
            where = "pending" if minor_version is None else f"registered in {minor_version[:10]}"
            raise ProfileNotFound(
                f"there is no profile {spec}: {len(infos)} profiles are {where}", "see: perun status"
            )
        yield Found(infos[start], minor_version)
        return
    for info in infos[start : int(tag.last or 0) + 1]:
        yield Found(info, minor_version)


def _of_id(infos: Sequence[ProfileInfo], beginning: str, spec: str) -> ProfileInfo:
    found = [info for info in infos if identity(info).startswith(beginning)]
    if not found:
        raise ProfileNotFound(f"there is no profile {spec}", "list all ids with: perun -v status, or --json")
    if len(found) > 1:
        names = ", ".join(f"{identity(info)} ({info.source})" for info in found[:5])
        raise UsageError(f"{spec} is the beginning of {len(found)} ids", f"one of: {names}")
    return found[0]


def _in_index(repo: Repository, spec: str, minor: str | None) -> Found | None:
    from perun.errors import VersionControlError

    try:
        minor_version = repo.version(minor)
    except VersionControlError:
        if minor is not None:
            raise
        return None  # no version yet, so nothing is registered
    name = Path(spec).name
    for info in registered(repo, minor_version):
        if info.source in (spec, name) and (info.source == spec or not Path(spec).exists()):
            return Found(info, minor_version)
    return None


def _at_path(repo: Repository, spec: str) -> Found | None:
    path = Path(spec)
    return Found(repo.store.pending.info(path.resolve())) if _is_file(path) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # e.g. a name longer than any file's


def _in_pending(repo: Repository, spec: str) -> Found | None:
    name = Path(spec).name
    for file in (name, name + ".perf"):
        path = repo.store.pending.root / file
        if name and file.endswith(".perf") and os.path.lexists(path):
            return Found(repo.store.pending.info(path))  # raises if it is damaged
    partial = [info for info in pending(repo) if name and name in info.source]
    if len(partial) > 1:
        raise UsageError(
            f"{spec!r} is part of the names of {len(partial)} pending profiles",
            "one of: " + ", ".join(info.source for info in partial[:5]),
        )
    return Found(partial[0]) if partial else None


def _in_files(repo: Repository, spec: str, confirm: Confirm | None) -> Found:
    if confirm is not None and Path(spec).name:
        for path in _walk(repo.root, Path(spec).name):
            if confirm(path):
                return Found(repo.store.pending.info(path))
    raise _not_found(spec, "profile", pending(repo))


def _walk(root: Path, name: str) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in (".git", ".perun"))
        seen += len(files)
        if seen > WALK_LIMIT:
            return
        for file in sorted(files):
            if name in file and file.endswith(".perf"):
                yield Path(folder, file)


def _not_found(spec: str, what: str, known: Sequence[ProfileInfo]) -> ProfileNotFound:
    import difflib

    close = difflib.get_close_matches(spec, [info.source for info in known], n=2, cutoff=0.5)
    hint = "did you mean " + " or ".join(close) + "?" if close else "perun status lists profiles and tags"
    return ProfileNotFound(f"no {what} matches {spec!r}", hint)
