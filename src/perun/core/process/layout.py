"""Where a program and its files lie, drawn anew: that alone can change times by several percent, while it
stays (T. Mytkowicz et al., Producing Wrong Data Without Doing Anything Obviously Wrong!, ASPLOS 2009)."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Final

_PADDING: Final = "PERUN_PADDING"
_LONGEST: Final = 4096
_LARGEST_PLACED: Final = 4_000_000
"""Bytes of a program that are copied before each run: more would disturb it."""
_MOST_ENTRIES: Final = 1000
"""Of a folder that is made anew before each run."""
_HERE: Final = -100
_EXCHANGE: Final = 2
"""AT_FDCWD and RENAME_EXCHANGE of renameat2(2)."""


def padding(rng: random.Random) -> tuple[str, str]:
    """A variable and its value that make an environment of another size, which moves the stack."""
    return _PADDING, "x" * rng.randrange(_LONGEST)


class Layout:
    """Draws where programs of working copies and the files that they write lie, before each run.

    :ivar rng: what draws it.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._begun: dict[Path, int] = {}
        self._written: dict[Path, list[Path]] = {}

    def place_anew(self, program: str, folder: Path, scratch: Path) -> None:
        """Have a program in other pages of memory than before, and what it writes in folders made anew.

        Which pages a file is read into decides which of its lines share a place in the caches, as long as it
        is not read anew: two copies of one program differ by some percent, again and again. Where a folder
        lies on the disk decides what a new file in it costs: of the working copies of two versions that were
        made one after the other, one may take four times as long. What is made anew in each round lies where
        that of all versions lies at that time.

        :param program: its path; left as it is where it lies elsewhere, is a link, or is large.
        :param folder: of the working copy. :param scratch: a folder of the same file system, the same for all
            working copies or beside it.
        """
        for path in self._of_last_run(folder, scratch):
            with suppress(OSError):
                if path.is_dir():
                    _make_anew(path, scratch)
                else:
                    copy_anew(path)
        with suppress(OSError):
            if Path(program).is_relative_to(folder):
                copy_anew(Path(program))

    def _of_last_run(self, folder: Path, scratch: Path) -> list[Path]:
        """What the first run has written to, folders last and those in others first: later runs of the same
        program do so, too."""
        if folder not in self._begun:
            with TemporaryFile(dir=scratch) as mark:
                self._begun[folder] = os.fstat(mark.fileno()).st_mtime_ns
            return []
        if folder not in self._written:
            self._written[folder] = list(_changed(folder, self._begun[folder]))
        return self._written[folder]


def _changed(folder: Path, since: int) -> Iterator[Path]:
    """The files and folders that were written to since then, what is in a folder before it.

    :param since: in nanoseconds, as the file system has it.
    """
    for top, _, names in os.walk(folder, topdown=False):
        for path in (*(Path(top, name) for name in names), Path(top)):
            with suppress(OSError):
                found = path.lstat()
                if found.st_mtime_ns >= since and (
                    stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
                ):
                    yield path


def copy_anew(path: Path) -> None:
    """Replace a file by a copy of it, unless it is large, has other names, or is none.

    :raises OSError: where that cannot be; the file is as before then.
    """
    found = path.lstat()
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size <= _LARGEST_PLACED:
        shutil.copy2(path, copy := path.with_name(f".{path.name}.{os.getpid()}"))
        if _exchanged(copy, path):
            copy.unlink()
        else:
            copy.replace(path)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two files, where the system can: ext4 writes a file to the disk that replaces another one,
    which takes longer than many programs (auto_da_alloc, ext4(5))."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    return not rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)


def _make_anew(folder: Path, scratch: Path) -> None:
    """Replace a folder by a new one with the same entries, unless they are many.

    :raises OSError: where that cannot be; the folder is as before then.
    """
    names = os.listdir(folder)
    if len(names) > _MOST_ENTRIES or folder.is_symlink():
        return
    new = Path(mkdtemp(dir=scratch))
    try:
        shutil.copystat(folder, new)
        times = (found := folder.stat()).st_atime_ns, found.st_mtime_ns
        for name in names:
            os.rename(folder / name, new / name)
        os.utime(new, ns=times)
        os.rename(new, folder)  # in place of the empty one
    except OSError:
        for name in os.listdir(new):
            os.rename(new / name, folder / name)
        os.rmdir(new)
        raise
