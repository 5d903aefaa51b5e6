"""The text of a source as its author wrote it, for columns: the preprocessor moves what follows a macro."""

from __future__ import annotations

import os
import re

from perun.regular import read_regular

from .unit import LARGEST

_LOOP = re.compile(r"\b(?:for|while|do)\b")
_INDENT = re.compile(r"\s*")


class Original:
    """The lines of a file; one that cannot be read has none, and its columns are 0."""

    def __init__(self, file: str) -> None:
        try:
            # A source may name any file as the one that it was made from, such as a device.
            text = read_regular(os.path.realpath(file), LARGEST).decode("utf-8", "replace")
            self._lines = text.split("\n")
        except (OSError, ValueError):
            self._lines = []

    def column(self, line: int, name: str) -> int:
        """The 0-based column of a name in a 1-based line; without the name that of the line's first word."""
        match = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", self._line(line))
        return match.start() if match else self._indent(line)

    def loop_column(self, line: int, number: int) -> int:
        """The column of a line's loop keyword, counted from 0; without one that of the line's first word."""
        matches = [match.start() for match in _LOOP.finditer(self._line(line))]
        return matches[number] if number < len(matches) else self._indent(line)

    def _line(self, line: int) -> str:
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""

    def _indent(self, line: int) -> int:
        match = _INDENT.match(self._line(line))
        return match.end() if match else 0
