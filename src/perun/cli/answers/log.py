"""What `perun log` answers, as text and as JSON; without click, so that it comes at once."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perun.cli.answers import data as measured
from perun.cli.answers.data import TYPE_COLOURS, Placeholder, parse_format
from perun.cli.answers.steps import VersionSteps
from perun.cli.session import Session
from perun.cli.table import clean, one_line, width
from perun.core.errors import DamagedStore, UsageError
from perun.core.wording import plural
from perun.history.log import LogEntry, LogValue
from perun.history.log import log as run
from perun.measurement import present
from perun.measurement.verdict import is_change, severity
from perun.profile.head import Configuration, shortest
from perun.store.summaries import Summary

if TYPE_CHECKING:
    from perun.cli.graph import ChangeKind

PAGED = ("always", "only-log")
TAGS = (
    *("checksum", "stats", "changes", "desc", "date", "author", "email", "parents"),
    *("value", "difference", "steps"),
)
VALUES = ("value", "difference")
"""Tags for which the values of the versions are read."""
TYPES = tuple(
    (name, letter, TYPE_COLOURS[name]) for name, letter in (("memory", "m"), ("mixed", "x"), ("time", "t"))
)
"""Types of profiles that `%stats%` counts (manual 12), with the letter of its header and the colour; others
are only counted among all."""
NO_PROFILES = "--no--profiles--"
DAMAGED = "--damaged--"
FLUSHED = 500
"""Lines written at once; the first ones go out alone, so that a reader sees them at once."""


def answer(
    session: Session,
    minor: str | None = None,
    *,
    short: bool = False,
    as_json: bool = False,
    changes_only: bool = False,
    limit: int | None = None,
    graph: bool = False,
    since: str | None = None,
) -> int:
    """Print the history down from `minor`, HEAD if None; the exit code, which reports damage.

    :param graph: draw the branches at the left.
    :raises UsageError: for a graph where versions are left out, or in JSON.
    """
    if graph and (changes_only or as_json):
        other = "--changes-only" if changes_only else "--json"
        raise UsageError(f"--graph and {other} contradict each other", "give one of them")
    damages: list[str] = []
    pieces = _pieces(session) if short and not as_json else []
    entries = run(
        session.repository,
        minor,
        subjects_only=short,
        changes_only=changes_only,
        limit=limit,
        ordered=graph,
        since=since,
        with_values=as_json or any(isinstance(one, Placeholder) and one.name in VALUES for one in pieces),
    )
    counted = _CountedEntries(entries, damages)
    if as_json:
        _json(session, counted)
    else:
        _text(session, counted, pieces, graph)
    if changes_only and not counted.count and limit != 0:
        session.note("no version has stored changes; find them with: perun check all")
    for damage in damages:
        session.warn(damage)
    if not damages:
        return 0
    session.note("perun fsck lists all damage")
    return DamagedStore.exit_code


class _CountedEntries:
    """The entries as they are printed: how many there were, and what is damaged."""

    def __init__(self, entries: Iterable[LogEntry], damages: list[str]) -> None:
        self.count = 0
        self._entries = entries
        self._damages = damages

    def __iter__(self) -> Iterator[LogEntry]:
        for entry in self._entries:
            self.count += 1
            if entry.damage:
                self._damages.append(entry.damage)
            yield entry


def _text(
    session: Session, entries: Iterable[LogEntry], pieces: Sequence[str | Placeholder], graph: bool
) -> None:
    from perun.cli.pager import paged

    enabled = session.pager and session.repository.config.get("general.paging") in PAGED
    with paged(enabled, session.environ, session.out) as out, session.writing_to(out):
        draw = _draw(session) if graph else _undrawn
        if pieces:
            _short(session, entries, pieces, draw)
            return
        steps = VersionSteps(session)
        for entry in entries:
            session.out.write(draw(entry, long_text(session, entry, steps)))


def _undrawn(entry: LogEntry, text: str) -> str:
    return text


def _draw(session: Session) -> Callable[[LogEntry, str], str]:
    """What puts the lines of the graph before those of a version, the versions in order."""
    from perun.cli.graph import CommitGraph

    graph = CommitGraph(paint=session.paint if session.coloured else None)

    def draw(entry: LogEntry, text: str) -> str:
        rows = graph.commit(entry.version.checksum, entry.version.parents, _change(entry.summary))
        first, *others = text.splitlines()
        lines = [rows.commit + first, *(rows.text + line for line in others), *rows.links]
        return "".join(f"{line.rstrip()}\n" for line in lines)

    return draw


def _change(summary: Summary | None) -> ChangeKind | None:
    if summary is None or not (summary.degradations or summary.optimizations):
        return None
    return "degradation" if summary.degradations else "optimization"


def _short(
    session: Session,
    entries: Iterable[LogEntry],
    pieces: Sequence[str | Placeholder],
    draw: Callable[[LogEntry, str], str],
) -> None:
    told = LogMarks()
    line = short_line(session, pieces, told, "  " if draw is not _undrawn else "")
    write = session.out.write
    batch: list[str] = []
    size = 1
    for entry in entries:
        batch.append(draw(entry, line(entry)))
        if len(batch) >= size:
            write("".join(batch))
            session.out.flush()
            batch.clear()
            size = min(size * 4, FLUSHED)
    write("".join(batch))
    measured.note_marks(session, told.marks)
    if told.undecided:
        session.note(told.undecided)


def _pieces(session: Session) -> list[str | Placeholder]:
    return parse_format(str(session.repository.config.get("format.shortlog")), TAGS, "format.shortlog")


def short_line(
    session: Session, pieces: Sequence[str | Placeholder], told: LogMarks, before: str = ""
) -> Callable[[LogEntry], str]:
    """What makes one line of `log --short` of the pieces of its format; the header is written now.

    The pieces are put together once, so that a history of 100,000 versions costs little more than git's own.

    :param told: gets what the lines say of differences. :param before: stands before the header.
    """
    title = before + "".join(_title(piece) for piece in pieces)
    session.say(session.paint(title.rstrip(), "bold"))
    makers = [_maker(session, piece, told) for piece in pieces]
    nothing, damaged = session.paint(NO_PROFILES, "dim"), session.paint(DAMAGED, "bold red")
    stats = _stats(session)
    changes = _changes(session)
    steps = VersionSteps(session)

    def line(entry: LogEntry) -> str:
        version, summary, damage, values = entry
        parts = []
        for maker in makers:
            if maker == "stats":
                parts.append(stats(summary) if summary else damaged if damage else nothing)
            elif maker == "changes":
                parts.append(changes(summary) if summary else "")
            elif maker == "steps":
                parts.append(steps.text(version.checksum) if summary else "")
            elif isinstance(maker, str):
                parts.append(maker)
            elif isinstance(maker, _OfValues):
                parts.append(maker(version.checksum, values))
            else:
                parts.append(maker(version))
        return "".join(parts).rstrip() + "\n"

    return line


class LogMarks:
    """What lines said of differences. :ivar marks: that stand behind them."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self._maybe = self._unknown = self._most = 0
        self._command = ""

    def count(self, version: str, values: Sequence[LogValue]) -> None:
        """Count what is not certain of a version; the command that decides on the most of it is kept, of
        several the newest one."""
        doubtful = [one for one in values if one.judged.verdict and not one.judged.verdict.decides]
        if not doubtful:
            return
        maybe = sum(bool(one.judged.verdict and severity(one.judged.verdict.change)) for one in doubtful)
        self._maybe += maybe
        self._unknown += len(doubtful) - maybe
        if maybe > self._most or not self._command:
            first = max(doubtful, key=lambda one: abs(severity(one.judged.verdict.change)))  # type: ignore[union-attr]
            versions = [one[: measured.SHORT] for one in (first.judged.since, version)]
            self._command = shlex.join(["perun", "compare", *versions, *first.wanted.configuration.options])
            self._most = maybe

    @property
    def undecided(self) -> str:
        """How much is not certain, and the command that decides on the most of it; empty if all is."""
        counts = ((self._maybe, "maybe"), (self._unknown, "unknown"))
        text = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return f"{text}; to decide: {one_line(self._command)}" if text else ""


