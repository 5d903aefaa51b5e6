"""Profiles as JSON: reading, checking and writing them (manual 2.1).

Reading takes bytes that nobody vouches for. Whatever they hold, the outcome is a profile or a
:class:`~perun.errors.ProfileError`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from perun.errors import ProfileError
from perun.profile.format import bulk, older, validation
from perun.profile.format.columns import is_packed, unpacked
from perun.profile.format.core import Profile
from perun.profile.format.validation import validate

__all__ = ["SIZE_LIMIT", "decode_head", "dumps_object", "dumps_pending", "loads", "validate"]

SIZE_LIMIT: Final = 1 << 30
"""Bytes of JSON that are read at most; as much again, and some more, is needed in memory."""

_WORTH_MSGSPEC: Final = 1 << 20  # bytes that json decodes in about the time that importing msgspec takes
_NUMBERS: Final = {int, float}


def loads(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> Profile:
    """The profile that `data` holds, in any layout that Perun reads.

    :param source: where it comes from, for the message.
    :param limit: number of bytes that are read at most.
    :raises ProfileError: where it is not UTF-8, not JSON, not a profile, or larger than `limit`.
    """
    _check_size(data, source, limit)
    if _is_worth_msgspec(data):
        try:
            regions = bulk.regions(data)
            validate(regions, source)
            return Profile(regions)
        except bulk.Unsuitable:
            pass  # where it is not simply wrong, the more lenient reader can read it
    regions = _decode(data, source, None)
    validate(regions, source)
    profile = Profile(regions)
    profile.pack()
    return profile


def decode_head(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin`, checked, in today's layout.

    Resources are passed over as quickly as can be, and are not checked.

    :raises ProfileError: as :func:`loads`, for these regions.
    """
    _check_size(data, source, limit)
    regions = _decode(data, source, _head_of(data))
    validation.head(regions, source)
    return {
        "header": older.header(regions["header"]),
        "collector_info": older.unit(regions["collector_info"]),
        "postprocessors": [older.unit(one) for one in regions.get("postprocessors", ())],
        "origin": regions.get("origin") or "",
    }


def dumps_object(profile: Profile) -> bytes:
    """The profile as the body of an object (manual 13.2.2): one line of ASCII, without `origin`.

    :raises ProfileError: where a value has no JSON.
    """
    import json

    regions = profile.regions()
    regions.pop("origin", None)
    try:
        return json.dumps(regions, separators=(",", ":"), default=_plain).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise _no_json(problem) from None


def dumps_pending(profile: Profile) -> bytes:
    """The profile as a job file: JSON with indent 2 and every list of numbers on one line.

    :raises ProfileError: where a value has no JSON.
    """
    import json

    parts: list[str] = []
    try:
        _pretty(profile.regions(), "\n", parts, json.JSONEncoder().encode)
        return "".join(parts).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise _no_json(problem) from None


def _check_size(data: bytes, source: str, limit: int) -> None:
    if len(data) > limit:
        raise ProfileError(
            f"{source}: {len(data)} bytes of profile, more than the {limit} that are read",
            "collect fewer resources, e.g. with a coarser sampling",
        )


def _is_worth_msgspec(data: bytes) -> bool:
    return len(data) >= _WORTH_MSGSPEC or "msgspec" in sys.modules


def _decode(data: bytes, source: str, regions: Any) -> dict[str, Any]:
    """The regions as Python's reader of JSON sees them, where they were not found in a quicker way."""
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
    """The head as msgspec sees it; None where it is not worth the import, or msgspec finds fault."""
    if not _is_worth_msgspec(data):
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


def _pretty(value: Any, newline: str, parts: list[str], encode: Callable[[Any], str]) -> None:
    """Append the JSON of `value` to `parts`; `newline` is a line break and the indent of its line."""
    inner = newline + "  "
    if isinstance(value, Mapping) and value:
        opening = "{" + inner
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            if isinstance(item, str):  # nearly all values of a trace; a call for each would double the time
                parts.append(f"{opening}{encode(key)}: {encode(item)}")
            else:
                parts.append(f"{opening}{encode(key)}: ")
                _pretty(item, inner, parts, encode)
            opening = "," + inner
        parts.append(newline + "}")
    elif is_packed(value):
        parts.append(encode(unpacked(value)))
    elif isinstance(value, (list, tuple)) and value and not set(map(type, value)) <= _NUMBERS:
        opening = "[" + inner
        for item in value:
            parts.append(opening)
            _pretty(item, inner, parts, encode)
            opening = "," + inner
        parts.append(newline + "]")
    elif type(value) is int:
        parts.append(repr(value))
    else:
        parts.append(encode(value))


def _plain(value: Any) -> Any:
    if is_packed(value):
        return unpacked(value)
    raise TypeError(f"{value!r} has no JSON")


def _no_json(problem: Exception) -> ProfileError:
    reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
    return ProfileError(
        f"the profile cannot be written as JSON: {reason}",
        "the collector or postprocessor must use text, numbers, lists and mappings with text as keys only",
    )
