"""`perun hooks`: scripts that git calls after a commit or before a push, and taking them away again."""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from perun.core import atomic
from perun.core.errors import PerunError, UsageError, VersionControlError
from perun.core.leftovers import sweep_folder
from perun.core.regular import read_regular
from perun.repository.repository import Repository
from perun.repository.trust import Brought, RunnableItem

# The file of one hook: getting our lines in and out, and what a process that was killed may leave of it.
#
# What Perun writes stands between two marks. A shell script gets it at its beginning; any other hook gets the
# second name `<name>.before-perun`, is replaced under its own, and called at the end. A hook is never away,
# not even for a moment: whoever is killed leaves the old hook or the new one, and perhaps the second name.

MEASURING: Final = ("post-commit", "post-merge")
CHECKING: Final = ("pre-push",)
PREVIOUS_SUFFIX: Final = ".before-perun"
"""Ending of the name of a hook that was there before and is no shell script."""

_BEGIN: Final = "# >>> perun hooks >>> perun hooks uninstall takes away what is between these two lines"
_END: Final = "# <<< perun hooks <<<"
_BLOCK: Final = re.compile(
    rb"^" + re.escape(_BEGIN.encode()) + rb"$.*?^" + re.escape(_END.encode()) + rb"$\n?",
    re.MULTILINE | re.DOTALL,
)
_MAX_SCRIPT_BYTES: Final = 1 << 20
"""Bytes of a script that gets our lines at its beginning; a larger one is called as any other hook."""
_SHEBANG: Final = b"#!/bin/sh\n"
_OF_A_SHELL: Final = re.compile(rb"#!\s*(?:\S*/env\s+)?(?:\S*/)?(?:ba|da|k|z)?sh(?:\s[^\n]*)?\n")
_CALL: Final = """\
if [ -x {python} ]; then
  {command} hooks run {name} "$@" {end}
else
  echo {gone} >&2
fi
"""
_BEFORE_PUSH: Final = """\
perun_refs=$(cat)
{call}if [ -n "$perun_refs" ]; then
  exec <<PERUN_REFS
$perun_refs
PERUN_REFS
else
  exec </dev/null
fi
"""
_CALLS_PREVIOUS: Final = b'exec "$perun_kept"'
_CALL_PREVIOUS: Final = """\
perun_kept=$(dirname "$0")/{kept}
if [ -x "$perun_kept" ]; then
  exec "$perun_kept" "$@"
fi
"""


@dataclass(frozen=True)
class Hook:
    """One hook: `installed` says whether it calls Perun, `keeps` whether it also does what was there before.

    `other`: it is there, but not Perun's. `problem`: what an interrupted installation left it in, or empty.
    """

    name: str
    path: Path
    installed: bool
    keeps: bool = False
    other: bool = False
    problem: str = ""


def hook_at(path: Path) -> Hook:
    """The hook as it is."""
    previous = os.path.lexists(_previous(path))
    if not os.path.lexists(path):
        renamed = f"it does not run: an interrupted installation renamed it to {_previous(path).name}"
        problem = renamed if previous else ""
        return Hook(path.name, path, False, problem=problem)
    text = _read(path)
    block = _BLOCK.search(text)
    if not block:
        copied = f"an interrupted installation left the copy {_previous(path).name} of it"
        problem = copied if previous and _is_same_file(path) else ""
        return Hook(path.name, path, False, other=True, problem=problem)
    alone = _BLOCK.sub(b"", text, count=1) == _SHEBANG
    problem = ""
    if _lacks_call(path, text):
        problem = f"it does not call {_previous(path).name}, which was there before"
    elif not os.access(path, os.X_OK):
        problem = "it is not executable, so that git does not run it"
    keeps = not alone or (previous and _CALLS_PREVIOUS in block[0])
    return Hook(path.name, path, True, keeps, problem=problem)


def repair(path: Path) -> str:
    """Bring the hook out of the state that :func:`hook_at` calls a problem; what was done."""
    previous = _previous(path)
    if not os.path.lexists(path):
        _link(previous, path)
        previous.unlink()
        return f"renamed {previous.name} back to {path.name}"
    block = _BLOCK.search(text := _read(path))
    if not block:
        previous.unlink()
        return f"removed the copy {previous.name}"
    if _lacks_call(path, text):
        end = block.start() + block[0].rindex(_END.encode())
        text = text[:end] + _CALL_PREVIOUS.format(kept=shlex.quote(previous.name)).encode() + text[end:]
    atomic.write(path, text, executable=True)
    return f"made {path.name} executable; it calls the hook that was there before"


