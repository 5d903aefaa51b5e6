"""The file of one hook: getting our lines in and out, and what a process that was killed may leave of it.

What Perun writes stands between two marks. A shell script gets it at its beginning; any other hook gets the
second name `<name>.before-perun`, is replaced under its own, and called at the end. A hook is never away, not
even for a moment: whoever is killed leaves the old hook or the new one, and perhaps the second name.
"""

from __future__ import annotations

import filecmp
import os
import re
import shlex
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perun import atomic
from perun.errors import VersionControlError
from perun.leftovers import sweep_folder
from perun.regular import read_regular

MEASURING: Final = ("post-commit", "post-merge")
CHECKING: Final = ("pre-push",)
KEPT: Final = ".before-perun"
"""Ending of the name of a hook that was there before and is no shell script."""

_BEGIN: Final = "# >>> perun hooks >>> perun hooks uninstall takes away what is between these two lines"
_END: Final = "# <<< perun hooks <<<"
_BLOCK: Final = re.compile(
    rb"^" + re.escape(_BEGIN.encode()) + rb"$.*?^" + re.escape(_END.encode()) + rb"$\n?",
    re.MULTILINE | re.DOTALL,
)
_LARGEST: Final = 1 << 20
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
_CALLS_KEPT: Final = b"exec \"$perun_kept\""
_KEPT: Final = """\
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
    kept = os.path.lexists(_kept(path))
    if not os.path.lexists(path):
        renamed = f"it does not run: an interrupted installation renamed it to {_kept(path).name}"
        problem = renamed if kept else ""
        return Hook(path.name, path, False, problem=problem)
    text = _read(path)
    block = _BLOCK.search(text)
    if not block:
        problem = f"it has the second name {_kept(path).name}" if kept and _are_one(path) else ""
        return Hook(path.name, path, False, other=True, problem=problem)
    alone = _BLOCK.sub(b"", text, count=1) == _SHEBANG
    problem = ""
    if _lacks_call(path, text):
        problem = f"it does not call {_kept(path).name}, which was there before"
    elif not os.access(path, os.X_OK):
        problem = "it is not executable, so that git does not run it"
    keeps = not alone or (kept and _CALLS_KEPT in block[0])
    return Hook(path.name, path, True, keeps, problem=problem)


def repair(path: Path) -> str:
    """Bring the hook out of the state that :func:`hook_at` calls a problem; what was done."""
    kept = _kept(path)
    if not os.path.lexists(path):
        _link(kept, path)
        kept.unlink()
        return f"{path.name} is the hook again that {kept.name} was"
    block = _BLOCK.search(text := _read(path))
    if not block:
        kept.unlink()
        return f"removed its second name {kept.name}"
    if _lacks_call(path, text):
        end = block.start() + block[0].rindex(_END.encode())
        text = text[:end] + _KEPT.format(kept=shlex.quote(kept.name)).encode() + text[end:]
    atomic.write(path, text, executable=True)
    return f"{path.name} is executable, and calls whatever was there before"


def _lacks_call(path: Path, text: bytes) -> bool:
    """Whether the script consists of our lines alone, and they do not call the hook that was there before."""
    block = _BLOCK.search(text)
    ours = block is not None and _CALLS_KEPT not in block[0] and _BLOCK.sub(b"", text, count=1) == _SHEBANG
    return ours and os.path.lexists(_kept(path))


def _are_one(path: Path) -> bool:
    """Whether the hook and what was kept of it are the same file under two names, or equal ones."""
    other = _kept(path)
    mine, kept = path.lstat(), other.lstat()
    if (mine.st_dev, mine.st_ino) == (kept.st_dev, kept.st_ino):
        return True
    if mine.st_mode != kept.st_mode:
        return False
    if stat.S_ISLNK(mine.st_mode):
        return os.readlink(path) == os.readlink(other)
    return stat.S_ISREG(mine.st_mode) and filecmp.cmp(path, other, shallow=False)


def _read(path: Path) -> bytes:
    try:
        return read_regular(os.path.realpath(path), _LARGEST)
    except OSError:
        return b""  # a link to nowhere, a folder, a large program: kept, as anything else


def _kept(path: Path) -> Path:
    return path.with_name(path.name + KEPT)


def install(path: Path, command: Sequence[str]) -> None:
    """Let the hook call Perun, and do what it did before.

    :raises VersionControlError: where another file has the name that the hook would be kept under.
    :raises OSError: where the folder cannot be written; the hook is as it was.
    """
    sweep_folder(path.parent)
    hook, kept, text = hook_at(path), _kept(path), _read(path)
    left = kept.name if os.path.lexists(kept) else ""
    if hook.installed:  # perhaps by another installation of Perun
        rest = _BLOCK.sub(b"", text, count=1)
        shebang = _OF_A_SHELL.match(rest)
        first, body = (shebang[0], rest[shebang.end() :]) if shebang else (_SHEBANG, rest)
        block = _block(path.name, command, kept=left if rest == _SHEBANG else "")
        atomic.write(path, first + block + body, executable=True)
        return
    if not hook.other:
        # Where only what was kept is left, an installation was interrupted: that is the hook of the user.
        atomic.write(path, _SHEBANG + _block(path.name, command, kept=left), executable=True)
        return
    shebang = _OF_A_SHELL.match(text)
    # What is not executable git does not run, and through a link another file would be changed.
    if shebang and os.access(path, os.X_OK) and not path.is_symlink():
        atomic.write(path, shebang[0] + _block(path.name, command) + text[shebang.end() :], executable=True)
        if left and hook.problem:
            kept.unlink()
        return
    _keep(path)
    _replace(path, _SHEBANG + _block(path.name, command, kept=kept.name))


def _keep(path: Path) -> None:
    """Give the hook its second name, without taking the first one away."""
    kept = _kept(path)
    if os.path.lexists(kept):
        if _are_one(path):
            return
        raise VersionControlError(
            f"{kept} is there already, and is not {path.name}",
            f"move one of the two away; perun hooks install keeps {path.name} under that name",
        )
    if path.is_dir() and not path.is_symlink():
        path.rename(kept)  # git never ran that
        return
    _link(path, kept)


def _link(path: Path, name: Path) -> None:
    """Let the file, or the symbolic link itself, have a second name; a copy where there are no hard links."""
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
    """Put the script in the place of the hook that has its second name; where that fails, take that away."""
    try:
        atomic.write(path, data, executable=True)
    except BaseException:
        if not os.path.lexists(path):
            _kept(path).rename(path)
        elif _are_one(path):
            _kept(path).unlink()
        raise


def uninstall(path: Path) -> None:
    """Take Perun out of the hook; what was there before is as it was."""
    rest = _BLOCK.sub(b"", _read(path), count=1)
    kept = _kept(path)
    if rest != _SHEBANG:
        atomic.write(path, rest, executable=True)
    elif os.path.lexists(kept):
        os.replace(kept, path)
    else:
        path.unlink()


def _block(name: str, command: Sequence[str], kept: str = "") -> bytes:
    gone = f"perun: {command[0]} no longer exists, nothing is measured; repair with: perun hooks install"
    call = _CALL.format(
        python=shlex.quote(command[0]),
        command=shlex.join(command),
        name=name,
        end="</dev/null || :" if name in MEASURING else "<<PERUN_REFS || exit 1\n$perun_refs\nPERUN_REFS",
        gone=shlex.quote(gone),
    )
    text = call if name in MEASURING else _BEFORE_PUSH.format(call=call)
    if kept:
        text += _KEPT.format(kept=shlex.quote(kept))
    return f"{_BEGIN}\n{text}{_END}\n".encode("utf-8", "surrogateescape")
