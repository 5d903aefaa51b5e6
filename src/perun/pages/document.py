"""Self-contained HTML pages that load nothing and execute no text of a profile.

A Content Security Policy makes the browser enforce that: a page allows only the scripts it was written
with, named by their digest, and no connection.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from perun.pages.theme import CSS
from perun.profile.amounts import BITS, BYTES, PLAIN, SECONDS, SIZES, SIZES_OF_RATES, SMALLEST, TIMES, end_of

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
    """The script that theirs begin with: :func:`perun.pages.document.numbers_script` and `interactive.js`."""
    return f"{numbers_script()}\n{text_beside(__file__, 'interactive.js')}"


def shared_style() -> str:
    """The style sheet that theirs begin with: the theme and `interactive.css`."""
    return CSS + text_beside(__file__, "interactive.css")
