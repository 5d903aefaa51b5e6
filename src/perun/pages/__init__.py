"""Pages as text: documents that load nothing and execute no text of others, and the theme that all share."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from perun.profile.amounts import BITS, BYTES, PLAIN, SECONDS, SIZES, SIZES_OF_RATES, SMALLEST, TIMES, end_of

# The theme of all pages: colours, fonts and the style sheet that every page starts with.
#
# The colours of series are those of M. Okabe and K. Ito, "Color Universal Design" (2008), which people with
# any kind of colour vision tell apart; their black is grey here, as black disappears on a dark page. The
# sequential ramp is cividis (J. Nuñez, C. Anderton, R. Renslow, PLoS ONE 13(7), 2018).

PALETTE: Final = (
    "#0072b2",  # blue
    "#d55e00",  # vermilion
    "#009e73",  # bluish green
    "#cc79a7",  # reddish purple
    "#56b4e9",  # sky blue
    "#e69f00",  # orange
    "#8a8a8a",  # grey
    "#f0e442",  # yellow: last, as it has little contrast on white
)
"""Colours of areas that names are written on; the first ones have contrast on light and on dark pages."""

SERIES: Final = (
    ("#0072b2", "#4690ee"),  # blue
    ("#d55e00", "#e8692c"),  # vermilion
    ("#009e73", "#14b585"),  # bluish green
    ("#cc79a7", "#dd91ce"),  # reddish purple
    ("#1295ff", "#84d4ff"),  # sky blue
    ("#7a4a00", "#e69f00"),  # brown, orange
    ("#5e6b6c", "#908595"),  # grey
    ("#583564", "#f0e442"),  # violet, yellow
)
"""Colours of the series of charts on a light and on a dark page.

They begin with those of Okabe and Ito. Each has a contrast of 3:1 at least to its page, as WCAG 2.2 (1.4.11)
asks of graphics, and any two differ by 17 (CIE 1976) for all kinds of colour vision, simulated after
G. Machado, M. Oliveira, L. Fernandes (IEEE TVCG 15(6), 2009).
"""
SUM: Final = ("#6f6f6f", "#b0b0b0")
WHISKER: Final = ("#3b4048", "#d5dae1")

RAMP: Final = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369",
               "#e1cc55", "#fee838")  # fmt: skip
"""Sequential colours from low to high, evenly spaced; readable without colour vision and in greyscale."""

LIGHT: Final[Mapping[str, str]] = MappingProxyType({
    "background": "#ffffff",
    "surface": "#f6f7f9",
    "text": "#1b1f24",
    "muted": "#57606a",
    "line": "#d0d7de",
    "accent": "#0072b2",
    "mark": "#d55e00",
    "worse": "#b4470a",
    "better": "#0068a8",
})  # fmt: skip
DARK: Final[Mapping[str, str]] = MappingProxyType({
    "background": "#14171c",
    "surface": "#1e232a",
    "text": "#e6e9ee",
    "muted": "#9aa4b0",
    "line": "#39414b",
    "accent": "#56b4e9",
    "mark": "#e69f00",
    "worse": "#f2934a",
    "better": "#6cb8f0",
})  # fmt: skip
"""Colours of the page by role; the style sheet has them as variables `--background`, `--text` ...

`worse` and `better` are for text: each has a contrast of 4.5:1 at least, as WCAG 2.2 (1.4.3) asks.
"""

FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
MONO: Final = 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace'


def colour(number: int) -> str:
    """The colour of series `number`, counted from 0, on a light page; -1 is that of a sum.

    Colours repeat, so that dashes, markers and hatches must tell their uses apart.
    """
    return SERIES[number % len(SERIES)][0] if number >= 0 else SUM[0]


def dark_colours() -> dict[str, str]:
    """What takes the place of each colour of series on a dark page."""
    return dict((*SERIES, SUM, WHISKER))


def ramp(share: float) -> str:
    """The colour of `share` between 0 (low) and 1 (high), interpolated on :data:`RAMP`."""
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    lower = min(int(place), len(RAMP) - 2)
    return mixed(RAMP[lower], RAMP[lower + 1], place - lower)


def mixed(one: str, other: str, share: float) -> str:
    """The mixture of two colours `#rrggbb`: `one` at `share` 0, `other` at 1."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def _variables(theme: Mapping[str, str]) -> str:
    return " ".join(f"--{role}: {value};" for role, value in theme.items())


CSS: Final = f"""\
:root {{ color-scheme: light dark; {_variables(LIGHT)} --font: {FONT}; --mono: {MONO}; }}
@media (prefers-color-scheme: dark) {{ :root:not([data-light]) {{ {_variables(DARK)} }} }}
:root[data-dark] {{ color-scheme: dark; {_variables(DARK)} }}
:root[data-light] {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
html {{ font: 15px/1.45 var(--font); background: var(--background); color: var(--text); }}
body {{ margin: 0 auto; padding: 1.2rem 1.6rem; max-width: 110rem; }}
h1 {{ font-size: 1.35rem; font-weight: 650; margin: 0 0 .15rem; overflow-wrap: anywhere; max-height: 4.4em;
  overflow: auto; }}
.subtitle, .note, footer {{ color: var(--muted); font-size: .9rem; overflow-wrap: anywhere; }}
.subtitle {{ margin: 0 0 .9rem; max-height: 4.4em; overflow: auto; }}
.controls {{ display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin: 0 0 .7rem; }}
button, select, input {{ font: inherit; color: inherit; background: var(--surface);
  border: 1px solid var(--line); border-radius: .4rem; padding: .25rem .6rem; max-width: 100%; }}
button {{ cursor: pointer; }}
button:hover, select:hover, input:hover {{ border-color: var(--accent); }}
:focus-visible {{ outline: 2px solid var(--accent); outline-offset: 1px; }}
code, kbd, pre {{ font-family: var(--mono); font-size: .92em; }}
a {{ color: var(--accent); }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
"""
"""The start of every page's style: roles as variables, dark if the browser prefers a dark scheme, unless the
attribute `data-dark` or `data-light` of the page says what the reader chose."""


