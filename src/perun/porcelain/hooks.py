"""`perun hooks`: scripts that git calls after a commit or before a push, and taking them away again.

What Perun writes into a hook stands between two marks. A shell script that is there already gets it at its
beginning; any other hook is moved to `<name>.before-perun` and called at the end. Either way `uninstall`
leaves what was there before, byte for byte.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perun import atomic
from perun.errors import UsageError, VersionControlError
from perun.porcelain.repository import Repository

MEASURING: Final = ("post-commit", "post-merge")
CHECKING: Final = ("pre-push",)
HOOKS: Final = MEASURING + CHECKING
"""The hooks that Perun knows what to do in."""
KEPT: Final = ".before-perun"
"""Ending of the name of a hook that was there before and is no shell script."""

_BEGIN: Final = "# >>> perun hooks >>> perun hooks uninstall takes away what is between these two lines"
_END: Final = "# <<< perun hooks <<<"
_BLOCK: Final = re.compile(
    rb"^" + re.escape(_BEGIN.encode()) + rb"$.*?^" + re.escape(_END.encode()) + rb"$\n?",
    re.MULTILINE | re.DOTALL,
)
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
_KEPT: Final = """\
perun_kept=$(dirname "$0")/{kept}
if [ -x "$perun_kept" ]; then
  exec "$perun_kept" "$@"
fi
"""


@dataclass(frozen=True)
class Hook:
    """One hook: `installed` says whether it calls Perun, `keeps` whether it also does what was there before.

    `other`: it is there, but not Perun's.
    """

    name: str
    path: Path
    installed: bool
    keeps: bool = False
    other: bool = False


def status(repo: Repository) -> list[Hook]:
    """All hooks that Perun knows.

    :raises VersionControlError: where the version control system has no hooks.
    """
    folder = _folder(repo)
    return [_look(folder / name) for name in HOOKS]


def install(repo: Repository, names: Sequence[str], command: Sequence[str]) -> list[Hook]:
    """Let these hooks call Perun, and keep what they do already; the hooks as they are then.

    :param command: how Perun is called: an absolute path of Python and its options.
    :raises UsageError: where Perun does nothing in a hook of that name.
    :raises VersionControlError: where there are no hooks, or their folder cannot be written.
    """
    wanted = _known(names)
    folder = _folder(repo)
    with _Writing(folder):
        _make(folder)
        for name in wanted:
            _install(folder / name, command)
    return [_look(folder / name) for name in wanted]


def uninstall(repo: Repository, names: Sequence[str]) -> list[Hook]:
    """Take Perun out of these hooks; those that were changed, as they are then.

    :raises UsageError: where Perun does nothing in a hook of that name.
    :raises VersionControlError: where the folder cannot be written.
    """
    folder = _folder(repo)
    before = [_look(folder / name) for name in _known(names)]
    changed = [hook for hook in before if hook.installed]
    with _Writing(folder):
        if changed:
            _make(folder)
        for hook in changed:
            _uninstall(hook.path)
    return [_look(hook.path) for hook in changed]


def are_shared(repo: Repository) -> bool:
    """Whether other repositories run the same hooks, as `core.hooksPath` lies outside of this one."""
    ask: Callable[[], bool] | None = getattr(repo.vcs, "shares_hooks", None)
    return ask is not None and ask()


def _known(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in HOOKS:
            raise UsageError(f"Perun has nothing to do in a hook {name!r}", "it knows " + ", ".join(HOOKS))
    return list(dict.fromkeys(names))


def _folder(repo: Repository) -> Path:
    find: Callable[[], Path] | None = getattr(repo.vcs, "hooks_folder", None)
    if find is None:
        raise VersionControlError(f"{repo.vcs.type} has no hooks", "run perun run matrix by yourself")
    return find()


class _Writing:
    """Turns what the system says of a folder that cannot be written into an error that names it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            raise VersionControlError(
                f"the folder of hooks cannot be written: {self._folder}: {problem.strerror}",
                "get permission to write there, or choose another: git config core.hooksPath FOLDER "
                "(what sets it now: git config --show-origin core.hooksPath)",
            ) from None


def _make(folder: Path) -> None:
    """Make the folder where it is missing, and make sure of writing before the first hook is changed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied")


def _look(path: Path) -> Hook:
    if not os.path.lexists(path):
        return Hook(path.name, path, False)
    text = _read(path)
    if not _BLOCK.search(text):
        return Hook(path.name, path, False, other=True)
    keeps = _BLOCK.sub(b"", text, count=1) != _SHEBANG or os.path.lexists(_kept(path))
    return Hook(path.name, path, True, keeps)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # a link to nowhere, or a folder: kept, as anything else


def _kept(path: Path) -> Path:
    return path.with_name(path.name + KEPT)


def _install(path: Path, command: Sequence[str]) -> None:
    hook = _look(path)
    if hook.installed:
        _uninstall(path)  # it may be of another installation of Perun
        hook = _look(path)
    if not hook.other:
        _write(path, _SHEBANG + _block(path.name, command))
        return
    text = _read(path)
    shebang = _OF_A_SHELL.match(text)
    # What is not executable git does not run, and through a link another file would be changed.
    if shebang and os.access(path, os.X_OK) and not path.is_symlink():
        _write(path, shebang[0] + _block(path.name, command) + text[shebang.end() :])
        return
    os.rename(path, _kept(path))
    _write(path, _SHEBANG + _block(path.name, command, kept=_kept(path).name))


def _uninstall(path: Path) -> None:
    rest = _BLOCK.sub(b"", path.read_bytes(), count=1)
    kept = _kept(path)
    if rest != _SHEBANG:
        _write(path, rest)
    elif os.path.lexists(kept):
        os.replace(kept, path)
    else:
        path.unlink()


def _write(path: Path, data: bytes) -> None:
    atomic.write(path, data)
    path.chmod(path.stat().st_mode | 0o111)


def _block(name: str, command: Sequence[str], kept: str = "") -> bytes:
    gone = f"perun: {command[0]} is gone, nothing is measured; repair: perun hooks install"
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
