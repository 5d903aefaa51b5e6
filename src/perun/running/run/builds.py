"""Versions that are checked out and built once, and kept for later runs: `.perun/cache/builds`.

Each has a folder of its own there, named by what decides how it is built; so all paths have one length, which
moves the stack of a program. It holds the files (`tree`), what the version control notes of them (`git`), and
what the files were like when they were built (`manifest`). That is written last and has the mark of the user,
so what has none is no build: it is unfinished, or a stranger made it. Who uses the folder locks it (`lock`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.errors import ConfigError, PerunError, UsageError, VersionControlError
from perun.core.leftovers import remove_folder
from perun.core.process.command import split
from perun.core.regular import open_regular, read_regular
from perun.repository.copies import copy_folder, inside, refuse_after_interruption, remove_leftovers
from perun.repository.marks import is_marked, marked
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.run import pre_run
from perun.store import tree
from perun.store.lock import is_held, try_lock

_KEY: Final = "execute.build_cache"
_DEFAULT: Final = 2048
"""MiB of builds at the same time within one block, where none are kept after it."""
_SAFE: Final = 2
"""Versions entered last, which stay whatever their size: pairs of them are measured."""
_MOST_LOCKED: Final = 100
"""Builds that are locked at the same time: each takes a descriptor."""
_MOST_UNKEPT: Final = 6
"""Builds at the same time that are not kept, as the version control has no such working copies."""
_LENGTH: Final = 32
"""Of the name of a folder."""
_SETTLED: Final = 0.02
"""Seconds after which a change of a file has another time than the build: that of the kernel has steps."""
_MAX_MANIFEST: Final = 1 << 29
_MAX_HEAD: Final = 4096
_UNREADABLE: Final = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)

_OF_A_SESSION: Final = re.compile(
    r"_|(?:OLD)?PWD|SHLVL|COLUMNS|LINES|DISPLAY|TERM|COLORTERM|WINDOWID|TMUX|STY|MAIL|HOSTNAME|LS_COLORS|"
    r"INVOCATION_ID|JOURNAL_STREAM|(?:TERM|SSH|XDG|DBUS|GPG|GIT|PERUN|TMUX|VTE|VSCODE|WAYLAND|DESKTOP|"
    r"SESSION|KITTY|ITERM|KONSOLE|GNOME|KDE|GTK|QT|PYTEST|LESS)_.*"
)
"""Variables that are others in each terminal, and no build goes by."""
_TOOLS: Final = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ld", "make", "cmake", "rustc", "go")

State = tuple[int, int, int, int, str]
"""Of a file: mode, size, when its content and when anything of it changed (ns), a digest of the content."""


class VersionBuild(NamedTuple):
    """A version that is ready to be measured.

    :param folder: the place of Perun's root in it, absolute. :param seconds: that preparing it took now.
    :param reused: whether it was there.
    """

    folder: Path
    seconds: float
    reused: bool


class Builds:
    """Versions, each prepared in a folder of its own; a context manager that releases all at its end.

    Callers have made sure that the user trusts the repository.

    :param separate: have a folder for each version, also where two are the same but for what git says.
    """

    def __init__(self, repo: Repository, *, separate: bool = False) -> None:
        self._repo = repo
        self._separate = separate
        self._limit = _limit(repo)
        self._root = _root(repo)
        self._way = "\0".join(_way(repo))
        self._names: dict[str, str] = {}
        """The folder of each version that was entered."""
        self._held: dict[str, _Build] = {}
        """What was entered by the name of its folder, the longest ago first."""
        self._fresh: list[_Build] = []

    def __enter__(self) -> Builds:
        refuse_after_interruption(self._repo)
        remove_leftovers(self._repo)
        for path in unfinished(self._repo):
            _Build.remove_left(self._repo, path)
        return self

    def __exit__(self, *exc: object) -> None:
        held, self._held, self._fresh = [*self._held.values(), *self._fresh], {}, []
        with ExitStack() as stack:
            stack.callback(self._make_room, self._limit)
            for build in held:
                stack.callback(build.release, keep=self._limit > 0)

    def enter(self, version: str) -> VersionBuild:
        """The version, checked out and prepared; it stays as long as nothing else needs the room.

        The two versions entered last always stay.

        :raises VersionControlError: if it cannot be checked out, or has no such folder.
        :raises JobFailed: if a command of `execute.pre_run` fails (:func:`pre_run.run_commands`).
        """
        started = time.monotonic()
        held = self._held.get(self._names.get(version, ""))
        build, reused = (held, True) if held is not None else self._taken(version)
        build.use(version)
        self._names[version] = build.folder.name
        self._held.pop(build.folder.name, None)
        self._held[build.folder.name] = build
        if not reused:
            self._make_room(self._limit or _DEFAULT << 20)
        for most, kept in ((_MOST_LOCKED, True), (_MOST_UNKEPT, False)):
            names = [name for name, one in self._held.items() if one.is_kept is kept]
            for name in names[:-most]:
                self._held.pop(name).release(keep=self._limit > 0)
        return VersionBuild(build.place, 0.0 if reused else time.monotonic() - started, reused)

    def _taken(self, version: str) -> tuple[_Build, bool]:
        """A folder with the version that nobody else uses, and whether it was built already."""
        content = self._repo.vcs.content(version)
        for number in count():
            name = f"{self._way}\0{content}\0{number}".encode("utf-8", "replace")
            path = self._root / hashlib.sha256(name).hexdigest()[:_LENGTH]
            held = self._held.get(path.name)
            if held is not None and not self._separate:
                return held, True
            if held is None and (lock := _locked(path)) is not None:
                build = _Build(self._repo, path, lock)
                with build.discarded_by_errors():
                    reused = build.reuse(version)
                    if not reused:
                        build.make(version)
                        # Another process uses the one that is kept, where there is one.
                        build.is_kept = number == 0 and build.keep()
                return build, reused
        raise AssertionError

    def fresh(self, version: str, change: Callable[[Path], object] | None = None) -> Path:
        """The folder of a build that is made now, and removed at the end; its path is as long as all others.

        :param change: gets the top of the working copy, and changes it before it is built.
        :raises PerunError: as :meth:`enter`.
        """
        with self._unnamed() as build:
            build.make(version, change)
        return build.place

    def copied(self, place: Path) -> Path:
        """A copy of a build that was entered or is fresh, which is removed at the end.

        :raises PerunError: if it cannot be copied.
        """
        source = next(one for one in (*self._held.values(), *self._fresh) if one.place == place)
        with self._unnamed() as copy:
            try:
                shutil.copytree(source.files, copy.files, symlinks=True)
            except (OSError, shutil.Error) as problem:
                raise PerunError(f"{source.files} cannot be copied: {problem}") from None
            copy.place = copy.files / place.relative_to(source.files)
        return copy.place

    @contextmanager
    def _unnamed(self) -> Iterator[_Build]:
        lock = _locked(path := self._root / token_hex(_LENGTH // 2))
        assert lock is not None
        build = _Build(self._repo, path, lock)
        with build.discarded_by_errors():
            yield build
        self._fresh.append(build)

    def _make_room(self, limit: int) -> None:
        """Remove what was not used for the longest time until the rest is small enough."""
        kept = sorted(found(self._repo), key=lambda one: one.used)
        excess = sum(one.size for one in kept) - limit
        safe = list(self._held)[-_SAFE:]
        for one in kept:
            if excess <= 0:
                break
            if one.path.name in safe:
                continue
            held = self._held.pop(one.path.name, None)
            if held is not None:
                held.discard()
            elif not remove(one.path):  # another process uses it
                continue
            excess -= one.size


class _Build:
    """A folder of the cache, locked by this process.

    :ivar files: the working copy in it. :ivar place: where the version is measured.
    :ivar is_kept: whether it is for later runs, too.
    """

    def __init__(self, repo: Repository, folder: Path, lock: int) -> None:
        self.folder = folder
        self.files = self.place = folder / "tree"
        self.is_kept = False
        self._repo = repo
        self._lock = lock
        self._version = ""
        self._stack = ExitStack()
        self._copy = repo.vcs.kept_copy(folder, copy_folder(repo, "new"))

    def reuse(self, version: str) -> bool:
        """Have the version there, if the folder holds a build of it; whether it does."""
        if self._copy is not None and restore(self._repo, self.folder):
            with suppress(PerunError, OSError):  # what git notes is damaged
                self.use(version)
                self.is_kept = True
        return self.is_kept

    def make(self, version: str, change: Callable[[Path], object] | None = None) -> None:
        """Check the version out, and build it."""
        _clear(self.folder)
        if self._copy is not None:
            top = self._copy.make(version)
        else:
            top = self._stack.enter_context(self._repo.vcs.working_copy(self.files)).switch(version)
        if change is not None:
            change(top)
        self._settle(top, version)
        pre_run.run_commands(self._repo, version if change is None else f"{version}-uncommitted", self.place)

    def keep(self) -> bool:
        """Keep it for later runs; whether that is possible."""
        if self._copy is not None:
            with suppress(OSError):  # such as an unreadable folder
                _write_manifest(self._repo, self.folder)
                return True
        return False

    def use(self, version: str) -> None:
        """Be that version, which has the same files."""
        if version != self._version and self._copy is not None:
            self._settle(self._copy.renew(version), version)
        with suppress(OSError):
            os.utime(_manifest(self.folder))

    def _settle(self, top: Path, version: str) -> None:
        self.place = top / inside(self._repo)
        if not self.place.is_dir():
            raise VersionControlError(f"version {version[:10]} has no folder {str(inside(self._repo))!r}")
        self._version = version

    def release(self, *, keep: bool) -> None:
        """Let others use it; it is removed where it is not kept, or not as it was built."""
        if keep and self.is_kept and restore(self._repo, self.folder):
            os.close(self._lock)
        else:
            self.discard()

    @contextmanager
    def discarded_by_errors(self) -> Iterator[None]:
        """Remove it where the block raises."""
        try:
            yield
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove it."""
        try:
            self._stack.close()
        finally:
            _remove_locked(self.folder, self._lock)

    @classmethod
    def remove_left(cls, repo: Repository, path: Path) -> None:
        """Remove what a killed process has not finished, if nobody uses it."""
        lock = _locked(path)
        if lock is not None:
            build = cls(repo, path, lock)
            if build._copy is None:  # entering removes what the version control has noted elsewhere
                with suppress(PerunError), repo.vcs.working_copy(build.files):
                    pass
            build.discard()


