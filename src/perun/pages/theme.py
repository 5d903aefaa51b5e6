"""The theme of all pages: colours, fonts and the style sheet that every page starts with.

The colours of series are those of M. Okabe and K. Ito, "Color Universal Design" (2008), which people with
any kind of colour vision tell apart; their black is grey here, as black disappears on a dark page. The
sequential ramp is cividis (J. Nuñez, C. Anderton, R. Renslow, PLoS ONE 13(7), 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
