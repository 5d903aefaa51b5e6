"""Where git looks for hooks, and what it is in the middle of when it runs one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from perun.process.git import GitCommand

_OF_A_REBASE: Final = ("rebase-merge", "rebase-apply")


def folder(git: GitCommand) -> Path:
    """The folder of hooks: `core.hooksPath`, else that of the repository, shared by its working trees."""
    configured = configured_folder(git)
    if configured:
        bare = git.ask("rev-parse", "--is-bare-repository") == "true"
        top = git.ask("rev-parse", "--absolute-git-dir" if bare else "--show-toplevel")
        return Path(os.path.normpath(Path(top, configured)))
    return (git.folder / git.ask("rev-parse", "--git-common-dir") / "hooks").resolve()


def are_shared(git: GitCommand) -> bool:
    """Whether the folder of hooks is outside of this repository, so that others run the same hooks."""
    place = folder(git).resolve()
    own = [git.folder / git.ask("rev-parse", "--git-common-dir")]
    if git.ask("rev-parse", "--is-bare-repository") != "true":
        own.append(Path(git.ask("rev-parse", "--show-toplevel")))
    return not any(place.is_relative_to(one.resolve()) for one in own)


def names_folder(git: GitCommand) -> bool:
    """Whether the repository itself names the folder of hooks, in `.git/config` or what that includes."""
    answer = git.attempt("config", "--null", "--show-scope", "--get-all", "core.hooksPath")
    values = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return any(scope in ("local", "worktree") for scope in values[::2])


def configured_folder(git: GitCommand) -> str:
    """The value of `core.hooksPath` of the user or the repository; empty if it is not set."""
    answer = git.attempt("config", "--null", "--type=path", "--get-all", "core.hooksPath")
    values = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    # The last one is what every call here sets, so that git runs no hooks on behalf of Perun.
    return values[-2] if len(values) > 1 else ""


def is_rebasing(git: GitCommand) -> bool:
    """Whether commits are made by a rebase that is not finished."""
    paths = (git.ask("rev-parse", "--git-path", name) for name in _OF_A_REBASE)
    return any((git.folder / path).exists() for path in paths)
