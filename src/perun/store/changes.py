"""The changes of performance that checks found, one file beside the index of each target version.

A line holds, separated by blanks: location, change, type, value in the baseline, value in the target,
rate, type of confidence, confidence, relative rate, baseline version, command. The command may hold
blanks, the other fields hold them escaped. Old releases escaped nothing and left out the last numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import DamagedStore
from perun.profile.changes import DegradationInfo, PerformanceChange, unescape_field
from perun.store import tree
from perun.store.cache import NUMBER, Cache, of_types
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    from pathlib import Path

    from perun.store.objects import Checksums


_CHANGES = {str(change): change for change in PerformanceChange}
_BASELINE = re.compile(r"HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
_FIELDS = 9
_TAILS = (("number", "word", "number", "number"), ("number", "word", "number"), ("number",))
# Rate, type of confidence, confidence, relative rate: the newest releases wrote all, older ones fewer.
_LINE_BREAKS = {"\n": "%0A", "\r": "%0D"}


class ChangeRecord(NamedTuple):
    """One found change, the version it was compared with and the command that both profiles measured."""

    info: DegradationInfo
    baseline: str
    command: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What is unique in one minor version; a later check replaces the earlier result."""
        return self.info.location, self.info.type, self.command


class ChangeStore:
    """The changes below `.perun/objects`.

    :param lock: the lock of the repository, taken by what writes.
    :param checksums: the file of their checksums. :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        checksums: Path,
        files: Files = ON_DISK,
    ) -> None:
        self.root = root
        self._files = files
        self._checksums_path = checksums
        self._lock = lock

    @cached_property
    def checksums(self) -> Checksums:
        """The checksums of the files that this release wrote, by minor version."""
        from perun.store.objects import Checksums

        return Checksums(
            self._checksums_path, lambda minor: self._files.exists(self.path(minor)), self._files
        )

    def path(self, minor: str) -> Path:
        """The file of the minor version, there or not."""
        return tree.minor_path(self.root, minor, tree.CHANGES_SUFFIX)

    def read(self, minor: str) -> list[ChangeRecord]:
        """The changes found in the minor version; none if nothing was checked.

        :raises DamagedStore: names the file and the line.
        """
        path = self.path(minor)
        data = tree.read(path, files=self._files)
        return [] if data is None else parse(data, str(path))

    def merge(self, minor: str, records: Iterable[ChangeRecord]) -> None:
        """Add the records; those of the same location, type and command replace what was there.

        A record without a change removes what was there.

        :raises DamagedStore: if the file is damaged; it is left alone.
        """
        with self._lock():
            known = {record.key: record for record in self.read(minor)}
            known.update((record.key, record) for record in records)
            self._write(minor, serialize(known.values()))

    def _write(self, minor: str, data: bytes) -> None:
        with self._files.writing(self.path(minor)) as file:
            file.write(data)
            self.checksums.note(minor, tree.sha1(data).hex(), self._files.time_of(file))

    def minors(self) -> Iterator[str]:
        """The minor versions that have a file of changes, sorted."""
        for folder in tree.folders(self.root, self._files):
            names = tree.listing(f"{self.root}/{folder}", self._files)
            for name in sorted(one for one in names if one.endswith(tree.CHANGES_SUFFIX)):
                minor = folder + name.removesuffix(tree.CHANGES_SUFFIX)
                if tree.is_minor_version(minor):
                    yield minor


def parse(data: bytes, source: str) -> list[ChangeRecord]:
    """The records in a file of changes of any release.

    :raises DamagedStore: names `source` and the line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        raise DamagedStore(f"{source} is not UTF-8: {problem.reason}", _hint(source)) from None
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                records.append(_parse_line(line.rstrip("\r")))
            except ValueError as problem:
                raise DamagedStore(f"{source}, line {number}: {problem}", _hint(source)) from None
    return records


def serialize(records: Iterable[ChangeRecord]) -> bytes:
    """The file that holds the records, sorted; those without a change are left out."""
    lines = sorted(
        f"{record.info.to_storage_record()} {record.baseline} {_escape_command(record.command)}"
        for record in records
        if record.info.result is not PerformanceChange.NoChange
    )
    return "\n".join(lines).encode(errors="backslashreplace")


def _parse_line(line: str) -> ChangeRecord:
    tokens = line.split(" ")
    fields = tokens[:_FIELDS]
    if len(tokens) > _FIELDS and _is_current(fields, tokens[_FIELDS]):
        location, change, type_, before, after = fields[:5]
        tail, end = fields[5:], _FIELDS
    else:
        where = _position(tokens, 1, _CHANGES.__contains__, "known PerformanceChange")
        end = _position(tokens, where + 5, _BASELINE.fullmatch, "baseline version")
        location, change = " ".join(tokens[:where]), tokens[where]
        texts, tail = _split_tail(tokens[where + 1 : end])
        type_, before, after = _type_and_values(texts)
    info = DegradationInfo(
        _CHANGES[change],
        unescape_field(location),
        unescape_field(before),
        unescape_field(after),
        unescape_field(type_),
        float(tail[0]),
        unescape_field(tail[1]) if len(tail) > 1 else "no",
        float(tail[2]) if len(tail) > 2 else 0.0,
        rdr=float(tail[3]) if len(tail) > 3 else 0.0,
    )
    return ChangeRecord(info, tokens[end], _unescape_command(" ".join(tokens[end + 1 :])))


