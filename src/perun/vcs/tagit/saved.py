"""Changes that are in no snapshot, put aside: `.tagit/saved/<name>/`.

`record.json` says of which snapshot they are and how the files were; `files` holds copies of them, for
whoever looks for something there by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from perun import atomic
from perun.errors import VersionControlError
from perun.regular import read_regular
from perun.vcs.tagit import files
from perun.vcs.tagit.files import Entry
from perun.vcs.tagit.objects import Objects

_MAX_BYTES: Final = 1 << 20


class Record(NamedTuple):
    """What was put aside: `base` is the snapshot, `tree` the list of its files with the changes.

    `is_left_over` tells changes that were found when others were to be brought back.
    """

    name: str
    base: str
    tree: str
    is_left_over: bool


class Saved:
    """Everything that is put aside, in `folder`."""

    def __init__(self, folder: Path, objects: Objects) -> None:
        self.folder = folder
        self._objects = objects

    def add(self, base: str, tree: str, changes: Mapping[str, Entry | None], is_left_over: bool) -> Record:
        """Put changes of the snapshot `base` aside; the record is written last."""
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09}-{os.getpid()}"
        for path, entry in changes.items():
            if entry is not None:
                copy = self.folder / name / "files" / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                files.write(copy, entry, self._objects)
        record = Record(name, base, tree, is_left_over)
        text = json.dumps(
            {**record._asdict(), "deleted": [path for path in changes if changes[path] is None]}
        )
        atomic.write(self.folder / name / "record.json", text.encode())
        return record

    def find(self, name: str) -> Record | None:
        """What was put aside under that name."""
        return next((record for record in self._all() if record.name == name), None)

    def newest(self, base: str) -> Record | None:
        """What was put aside last of the snapshot `base`, left-overs apart."""
        of_it = [record for record in self._all() if record.base == base and not record.is_left_over]
        return of_it[-1] if of_it else None

    def drop(self, record: Record) -> None:
        """Forget it."""
        (self.folder / record.name / "record.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder / record.name, ignore_errors=True)

    def _all(self) -> Iterator[Record]:
        for path in sorted(self.folder.glob("*/record.json")):
            try:
                noted = json.loads(read_regular(path, _MAX_BYTES))
                record = Record(*(noted[field] for field in Record._fields))
            except (OSError, ValueError, TypeError, KeyError):
                raise VersionControlError(f"{path} is not readable", f"see {path.parent / 'files'}") from None
            yield record
