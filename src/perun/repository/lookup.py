"""Finding profiles by tag, name or path, in the order of the manual's 13.2.3.

What a tag is, :mod:`perun.repository.lookup` says. `REV:` before the tag or the name of a registered profile
names the minor version. Of a registered name its beginning does, of a pending one any part, where only one
profile has it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.core.errors import ProfileNotFound, UsageError, VersionControlError
from perun.core.wording import plural
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo, sort_key
from perun.repository.repository import Repository
from perun.store import tree

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# The order of profiles in lists, which is that of their tags.


def in_order(repo: Repository, infos: Iterable[ProfileInfo]) -> list[ProfileInfo]:
    """The profiles in the order of `format.sort_profiles_by`.

    The index of the manual knows whole seconds. Of profiles of one second the one that was made first comes
    first, by the full clock of their files.
    """
    infos = list(infos)
    if len(infos) < 2:
        return infos
    attributes = repo.config.get("format.sort_profiles_by")
    key = sort_key(attributes)
    keys = [key(info) for info in infos]
    if len(set(keys)) == len(keys):  # as mostly, and much quicker for thousands
        return [infos[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]
    timed = "time" in ([attributes] if isinstance(attributes, str) else attributes)
    counts = Counter(keys)

    def whole_key(place: int) -> tuple[Any, int, str]:
        # The name keeps tags the same from call to call where nothing else does.
        info = infos[place]
        return keys[place], _moment(repo, info) if timed and counts[keys[place]] > 1 else 0, info.source

    return [infos[place] for place in sorted(range(len(keys)), key=whole_key)]


def _moment(repo: Repository, info: ProfileInfo) -> int:
    """When the profile was made, in nanoseconds since 1970: the time of its file or object."""
    file = repo.store.object_path(info.checksum) if info.is_registered else info.realpath
    try:
        return repo.store.files.state(file).st_mtime_ns
    except OSError:
        return info.time * 10**9


# Tags, which name profiles in few letters.
#
# A tag is a position (`0@i` registered, `0@p` pending), which changes with the list, or a stable id
# (`kxmzpqrstv@i`), of which any beginning that is unique does. `REV:` before that of a registered profile
# names the minor version, as it does before the name of one.

_TAG = re.compile(r"(\d{0,18}|[k-z]{3,16})@([ip])(?:-(\d{0,18})@([ip]))?", re.ASCII)
_LETTERS = str.maketrans("0123456789abcdef", "zyxwvutsrqponmlk")
# Of an id: never taken for a position, nor for a checksum.
_ID_LENGTH = 10


class ProfileTag(NamedTuple):
    """A tag as it was typed: a position or the beginning of an id, or of a range both ends."""

    revision: str | None
    first: str
    kind: str
    last: str | None

    @property
    def is_id(self) -> bool:
        """Whether it names a profile by its stable id."""
        return self.first.isalpha()


def parse_tag(spec: str) -> ProfileTag | None:
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
    return ProfileTag(revision if colon else None, first, kind, last if last_kind else None)


def split_name(spec: str) -> tuple[str, str] | None:
    """The version and the name, or its beginning, of `REV:NAME`; None if there is no version.

    The first colon outside of braces divides them (`v1^{/fix: it}:time`), as in git.
    """
    depth = 0
    for position, letter in enumerate(spec):
        depth += (letter == "{") - (letter == "}")
        if letter == ":" and depth <= 0:
            return (spec[:position], spec[position + 1 :]) if position else None
    return None


def identity(info: ProfileInfo) -> str:
    """The stable id of the profile: ten letters made from its name and time, also after it is registered.

    Name and time are what an index holds only once: two profiles of a list have the same id only by accident
    (one in 10**12 pairs).
    """
    key = f"{info.time} {info.source}".encode(errors="surrogateescape")
    return tree.sha1(key).hex()[:_ID_LENGTH].translate(_LETTERS)


WALK_LIMIT = 200_000
"""Files looked at in the walk of the file system before it gives up."""

LISTED = 10
"""Profiles that a message lists at most."""

Confirm = Callable[[Path], bool]


class ProfileLocation(NamedTuple):
    """A profile and where it was found; for a registered one, the minor version whose index lists it."""

    info: ProfileInfo
    minor_version: str | None = None

    @property
    def path(self) -> Path:
        """Its file; of a registered one only the name that it had."""
        return Path(self.info.realpath)


def registered(repo: Repository, minor_version: str) -> list[ProfileInfo]:
    """The profiles in the index of the version, in the order of `format.sort_profiles_by`: that of tags."""
    return in_order(repo, (entry.info() for entry in repo.store.indexes.read(minor_version)))


def pending(repo: Repository) -> list[ProfileInfo]:
    """The pending profiles in the order of `format.sort_profiles_by`: that of tags."""
    return in_order(repo, repo.store.pending.list())


def head(repo: Repository, info: ProfileInfo) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin` of the profile, without the rest.

    :raises ProfileError: if it is damaged, or gone.
    """
    if info.is_registered:
        return repo.store.objects.regions(info.checksum)
    return repo.store.pending.regions(info.realpath)


