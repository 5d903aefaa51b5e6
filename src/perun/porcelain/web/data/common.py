"""What pieces have in common."""

from __future__ import annotations

from msgspec import Struct

Number = float | int | None
Numbers = list[Number]


class Ref(Struct, frozen=True):
    """A version. :ivar at: its position; -1 of one that is not known."""

    at: int
    checksum: str
    date: int
    author: str
    subject: str


class Named(Struct, frozen=True):
    """A branch or a tag, and the position of its version."""

    name: str
    at: int
