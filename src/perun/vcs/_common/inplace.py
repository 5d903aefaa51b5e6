"""Measuring other versions in the user's own folder, for `--in-place`; nothing of the user's is ever lost.

Uncommitted changes are first made an entry `W` of `git stash`; only then is
anything in the folder changed, and only by ways in which git refuses rather than overwrites::

    save     git stash create, git stash store          the entry is there, nothing else has changed
             git read-tree -i -m W                      the index is W; the folder is W anyway
             git update-ref --no-deref HEAD W           HEAD is detached at W; `git status` is clean
             git checkout --detach W^1                  the first step that touches a file
             git symbolic-ref HEAD refs/heads/BRANCH    on the branch again, without the changes
    restore  git checkout --detach W                    every file as it was
             git symbolic-ref HEAD refs/heads/BRANCH
             git read-tree -i -m W^2                    the index as it was
             git stash drop                             only now, when the folder holds all that was in it

Wherever this is cut off, :func:`restore` finishes it, and so does `git stash apply --index W` by hand. A file
edited between two steps, and an untracked or ignored file that a version would overwrite, make git refuse.
Submodules are left as they are. A file that was added, and then deleted in the folder only, is back there
after it all, as with `git stash` itself.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from perun.core.errors import VersionControlError
from perun.core.process.git import GitCommand, GitResult
from perun.plugin.api import SavedState
from perun.vcs._common.history import head_checksum, is_checksum

# Entries of `git stash`: commits that hold uncommitted changes, and the list that keeps them alive.
#
# An entry is a commit `W`, the tracked files as they are in the folder; its parents are the commit it was
# made on and a commit `I` of the index.

_IDENTITY: Final = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Perun"), ("EMAIL", "perun@localhost"))
}
"""Author of the entries: git makes none if the user has not told a name yet."""


class Contents(NamedTuple):
    """Of an entry: the commit it was made on, and the trees of the folder and of the index."""

    base: str
    folder: str
    staged: str


class StashEntry(NamedTuple):
    """A line of `git stash list`."""

    checksum: str
    label: str


def create(git: GitCommand) -> str:
    """Checksum of an entry, in no list yet, of what is uncommitted now; empty if nothing is.

    :raises VersionControlError: if there are conflicts, or files of `git add -N`.
    """
    answer = git.attempt("stash", "create", env=_IDENTITY, shield=True)
    if answer.code and not answer.stderr:
        # So it fails if only times of files differ, and if another git holds the index: ask which.
        refreshed = git.attempt("update-index", "--refresh", shield=True)
        if refreshed.code > 1:
            raise git.failure("update-index", refreshed)
        # Where there was nothing to refresh, git has not looked for the lock of another one.
        lock = git.folder / git.ask("rev-parse", "--git-path", "index.lock")
        if lock.exists():
            raise VersionControlError(
                f"git cannot put aside the uncommitted changes in {git.folder}: {lock} is there",
                "wait for the git that holds it; if none is running, remove the file",
            )
        answer = git.attempt("stash", "create", env=_IDENTITY, shield=True)
    if answer.code:
        reason = answer.stderr or "without a message"
        raise VersionControlError(
            f"git cannot put aside the uncommitted changes in {git.folder}: {reason}",
            "commit them (files of `git add -N` too), or measure without --in-place",
        )
    return answer.text


def store(git: GitCommand, checksum: str, label: str) -> None:
    """Put what :func:`create` made into the list."""
    git.alter("stash", "store", "--message", label, checksum, env=_IDENTITY)


def contents(git: GitCommand, checksum: str) -> Contents:
    """What the entry holds."""
    names = (f"{checksum}^1", f"{checksum}^{{tree}}", f"{checksum}^2^{{tree}}")
    return Contents(*git.ask("rev-parse", *names).split())


def tree_of(git: GitCommand, commit: str) -> str:
    """Checksum of the tree of a commit."""
    return git.ask("rev-parse", f"{commit}^{{tree}}")


def entries(git: GitCommand) -> list[StashEntry]:
    """The list, the newest first: an entry's place in it is its number."""
    listed = git.ask("stash", "list", "-z", "--format=%H%n%gs").split("\0")
    pairs = (line.partition("\n") for line in listed if line)
    return [StashEntry(checksum, label) for checksum, _, label in pairs]


def drop(git: GitCommand, checksum: str) -> None:
    """Take the entry out of the list, if it is there."""
    for number, entry in enumerate(entries(git)):
        if entry.checksum == checksum:
            said = git.alter("stash", "drop", f"stash@{{{number}}}")
            dropped = said.rpartition("(")[2].rstrip(")")
            if dropped != checksum:  # someone made another entry meanwhile, and the numbers have moved
                store(git, dropped, entry.label)
            return


