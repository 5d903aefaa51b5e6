"""The page that an answer of `perun check` is written on, and the interface of its formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TextIO

from perun.porcelain.check.report import Comparison, VersionReport


def plain(text: str, style: str) -> str:
    """The text without a colour."""
    return text


def unknown(method: str) -> str:
    """No description of the method."""
    return ""


class Page(NamedTuple):
    """Where an answer is written to, and how.

    :param command: the command behind `perun` that asks again, e.g. `check head`.
    :param paint: gives a text a colour.
    :param verbose: whether the answer includes No Change.
    :param single: whether the answer has only one version or pair.
    :param level: the degradations that are failures, a value of `--fail-on`.
    :param describe: one line on a method, by its name.
    :param head: the checksum of the current version; empty where there is none.
    :param profiles: baseline and target as the user named them, where these are compared.
    """

    out: TextIO
    command: str = "check"
    paint: Callable[[str, str], str] = plain
    verbose: bool = False
    single: bool = False
    level: str = "degradation"
    describe: Callable[[str], str] = unknown
    head: str = ""
    profiles: tuple[str, str] | None = None

    def say(self, text: str = "") -> None:
        """One line."""
        self.out.write(text + "\n")


class Answer(Protocol):
    """Gets versions, or pairs of profiles that belong to none, as they are checked; then the end.

    An answer does not keep them: its memory does not grow with the history.
    """

    def version(self, report: VersionReport) -> None:
        """The next version, newest first."""

    def pair(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""

    def end(self) -> None:
        """The check is complete."""