class _OfValues:
    """Makes the text of `%value%` or `%difference%`: that of one configuration, and how many more there are.

    The configuration of a newer version is kept where a version has it, so that the numbers of a column
    compare; else it is the first. Where another one changed more surely, its difference is told with its
    name. A number is never cut, as a part of it is another number.
    """

    def __init__(self, session: Session, tag: Placeholder, told: LogMarks) -> None:
        self._session = session
        self._name = tag.name
        self._width = max(tag.width or 0, len(tag.name))
        self._blank = " " * self._width
        self._shown: dict[tuple[Configuration, str], None] = {}
        self._told = told

    def __call__(self, version: str, values: Sequence[LogValue]) -> str:
        if not values:
            return self._blank
        first, others = self._chosen(values), len(values) - 1
        style = ""
        if self._name == "value":
            text = measured.value(first.judged.value, counted=False) + (f" (+{others})" if others else "")
        else:
            self._told.count(version, values)
            text, style = self._difference(first, values)
        return self._session.paint(text, style) + " " * (self._width - width(text))

    def _difference(self, first: LogValue, values: Sequence[LogValue]) -> tuple[str, str]:
        """The difference of the value that is shown, or of one that changed more surely, and how many others
        changed: `0.0 %`, `+20.0 % ! ./app (+1 !)`."""
        changed = [one for one in values if one.judged.verdict and is_change(one.judged.verdict)]
        leading = min((first, *changed), key=_certainty)
        others = sorted((one for one in changed if one is not leading), key=_certainty)
        text = measured.difference(leading.judged, interval=False)
        if leading is not first:
            names = shortest(one.wanted.configuration for one in values)
            text += f" {one_line(names[leading.wanted.configuration])}"
        if others:
            text += f" (+{len(others)} {measured.mark(others[0].judged)})"
        self._told.marks.update({measured.mark(one.judged) for one in (leading, *others)} - {""})
        return text, measured.style(leading.judged)

    def _chosen(self, values: Sequence[LogValue]) -> LogValue:
        keyed = {(one.wanted.configuration, one.wanted.metric): one for one in reversed(values)}
        key = next((one for one in self._shown if one in keyed), None)
        if key is None:
            key = values[0].wanted.configuration, values[0].wanted.metric
            self._shown[key] = None
        return keyed[key]


