"""The files that views write: the one that the user names, or a new one; always complete or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import IO, Any, Final, Protocol, TextIO

from perun.core import atomic
from perun.core.errors import UsageError
from perun.pages import (
    PALETTE,
    RAMP,
    data_block,
    encodable,
    escape,
    page,
    shared_script,
    shared_style,
    text_beside,
)
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile

_NAME_LIMIT: Final = 100
_TRIES: Final = 1000


def destination(
    filename: str, view: str, profile: Profile, extension: str = "html", option: str = "--filename"
) -> Path:
    """The file to write: `filename` if it is given, else a name that no file has yet.

    That is `<view>-<collector>-<cmd>-<workload>.<extension>`, with `(1)`, `(2)` ... added if that exists.

    :param option: the option that names the file, for the message.
    :raises UsageError: if no name is free.
    """
    if filename:
        return Path(filename)
    what = profile.configuration
    measured = (what.collector, os.path.basename(what.cmd), os.path.basename(what.workload))
    # ASCII letters only: the name of a command may hold what a file system refuses.
    cleaned = (re.sub(r"[^A-Za-z0-9_.+-]+", "_", part).strip("_.") for part in (view, *measured))
    stem = "-".join(part for part in cleaned if part)[:_NAME_LIMIT]
    names = (f"{stem}.{extension}", *(f"{stem}({count}).{extension}" for count in range(1, _TRIES)))
    for name in names:
        if not os.path.lexists(name):
            return Path(name)
    raise UsageError(
        f"all files from {names[0]} to {names[-1]} exist already", f"name another file with {option}"
    )


def write_or_print(name: str, pieces: Iterable[str], out: TextIO, option: str = "--filename") -> None:
    """Write a text, made piece by piece, to the file, and its name to `out`; without a name, the text."""
    if not name:
        for piece in pieces:
            out.write(piece)
        return
    write_pieces(Path(name), pieces, option)
    out.write(f"{name}\n")


def as_json(document: Mapping[str, Any]) -> str:
    """A line of JSON."""
    import json

    return json.dumps(document, separators=(",", ":")) + "\n"


def needs_page(format: str, *, browse: bool) -> None:
    """Check that a format other than `html` is not for the browser.

    :raises UsageError: if it is.
    """
    if browse and format != "html":
        raise UsageError(
            f"a browser cannot show --format {format}", "leave out --view-in-browser or --format"
        )


def report(path: Path, out: TextIO, ctx: ViewContext, *, browse: bool) -> None:
    """Write the name of the finished file to `out`, and open it in the browser if `browse` is true."""
    out.write(f"{path}\n")
    if browse:
        open_in_browser(path, ctx)


def write_text(path: Path, text: str, option: str = "--filename") -> None:
    """Write `text` to `path` as UTF-8; for the parameters and errors see :func:`writing`.

    Bytes of a file name that are no UTF-8 (surrogates) are written as they were.
    """
    write_pieces(path, (text,), option)


def write_pieces(path: Path, pieces: Iterable[str], option: str = "--filename") -> None:
    """As :func:`write_text`, for a text that is made piece by piece."""
    with writing(path, option) as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", "surrogateescape"))


def write_page(
    path: Path,
    *,
    title: str,
    body: str,
    style: str = "",
    scripts: Sequence[str] = (),
    evaluates: bool = False,
) -> None:
    """Write :func:`perun.pages.page` to `path`, which keeps its old content until that is complete.

    :raises UsageError: if the file cannot be written.
    """
    text = page(title=title, body=body, style=style, scripts=scripts, evaluates=evaluates)
    write_text(path, encodable(text))


@contextmanager
def writing(path: Path, option: str = "--filename") -> Iterator[IO[bytes]]:
    """A binary file to write to; `path` keeps its old content until the new one is complete.

    :param option: the option that names the file, for the message.
    :raises UsageError: if the file cannot be written.
    """
    try:
        target = path.resolve()
        # A pipe or a device is written to; a regular file in its place would break what reads it.
        special = target.exists() and not target.is_file()
        with target.open("wb") if special else atomic.writing(target, make_folder=False) as file:
            yield file
    except OSError as problem:
        if not path.parent.is_dir():
            raise UsageError(
                f"cannot write {path}: there is no folder {path.parent}",
                f"make the folder, or name another file with {option}",
            ) from None
        raise UsageError(
            f"cannot write {path}: {problem.strerror or problem}", f"name another file with {option}"
        ) from None


# Opening a page in the browser of the user.

_IN_TERMINAL: Final = ("www-browser", "links", "elinks", "lynx", "w3m")


def open_in_browser(path: Path, ctx: ViewContext) -> None:
    """Open the file in the user's browser; a failure is only a note, because the file is complete."""
    import webbrowser

    try:
        browser = webbrowser.get()
        # A browser that runs in the terminal shows no canvas, and blocks the terminal until it is left.
        shows = Path(getattr(browser, "name", "")).name not in _IN_TERMINAL
        opened = shows and browser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        ctx.note(f"cannot open a browser; open {path} in one")


# Pages that draw on a canvas with a script of their own: the flame graph and the heap map.
#
# Such a view has `page.html`, `page.css` and `page.js` beside its Python files. This module adds what all
# such pages share, of :mod:`perun.pages`.


class PageParams(Protocol):
    """The parameters of every view with a page: where it goes."""

    @property
    def filename(self) -> str:
        """The page to write; empty for a new file named after the profile."""

    @property
    def view_in_browser(self) -> bool:
        """Whether to open the page in the browser."""


def write_interactive_page(
    profile: Profile,
    params: PageParams,
    out: TextIO,
    ctx: ViewContext,
    view: str,
    *,
    data: Mapping[str, Any],
    title: str,
    subtitle: str = "",
    scripts: Sequence[str] = ("page.js",),
) -> None:
    """Write the page of a view to a file, and its name to `out`, and show it where the user wants that.

    :param view: the `__file__` of the view, whose folder has its name and the parts of its page.
    :param data: what the script reads from the element `data`, with the colours of the theme added.
    :param title: any text. :param subtitle: likewise; the template `page.html` has the places for both.
    :param scripts: names of files beside the view, run in this order as one script.
    :raises UsageError: if the file cannot be written.
    """
    document = {**data, "palette": PALETTE, "ramp": RAMP}
    body = Template(text_beside(view, "page.html")).substitute(
        title=escape(title), subtitle=escape(subtitle), data=data_block("data", document)
    )
    parts = [shared_script(), *(text_beside(view, name) for name in scripts)]
    path = destination(params.filename, Path(view).parent.name, profile)
    style = shared_style() + text_beside(view, "page.css")
    write_page(path, title=title, body=body, style=style, scripts=["\n".join(parts)])
    report(path, out, ctx, browse=params.view_in_browser)
