"""Rules of the user: which function, probe or line in which of the traced files is meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from perun.collect.trace.libraries import kind_of, names_of
from perun.errors import UsageError
from perun.plugin.params import nearest

if TYPE_CHECKING:
    from perun.collect._calls.binary import Binary, Function


class Rule(NamedTuple):
    """The parts of `<lib>#<what>#<sampling>`; empty or 0 if left out."""

    library: str
    what: str
    sampling: int


def parse_rule(text: str) -> Rule:
    """A rule of `--func`: `f`, `lib#f`, `f#10` or `lib#f#10`.

    :raises UsageError: where it has no name, or too many parts.
    """
    parts = text.split("#")
    sampling = 0
    if len(parts) > 1 and parts[-1].isdecimal():
        sampling = int(parts.pop())
    elif len(parts) == 3 and not parts[-1]:
        parts.pop()
    library = parts.pop(0) if len(parts) == 2 else ""
    if len(parts) != 1 or not parts[0]:
        raise UsageError(f"cannot parse the rule {text!r}", "write <name> or <lib>#<name>#<sampling>")
    return Rule(library, parts[0], sampling)


class Files(NamedTuple):
    """The program and the libraries in which names are searched.

    :param libs: what the user wrote for each library.
    """

    binaries: Sequence[Binary]
    libs: Sequence[str]

    def functions(self, rule: Rule) -> tuple[Binary, list[Function]]:
        """The functions that a rule means, and the first file that has any.

        :raises UsageError: where no file has any; names the most similar ones.
        """
        problem: UsageError | None = None
        for binary in [self.library(rule.library)] if rule.library else self.binaries:
            try:
                return binary, binary.find(rule.what)
            except UsageError as unknown:
                problem = problem or unknown
        assert problem is not None
        if kind_of(self.binaries[0].path).stripped and not rule.library:
            why, hint = stripped(self.binaries[0].path)
            raise UsageError(f"{problem.message}: {why}", hint)
        raise problem

    def library(self, name: str) -> Binary:
        """The file that the user calls so: by path, file name or soname, with the version or without.

        :raises UsageError: where it is not among the traced files.
        """
        given = ["", *self.libs]
        known = [
            (binary, names_of(binary.path, given[place] if place < len(given) else ""))
            for place, binary in enumerate(self.binaries)
        ]
        for wanted in (name, os.path.basename(name), os.path.basename(name).partition(".so")[0]):
            for binary, names in known:
                if wanted in names:
                    return binary
        raise UsageError(
            f"{name!r} is not among the traced files",
            f"{nearest(name, {one for _, names in known for one in names if '/' not in one})}; "
            "add a library with --libs (-l)",
        )


def stripped(path: str) -> tuple[str, str]:
    """What is wrong with a program without symbols, and what to do."""
    return (
        f"{os.path.basename(path)} is stripped: the names of its own functions were removed from it",
        "build it without strip and -s; or trace a library with --libs (-l), whose exported functions stay",
    )