def _lacks_call(path: Path, text: bytes) -> bool:
    """Whether the script consists of our lines alone, and they do not call the hook that was there before."""
    block = _BLOCK.search(text)
    if block is None or _CALLS_PREVIOUS in block[0]:
        return False
    return _BLOCK.sub(b"", text, count=1) == _SHEBANG and os.path.lexists(_previous(path))


def _is_same_file(path: Path) -> bool:
    """Whether the hook and what was kept of it are the same file under two names, or equal ones."""
    other = _previous(path)
    mine, previous = path.lstat(), other.lstat()
    if (mine.st_dev, mine.st_ino) == (previous.st_dev, previous.st_ino):
        return True
    if mine.st_mode != previous.st_mode:
        return False
    if stat.S_ISLNK(mine.st_mode):
        return os.readlink(path) == os.readlink(other)
    return stat.S_ISREG(mine.st_mode) and filecmp.cmp(path, other, shallow=False)


def _read(path: Path) -> bytes:
    try:
        return read_regular(os.path.realpath(path), _MAX_SCRIPT_BYTES)
    except OSError:
        return b""  # a link to nowhere, a folder, a large program: kept, as any other hook


def _previous(path: Path) -> Path:
    return path.with_name(path.name + PREVIOUS_SUFFIX)


def insert(path: Path, command: Sequence[str]) -> None:
    """Let the hook call Perun, and do what it did before.

    :raises VersionControlError: if another file has the name that the hook would be kept under.
    :raises OSError: if the folder cannot be written; the hook is as it was.
    """
    sweep_folder(path.parent)
    hook, previous, text = hook_at(path), _previous(path), _read(path)
    left = previous.name if os.path.lexists(previous) else ""
    if hook.installed:  # perhaps by another installation of Perun
        rest = _BLOCK.sub(b"", text, count=1)
        shebang = _OF_A_SHELL.match(rest)
        first, body = (shebang[0], rest[shebang.end() :]) if shebang else (_SHEBANG, rest)
        block = _block(path.name, command, previous=left if rest == _SHEBANG else "")
        atomic.write(path, first + block + body, executable=True)
        return
    if not hook.other:
        # Where only what was kept is left, an installation was interrupted: that is the hook of the user.
        atomic.write(path, _SHEBANG + _block(path.name, command, previous=left), executable=True)
        return
    shebang = _OF_A_SHELL.match(text)
    # What is not executable git does not run, and through a link another file would be changed.
    if shebang and os.access(path, os.X_OK) and not path.is_symlink():
        atomic.write(path, shebang[0] + _block(path.name, command) + text[shebang.end() :], executable=True)
        if left and hook.problem:
            previous.unlink()
        return
    _keep(path)
    _replace(path, _SHEBANG + _block(path.name, command, previous=previous.name))


def _keep(path: Path) -> None:
    """Give the hook its second name, without taking the first one away."""
    previous = _previous(path)
    if os.path.lexists(previous):
        if _is_same_file(path):
            return
        raise VersionControlError(
            f"{previous} is there already, and is not {path.name}",
            f"move one of the two away; perun hooks install keeps {path.name} under that name",
        )
    if path.is_dir() and not path.is_symlink():
        path.rename(previous)  # git never ran that
        return
    _link(path, previous)


