"""Commits on their way to another machine: a pack of git, which holds what the other repository lacks.

The whole history of a version goes with it, and the tags in it, as builds may ask for these (`git describe`).
Nothing is written to the repository that is sent from: no ref, no bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perun.errors import VersionControlError
from perun.process.git import GitCommand


def first_version(git: GitCommand, versions: Sequence[str]) -> str:
    """The first commit of the history of these; the least of several by its name."""
    return min(git.ask("rev-list", "--max-parents=0", *versions).split())


def present(git: GitCommand, versions: Iterable[str]) -> list[str]:
    """Those of the versions that the repository has."""
    wanted = list(versions)
    answer = _checked(git, "cat-file", "--batch-check", given="".join(f"{one}\n" for one in wanted).encode())
    kinds = (line.split()[1:2] for line in answer.decode().splitlines())
    return [one for one, kind in zip(wanted, kinds, strict=True) if kind == ["commit"]]


def pack(git: GitCommand, versions: Sequence[str], known: Iterable[str]) -> tuple[bytes, list[list[str]]]:
    """What a repository that has the history of `known` lacks of the versions and their history.

    :return: a pack, and the tags in that history: the full name and the object of each.
    """
    form = "--format=%(refname) %(objectname)"
    merged = [f"--merged={version}" for version in versions]
    listed = git.ask("for-each-ref", form, *merged, "refs/tags/").splitlines()
    tags = [line.rsplit(" ", 1) for line in listed]
    wanted = [*versions, *(checksum for _, checksum in tags), *(f"^{one}" for one in present(git, known))]
    revisions = "".join(f"{one}\n" for one in wanted).encode()
    return _checked(git, "pack-objects", "--revs", "--stdout", "--quiet", given=revisions), tags


def unpack(git: GitCommand, versions: Sequence[str], data: bytes, tags: Iterable[Sequence[str]]) -> None:
    """Put what :func:`pack` made of the versions into this repository; git checks each object.

    :raises VersionControlError: if it is damaged, or is not all that was lacking.
    """
    _checked(git, "index-pack", "--stdin", given=data)
    lacking = set(versions) - set(present(git, versions))
    if lacking:
        raise VersionControlError(f"version {min(lacking)[:10]} was not in what was sent")
    updates = "".join(f"update {name}\0{checksum}\0\0" for name, checksum in tags)
    _checked(git, "update-ref", "-z", "--stdin", given=updates.encode("utf-8", "surrogateescape"))


def _checked(git: GitCommand, *arguments: str, given: bytes) -> bytes:
    answer = git.attempt(*arguments, given=given, shield=True)
    if answer.code:
        raise git.failure(arguments[0], answer)
    return answer.stdout
