"""The verb: changes of level of all series of a history."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final

from perun.errors import ProfileNotFound
from perun.models.change_points import voting
from perun.porcelain.changes import history
from perun.porcelain.changes.data import Changes
from perun.porcelain.changes.detecting import detect
from perun.porcelain.changes.events import by_version
from perun.porcelain.repository import Repository
from perun.porcelain.trend import text_of
from perun.profile.head import Configuration
from perun.profile.summary import Summary

Progress = Callable[[str, int, int], None]
"""Called with what is done, `versions` or `series`, how many are done, and of how many."""
READING: Final = "versions"
DETECTING: Final = "series"


def changes(
    repo: Repository,
    revision: str | None = None,
    since: str | None = None,
    *,
    pattern: str = "",
    effect: float = voting.EFFECT,
    progress: Progress = lambda what, done, total: None,
) -> Changes:
    """The versions along first parents that changed the level of a series, the oldest first.

    :param revision: the newest version, HEAD if None. :param since: as :func:`perun.porcelain.walking.since`.
    :param pattern: what `COLLECTOR COMMAND LOCATION` of a series contains; with `*`, `?` or `[`, what it
        matches.
    :param effect: the least change, as a share of the level before.
    :raises ProfileNotFound: if there are profiles, and no series matches.
    :raises VersionControlError: if there is no such version.
    """
    others: set[str] = set()

    def wanted(configuration: Configuration, one: Summary) -> bool:
        text = f"{configuration.collector} {text_of(configuration)} {one.location}"
        if any(character in pattern for character in "*?["):
            chosen = fnmatchcase(text, f"*{pattern}*")
        else:
            chosen = pattern in text
        if not chosen and len(others) < 5:
            others.add(text)
        return chosen

    read = history.read(
        repo, revision, since, wanted, lambda done, total: progress(READING, done, total)
    )
    if not read.keys and others:
        raise ProfileNotFound(
            f"no series matches {pattern!r}", f"there are, among others: {', '.join(sorted(others))}"
        )
    found = detect(read, effect, lambda done, total: progress(DETECTING, done, total))
    return Changes(by_version(read, found.steps), read, len(read.keys), found.short, found.spikes)