_LABEL: Final = "perun: your uncommitted changes on "
_LEFTOVER: Final = "perun: changes to tracked files found before going back to "
_BRANCHES: Final = "refs/heads/"
_SHOWN_FILES: Final = 10

_UNFINISHED: Final = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "SQUASH_MSG": "a squashed merge",
    "sequencer": "a cherry-pick or revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
}
"""Files in git's folder that tell of work in progress, which a checkout would make git forget."""


class _Refused(VersionControlError):
    """Files of the user's are in the way of a checkout, which has changed nothing."""


def prepare(git: GitCommand, label: str = "") -> SavedState:
    """Make a stash entry of uncommitted changes, and change nothing else.

    :param label: name of the entry in `git stash list`.
    :raises VersionControlError: in the middle of a merge or the like, or if git cannot stash.
    """
    _refuse_unfinished(git)
    head = head_checksum(git)
    reference = git.attempt("symbolic-ref", "--quiet", "HEAD").text
    state = reference.removeprefix(_BRANCHES) if reference.startswith(_BRANCHES) else head
    stash = create(git)
    if stash:
        store(git, stash, label or _LABEL + state)
    return SavedState(bool(stash), state, stash)


def clear(git: GitCommand, saved: SavedState) -> None:
    """Take out of the folder what :func:`prepare` put aside; HEAD stays where it was.

    :raises VersionControlError: if files are in the way; folder and index are then as before.
    """
    if not saved.saved:
        return
    wanted = contents(git, saved.stash)
    try:
        _set_head_and_index(git, saved.stash)
        _checkout(git, wanted.base, "taking the uncommitted changes out")
        _attach(git, saved.state, wanted.base)
    except _Refused:
        _restore_head_and_index(git, saved.state, wanted.base, wanted.staged)
        now = create(git)
        if now and contents(git, now).folder == wanted.folder:
            drop(git, saved.stash)
        raise
    except BaseException:
        # Ctrl-C, or git failed half-way: the entry may hold the only copy.
        restore(git, *saved)
        raise


def set_aside(git: GitCommand, label: str) -> str:
    """Take uncommitted changes out of the folder into a stash entry that stays there.

    :param label: name of the entry in `git stash list`.
    :return: checksum of the entry; empty if nothing was uncommitted.
    """
    saved = prepare(git, label)
    clear(git, saved)
    return saved.stash


def checkout(git: GitCommand, checksum: str) -> None:
    """Check out a commit, detached; uncommitted changes to files that do not differ are carried along.

    :raises VersionControlError: if a file of the user's is in the way; nothing has changed then.
    """
    _refuse_unfinished(git)
    _checkout(git, checksum, f"checking out {checksum[:12]}")


def restore(git: GitCommand, saved: bool, state: str, stash: str = "") -> None:
    """Go back to `state` and bring back what was put aside; may be called again if it was cut off.

    Changes to tracked files that are there now (the measured command made them, or an editor) are put
    into a stash entry of their own and stay there.

    :param stash: checksum of the entry; if empty, the newest one made for `state`.
    :raises VersionControlError: says what is in the way, where the changes are and how to get them by hand.
    """
    if saved and stash and _is_finished(git, state, stash):
        return
    entry = _find(git, state, stash) if saved else ""
    try:
        _refuse_unfinished(git)
        tip = _tip(git, state)
        if not entry:
            _return_to(git, state, tip)
        elif tip in ("", contents(git, entry).base):
            _reapply(git, state, entry)
        else:
            # New commits have come to the branch in the meantime: only a merge brings the changes back.
            _return_to(git, state, tip)
            git.alter("stash", "apply", "--index", "--quiet", entry)
    except VersionControlError as problem:
        message = f"cannot go back to {state!r}: {problem.message}"
        raise VersionControlError(message, _manual_steps(git, state, entry)) from None
    if entry:
        drop(git, entry)


def _is_finished(git: GitCommand, state: str, stash: str) -> bool:
    """Whether an earlier call was cut off when all was back already, the entry dropped."""
    if any(entry.checksum == stash for entry in entries(git)):
        return False
    reference = git.attempt("symbolic-ref", "--quiet", "HEAD").text
    if state not in (reference.removeprefix(_BRANCHES), head_checksum(git)):
        return False
    now = create(git)
    there = git.attempt("cat-file", "-e", f"{stash}^2").code == 0
    return bool(now) and there and contents(git, now) == contents(git, stash)


