"""Running perun with faults: the server of trials, the plans of faults, and what is recorded of calls."""

import enum
import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import perun

HERE = Path(__file__).parent
NUMBERS, PATH_ROOM, KIND_ROOM, RECORD_ROOM = 64 * 8, 4096, 1 << 20, 1 << 24
"""Bytes of the parts of the shared file, as in `inject.c`."""
FOREIGN = 0x80
"""Set in the kind of a call that perun did not make itself, but a git that it started."""


class Kind(enum.IntEnum):
    """What a call does; as in `inject.c`."""

    OPEN = 1
    CREATE = 2
    WRITE = 3
    RENAME = 4
    LINK = 5
    UNLINK = 6
    MKDIR = 7
    RMDIR = 8
    SYMLINK = 9
    TRUNCATE = 10
    FLUSH = 11
    CHMOD = 12
    UTIME = 13
    SYNC = 14


class Mode(enum.IntEnum):
    """What happens at the call; as in `inject.c`."""

    NOTHING = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    KILL_HALF = 3
    FAIL = 4
    FAIL_HALF = 5


K = Kind
_NAMING = frozenset({K.RENAME, K.LINK, K.UNLINK, K.MKDIR, K.RMDIR, K.SYMLINK})
_ALL = frozenset(Kind) - {K.SYNC}  # sync() cannot fail
ERRORS: Mapping[int, frozenset[Kind]] = {
    errno.ENOSPC: frozenset({K.CREATE, K.WRITE, K.RENAME, K.LINK, K.MKDIR, K.SYMLINK, K.FLUSH}),
    errno.EDQUOT: frozenset({K.CREATE, K.WRITE, K.RENAME, K.LINK, K.MKDIR, K.SYMLINK, K.FLUSH}),
    errno.EIO: _ALL,
    errno.EACCES: _NAMING | {K.OPEN, K.CREATE},
    errno.EROFS: _NAMING | {K.OPEN, K.CREATE, K.TRUNCATE, K.CHMOD, K.UTIME},
    errno.EMFILE: frozenset({K.OPEN, K.CREATE}),
}
"""The errors that are injected, each with the calls that may end with it (see their manual pages)."""


class Plan(NamedTuple):
    """One fault: what happens at which call (from 1 on).

    `sticky`: every later call that may fail so does. `alone`: of the processes only the one that makes the
    call is killed, as where the system runs out of memory; else all, as where the machine stops.
    """

    mode: Mode
    target: int
    error: int = 0
    sticky: bool = False
    alone: bool = False

    def __str__(self) -> str:
        name = self.mode.name.lower() + (f" {errno.errorcode[self.error]}" if self.error else "")
        return f"{name}{' sticky' * self.sticky}{' alone' * self.alone} at call {self.target}"

    @property
    def kills(self) -> bool:
        """Whether a process is killed."""
        return self.mode in (Mode.KILL_BEFORE, Mode.KILL_AFTER, Mode.KILL_HALF)

    def numbers(self) -> dict[str, int]:
        """As the library takes it."""
        kinds = ERRORS.get(self.error, frozenset(Kind))
        return {
            "mode": self.mode, "target": self.target, "error": self.error, "sticky": self.sticky,
            "alone": self.alone, "kinds": sum(1 << kind for kind in kinds)
        }  # fmt: skip


NO_FAULT = Plan(Mode.NOTHING, 0)


class Ended(NamedTuple):
    """How a trial ended. `where` is the path at which the fault came, empty where it did not come."""

    code: int
    out: str
    err: str
    calls: int
    where: str


def plans(kinds: Sequence[int]) -> Iterator[Plan]:
    """Every fault that there can be in a run that makes calls of these kinds."""
    for call, raw in enumerate(kinds, 1):
        kind, foreign = Kind(raw & ~FOREIGN), bool(raw & FOREIGN)
        for alone in (False, True) if foreign else (False,):
            yield Plan(Mode.KILL_BEFORE, call, alone=alone)
            yield Plan(Mode.KILL_AFTER, call, alone=alone)
            if kind is Kind.WRITE:
                yield Plan(Mode.KILL_HALF, call, alone=alone)
        for error, suited in ERRORS.items():
            if kind in suited:
                yield Plan(Mode.FAIL, call, error)
                yield Plan(Mode.FAIL, call, error, sticky=True)
        if kind is Kind.WRITE:
            yield Plan(Mode.FAIL_HALF, call, errno.ENOSPC, sticky=True)


