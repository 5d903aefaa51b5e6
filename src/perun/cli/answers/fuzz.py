"""What `perun fuzz` shows while it runs and answers in the end: as text and as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from perun.cli.answers.data import write_json
from perun.cli.progress import REFRESHES, duration
from perun.cli.session import Session
from perun.cli.table import one_line, width
from perun.core.wording import counted, plural
from perun.fuzz.findings import CampaignStatus, Event, InterestingInput, SeedRuns
from perun.fuzz.results import FAULT, HANG, SLOW, Confirmation, Result
from perun.fuzz.results import as_json as data_of
from perun.profile.amounts import factor, readable
from perun.running.fuzz.fuzz import FuzzOutcome
from perun.running.fuzz.keep import KeptResults
from perun.running.fuzz.replay import Replay, ReplayResult

if TYPE_CHECKING:
    from rich.live import Live


SHOWN: Final = 10
"""Results of each kind that the answer shows; all are in the folder."""
_EVERY: Final = 30.0
"""Seconds between two lines of the status where no terminal shows it."""
_BETTER: Final = 1.25
"""Growth of the best ratio that is worth a line there."""
_RULES: Final = 6


class CampaignView:
    """Shows a campaign: as a panel on a terminal, as lines elsewhere."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._told = 1.0
        self._unit = "lines"
        self._kinds: set[str] = set()
        self._next = time.monotonic() + _EVERY

    def report(self, activity: str, done: int, total: int) -> None:
        """What is prepared."""
        if self._session.verbosity:
            self._session.note(one_line(activity))

    def watch(self, event: Event) -> None:
        """Show what has happened."""
        if isinstance(event, SeedRuns):
            self._begin(event)
        elif isinstance(event, InterestingInput):
            self._find(event)
        else:
            self._show(event)

    def _begin(self, event: SeedRuns) -> None:
        self._unit = event.unit
        lines = f", {counted(event.base, f'executed {event.unit[:-1]}')}" if event.base else ""
        rules = f"{plural(event.rules, 'rule')}, up to {event.limit:,} bytes"
        self._session.note(f"fuzzing from {plural(event.seeds, 'seed')}{lines}; {rules}")
        for note in event.notes:
            self._session.note(f"note: {one_line(note)}")

    def _find(self, event: InterestingInput) -> None:
        """A line for a ratio that is clearly better, and for the first fault and hang."""
        member = event.member
        if event.kind == SLOW:
            if member.icov < _BETTER * self._told:
                return
            self._told = member.icov
            what = f"{factor(member.icov)} the {self._unit}"
        elif event.kind in self._kinds:
            return
        else:
            self._kinds.add(event.kind)
            what = f"{event.kind}: the program {member.ending}"
        name = f"{one_line(member.name)} {_rules(member.rules)}"
        self._session.note(f"{duration(event.seconds)}  {what}  {name}")

    def _show(self, status: CampaignStatus) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            self._session.note("; ".join(f"{name} {value}" for name, value in rows(status)))

    def close(self) -> None:
        """The campaign has ended."""


