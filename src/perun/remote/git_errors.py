"""What git says of a remote that it cannot use, in words of who uses it."""

from __future__ import annotations

import re
from typing import Final

from perun.errors import RemoteError
from perun.process.git import GitResult
from perun.remote.contract import Remote
from perun.remote.refusals import AGAIN, Refusal, told
from perun.wording import without_secrets

_ROOM: Final = 300
_BEATEN: Final = re.compile(
    r"cannot lock ref|failed to lock|Unable to create '[^']*\.lock'|reference already exists|"
    r"incorrect old value|failed to update ref|is at [0-9a-f]{40,64} but expected|atomic transaction failed"
)
_CUT: Final = re.compile(
    r"hung up|RPC failed|early EOF|unexpected disconnect|Connection reset|Broken pipe|Empty reply|"
    r"transfer closed|Operation too slow|Connection closed by"
)


_ANSWERS: Final = (
    Refusal.of(
        r"No space left|[Dd]isk quota|out of disk|exceeds? .{0,40}(quota|limit|size)|GH001",
        "{key} cannot be {done}: the server has no room for it",
        "make room there, and push again: what was sent is not sent again",
    ),
    Refusal.of(
        r"terminal prompts disabled|could not read (Username|Password)|Authentication failed|"
        r"Permission denied \(|HTTP Basic: Access denied|returned error: 401",
        "the server does not accept the credentials that git has, or git has none",
        "see that `git ls-remote {place}` asks for no password, e.g. by a credential helper or an SSH agent",
    ),
    Refusal.of(
        r"certificate|Host key verification failed|SSL",
        "this machine does not trust the certificate, or the key, of the server",
        "see what `git ls-remote {place}` says, and that the clock of this machine is right",
    ),
    Refusal.of(
        r"[Cc]ould not resolve|unable to access.*(Failed to connect|Could ?n.t connect)|"
        r"Connection refused|Connection timed out|[Nn]etwork is unreachable|No route to host",
        "the server cannot be reached",
        "see that the network is there: git ls-remote {place}",
    ),
    Refusal.of(
        r"does not appear to be a git repository|[Rr]epository not found|repository '.*' not found|"
        r"does not exist|No such remote",
        "there is no git repository",
        "`git remote -v` lists the remotes of git; its server makes the repository, or `git init --bare`",
    ),
    Refusal.of(
        r"not a git repository",
        "the project is in no git repository, whose remotes could be used",
        "name a folder, a database or an object store as the remote: perun remote add --help",
    ),
    Refusal.of(
        r"returned error: 403|[Pp]ermission( to \S+)? denied|insufficient permission|read-only|"
        r"Read-only file system|unable to create temporary|not allowed to (push|upload)",
        "{key} cannot be {done}: the server does not let you do that",
        "ask who owns the repository; `perun pull` needs to read only",
    ),
    Refusal.of(
        r"remote rejected|hook declined|funny refname|hidden ref|prohibited|denied by",
        "the server takes no refs below refs/perun",
        "ask who owns the repository to allow them, or use another kind of remote: perun remote add --help",
    ),
)
_SILENT: Final = Refusal.of(
    r"Could not read from remote repository",
    "{key} cannot be {done}: the server ended the connection without a word",
    "see what `git ls-remote {place}` says",
)
"""Said behind many of the others, too."""


def named(remote: Remote, key: str, done: str, answer: GitResult) -> RemoteError:
    """The error that tells what git answered.

    :param done: what was to become of the piece: read, written, listed or removed.
    """
    text = f"{answer.stderr}\n{answer.text}"
    place = remote.url.partition(":")[2]
    if found := told(remote, (*_ANSWERS, _SILENT), text, key=key, done=done, place=place):
        return found
    said = next((line for line in answer.stderr.splitlines() if line.startswith(("fatal:", "error:"))), "")
    said = without_secrets(said.partition(": ")[2] or answer.stderr.strip().partition("\n")[0])
    return RemoteError(
        f"{remote.url}: {key} cannot be {done}: git says: {said[:_ROOM] or answer.code}", AGAIN
    )


def was_beaten(answer: GitResult) -> bool:
    """Whether the server refused a push, wholly, as another one changed refs at the same time."""
    return _BEATEN.search(f"{answer.text}\n{answer.stderr}") is not None


def was_cut(answer: GitResult) -> bool:
    """Whether the line was cut, so that another attempt may succeed."""
    if _CUT.search(answer.stderr):
        return True
    is_known = any(one.pattern.search(answer.stderr) for one in _ANSWERS)
    return _SILENT.pattern.search(answer.stderr) is not None and not is_known