class Call(NamedTuple):
    """A recorded call that changed something: see `inject.c`; of two paths the second is the new one."""

    kind: Kind
    flags: int
    path: str
    other: str
    inode: int
    offset: int
    data: bytes


class Server:
    """A process with `inject.c` preloaded and perun imported, which forks for each run of a command.

    :param library: the compiled library.
    :param modules: what it shall import beside perun, so that no fork has to.
    """

    def __init__(self, library: Path, folder: Path, modules: Sequence[str] = ()) -> None:
        self._folder = folder
        self._library = library
        self._control = folder / "control"
        with open(self._control, "wb") as file:
            file.truncate(NUMBERS + 2 * PATH_ROOM + KIND_ROOM + RECORD_ROOM)
        environ = {
            **os.environ,
            **self._preloaded(),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(Path(perun.__file__).parents[1]),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "fault_server.py"), str(self._control), *modules], env=environ,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )  # fmt: skip

    def _preloaded(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "FAULTS_CONTROL": str(self._control)}

    def run(
        self, root: Path, arguments: Sequence[str], environ: Mapping[str, str], plan: Plan = NO_FAULT, *,
        recording: bool = False, sabotage: str = ""
    ) -> Ended:  # fmt: skip
        """Run perun in `root`; the fault comes at a call that changes something there.

        :param sabotage: Python that is executed before perun.
        """
        with open(self._control, "r+b") as control:
            control.seek(NUMBERS)
            control.write(os.fsencode(root).ljust(PATH_ROOM, b"\0") + bytes(PATH_ROOM))
        out, err = self._folder / "out", self._folder / "err"
        order = {
            "arguments": list(arguments),
            "cwd": str(root),
            "environ": {**environ, **self._preloaded()},
            "out": str(out),
            "err": str(err),
            "sabotage": sabotage,
            "plan": {**plan.numbers(), "recording": recording, "no_flush": 1},
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        where = self._part(NUMBERS + PATH_ROOM, PATH_ROOM).partition(b"\0")[0]
        return Ended(
            answer["code"], out.read_text(errors="replace"), err.read_text(errors="replace"), answer["calls"],
            os.fsdecode(where)
        )  # fmt: skip

    def kinds(self, ended: Ended) -> list[int]:
        """The kinds of the calls of the last run, in their order."""
        return list(self._part(NUMBERS + 2 * PATH_ROOM + 1, ended.calls))

    def recorded(self) -> list[Call]:
        """The calls of the last run, where it was recorded."""
        size = struct.unpack_from("q", self._part(0, NUMBERS), 12 * 8)[0]
        assert size <= RECORD_ROOM, "the record of calls is full"
        record = self._part(NUMBERS + 2 * PATH_ROOM + KIND_ROOM, size)
        calls, place = [], 0
        while place < size:
            total, kind, flags, one, two, data, offset, inode = struct.unpack_from("6IqQ", record, place)
            start = place + struct.calcsize("6IqQ")
            path, other = record[start : start + one - 1], record[start + one : start + one + two - 1]
            content = record[start + one + two : start + one + two + data]
            calls.append(
                Call(Kind(kind), flags, os.fsdecode(path), os.fsdecode(other), inode, offset, content)
            )
            place += total
        return calls

    def _part(self, start: int, size: int) -> bytes:
        with open(self._control, "rb") as control:
            control.seek(start)
            return control.read(size)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def build(folder: Path) -> Path:
    """Compile the library."""
    library = folder / "inject.so"
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run(["gcc", *options, "-o", library, HERE / "inject.c", "-ldl"], check=True)
    return library


def scratch() -> Path:
    """A folder in memory where there is one: thousands of copies would wear a disk."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="faults-", dir=memory if os.access(memory, os.W_OK) else None))


def replace(folder: Path, pristine: Path) -> None:
    """Make `folder` a copy of `pristine`, whatever it is now."""
    if folder.exists():
        for below in (folder, *folder.rglob("*")):
            if below.is_dir() and not below.is_symlink():
                below.chmod(0o700)
        shutil.rmtree(folder)
    shutil.copytree(pristine, folder, symlinks=True)
