"""`perun changes`."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from perun.cli.answers.changes import lines_of
from perun.cli.answers.check import FORMATS, answer_in
from perun.cli.answers.check.wording import Page, plain
from perun.cli.answers.data import SHORT, finite, write_json
from perun.cli.answers.steps import entry_data
from perun.cli.commands.trend import complete_series
from perun.cli.options import AnswerOptions, series_option, since_option, version_argument, with_options_of
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import DamagedStore, UsageError
from perun.core.wording import listed, plural
from perun.history.acknowledged import Acknowledgements
from perun.history.changes.data import (
    ChangePoint,
    Changes,
    Drift,
    Segment,
    SeriesEnd,
    SeriesKey,
    VersionChanges,
)
from perun.history.changes.finding import changes as run
from perun.history.changes.finding import deciding
from perun.history.changes.finding import undecided as finding_undecided
from perun.history.check.report import (
    INCONCLUSIVE,
    LEVELS,
    NOTHING_COMPARED,
    Comparison,
    MethodResult,
    VersionReport,
    is_degradation,
)
from perun.history.trend import text_of
from perun.measurement.difference import geometric_mean, mean_of
from perun.measurement.verdict import bounded
from perun.profile.amounts import percent, readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Configuration, ProfileHeader, shortest
from perun.profile.helpers import ProfileInfo
from perun.repository.lookup import ends_of

# What `perun changes` found in the words of `perun check`, whose formats show it.

METHOD: Final = "change_points"
"""What found the changes, where a format names the method."""


def fails(found: Changes, acknowledged: Acknowledgements, level: str) -> bool:
    """Whether `--fail-on level` fails on one of the steps."""
    return any(
        is_degradation(_label(step), level) and one.entry_of(step, acknowledged) is None
        for one in found.found
        for step in (*one.steps, *one.doubtful)
    )


def _label(step: ChangePoint) -> PerformanceChange:
    """What a gate takes the step for: at most a Maybe where a later version takes it back, where cost moved
    between functions, or where it is of a part, as then nothing is slower in the end, or something else says
    so."""
    if step.decides and (step.reverted_by or step.moved_with or not step.leads):
        return PerformanceChange(1 if step.verdict.value > 0 else -1)
    return step.verdict


def undecided(found: Changes, acknowledged: Acknowledgements) -> bool:
    """Whether of one of the steps it is unknown whether a version brought it."""
    return any(
        step.verdict is PerformanceChange.Unknown and one.entry_of(step, acknowledged) is None
        for one in found.found
        for step in one.doubtful
    )


def reports(found: Changes, acknowledged: Acknowledgements) -> Iterator[VersionReport]:
    """The versions that changed something, the newest first, after the newest measured one with what each
    configuration was searched for without a change."""
    measured = found.history.measured
    if measured and found.series > found.short:
        yield VersionReport(found.history.versions[measured[-1]], tuple(_unchanged(found)))
    for one in reversed(found.found):
        if one.steps or one.doubtful:
            yield VersionReport(one.version, tuple(_comparisons(one, acknowledged)))


def _unchanged(found: Changes) -> Iterator[Comparison]:
    changed = {step.series.configuration for one in found.found for step in (*one.steps, *one.doubtful)}
    for configuration in dict.fromkeys(key.configuration for key in found.history.keys):
        if configuration not in changed:
            change = DegradationInfo(PerformanceChange.NoChange, text_of(configuration), "-", "-")
            yield Comparison(_info(configuration), results=(MethodResult(METHOD, (change,)),))


def _comparisons(one: VersionChanges, acknowledged: Acknowledgements) -> Iterator[Comparison]:
    groups: defaultdict[Configuration, list[ChangePoint]] = defaultdict(list)
    for step in (*one.steps, *one.doubtful):
        groups[step.series.configuration].append(step)
    notes = _report_notes(one)
    for configuration, steps in groups.items():
        entries = {step.series.location: one.entry_of(step, acknowledged) for step in steps}
        yield Comparison(
            _info(configuration),
            baseline_version=one.since,
            results=(MethodResult(METHOD, tuple(change_of(step, _label(step)) for step in steps)),),
            notes=notes,
            acknowledged={place: entry for place, entry in entries.items() if entry is not None},
        )


def _report_notes(one: VersionChanges) -> tuple[str, ...]:
    others = [version.checksum[:SHORT] for version in one.possible[:-1]]
    if not others:
        return ()
    return (f"or one of the versions before it that were not measured: {listed(others, 4)}",)


def _info(configuration: Configuration) -> ProfileInfo:
    collector, cmd, args, workload, postprocessors = configuration
    return ProfileInfo("", "", ProfileHeader("", cmd, args, workload, collector, postprocessors), 0)


def change_of(step: ChangePoint, label: PerformanceChange | None = None) -> DegradationInfo:
    """The step as `perun check` tells of changes. :param label: another word than its own."""
    before, after = readable_pair(*step.values, step.series.unit)
    exact = step.low == step.high
    return DegradationInfo(
        label or step.verdict,
        step.series.location,
        before,
        after,
        "ratio",
        step.ratio,
        interval=None if exact else (step.low, step.high),
        sizes=(step.before.samples, step.after.samples),
        rule=", ".join(filter(None, (step.reason, step.remark))),
        values=step.values,
        unit=step.series.unit,
    )


# What `perun changes` answers: for each version that changed something its steps, or JSON.

MOST: Final = 12
"""Steps of one version that are printed, unless the user asks for more."""
Names = Mapping[Configuration, str]
"""The shortest names of all benchmarks of the history, which are found once."""


def write_text(session: Session, found: Changes, acknowledged: Acknowledgements, *, every: bool) -> None:
    """Print each version that changed something, the newest first.

    :param every: also what is doubtful, and what is of parts alone, such as functions.
    """
    measured = len(found.history.measured)
    every = every or session.verbosity > 0
    told = [one for one in reversed(found.found) if every or _leading(found, one)]
    names = shortest(key.configuration for key in found.history.keys)
    for number, one in enumerate(told):
        if number:
            session.say()
        _version(session, found, one, acknowledged, names, every)
    if not measured:
        session.say(f"nothing is registered in {plural(len(found.history.versions), 'version')}")
        session.note("hint: measure versions of the past with: perun run --crawl-parents matrix")
    elif not told:
        session.say(f"no change in {found.series} series of {plural(measured, 'version')}")
    for note in _notes(found, measured, names, every):
        session.note(note)
    for message in found.history.damaged:
        session.warn(message)


def _leading(found: Changes, one: VersionChanges) -> bool:
    leading = found.history.leading if one.gone else frozenset()
    return any(step.leads for step in one.steps) or any(own.series in leading for own in one.gone)


def write_data(session: Session, found: Changes, acknowledged: Acknowledgements) -> None:
    """Write it as JSON, schema `perun.changes/2`."""
    write_json(
        session.out,
        {
            "schema": "perun.changes/2",
            "versions": len(found.history.versions),
            "measured": len(found.history.measured),
            "series": found.series,
            "short": found.short,
            "damaged": found.history.damaged,
            "changes": [_version_data(one, acknowledged) for one in found.found],
            "drifts": [_drift_data(one) for one in found.drifts],
        },
    )


def _notes(found: Changes, measured: int, names: Names, every: bool) -> Iterator[str]:
    left = len(found.history.versions) - measured
    if measured and left:
        yield f"note: {left} of {plural(len(found.history.versions), 'version')} have no profile"
    if found.short:
        yield f"note: {found.short} series of one version could not be judged"
    for one in found.drifts:
        if one.leads or every:
            what = f"{one.series.location} of {title_of(names, one.series)}"
            yield (
                f"note: {one_line(what)} moved little by little, {percent(one.ratio - 1)} in "
                f"{one.points} versions since {one.since.checksum[:SHORT]}: no single version brought it"
            )
    doubtful = finding_undecided(found.found)
    if doubtful and not every:
        yield (
            f"note: {plural(len(doubtful), 'doubtful change')}, seen once or hardly beyond the noise; "
            f"{one_line(deciding(doubtful))} decides on the most of them; list them with: --all"
        )
    parts = [one for one in found.found if one.steps and not _leading(found, one)]
    if parts and not every:
        count = plural(len(parts), "version")
        yield f"note: {count} changed parts alone, such as functions or system time; list them with: --all"


def _version(
    session: Session,
    found: Changes,
    one: VersionChanges,
    acknowledged: Acknowledgements,
    names: Names,
    every: bool,
) -> None:
    version = one.version
    name = session.paint(version.checksum[:SHORT], "yellow")
    session.say(f"{name} {version.date[:10]} {one_line(version.subject)} ({one_line(version.author)})")
    if len(one.possible) > 1:
        others = one.possible[:-1]
        shown = listed([other.checksum[:SHORT] for other in others], 4)
        session.say(f"  or one of {plural(len(others), 'version')} before it that were not measured: {shown}")
    steps = (*one.steps, *one.doubtful) if every else tuple(step for step in one.steps if step.leads)[:MOST]
    conditions = sorted({name for step in steps for name in step.conditions})
    if conditions:
        session.say(f"  or no version at all: the machine changed then: {listed(conditions, 4)}")
    by_title: dict[str, list[list[ChangePoint]]] = {}
    for family in [[step] for step in steps] if every else _families(steps):
        by_title.setdefault(title_of(names, *(step.series for step in family)), []).append(family)
    for title, families in by_title.items():
        session.say(f"  {one_line(title)}")
        _steps(session, names, one, families, acknowledged)
    left = len(one.steps) - len(steps)
    if left > 0:
        session.say(f"  and {left} more of functions and other parts; show them with: --all")
    leading = found.history.leading
    shown_gone = one.gone if every else [own for own in one.gone if own.series in leading]
    _gone(session, shown_gone, every)


def title_of(names: Names, *keys: SeriesKey) -> str:
    """The shortest name among all benchmarks of the history; of several ones, that of their program."""
    first = keys[0].configuration
    named = shortest([first]) if len(keys) > 1 else names
    return f"{named[first]} ({first.collector})"


def _families(steps: Sequence[ChangePoint]) -> list[list[ChangePoint]]:
    """The steps of one program and place that went the same way, whatever its arguments and workload were."""
    found: dict[object, list[ChangePoint]] = {}
    for step in steps:
        key, own = step.series, step.series.configuration
        way = key.machine, key.location, step.is_degradation, step.remark
        alike = own._replace(args="", workload=""), *way
        found.setdefault(alike if 0 < step.ratio < math.inf else len(found), []).append(step)
    return list(found.values())


def _steps(
    session: Session,
    names: Names,
    one: VersionChanges,
    families: Sequence[Sequence[ChangePoint]],
    acknowledged: Acknowledgements,
) -> None:
    remarks = []
    for own in families:
        known = [entry.text for step in own if (entry := one.entry_of(step, acknowledged))]
        parts = [of_members(names, own) if len(own) > 1 else "", own[0].remark, *dict.fromkeys(known)]
        remarks.append(one_line(", ".join(filter(None, parts))))
    for line in lines_of(session, [family_of(own) for own in families], remarks):
        session.say(f"    {line}")


def of_members(names: Names, family: Sequence[ChangePoint]) -> str:
    """`mean of 3, +10.0 % to +35.0 %: ./app 10, ./app 100, ./app 1000`."""
    low, high = (one(step.ratio for step in family) for one in (min, max))
    members = [title_of(names, step.series) for step in family]
    return f"mean of {len(family)}, {percent(low - 1)} to {percent(high - 1)}: {listed(members, 4)}"


def family_of(family: Sequence[ChangePoint]) -> DegradationInfo:
    """The steps of a family as one change: the geometric mean of their ratios with the interval of it, and
    the mildest of their words."""
    change = change_of(family[0])
    if len(family) == 1:
        return change
    mean = mean_of([(step.ratio, step.low, step.high) for step in family])
    change.rate_degradation = mean.ratio
    change.interval = None if mean.high == math.inf else (mean.low, mean.high)
    old, new = (geometric_mean([step.values[side] for step in family]) for side in (0, 1))
    change.values, change.sizes = (old, new), None
    change.result = min((step.verdict for step in family), key=lambda verdict: abs(verdict.value))
    return change


def _gone(session: Session, gone: Sequence[SeriesEnd], every: bool) -> None:
    for appeared, text in ((False, "went away"), (True, "came")):
        names = [one_line(one.series.location) for one in gone if one.appeared == appeared]
        if names:
            session.say(f"  {text}: {listed(names, len(names) if every else 5)}")


def _version_data(one: VersionChanges, acknowledged: Acknowledgements) -> dict[str, Any]:
    return {
        "version": one.version.checksum,
        "date": one.version.date,
        "author": one.version.author,
        "subject": one.version.subject,
        "since": one.since.checksum,
        "possible": [other.checksum for other in one.possible],
        "steps": [
            {**step_data(step), "acknowledged": entry_data(one.entry_of(step, acknowledged))}
            for step in (*one.steps, *one.doubtful)
        ],
        "gone": [{**key_data(own.series), "value": own.last} for own in one.gone if not own.appeared],
        "came": [{**key_data(own.series), "value": own.last} for own in one.gone if own.appeared],
    }


def step_data(step: ChangePoint) -> dict[str, Any]:
    """A step as JSON, but for what acknowledges it."""
    low, high = bounded(step.low, step.high) or (None, None)
    return {
        **key_data(step.series),
        "ratio": finite(step.ratio),
        "ratio_low": finite(low),
        "ratio_high": finite(high),
        "verdict": step.verdict.name,
        "reason": step.reason,
        "decides": step.decides,
        "headline": step.leads,
        "values": list(step.values),
        "degradation": step.is_degradation,
        "before": _level_data(step.before),
        "after": _level_data(step.after),
        "votes": list(step.votes),
        "taken_back": step.reverted_by,
        "takes_back": step.reverts,
        "moved_with": list(step.moved_with),
        "conditions": list(step.conditions),
    }


def _drift_data(one: Drift) -> dict[str, Any]:
    return {
        **key_data(one.series),
        "ratio": one.ratio,
        "versions": one.points,
        "since": one.since.checksum,
        "headline": one.leads,
    }


def _level_data(level: Segment) -> dict[str, Any]:
    return {
        "value": level.value,
        "low": level.low,
        "high": level.high,
        "n": level.samples,
        "versions": level.points,
    }


def key_data(key: SeriesKey) -> dict[str, Any]:
    """What a series is, as JSON."""
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


_FORMATS = tuple(name for name in FORMATS if name != "manual")


@click.command()
@version_argument("versions", metavar="[RANGE]", text="End with this version; HEAD by default.")
@series_option(complete_series)
@since_option()
@click.option(
    "--effect", type=click.FloatRange(0, 10), default=1.0, show_default=True, metavar="PERCENT",
    help="The least change that is told, in percent of the level before.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True,
    help="All series that a version changed, also of parts such as functions, and doubtful changes.",
)  # fmt: skip
@with_options_of(AnswerOptions, "form", format={"type": click.Choice(_FORMATS)})
@click.option(
    "--fail-on", type=click.Choice(tuple(LEVELS)),
    help="Exit with code 1 on a degradation that no later version takes back, and that is not acknowledged; "
    "maybe: also on a possible one; severe: only on those; inconclusive: and with code "
    f"{INCONCLUSIVE} where the machine changed with it. Any of them: with code {NOTHING_COMPARED} where no "
    "series could be judged.",
)  # fmt: skip
@click.pass_obj
def changes(
    session: Session,
    /,
    versions: str | None,
    pattern: str,
    since: str | None,
    effect: float,
    every: bool,
    form: AnswerOptions,
    fail_on: str | None,
) -> int:
    """Find the versions that changed the level of what was measured.

    Where `perun check` compares two versions, this looks at each series of the whole history along first
    parents: five detectors vote on where its level changed, levels of a few versions count as well, and the
    slow drift of a machine does not; every change has an interval. RANGE is `A..B`, or the newest version;
    HEAD by default.

    \b
    perun changes
    perun changes v1.0..HEAD
    perun changes --series 'sort*' --since 2026-01-01
    perun changes v1.0.. --fail-on degradation --format markdown
    """
    ends = ends_of(versions or "")
    if ends and since is not None:
        raise UsageError(f"{versions} and --since contradict each other", "give one of them")
    start, end = ends or ("", versions)
    name = form.named or "text"
    acknowledged = Acknowledgements.load(session.repository)
    with session.progress(0, "reading versions") as bar:
        found = run(
            session.repository, end or None, start or since, pattern=pattern, effect=effect / 100,
            progress=lambda what, done, total: bar.update(what, done, total),
        )  # fmt: skip
    command = _command(versions, pattern, since)
    with form.opened(session):
        _answer(session, found, acknowledged, name, every=every, command=command)
    if form.path:
        count = sum(len(one.steps) for one in found.found)
        session.say(f"{plural(count, 'change')} found; see {one_line(str(form.path))}")
    if name not in ("text", "json"):
        for message in found.history.damaged:
            session.warn(message)
    return _code(found, acknowledged, fail_on)


def _command(versions: str | None, series: str, since: str | None) -> str:
    """The command behind `perun` that asks again."""
    words = ["changes", *filter(None, [versions]), *(["--series", series] if series else [])]
    return shlex.join([*words, *(["--since", since] if since else [])])


def _answer(
    session: Session, found: Changes, acknowledged: Acknowledgements, name: str, *, every: bool, command: str
) -> None:
    if name == "json":
        write_data(session, found, acknowledged)
    elif name == "text":
        write_text(session, found, acknowledged, every=every)
    else:
        answer = answer_in(name, Page(session.out, command, plain, describe=_description))
        for report in reports(found, acknowledged):
            answer.version(report)
        answer.end()


def _description(method: str) -> str:
    return "Finds the versions that changed the level of a series, by the vote of several detectors."


def _code(found: Changes, acknowledged: Acknowledgements, fail_on: str | None) -> int:
    """The exit code, as of `perun check`."""
    if fail_on is not None and fails(found, acknowledged, fail_on):
        return 1
    if found.history.damaged:
        return DamagedStore.exit_code
    if fail_on is not None and not found.says:
        return NOTHING_COMPARED
    return INCONCLUSIVE if fail_on == "inconclusive" and undecided(found, acknowledged) else 0