def _title(piece: str | Placeholder) -> str:
    if isinstance(piece, str):
        return piece
    if piece.name == "stats":
        return "a|m|x|t profiles"
    if piece.name in VALUES:
        return piece.name.ljust(piece.width or 0)
    name = {"checksum": "minor", "desc": "info"}.get(piece.name, piece.name)
    return name.ljust(max(piece.width, len(piece.name))) if piece.width else name


_RANKS = {"": len(present.MARKS)} | {mark: rank for rank, mark in enumerate(present.MARKS)}


def _certainty(one: LogValue) -> int:
    """The severe and the certain first."""
    return _RANKS[measured.mark(one.judged)]


def _maker(session: Session, piece: str | Placeholder, told: LogMarks) -> Any:
    if isinstance(piece, str) or piece.name in ("stats", "changes", "steps"):
        return piece if isinstance(piece, str) else piece.name
    if piece.name in VALUES:
        return _OfValues(session, piece, told)
    name = piece.name
    size = max(piece.width, len(name)) if piece.width else None

    def make(version: Any) -> str:
        if name == "desc":
            text = one_line(version.desc.partition("\n")[0])
        elif name == "parents":
            text = " ".join(parent[:size] if size else parent for parent in version.parents)
            return text
        else:
            text = one_line(getattr(version, name))
        return text if size is None else text[:size].ljust(size)

    if name == "checksum":
        colour = session.paint("\0", "yellow").split("\0") if session.coloured else ["", ""]
        return lambda version: colour[0] + version.checksum[:size] + colour[1]
    return make


def _stats(session: Session) -> Callable[[Any], str]:
    def stats(summary: Any) -> str:
        counts = summary.profiles
        total = sum(counts.values())
        if not total:
            return session.paint(NO_PROFILES, "dim")
        numbers = [session.paint(str(total), "bold")]
        numbers += [session.paint(str(counts.get(kind, 0)), colour) for kind, _, colour in TYPES]
        return "|".join(numbers) + " profiles"

    return stats


def _changes(session: Session) -> Callable[[Any], str]:
    def changes(summary: Any) -> str:
        better = session.paint("+" * summary.optimizations, "bold green")
        return better + session.paint("-" * summary.degradations, "bold red")

    return changes


def long_text(session: Session, entry: LogEntry, steps: VersionSteps) -> str:
    """The lines of one version, the last one blank."""
    version, summary, damage, _ = entry
    lines = [session.paint(f"Minor Version {version.checksum}", "yellow")]
    if summary and sum(summary.profiles.values()):
        total = sum(summary.profiles.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary.profiles.items()))
        lines.append(f"{plural(total, 'registered profile')} ({kinds})")
    elif damage:
        lines.append(session.paint("damaged: ", "bold red") + one_line(damage))
    else:
        lines.append("(no registered profiles)")
    changes = session.repository.store.changes.read(version.checksum) if summary else []
    if changes:
        from perun.cli.answers.changes import change_lines, kinds_of  # most versions have none

        lines.append(f"Changes: {kinds_of(session, [record.info for record in changes])}")
        covering = partial(steps.covering, version.checksum)
        lines += [f"  {line}" for line in change_lines(session, changes, covering)]
    if summary:
        lines += steps.lines(version.checksum)
    if version.parents:
        word = "Parent: " if len(version.parents) == 1 else "Parents: "
        lines.append(word + " ".join(parent[:10] for parent in version.parents))
    lines += [f"Author: {one_line(version.author)} <{one_line(version.email)}> {version.date}", ""]
    lines += ["    " + clean(line) for line in version.desc.strip().splitlines()]
    return "\n".join(lines) + "\n\n"


def _json(session: Session, entries: Iterable[LogEntry]) -> None:
    session.out.write('{"schema": "perun.log/2", "versions": [')
    separator = "\n"
    steps = VersionSteps(session)
    for version, summary, damage, values in entries:
        data = {
            **version._asdict(),
            "profiles": dict(summary.profiles) if summary else {},
            "optimizations": summary.optimizations if summary else 0,
            "degradations": summary.degradations if summary else 0,
            "damage": damage or None,
            "values": [_value_data(value) for value in values],
            "steps": steps.data(version.checksum) if summary else [],
        }
        session.out.write(separator + json.dumps(data))
        separator = ",\n"
    session.out.write("\n]}\n")


def _value_data(value: LogValue) -> dict[str, Any]:
    return {
        **value.wanted.configuration._asdict(),
        "machine": value.wanted.machine,
        **measured.judged_data(value.judged),
    }
