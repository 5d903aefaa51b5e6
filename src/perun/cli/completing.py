"""Shell completion of tags, profiles and versions, and the option that names one of these.

Whatever goes wrong completes nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

_Function = TypeVar("_Function", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(kinds: str) -> Completer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from perun.porcelain import lookup
        from perun.porcelain.repository import open_repository
        from perun.porcelain.tags import split_name

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
    from perun.porcelain.repository import open_repository

    try:
        vcs = open_repository(Path.cwd(), dict(os.environ)).vcs
        names = [major.name for major in vcs.walk_major_versions()]
        names += [one.checksum[:10] for one in itertools.islice(vcs.walk_subjects("HEAD"), 20)]
    except Exception:
        return []
    return [name for name in ["HEAD", *names] if name.startswith(incomplete)]


def complete_version(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Subjects of the newest versions: for systems where these are names."""
    from perun.porcelain.repository import open_repository

    if not ctx.params.get("restore"):
        return []  # a new name
    try:
        vcs = open_repository(Path.cwd(), dict(os.environ)).vcs
        names = [one.subject for one in itertools.islice(vcs.walk_subjects("main"), 50)]
    except Exception:
        return []
    return [name for name in names if name.startswith(incomplete)]


def minor_option(
    text: str = "Look in the index of this version; HEAD by default.",
) -> Callable[[_Function], _Function]:
    """The option `--minor`, as a decorator; `text` is its help."""
    return click.option("--minor", "-m", metavar="HASH", shell_complete=complete_minor, help=text)
