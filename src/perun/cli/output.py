"""Answers that go to a file (`--output`)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from perun import atomic
from perun.errors import UsageError


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A text file to write to, in UTF-8, that takes the place of `path` when the block has ended well.

    Where the block raises, `path` is as it was. What is no regular file, such as `/dev/stderr` or a named
    pipe, is written to directly.

    :raises UsageError: if `path` is a folder, or is in none that exists.
    :raises OSError: if it cannot be written; before the block, as far as that can be told.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "name a file in it: --output FILE")
    if not path.parent.is_dir():
        raise UsageError(
            f"cannot write {path}: there is no folder {path.parent}",
            "make the folder, or name another file: --output FILE",
        )
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", errors="backslashreplace") as direct:
            yield direct
        return
    with atomic.writing(path.resolve(), make_folder=False) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # it writes what is still buffered, and leaves the file open
