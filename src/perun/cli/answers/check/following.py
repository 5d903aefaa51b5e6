"""The command that tells more of what a check found: its last line."""

from __future__ import annotations

import re
import shlex
from typing import Final

from perun.cli.answers.changes import importance, is_better, is_maybe, is_worse
from perun.cli.answers.check.page import Page
from perun.cli.table import one_line
from perun.measurement.verdict import UNDECIDED
from perun.plugin.api import MinorVersion
from perun.porcelain.check.report import Comparison
from perun.porcelain.tags import identity
from perun.profile.bounds import TYPE as BOUND
from perun.profile.changes import DegradationInfo
from perun.profile.helpers import ProfileInfo
from perun.wording import plural

WITH_CALLS: Final = frozenset({"complexity", "instructions", "memory", "trace"})
"""Collectors whose profiles have call stacks, which a flame graph shows."""
_PYTHON: Final = re.compile(r"(?:\S*/)?(?:python[\d.]*|[^\s/]+\.py)(?:\s|$)")


class Following:
    """Keeps the most important change of all that is added, and says which command explains it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._found: tuple[DegradationInfo, Comparison, MinorVersion | None] | None = None
        self._undecided: list[tuple[int, int, Comparison, MinorVersion]] = []

    def add(self, comparison: Comparison, version: MinorVersion | None) -> None:
        """Count in a pair of profiles, and the version of the target."""
        for change in comparison.places:
            if self._found is None or importance(change) < importance(self._found[0]):
                self._found = change, comparison, version

    def hide(self, comparison: Comparison, version: MinorVersion) -> None:
        """Count in what is not certain of a pair of profiles, and is not listed."""
        kinds = [change.result for change in comparison.places if change.result in UNDECIDED]
        if kinds:
            maybe = sum(map(is_maybe, kinds))
            self._undecided.append((maybe, len(kinds) - maybe, comparison, version))

    @property
    def hidden(self) -> str:
        """How much is not listed, and the command that decides on the most of it; empty if all is."""
        if not self._undecided:
            return ""
        maybe, unknown = sum(one[0] for one in self._undecided), sum(one[1] for one in self._undecided)
        counts = ", ".join(f"{n} {word}" for n, word in ((maybe, "maybe"), (unknown, "unknown")) if n)
        *_, comparison, version = max(self._undecided, key=lambda one: one[:2])
        command = self._deciding(comparison, version)
        return f"{counts} in {plural(len(self._undecided), 'pair')}" + (f"; {command}" if command else "")

    def _deciding(self, comparison: Comparison, version: MinorVersion) -> str:
        base = comparison.baseline_version
        if base is None or comparison.session is not None:
            return ""
        words = ["perun", "compare", self._name(base, version), self._name(version, None)]
        return f"to decide: {_quoted([*words, *comparison.target.configuration.options])}"

    @property
    def command(self) -> str:
        """The line with the command; empty where nothing changed, or no command tells more.

        Of bounds, which nothing has measured, that is the list of the target. Of profiles with call stacks
        it is their flame graph, compared with the baseline. Of others a measurement side by side decides what
        is not certain; of what is, the functions of both versions are to be measured: their instructions, or
        where only the clock on the wall changed, their times. No collector measures the times of functions
        of Python.
        """
        if self._found is None:
            return ""
        change, comparison, version = self._found
        if comparison.session is not None or change.type == "incomplete":
            return ""
        if comparison.target.head.type == BOUND:
            return self._table(comparison, version)
        if comparison.target.head.collector in WITH_CALLS:
            return self._flamegraph(comparison, version)
        base = comparison.baseline_version
        if version is None or base is None:
            return ""
        names = self._name(base, version), self._name(version, None)
        if change.result in UNDECIDED:
            return "" if self._undecided else self._deciding(comparison, version)
        if not (is_worse(change.result) or is_better(change.result)):
            return ""
        versions = [word for name in names for word in ("-m", name)]
        collector = ["trace" if _only_waits(change, comparison) else "instructions"]
        if _is_python(comparison.target.head.cmd):
            if collector == ["trace"]:
                return ""  # which sees the functions of the interpreter only
            collector.append("--python")
        options = comparison.target.configuration.options
        return f"why: {_quoted(['perun', 'collect', *versions, *options, *collector])}"

    def _flamegraph(self, comparison: Comparison, version: MinorVersion | None) -> str:
        base = comparison.baseline_version
        if version is not None and base is not None and comparison.baseline is not None:
            target = f"{self._name(version, None)}:{_tag(comparison.target)}"
            baseline = f"{self._name(base, version)}:{_tag(comparison.baseline)}"
        elif self._page.profiles:
            baseline, target = self._page.profiles
        else:
            return ""
        return f"why: {_quoted(['perun', 'show', target, 'flamegraph', '--diff', baseline])}"

    def _table(self, comparison: Comparison, version: MinorVersion | None) -> str:
        if version is not None:
            target = f"{self._name(version, None)}:{_tag(comparison.target)}"
        elif self._page.profiles:
            target = self._page.profiles[1]
        else:
            return ""
        return f"why: {_quoted(['perun', 'show', target])}"

    def _name(self, version: MinorVersion, child: MinorVersion | None) -> str:
        """`HEAD`, or `HEAD~1` of the first parent of that, or the beginning of the checksum."""
        head = self._page.head
        if version.checksum == head:
            return "HEAD"
        if child is not None and child.checksum == head and child.parents[:1] == (version.checksum,):
            return "HEAD~1"
        return version.checksum[:10]


def _only_waits(change: DegradationInfo, comparison: Comparison) -> bool:
    """Whether the time that passed changed, but not that of the processor."""
    uid, real, _ = change.location.partition(" [real]")
    return bool(real) and f"{uid} [cpu]" not in {
        one.location for one in comparison.places if is_worse(one.result) == is_worse(change.result)
    }


def _is_python(command: str) -> bool:
    """Whether the name of the program is that of an interpreter or a script of Python."""
    return bool(_PYTHON.match(command))


def _tag(info: ProfileInfo) -> str:
    return f"{identity(info)}@i"


def _quoted(words: list[str]) -> str:
    """The words for a shell. `HEAD~1` needs no quotes: a tilde stands for a folder at a beginning only."""
    bare = re.compile(r"[\w@%+=:,./-][\w@%+=:,./~-]*", re.ASCII)
    return one_line(" ".join(word if bare.fullmatch(word) else shlex.quote(word) for word in words))
