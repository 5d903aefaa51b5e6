"""`perun blame`: the versions that changed what the functions of a file cost, through renames and moves.

The series of a function are those of its profiles, whatever it was called: where a profile has it no more
under a name, the sources of both versions say which one it was. Its rows of the table of `perun changes` are
joined then, and searched as all others are, so that both say the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.core.errors import DamagedStore, ProfileError, UsageError
from perun.core.wording import listed
from perun.history.changes import history
from perun.history.changes.data import ChangePoint, History, SeriesKey, VersionChanges
from perun.history.changes.finding import Progress, found_in
from perun.measurement.estimate import Point
from perun.measurement.many import place_of
from perun.measurement.series import INSTRUCTIONS, TOTAL
from perun.models import change_points
from perun.native.scopes import LineRange
from perun.plugin.api import FileDiff, MinorVersion
from perun.profile.head import Configuration
from perun.profile.sampled import SAMPLED, WHOLE
from perun.repository import walking
from perun.repository.repository import Repository
from perun.running.explain.costs import FunctionKey
from perun.running.explain.lines import bare
from perun.running.explain.sources import Sources, functions_of, is_named, kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

RENAMED: Final = 0.6
"""How alike two functions with different names are, at least, for one to be the other renamed; 1 is equal."""
MOVED: Final = 0.3
"""The same of functions with one name in two files."""
_INSIDE: Final = re.compile(r"\.<locals>\.<.*$")
_WORDS: Final = re.compile(r"\w+|[^\w\s]")


class FunctionPlace(NamedTuple):
    """A function of the sources: the path of its file, and its name there."""

    path: str
    name: str


class FormerPlace(NamedTuple):
    """What a function was before a version.

    :param version: the first one that has it as it is called later. :param place: where it was before; None
        if it is new.
    """

    version: MinorVersion
    place: FunctionPlace | None


class BlamedChange(NamedTuple):
    """A change of a series of a function, and the version that brought it."""

    version: VersionChanges
    step: ChangePoint


class BlamedFunction(NamedTuple):
    """What is known of a function.

    :param ranges: its lines; several where several functions of the file have that name.
    :param series: with their newest values, and the versions of these. :param changes: the newest first.
    :param former: what it was before, the newest first. :param inlined: the instructions that it executes
        within those it is inlined into, by the newest profile that tells; None where it has code of its own.
    :param unknown: what is not known of it, in sentences.
    """

    place: FunctionPlace
    ranges: tuple[LineRange, ...]
    series: tuple[tuple[SeriesKey, float, MinorVersion], ...]
    changes: tuple[BlamedChange, ...]
    former: tuple[FormerPlace, ...]
    inlined: float | None
    unknown: tuple[str, ...]


class Blame(NamedTuple):
    """What `perun blame` tells. :param history: all that was looked at."""

    path: str
    version: MinorVersion
    functions: tuple[BlamedFunction, ...]
    history: History


def blame(
    repo: Repository,
    file: str,
    names: Sequence[str] = (),
    revision: str | None = None,
    since: str | None = None,
    *,
    every: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> Blame:
    """The functions of a file with the versions along first parents that changed what they cost.

    :param file: its path, relative to the repository, or the end of it. :param names: of the functions; all
        if there are none. :param revision: the newest version, HEAD if None.
    :param since: as :func:`perun.repository.walking.since`; what was before it is not told.
    :param every: also costs with what a function calls.
    :raises UsageError: if there is no such file or function.
    :raises VersionControlError: if there is no such version.
    """
    read = history.read(repo, revision, lambda done, total: progress("versions", done, total))
    head = read.versions[-1]
    path = _path_of(repo.vcs.files(head.checksum), file, head)
    texts = _Texts(repo)
    functions = _wanted(texts.functions(head.checksum, path), names, path)
    known = _Rows(read, every=every)
    lines = {name: _line_of(texts, read, known, FunctionPlace(path, name)) for name in functions}
    joined = _Joined(read, known, list(lines.values()))
    points = _RenamedPoints(repo, head.checksum, (one.checksum for one in read.versions), joined.names)
    found = found_in(repo, joined.history, points, change_points.EFFECT, progress, keeps=False).found
    kept = {one.checksum for one in walking.since(repo, reversed(read.versions), since)}
    changes: dict[SeriesKey, list[BlamedChange]] = defaultdict(list)
    for one in reversed(found):
        for step in (*one.steps, *one.doubtful):
            if one.version.checksum in kept:
                changes[step.series].append(BlamedChange(one, step))
    inlined = _Inlined(repo, read)
    return Blame(
        path,
        head,
        tuple(
            _blamed(lines[name], ranges, joined.keys[number], joined.history, changes, inlined, kept)
            for number, (name, ranges) in enumerate(functions.items())
        ),
        read,
    )


def _path_of(files: Sequence[str], file: str, head: MinorVersion) -> str:
    found = [one for one in files if one == file] or [one for one in files if _is_end(one, file)]
    if len(found) != 1:
        what = f"{len(found)} files end so" if found else "there is no such file"
        like = found or [one for one in files if PurePosixPath(one).name == PurePosixPath(file).name]
        hint = f"there are: {listed(like, 5)}" if like else "name a version that has it: --minor VERSION"
        raise UsageError(f"{file}: {what} in {head.checksum[:7]}", hint)
    return found[0]


def _wanted(
    functions: Mapping[str, tuple[LineRange, ...]], names: Sequence[str], path: str
) -> dict[str, tuple[LineRange, ...]]:
    if not functions:
        raise UsageError(
            f"{path}: no function is found in it", "name a source of Python, or of a language with braces"
        )
    for name in names:
        if not any(is_named(one, name) for one in functions):
            raise UsageError(
                f"{path}: there is no function {name}", f"there are: {listed(list(functions), 10)}"
            )
    return {
        one: ranges
        for one, ranges in functions.items()
        if not names or any(is_named(one, name) for name in names)
    }


class _Texts:
    """The functions of the sources of versions, read as they are asked for."""

    def __init__(self, repo: Repository) -> None:
        self._vcs = repo.vcs
        self.functions = lru_cache(512)(self._functions)
        self.difference: Callable[[str, str], list[FileDiff] | None] = lru_cache(64)(self._vcs.difference)
        self._text = lru_cache(64)(self._read)

    def _read(self, version: str, path: str) -> str:
        return (self._vcs.source(version, path) or b"").decode("utf-8", "replace")

    def _functions(self, version: str, path: str) -> dict[str, tuple[LineRange, ...]]:
        found: dict[str, tuple[LineRange, ...]] = {}
        for one in functions_of(path, self._text(version, path)) if kind_of(path) == "source" else ():
            found[one.name] = (*found.get(one.name, ()), one)
        return dict(sorted(found.items(), key=lambda own: own[1][0].first))

    def words(self, version: str, place: FunctionPlace) -> list[str]:
        """The words of a function but its name."""
        text = self._text(version, place.path).split("\n")
        own = [line for one in self.functions(version, place.path).get(place.name, ())
               for line in text[one.first - 1 : one.last]]  # fmt: skip
        name = bare(place.name)
        return [word for word in _WORDS.findall("\n".join(own)) if word != name]

    def before(self, old: str, new: str, place: FunctionPlace) -> FunctionPlace | None:
        """What a function of a version was in an older one; None where it was not there."""
        diff = self.difference(old, new) or []
        path = next((one.old for one in diff if one.new == place.path), place.path)
        same = FunctionPlace(path, place.name)
        if path and place.name in self.functions(old, path):
            return same
        words = self.words(new, place)
        best: tuple[float, FunctionPlace | None] = (0.0, None)
        for one in diff:
            left = self.functions(new, one.new) if one.new else {}
            for name in self.functions(old, one.old) if one.old else ():
                if name in left:
                    continue
                other = FunctionPlace(one.old, name)
                match = SequenceMatcher(None, self.words(old, other), words, autojunk=False)
                least = max(MOVED if name == place.name else RENAMED, best[0])
                if match.real_quick_ratio() >= least and (alike := match.ratio()) >= least:
                    best = alike, other
        return best[1]


def metric_of(key: SeriesKey) -> str:
    """What is measured of the function: `instructions`, `calls`, `allocated`, `cpu with what it calls`."""
    own = key.subtype if key.type in ("memory", "mixed", SAMPLED) else key.type
    return f"{own} with what it calls" if _with_callees(key) else own


def _with_callees(key: SeriesKey) -> bool:
    return _parts(key)[2] == ":inclusive" or (key.type == "mixed" and key.subtype == TOTAL)


class _Rows:
    """The rows of the table by the function that they are of."""

    def __init__(self, read: History, *, every: bool) -> None:
        self.there = np.isfinite(read.values) & (read.values > 0)
        self._keys = read.keys
        self._by_name: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
        for number, key in enumerate(read.keys):
            source, name, _ = _parts(key)
            is_whole = name in (TOTAL, WHOLE) and key in read.leading
            if not is_whole and (every or not _with_callees(key)):
                self._by_name[bare(name)].append((source, name, number))

    def of(self, place: FunctionPlace) -> list[int]:
        """The numbers of the rows of a function; of one without a source, what has its name."""
        return [
            number
            for source, name, number in self._by_name.get(bare(place.name), ())
            if is_named(place.name, name) and _is_of(self._keys[number], source, place.path)
        ]


def _parts(key: SeriesKey) -> tuple[str, str, str]:
    """Source and name of the function of a series, and what of it: `("a.c", "f", ":inclusive")`."""
    text, bracket, rest = key.location.partition(" [")
    role = bracket + rest
    ends = (":inclusive", f":{key.subtype}") if key.type in (SAMPLED, INSTRUCTIONS, "memory") else ()
    for end in ends:
        if text.endswith(end):
            text, role = text.removesuffix(end), end + role
    source, name = place_of(text)
    return source.removesuffix(":"), _INSIDE.sub("", name), role


def _is_of(key: SeriesKey, source: str, path: str) -> bool:
    """Whether a source of a profile may be that file: profiles without debug information name the program."""
    if not source or source == PurePosixPath(key.configuration.cmd.partition(" ")[0]).name:
        return True
    named = re.sub(r"^(?:\.{0,2}/)+", "", source)
    return _is_end(path, named) or _is_end(source, path)


def _is_end(path: str, end: str) -> bool:
    return path == end or path.endswith(f"/{end}")


class _Part(NamedTuple):
    """What a function is called from a column of the history on. :param rows: its series."""

    place: FunctionPlace
    first: int
    rows: list[int]


class _Line(NamedTuple):
    """A function through the history. :param parts: the newest first. :param unknown: what is not known."""

    parts: list[_Part]
    former: list[FormerPlace]
    unknown: list[str]


def _line_of(texts: _Texts, read: History, known: _Rows, place: FunctionPlace) -> _Line:
    """What a function was called in the versions that measured it."""
    line = _Line([], [], [])
    end, top = len(read.measured), len(read.versions) - 1
    asked = np.zeros(end, bool)  # at which columns what measured the function was measured
    while True:
        rows = known.of(place)
        seen = np.flatnonzero(known.there[rows, :end].any(axis=0))
        own = {read.keys[row].configuration for row in rows}
        of_own = [number for number, key in enumerate(read.keys) if key.configuration in own]
        asked |= known.there[of_own].any(axis=0)
        first = int(seen[0]) if seen.size else end
        earlier = np.flatnonzero(asked[:first]) if seen.size else np.arange(end)
        low, high = 0, read.measured[first] if seen.size else top
        before: FunctionPlace | None = place
        if earlier.size:
            low = read.measured[int(earlier[-1])]
            before = texts.before(read.versions[low].checksum, read.versions[high].checksum, place)
            if before == place:
                if seen.size or line.parts:
                    line.unknown.append(
                        f"no profile of {read.versions[low].checksum[:7]} and before has {place.name}, "
                        "though it was there: inlined, or not executed"
                    )
                low = read.measured[int(earlier[0])]  # as that, too, it may have been renamed
                before = texts.before(read.versions[low].checksum, read.versions[high].checksum, place)
        if before == place:
            line.parts.append(_Part(place, 0, rows))
            return line
        high = _first_with(texts, read, low, high, place)
        now, previous = (read.versions[one].checksum for one in (high, high - 1))
        before = texts.before(previous, now, place) or before
        before = None if before == place else before
        line.former.append(FormerPlace(read.versions[high], before))
        end, top = min(first, bisect_left(read.measured, high)), high - 1
        line.parts.append(_Part(place, end, rows))
        if before is None:
            return line
        place = before


def _first_with(texts: _Texts, read: History, low: int, high: int, place: FunctionPlace) -> int:
    """The first version that has a function under this name, of those behind the one at `low`, which has not,
    up to that at `high`, which has."""
    while high - low > 1:
        middle = (low + high) // 2
        has = place.name in texts.functions(read.versions[middle].checksum, place.path)
        low, high = (low, middle) if has else (middle, high)
    return high


class _Joined:
    """The table with one row for each series of a function, whatever that was called.

    :ivar keys: the series of each function. :ivar names: what such a series is called in a version, where
        that is not its name.
    """

    def __init__(self, read: History, known: _Rows, lines: Sequence[_Line]) -> None:
        self._read = read
        self._there = known.there
        self._cells = tuple(one.copy() for one in read.cells)
        self.names: dict[tuple[str, SeriesKey], SeriesKey] = {}
        self.keys = [self._join(line) for line in lines]
        self.history = read._replace(cells=self._cells)

    def _join(self, line: _Line) -> list[SeriesKey]:
        end = len(self._read.measured)
        strands: dict[object, list[tuple[int, NDArray[np.bool_]]]] = defaultdict(list)
        for part in line.parts:
            for row in part.rows:
                key = self._read.keys[row]
                alike = key._replace(location=_parts(key)[2])
                there = self._there[row].copy()
                there[: part.first] = there[end:] = False
                if not there.any():
                    continue
                for main, taken in strands[alike]:
                    if not (taken & there).any():
                        self._take(main, row, slice(part.first, end), there)
                        taken |= there
                        break
                else:
                    strands[alike].append((row, there))
            end = part.first
        return [self._read.keys[row] for own in strands.values() for row, _ in own]

    def _take(self, main: int, row: int, columns: slice, there: NDArray[np.bool_]) -> None:
        """Give a row what another one has in these columns."""
        own = there.copy()
        own[columns] |= ~self._there[main][columns] & np.isfinite(self._read.values[row][columns])
        for one in self._cells:
            one[main][own] = one[row][own]
        self._cells[0][row][own] = np.nan
        for column in np.flatnonzero(own):
            version = self._read.versions[self._read.measured[column]].checksum
            self.names[version, self._read.keys[main]] = self._read.keys[row]


class _RenamedPoints(history.HistoryPoints):
    """The points of series that had other names. :param names: by version and series, the name there."""

    def __init__(
        self,
        repo: Repository,
        head: str,
        line: Iterator[str],
        names: Mapping[tuple[str, SeriesKey], SeriesKey],
    ) -> None:
        super().__init__(repo, head, line)
        self._names = names

    def at(self, version: str, key: SeriesKey) -> Point | None:
        """As of the other one, by the name that the series has there."""
        return super().at(version, self._names.get((version, key), key))


class _Inlined:
    """What functions cost that have no code of their own, by the newest profiles of instructions."""

    def __init__(self, repo: Repository, read: History) -> None:
        self._repo = repo
        self._read = read

    def of(self, place: FunctionPlace) -> float | None:
        """The instructions of its lines; None where they are not known."""
        return self._costs.get(FunctionKey(bare(place.name), PurePosixPath(place.path).name))

    @cached_property
    def _costs(self) -> dict[FunctionKey, float]:
        found: dict[FunctionKey, float] = {}
        if not self._read.measured:
            return found
        version = self._read.versions[self._read.measured[-1]]
        sources = Sources(self._repo, version, version, (None, None))
        seen: set[Configuration] = set()
        for entry in self._repo.store.indexes.read(version.checksum):
            head = entry.head
            if head.collector != INSTRUCTIONS or head.configuration in seen:
                continue
            seen.add(head.configuration)
            try:
                costs = sources.costs(self._repo.store.objects.get(entry.checksum), 1)
            except (ProfileError, DamagedStore):
                continue  # the history has said so
            for key, cost in costs.functions.items():
                found[key] = max(found.get(key, 0.0), cost.amount)
        return found


def _is_birth(one: BlamedChange, begins: set[str]) -> bool:
    """Whether a function that is new has no samples before. :param begins: the versions that brought it."""
    return one.step.values[0] == 0 and any(own.checksum in begins for own in one.version.possible)


def _blamed(
    line: _Line,
    ranges: tuple[LineRange, ...],
    keys: Sequence[SeriesKey],
    read: History,
    changes: Mapping[SeriesKey, Sequence[BlamedChange]],
    inlined: _Inlined,
    kept: Container[str],
) -> BlamedFunction:
    """What is known of a function. :param read: with joined rows. :param kept: the versions that are told."""
    place = line.parts[0].place
    rows = {key: number for number, key in enumerate(read.keys)}
    places = {one.checksum: number for number, one in enumerate(read.versions)}
    begins = {one.version.checksum for one in line.former if one.place is None}
    own = [one for key in keys for one in changes.get(key, ()) if not _is_birth(one, begins)]
    own.sort(key=lambda one: -places[one.version.version.checksum])
    columns = [int((read.values[rows[key]] > 0).nonzero()[0][-1]) for key in keys]
    newest = [
        (key, float(read.values[rows[key], at]), read.versions[read.measured[at]])
        for key, at in zip(keys, columns, strict=True)
    ]
    last, unknown = max(columns, default=-1), list(line.unknown)
    cost = None
    if keys and all(((read.values[rows[key]] > 0).sum() == 1) for key in keys):
        unknown.append("one version alone has it in its profiles: there is nothing to compare it with")
    if last < 0 or last < len(read.measured) - 1:
        cost = inlined.of(place)
        version = read.versions[read.measured[last]].checksum[:7] if last >= 0 else ""
        if cost is None:
            since = f"after {version} " if version else ""
            unknown.append(f"no profile {since}has it: not executed, inlined, or not measured")
    former = tuple(one for one in line.former if one.version.checksum in kept)
    return BlamedFunction(place, ranges, tuple(newest), tuple(own), former, cost, tuple(unknown))
