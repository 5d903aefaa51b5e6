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
from perun.profile import layouts, validation
from perun.profile.factory import Profile
from perun.profile.validation import validate

__all__ = ["SIZE_LIMIT", "decode_head", "dumps_object", "dumps_pending", "loads", "validate"]

SIZE_LIMIT: Final = 1 << 30
"""Bytes of JSON that are read at most; some ten times as many are needed in memory."""

_WORTH_MSGSPEC: Final = 1 << 20  # bytes that json decodes in about the time that importing msgspec takes
_NUMBERS: Final = {int, float}


def loads(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> Profile:
    """The profile that `data` holds, in any layout that Perun reads.

    :param source: where it comes from, for the message.
    :param limit: number of bytes that are read at most.
    :raises ProfileError: where it is not UTF-8, not JSON, not a profile, or larger than `limit`.
    """
    regions = _decode(data, source, limit)
    validate(regions, source)
    return Profile(regions)


def decode_head(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin`, checked, in today's layout.

    Resources are passed over as quickly as can be, and are not checked.

    :raises ProfileError: as :func:`loads`, for these regions.
    """
    regions = _decode(data, source, limit, head_only=True)
    validation.head(regions, source)
    return {
        "header": layouts.header(regions["header"]),
        "collector_info": layouts.unit(regions["collector_info"]),
        "postprocessors": [layouts.unit(one) for one in regions.get("postprocessors", ())],
        "origin": regions.get("origin") or "",
    }


def dumps_object(profile: Profile) -> bytes:
    """The profile as the body of an object (manual 13.2.2): one line of ASCII, without `origin`.

    :raises ProfileError: where a value has no JSON.
    """
    import json

    regions = profile.serialize()
    regions.pop("origin", None)
    try:
        return json.dumps(regions, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise _no_json(problem) from None


def dumps_pending(profile: Profile) -> bytes:
    """The profile as a job file: JSON with indent 2 and every list of numbers on one line.

    :raises ProfileError: where a value has no JSON.
    """
    import json

    parts: list[str] = []
    try:
        _pretty(profile.serialize(), "\n", parts, json.JSONEncoder().encode)
        return "".join(parts).encode("ascii")
    except (TypeError, ValueError, RecursionError) as problem:
        raise _no_json(problem) from None


def _decode(data: bytes, source: str, limit: int, *, head_only: bool = False) -> dict[str, Any]:
    if len(data) > limit:
        raise ProfileError(
            f"{source}: {len(data)} bytes of profile, more than the {limit} that are read",
            "collect fewer resources, e.g. with a coarser sampling",
        )
    try:
        regions = _decode_quickly(data, head_only)
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


def _decode_quickly(data: bytes, head_only: bool) -> Any:
    """What msgspec makes of `data`; None where it is not worth its import, or it finds fault.

    It is stricter than Python: NaN, Infinity and half surrogate pairs, which older releases could write,
    are errors.
    """
    if len(data) < _WORTH_MSGSPEC and "msgspec" not in sys.modules:
        return None
    import msgspec

    try:
        if not head_only:
            return msgspec.json.decode(data)
        head = msgspec.json.decode(data, type=_head_struct())
        regions = msgspec.structs.asdict(head)
        return {key: value for key, value in regions.items() if value is not msgspec.UNSET}
    except (msgspec.MsgspecError, ValueError):
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


def _no_json(problem: Exception) -> ProfileError:
    reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
    return ProfileError(
        f"the profile cannot be written as JSON: {reason}",
        "the collector or postprocessor must use text, numbers, lists and mappings with text as keys only",
    )
