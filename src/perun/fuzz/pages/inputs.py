"""Inputs of programs as HTML: any bytes, long rows of the same shortened, and two of them side by side."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from perun.fuzz.patterns import name_of
from perun.pages.document import escape

_SHOWN: Final = 4000
"""Bytes of an input that a page shows."""
_LINES: Final = 200
_LONG_LINE: Final = 400
_ROW: Final = re.compile(r"(.)\1{23,}|(..{1,7}?)\2{11,}", re.DOTALL)
"""The same character 24 times, or a few of them 12 times."""

STYLE: Final = """\
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; }
.sides > div { min-width: 0; }
.sides pre, pre.input { background: var(--surface); border: 1px solid var(--line); border-radius: .4rem;
  padding: .4rem .6rem; margin: .2rem 0 .8rem; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 24rem; overflow: auto; unicode-bidi: isolate; }
.sides del, .sides ins { text-decoration: none; border-radius: .2rem; }
.sides del { background: color-mix(in srgb, var(--mark) 30%, transparent); }
.sides ins { background: color-mix(in srgb, var(--accent) 30%, transparent); }
.row { color: var(--muted); border: 1px solid var(--line); border-radius: .3rem; padding: 0 .3rem; }
@media (max-width: 50rem) { .sides { grid-template-columns: 1fr; } }
"""


def shown(data: bytes) -> str:
    """An input as HTML in one `pre`; what is not text is written as `\\xff`."""
    return f'<pre class="input">{_pieces(readable(data[:_SHOWN]))}{_rest(data)}</pre>'


def side_by_side(old: bytes, new: bytes) -> tuple[str, str]:
    """Two inputs as HTML, each with what the other does not have marked.

    Only the first 4,000 bytes and 200 lines of each are compared.
    """
    one, other = (_lines(readable(data[:_SHOWN])) for data in (old, new))
    left, right = [], []
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        before, after = "".join(one[a:b]), "".join(other[c:d])
        if kind == "equal":
            left.append(_pieces(before))
            right.append(_pieces(after))
        else:
            left.append(f"<del>{_pieces(before)}</del>" if before else "")
            right.append(f"<ins>{_pieces(after)}</ins>" if after else "")
    return "".join(left) + _rest(old), "".join(right) + _rest(new)


def readable(data: bytes) -> str:
    """Bytes as text: UTF-8, and an escape for what is none and for control characters."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(char if char in "\n\t" or char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _lines(text: str) -> list[str]:
    pieces: list[str] = []
    for line in text.splitlines(keepends=True)[:_LINES]:
        # A long line is compared by words: all of it would be marked for one character.
        pieces += re.findall(r"\s+|\S+", line) if len(line) < _LONG_LINE else [line]
    return pieces


def _pieces(text: str) -> str:
    """Escaped text, with a long row of the same written as what it is and how often it is there."""
    parts, at = [], 0
    for match in _ROW.finditer(text):
        unit = match[1] or match[2]
        times = len(match[0]) // len(unit)
        parts.append(escape(text[at : match.start()]))
        parts.append(f'<span class="row">{times:,} {escape(name_of(unit.encode()))}</span>')
        at = match.start() + times * len(unit)
    return "".join((*parts, escape(text[at:])))


def _rest(data: bytes) -> str:
    more = len(data) - _SHOWN
    return f'<span class="row">{more:,} more bytes</span>' if more > 0 else ""
