"""Files that workload generators made, as jobs name them: here, on their way, and on a machine.

They lie in folders of `.perun/tmp/workloads` that are named after what they hold. So a machine knows whether
it has them, and takes in nothing else under such a name; a job finds them at the same paths in each run.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from perun.errors import JobFailed, UsageError
from perun.porcelain.pool.folders import RESULTS_KEPT
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import workloads
from perun.porcelain.run.workloads import Input
from perun.regular import open_for_writing, open_regular

MAX_ARCHIVE: Final = 1 << 40


def home(repo: Repository) -> Path:
    """The folder that they are all in."""
    return repo.root / PERUN_FOLDER / "tmp" / workloads.FOLDER


def described(repo: Repository, one: Input) -> list[Any]:
    """An input as it is sent: a file by its place in :func:`home`, anything else as it is."""
    start, path = _parts(one.text)
    if path is not None and path.is_relative_to(home(repo)):
        return [start, one.amount, path.relative_to(home(repo)).as_posix()]
    return [one.text, one.amount]


def input_of(repo: Repository, written: Sequence[Any]) -> Input:
    """The input that was described, as commands on this machine get it."""
    text, amount, *place = written
    if place:
        text += shlex.quote(str(home(repo) / place[0]))
    return Input(text, amount)


def folder_of(written: Sequence[Any]) -> str | None:
    """The name of the folder with the file of a described input; None if it is no file."""
    return PurePosixPath(written[2]).parts[0] if len(written) == 3 else None


def _parts(text: str) -> tuple[str, Path | None]:
    start = "< " if text.startswith("< ") else ""
    try:
        words = shlex.split(text.removeprefix(start))
    except ValueError:
        return start, None
    return start, Path(words[0]) if len(words) == 1 else None


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of the archive below the folder; there are no links, which could lead out of it."""
    for member in archive:
        place = PurePosixPath(member.name)
        content = archive.extractfile(member) if member.isreg() else None
        if content is None or place.is_absolute() or ".." in place.parts:
            raise UsageError(f"{member.name!r} cannot be a generated file")
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_for_writing(path) as file:
            shutil.copyfileobj(content, file)
        path.chmod(member.mode & 0o700)


class Store:
    """The generated files that a machine has of a project."""

    def __init__(self, repo: Repository) -> None:
        self._home = home(repo)
        self._home.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the folder of that name is there; it is kept for some time then."""
        folder = self._folder(name)
        if not folder.is_dir():
            return False
        os.utime(folder)
        return True

    def check(self, name: str) -> None:
        """See that the files are those of the name.

        :raises JobFailed: if they are not, as a program has changed them; they are removed.
        """
        folder = self._folder(name)
        if not (folder.is_dir() and name.endswith(f"-{workloads.checksum_of(folder)}")):
            shutil.rmtree(folder, ignore_errors=True)
            raise JobFailed(
                f"the generated files {name} were changed or removed on this machine",
                "perun run matrix --resume sends them again",
            )

    def add_piece(self, name: str, offset: int, data: bytes, last: bool) -> None:
        """Take in a piece of an archive with the files of a folder; with the last one the folder is there.

        :raises UsageError: if the archive is not what the name says, or a piece before is missing.
        """
        folder = self._folder(name)
        part = folder.with_name(f"{name}.tar")
        with open_for_writing(part, append=offset > 0) as file:
            file.truncate(offset)
            file.write(data)
        if not last:
            return
        with tempfile.TemporaryDirectory(prefix="new-", dir=self._home) as scratch:
            made = Path(scratch, name)
            made.mkdir()
            try:
                with open_regular(part, MAX_ARCHIVE) as file, tarfile.TarFile(fileobj=file) as archive:
                    _extract(archive, made)
            except tarfile.TarError:
                raise UsageError(f"what was sent as the files of {name} is no archive") from None
            part.unlink()
            if not name.endswith(f"-{workloads.checksum_of(made)}"):
                raise UsageError(f"the files that were sent are not those of {name}")
            self._forget_old()
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)

    def _folder(self, name: str) -> Path:
        if PurePosixPath(name).parts != (name,) or name == "..":
            raise UsageError(f"{name!r} names no folder of generated files")
        return self._home / name

    def _forget_old(self) -> None:
        for path in self._home.iterdir():
            if path.is_dir() and path.stat().st_mtime < time.time() - RESULTS_KEPT:
                shutil.rmtree(path, ignore_errors=True)
