"""The pages of the dashboard: documents from templates, and the script and the style sheet that they share.

A page holds no data. Its script loads pieces of JSON by their names: from the server, or, in a static site
that opens from disk, as scripts that hand their piece over. So nothing of a repository is ever part of a
document but the name of the project.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.pages import PALETTE, RAMP, SERIES, shared_script, shared_style

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER: Final = Path(__file__).parent
PAGES: Final = ("overview", "series", "commit", "compare", "grid", "coverage")
_LABELS: Final = ("Overview", "Series", "Commits", "Compare", "Grid", "Coverage")
_KEYS: Final = "oscdgv"
_SCRIPTS: Final = (
    "dom", "load", "words", "place", "tip", "spark", "decimate", "scale", "drawing", "gestures", "chart",
    "heat", "changes", "context", "search", "keys", "frame", "values", "report", "reasons", "lines",
    "serieslist", "commits", "overview", "series", "commit", "compare", "grid", "coverage", "start",
)  # fmt: skip
"""Files of `scripts/`, in the order in which they are joined."""
_STYLES: Final = ("site", "pages")
_IN_QUOTES: Final = (
    ("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\r", "\\r"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"),
)  # fmt: skip
"""What ends or breaks a text in single quotes, the backslash first."""

_SOURCES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
)
STATIC_POLICY: Final = "; ".join(_SOURCES)
"""The Content Security Policy that a page of a static site carries."""
POLICY: Final = "; ".join((*_SOURCES, "frame-ancestors 'none'"))
"""The Content Security Policy of the live pages, as the value of the header."""


def file_name(page: str) -> str:
    """The file of a page of the site, one of :data:`PAGES`: `index.html`, `series.html` ..."""
    return "index.html" if page == "overview" else f"{page}.html"


def html(page: str, *, project: str, live: bool) -> str:
    """A whole document.

    :param page: one of :data:`PAGES`. :param project: the name of the project, any text.
    :param live: whether a server answers, so that pieces are fetched and the policy comes as a header.
    """
    names = _asset_names()
    text: str = (
        _environment()
        .get_template(f"{page}.html")
        .render(
            page=page,
            title=dict(zip(PAGES, _LABELS, strict=True))[page],
            project=project,
            live=live,
            policy=STATIC_POLICY,
            navigation=tuple(zip(PAGES, _LABELS, _KEYS, strict=True)),
            link=file_name,
            **names,
        )
    )
    return text


def assets() -> dict[str, bytes]:
    """The files that all pages load, by their addresses, which change with the content."""
    contents = _asset_contents()
    return {name: contents[kind].encode() for kind, name in _asset_names().items()}


def digest() -> str:
    """What stands for all that documents are made of but their project."""
    texts = [one.read_bytes() for one in sorted((_FOLDER / "templates").iterdir()) if one.is_file()]
    return sha256(b"".join((*texts, *map(str.encode, _asset_names().values())))).hexdigest()


def piece(name: str, data: str) -> str:
    """The script by which a static page gets a piece.

    The JSON is a text of the script, which browsers read faster than an expression, and in which no key has a
    meaning of its own.

    :param data: the piece as JSON.
    """
    return f"perunPiece({_quoted(name)},{_quoted(data)});\n"


def _quoted(text: str) -> str:
    # By character in C: a table for `translate` takes ten times as long on pieces of a megabyte.
    for character, escaped in _IN_QUOTES:
        text = text.replace(character, escaped)
    return f"'{text}'"


def _text(path: str) -> str:
    return (_FOLDER / path).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(_FOLDER / "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


@cache
def _asset_contents() -> dict[str, str]:
    theme = {"palette": PALETTE, "ramp": RAMP, "series": SERIES}
    parts = [shared_script(), f"const perunTheme = {json.dumps(theme)};"]
    parts += [_text(f"scripts/{name}.js") for name in _SCRIPTS]
    return {
        "script": "\n".join(parts),
        "early": _text("scripts/early.js"),
        "style": shared_style() + "".join(_text(f"styles/{name}.css") for name in _STYLES),
    }


@cache
def _asset_names() -> dict[str, str]:
    endings = {"script": ("perun", "js"), "early": ("early", "js"), "style": ("perun", "css")}
    names = {}
    for kind, text in _asset_contents().items():
        name, ending = endings[kind]
        names[kind] = f"assets/{name}-{sha256(text.encode()).hexdigest()[:10]}.{ending}"
    return names
