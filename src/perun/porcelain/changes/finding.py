"""The verb: changes of level of all series of a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from perun.errors import ProfileNotFound
from perun.measurement.difference import Rules
from perun.models.change_points import voting
from perun.porcelain import walking
from perun.porcelain.changes import history
from perun.porcelain.changes.data import Changes, History, SeriesKey, Step, VersionChanges
from perun.porcelain.changes.detecting import detect
from perun.porcelain.changes.events import by_version
from perun.porcelain.changes.history import Points
from perun.porcelain.changes.remembered import Remembered
from perun.porcelain.repository import Repository
from perun.porcelain.trend import rank, text_of
from perun.store import known_steps
from perun.store.known_steps import KnownStep
from perun.wording import listed

Progress = Callable[[str, int, int], None]
"""Called with what is done, `versions` or `series`, how many are done, and of how many."""
READING: Final = "versions"
DETECTING: Final = "series"


def changes(
    repo: Repository,
    revision: str | None = None,
    since: str | None = None,
    *,
    pattern: str = "",
    effect: float = voting.EFFECT,
    progress: Progress = lambda what, done, total: None,
) -> Changes:
    """The versions along first parents that changed the level of a series, the oldest first.

    :param revision: the newest version, HEAD if None.
    :param since: as :func:`perun.porcelain.walking.since`.
    :param pattern: which series, as :func:`perun.porcelain.trend.rank`, by `COLLECTOR COMMAND LOCATION`.
    :param effect: the least change, as a share of the level before.
    :raises ProfileNotFound: if there are profiles, and no series matches.
    :raises VersionControlError: if there is no such version.
    """
    read = history.read(repo, revision, lambda done, total: progress(READING, done, total))
    head = repo.version(revision)
    # Of an older version less is known: its steps would take the place of those that are known now.
    keeps = not pattern and effect == voting.EFFECT
    keeps = keeps and (revision is None or repo.version(None) in {one.checksum for one in read.versions})
    points = history.Points(repo, head, (one.checksum for one in read.versions))
    found = found_in(repo, _matching(read, pattern), points, effect, progress, keeps=keeps)
    if since is None:
        return found
    later = {one.checksum for one in walking.since(repo, reversed(read.versions), since)}
    return found._replace(found=[one for one in found.found if one.version.checksum in later])


def found_in(
    repo: Repository, read: History, points: Points, effect: float, progress: Progress, *, keeps: bool
) -> Changes:
    """The versions of a history that changed the level of a series, as :func:`changes`.

    :param points: of its versions. :param keeps: keep the steps by version, for lists.
    """
    rules = Rules.of(repo.config.section("degradation"))
    remembered = Remembered(repo, effect, rules)
    told = partial(progress, DETECTING)
    found = detect(read, effect, rules, remembered, points, told)
    every = by_version(read, found.steps)
    if keeps:
        known_steps.keep(repo.store.cache, {one.checksum for one in read.versions}, _known(every))
    return Changes(every, read, len(read.keys), found.short, tuple(found.drifts), found.says)


def _known(every: Sequence[VersionChanges]) -> dict[str, list[KnownStep]]:
    """The steps as lists of versions show them."""
    found = {}
    for one in every:
        possible = tuple(version.checksum for version in one.possible)
        steps = [_known_step(step, possible) for step in one.steps]
        if steps:
            found[one.version.checksum] = steps
    return found


def _known_step(step: Step, possible: tuple[str, ...]) -> KnownStep:
    key = step.series
    return KnownStep(
        key.location, f"{text_of(key.configuration)} ({key.configuration.collector})",
        step.ratio, step.low, step.high, *step.values, key.unit, step.verdict.name, step.leads, possible,
        step.taken_back, step.takes_back,
    )  # fmt: skip


def _matching(read: History, pattern: str) -> History:
    """The history of the series that were measured in it and match the pattern."""
    import numpy as np

    measured = [number for number, row in enumerate(np.isfinite(read.values)) if row.any()]
    texts = {number: _names(read.keys[number])[0] for number in measured}
    ranks = {number: rank(_names(read.keys[number]), pattern) for number in measured}
    best = max(ranks.values(), default=0)
    rows = [number for number, own in ranks.items() if own == best > 0]
    if texts and not rows:
        raise ProfileNotFound(
            f"no series matches {pattern!r}", f"there are: {listed(sorted(texts.values()), 5)}"
        )
    cells = tuple(one[rows] for one in read.cells)
    return read._replace(keys=[read.keys[number] for number in rows], cells=cells)


def _names(key: SeriesKey) -> tuple[str, ...]:
    text, collector = text_of(key.configuration), key.configuration.collector
    return f"{collector} {text} {key.location}", key.location, f"{text} ({collector})"
