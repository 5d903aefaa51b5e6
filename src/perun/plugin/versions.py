"""The contract of version control systems: the part of :mod:`perun.plugin.api` that `perun status` and `log`
need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from perun.core.errors import VersionControlError


class MinorVersion(NamedTuple):
    """One version of the project (manual 13.1.1). `date` is `YYYY-MM-DD HH:MM:SS` of the commit, in UTC."""

    date: str
    author: str
    email: str
    checksum: str
    desc: str
    parents: tuple[str, ...]

    @property
    def subject(self) -> str:
        """The first line of the description."""
        return self.desc.partition("\n")[0]


class SavedState(NamedTuple):
    """What was put aside: whether there was anything, where HEAD was, what the changes can be found by."""

    saved: bool
    state: str
    stash: str = ""


class MajorVersion(NamedTuple):
    """One line of development: its name (a branch) and its newest minor version."""

    name: str
    head: str


class Vcs(ABC):
    """A version control system as Perun needs it (manual 13.1.1); versions are named by full checksums.

    All methods raise :class:`~perun.core.errors.VersionControlError` if the system refuses.

    :param root: folder of the wrapped repository (`vcs.url`).
    :param environ: environment for the commands that the implementation runs.
    """

    type: ClassVar[str]

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self.environ = environ

    @abstractmethod
    def init(self, params: Mapping[str, Any]) -> bool:
        """Initialise or reinitialise the system at `root`; flags are keys whose value is True."""

    @abstractmethod
    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """All ancestors of `head`, itself first, newest first, as a stream."""

    @abstractmethod
    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """All lines of development."""

    @abstractmethod
    def get_minor_head(self) -> str:
        """Checksum of the current version; an error if there is none yet."""

    @abstractmethod
    def get_head_major_version(self) -> str:
        """Name of the current line of development; if HEAD is detached, its checksum."""

    @abstractmethod
    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """The given version."""

    @abstractmethod
    def check_minor_version_validity(self, minor_version: str) -> None:
        """Raise unless the full checksum names a version."""

    @abstractmethod
    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """The full checksum for any spelling that the system knows (HEAD~1, a tag, a prefix)."""

    @abstractmethod
    def is_dirty(self) -> bool:
        """Whether tracked files differ from the current version, staged or not."""

    @abstractmethod
    def save_state(self) -> tuple[bool, str]:
        """Put uncommitted changes aside; whether there were any, and where HEAD was."""

    @abstractmethod
    def restore_state(self, saved: bool, state: str) -> None:
        """Go back to `state` and reapply what :meth:`save_state` put aside."""

    @abstractmethod
    def checkout(self, minor_version: str) -> None:
        """Make the working directory that of the given version, losing nothing of the user's."""

    def prepare_save(self) -> SavedState:
        """First half of :meth:`save_state`, after which nothing of the user's can be lost any more.

        A system that can make a copy of uncommitted changes without touching them does so here; the others
        put them aside now.
        """
        return SavedState(*self.save_state())

    def finish_save(self, saved: SavedState) -> None:  # noqa: B027  # nothing is left to do by default
        """Second half of :meth:`save_state`: take out what :meth:`prepare_save` made a copy of."""

    def resume(self, saved: SavedState) -> None:
        """As :meth:`restore_state`; also in another process than the one that saved, whatever that did."""
        self.restore_state(saved.saved, saved.state)

    def walk_subjects(self, head: str, *, ordered: bool = False) -> Iterator[MinorVersion]:
        """As :meth:`walk_minor_versions`, but `desc` may hold the subject alone; fast on long histories.

        :param ordered: children strictly before their parents, also if clocks disagreed; the system may
            have to see the whole history before the first version comes.
        """
        return self.walk_minor_versions(head)

    def walk_together(self, heads: Sequence[str]) -> Iterator[MinorVersion]:
        """What :meth:`walk_subjects` gives of the heads, each version once, in no certain order."""
        seen: set[str] = set()
        for head in heads:
            for version in self.walk_subjects(head) if head not in seen else ():
                if version.checksum not in seen:
                    seen.add(version.checksum)
                    yield version

    def merge_base(self, first: str, second: str) -> str | None:
        """The newest version that both come from, or one of them; None where they share no history."""
        theirs = {version.checksum for version in self.walk_subjects(second)}
        ours = (version.checksum for version in self.walk_subjects(first, ordered=True))
        return next((one for one in ours if one in theirs), None)

    def changed_files(self) -> list[str]:
        """The paths of files that differ from the current version, relative to `root`.

        These are changed, new and deleted ones, staged or not, and untracked ones that are not ignored.
        """
        return []

    def uncommitted(self) -> str:
        """The checksum of a version, in no branch, of the working directory as it is, without files that the
        system does not know; empty where nothing is uncommitted.

        :raises VersionControlError: if there are no such versions, as by default.
        """
        raise VersionControlError(f"{self.type} cannot tell what is uncommitted", "name a version")

    def snapshot(self, name: str, message: str = "") -> str:
        """Make a version of the working directory as it is, for `perun tag`; its full checksum.

        :raises VersionControlError: if versions are made by commands of the system's own, as by default.
        """
        raise VersionControlError(
            f"perun tag cannot make versions of {self.type}", f"make them with the commands of {self.type}"
        )

    def tags(self) -> list[tuple[str, str]]:
        """The names of tags, each with the checksum of its version; none where the system has none."""
        return []

    def missing_history(self) -> str:
        """Why older versions are not here, and how to get them; empty if the history is whole."""
        return ""

    def missing_tags(self) -> str:
        """Why tags of versions that are here may be missing, and how to get them; empty if none is."""
        return ""

    def difference(self, first: str, second: str) -> list[FileDiff] | None:
        """What the second version has in place of the first one; None where the system cannot tell."""
        return None

    def source(self, minor_version: str, path: str) -> bytes | None:
        """The content of a file of a version; None where there is none, or the system cannot tell.

        :param path: relative to the top of the repository, as of :meth:`difference`.
        """
        return None

    def files(self, minor_version: str) -> list[str]:
        """The paths of all files of a version, as of :meth:`difference`; none where it cannot tell."""
        return []

    def working_copy(self, folder: Path) -> WorkingCopy:
        """A second working directory at `folder` that does not touch the user's.

        :raises VersionControlError: if the system has no such thing; use `--in-place` then.
        """
        raise VersionControlError(
            f"{self.type} cannot measure other versions beside the working directory",
            "use --in-place to check them out in the working directory itself",
        )

    def content(self, minor_version: str) -> str:
        """What decides which files a working copy of the version has; versions may share it."""
        return minor_version

    def kept_copy(self, folder: Path, scratch: Path) -> KeptCopy | None:
        """A working copy in `folder/tree` that later processes use; None where the system has no such thing.

        :param scratch: a folder that is used for a moment, as that of :meth:`working_copy`.
        """
        return None


class FileDiff(NamedTuple):
    """What two versions differ by in one file.

    :param old: and :param new: its path in either version, relative to the top of the repository; empty
        where it is not there. :param patch: the hunks as `git diff` writes them; empty of a binary file, or
        of one that is too large.
    """

    old: str
    new: str
    patch: str


class WorkingCopy(Protocol):
    """A working directory of Perun's own; a context manager that removes it at the end."""

    def switch(self, minor_version: str) -> Path:
        """Make it that version, without left-overs of the one before; the folder to run in."""

    def __enter__(self) -> WorkingCopy: ...

    def __exit__(self, *exc: object) -> None: ...


class KeptCopy(Protocol):
    """A working copy that is there until its folder is removed, of which nothing is noted anywhere else."""

    def make(self, minor_version: str) -> Path:
        """Check the version out where nothing is yet; the folder to run in."""

    def renew(self, minor_version: str) -> Path:
        """Have the system tell in it that it is that version, whose :meth:`Vcs.content` it was made with.

        No file of the version is touched.

        :raises VersionControlError: if what the system notes of it is damaged.
        """
