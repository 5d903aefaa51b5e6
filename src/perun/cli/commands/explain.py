"""`perun explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import click

from perun.cli.answers.data import SHORT, write_json
from perun.cli.commands.compare import complete_harness
from perun.cli.commands.measuring import SEED
from perun.cli.options import CommandOptions, json_option, sizes_of, version_argument, with_options_of
from perun.cli.session import Session
from perun.cli.table import one_line, width
from perun.core import atomic
from perun.core.errors import UsageError
from perun.core.wording import listed, plural
from perun.measurement import present
from perun.pages import CSS, escape, frame, page
from perun.plugin.params import param
from perun.profile.amounts import percent, readable, readable_pair
from perun.running.compare.plan import refuse_with_benchmark, share
from perun.running.explain.causes import cause_sentence, location_of, locations, without_effects
from perun.running.explain.costs import certainty, difference, place, ratio, sentence
from perun.running.explain.data import (
    AllocatorSite,
    CaseReport,
    Cause,
    CostChange,
    Explanation,
    FunctionChange,
    HunkLine,
)
from perun.running.explain.explaining import explain as run
from perun.running.explain.kept import as_json
from perun.running.explain.plan import COLLECTED, ExplainOptions, plan

# The page of `perun explain`: functions with their lines of the diff, and differential flame graphs.

_STYLE: Final = """\
h2 { font-size: 1.15rem; margin: 1.6rem 0 .4rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.3rem 0 .3rem; overflow-wrap: anywhere; max-height: 9em; overflow: auto; }
h3.worse { border-left: .3rem solid var(--mark); padding-left: .6rem; }
h3.better { border-left: .3rem solid var(--accent); padding-left: .6rem; }
td, th { text-align: left; padding: .1rem .9rem .1rem 0; overflow-wrap: anywhere; max-width: 40rem;
  vertical-align: top; }
td.number { text-align: right; white-space: nowrap; }
tr.part td { color: var(--muted); }
.diff { font-family: var(--mono); font-size: .85rem; border: 1px solid var(--line); border-radius: .4rem;
  margin: .4rem 0; max-height: 40rem; overflow: auto; background: var(--surface); }
