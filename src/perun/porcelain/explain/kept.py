"""The answers of `perun explain` as they are kept for the dashboard: a file for each explained version.

That is a cache: what was measured is registered, and explaining the version again makes the same answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perun import atomic
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.store import tree

FOLDER: Final = "cache/explained"
"""Where they lie, in `.perun`."""
_SUFFIX: Final = ".json"
_LARGEST: Final = 64 << 20


def folder_of(repo: Repository) -> Path:
    """The folder of the answers, there or not."""
    return repo.root / PERUN_FOLDER / FOLDER


def path_of(repo: Repository, checksum: str) -> Path:
    """The file of the answer of a version, there or not."""
    return folder_of(repo) / f"{checksum}{_SUFFIX}"


def keep(repo: Repository, checksum: str, answer: Mapping[str, Any]) -> None:
    """Keep the answer in place of an earlier one of the same version; where it cannot be written, it is not
    kept.

    :param answer: JSON, schema `perun.explain/1`.
    """
    with suppress(OSError):
        folder_of(repo).mkdir(parents=True, exist_ok=True)
        data = json.dumps(answer).encode("utf-8", "surrogatepass")
        atomic.write(path_of(repo, checksum), data)


def versions(repo: Repository) -> list[str]:
    """The checksums of the versions with an answer, sorted."""
    try:
        names = os.listdir(folder_of(repo))
    except OSError:
        return []
    found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return sorted(name for name in found if tree.is_minor_version(name))


def answer(repo: Repository, checksum: str) -> bytes | None:
    """The answer of the version as JSON, schema `perun.explain/1`; None if there is none.

    :raises DamagedStore: if it is there and cannot be read.
    """
    if not tree.is_minor_version(checksum):
        return None
    return tree.read(path_of(repo, checksum), _LARGEST)
