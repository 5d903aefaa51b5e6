"""The overview: what became of the project since the last tag, and what changed lately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from perun.models.change_points import voting
from perun.porcelain.web import data
from perun.porcelain.web.changed import Reported, net_ratio, shown, worst_first
from perun.porcelain.web.grid import rows
from perun.porcelain.web.naming import title_of
from perun.porcelain.web.series import listed, spark
from perun.porcelain.web.state import Group, Placed, State
from perun.profile.amounts import percent

CHANGES: Final = 30
HEAT: Final = (30, 60)
"""Rows and versions of the heat map."""
_BEFORE: Final = 6
"""Versions of it before the tag."""
MULTIPLES: Final = 24
SPARK: Final = 60
_LEAST: Final = 2 * voting.FEWEST


class _Since(NamedTuple):
    """Where the verdict begins. :param name: of the tag, empty for the whole history."""

    name: str
    position: int


class _State(NamedTuple):
    """What became of a row of the table since then.

    :param kind: as of :class:`data.Verdict`. :param ratio: of the levels now and then.
    """

    group: Group
    row: int
    kind: str
    ratio: float
    acknowledged: bool


def overview(state: State, reported: Reported) -> data.Overview:
    """The piece `overview`. :param reported: of which pairs there is a comparison."""
    since = _since(state)
    later = [
        one
        for one in state.changes
        if one.step.leads and state.place_of(one.of.version.checksum) > since.position
    ]
    became = _became(state, since, later)
    order = sorted(became, key=_rank)
    # Of a series on several machines the one where it became worst.
    worst: dict[str, _State] = {}
    for one in order:
        worst.setdefault(one.group.id, one)
    whole = list(worst.values())
    main = np.any(state.there_main, axis=1)
    chosen = later if later and since.name else [one for one in state.changes if one.step.leads][:CHANGES]
    changes = worst_first(chosen)[:CHANGES]
    return data.Overview(
        _verdict(state, since, whole),
        [shown(state, one, reported, pictured=True) for one in changes],
        len(chosen),
        _heat(state, since, order),
        [_multiple(state, one) for one in whole if main[one.row]][:MULTIPLES],
    )


def _since(state: State) -> _Since:
    """The newest tag of the main line with as many measured versions behind it as tell a level; else the
    beginning. Of the others nothing could be said but that it cannot be judged."""
    measured = state.measured_main
    last = measured[-voting.FEWEST] if len(measured) >= voting.FEWEST else -1
    main = [(name, place) for name, place in state.commits.tags if state.lines[place] == 0 and place < last]
    return _Since(*main[-1]) if main else _Since("", -1)


def _became(state: State, since: _Since, later: Sequence[Placed]) -> list[_State]:
    """What became of each row of the table that stands for what was measured; parts of it are told
    elsewhere."""
    steps: defaultdict[int, list[Placed]] = defaultdict(list)
    for one in reversed(later):
        steps[state.table.row[one.step.series]].append(one)
    positions = state.measured_main
    there = state.there_main
    leading = state.found.history.leading
    judged = (there.sum(axis=1) >= _LEAST) & (there[:, positions > since.position].sum(axis=1) > 0)
    return [
        _row_state(one, row, steps[row], judged=bool(judged[row]))
        for one in state.groups.values()
        for row in one.rows
        if state.table.keys[row] in leading
    ]


def _row_state(group: Group, row: int, steps: Sequence[Placed], *, judged: bool) -> _State:
    if not judged:
        return _State(group, row, "unknown", 1.0, False)
    if not steps:
        return _State(group, row, "same", 1.0, False)
    ratio = net_ratio(steps)
    if any(one.step.conditions for one in steps):
        return _State(group, row, "unknown", ratio, False)
    if abs(np.log(ratio)) < np.log1p(voting.EFFECT):
        return _State(group, row, "same", ratio, False)
    kind = "worse" if (ratio > 1) != group.key.larger_is_better else "better"
    worse = [one for one in steps if one.step.is_degradation and not one.step.taken_back]
    return _State(group, row, kind, ratio, bool(worse) and all(one.entry is not None for one in worse))


_ORDER: Final[Mapping[str, int]] = {"worse": 0, "better": 1, "unknown": 2, "same": 3}


def _rank(one: _State) -> tuple[bool, int, float]:
    """What got worse and is not acknowledged first; then as the list of all series is ordered."""
    return one.kind == "worse" and one.acknowledged, _ORDER[one.kind], -abs(float(np.log(one.ratio)))


def _verdict(state: State, since: _Since, became: Sequence[_State]) -> data.Verdict:
    count = {kind: sum(one.kind == kind for one in became) for kind in _ORDER}
    acknowledged = sum(one.kind == "worse" and one.acknowledged for one in became)
    tag = None
    if since.name:
        tag = data.Tag(since.name, since.position, int(state.commits.dates[since.position]))
    name = f"since {since.name}" if since.name else "in all versions"
    judged = count["worse"] + count["better"] + count["same"]
    kind, sentence = "unknown", "No version has a profile yet."
    if became and not judged:
        measured = f"measured {name}" if since.name else "measured"
        sentence = f"Too few versions are {measured} to tell a change from noise."
    elif count["worse"] > acknowledged:
        kind = "worse"
        worst = became[0]
        commands = {one.group.key.configuration for one in became}
        where = worst.group.key.location if len(commands) == 1 else title_of(worst.group.key)
        sentence = (
            f"{count['worse'] - acknowledged} of {judged} series got worse {name}, most "
            f"{where}: {percent(worst.ratio - 1)}."
        )
    elif judged:
        kind = "better" if count["better"] else "same"
        sentence = (
            f"Nothing got worse {name}, and {count['better']} of {judged} series got better."
            if count["better"] else f"Nothing changed {name} in {judged} series."
        )  # fmt: skip
    parts = (
        f"{count['better']} got better" if count["better"] and kind == "worse" else "",
        f"{count['same']} did not change" if count["same"] and kind != "same" else "",
        f"{acknowledged} got worse, which is acknowledged" if acknowledged else "",
        f"{count['unknown']} cannot be judged" if count["unknown"] and judged else "",
    )
    told = ", ".join(filter(None, parts))
    return data.Verdict(
        kind, sentence, f"{told}." if told else "", tag, count["worse"], count["better"], count["same"],
        count["unknown"], acknowledged,
    )  # fmt: skip


def _heat(state: State, since: _Since, order: Sequence[_State]) -> data.Heat:
    """Versions at even distances from a few before the verdict begins up to the newest one."""
    every = state.measured_main
    first = int(np.searchsorted(every, since.position)) - _BEFORE
    own = every[max(0, min(first, len(every) - HEAT[1])) :]
    apart = np.linspace(0, len(own) - 1, min(HEAT[1], len(own))).astype(int)
    positions = own[list(dict.fromkeys(apart.tolist()))]
    there = np.any(state.there[:, positions], axis=1)
    wanted = [(one.group, one.row) for one in order if there[one.row]][: HEAT[0]]
    return data.Heat([state.ref(int(one)) for one in positions], rows(state, wanted, positions, 1))


def _multiple(state: State, one: _State) -> data.Multiple:
    values, places = spark(state, one.row, state.points_main(one.row), SPARK)
    return data.Multiple(listed(state, one.group), values, places, one.kind)