def _root(repo: Repository) -> Path:
    return Path(os.path.realpath(repo.root)) / PERUN_FOLDER / "cache" / "builds"


class CachedBuild(NamedTuple):
    """A build that is kept: its folder, the bytes that it takes, and when it was used last (ns)."""

    path: Path
    size: int
    used: int


def found(repo: Repository) -> list[CachedBuild]:
    """The builds that are kept, by the names of their folders."""
    return [kept for path in _folders(_root(repo)) if (kept := _kept(repo, path))]


def unfinished(repo: Repository) -> list[Path]:
    """What lies in the place of a build and is none: being made, not finished, or of a stranger."""
    return [path for path in _folders(_root(repo)) if not _kept(repo, path)]


def damaged(repo: Repository) -> Iterator[tuple[Path, str]]:
    """What lies there that is of no use, and nobody uses: the folder, and what is wrong with it.

    What runs have added is no damage; it is removed before the next use.
    """
    for path in _folders(_root(repo)):
        if is_held(path / "lock"):
            continue
        if not _kept(repo, path):
            yield path, "a build that was not finished, or is not yours"
        elif not restore(repo, path, mend=False):
            yield path, "a build of which files were changed: its version is built anew"


def _limit(repo: Repository) -> int:
    """The bytes that are kept."""
    number = float(repo.config.get(_KEY))
    if not 0 <= number < 1 << 30:
        raise ConfigError(
            f"{_KEY} is {number:g}: expected a number of MiB, or 0 to keep none",
            f"e.g. perun config set {_KEY} 4096",
        )
    return int(number * (1 << 20))


