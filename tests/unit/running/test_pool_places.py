"""What names a pool, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from perun.core.errors import ConfigError, UsageError
from perun.running.pool import places
from perun.running.pool.places import Host, Hosts, Local, Place, Scheduler, parsed


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("local:3", Local(3)),
        ("local", Local(2)),
        ("dask://farm:8786", Scheduler("tcp://farm:8786", False)),
        ("dask://[::1]:8786/", Scheduler("tcp://[::1]:8786", False)),
        ("dask+tls://farm.example.org:1", Scheduler("tls://farm.example.org:1", True)),
        ("ssh:my hosts.yml", Hosts(Path("my hosts.yml"))),
    ],
)
def test_what_names_a_pool(text: str, place: Place) -> None:
    assert parsed(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "local:", "local:0", "local:65", "local:-1", "local:2x", "dask://farm", "dask://farm:0", "dask://farm:65536",
     "dask://-oProxy:1", "dask://me:secret@farm:1", "tcp://farm:1", "ssh:", "ssh"],
)  # fmt: skip
def test_what_names_none(text: str) -> None:
    with pytest.raises(UsageError):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "exposed"),
    [
        ("dask://localhost:1", False),
        ("dask://127.0.0.1:1", False),
        ("dask://[::1]:1", False),
        ("dask://127.0.0.1.example.org:1", True),
        ("dask://farm:1", True),
        ("dask+tls://farm:1", False),
    ],
)
def test_who_may_read_along(text: str, exposed: bool) -> None:
    place = parsed(text)
    assert isinstance(place, Scheduler)
    assert place.exposed is exposed


def test_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text("hosts:\n- bench1\n- {host: me@bench2, python: /opt/python}\n")
    assert places.read(file) == [Host("bench1"), Host("me@bench2", "/opt/python")]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "hosts: []", "hosts: bench", "hosts: [-oProxyCommand=x]", "hosts: [{python: x}]",
     "hosts: ['a b']", "hosts: [{host: a, port: 1}]", "machines: [a]", "hosts: [a"],
)  # fmt: skip
def test_a_file_of_no_hosts(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"hosts\.yml"):
        places.read(file)
    with pytest.raises(ConfigError, match=r"absent\.yml"):
        places.read(tmp_path / "absent.yml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"hosts: [{host: a, pyhton: x}]", "the machine 'a': unknown key 'pyhton'; known: host, python"),
        (b"hosts: [a]\nuser: me", "unknown key 'user'; known: hosts"),
        (b"hosts: [3]", "3 is no machine"),
        (b"\xff\xfe", "it is no text in UTF-8"),
        (b"hosts: []", "no machine is listed"),
    ],
)
def test_what_is_wrong_with_a_file_of_hosts(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "hosts.yml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as raised:
        places.read(file)
    assert message in raised.value.message
    assert raised.value.hint.startswith("e.g. hosts: [bench1")
