"""Where a program lies in memory, drawn anew: that alone can change times by several percent, as long as it
stays (T. Mytkowicz et al., Producing Wrong Data Without Doing Anything Obviously Wrong!, ASPLOS 2009)."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

_PADDING: Final = "PERUN_PADDING"
_LONGEST: Final = 4096
_LARGEST_PLACED: Final = 4_000_000
"""Bytes of a program that are copied before each run: more would disturb it."""


def padding(rng: random.Random) -> tuple[str, str]:
    """A variable and its value that make an environment of another size, which moves the stack."""
    return _PADDING, "x" * rng.randrange(_LONGEST)


def place_anew(program: str, folder: Path) -> None:
    """Have a program of a working copy in other pages of memory than in the run before.

    Which pages a file is read into decides which of its lines share a place in the caches, as long as it is
    not read anew: two copies of one program differ by some percent, again and again.

    :param program: its path; left as it is where it lies elsewhere, is a link, or is large.
    :param folder: of the working copy.
    """
    path = Path(program)
    with suppress(OSError):
        is_built = path.is_relative_to(folder) and path.is_file() and not path.is_symlink()
        if is_built and path.stat().st_size <= _LARGEST_PLACED:
            shutil.copy2(path, copy := path.with_name(f".{path.name}.{os.getpid()}"))
            copy.replace(path)
