"""What a campaign found, written as it happens, so that it goes on after being killed (`--resume`).

A file of JSON lines that only grows. Each line is written by one call of the system: what another process,
or a kill, finds there are whole lines and at most one torn one at the end, which is not read.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from perun.core import atomic
from perun.core.errors import ProfileError
from perun.core.regular import open_regular
from perun.fuzz.corpus import Counts, Member
from perun.fuzz.results import LOGS, Confirmation

FILE: Final = f"{LOGS}/campaign.jsonl"
FORMAT: Final = 2
BEGAN: Final = "began"
"""The kind of the line behind those of all seeds."""
_HINT: Final = "begin anew in another folder, or remove this one"


class Journal:
    """The journal of a campaign, open for writing.

    :param anew: forget what is there. :ivar folder: where it is.
    :raises OSError: if it cannot be written; then, and from each method.
    """

    def __init__(self, folder: Path, *, anew: bool = False) -> None:
        path = folder / FILE
        self.folder = path.parent
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if anew else 0)
        self._path = path
        self._file = os.open(path, flags, 0o666)
        self._end_torn_line()

    def write(self, kind: str, **values: Any) -> None:
        """One line."""
        line = json.dumps({"kind": kind, **values}, separators=(",", ":")).encode() + b"\n"
        with atomic.Naming(self._path):
            atomic.write_all(self._file, line)

    def member(self, kind: str, member: Member, edges: Any = (), counts: Any = ()) -> None:
        """What was found, and the counts that it raised."""
        described = asdict(replace(member, content=b"", confirmation=None))
        del described["content"], described["confirmation"]
        packed = {"data": _packed(member.data)}
        if len(edges):
            packed["edges"] = _packed(np.asarray(edges, np.int64).tobytes())
            packed["counts"] = _packed(np.asarray(counts, np.int64).tobytes())
        self.write(kind, member=described, **packed)

    def confirmed(self, member: Member) -> None:
        """What a test of a member said."""
        assert member.confirmation is not None
        self.write("confirmed", number=member.number, confirmation=asdict(member.confirmation))

    def close(self) -> None:
        """No more is written."""
        os.close(self._file)

    def _end_torn_line(self) -> None:
        if os.fstat(self._file).st_size:
            os.write(self._file, b"\n")


class Entry:
    """A line of a journal: `kind`, and the values of it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.kind = str(values["kind"])

    def member(self) -> Member:
        """The member that a line of :meth:`Journal.member` holds."""
        described = dict(self.values["member"])
        described["rules"] = tuple(described["rules"])
        return Member(**described, content=_unpacked(self.values["data"]))

    def counts(self) -> tuple[Counts, Counts]:
        """The edges and their counts of such a line."""
        found = (self.values.get(name) for name in ("edges", "counts"))
        edges, counts = (np.frombuffer(_unpacked(one) if one else b"", np.int64) for one in found)
        return edges, counts

    def confirmation(self) -> Confirmation:
        """What a line of :meth:`Journal.confirmed` holds."""
        return Confirmation(**self.values["confirmation"])


def read(folder: Path) -> Iterator[Entry]:
    """The lines of the journal in `folder`; the first one is of the kind `campaign`.

    :raises ProfileError: if there is none, or it is of another version.
    """
    path = folder / FILE
    hint = "give the folder that was the --output-dir, or fuzz without --resume"
    try:
        file = open_regular(path, sys.maxsize)
    except FileNotFoundError:
        raise ProfileError(f"{folder} holds no campaign to resume: there is no {FILE}", hint) from None
    except OSError as problem:
        raise ProfileError(f"{path} cannot be read: {problem.strerror}", hint) from None
    with file:
        for number, line in enumerate(file, 1):
            try:
                entry = Entry(json.loads(line))
            except (ValueError, KeyError, TypeError):
                if number > 1:  # torn by a kill, or empty
                    continue
                entry = Entry({"kind": ""})
            if number == 1 and entry.values.get("format") != FORMAT:
                raise ProfileError(f"{path} is no journal of this version of Perun", _HINT)
            yield entry


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
