"""How large files of the store may be: small ones may be made to fill the memory (`profiles.max_size`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perun.errors import DamagedStore
from perun.regular import TooLarge

if TYPE_CHECKING:
    from pathlib import Path

KEY: Final = "profiles.max_size"
DEFAULT: Final = 512 << 20
"""Bytes of a profile as JSON, and of statistics before compression, if no configuration says otherwise."""
HINT: Final = f"raise the limit, in MiB: perun config --shared set {KEY} NUMBER"
"""What to do about a file that is larger."""
READ_WHOLE: Final = 32 << 20
"""Size in bytes up to which `perun fsck` decodes a profile as a whole."""
INDEX: Final = 64 << 20
"""Bytes of an index of profiles."""


def exceeded(limit: int) -> str:
    """What is wrong with something larger, for messages."""
    return f"more than the limit of {limit} ({KEY})"


def unreadable(path: Path | str, problem: OSError) -> DamagedStore:
    """The error for a file of the store that is there but does not open, or is too large."""
    from perun.store import tree

    if isinstance(problem, TooLarge):
        return DamagedStore(f"{path} cannot be read: {problem.strerror} ({KEY})", HINT)
    return tree.unreadable(path, problem)
