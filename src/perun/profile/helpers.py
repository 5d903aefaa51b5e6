"""What is known of a profile without its resources: its line in a list, its file name.

The class attribute `ProfileInfo.valid_attributes` and the template of names are those of the manual's
section 11.2. Nothing heavy is imported here, as listing profiles must start at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from perun.core.errors import ConfigError
from perun.profile.head import Configuration, ProfileHeader

if TYPE_CHECKING:
    from datetime import datetime

MAX_NAME_BYTES = 255 - len(".perf") - len("(999999)")
"""Longest name in UTF-8 that leaves room for the ending and the number of a copy on usual file systems."""

_IGNORED_ATTRIBUTES = ("stem", "copy")  # sort keys of 0.28: the parts of a name, which `source` sorts by


class _Fields(NamedTuple):
    source: str
    realpath: str
    head: ProfileHeader
    time: int
    checksum: str = ""
    is_registered: bool = False


class ProfileInfo(_Fields):
    """One pending or registered profile, as a list of profiles shows it.

    `source` is its base name, `realpath` the path of its file or object, `time` seconds since 1970;
    `checksum` is empty for a pending profile. The fields of the head are attributes too, for sorting and
    for scripts: the manual names them so.
    """

    __slots__ = ()

    valid_attributes: ClassVar[list[str]] = [
        "realpath", "type", "time", "cmd", "args", "workload", "collector", "checksum", "source",
    ]  # fmt: skip

    if not TYPE_CHECKING:  # Perun itself asks the head, so that a misspelled name is found

        def __getattr__(self, name: str) -> Any:
            if name in ProfileHeader._fields:
                return getattr(self.head, name)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def configuration(self) -> Configuration:
        """What was measured and how, equal to that of the profile itself."""
        return _configuration_of(self.head)


@lru_cache(maxsize=1024)
def _configuration_of(head: ProfileHeader) -> Configuration:
    """That of a head; profiles of one list mostly have few different ones."""
    return head.configuration


def sort_key(attributes: str | Sequence[str]) -> Callable[[ProfileInfo], tuple[Any, ...]]:
    """The key by which profiles are sorted, from the value of `format.sort_profiles_by`.

    :raises ConfigError: names the attribute that is not one of :attr:`ProfileInfo.valid_attributes`.
    """
    names = [attributes] if isinstance(attributes, str) else list(attributes)
    for name in names:
        if name not in ProfileInfo.valid_attributes and name not in _IGNORED_ATTRIBUTES:
            raise ConfigError(
                f"format.sort_profiles_by: profiles cannot be sorted by {name!r}",
                _nearest(str(name), ProfileInfo.valid_attributes),
            )
    used = [name for name in names if name not in _IGNORED_ATTRIBUTES]
    if len(used) == 1:  # the usual case, called for thousands
        get = attrgetter(used[0])
        return lambda info: (get(info),)
    return lambda info: tuple(getattr(info, name) for name in used)


def file_name(template: str, profile: Mapping[str, Any], *, now: datetime, counter: int) -> str:
    """The name of a new profile from `format.output_profile_template` (manual 11.2), without `.perf`.

    It is one part of a path, never empty, and at most :data:`MAX_NAME_BYTES` long: the longest values
    are cut. Characters that a shell or a file system may trip over are `_`, and so is an empty value.

    :param now: moment of the collection; without a time zone it is UTC.
    :param counter: number of the profile within this run of Perun.
    :raises ConfigError: names the tag that does not exist and the nearest that does.
    """
    import re

    tags = _tags(profile, now, counter)
    # Literal text and tags alternate; a tag starts with a letter, so that `50%-%cmd%` is no tag `-`.
    pieces = re.split(r"%([^\W\d_][\w.-]*)%", template)
    values = [_Piece(_safe(text)) for text in pieces]
    for index in range(1, len(pieces), 2):
        values[index] = _value(pieces[index], tags, profile)
    _shorten(values)
    name = _cut("".join(map(str, values)), MAX_NAME_BYTES)
    if not name or name[0] in ".-":
        name = "_" + name[1:]  # neither hidden nor mistaken for an option
    return name


class _Piece:
    """A part of a name: brackets are kept when the text between them is cut."""

    def __init__(self, text: str, opening: str = "", closing: str = "") -> None:
        self.text, self.opening, self.closing = text, opening, closing

    def __str__(self) -> str:
        return self.opening + self.text + self.closing

    def __len__(self) -> int:
        return len(self.text.encode())


def _tags(profile: Mapping[str, Any], now: datetime, counter: int) -> dict[str, str]:
    head = ProfileHeader.of(profile)
    return {
        "collector": head.collector,
        "postprocessors": "-and-".join(name.replace("_", "-") for name in head.postprocessors),
        "cmd": _base_name(head.cmd),
        "args": head.args,
        "workload": _base_name(head.workload),
        "type": head.type,
        "date": _utc(now).strftime("%Y-%m-%d-%H-%M-%S"),
        "origin": str(profile.get("origin") or ""),
        "counter": str(counter),
    }


def _value(tag: str, tags: Mapping[str, str], profile: Mapping[str, Any]) -> _Piece:
    if tag in tags:
        text = tags[tag]
    elif "." in tag:
        text = _parameter(tag, profile)
    else:
        raise ConfigError(
            f"format.output_profile_template: unknown tag %{tag}%",
            _nearest(tag, [*tags, "<unit>.<parameter>"]),
        )
    safe = _safe(text) or "_"
    return _Piece(safe, "[", "]") if tag in ("args", "workload") else _Piece(safe)


def _parameter(tag: str, profile: Mapping[str, Any]) -> str:
    """Value of `<unit>.<parameter>`; empty if this profile was made without that unit or parameter."""
    from perun.profile.uid import flatten

    unit, _, name = tag.replace("-", "_").partition(".")
    text = ""
    for one in (profile.get("collector_info", {}), *profile.get("postprocessors", ())):
        if one.get("name", "").replace("-", "_") == unit:
            for key, value in (one.get("params") or {}).items():
                if key.replace("-", "_") == name:
                    text = str(flatten(value))
    return text


def _base_name(text: str) -> str:
    return text.strip().rstrip("/").rpartition("/")[2]


def _utc(moment: datetime) -> datetime:
    from datetime import UTC

    return moment.astimezone(UTC) if moment.tzinfo else moment


def _safe(text: str) -> str:
    unsafe = " #%&{}\\<>*?/$!'\":@"
    return "".join("_" if char in unsafe or not char.isprintable() else char for char in text)


def _shorten(pieces: list[_Piece]) -> None:
    """Cut the longest pieces until all fit, so that the date and other short ones stay whole."""
    shortest = 8
    excess = len("".join(map(str, pieces)).encode()) - MAX_NAME_BYTES
    while excess > 0:
        longest = max(pieces, key=len)
        before = len(longest)
        if before <= shortest:
            return
        longest.text = _cut(longest.text, max(shortest, before - excess))
        excess -= before - len(longest)


def _cut(text: str, size: int) -> str:
    """The start of `text` that is at most `size` bytes long in UTF-8."""
    return text.encode()[:size].decode(errors="ignore")


def _nearest(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else "known are: " + ", ".join(known)
