"""`perun hooks`: scripts that git calls after a commit or before a push, and taking them away again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from perun.errors import PerunError, UsageError, VersionControlError
from perun.porcelain import hook_files
from perun.porcelain.hook_files import CHECKING, MEASURING, Hook, hook_at, repair
from perun.porcelain.repository import Repository
from perun.porcelain.trust import Brought, RunnableItem

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
            hook_files.install(folder / name, command)
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
            hook_files.uninstall(hook.path)
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
