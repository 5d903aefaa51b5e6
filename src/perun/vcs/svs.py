"""A version control without history: the folder as it is, for projects that have none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.core import atomic
from perun.core.errors import VersionControlError
from perun.core.regular import read_regular
from perun.plugin.api import MajorVersion, MinorVersion, Vcs
from perun.vcs._common import worktree

# A folder as the only version of itself.

FILE: Final = ".svs"
_MAX_BYTES: Final = 1 << 20
LINE: Final = "main"
"""The only line of development."""
VERSION: Final = "HEAD"
"""The checksum of the only version; older releases know it by this name, and keep its profiles under it."""


class Svs(Vcs):
    """One minor version, whatever is in the folder; see :class:`perun.plugin.api.Vcs`.

    `.svs` tells when the version was made, by whom and for what; older releases write none, so that it may be
    missing. Nothing is ever dirty, put aside or checked out.
    """

    type: ClassVar[str] = "svs"

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(root, environ)
        self._file = root / FILE

    def init(self, params: Mapping[str, Any]) -> bool:
        """Make `.svs` if it is missing; `{"description": TEXT}` describes the version."""
        unknown = [str(key) for key in params if key != "description"]
        if unknown:
            raise VersionControlError(
                f"svs has no parameter {unknown[0]!r}", "it has one: --vcs-param description TEXT"
            )
        if self._file.exists():
            self._version()
            return True
        author, email = worktree.current(self.environ)
        described = {
            "date": worktree.now(),
            "author": author,
            "email": email,
            "desc": str(params.get("description") or self._title()),
        }
        try:
            atomic.write(self._file, (json.dumps(described) + "\n").encode())
        except OSError as problem:
            raise VersionControlError(
                f"cannot write {self._file}: {problem.strerror}", "choose a folder that you may write to"
            ) from None
        return True

    def snapshot(self, name: str, message: str = "") -> str:
        """Refused: there is one version only."""
        raise VersionControlError(
            "svs keeps one version only, the folder as it is",
            "for versions with names take tagit: perun init --vcs-type tagit in a folder without .perun",
        )

    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """The only version."""
        yield self.get_minor_version_info(head)

    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """The only line, `main`."""
        yield MajorVersion(LINE, self.get_minor_head())

    def get_minor_head(self) -> str:
        """`HEAD`, the name of the only version."""
        return VERSION

    def get_head_major_version(self) -> str:
        """`main`."""
        return LINE

    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """The only version."""
        self.massage_parameter(minor_version)
        return self._version()

    def check_minor_version_validity(self, minor_version: str) -> None:
        """Raise unless it is the name of the only version."""
        if minor_version != VERSION:
            raise VersionControlError(
                f"{minor_version!r} is not the full name of a version", "svs has one: HEAD"
            )

    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """`HEAD` for itself, `@` and `main`."""
        if parameter in (VERSION, "@", LINE):
            return VERSION
        raise VersionControlError(
            f"there is no version {parameter!r}", "svs keeps no history: the only version is HEAD"
        )

    def is_dirty(self) -> bool:
        """Never: whatever is in the folder is the version."""
        return False

    def save_state(self) -> tuple[bool, str]:
        """Nothing to put aside."""
        return False, self.get_minor_head()

    def restore_state(self, saved: bool, state: str) -> None:
        """The folder is in that state, if there is such a version at all."""
        self.check_minor_version_validity(state)

    def checkout(self, minor_version: str) -> None:
        """The folder is that version, if there is such a version at all."""
        self.massage_parameter(minor_version)

    def missing_history(self) -> str:
        """There is none to miss, and that may surprise."""
        return "svs keeps one version only; see the documentation of version control for those with a history"

    def _version(self) -> MinorVersion:
        try:
            data = read_regular(self._file, _MAX_BYTES)
            described = json.loads(data)
            fields = [described[key] for key in ("date", "author", "email", "desc")]
        except FileNotFoundError:
            return MinorVersion(self._changed(), *worktree.current(self.environ), VERSION, self._title(), ())
        except OSError as problem:
            raise VersionControlError(
                f"{self._file} cannot be read: {problem.strerror}", "check its permissions"
            ) from None
        except (ValueError, TypeError, KeyError, RecursionError):
            raise VersionControlError(f"{self._file} is damaged", "restore it from a backup") from None
        date, author, email, desc = map(str, fields)
        return MinorVersion(date, author, email, VERSION, desc, ())

    def _changed(self) -> str:
        """When the list of the files in the folder changed last."""
        return time.strftime(worktree.DATE, time.gmtime(self.root.stat().st_mtime))

    def _title(self) -> str:
        return f"The only version of {self.root.name}"


PLUGIN = Svs