def _link(path: Path, name: Path) -> None:
    """Let the file, or the symbolic link itself, have a second name; a copy if there are no hard links."""
    try:
        os.link(path, name, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        if path.is_symlink():
            os.symlink(os.readlink(path), name)
            return
        shutil.copy2(path, unfinished := name.with_name(atomic.temporary_name()))
        os.replace(unfinished, name)


def _replace(path: Path, data: bytes) -> None:
    """Put the script in the place of the hook that has its second name; if that fails, take that away."""
    try:
        atomic.write(path, data, executable=True)
    except BaseException:
        if not os.path.lexists(path):
            _previous(path).rename(path)
        elif _is_same_file(path):
            _previous(path).unlink()
        raise


def take_out(path: Path) -> None:
    """Take Perun out of the hook; what was there before is as it was."""
    rest = _BLOCK.sub(b"", _read(path), count=1)
    previous = _previous(path)
    if rest != _SHEBANG:
        atomic.write(path, rest, executable=True)
    elif os.path.lexists(previous):
        os.replace(previous, path)
    else:
        path.unlink()


def _block(name: str, command: Sequence[str], previous: str = "") -> bytes:
    gone = f"perun: {command[0]} no longer exists, nothing is measured; repair with: perun hooks install"
    call = _CALL.format(
        python=shlex.quote(command[0]),
        command=shlex.join(command),
        name=name,
        end="</dev/null || :" if name in MEASURING else "<<PERUN_REFS || exit 1\n$perun_refs\nPERUN_REFS",
        gone=shlex.quote(gone),
    )
    text = call if name in MEASURING else _BEFORE_PUSH.format(call=call)
    if previous:
        text += _CALL_PREVIOUS.format(kept=shlex.quote(previous))
    return f"{_BEGIN}\n{text}{_END}\n".encode("utf-8", "surrogateescape")


HOOKS: Final = MEASURING + CHECKING
"""The hooks that Perun knows what to do in."""


def status(repo: Repository) -> list[Hook]:
    """All hooks that Perun knows.

    :raises VersionControlError: if the version control system has no hooks.
    """
    folder = _folder(repo)
    return [hook_at(folder / name) for name in HOOKS]


def install(repo: Repository, names: Sequence[str], command: Sequence[str]) -> list[Hook]:
    """Let these hooks call Perun, and keep what they do already; the hooks as they are then.

    :param command: how Perun is called: an absolute path of Python and its options.
    :raises UsageError: if Perun does nothing in a hook of that name.
    :raises VersionControlError: if there are no hooks, or their folder cannot be written.
    """
    wanted = _known(names)
    folder = _writable_folder(repo)
    done: list[str] = []
    with repo.store.lock(), _Writing(folder, done, "calls perun now"):
        _make(folder)
        for name in wanted:
            insert(folder / name, command)
            done.append(name)
    return [hook_at(folder / name) for name in wanted]


def uninstall(repo: Repository, names: Sequence[str]) -> list[Hook]:
    """Take Perun out of these hooks; those that were changed, as they are then.

    :raises UsageError: if Perun does nothing in a hook of that name.
    :raises VersionControlError: if the folder cannot be written.
    """
    known = _known(names)
    folder = _writable_folder(repo)
    before = [hook_at(folder / name) for name in known]
    changed = [hook for hook in before if hook.installed]
    done: list[str] = []
    with repo.store.lock(), _Writing(folder, done, "no longer calls perun"):
        if changed:
            _make(folder)
        for hook in changed:
            take_out(hook.path)
            done.append(hook.name)
    return [hook_at(hook.path) for hook in changed]


def are_shared(repo: Repository) -> bool:
    """Whether other repositories run the same hooks, because `core.hooksPath` is outside of this one."""
    ask: Callable[[], bool] | None = getattr(repo.vcs, "shares_hooks", None)
    return ask is not None and ask()


def _known(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in HOOKS:
            raise UsageError(f"Perun knows no hook {name!r}", "it knows " + ", ".join(HOOKS))
    return list(dict.fromkeys(names))


def _folder(repo: Repository) -> Path:
    find: Callable[[], Path] | None = getattr(repo.vcs, "hooks_folder", None)
    if find is None:
        raise VersionControlError(f"{repo.vcs.type} has no hooks", "run perun run matrix yourself")
    return find()


def _writable_folder(repo: Repository) -> Path:
    """The folder of hooks, to write there: where the repository names another one, if the user trusts it.

    :raises NotTrusted: if he has not said so.
    """
    folder = _folder(repo)
    is_named: Callable[[], bool] | None = getattr(repo.vcs, "names_hooks_folder", None)
    if is_named is not None and is_named() and not repo.trust_state.decided:
        runs = (RunnableItem("core.hooksPath", str(folder)),)
        repo.require_trust("writing hooks", Brought("the configuration of git", runs, str(folder)))
    return folder


class _Writing:
    """Turns what the system says of a folder that cannot be written into an error that names it.

    :param done: the hooks that are done, filled meanwhile. :param what: what they are.
    """

    def __init__(self, folder: Path, done: Sequence[str], what: str) -> None:
        self._folder = folder
        self._done = done
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        before = "".join(f"; {name} {self._what}" for name in self._done)
        if isinstance(problem, PerunError):
            for name in self._done:
                problem.add_note(f"{name} {self._what}")
        if isinstance(problem, OSError):
            raise VersionControlError(
                f"the folder of hooks cannot be written: {self._folder}: {problem.strerror}{before}",
                "get permission to write there, or choose another folder: git config core.hooksPath FOLDER "
                "(see what sets it: git config --show-origin core.hooksPath)",
            ) from None


def _make(folder: Path) -> None:
    """Make the folder if it is missing, and make sure of writing before the first hook is changed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied")


def problems(repo: Repository) -> Iterator[tuple[Hook, Callable[[], str]]]:
    """The hooks that an interrupted installation left behind, each with what repairs it and says so.

    A repair gives the user's hook back, or lets it run again; it removes no file that has not another name.
    """
    try:
        found = status(repo)
    except PerunError:
        return  # without version control there are none
    for hook in found:
        if hook.problem:
            yield hook, partial(_repair, repo, hook)


def _repair(repo: Repository, hook: Hook) -> str:
    _writable_folder(repo)
    return repair(hook.path)
