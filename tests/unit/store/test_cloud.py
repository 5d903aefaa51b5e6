"""Addresses of object stores."""

from __future__ import annotations

import pytest

from perun.store.remote.cloud import CloudRemote, parsed


def test_the_parts_of_an_address() -> None:
    assert parsed("s3://team/a/b/?region=eu&endpoint=https://minio.example.org:9000") == (
        "s3",
        "",
        "team",
        "a/b",
        "https://minio.example.org:9000",
        "eu",
    )
    assert parsed("gs://team")[:4] == ("gs", "", "team", "")
    assert parsed("az://account/team/perf")[:4] == ("az", "account", "team", "perf")


@pytest.mark.parametrize(
    "url, shown",
    [
        ("gs://team/perf", 'GCSStore(bucket="team", prefix="perf")'),
        (
            "az://account/team/perf",
            'AzureStore(container_name="team", account_name="account", prefix="perf")',
        ),
        ("s3://team/perf", 'S3Store(bucket="team", prefix="perf")'),
    ],
)
def test_the_store_of_an_address(url: str, shown: str) -> None:
    pytest.importorskip("obstore")
    remote = CloudRemote(url, {})
    assert repr(remote._store()) == shown
    # Large pieces get more time, and each store is made once.
    assert remote._store(1 << 10) is remote._store(1 << 20)
    assert remote._store(1 << 10) is not remote._store(1 << 30)
