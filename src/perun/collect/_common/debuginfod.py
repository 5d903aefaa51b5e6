"""Fetches debug information from the servers that the user names in DEBUGINFOD_URLS, by build-id.

Nothing is asked for unless that variable is set. What was fetched stays in the cache of the user. See
https://sourceware.org/elfutils/Debuginfod.html.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perun import atomic
from perun.collect._common.elf import read_elf

URLS: Final = "DEBUGINFOD_URLS"
MAX_SIZE: Final = 512 * 2**20
"""Bytes of one file; a larger one is not fetched."""
CACHED_FILES: Final = 50
"""How many files the cache holds; the one that was not used for the longest time goes first."""
_PATIENCE: Final = 10.0
"""Seconds until a server that does not answer counts as not there."""
_WHOLE: Final = 90.0
"""Seconds for all files of a run."""
_PIECE: Final = 1 << 20
_BUILD_ID: Final = re.compile(r"[0-9a-f]{8,64}")


class Debuginfod:
    """The servers of a run.

    :param environ: whose DEBUGINFOD_URLS has their addresses, with blanks between them.
    :param folder: of the cache; None for no cache, and then nothing is fetched.
    :ivar notes: for the user, what could not be fetched.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path | None) -> None:
        found = environ.get(URLS, "").split() if folder else []
        self._servers = [url.rstrip("/") for url in found if url.startswith(("http://", "https://"))]
        self._folder = folder
        self._end = 0.0
        self._given: set[Path] = set()
        self.notes: list[str] = []

    def debug_file(self, build_id: str) -> str:
        """Path of the debug information of a build-id; empty where no server has it, or none can be asked."""
        if not self._servers or self._folder is None or not _BUILD_ID.fullmatch(build_id):
            return ""
        path = self._folder / f"{build_id}.debug"
        self._given.add(path)
        if _is_of(path, build_id):
            with contextlib.suppress(OSError):
                os.utime(path)
            return str(path)
        self._end = self._end or time.monotonic() + _WHOLE
        for server in list(self._servers):
            if self._fetch(server, build_id, path):
                self._prune()
                return str(path)
        return ""

    def _fetch(self, server: str, build_id: str, path: Path) -> bool:
        """Whether the server has the file, which is in the cache then."""
        from http.client import HTTPException
        from urllib.request import HTTPError, urlopen

        if time.monotonic() >= self._end:
            self._give_up(server, f"all files together took more than {_WHOLE:g} s")
            return False
        try:
            with urlopen(f"{server}/buildid/{build_id}/debuginfo", timeout=_PATIENCE) as answer:
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic.writing(path) as file:
                    size = 0
                    # `read` would wait for all of a piece, however slowly its bytes come.
                    while piece := answer.read1(_PIECE):
                        size += len(piece)
                        if size > MAX_SIZE or time.monotonic() >= self._end:
                            raise ValueError("the file is too large, or takes too long")
                        file.write(piece)
        except HTTPError as refusal:
            refusal.close()
            return False  # it has no such file, or will not give it
        except (OSError, HTTPException, ValueError) as problem:
            self._give_up(server, str(getattr(problem, "reason", problem)))
            return False
        if _is_of(path, build_id):
            return True
        with contextlib.suppress(OSError):
            path.unlink()
        self._give_up(server, f"what it sent is not the debug information of {build_id}")
        return False

    def _give_up(self, server: str, why: str) -> None:
        self._servers.remove(server)
        self.notes.append(
            f"no debug information came from {server} ({why}), so that names may be missing; unset {URLS} to "
            "ask nobody"
        )

    def _prune(self) -> None:
        """Remove the oldest files of the cache, but for those of this run, which are read when it has all."""
        assert self._folder is not None
        ages = []
        for path in self._folder.glob("*.debug"):
            with contextlib.suppress(OSError):  # another process removes files, too
                ages.append((path.stat().st_mtime, path))
        for _, path in sorted(ages)[: max(0, len(ages) - CACHED_FILES)]:
            if path not in self._given:
                with contextlib.suppress(OSError):
                    path.unlink()


def _is_of(path: Path, build_id: str) -> bool:
    found = read_elf(str(path)) if path.is_file() else None
    return found is not None and found.build_id == build_id
