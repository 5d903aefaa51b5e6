"""The page of `perun explain`: functions with their lines of the diff, and differential flame graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perun.cli.answers.measured import SHORT
from perun.measurement import present
from perun.pages.document import escape, frame, page
from perun.pages.theme import CSS
from perun.porcelain.explain.data import CaseReport, Cost, Explanation, FunctionChange, Line, Site
from perun.porcelain.explain.report import certainty, difference, place, ratio, sentence
from perun.profile.amounts import percent, readable_pair
from perun.wording import plural

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
        parts += _case(case)
    if found.others:
        parts.append("<h2>Also in the diff</h2>")
        for one in found.others:
            parts.append(f"<p>{escape(one.path)} ({one.kind}): +{one.added} -{one.removed}</p>")
            parts.append(_diff(one.lines) if one.lines else "")
    return page(title=title, body="\n".join(parts), style=CSS + _STYLE, frames=graphs)


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _case(case: CaseReport) -> Iterator[str]:
    yield f"<section><h2>{escape(case.name)}</h2>"
    yield _costs([cost for cost in case.totals if cost.before or cost.after])
    if not case.functions:
        yield "<p>No function costs more or less than before.</p>"
    for one in case.functions:
        yield from _function(one)
    if case.smaller:
        yield f'<p class="note">{plural(case.smaller, "function")} changed by less.</p>'
    for title, document in case.flames:
        yield f"<h3>{escape(title)}, before and after</h3>"
        yield frame(document, f"Flame graph: {title}")
    if case.unseen:
        yield "<h3>What could not be seen</h3>"
        yield _list(case.unseen)
    yield "</section>"


def _function(one: FunctionChange) -> Iterator[str]:
    yield f'<h3 class="{"worse" if one.score > 0 else "better"}">{escape(sentence(one))}</h3>'
    yield _costs(one.costs, one)
    facts = [_site(site) for site in one.sites]
    if one.growth is not None:
        facts.append(f"growth: {one.growth.before} \u2192 {one.growth.after} ({one.growth.rule})")
    facts += [f"new caller: {name}" for name in one.new_callers]
    facts += [f"no longer called by {name}" for name in one.gone_callers]
    yield _list(facts)
    for path, line in one.near:
        yield f"<p>{escape(path)}</p>{_diff([line])}"
    if one.lines:
        yield f"<p>{escape(place(one))}</p>{_diff(one.lines)}"


def _costs(costs: Sequence[Cost], one: FunctionChange | None = None) -> str:
    rows = []
    for cost in costs:
        before, after = readable_pair(cost.before, cost.after, cost.unit)
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


def _ratio(cost: Cost) -> str:
    if cost.verdict is None:
        return f"{ratio(cost)} [{certainty(cost)}]"
    return f"{difference(cost)}: {present.NAMES[cost.verdict]}"


def _row(kind: str, name: str, *cells: str) -> str:
    numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
    return f'<tr class="{kind}"><td>{escape(name)}</td>{numbers}</tr>'


def _site(site: Site) -> str:
    pairs = (("blocks", site.blocks, ""), ("allocated", site.allocated, "B"), ("leaked", site.leaked, "B"))
    arrow = " \u2192 "
    texts = [f"{name} {arrow.join(readable_pair(*values, unit))}" for name, values, unit in pairs]
    return f"{site.allocator} in {site.place}: {', '.join(texts)}"


def _diff(lines: Sequence[Line]) -> str:
    rows = "".join(
        f'<tr class="{_ROWS.get(line.mark, "")}"><td class="number">{line.old or ""}</td>'
        f'<td class="number">{line.new or ""}</td><td>{escape(line.mark + line.text)}</td></tr>'
        for line in lines
    )
    return f'<div class="diff"><table><tbody>{rows}</tbody></table></div>'
