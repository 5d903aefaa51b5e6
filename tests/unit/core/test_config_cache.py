"""The cache of parsed files never changes what is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.config.edit import set_value
from perun.core.config.layers import Config, load, refresh_cache
from perun.core.errors import ConfigError


class Instance:
    def __init__(self, root: Path) -> None:
        self.perun_dir = root / ".perun"
        self.perun_dir.mkdir()
        self.shared_dir = root / "shared"
        self.shared_dir.mkdir()
        self.local = self.perun_dir / "local.yml"
        self.shared = self.shared_dir / "shared.yml"
        self.cache = root / "cache" / "config.json"
        self.local.write_text("general:\n  editor: nano\n")

    def load(self) -> Config:
        return load([self.perun_dir], self.shared_dir, self.cache)

    def refreshed(self) -> Config:
        refresh_cache(self.load(), self.cache)
        return self.load()


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    return Instance(tmp_path)


def origins(config: Config) -> dict[str, str]:
    return {layer.name: layer.origin for layer in config.layers}


def test_reading_writes_nothing(instance: Instance) -> None:
    assert origins(instance.load())["local"] == "file"
    assert not instance.cache.exists()


def test_a_refreshed_cache_is_used_and_says_the_same(instance: Instance) -> None:
    instance.shared.write_text("degradation:\n  strategy: [{method: aat}]\n  cutoff: 2\n")
    before = instance.load()
    after = instance.refreshed()
    assert origins(after) == {
        "local": "cache",
        "shared": "cache",
        "defaults": "memory",
    }
    assert [layer.values for layer in after.layers] == [layer.values for layer in before.layers]
    assert after.warnings == before.warnings != ()


def test_refreshing_twice_writes_once(instance: Instance) -> None:
    assert refresh_cache(instance.load(), instance.cache) is True
    inode = instance.cache.stat().st_ino
    assert refresh_cache(instance.load(), instance.cache) is False
    assert instance.cache.stat().st_ino == inode


def test_a_change_within_the_same_tick_of_the_clock_is_seen(instance: Instance) -> None:
    """Same size, same inode, same times: only the text differs."""
    instance.refreshed()
    before = instance.local.stat()
    with open(instance.local, "r+") as file:
        file.write("general:\n  editor: pico\n")
    os.utime(instance.local, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = instance.local.stat()
    assert (after.st_size, after.st_ino) == (before.st_size, before.st_ino)
    assert after.st_mtime_ns == before.st_mtime_ns
    assert instance.load().get("general.editor") == "pico"


def test_a_stale_entry_is_not_used_and_is_replaced(instance: Instance) -> None:
    instance.refreshed()
    instance.local.write_text("general:\n  paging: never\n")
    config = instance.load()
    assert (config.get("general.editor"), config.get("general.paging")) == ("vim", "never")
    assert origins(config)["local"] == "file"
    assert origins(instance.refreshed())["local"] == "cache"


def test_a_touched_file_is_still_cached(instance: Instance) -> None:
    instance.refreshed()
    os.utime(instance.local, (0, 0))
    assert origins(instance.load())["local"] == "cache"


def test_a_removed_file_is_gone_and_leaves_the_cache(instance: Instance) -> None:
    instance.shared.write_text("general:\n  editor: vi\n")
    instance.refreshed()
    instance.local.unlink()
    assert instance.load().get("general.editor") == "vi"
    instance.refreshed()
    assert list(json.loads(instance.cache.read_text())["files"]) == [str(instance.shared)]


def test_a_file_that_became_wrong_is_an_error_in_spite_of_the_cache(instance: Instance) -> None:
    config = instance.refreshed()
    instance.local.write_text("general:\n  editr: nano\n")
    with pytest.raises(ConfigError, match="editr"):
        instance.load()
    refresh_cache(config, instance.cache)
    assert json.loads(instance.cache.read_text())["files"] == {}


def test_set_and_refresh(instance: Instance) -> None:
    instance.refreshed()
    set_value(instance.local, "general.editor", "pico")
    config = instance.refreshed()
    assert (config.get("general.editor"), origins(config)["local"]) == ("pico", "cache")


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"format": 1}', b'{"format": 1, "files": []}',
        b'{"format": 2, "files": {}}', b"[" * 100_000, b'{"format": 1, "files": {"x": 1}}',
    ],
)  # fmt: skip
def test_a_damaged_cache_is_as_good_as_none(instance: Instance, damage: bytes) -> None:
    instance.refreshed()
    instance.cache.write_bytes(damage)
    assert instance.load().get("general.editor") == "nano"
    assert origins(instance.refreshed())["local"] == "cache"


def test_a_cache_that_is_no_file_is_as_good_as_none(instance: Instance) -> None:
    instance.cache.mkdir(parents=True)
    assert instance.load().get("general.editor") == "nano"


@given(st.binary())
def test_random_damage(tmp_path_factory: pytest.TempPathFactory, damage: bytes) -> None:
    instance = Instance(tmp_path_factory.mktemp("x"))
    instance.cache.parent.mkdir()
    instance.cache.write_bytes(damage)
    assert instance.load().get("general.editor") == "nano"


def forged(instance: Instance, path: Path, **entry: object) -> None:
    """Put an entry for the present text of a file into the cache."""
    whole = {"text": path.read_text(), "values": {}, "warnings": [], **entry}
    instance.cache.parent.mkdir(exist_ok=True)
    instance.cache.write_text(json.dumps({"format": 1, "files": {str(path): whole}}))


@pytest.mark.parametrize(
    "entry",
    [
        {"values": []},
        {"values": {"nosuch": 1}},
        {"values": {"general": {"paging": "x"}}},
        {"values": {"general": "x"}},
        {"values": {"plugins": {"trusted": ["/"]}}},
        {"warnings": [1]},
        {"warnings": "x"},
        {"text": None},
    ],
)
def test_entries_that_cannot_be_are_not_used(instance: Instance, entry: dict[str, object]) -> None:
    forged(instance, instance.local, **entry)
    assert instance.load().get("general.editor") == "nano"


def test_the_cache_of_another_user_is_not_read(instance: Instance) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    forged(instance, instance.local, values={"general": {"editor": "evil"}})
    assert instance.load().get("general.editor") == "evil"
    os.chown(instance.cache, 4321, -1)
    assert instance.load().get("general.editor") == "nano"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_cache_that_would_never_end_is_as_good_as_none(instance: Instance, make: Any) -> None:
    instance.cache.parent.mkdir()
    make(instance.cache)
    assert instance.load().get("general.editor") == "nano"


def test_nobody_else_can_read_the_cache(instance: Instance) -> None:
    instance.refreshed()
    assert instance.cache.stat().st_mode & 0o777 == 0o600