def _way(repo: Repository) -> Iterator[str]:
    """What decides how a version is built, beside the version."""
    commands = pre_run.commands(repo)
    environ = pre_run.environment(repo)
    yield from (str(inside(repo)), pre_run.build(repo), *commands)
    if not commands:
        return
    for name, value in sorted(environ.items()):
        if not _OF_A_SESSION.fullmatch(name):
            yield f"{name}={value}"
    named = [environ.get("CC", ""), environ.get("CXX", ""), *commands]
    tools = [words[0] for text in named if (words := _words(text))]
    for tool in (*_TOOLS, *tools):
        if path := shutil.which(tool, path=environ.get("PATH")):
            with suppress(OSError):
                found = os.stat(path)
                yield f"{path} {found.st_size} {found.st_mtime_ns}"


def _words(text: str) -> list[str]:
    try:
        return split("command", text)
    except UsageError:
        return []


# One folder: its lock, its manifest, and what becomes of it.


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _manifest(path: Path) -> Path:
    return path / "manifest"


def _locked(path: Path) -> int | None:
    """The descriptor of the lock of a folder, which is made if it is missing; None where others have it."""
    while True:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink(missing_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        file = path / "lock"
        if file.is_symlink() or (file.exists() and not file.is_file()):
            remove_folder(path)  # none of ours
            continue
        try:
            lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        if not try_lock(lock, file):
            os.close(lock)
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), os.lstat(file)):
                return lock
        os.close(lock)


def remove(path: Path) -> bool:
    """Remove the folder of a build, or what is in its place; whether nobody used it."""
    lock = _locked(path)
    return lock is not None and _remove_locked(path, lock)