class _Panel(CampaignView):
    """A table that stays in its place, as fuzzers have it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._live: Live | None = None

    def _find(self, event: InterestingInput) -> None:
        """It is in the table."""

    def _show(self, status: CampaignStatus) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(console=_console(self._session), refresh_per_second=REFRESHES, transient=True)
            self._live.start()
        self._live.update(_table(status))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


@contextmanager
def watching(session: Session) -> Iterator[CampaignView]:
    """Show the campaign of the block, on standard error."""
    view = _Panel(session) if session.err.isatty() else CampaignView(session)
    try:
        yield view
    finally:
        view.close()


def rows(status: CampaignStatus) -> list[tuple[str, str]]:
    """The status as names and values."""
    left = "" if status.left is None else f", {duration(status.left)} left"
    found = [
        ("time", f"{duration(status.seconds)}{left} ({status.phase})"),
        ("executions", f"{status.executions:,}, {status.per_second:,.0f}/s"),
        ("corpus", f"{status.corpus:,}"),
        ("best ratio", "" if status.ratio is None else factor(status.ratio)),
        ("coverage", f"{status.edges:,}"),
        ("slower, measured", f"{status.results:,}"),
        ("hangs", f"{status.hangs:,}"),
        ("faults", f"{status.faults:,}"),
    ]
    if status.waiting:
        found.append(("stopped early", f"{status.waiting:,} inputs wait for more time"))
    if status.rules:
        found.append(("best rules", ", ".join(status.rules)))
    return found


def _console(session: Session) -> Any:
    from rich.console import Console

    colour = "auto" if session.colour is not False else None
    return Console(file=session.err, color_system=colour, highlight=False)  # type: ignore[arg-type]


def _table(status: CampaignStatus) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, title="perun fuzz", title_justify="left")
    for name, value in rows(status):
        table.add_row(Text(name), Text(value))
    return table


def as_text(session: Session, found: FuzzOutcome) -> None:
    """Print the best results, and where they are."""
    campaign = found.campaign
    slow = campaign.of_kind(SLOW)
    if slow:
        _say_table(session, slow)
    else:
        session.say("no input was found that is slower than the seeds")
    for kind in (HANG, FAULT):
        of_kind = campaign.of_kind(kind)
        if of_kind:
            first = of_kind[0]
            session.say(f"{plural(len(of_kind), kind)}; the first {first.ending}: {one_line(first.file)}")
            for said in [said for one in of_kind if (said := _growth(one))][:1]:
                session.say(f"    {said}")
    unmeasured = sum(one.confirmation is None for one in slow)
    if unmeasured:
        session.say(f"{plural(unmeasured, 'result')} not measured, as the time was over")
    runs = counted(campaign.executions, "execution")
    session.say(f"{runs} in {duration(campaign.seconds)}; {campaign.ended}; seed {campaign.random_seed}")
    session.say(f"results: {one_line(str(found.folder))}")


def _say_table(session: Session, slow: Sequence[Result]) -> None:
    """The best results, each with how its cost grows, where that is known."""
    rows = [_row(number, one) for number, one in enumerate(slow[:SHOWN], 1)]
    titles = ("", "ratio", "time", "bytes", "rules", "file")
    widths = [max(width(row[place]) for row in (titles, *rows)) for place in range(len(titles) - 1)]

    def line(row: Sequence[str]) -> str:
        cells = [text + " " * (size - width(text)) for text, size in zip(row, widths, strict=False)]
        return "  ".join([*cells, row[-1]]).rstrip()

    session.say(session.paint(line(titles), "bold"))
    for row, one in zip(rows, slow, strict=False):
        session.say(line(row))
        if said := _growth(one):
            session.say(f"    {said}")
    if len(slow) > SHOWN:
        session.say(f"... and {len(slow) - SHOWN} more")


def _growth(one: Result) -> str:
    """`quadratic in the number of spaces: exponent 2.00 ...; smallest form 120 B`; empty if nothing is
    known."""
    growth = one.growth or {}
    facts = growth.get("minimizing")
    size = f"smallest form {facts['after']:,} B" if facts and facts["after"] < facts["before"] else ""
    return one_line("; ".join(filter(None, (str(growth.get("text") or ""), size))))


def _row(number: int, one: Result) -> tuple[str, ...]:
    return (
        f"{number}.",
        "" if one.ratio is None else factor(one.ratio),
        measured(one.confirmation),
        f"{one.size:,}",
        _rules(one.rules),
        one_line(one.file),
    )


def measured(found: Confirmation | None) -> str:
    """What a test said: `12.1x, 0.31 s`."""
    if found is None:
        return "not measured"
    if found.target is None or found.ratio is None:
        return found.change
    return f"{factor(found.ratio)}, {readable(found.target, 's')}"


def _rules(rules: tuple[str, ...]) -> str:
    shown = ", ".join(rules[-_RULES:])
    return f"[{'..., ' if len(rules) > _RULES else ''}{shown}]"


def as_json(out: TextIO, found: FuzzOutcome) -> None:
    """The answer as JSON, schema `perun.fuzz/1`: what `results.json` holds, and where it is."""
    write_json(
        out,
        {
            "schema": "perun.fuzz/1",
            "folder": str(found.folder),
            "interrupted": found.interruption is not None,
            "notes": list(found.notes),
            **data_of(found.campaign),
        },
    )


# What `perun fuzz --keep` and `perun fuzz --replay` answer, as text.

_STATES: Final = ("worse", "remains", "improved", "repaired", "unknown")


def kept_lines(kept: KeptResults) -> Iterator[str]:
    """The files, what was added to the job matrix, and what to do next."""
    for one in kept.files:
        said = "kept" if one.is_new else "already there"
        yield f"{said}: {one_line(one.name)}  (from {one_line(one.result)})"
    for setting in kept.settings:
        yield f"added to the job matrix: {setting.key}: {one_line(setting.what)}"
    if not kept.settings:
        yield "the job matrix has them already"
    yield f"{plural(len(kept.files), 'workload')} in {kept.folder}; measure them with: perun run matrix"


def replay_lines(found: Replay) -> Iterator[str]:
    """A line for each result, and how many there are of each state."""
    for one in found.results:
        yield f"{one.state:8}  {one_line(one.result.file)}  {_numbers(one)}"
        yield f"          {one_line(one.reason)}"
    changes = " with uncommitted changes" if found.uncommitted else ""
    counts = [(state, sum(one.state == state for one in found.results)) for state in _STATES]
    listed = ", ".join(f"{count} {state}" for state, count in counts if count)
    yield f"{listed} in {found.version.checksum[:10]}{changes}"


def _numbers(one: ReplayResult) -> str:
    """The ratios to the seed, then and now."""
    parts = []
    if one.now is not None and one.now.ratio is not None:
        parts.append(f"time {_ratio(one.before)} -> {_ratio(one.now)}")
    if one.lines_now is not None:
        before = "?" if one.lines_before is None else f"{one.lines_before:,.2f}"
        parts.append(f"executed lines {before} -> {one.lines_now:,.2f}")
    return "; ".join(parts)


def _ratio(said: object) -> str:
    ratio, low, high = (getattr(said, name, None) for name in ("ratio", "low", "high"))
    if ratio is None:
        return "?"
    return factor(ratio, None if low is None or high is None else (low, high))
