"""The pieces by their names: the one way to the data of pages, for a server and for a static site."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, Final, NamedTuple, get_args

import msgspec
import msgspec.structs
import numpy as np
from numpy.typing import NDArray

from perun.core.errors import ProfileNotFound
from perun.core.wording import plural
from perun.history.changes.data import SeriesKey
from perun.history.changes.finding import deciding, undecided
from perun.history.trend import text_of
from perun.models import change_points
from perun.profile.head import shortest
from perun.web.data import form
from perun.web.data.changed import Reported, change_list, explained, shown, worst_first
from perun.web.data.naming import (
    bucket_size,
    group_of,
    is_whole,
    medians,
    name_of,
    shorts,
    title_of,
    words_of,
)
from perun.web.data.series import listed, points, points_piece, series_list, series_page, spark
from perun.web.data.state import SeriesGroup, VersionChangePoint, WebState
from perun.web.data.versions import CHUNK, commits, coverage, history, message, site, values

# The overview: what became of the project since the last tag, and what changed lately.

# Heat maps: series by versions.

MONTHS: Final = 12
"""Months of the record."""
COLUMNS: Final = 400
ROWS: Final = 400
"""Rows of the grid: the most important ones."""


def grid(state: WebState) -> form.Grid:
    """The piece `grid`: the whole main line in at most 400 columns."""
    every = [(one, row) for one in state.groups.values() for row in one.rows]
    wanted = every[:ROWS]
    positions = state.measured_main[state.there_main[[row for _, row in wanted]].any(axis=0)]
    size = bucket_size(len(positions), COLUMNS)
    made = rows(state, wanted, positions, size)
    return form.Grid(positions[::size].tolist(), made, max(0, len(every) - ROWS))


def rows(
    state: WebState, wanted: Sequence[tuple[SeriesGroup, int]], positions: NDArray[np.intp], size: int
) -> list[form.Row]:
    """The medians of each `size` of the positions, a row for each row of the table."""
    if not (wanted and positions.size):
        return []
    numbers = np.array([row for _, row in wanted])
    values = medians(state.table.values[numbers[:, np.newaxis], state.columns[positions]], size)
    return [
        form.Row(one.id, title_of(one.key), one.key.unit, one.key.larger_is_better, state.machine_of(row),
                 shorts(own), text_of(one.key.configuration), name_of(one.key, state.names))
        for (one, row), own in zip(wanted, values, strict=True)
    ]  # fmt: skip


CHANGES: Final = 30
HEAT: Final = (30, 60)
"""Rows and versions of the heat map."""
_BEFORE: Final = 6
"""Versions of it before the tag."""
BENCHMARKS: Final = 40
PARTS: Final = 60
SPARK: Final = 60
_LEAST: Final = 2 * change_points.FEWEST


class _Since(NamedTuple):
    """Where the verdict begins. :param name: of the tag, empty for the whole history."""

    name: str
    position: int


class _State(NamedTuple):
    """What became of a row of the table since then.

    :param kind: as of :class:`data.Verdict`. :param left: the definite changes that no other takes back, the
        worst first.
    """

    group: SeriesGroup
    row: int
    kind: str
    left: list[VersionChangePoint]

    @property
    def acknowledged(self) -> bool:
        """Whether it got worse, and all of that is acknowledged."""
        return self.kind == "worse" and all(one.entry for one in self.left if one.step.is_degradation)


def overview(state: WebState, reported: Reported) -> form.Overview:
    """The piece `overview`. :param reported: of which pairs there is a comparison."""
    since = _since(state)
    leading = [one for one in state.changes if one.step.leads]
    later = [one for one in leading if state.place_of(one.of.version.checksum) > since.position]
    became = sorted(_became(state, since, later), key=_rank)
    benchmarks = _benchmarks(state, became, reported)
    chosen = later if later and since.name else leading[:CHANGES]
    return form.Overview(
        _verdict(state, since, became),
        [shown(state, one, reported, pictured=True) for one in worst_first(chosen)[:CHANGES]],
        len(chosen),
        _heat(state, since, became),
        benchmarks[:BENCHMARKS],
        max(0, len(benchmarks) - BENCHMARKS),
        _record(leading)[:MONTHS],
    )


def _record(leading: Sequence[VersionChangePoint]) -> list[form.GateMonth]:
    """What a gate would have stopped, by month. :param leading: changes of what stands for benchmarks."""
    months: defaultdict[str, list[VersionChangePoint]] = defaultdict(list)
    for one in leading:
        if one.step.is_degradation and one.step.decides:
            months[one.of.version.date[:7]].append(one)
    return [
        form.GateMonth(
            month,
            len(found),
            sum(one.entry is not None for one in found),
            sum(bool(one.step.reverted_by) for one in found),
        )
        for month, found in sorted(months.items(), reverse=True)
    ]


def _since(state: WebState) -> _Since:
    """The newest tag of the main line with as many measured versions behind it as tell a level; else the
    beginning. Of the others nothing could be said but that it cannot be judged."""
    measured = state.measured_main
    last = measured[-change_points.FEWEST] if len(measured) >= change_points.FEWEST else -1
    main = [(name, place) for name, place in state.commits.tags if state.lines[place] == 0 and place < last]
    return _Since(*main[-1]) if main else _Since("", -1)


def _became(state: WebState, since: _Since, later: Sequence[VersionChangePoint]) -> list[_State]:
    """What became of each row of the table that stands for what was measured; parts of it are told
    elsewhere."""
    changes: defaultdict[int, list[VersionChangePoint]] = defaultdict(list)
    for one in later:
        changes[state.table.row[one.step.series]].append(one)
    keys, leading = state.table.keys, state.found.history.leading
    counts = state.there_main.sum(axis=1)
    news = state.there_main[:, state.measured_main > since.position].sum(axis=1)
    least = {True: 2, False: _LEAST}
    return [
        _row_state(group, row, changes[row], judged=bool(news[row] and counts[row] >= least[keys[row].exact]))
        for group in state.groups.values()
        for row in group.rows
        if keys[row] in leading
    ]


def _row_state(
    group: SeriesGroup, row: int, changes: Sequence[VersionChangePoint], *, judged: bool
) -> _State:
    """:param judged: whether enough versions are measured to say that nothing changed."""
    brought = {one.of.version.checksum for one in changes}
    left = worst_first(one for one in changes if not (one.step.reverted_by or one.step.reverts in brought))
    if left:
        return _State(group, row, "worse" if any(one.step.is_degradation for one in left) else "better", left)
    return _State(group, row, "same" if judged or changes else "unknown", [])


_ORDER: Final[Mapping[str, int]] = {"worse": 0, "better": 1, "same": 2, "unknown": 3}


def _rank(one: _State) -> tuple[bool, int, float]:
    """What got worse and is not acknowledged first; then as the list of all series is ordered."""
    return one.acknowledged, _ORDER[one.kind], -one.left[0].step.size if one.left else 0.0


def _verdict(state: WebState, since: _Since, became: Sequence[_State]) -> form.Verdict:
    count = {kind: sum(one.kind == kind for one in became) for kind in _ORDER}
    acknowledged = sum(one.acknowledged for one in became)
    tag = None
    if since.name:
        tag = form.Tag(since.name, since.position, int(state.commits.dates[since.position]))
    name = f"since {since.name}" if since.name else "in all versions"
    judged = len(became) - count["unknown"]
    of = f"of {plural(judged, 'benchmark')}"
    left = [change for one in became for change in one.left]
    new = [one for one in left if one.step.is_degradation and one.entry is None]
    kind, sentence = "unknown", "No version has a profile yet."
    if became and not judged:
        measured = f"measured {name}" if since.name else "measured"
        sentence = f"Too few versions are {measured} to tell a change from noise."
    elif new:
        kind = "worse"
        worst = shown(state, new[0], lambda pair: False)
        made = f"{plural(len(new), 'change')} made {count['worse'] - acknowledged} {of} worse {name}"
        sentence = f"{made}: {'most ' if len(new) > 1 else ''}{worst.name} {worst.text}."
    elif count["better"]:
        kind, sentence = "better", f"Nothing got worse {name}, and {count['better']} {of} got better."
    elif judged:
        kind, sentence = "same", f"Nothing changed {name} in {plural(judged, 'benchmark')}."
    known = {one.checksum for one in state.commits.versions[since.position + 1 :]}
    doubtful = undecided([one for one in state.found.found if one.version.checksum in known])
    parts = (
        f"{count['better']} got better" if count["better"] and kind == "worse" else "",
        f"{count['same']} did not change" if count["same"] and kind != "same" else "",
        f"{acknowledged} got worse, which is acknowledged" if acknowledged else "",
        f"{count['unknown']} cannot be judged" if count["unknown"] and judged else "",
    )
    told = ", ".join(filter(None, parts))
    return form.Verdict(
        kind, sentence, f"{told}." if told else "", tag, count["worse"], count["better"], count["same"],
        count["unknown"], acknowledged, len(left), len(doubtful), deciding(doubtful) if doubtful else "",
    )  # fmt: skip


def _heat(state: WebState, since: _Since, became: Sequence[_State]) -> form.Heat:
    """Versions at even distances from a few before the verdict begins up to the newest one, of those that
    have a value of one of the rows."""
    main = state.there_main
    wanted = [(one.group, one.row) for one in became if main[one.row].any()][: HEAT[0]]
    every = state.measured_main[main[[row for _, row in wanted]].any(axis=0)]
    first = int(np.searchsorted(every, since.position)) - _BEFORE
    own = every[max(0, min(first, len(every) - HEAT[1])) :]
    apart = np.linspace(0, len(own) - 1, min(HEAT[1], len(own))).astype(int)
    positions = own[list(dict.fromkeys(apart.tolist()))]
    shown_rows = [one for one in wanted if state.there[one[1], positions].any()]
    return form.Heat([state.ref(int(one)) for one in positions], rows(state, shown_rows, positions, 1))


def _benchmarks(state: WebState, became: Sequence[_State], reported: Reported) -> list[form.Benchmark]:
    """What stands for each command, with all its workloads in one line; the worst first."""
    main = state.there_main
    lines: defaultdict[SeriesKey, list[_State]] = defaultdict(list)
    for one in became:
        key = state.table.keys[one.row]
        if main[one.row].any():
            own = key.configuration
            place = key.location.replace(own.benchmark, own.args, 1) if own.benchmark else key.location
            lines[key._replace(configuration=own._replace(workload=""), location=place)].append(one)
    families = shortest(key.configuration for key in lines)
    found = []
    for family, members in lines.items():
        key = members[0].group.key
        whole = is_whole(key)
        if len(members) > 1:
            name = families[family.configuration] if whole else name_of(family, families)
            name = f"{name} ({plural(len(members), 'workload')})"
        else:
            name = state.names[key.configuration] if whole else name_of(key, state.names)
        told = [_member(state, one, reported) for one in members]
        metric = words_of(key) if whole else key.configuration.collector
        found.append(form.Benchmark(name, metric, told, group_of(key.configuration)))
    return found


def _member(state: WebState, one: _State, reported: Reported) -> form.Member:
    values, places = spark(state, one.row, state.points_main(one.row), SPARK)
    own = one.group.key.configuration
    parts = [other for other in state.of_configuration[own] if other != one.group.id]
    return form.Member(
        listed(state, one.group), state.machine_of(one.row), one.kind,
        shown(state, one.left[0], reported) if one.left else None, values, places, parts[:PARTS],
    )  # fmt: skip


PLAIN: Final = ("site", "history", "series", "changes", "overview", "grid", "coverage")
"""The pieces of which there is one."""
_ID: Final = "[0-9a-f]{12}"
_NUMBER: Final = r"0|[1-9]\d{0,8}"
_NAME: Final = re.compile(
    rf"(?P<plain>{'|'.join(PLAIN)})"
    rf"|(?P<chunk>commits|values)/(?P<number>{_NUMBER})"
    rf"|series/(?P<id>{_ID})(?:/(?P<piece>{_NUMBER}))?"
    rf"|explained/(?P<explained>[0-9a-f]{{40,64}}|HEAD)"
    rf"|compare/(?P<pair>[^/\s]{{1,400}})"
    rf"|message/(?P<version>[^/\s]{{1,200}})",
    re.ASCII,
)


@dataclass(frozen=True)
class Pieces:
    """The pieces of one state. :ivar name: of the state. :ivar served: whether a server answers.

    :ivar reported: of which pairs of versions there is a comparison; of all where a server answers.
    """

    state: WebState
    name: str
    served: bool = True
    reported: Reported = lambda pair: True

    def piece(self, name: str) -> form.AnyPiece:
        """The piece of that name.

        :raises ProfileNotFound: if there is none. :raises PerunError: if what it is of cannot be read.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            hint = "docs/dashboard-api.md has their names"
            raise ProfileNotFound(f"there is no piece {name[:100]!r}", hint)
        state = self.state
        if found["plain"]:
            return self._plain(found["plain"])
        if found["chunk"]:
            number = int(found["number"])
            if number * CHUNK >= len(state.commits.versions):
                raise ProfileNotFound(f"there is no chunk {number} of versions")
            return commits(state, number) if found["chunk"] == "commits" else values(state, number)
        if found["piece"]:
            return points_piece(state, found["id"], int(found["piece"]))
        if found["id"]:
            return series_page(state, found["id"], self.reported)
        if found["explained"]:
            return explained(state, found["explained"])
        if found["pair"]:
            from perun.web.data.comparing import compare

            return compare(state, found["pair"])
        return message(state.repo, found["version"])

    def points(self, series: str, first: int, last: int) -> form.Points:
        """The points of a series at positions `first` to `last`, both included.

        :raises ProfileNotFound: if there is no such series.
        """
        return points(self.state, series, first, last)

    def _plain(self, name: str) -> form.AnyPiece:
        state = self.state
        match name:
            case "site":
                return site(state, name=self.name, served=self.served)
            case "history":
                return history(state)
            case "series":
                return series_list(state)
            case "changes":
                return change_list(state, self.reported)
            case "overview":
                return overview(state, self.reported)
            case "grid":
                return grid(state)
            case _:
                return coverage(state)


def encoded(piece: form.AnyPiece) -> bytes:
    """The piece as JSON."""
    try:
        return msgspec.json.encode(piece)
    except UnicodeEncodeError:  # half of a character, which is no text of UTF-8
        return json.dumps(msgspec.to_builtins(piece)).encode()


def schema() -> dict[str, Any]:
    """The JSON schema of all pieces, each a definition of its own, as `docs/schemas` has it."""
    kinds = get_args(form.AnyPiece)
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for kind in kinds:
        definitions[kind.__name__]["properties"]["schema"] = {"const": _name_of(kind)}
    for one in definitions.values():
        if "description" in one:
            one["description"] = cleandoc(one["description"])  # as Python 3.13 keeps docstrings
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:perun:web:1",
        "title": "perun.web/1",
        "description": "The pieces of the dashboard. Keys are only ever added to them.",
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds],
        "$defs": definitions,
    }


def _name_of(kind: type) -> str:
    """What the pieces of a kind have as their schema."""
    found: str = next(one.default for one in msgspec.structs.fields(kind) if one.name == "schema")
    return found
