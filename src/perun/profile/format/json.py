"""Profiles as JSON: reading, checking and writing them (manual 2.1).

The bytes that are read may come from anywhere: whatever they hold, the result is a profile or a
:class:`~perun.core.errors.ProfileError`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from perun.core.errors import ProfileError
from perun.profile.format import bulk, columnar, validation
from perun.profile.format.core import Profile
from perun.profile.format.encoding import COMPACT, PRETTY, encoded
from perun.profile.format.validation import validate

__all__ = [
    "SIZE_LIMIT",
    "decode_head",
    "dumps_object",
    "dumps_pending",
    "loads",
    "pending_pieces",
    "validate",
]

SIZE_LIMIT: Final = 512 << 20
"""Bytes of JSON that are read at most; as much again, and some more, is needed in memory."""

_MSGSPEC_FROM: Final = 1 << 20  # bytes; json decodes them in the time that importing msgspec takes


def loads(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> Profile:
    """The profile that `data` holds, in any layout that Perun reads, by columns too.

    :param source: where it comes from, for the message.
    :param limit: number of bytes that are read at most.
    :raises ProfileError: if it is not UTF-8, not JSON, not a profile, or larger than `limit`.
    """
    _check_size(data, source, limit)
    if columnar.is_columnar(data):
        return columnar.load(io.BytesIO(data), source, limit=limit)
    if _uses_msgspec(data):
        try:
            regions = bulk.regions(data)
            validate(regions, source)
            return Profile(regions)
        except bulk.Unsuitable:
            pass  # if it is not simply wrong, the more lenient reader can read it
    regions = _decode(data, source, None)
    validate(regions, source)
    profile = Profile(regions)
    profile.pack()
    return profile


def decode_head(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin`, checked, in today's layout.

    Resources are skipped, and not checked.

    :raises ProfileError: as :func:`loads`, for these regions.
    """
    _check_size(data, source, limit)
    if columnar.is_columnar(data):
        data = columnar.head_of(data, source)
    regions = _decode(data, source, _head_of(data))
    validation.head(regions, source)
    return {
        "header": bulk.header(regions["header"]),
        "collector_info": bulk.unit(regions["collector_info"]),
        "postprocessors": [bulk.unit(one) for one in regions.get("postprocessors", ())],
        "origin": regions.get("origin") or "",
    }


def dumps_object(profile: Profile) -> bytes:
    """The profile as the body of an object (manual 13.2.2): one line of ASCII, without `origin`.

    :raises ProfileError: if a value has no JSON.
    """
    buffer = io.BytesIO()  # hands out what it holds without a copy
    regions = profile.regions()
    regions.pop("origin", None)
    buffer.writelines(encoded(regions, COMPACT))
    return buffer.getvalue()


def dumps_pending(profile: Profile) -> bytes:
    """As :func:`pending_pieces`, in one."""
    buffer = io.BytesIO()
    buffer.writelines(pending_pieces(profile))
    return buffer.getvalue()


def pending_pieces(profile: Profile) -> Iterator[bytes]:
    """The profile as a job file, piece by piece: JSON in ASCII with indent 2, lists of numbers on one line.

    :raises ProfileError: if a value has no JSON.
    """
    return encoded(profile.regions(), PRETTY)


def _check_size(data: bytes, source: str, limit: int) -> None:
    if len(data) > limit:
        raise ProfileError(
            f"{source}: {len(data)} bytes of profile, more than the limit of {limit} (profiles.max_size)",
            "collect fewer resources, e.g. with a coarser sampling, or raise the limit",
        )


def _uses_msgspec(data: bytes) -> bool:
    return len(data) >= _MSGSPEC_FROM or "msgspec" in sys.modules


def _decode(data: bytes, source: str, regions: Any) -> dict[str, Any]:
    """The regions; decoded by Python's own reader of JSON if `regions` is None."""
    try:
        if regions is None:
            regions = _decode_leniently(data)
    except RecursionError:
        raise ProfileError(
            f"{source}: the JSON is nested too deeply", "no collector writes such a profile"
        ) from None
    except ValueError as problem:
        raise ProfileError(
            f"{source}: not JSON in UTF-8: {problem}",
            "the file is damaged or no profile; collect it again or restore the file",
        ) from None
    if not isinstance(regions, dict):
        raise ProfileError(
            f"{source}: expected a mapping of regions", "section 2.1 of the manual describes the format"
        )
    return regions


def _head_of(data: bytes) -> dict[str, Any] | None:
    """The head as msgspec decodes it; None if msgspec is not used, or refuses the JSON."""
    if not _uses_msgspec(data):
        return None
    import msgspec

    try:
        regions = msgspec.structs.asdict(msgspec.json.decode(data, type=_head_struct()))
        return {key: value for key, value in regions.items() if value is not msgspec.UNSET}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


@cache
def _head_struct() -> Any:
    import msgspec

    regions = ("header", "collector_info", "postprocessors", "origin")
    return msgspec.defstruct("Head", [(region, Any, msgspec.UNSET) for region in regions])


def _decode_leniently(data: bytes) -> Any:
    import json

    return json.loads(data.decode("utf-8"))