def load(repo: Repository, found: ProfileLocation) -> Profile:
    """The whole profile."""
    if found.info.is_registered:
        return repo.store.objects.get(found.info.checksum)
    return repo.store.pending.load(found.path)


def find(repo: Repository, spec: str, minor: str | None, confirm: Confirm | None) -> ProfileLocation:
    """The one profile that `spec` names (for `show`, `check profiles` and `postprocessby`).

    Tags first, then whole names: in the index of the version `minor` (HEAD if None), as a path, among the
    pending profiles. Then what only one profile has: the beginning of a name in that index, a part of a
    pending name. Then `REV:NAME`, and at last a walk of the repository's files, each match of which `confirm`
    accepts or not; without `confirm` nothing is walked.

    :raises ProfileNotFound: if nothing answers.
    :raises UsageError: if several profiles do; it lists them.
    :raises VersionControlError: if `REV` or `minor` names no version.
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
        or _named_pending(repo, spec)
        or _beginning_in_index(repo, spec, minor)
        or _part_of_pending(repo, spec)
        or _in_revision(repo, spec)
        or _in_files(repo, spec, confirm)
    )


def find_pending(repo: Repository, spec: str, cwd: Path) -> list[ProfileLocation]:
    """The profiles that `perun add` is to register: a pending tag or range, a path, or a name.

    :raises ProfileNotFound: if there is none; :func:`in_files` may find one elsewhere.
    """
    tag = parse_tag(spec)
    if tag:
        if tag.kind == "i":
            raise UsageError(f"{spec} is registered already", "add takes pending tags, such as 0@p")
        return list(tagged(repo, tag, None, spec))
    found = _at_path(repo, str(cwd / spec)) or _named_pending(repo, spec) or _part_of_pending(repo, spec)
    if found is None:
        raise _not_found(spec, "pending profile or file", pending(repo))
    return [found]


def find_removable(repo: Repository, spec: str, minor: str | None) -> list[ProfileLocation]:
    """The profiles that `perun rm` is to unlink or delete: a tag, a range, a name, or `REV:NAME`.

    Names are whole here: what is removed should have been meant.
    """
    tag = parse_tag(spec)
    if tag:
        return list(tagged(repo, tag, minor, spec))
    found = _among_jobs(repo, spec) or _in_index(repo, spec, minor)
    if found is None and (named := split_name(spec)):
        minor, spec = named
        found = _in_index(repo, spec, minor)
    if found is None:
        minor_version = repo.version(minor)
        known = [*pending(repo), *registered(repo, minor_version)]
        raise _not_found(spec, f"profile pending or registered in {minor_version[:10]}", known)
    return [found]


def _among_jobs(repo: Repository, spec: str) -> ProfileLocation | None:
    """The pending file of that name or path, whether it holds a profile or is damaged."""
    jobs = repo.store.pending.root
    path = Path(spec)
    if "/" in spec and path.parent.resolve() != jobs.resolve():
        return None
    for name in (path.name, path.name + ".perf"):
        if name.endswith(".perf") and _is_file(repo, jobs / name):
            return ProfileLocation(ProfileInfo(name, str(jobs / name), ProfileHeader(), 0))
    return None


def tagged(repo: Repository, tag: ProfileTag, minor: str | None, spec: str) -> Iterator[ProfileLocation]:
    """The profiles of a tag or an inclusive range of tags; of a range, those that exist (manual 3.2.6).

    :param minor: the version whose registered profiles are meant if the tag names none.
    :param spec: the tag as it was typed, for messages.
    """
    minor_version = None if tag.kind == "p" else repo.version(minor if tag.revision is None else tag.revision)
    infos = pending(repo) if minor_version is None else registered(repo, minor_version)
    if tag.is_id:
        yield ProfileLocation(_of_id(infos, tag.first, spec), minor_version)
        return
    start = int(tag.first or 0)
    if tag.last is None:
        if start >= len(infos):
            where = "pending" if minor_version is None else f"registered in {minor_version[:10]}"
            there = f"{plural(len(infos), 'profile')} {'is' if len(infos) == 1 else 'are'} {where}"
            raise ProfileNotFound(f"there is no profile {spec}: {there}", "see: perun status")
        yield ProfileLocation(infos[start], minor_version)
        return
    for info in infos[start : int(tag.last or 0) + 1]:
        yield ProfileLocation(info, minor_version)


def _of_id(infos: Sequence[ProfileInfo], beginning: str, spec: str) -> ProfileInfo:
    found = [info for info in infos if identity(info).startswith(beginning)]
    if not found:
        raise ProfileNotFound(f"there is no profile {spec}", "list all ids with: perun -v status, or --json")
    if len(found) > 1:
        raise _several(f"{spec} is the beginning of {len(found)} ids", found, split_name(spec))
    return found[0]


def _several(message: str, found: Sequence[ProfileInfo], named: tuple[str, str] | None = None) -> UsageError:
    """The error that lists the profiles with their stable ids, so that one of them can be named.

    :param named: the version that was named, and what of it.
    """
    before = f"{named[0]}:" if named else ""
    ids = [(before if one.is_registered else "") + f"{identity(one)}@{kind_of(one)}" for one in found]
    lines = [f"  {tag}  {info.source}" for tag, info in zip(ids, found[:LISTED], strict=False)]
    if len(found) > LISTED:
        lines.append(f"  and {len(found) - LISTED} more")
    return UsageError(message, "\n".join(["name one of them by its stable id:", *lines]))


def kind_of(info: ProfileInfo) -> str:
    """The letter at the end of its tag: `i` for a registered profile, `p` for a pending one."""
    return "i" if info.is_registered else "p"


def _in_index(repo: Repository, spec: str, minor: str | None) -> ProfileLocation | None:
    """The profile that is registered by that name, or the base name of that path."""
    minor_version = _version(repo, minor)
    if minor_version is None:
        return None
    name = Path(spec).name
    for info in registered(repo, minor_version):
        if info.source in (spec, name) and (info.source == spec or not Path(spec).exists()):
            return ProfileLocation(info, minor_version)
    return None


def _beginning_in_index(repo: Repository, spec: str, minor: str | None) -> ProfileLocation | None:
    minor_version = _version(repo, minor)
    if minor_version is None or not spec or "/" in spec:
        return None
    found = [info for info in registered(repo, minor_version) if info.source.startswith(spec)]
    if len(found) > 1:
        named = None if minor is None else (minor, spec)
        where = minor_version[:10]
        raise _several(f"the names of {len(found)} profiles in {where} begin with {spec!r}", found, named)
    return ProfileLocation(found[0], minor_version) if found else None


def _in_revision(repo: Repository, spec: str) -> ProfileLocation | None:
    """The profile that `REV:NAME` names; None if it is not that.

    :raises ProfileNotFound: if no profile of the version has a name that begins so.
    """
    named = split_name(spec)
    if named is None:
        return None
    revision, name = named
    minor_version = repo.version(revision)
    there = registered(repo, minor_version)
    found = [info for info in there if info.source == name]
    found = found or [info for info in there if info.source.startswith(name)]
    if not found:
        raise _not_found(name, f"profile registered in {revision} ({minor_version[:10]})", there)
    if len(found) > 1:
        raise _several(f"{spec} is the beginning of the names of {len(found)} profiles", found, named)
    return ProfileLocation(found[0], minor_version)


def _version(repo: Repository, minor: str | None) -> str | None:
    """The version; None if there is no version yet, so that nothing is registered."""
    try:
        return repo.version(minor)
    except VersionControlError:
        if minor is not None:
            raise
        return None


def _at_path(repo: Repository, spec: str) -> ProfileLocation | None:
    path = Path(spec)
    return ProfileLocation(repo.store.pending.info(path.resolve())) if _is_file(repo, path) else None


def _is_file(repo: Repository, path: Path) -> bool:
    try:
        return repo.store.files.is_file(path)
    except OSError:
        return False  # e.g. a name longer than any file's


def _named_pending(repo: Repository, spec: str) -> ProfileLocation | None:
    name = Path(spec).name
    for file in (name, name + ".perf"):
        path = repo.store.pending.root / file
        if name and file.endswith(".perf") and repo.store.files.exists(path):
            return ProfileLocation(repo.store.pending.info(path))  # raises if it is damaged
    return None


def _part_of_pending(repo: Repository, spec: str) -> ProfileLocation | None:
    name = Path(spec).name
    found = [info for info in pending(repo) if name and name in info.source]
    if len(found) > 1:
        raise _several(f"{spec!r} is part of the names of {len(found)} pending profiles", found)
    return ProfileLocation(found[0]) if found else None


def _in_files(repo: Repository, spec: str, confirm: Confirm | None) -> ProfileLocation:
    path = in_files(repo, spec, confirm) if confirm is not None else None
    if path is None:
        raise _not_found(spec, "profile", pending(repo))
    return ProfileLocation(repo.store.pending.info(path))


def in_files(repo: Repository, spec: str, confirm: Confirm) -> Path | None:
    """The first file below the project, a part of whose name `spec` is, that `confirm` accepts; else None."""
    name = Path(spec).name
    return next(filter(confirm, _walk(repo.root, name)), None) if name else None


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


# Ranges of versions, `A..B`, as git writes them.


def ends_of(text: str) -> tuple[str, str] | None:
    """The two revisions of `A..B`, each empty where it is left out; None if there is no `..`.

    :raises UsageError: for `A...B`: what two branches do not share has no beginning and no end.
    """
    first, dots, second = text.partition("..")
    if not dots:
        return None
    if second.startswith("."):
        raise UsageError(f"{text}: three dots name no two versions", f"write {first}..{second[1:]}")
    return first, second