def _remove_locked(path: Path, lock: int) -> bool:
    try:
        _clear(path)
        (path / "lock").unlink(missing_ok=True)
        path.rmdir()
    except OSError:  # a program that was measured still writes there; without a manifest it is no build
        return False
    finally:
        os.close(lock)
    return True


def _clear(path: Path) -> None:
    """Remove all but the lock; the manifest first, so that it is no build any more."""
    _manifest(path).unlink(missing_ok=True)
    for one in path.iterdir():
        if one.name == "lock":
            continue
        if one.is_dir() and not one.is_symlink():
            remove_folder(one)
        else:
            one.unlink(missing_ok=True)


def _write_manifest(repo: Repository, path: Path) -> None:
    time.sleep(_SETTLED)
    files = _scanned(path / "tree")
    states = {name: _state(path / "tree" / name, found) for name, found in files.items()}
    content = json.dumps(states).encode()
    size = sum(found.st_blocks * 512 for found in (*files.values(), *_scanned(path / "git").values()))
    digest = hashlib.sha256(content).hexdigest()
    head = {"name": path.name, "bytes": size, "files": digest, "system": atomic.system()}
    line = json.dumps(marked(repo.root, repo.environ, "builds", head)).encode()
    atomic.write(_manifest(path), line + b"\n" + content)


def _kept(repo: Repository, path: Path) -> CachedBuild | None:
    """What the manifest says; None where there is none that this user has written for the folder."""
    with suppress(*_UNREADABLE), open_regular(_manifest(path), _MAX_MANIFEST) as file:
        head = json.loads(file.readline(_MAX_HEAD))
        if not path.is_symlink() and _is_ours(repo, path, head):
            return CachedBuild(path, int(head["bytes"]), os.fstat(file.fileno()).st_mtime_ns)
    return None


def _is_ours(repo: Repository, path: Path, head: Mapping[str, Any]) -> bool:
    return is_marked(repo.root, repo.environ, "builds", head) and head["name"] == path.name


def restore(repo: Repository, path: Path, *, mend: bool = True) -> bool:
    """Whether all files of a build are as it was built; else it is of no use.

    :param mend: remove what runs have added, by who has locked it.
    """
    with suppress(*_UNREADABLE):
        first, _, content = read_regular(_manifest(path), _MAX_MANIFEST).partition(b"\n")
        head = json.loads(first)
        if path.is_symlink() or not _is_ours(repo, path, head):
            return False
        if hashlib.sha256(content).hexdigest() != head["files"]:
            return False
        # What was not on the disk when the power went may be gone, in a file of that size and time.
        known = head["system"] == atomic.system()
        return _is_whole(path / "tree", json.loads(content), known, mend)
    return False


def _is_whole(top: Path, states: Mapping[str, State], by_times: bool, mend: bool) -> bool:
    if not stat.S_ISDIR(os.lstat(top).st_mode):
        return False
    there = _scanned(top)
    for name, state in states.items():
        if name not in there or not _is_as(top / name, there[name], state, by_times):
            return False
    if mend:
        for name in sorted(there.keys() - states.keys(), reverse=True):  # what is in a folder before it
            (os.rmdir if stat.S_ISDIR(there[name].st_mode) else os.unlink)(top / name)
        for name, (_, _, modified, *_) in states.items():
            if modified and there[name].st_mtime_ns != modified:  # it was written anew as it was
                os.utime(top / name, ns=(modified, modified), follow_symlinks=False)
    return True


def _is_as(path: Path, now: os.stat_result, state: State, by_times: bool) -> bool:
    """Whether a file is as the state says; its content is read only where it may be another one.

    :param by_times: a file with the times of then is not another one.
    """
    mode, size, modified, changed, digest = state
    if now.st_mode != mode or (now.st_size != size and not stat.S_ISDIR(mode)):
        return False
    if stat.S_ISDIR(mode) or (by_times and (now.st_mtime_ns, now.st_ctime_ns) == (modified, changed)):
        return True
    return _digest(path, mode) == digest


def _state(path: Path, now: os.stat_result) -> State:
    if stat.S_ISDIR(now.st_mode):
        return now.st_mode, 0, 0, 0, ""
    return now.st_mode, now.st_size, now.st_mtime_ns, now.st_ctime_ns, _digest(path, now.st_mode)


def _digest(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return ""
    return tree.sha1_of_file(path, sys.maxsize)


def _scanned(top: Path) -> dict[str, os.stat_result]:
    """All that is in the folder, but the notes of git at its top, by paths relative to it."""
    found: dict[str, os.stat_result] = {}
    folders = [""]
    for inside_of in folders:
        with os.scandir(top / inside_of) as entries:
            for entry in entries:
                name = inside_of + entry.name
                if name != ".git":
                    found[name] = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{name}/")
    return found
