"""`perun fsck --remote`: verify all that a remote holds, and repair what can be where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator

from perun.errors import PerunError
from perun.plugin.api import Report, silent
from perun.porcelain.repository import Repository
from perun.remote.contract import Remote
from perun.remote.verifying import RemoteFinding, Verifier
from perun.store.unpacking import decode


def fsck(
    repo: Repository, remote: Remote, report: Report = silent, *, repair: bool = False
) -> Iterator[RemoteFinding]:
    """Whatever is damaged, missing or left over at the remote, as a stream. All of it is fetched.

    :param repair: do what each finding offers; what was done is in its message. No repair deletes what can be
        read.
    :raises RemoteError: if the remote cannot be reached.
    """

    def verify(checksum: str, data: bytes) -> None:
        decode(data, checksum, f"the object {checksum[:10]}", repo.store.limit)

    def progress(done: int, total: int) -> None:
        report("packs", done, total)

    for finding in Verifier(remote, verify, repo.store.limit, progress, now=time.time()).run():
        yield _repaired(finding) if repair and finding.repair is not None else finding


def _repaired(finding: RemoteFinding) -> RemoteFinding:
    assert finding.repair is not None
    try:
        return finding._replace(done=finding.repair())
    except PerunError as problem:
        return finding._replace(message=f"{finding.message}; repairing it failed: {problem.message}")
