"""Shell completion of tags, profiles and versions, and files for answers.

Whatever goes wrong completes nothing.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import CompletionItem

from perun.core import atomic
from perun.core.errors import UsageError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(kinds: str) -> Completer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from perun.repository import lookup
        from perun.repository.lookup import split_name
        from perun.repository.repository import open_repository

        revision, name = split_name(incomplete) or (None, incomplete)
        try:
            repo = open_repository(Path.cwd(), dict(os.environ))
            found = []
            if "i" in kinds:
                there = lookup.registered(repo, repo.version(revision))
                found += [(f"{n}@i", one) for n, one in enumerate(there)]
            if "p" in kinds and revision is None:
                found += [(f"{n}@p", one) for n, one in enumerate(lookup.pending(repo))]
        except Exception:
            return []
        before = "" if revision is None else f"{revision}:"
        items = [CompletionItem(before + tag, help=one.source) for tag, one in found if tag.startswith(name)]
        if incomplete:
            names = [one.source for _, one in found if one.source.startswith(name)]
            items += [CompletionItem(before + source) for source in names]
        return items or [CompletionItem(incomplete, type="file")]

    return complete


complete_pending = _completer("p")
complete_any = _completer("ip")


def complete_minor(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Branches and the newest versions."""
    from perun.repository.repository import open_repository

    try:
        vcs = open_repository(Path.cwd(), dict(os.environ)).vcs
        names = [major.name for major in vcs.walk_major_versions()]
        names += [one.checksum[:10] for one in itertools.islice(vcs.walk_subjects("HEAD"), 20)]
    except Exception:
        return []
    return [name for name in ["HEAD", *names] if name.startswith(incomplete)]


def complete_version(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Subjects of the newest versions: for systems where these are names."""
    from perun.repository.repository import open_repository

    if not ctx.params.get("restore"):
        return []  # a new name
    try:
        vcs = open_repository(Path.cwd(), dict(os.environ)).vcs
        names = [one.subject for one in itertools.islice(vcs.walk_subjects("main"), 50)]
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


# Answers that go to a file (`--output`).


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A text file to write to, in UTF-8, that takes the place of `path` when the block has ended well.

    Where the block raises, `path` is as it was. What is no regular file, such as `/dev/stderr` or a named
    pipe, is written to directly.

    :raises UsageError: if `path` is a folder, or is in none that exists.
    :raises OSError: if it cannot be written; before the block, as far as that can be told.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "name a file in it: --output FILE")
    if not path.parent.is_dir():
        raise UsageError(
            f"cannot write {path}: there is no folder {path.parent}",
            "make the folder, or name another file: --output FILE",
        )
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", errors="backslashreplace") as direct:
            yield direct
        return
    with atomic.writing(path.resolve(), make_folder=False) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # it writes what is still buffered, and leaves the file open