# Self-contained HTML pages that load nothing and execute no text of a profile.
#
# A Content Security Policy makes the browser enforce that: a page allows only the scripts it was written
# with, named by their digest, and no connection.

_SPECIAL: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_ENDS_SCRIPT: Final = re.compile("<(?=/script|!--|script)", re.IGNORECASE)
_ENDS_STYLE: Final = re.compile("<(?=/style)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def escape(text: object) -> str:
    """`text` as content of an element or of a quoted attribute; half characters and NUL become U+FFFD."""
    return html.escape(encodable(str(text)).replace("\0", "\ufffd"))


def embed_json(data: Any) -> str:
    """`data` as JSON that is safe inside `<script>`: pure ASCII, without `<`, `>` and `&`.

    :raises ValueError: if it holds NaN or an infinity, which JSON cannot express.
    """
    import json

    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_SPECIAL)


def data_block(name: str, data: Any) -> str:
    """An element with the id `name` that holds `data` for a script to read; the browser never executes it."""
    return f'<script type="application/json" id="{escape(name)}">{embed_json(data)}</script>'


def text_beside(module: str, name: str) -> str:
    """The text of the file `name` in the folder of the Python file `module` (its `__file__`)."""
    return Path(module).with_name(name).read_text("utf-8")


def frame(document: str, title: str) -> str:
    """An element that shows a whole document of :func:`page` within another page, apart from its texts and
    scripts; that page must be told of it, by its parameter `frames`."""
    return f'<iframe sandbox="allow-scripts" title="{escape(title)}" srcdoc="{escape(document)}"></iframe>'


def page(
    *,
    title: str,
    body: str,
    style: str = "",
    scripts: Sequence[str] = (),
    evaluates: bool = False,
    frames: Sequence[str] = (),
) -> str:
    """A whole HTML document.

    :param title: any text.
    :param body: HTML; every text of a profile in it has gone through :func:`escape` or
        :func:`data_block`.
    :param style: CSS.
    :param scripts: JavaScript, run in this order after the body is parsed; each is an element of its own.
    :param evaluates: allow the scripts to make code from text (`eval`), as BokehJS does.
    :param frames: documents of this function that the body shows by :func:`frame`: a frame may run what both
        policies allow, so their scripts are allowed here, too.
    """
    scripts = [_ENDS_SCRIPT.sub("\\\\x3c", script) for script in scripts]
    policy = escape(_policy(scripts, evaluates, frames))
    style = _ENDS_STYLE.sub("\\\\3c ", style)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{style}\n</style>",
        "</head>",
        "<body>",
        body,
        *(f"<script>{script}</script>" for script in scripts),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(parts)


def encodable(text: str) -> str:
    """The text with U+FFFD for each half of a character, which no encoding has."""
    return _SURROGATES.sub("\ufffd", text)


def _policy(scripts: Sequence[str], evaluates: bool, frames: Sequence[str]) -> str:
    allowed = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]
    for document in frames:  # the policy stands before all text of others
        allowed += re.findall(r"'sha256-[\w+/=]+'", html.unescape(document.partition("<title>")[0]))
    allowed = list(dict.fromkeys(allowed))
    if evaluates:
        allowed.append("'unsafe-eval'")
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(allowed) or chr(39) + 'none' + chr(39)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "font-src data:",
        )
    )


# The script that writes the numbers of a page as :mod:`perun.profile.amounts` does.
#
# `numbers.js` has `perunNumber(value, unit, digits)`, and `perunTick(tick, ticks, unit)`, which writes all
# ticks of an axis in one unit. Both take the units and the limits from Python.


def numbers_script() -> str:
    """`numbers.js` with the units of this module, for a page; it defines `perunNumber` and `perunTick`."""
    units = {
        "times": {"factors": TIMES, "steps": SECONDS, "end": end_of(SECONDS)},
        "sizes": {"factors": SIZES, "steps": BYTES, "end": end_of(BYTES)},
        "plain": {"factors": {}, "steps": PLAIN, "end": end_of(PLAIN)},
        "rates": SIZES_OF_RATES,
        "bits": BITS,
        "smallest": SMALLEST,
    }
    return f"const perunUnits = {embed_json(units)};\n" + text_beside(__file__, "numbers.js")


# What pages with scripts share, of views and of the dashboard: numbers, colours, canvases, tooltips.


def shared_script() -> str:
    """The script that theirs begin with: :func:`perun.pages.numbers_script` and `interactive.js`."""
    return f"{numbers_script()}\n{text_beside(__file__, 'interactive.js')}"


def shared_style() -> str:
    """The style sheet that theirs begin with: the theme and `interactive.css`."""
    return CSS + text_beside(__file__, "interactive.css")
