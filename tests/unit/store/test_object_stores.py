"""Where credentials of S3 are found."""

from pathlib import Path

import pytest

from perun.core.errors import UsageError
from perun.store.remote import cloud
from perun.store.remote.cloud import CloudRemote, parsed

CREDENTIALS = """
[default]
aws_access_key_id = K0
aws_secret_access_key = S0%
[ci]
aws_access_key_id = K1
aws_secret_access_key = S1
aws_session_token = T1
"""
CONFIG = """
[default]
region = eu-west-1
[profile ci]
region = eu-north-1
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws/config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def test_the_default_profile(environ: dict[str, str]) -> None:
    assert cloud.found(environ) == {"access_key_id": "K0", "secret_access_key": "S0%", "region": "eu-west-1"}


def test_a_named_profile(environ: dict[str, str]) -> None:
    assert cloud.found({**environ, "AWS_PROFILE": "ci"}) == {
        "access_key_id": "K1", "secret_access_key": "S1", "session_token": "T1", "region": "eu-north-1"
    }  # fmt: skip


def test_the_environment_goes_before_the_files(environ: dict[str, str]) -> None:
    assert cloud.found({**environ, "AWS_ACCESS_KEY_ID": "K2", "AWS_REGION": "eu-west-2"}) == {}


def test_files_elsewhere(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "other").write_text("[default]\naws_access_key_id = K3\naws_secret_access_key = S3\n")
    found = cloud.found({**environ, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "other")})
    assert found == {"access_key_id": "K3", "secret_access_key": "S3", "region": "eu-west-1"}


def test_without_files_there_is_nothing(tmp_path: Path) -> None:
    assert cloud.found({"HOME": str(tmp_path)}) == {}


def test_a_profile_that_is_not_there_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="AWS_PROFILE names 'nobody'"):
        cloud.found({**environ, "AWS_PROFILE": "nobody"})


@pytest.mark.parametrize("content", [b"K0 without a section", b"[default]\naws\xff = 1", b"[x"])
def test_a_damaged_file_is_named_without_its_content(environ: dict[str, str], content: bytes) -> None:
    Path(environ["HOME"], ".aws/credentials").write_bytes(content)
    with pytest.raises(UsageError, match=r"\.aws/credentials cannot be read") as error:
        cloud.found(environ)
    assert "K0" not in error.value.message + error.value.hint


def test_what_another_program_gives_is_asked_by_boto3(environ: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    pytest.importorskip("obstore")
    said = '{"Version": 1, "AccessKeyId": "K4", "SecretAccessKey": "S4"}'
    (tmp_path / "said.json").write_text(said)
    config = f"[profile sso]\ncredential_process = cat {tmp_path}/said.json\n"
    (tmp_path / ".aws/config").write_text(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_CONFIG_FILE", str(tmp_path / ".aws/config"))
        patch.setenv("AWS_PROFILE", "sso")
        given = cloud.found({**environ, "AWS_PROFILE": "sso"})["credential_provider"]()
    assert (given["access_key_id"], given["secret_access_key"]) == ("K4", "S4")


# -- Addresses of object stores ----------------------------------------------------------------------


def test_the_parts_of_an_address() -> None:
    assert parsed("s3://team/a/b/?region=eu&endpoint=https://minio.example.org:9000") == (
        "s3", "", "team", "a/b", "https://minio.example.org:9000", "eu"
    )  # fmt: skip
    assert parsed("gs://team")[:4] == ("gs", "", "team", "")
    assert parsed("az://account/team/perf")[:4] == ("az", "account", "team", "perf")


@pytest.mark.parametrize("url, shown", [
    ("gs://team/perf", 'GCSStore(bucket="team", prefix="perf")'),
    ("az://account/team/perf", 'AzureStore(container_name="team", account_name="account", prefix="perf")'),
    ("s3://team/perf", 'S3Store(bucket="team", prefix="perf")'),
])  # fmt: skip
def test_the_store_of_an_address(url: str, shown: str) -> None:
    pytest.importorskip("obstore")
    remote = CloudRemote(url, {})
    assert repr(remote._store()) == shown
    # Large pieces get more time, and each store is made once.
    assert remote._store(1 << 10) is remote._store(1 << 20)
    assert remote._store(1 << 10) is not remote._store(1 << 30)
