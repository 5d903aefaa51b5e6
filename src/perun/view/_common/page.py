"""Self-contained HTML pages: nothing is loaded from anywhere, and no text of a profile is ever executed.

The browser itself is told so: a page allows only the scripts it was written with (by their digest), and no
connection to anything.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from perun import atomic
from perun.errors import UsageError

_SPECIAL: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_ENDS_SCRIPT: Final = re.compile("<(?=/script|!--|script)", re.IGNORECASE)
_ENDS_STYLE: Final = re.compile("<(?=/style)", re.IGNORECASE)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def escape(text: object) -> str:
    """`text` as content of an element or of a quoted attribute; what is no character becomes U+FFFD."""
    return html.escape(_SURROGATES.sub("\ufffd", str(text)).replace("\0", "\ufffd"))


def embed_json(data: Any) -> str:
    """`data` as JSON that may stand inside `<script>`: pure ASCII, without `<`, `>` and `&`.

    :raises ValueError: where it holds NaN or an infinity, which JSON has not.
    """
    import json

    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(_SPECIAL)


def data_block(name: str, data: Any) -> str:
    """An element of that id holding `data`, for a script to read; the browser never executes it."""
    return f'<script type="application/json" id="{escape(name)}">{embed_json(data)}</script>'


def beside(module: str, name: str) -> str:
    """The text of a file that lies beside the Python file `module` (its `__file__`)."""
    return Path(module).with_name(name).read_text("utf-8")


def page(
    *, title: str, body: str, style: str = "", scripts: Sequence[str] = (), evaluates: bool = False
) -> str:
    """A whole HTML document.

    :param title: any text.
    :param body: HTML; whatever of it comes from a profile has gone through :func:`escape` or
        :func:`data_block`.
    :param style: CSS.
    :param scripts: JavaScript, run after the body is there, each on its own.
    :param evaluates: let the scripts make code from text, as a few libraries do.
    """
    scripts = [_ENDS_SCRIPT.sub("\\\\x3c", script) for script in scripts]
    style = _ENDS_STYLE.sub("\\\\3c ", style)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_policy(scripts, evaluates))}">',
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


def write_page(
    path: Path,
    *,
    title: str,
    body: str,
    style: str = "",
    scripts: Sequence[str] = (),
    evaluates: bool = False,
) -> None:
    """Write :func:`page` to `path`, whose old content is there until the new one is whole.

    :raises UsageError: where the file cannot be written.
    """
    text = page(title=title, body=body, style=style, scripts=scripts, evaluates=evaluates)
    write_text(path, _SURROGATES.sub("\ufffd", text))


def write_text(path: Path, text: str, option: str = "--filename") -> None:
    """Write `text` to `path`, whose old content is there until the new one is whole.

    What is no UTF-8, e.g. of a file name, is written as the bytes that it was.

    :param option: what names the file on the command line, for the message.
    :raises UsageError: where the file cannot be written.
    """
    write_pieces(path, (text,), option)


def write_pieces(path: Path, pieces: Iterable[str], option: str = "--filename") -> None:
    """As :func:`write_text`, for a text that is made piece by piece."""
    try:
        target = path.resolve()
        # Nothing may take the place of a pipe or a device.
        special = target.exists() and not target.is_file()
        with target.open("wb") if special else atomic.writing(target) as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "surrogateescape"))
    except OSError as problem:
        raise UsageError(
            f"cannot write {path}: {problem.strerror or problem}", f"name another file with {option}"
        ) from None


def _policy(scripts: Sequence[str], evaluates: bool) -> str:
    from base64 import b64encode
    from hashlib import sha256

    allowed = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts]
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