def _return_to(git: GitCommand, state: str, tip: str) -> None:
    if not tip and not is_checksum(state):
        raise VersionControlError(f"there is no branch {state!r} any more")
    _stash_leftover_changes(git, create(git), state)
    _checkout(git, tip or state, "going back")
    _attach(git, state, tip)


def _reapply(git: GitCommand, state: str, entry: str) -> None:
    wanted = contents(git, entry)
    staged = wanted.staged
    now = create(git)
    found = contents(git, now) if now else None
    if found and found.folder == wanted.folder:
        # An earlier run was cut off when the folder held everything already; later staging is respected.
        # The index is then that of the folder or, before git has replaced it, that of the version measured.
        untouched = (wanted.folder, tree_of(git, found.base))
        staged = wanted.staged if found.staged in untouched else ""
    else:
        _stash_leftover_changes(git, now, state)
        _checkout(git, entry, "bringing back the uncommitted changes")
    _restore_head_and_index(git, state, wanted.base, staged)


def _stash_leftover_changes(git: GitCommand, stash: str, state: str) -> None:
    if stash:
        store(git, stash, _LEFTOVER + state)
        _set_head_and_index(git, stash)


def _set_head_and_index(git: GitCommand, stash: str) -> None:
    """Make HEAD and index those of the stash commit, whose files are in the folder already."""
    git.alter("read-tree", "-i", "-m", stash)
    git.alter("update-ref", "--no-deref", "-m", "perun: uncommitted changes", "HEAD", stash)


def _restore_head_and_index(git: GitCommand, state: str, base: str, staged: str) -> None:
    _attach(git, state, base)
    if staged:
        git.alter("read-tree", "-i", "-m", staged)
        git.attempt("update-index", "-q", "--refresh", shield=True)


def _attach(git: GitCommand, state: str, commit: str) -> None:
    """Put HEAD on the branch `state` if it is one, else on the commit, leaving index and files alone."""
    message = f"perun: back to {state}"
    if _tip(git, state):
        git.alter("symbolic-ref", "-m", message, "HEAD", _BRANCHES + state)
    elif commit:
        git.alter("update-ref", "--no-deref", "-m", message, "HEAD", commit)


def _tip(git: GitCommand, state: str) -> str:
    """The newest commit of the branch `state`; empty if it is no branch."""
    return git.attempt("rev-parse", "--verify", "--quiet", f"{_BRANCHES}{state}^{{commit}}").text


def _find(git: GitCommand, state: str, stash: str) -> str:
    for entry in entries(git):
        if entry.checksum == stash or (not stash and entry.label == _LABEL + state):
            return entry.checksum
    raise VersionControlError(
        f"the changes put aside on {state!r} are in no entry of `git stash list` any more",
        f"unless you have them already: {git.typed} stash apply --index {stash}" if stash else "",
    )


def _checkout(git: GitCommand, commit: str, doing: str) -> None:
    answer = git.attempt("checkout", "--quiet", "--no-overwrite-ignore", "--detach", commit, shield=True)
    if answer.code == 0 and not answer.left_files:
        return
    files = _files_in_the_way(answer)
    if not files:
        raise git.failure("checkout", answer)
    shown = ", ".join(files[:_SHOWN_FILES]) + (", ..." if len(files) > _SHOWN_FILES else "")
    raise _Refused(
        f"{doing} would overwrite files in {git.folder} that no version holds: {shown}",
        f"{git.make_version} or move them away, or measure without --in-place",
    )


def _files_in_the_way(answer: GitResult) -> list[str]:
    """Git lists them in its message, one a line, each after a tab; it has changed nothing then."""
    if "would be overwritten by" not in answer.stderr and "would lose untracked" not in answer.stderr:
        return []
    return [line.strip() for line in answer.stderr.splitlines() if line.startswith("\t")]


def _refuse_unfinished(git: GitCommand) -> None:
    folder = Path(git.ask("rev-parse", "--absolute-git-dir"))
    for name, what in _UNFINISHED.items():
        if (folder / name).exists():
            raise VersionControlError(
                f"{what} is in progress in {git.folder}; checking out another version would end it",
                "finish or abort it first (see git status), or measure without --in-place",
            )


def _manual_steps(git: GitCommand, state: str, stash: str) -> str:
    steps = f"by hand: move the files in the way, then {git.typed} checkout {quote(state)}"
    if not stash:
        return steps
    apply = f"{git.typed} stash apply --index {stash}"
    return f"your changes are safe in the stash entry {stash}; {steps}, then {apply}"
