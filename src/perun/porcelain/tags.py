"""Tags, which name profiles in few letters.

A tag is a position (`0@i` registered, `0@p` pending), which changes with the list, or a stable id
(`kxmzpqrstv@i`), of which any beginning that is unique does. `REV:` before that of a registered profile names
the minor version, as it does before the name of one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from perun.errors import UsageError
from perun.profile.helpers import ProfileInfo
from perun.store import tree

_TAG = re.compile(r"(\d{0,18}|[k-z]{3,16})@([ip])(?:-(\d{0,18})@([ip]))?", re.ASCII)
_LETTERS = str.maketrans("0123456789abcdef", "zyxwvutsrqponmlk")
# Of an id: never taken for a position, nor for a checksum.
_ID_LENGTH = 10


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
