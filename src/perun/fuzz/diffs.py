"""The difference between an input and its seed as a page that needs nothing else (manual 9.8).

Everything of the inputs is text: markup in them is shown, not followed, and what cannot be printed is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import escape
from typing import Final

MOST_LINES: Final = 2000
"""Lines that are compared: the comparison takes time by their square at worst."""
MOST_CHARACTERS: Final = 2000
"""Characters of a line that are shown."""
_COMPARED: Final = 300
"""Characters of lines, without what both begin and end with, up to which they are compared one by one."""
_CONTEXT: Final = 3

_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 14px/1.5 sans-serif; margin: 1.5em; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
pre span {{ display: block; min-height: 1.5em; }}
.minus {{ background: #ffebe9; color: #24292f; }} .minus del {{ background: #ffb3ad; }}
.plus {{ background: #e6ffec; color: #24292f; }} .plus ins {{ background: #8ee6a4; }}
ins, del {{ text-decoration: none; }} .skip {{ color: #808080; }}
</style></head><body>
<h1>{title}</h1>
<p>{about}</p>
<pre>{lines}</pre>
</body></html>
"""


def page(title: str, seed_name: str, seed: bytes, found: bytes, rules: Sequence[str]) -> str:
    """The page about an input that was `found`, beside its seed.

    :param rules: labels of the rules between both, in order.
    """
    about = f"Seed {seed_name} ({len(seed):,} bytes) and what was made of it ({len(found):,} bytes)"
    if rules:
        about += f" by {', '.join(rules)}"
    lines = "".join(_lines(_text(seed), _text(found)))
    return _PAGE.format(title=escape(title), about=escape(about), lines=lines)


def _text(data: bytes) -> list[str]:
    """The lines; what is no UTF-8 as `\\xff`."""
    return data.decode("utf-8", "backslashreplace").split("\n")


def _lines(old: list[str], new: list[str]) -> Iterator[str]:
    cut = max(len(old), len(new)) - MOST_LINES
    old, new = old[:MOST_LINES], new[:MOST_LINES]
    matcher = SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield _line("skip", escape(f"@@ line {group[0][1] + 1}, now {group[0][3] + 1} @@"))
        for tag, from_, to, new_from, new_to in group:
            if tag == "equal":
                yield from (_line("", _shown(line)) for line in old[from_:to])
            else:
                yield from _changed(old[from_:to], new[new_from:new_to])
    if cut > 0:
        yield _line("skip", f"... and {cut:,} more lines, which are not compared")


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    """Lines that were replaced; where they are as many, each with what changed in it."""
    if len(old) == len(new) and all(len(line) <= MOST_CHARACTERS for line in (*old, *new)):
        pairs = [_inside(before, after) for before, after in zip(old, new, strict=True)]
        yield from (_line("minus", before) for before, _ in pairs)
        yield from (_line("plus", after) for _, after in pairs)
        return
    yield from (_line("minus", f"<del>{_shown(line, blanks=True)}</del>") for line in old)
    yield from (_line("plus", f"<ins>{_shown(line, blanks=True)}</ins>") for line in new)


def _inside(old: str, new: str) -> tuple[str, str]:
    """Both lines with marks at what only one of them has."""
    head = _same(old, new)
    rest = old[head:], new[head:]
    tail = _same(rest[0][::-1], rest[1][::-1])
    middle = [one[: len(one) - tail] for one in rest]
    before, after = _marked(*middle)
    begin, end = _shown(old[:head]), _shown(rest[0][len(middle[0]) :])
    return f"{begin}{before}{end}", f"{begin}{after}{end}"


def _same(old: str, new: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _marked(old: str, new: str) -> tuple[str, str]:
    if max(len(old), len(new)) > _COMPARED:
        return _mark("del", old), _mark("ins", new)
    before, after = [], []
    for tag, from_, to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            before.append(_shown(old[from_:to]))
            after.append(_shown(new[new_from:new_to]))
        else:
            before.append(_mark("del", old[from_:to]))
            after.append(_mark("ins", new[new_from:new_to]))
    return "".join(before), "".join(after)


def _mark(element: str, text: str) -> str:
    return f"<{element}>{_shown(text, blanks=True)}</{element}>" if text else ""


def _line(kind: str, markup: str) -> str:
    sign = {"minus": "-", "plus": "+"}.get(kind, " ")
    return f'<span class="{kind}">{sign}{markup}</span>'


def _shown(text: str, *, blanks: bool = False) -> str:
    """Escaped; what cannot be printed as its number, and blanks as dots where they are what changed."""
    more = len(text) - MOST_CHARACTERS
    chars = (_character(char, blanks) for char in text[:MOST_CHARACTERS])
    return escape("".join(chars)) + (f" ... {more:,} more characters" if more > 0 else "")


def _character(char: str, blanks: bool) -> str:
    if char == " ":
        return "\u00b7" if blanks else " "
    return char if char.isprintable() else ascii(char)[1:-1]
