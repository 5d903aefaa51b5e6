"""The head of a small profile of today's layout, decoded and checked in one step: for very many at once.

The types of msgspec say what :func:`perun.profile.format.validation.head` checks. Whatever they do not take,
older layouts and damaged files among it, is left to the readers that say what is wrong.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from perun.profile.format.validation import TYPE
from perun.profile.head import Head

_BLANK: Final = re.compile(r"\s")


class _Header(msgspec.Struct):
    type: str
    cmd: str = ""
    args: str = ""
    workload: str = ""
    units: dict[str, Any] = {}
    bin: Any = msgspec.UNSET
    params: Any = msgspec.UNSET


class _Unit(msgspec.Struct):
    name: str
    params: dict[str, Any] | None = None


class _Head(msgspec.Struct):
    header: _Header
    collector_info: _Unit
    postprocessors: list[_Unit] = []
    origin: str | None = None


_DECODE: Final = msgspec.json.Decoder(_Head).decode


def quick_head(data: bytes) -> Head | None:
    """The head of the profile, as `Head.of(decode_head(data))`; None of what it cannot read.

    :param data: JSON in ASCII, not larger than the limit.
    """
    try:
        regions = _DECODE(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    header = regions.header
    if header.bin is not msgspec.UNSET or header.params is not msgspec.UNSET:  # keys of older releases
        return None
    units = (regions.collector_info.name, *(one.name for one in regions.postprocessors))
    if not TYPE.fullmatch(header.type) or any(not one or _BLANK.search(one) for one in units):
        return None
    return Head(header.type, header.cmd, header.args, header.workload, units[0], units[1:])
