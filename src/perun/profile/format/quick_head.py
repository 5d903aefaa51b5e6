"""The head of a small profile of today's layout, decoded and checked in one step: for very many at once.

The types of msgspec say what :func:`perun.profile.format.validation.head` checks. Whatever they do not take,
older layouts and damaged files among it, is left to the readers that say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import GenericAlias
from typing import Any, Final

from perun.profile.format.validation import TYPE
from perun.profile.head import ProfileHeader

_BLANK: Final = re.compile(r"\s")


def quick_head(data: bytes) -> ProfileHeader | None:
    """The head of the profile, as `Head.of(decode_head(data))`; None of what it cannot read.

    :param data: JSON in ASCII, not larger than the limit.
    """
    decode, absent, wrong = _decoder()
    try:
        regions = decode(data)
    except (wrong, ValueError, RecursionError):
        return None
    header = regions.header
    if header.bin is not absent or header.params is not absent:  # keys of older releases
        return None
    units = (regions.collector_info.name, *(one.name for one in regions.postprocessors))
    if not TYPE.fullmatch(header.type) or any(not one or _BLANK.search(one) for one in units):
        return None
    return ProfileHeader(header.type, header.cmd, header.args, header.workload, units[0], units[1:])


@cache
def _decoder() -> tuple[Callable[[bytes], Any], Any, type[Exception]]:
    """What decodes a head, what stands for a key that is absent, and what is raised of any other JSON."""
    import msgspec

    def empty(kind: type) -> Any:
        return msgspec.field(default_factory=kind)

    absent = msgspec.UNSET
    texts = [(name, str, "") for name in ("cmd", "args", "workload")]
    older = [(name, Any, absent) for name in ("bin", "params")]
    units_of_type = ("units", dict[str, Any], empty(dict))
    header = msgspec.defstruct("Header", [("type", str), *texts, units_of_type, *older])
    unit = msgspec.defstruct("Unit", [("name", str), ("params", dict[str, Any] | None, None)])
    postprocessors = ("postprocessors", GenericAlias(list, (unit,)), empty(list))
    origin = ("origin", str | None, None)
    head = msgspec.defstruct("Head", [("header", header), ("collector_info", unit), postprocessors, origin])
    return msgspec.json.Decoder(head).decode, absent, msgspec.MsgspecError