def _is_current(fields: list[str], baseline: str) -> bool:
    numbers = _is_number(fields[5]) and _is_number(fields[7]) and _is_number(fields[8])
    return fields[1] in _CHANGES and numbers and _BASELINE.fullmatch(baseline) is not None


def _position(tokens: list[str], start: int, matches: Callable[[str], object], what: str) -> int:
    for position in range(start, len(tokens)):
        if matches(tokens[position]):
            return position
    raise ValueError(f"it names no {what}")


def _split_tail(fields: list[str]) -> tuple[list[str], list[str]]:
    # From the end, as the values in front may hold unescaped blanks.
    for kinds in _TAILS:
        texts, tail = fields[: -len(kinds)], fields[-len(kinds) :]
        if len(texts) >= 3 and all(
            _is_number(field) == (kind == "number") for field, kind in zip(tail, kinds, strict=True)
        ):
            return texts, tail
    raise ValueError("it has no rate of the change")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _type_and_values(texts: list[str]) -> tuple[str, str, str]:
    # Values with unescaped blanks: both have a unit or none has, so they are equally long.
    each = (len(texts) - 1) // 2
    first = len(texts) - 2 * each
    return " ".join(texts[:first]), " ".join(texts[first : first + each]), " ".join(texts[first + each :])


def _escape_command(command: str) -> str:
    # Only what would end the line; the rest stays as old releases wrote it and read it.
    escaped = re.sub(r"%(?=0A|0D|25)", "%25", command)
    for char, code in _LINE_BREAKS.items():
        escaped = escaped.replace(char, code)
    return escaped


def _unescape_command(text: str) -> str:
    return re.sub(r"%(0A|0D|25)", lambda match: chr(int(match[1], 16)), text)


def _hint(source: str) -> str:
    return f"remove {source} and run perun check again"


# The steps that `perun changes` found, by version, for lists that must come at once; a cache.
#
# Nothing heavy is imported here: `perun status` and `perun log` read it.


class CachedChangePoint(NamedTuple):
    """A definite change of the level of one series.

    :param command: what was measured, and by which collector. :param ratio: new / old, with :param low: and
        :param high: its interval; they are the ratio of what is counted, and NaN where the old value is not
        above 0. :param before: and :param after: the values that it is of.
    :param verdict: the word for it, as `Degradation`. :param leads: whether the series stands for what was
        measured; else it is of a part of it.
    :param possible: the checksums of the versions that may have brought it, the first measured one last.
    :param reverted_by: the version whose step takes it back; :param reverts: the one that it takes back.
    """

    location: str
    command: str
    ratio: float
    low: float
    high: float
    before: float
    after: float
    unit: str
    verdict: str
    leads: bool
    possible: tuple[str, ...]
    reverted_by: str = ""
    reverts: str = ""

    @property
    def degradation(self) -> bool:
        """Whether it became worse."""
        return self.verdict.endswith("Degradation")


class ChangePointCache:
    """The steps of each version. :param steps: by each checksum of `possible` of them."""

    def __init__(self, steps: Mapping[str, Sequence[CachedChangePoint]]) -> None:
        self._steps = steps

    @classmethod
    def load(cls, cache: Cache) -> ChangePointCache:
        """What is kept, each step by every version that may have brought it."""
        found: dict[str, list[CachedChangePoint]] = {}
        for steps in cache.all("steps", _read).values():
            for step in steps:
                for version in step.possible:
                    found.setdefault(version, []).append(step)
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._steps)

    def of_version(self, version: str) -> list[CachedChangePoint]:
        """The steps that the version may have brought."""
        return list(self._steps.get(version, ()))

    def at(self, version: str) -> list[CachedChangePoint]:
        """The steps whose new level was measured at that version first."""
        return [step for step in self._steps.get(version, ()) if step.possible[-1] == version]


def keep(cache: Cache, looked_at: Iterable[str], steps: Mapping[str, Sequence[CachedChangePoint]]) -> None:
    """Keep the steps by the first version of the new level.

    :param looked_at: checksums of the versions that were searched: what was known of others stays.
    """
    known = cache.all("steps", bytes)
    new = {version: json.dumps(own).encode() for version, own in steps.items()}
    gone = known.keys() & set(looked_at) - new.keys()
    cache.put("steps", {version: data for version, data in new.items() if data != known.get(version)}, gone)


def _read(data: bytes) -> list[CachedChangePoint]:
    steps = [CachedChangePoint(*one) for one in json.loads(data)]
    for one in steps:
        of_types(one, _TYPES)
        of_types(one.possible, [str] * max(len(one.possible), 1))
        PerformanceChange[one.verdict]
    return [one._replace(possible=tuple(one.possible)) for one in steps]


_TYPES: Final[Sequence[type | tuple[type, ...]]] = (str, str, *[NUMBER] * 5, str, str, bool, list, str, str)
