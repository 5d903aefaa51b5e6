"""`perun fsck`: verify everything that is stored."""

from __future__ import annotations

from collections.abc import Iterator

from perun.plugin.api import Report, silent
from perun.porcelain.repository import Repository
from perun.store.fsck import Finding
from perun.store.fsck import fsck as check_store


def fsck(repo: Repository, report: Report = silent) -> Iterator[Finding]:
    """Whatever is damaged, missing or left over in the store, as a stream. Reads only."""
    yield from check_store(repo.store, lambda done, total: report("", done, total))
