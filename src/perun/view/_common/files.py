"""The files that views write: the one that the user names, or a new one; always complete or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TextIO

from perun import atomic
from perun.errors import UsageError
from perun.pages.document import encodable, page

if TYPE_CHECKING:
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


def report(path: Path, out: TextIO, ctx: ViewContext, *, browse: bool) -> None:
    """Write the name of the finished file to `out`, and open it in the browser if `browse` is true."""
    out.write(f"{path}\n")
    if browse:
        from perun.view._common.browser import open_in_browser

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
    """Write :func:`perun.pages.document.page` to `path`, which keeps its old content until that is complete.

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
