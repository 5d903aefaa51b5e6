"""What `perun explain` answers: text, JSON (`perun.explain/1`), and a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from perun import atomic
from perun.cli.answers.data import write_json
from perun.cli.answers.explain_page import page_of
from perun.cli.answers.measured import SHORT
from perun.cli.session import Session
from perun.cli.table import one_line, width
from perun.errors import UsageError
from perun.measurement import present
from perun.porcelain.explain.as_json import as_json
from perun.porcelain.explain.data import (
    CaseReport,
    Cost,
    Explanation,
    FunctionChange,
    Line,
    Site,
)
from perun.porcelain.explain.report import certainty, difference, place, ratio, sentence
from perun.profile.amounts import percent, readable_pair
from perun.wording import listed, plural

MOST_LINES: Final = 40
"""Lines of the diff of one function that are printed on a terminal; the page has all."""
MOST_FUNCTIONS: Final = 10
"""Functions of one configuration that are printed, unless the user asks for more."""
_MARKS: Final = {"+": "green", "-": "red"}


def answer(session: Session, found: Explanation, *, every: bool) -> None:
    """Print it, the worst function of each configuration first. :param every: all functions, however many."""
    head, base = found.head, found.base
    name = session.paint(head.checksum[:SHORT], "yellow")
    session.say(
        f"{name} {one_line(head.subject)} ({one_line(head.author)}), against {base.checksum[:SHORT]}"
    )
    for note in found.notes:
        session.note(f"note: {one_line(note)}")
    for case in found.cases:
        session.say()
        _case(session, case, every)
    if found.others:
        session.say()
        session.say("also in the diff:")
        for other in found.others:
            session.say(f"  {one_line(other.path)} ({other.kind}): +{other.added} -{other.removed}")
            if other.lines:
                _diff(session, other.lines)
    if found.stored:
        session.note(f"stored {plural(found.stored, 'profile')} of the two versions")


def _case(session: Session, case: CaseReport, every: bool) -> None:
    session.say(session.paint(one_line(case.name), "bold"))
    for cost in case.totals:
        if cost.before or cost.after:
            session.say(f"  in all, {_total(session, cost)}")
    if not case.functions:
        session.say("  no function costs more or less than before")
    shown = case.functions if every else case.functions[:MOST_FUNCTIONS]
    for one in shown:
        session.say()
        _function(session, one)
    if len(shown) < len(case.functions):
        session.say()
        left = plural(len(case.functions) - len(shown), "function")
        session.say(f"  and {left} more; show them with: --all")
    if case.smaller:
        session.say()
        count = plural(case.smaller, "function")
        session.say(f"  {count} changed by less; see them with: --threshold 0.001%")
    for reason in case.unseen:
        session.note(f"not seen: {one_line(reason)}")


def _function(session: Session, one: FunctionChange) -> None:
    colour = "red" if one.score > 0 else "green"
    session.say(f"  {session.paint(one_line(sentence(one)), colour)}")
    for cost in one.costs:
        session.say(f"    {_cost(session, cost)}")
    for part in one.libraries:
        before, after = readable_pair(part.before, part.after, "instr")
        session.say(f"      of these in {one_line(part.name)}: {before} -> {after}")
    if one.growth is not None:
        session.say(f"    growth: {one_line(one.growth.before)} -> {one_line(one.growth.after)}")
    for site in one.sites:
        session.say(f"    {one_line(_site(site))}")
    for text, names in (("new callers", one.new_callers), ("no longer called by", one.gone_callers)):
        if names:
            session.say(f"    {text}: {one_line(listed(names, 5))}")
    if one.inlined:
        session.say("    it is inlined in one version: there its cost is that of its callers")
    for path, lines in groupby(one.near, key=itemgetter(0)):
        session.say(f"    {one_line(path)}")
        _diff(session, [line for _, line in lines])
    if one.lines:
        session.say(f"    {one_line(place(one))}")
        _diff(session, one.lines)


def _total(session: Session, cost: Cost) -> str:
    """What the program costs, with the difference as all commands write it."""
    if cost.before == cost.after:
        return _cost(session, cost)
    sides = " -> ".join(readable_pair(cost.before, cost.after, cost.unit))
    word = f": {present.NAMES[cost.verdict]}" if cost.verdict is not None else ""
    return f"{cost.metric}: {sides}, {session.paint(difference(cost), _colour(cost))}{word}"


def _colour(cost: Cost) -> str:
    return "red" if cost.after > cost.before else "green"


def _cost(session: Session, cost: Cost) -> str:
    before, after = readable_pair(cost.before, cost.after, cost.unit)
    share = f", {percent(cost.share)} of the program" if cost.before != cost.whole else ""
    if cost.before == cost.after:
        return f"{cost.metric}: {after}, as before"
    changed = session.paint(f"{ratio(cost)} [{certainty(cost)}]", _colour(cost))
    return f"{cost.metric}: {before} -> {after}, {changed}{share}"


def _site(site: Site) -> str:
    def pair(name: str, values: tuple[float, float], unit: str) -> str:
        before, after = readable_pair(*values, unit)
        return f"{name} {before} -> {after}" if before != after else f"{name} {after}"

    parts = [pair("blocks", site.blocks, ""), pair("allocated", site.allocated, "B")]
    if any(site.leaked):
        parts.append(pair("leaked", site.leaked, "B"))
    return f"{site.allocator} in {site.place}: {', '.join(parts)}"


def _diff(session: Session, lines: Sequence[Line]) -> None:
    room = max(width(str(max(line.old, line.new))) for line in lines)
    for line in lines[:MOST_LINES]:
        numbers = f"{line.old or '':>{room}} {line.new or '':>{room}}"
        text = session.paint(line.mark + one_line(line.text), _MARKS.get(line.mark, ""))
        session.say(f"      {numbers} {text}")
    if len(lines) > MOST_LINES:
        more = plural(len(lines) - MOST_LINES, "line")
        session.say(f"      and {more} more; the page has all: --output FILE")


def write_data(session: Session, found: Explanation) -> None:
    """Write it as JSON, schema `perun.explain/1`."""
    write_json(session.out, as_json(found))


def write_page(path: Path, found: Explanation) -> None:
    """Write the page to a file, whose old content is there until the new one is whole.

    :raises UsageError: if the file cannot be written.
    """
    try:
        with atomic.writing(path) as file:
            file.write(page_of(found).encode("utf-8", "surrogateescape"))
    except OSError as problem:
        raise UsageError(
            f"--output: cannot write {path}: {problem.strerror}",
            "name a file in a folder that you may write to",
        ) from None
