"""The formats of `status` and `log --short` (manual chapter 12): `%tag%` or `%tag:width%`, else raw text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from perun.core.errors import ConfigError

_TAG = re.compile(r"%([a-z_]+)(?::(\d+))?%")


class Tag(NamedTuple):
    """A placeholder; `width` is the number of characters it is cut to, None if it is not cut."""

    name: str
    width: int | None


def parse(text: str, known: Sequence[str], key: str) -> list[str | Tag]:
    """The raw pieces and tags of a format string, in order.

    :param key: the configuration key the text comes from, for the message.
    :raises ConfigError: if a tag is unknown.
    """
    pieces: list[str | Tag] = []
    position = 0
    for match in _TAG.finditer(text):
        if match.start() > position:
            pieces.append(text[position : match.start()])
        name, width = match.groups()
        if name not in known:
            raise ConfigError(
                f"{key}: there is no tag %{name}%", "tags are: " + ", ".join(f"%{tag}%" for tag in known)
            )
        # Never cut below the title's own length, so that the header stays readable (manual 12.2).
        pieces.append(Tag(name, int(width) if width else None))
        position = match.end()
    if position < len(text):
        pieces.append(text[position:])
    return pieces
