"""A picture of what a terminal shows: `COMMAND 2>&1 | python docs/terminal.py TITLE > picture.svg`.

Colours are those of ANSI escape sequences; `script -qc COMMAND` makes a program write them to a pipe.
"""

from __future__ import annotations

import html
import re
import sys

COLOURS = {31: "#c62828", 32: "#2e7d32", 33: "#b26a00", 34: "#1565c0", 36: "#00838f"}
WIDTH, HEIGHT, MARGIN = 8.0, 18, 16
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")
_OTHER = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\r")


def picture(text: str, title: str) -> str:
    """The text as SVG, one character in each cell of a grid."""
    plain = _OTHER.sub(lambda found: found[0] if found[0].endswith("m") else "", text)
    lines = plain.expandtabs().splitlines()
    columns = max(len(_ESCAPE.sub("", line)) for line in lines)
    width, height = columns * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    rows = (
        f'<text x="{MARGIN}" y="{MARGIN + HEIGHT * (number + 0.75):g}">{_spans(line)}</text>'
        for number, line in enumerate(lines)
        if line.strip()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#fafafa" stroke="#d0d0d0"/>\n'
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#1f2328" '
        'xml:space="preserve">\n' + "\n".join(rows) + "\n</g>\n</svg>\n"
    )


def _spans(line: str) -> str:
    """The pieces of a line, each at its column, so that fonts of another width keep the grid."""
    made, style, column = [], "", 0
    for number, piece in enumerate(_ESCAPE.split(line)):
        if number % 2:
            style = _style([int(code or 0) for code in piece.split(";")])
            continue
        for found in re.finditer(r"\S+(?: \S+)*", piece):
            x, length = MARGIN + (column + found.start()) * WIDTH, len(found[0]) * WIDTH
            made.append(
                f'<tspan x="{x:g}" textLength="{length:g}" lengthAdjust="spacingAndGlyphs"{style}>'
                f"{html.escape(found[0])}</tspan>"
            )
        column += len(piece)
    return "".join(made)


def _style(codes: list[int]) -> str:
    colour = next((COLOURS[code] for code in codes if code in COLOURS), "")
    bold = ' font-weight="bold"' if 1 in codes else ""
    dim = ' fill-opacity="0.6"' if 2 in codes else ""
    return (f' fill="{colour}"' if colour else "") + bold + dim


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read().strip("\n"), sys.argv[1]))