.diff table { width: 100%; border-spacing: 0; }
.diff td { padding: 0 .5rem; white-space: pre; max-width: none; unicode-bidi: isolate; }
.diff td.number { color: var(--muted); user-select: none; width: 1%; }
.diff tr.added td { background: color-mix(in srgb, #009e73 18%, transparent); }
.diff tr.removed td { background: color-mix(in srgb, #d55e00 18%, transparent); }
iframe { width: 100%; height: 46rem; border: 1px solid var(--line); border-radius: .4rem; }
li { overflow-wrap: anywhere; }
"""
_ROWS: Final = {"+": "added", "-": "removed"}


def page_of(found: Explanation) -> str:
    """The whole answer as one HTML document, which loads nothing."""
    head, base = found.head, found.base
    graphs = [document for case in found.cases for _, document in case.flames]
    title = f"Why {head.checksum[:SHORT]} costs what it costs"
    parts = [
        f"<header><h1>{escape(head.checksum[:SHORT])} {escape(head.subject)}</h1>",
        f'<p class="subtitle">{escape(head.author)}, {escape(head.date)}; compared with '
        f"{escape(base.checksum[:SHORT])} {escape(base.subject)}</p></header>",
        _list(found.notes),
    ]
    for case in found.cases:
        parts += _case_of_page(case)
    if found.others:
        parts.append("<h2>Also in the diff</h2>")
        for one in found.others:
            parts.append(f"<p>{escape(one.path)} ({one.kind}): +{one.added} -{one.removed}</p>")
            parts.append(_diff_of_page(one.lines) if one.lines else "")
    return page(title=title, body="\n".join(parts), style=CSS + _STYLE, frames=graphs)


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _case_of_page(case: CaseReport) -> Iterator[str]:
    yield f"<section><h2>{escape(case.name)}</h2>"
    yield _costs([cost for cost in case.totals if cost.before or cost.after])
    yield _list(case.remarks)
    if not case.functions:
        yield "<p>No function costs more or less than before.</p>"
    for cause in case.causes:
        yield f'<h3 class="{"worse" if cause.share > 0 else "better"}">{escape(cause_sentence(cause))}</h3>'
        if cause.lines:
            yield f"<p>{escape(cause.path)}</p>{_diff_of_page(cause.lines, cause.amounts)}"
    for one in case.functions:
        yield from _function_of_page(one)
    if case.smaller:
        yield f'<p class="note">{plural(case.smaller, "function")} changed by less.</p>'
    for title, document in case.flames:
        yield f"<h3>{escape(title)}, before and after</h3>"
        yield frame(document, f"Flame graph: {title}")
    if case.unseen:
        yield "<h3>What could not be seen</h3>"
        yield _list(case.unseen)
    yield "</section>"


def _function_of_page(one: FunctionChange) -> Iterator[str]:
    yield f'<h3 class="{"worse" if one.score > 0 else "better"}">{escape(sentence(one))}</h3>'
    yield _costs(one.costs, one)
    facts = [_site_of_page(site) for site in one.sites]
    if one.growth is not None:
        facts.append(f"growth: {one.growth.before} \u2192 {one.growth.after} ({one.growth.rule})")
    facts += [f"new caller: {name}" for name in one.new_callers]
    facts += [f"no longer called by {name}" for name in one.gone_callers]
    yield _list(facts)
    for path, line in one.near:
        yield f"<p>{escape(path)}</p>{_diff_of_page([line])}"
    if one.lines:
        yield f"<p>{escape(place(one))}</p>{_diff_of_page(one.lines)}"


def _costs(costs: Sequence[CostChange], one: FunctionChange | None = None) -> str:
    rows = []
    for cost in costs:
        before, after = readable_pair(cost.before, cost.after, cost.unit) if cost.amounts_fit else ("", "")
        changed = cost.before != cost.after
        rows.append(
            _row("", cost.metric, before, after, _ratio(cost) if changed else "",
                 percent(cost.share) if changed else "")
        )  # fmt: skip
    for part in one.libraries if one is not None else ():
        before, after = readable_pair(part.before, part.after, "instr")
        rows.append(_row("part", f"of these in {part.name}", before, after, "", ""))
    heads = ("", "before", "after", "ratio", "of the program")
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else ""


def _ratio(cost: CostChange) -> str:
    if cost.verdict is None:
        return f"{ratio(cost)} [{certainty(cost)}]"
    return f"{difference(cost)}: {present.NAMES[cost.verdict]}"


def _row(kind: str, name: str, *cells: str) -> str:
    numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
    return f'<tr class="{kind}"><td>{escape(name)}</td>{numbers}</tr>'


def _site_of_page(site: AllocatorSite) -> str:
    pairs = (("blocks", site.blocks, ""), ("allocated", site.allocated, "B"), ("leaked", site.leaked, "B"))
    arrow = " \u2192 "
    texts = [f"{name} {arrow.join(readable_pair(*values, unit))}" for name, values, unit in pairs]
    return f"{site.allocator} in {site.place}: {', '.join(texts)}"


def _diff_of_page(lines: Sequence[HunkLine], amounts: Sequence[float] = ()) -> str:
    costs = [readable(amount, "instr") if amount else "" for amount in amounts] or [""] * len(lines)
    rows = "".join(
        f'<tr class="{_ROWS.get(line.mark, "")}"><td class="number">{line.old or ""}</td>'
        f'<td class="number">{line.new or ""}</td>{_cell(cost)}<td>{escape(line.mark + line.text)}</td></tr>'
        for line, cost in zip(lines, costs, strict=True)
    )
    return f'<div class="diff"><table><tbody>{rows}</tbody></table></div>'


def _cell(cost: str) -> str:
    return f'<td class="number">{escape(cost)}</td>' if cost else ""


# What `perun explain` answers: text, JSON (`perun.explain/1`), and a page.

MOST_LINES: Final = 40
"""Lines of the diff of one function that are printed on a terminal; the page has all."""
MOST_CAUSES: Final = 5
MOST_FUNCTIONS: Final = 10
"""Functions of one configuration that are printed, unless the user asks for more."""
_MARKS: Final = {"+": "green", "-": "red"}


def answer(session: Session, found: Explanation, *, every: bool) -> None:
    """Print it, the worst function of each configuration first. :param every: all functions, however many."""
    head, base = found.head, found.base
    name = session.paint(head.checksum[:SHORT], "yellow")
    session.say(f"{name} {one_line(head.subject)} ({one_line(head.author)}), against {base.checksum[:SHORT]}")
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
    for remark in case.remarks:
        session.say(f"  {one_line(remark)}")
    if not case.functions:
        session.say("  no function costs more or less than before")
    functions = list(case.functions) if every else without_effects(case)
    by_location = {one.location: one for one in case.functions if one not in functions}
    for cause in case.causes if every else case.causes[:MOST_CAUSES]:
        session.say()
        _cause(session, cause, by_location.get(location_of(cause)))
    shown = functions if every else functions[:MOST_FUNCTIONS]
    of_causes = locations(case.causes)
    for one in shown:
        session.say()
        _function(session, one, with_lines=one.location not in of_causes)
    if len(shown) < len(functions):
        session.say()
        left = plural(len(functions) - len(shown), "function")
        session.say(f"  and {left} more; show them with: --all")
    if case.smaller:
        session.say()
        count = plural(case.smaller, "function")
        session.say(f"  {count} changed by less; see them with: --threshold 0.001%")
    for reason in case.unseen:
        session.note(f"not seen: {one_line(reason)}")


def _cause(session: Session, cause: Cause, function: FunctionChange | None) -> None:
    """A change of the diff with what it costs, line by line."""
    colour = "red" if cause.share > 0 else "green"
    session.say(f"  {session.paint(one_line(cause_sentence(cause)), colour)}")
    session.say(f"    in all {percent(cause.share)} of the program")
    if function is not None:
        _facts(session, function, [cost for cost in function.costs if cost.metric != "instructions"])
    if cause.lines:
        session.say(f"    {one_line(cause.path)}")
        _diff(session, cause.lines, cause.amounts)


def _function(session: Session, one: FunctionChange, *, with_lines: bool) -> None:
    """:param with_lines: whether its changed lines are told; those of a cause stand there."""
    colour = "red" if one.score > 0 else "green"
    session.say(f"  {session.paint(one_line(sentence(one)), colour)}")
    _facts(session, one, one.costs)
    for path, lines in groupby(one.near, key=itemgetter(0)):
        session.say(f"    {one_line(path)}")
        _diff(session, [line for _, line in lines])
    if one.lines and with_lines:
        session.say(f"    {one_line(place(one))}")
        _diff(session, one.lines)


def _facts(session: Session, one: FunctionChange, costs: Sequence[CostChange]) -> None:
    for cost in costs:
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


def _total(session: Session, cost: CostChange) -> str:
    """What the program costs, with the difference as all commands write it."""
    if cost.before == cost.after:
        return _cost(session, cost)
    sides = " -> ".join(readable_pair(cost.before, cost.after, cost.unit)) + ", " if cost.amounts_fit else ""
    word = f": {present.NAMES[cost.verdict]}" if cost.verdict is not None else ""
    return f"{cost.metric}: {sides}{session.paint(difference(cost), _colour(cost))}{word}"


def _colour(cost: CostChange) -> str:
    return "red" if cost.after > cost.before else "green"


def _cost(session: Session, cost: CostChange) -> str:
    before, after = readable_pair(cost.before, cost.after, cost.unit)
    share = f", {percent(cost.share)} of the program" if cost.before != cost.whole else ""
    if cost.before == cost.after:
        return f"{cost.metric}: {after}, as before"
    changed = session.paint(f"{ratio(cost)} [{certainty(cost)}]", _colour(cost))
    sides = f"{before} -> {after}, " if cost.amounts_fit else ""
    return f"{cost.metric}: {sides}{changed}{share}"


def _site(site: AllocatorSite) -> str:
    def pair(name: str, values: tuple[float, float], unit: str) -> str:
        before, after = readable_pair(*values, unit)
        return f"{name} {before} -> {after}" if before != after else f"{name} {after}"

    parts = [pair("blocks", site.blocks, ""), pair("allocated", site.allocated, "B")]
    if any(site.leaked):
        parts.append(pair("leaked", site.leaked, "B"))
    return f"{site.allocator} in {site.place}: {', '.join(parts)}"


def _diff(session: Session, lines: Sequence[HunkLine], amounts: Sequence[float] = ()) -> None:
    """:param amounts: what each line executes; empty where that is not known."""
    room = max(width(str(max(line.old, line.new))) for line in lines)
    costs = [readable(amount, "instr") if amount else "" for amount in amounts] or [""] * len(lines)
    most = max(map(len, costs))
    for line, cost in list(zip(lines, costs, strict=True))[:MOST_LINES]:
        numbers = f"{line.old or '':>{room}} {line.new or '':>{room}}" + (f" {cost:>{most}}" if most else "")
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


@dataclass(frozen=True)
class ExplainCommandOptions(CommandOptions):
    """What is measured, and what is told."""

    benchmark: str = param(
        "",
        metavar="NAME",
        help="Explain this one of the named benchmarks of the project, in place of a command; a shell "
        "pattern that only one fits will do.",
    )
    harness: str = param("", metavar="NAME", help="The harness of the benchmark, where several have it.")
    sizes: str = param(
        "",
        formerly=["-s"],
        metavar="N,N,...",
        help="Also count instructions with these numbers as workload, and tell where the order of growth "
        "changed; five of them at least, the largest eight times the smallest.",
    )
    no_collect: bool = param(False, help="Measure nothing: use the profiles that are registered.")
    collect: str = param(
        ",".join(COLLECTED),
        metavar="WHAT,...",
        help="What is measured where it is not registered; calls are those of the functions that cost more.",
    )
    budget: float | None = param(
        None, metavar="SECONDS", help="Begin no measurement after this time; what is missing then is said."
    )
    threshold: str = param(
        "0.5%",
        metavar="SHARE",
        help="The least change of a function that is told, of what the program costs.",
    )
    output: str = param("", short="-o", metavar="FILE", help="Also write a page with flame graphs.")
    all: bool = param(False, help="All functions that changed, however many.")
    seed: int | None = param(None, metavar="N", help=SEED)


@click.command()
@version_argument("versions", metavar="VERSION|A..B", before="location", text="The same as VERSION.")
@click.argument("location", metavar="[LOCATION]", required=False, default="")
@with_options_of(ExplainCommandOptions, "given", harness={"shell_complete": complete_harness})
@json_option()
@click.pass_context
def explain(
    ctx: click.Context, /, versions: str | None, location: str, given: ExplainCommandOptions, as_json: bool
) -> int:
    """Say why a version costs more: functions, and lines of the diff.

    Counts instructions and memory of both versions, unless profiles of them are registered, and tells the
    functions whose cost changed, worst first, with the lines of the diff within them. A version is compared
    with its first parent. LOCATION is a function. Each side is built in a working copy of its own, your files
    stay as they are; what was measured is stored.

    \b
    perun explain HEAD                             why is my last commit slower
    perun explain 4baf672 sort -o why.html         ... one function, and a page
    perun explain HEAD --benchmark 'parser.BenchmarkParse size=10'
    perun explain v1.0..v2.0 -c ./prog -w 400 --sizes 50,100,200,400,800
    """
    session: Session = ctx.obj
    if versions is None:
        raise click.UsageError("Missing argument 'VERSION|A..B'.", ctx)
    if given.output and Path(given.output).is_dir():
        raise UsageError(f"--output: {given.output} is a folder", "name a file, e.g. why.html")
    options = ExplainOptions(
        versions,
        location,
        given.cmd,
        given.args,
        given.workload,
        sizes_of(given.sizes),
        not given.no_collect,
        share(given.threshold, "--threshold"),
        given.seed,
        _collected(given.collect),
        given.budget,
        given.benchmark,
        given.harness,
    )
    refuse_with_benchmark(
        given.benchmark,
        given.harness,
        {
            "--cmd": given.cmd,
            "--args": given.args,
            "--workload": given.workload,
            "--sizes": given.sizes,
            "--no-collect": given.no_collect,
        },
    )
    if given.budget is not None and not given.budget > 0:
        raise UsageError(f"--budget: {given.budget:g} is no time", "give seconds above 0")
    if options.sizes and not options.collects:
        raise UsageError("--sizes needs measurements, which --no-collect forbids", "leave out one of them")
    planned = plan(session.repository, options)
    with session.progress(0, "explaining") as bar, session.writing_to(bar.out):
        found = run(
            session.repository, planned, options, bar.update, pages=bool(given.output), note=session.note
        )
    if given.output:
        write_page(Path(given.output), found)
    if as_json:
        write_data(session, found)
    else:
        answer(session, found, every=given.all)
        if given.output:
            session.note(f"written: {given.output}")
    return 0


def _collected(text: str) -> tuple[str, ...]:
    """What `--collect` names.

    :raises UsageError: where a name is none of those that there are.
    """
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    unknown = [name for name in names if name not in COLLECTED]
    if unknown or not names:
        wrong = f"{unknown[0]!r} is none" if unknown else "nothing is named"
        raise UsageError(
            f"--collect: {wrong} of {', '.join(COLLECTED)}",
            "name one or more of them, with commas; or use what is registered: --no-collect",
        )
    return names
