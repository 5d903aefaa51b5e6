"""What `perun changes` answers: for each version that changed something its steps, or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from perun.cli.answers.data import write_json
from perun.cli.answers.measured import SHORT
from perun.cli.answers.steps import entry_data
from perun.cli.session import Session
from perun.cli.table import one_line, width
from perun.porcelain.acknowledged import Acknowledged
from perun.porcelain.changes.data import Changes, Gone, Level, SeriesKey, Step, VersionChanges
from perun.porcelain.changes.detecting import FEWEST
from perun.porcelain.changes.labels import entry_of, remark_of, result_of
from perun.porcelain.trend import text_of
from perun.profile.amounts import readable_pair
from perun.wording import listed, plural

MOST: Final = 12
"""Steps of one version that are printed, unless the user asks for more."""


def answer(session: Session, found: Changes, acknowledged: Acknowledged, *, every: bool) -> None:
    """Print each version that changed something, the newest first. :param every: all steps of each."""
    measured = len(found.history.measured)
    for number, one in enumerate(reversed(found.found)):
        if number:
            session.say()
        _version(session, one, acknowledged, every)
    if not measured:
        session.say(f"nothing is registered in {plural(len(found.history.versions), 'version')}")
        session.note("hint: measure versions of the past with: perun run --crawl-parents matrix")
    elif not found.found:
        session.say(f"no change in {found.series} series of {plural(measured, 'version')}")
    for note in _notes(found, measured):
        session.note(note)
    for message in found.history.damaged:
        session.warn(message)


def write_data(session: Session, found: Changes, acknowledged: Acknowledged) -> None:
    """Write it as JSON, schema `perun.changes/1`."""
    write_json(
        session.out,
        {
            "schema": "perun.changes/1",
            "versions": len(found.history.versions),
            "measured": len(found.history.measured),
            "series": found.series,
            "short": found.short,
            "spikes": found.spikes,
            "damaged": found.history.damaged,
            "changes": [_version_data(one, acknowledged) for one in found.found],
        },
    )


def _notes(found: Changes, measured: int) -> Iterator[str]:
    left = len(found.history.versions) - measured
    if measured and left:
        yield f"note: {left} of {plural(len(found.history.versions), 'version')} have no profile"
    if found.short:
        yield f"note: {found.short} series of fewer than {FEWEST} versions could not be judged"
    if found.spikes:
        yield f"note: {plural(found.spikes, 'point')} far from the others: a spike, and no change"


def _version(session: Session, one: VersionChanges, acknowledged: Acknowledged, every: bool) -> None:
    version = one.version
    name = session.paint(version.checksum[:SHORT], "yellow")
    session.say(f"{name} {version.date[:10]} {one_line(version.subject)} ({one_line(version.author)})")
    if len(one.possible) > 1:
        others = one.possible[:-1]
        shown = listed([other.checksum[:SHORT] for other in others], 4)
        session.say(f"  or one of {plural(len(others), 'version')} before it that were not measured: {shown}")
    conditions = sorted({name for step in one.steps for name in step.conditions})
    if conditions:
        session.say(f"  or no version at all: the machine changed then: {listed(conditions, 4)}")
    steps = one.steps if every else one.steps[:MOST]
    for title, group in groupby(sorted(steps, key=_title), key=_title):
        session.say(f"  {one_line(title)}")
        _steps(session, one, list(group), acknowledged)
    if len(steps) < len(one.steps):
        session.say(f"  and {len(one.steps) - len(steps)} more; show them with: --all")
    _gone(session, one.gone, every)


def _title(step: Step) -> str:
    configuration = step.series.configuration
    return f"{text_of(configuration)} ({configuration.collector})"


def _steps(
    session: Session, one: VersionChanges, steps: Sequence[Step], acknowledged: Acknowledged
) -> None:
    rows = [_cells(step) for step in steps]
    rooms = [max(width(row[place]) for row in rows) for place in range(3)]
    for (location, ratio, amounts), step in zip(rows, steps, strict=True):
        colour = "red" if step.is_degradation else "green"
        entry = entry_of(one, step, acknowledged)
        cells = (
            location + " " * (rooms[0] - width(location)),
            session.paint(ratio, colour) + " " * (rooms[1] - width(ratio)),
            amounts + " " * (rooms[2] - width(amounts)),
            one_line(", ".join(filter(None, (remark_of(step), entry.text if entry else "")))),
        )
        session.say(f"    {'  '.join(cells)}".rstrip())


def _cells(step: Step) -> tuple[str, str, str]:
    """Where, how many times, and from what to what."""
    before, after = readable_pair(step.before.value, step.after.value, step.series.unit)
    interval = "" if "exact" in step.votes else f" [{step.low:.3g}, {step.high:.3g}]"
    return one_line(step.series.location), f"{step.ratio:.3g}x{interval}", f"{before} -> {after}"


def _gone(session: Session, gone: Sequence[Gone], every: bool) -> None:
    for appeared, text in ((False, "went away"), (True, "came")):
        names = [one_line(one.series.location) for one in gone if one.appeared == appeared]
        if names:
            session.say(f"  {text}: {listed(names, len(names) if every else 5)}")


def _version_data(one: VersionChanges, acknowledged: Acknowledged) -> dict[str, Any]:
    return {
        "version": one.version.checksum,
        "date": one.version.date,
        "author": one.version.author,
        "subject": one.version.subject,
        "since": one.since.checksum,
        "possible": [other.checksum for other in one.possible],
        "steps": [
            {**_step_data(step), "acknowledged": entry_data(entry_of(one, step, acknowledged))}
            for step in one.steps
        ],
        "gone": [{**_key_data(own.series), "value": own.last} for own in one.gone if not own.appeared],
        "came": [{**_key_data(own.series), "value": own.last} for own in one.gone if own.appeared],
    }


def _step_data(step: Step) -> dict[str, Any]:
    return {
        **_key_data(step.series),
        "ratio": step.ratio,
        "interval": [step.low, step.high],
        "degradation": step.is_degradation,
        "result": result_of(step).name,
        "before": _level_data(step.before),
        "after": _level_data(step.after),
        "votes": list(step.votes),
        "taken_back": step.taken_back,
        "takes_back": step.takes_back,
        "moved_with": list(step.moved_with),
        "conditions": list(step.conditions),
    }


def _level_data(level: Level) -> dict[str, Any]:
    return {"value": level.value, "interval": [level.low, level.high], "versions": level.points}


def _key_data(key: SeriesKey) -> dict[str, Any]:
    return {
        **key.configuration._asdict(),
        "machine": key.machine,
        "location": key.location,
        "type": key.type,
        "subtype": key.subtype,
        "unit": key.unit,
        "exact": key.exact,
        "larger_is_better": key.larger_is_better,
    }
