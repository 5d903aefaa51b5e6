"""A transfer whose line is cut goes on where it ended."""

from __future__ import annotations

import json
import os

import pytest
from servers import BUCKET, line_to, s3_server

from perun.core.errors import RemoteError
from perun.repository.repository import open_repository
from perun.sharing import transfer
from perun.store.remote.opening import opened


def test_a_transfer_goes_on_where_the_line_was_cut(
    perun, project, write_profile, environment, tmp_path, monkeypatch
):
    for number in range(6):
        write_profile(f"p{number}.perf", workload=os.urandom(20_000).hex())
    perun("add", *(f"{number}@p" for number in range(6)))
    monkeypatch.setattr("perun.store.remote.pack.TARGET", 1)  # a pack for each
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
    repo = open_repository(project.path, environment)
    with s3_server() as port, line_to(port) as line:
        remote = opened(
            f"s3://{BUCKET}/perf?endpoint=http://127.0.0.1:{line.port}&region=eu", environ=os.environ
        )
        line.left = 80_000
        with pytest.raises(RemoteError):
            transfer.push(repo, remote)
        line.left = None
        sent, before = transfer.push(repo, remote), line.passed[0]
        assert 0 < len(sent.entries) < 6
        assert sent.known == 6 - len(sent.entries)
        assert transfer.push(repo, remote).entries == []
        assert line.passed[0] - before < 10_000  # nothing was sent again
        project.git("clone", "--quiet", str(project.path), str(tmp_path / "other"))
        perun("init", cwd=tmp_path / "other")
        other = open_repository(tmp_path / "other", environment)
        line.received = [None, *[20_000] * 3]
        fetched = transfer.pull(other, remote)
        assert len(fetched.entries) == 6 and fetched.refused == []
    assert json.loads(perun("log", "--json", cwd=tmp_path / "other").out)
