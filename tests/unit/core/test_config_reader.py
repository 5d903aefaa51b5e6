"""Reading of YAML: places of errors, scalars as written, limits, and nothing but ConfigError."""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.config import templates
from perun.core.config.edit import set_value
from perun.core.config.layers import Config, load, refresh_cache
from perun.core.config.reader import MAX_BYTES, loads, parse, read_text
from perun.core.errors import ConfigError


def data(text: str) -> object:
    return loads(text, "f.yml")


def test_scalars_mean_what_yaml_1_2_says() -> None:
    text = "~, null, true, False, 1, -2, 0x1F, 0o17, 1.5, 1e3, .inf, yes, on, 010, 2020-01-01, '1', "
    inf = math.inf
    assert data(f"[{text} !!str 2, !!int '3']") == [
        None, None, True, False, 1, -2, 31, 15, 1.5, 1000.0, inf, "yes", "on", 10, "2020-01-01", "1", "2", 3,
    ]  # fmt: skip


def test_aliases_and_merge_keys() -> None:
    text = "base: &b {a: 1, b: 2}\nother: {<<: *b, b: 3}\nsame: *b\nboth: {<<: [{a: 5}, *b]}\n"
    assert data(text) == {
        "base": {"a": 1, "b": 2},
        "other": {"a": 1, "b": 3},
        "same": {"a": 1, "b": 2},
        "both": {"a": 5, "b": 2},
    }


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "\ufeff# mark\n", "# a\r\n"])
def test_files_without_values(text: str) -> None:
    assert data(text) is None


@pytest.mark.parametrize(("text", "message"), [
    ("a:\n\t- b\n", "f.yml:2:1: not YAML"),
    ("a: b: c\n", "f.yml:1:5: not YAML"),
    ("a: [1, 2\n", "f.yml:2:1: not YAML"),
    ("a: 1\nb: 2\na: 3\n", "f.yml:3:1: the key 'a' is given twice"),
    ("a: 1\n? [b]\n: c\n", "f.yml:2:5: a key must be text"),
    ("a: 1\n2: c\n", "f.yml:2:1: the key 2 is not text"),
    ("true: c\n", "the key true is not text"),
    ("~: c\n", "the key ~ is not text"),
    ("a: !!python/object:os.system x\n", "f.yml:1:4: the tag"),
    ("a: !custom {}\n", "f.yml:1:4: the tag"),
    ("a: *b\n", "f.yml:1:4: the alias *b"),
    ("a: &a [*a]\n", "f.yml:1:8: the alias *a"),
    ("a: 1\n---\nb: 2\n", "second document"),
    ("a: \x00\n", "f.yml:1: not YAML"),
    ("a: 1\nb: \x07\n", "f.yml:2: not YAML"),
])  # fmt: skip
def test_errors_name_the_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yml")
    assert message in str(caught.value)


def test_a_tab_is_explained_and_long_digits_are_text() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("a:\n\tb: c\n", "f.yml")
    assert "tabs" in caught.value.hint and data("a: " + "9" * 5000) == {"a": "9" * 5000}


def laughs() -> str:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 30)]
    return "\n".join(lines)


def chain() -> str:
    """Aliases that nest deeper than a recursion could go, while each line is flat."""
    return "- &a0 [x]\n" + "\n".join(f"- &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 60))


BOMBS = {
    "laughs": laughs(), "chain": chain(), "brackets": "[" * 500_000, "questions": "? " * 300_000,
    "dashes": "- " * 300_000, "items": "a: [" + "b," * 400_000 + "]"
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    with pytest.raises(ConfigError):  # unfolded they would take hours, or all of the memory
        parse(BOMBS[name], "f.yml")


@given(st.text())
def test_random_text_is_data_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        data(text)


PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "\n  ", "[", "]", "{", "}", ", ", ": ", "&x ", "*x", "<<: ", "|\n", "> ", "'",
     '"', "#", "? ", "!!str ", "!!map ", "---\n", "...\n", "%", "\t", "\r\n", "~", "1", "é", "\u2028",
     "\U0001f600"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_random_yaml_is_data_or_a_config_error(text: str) -> None:
    try:
        data(text)
    except ConfigError as problem:
        assert str(problem).startswith("f.yml:")


SCALARS = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(TREES)
def test_what_is_written_is_read_back(tree: object) -> None:
    assert data("k: " + templates.inline(tree)) == {"k": tree}
    assert data("\n".join(templates.entry("k", tree))) == {"k": tree}


@pytest.mark.parametrize(
    "text",
    ["yes", "no", "On", "y", "null", "~", "1", "1.0", "0x1", "1e3", "12:30:00", "2020-01-01", ".inf", "",
     " a", "a ", "a: b", "a #b", "# a", "- a", "a,b", "[a", "{a", "*a", "&a", "!a", "%a", "@a", "`a", "|",
     ">", "'", '"', "it's", "a\nb", "\t", "\x00", "\x85", "\u2028", "\ufeff", "\U0001f600", "---", "...",
     "<<", "=", "1_000", "0b1", "é"],
)  # fmt: skip
def test_texts_that_look_like_something_else_stay_text(text: str) -> None:
    assert data(
        f"a: {templates.scalar(text)}\n{templates.scalar(text)}: b\nc: [{templates.scalar(text)}]\n"
    ) == {"a": text, text: "b", "c": [text]}  # fmt: skip


def test_read_text_refuses_what_is_no_file(tmp_path: Path) -> None:
    assert read_text(tmp_path / "none.yml") is None and read_text(tmp_path / "none" / "none.yml") is None
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(tmp_path)
    pipe = tmp_path / "pipe.yml"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(pipe)
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than"):
        read_text(large)
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"a: \xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 3"):
        read_text(binary)
    loop = tmp_path / "loop.yml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="is not a file"):
        read_text(loop)


# -- The cache of parsed files never changes what is read --------------------------------------------


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


def test_reading_writes_nothing_and_refreshing_twice_once(instance: Instance) -> None:
    assert origins(instance.load())["local"] == "file" and not instance.cache.exists()
    assert refresh_cache(instance.load(), instance.cache) is True
    inode = instance.cache.stat().st_ino
    assert refresh_cache(instance.load(), instance.cache) is False
    assert instance.cache.stat().st_ino == inode


def test_a_refreshed_cache_is_used_and_says_the_same(instance: Instance) -> None:
    instance.shared.write_text("degradation:\n  strategy: [{method: aat}]\n  cutoff: 2\n")
    before = instance.load()
    after = instance.refreshed()
    assert origins(after) == {"local": "cache", "shared": "cache", "defaults": "memory"}
    assert [layer.values for layer in after.layers] == [layer.values for layer in before.layers]
    assert after.warnings == before.warnings != ()


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
    assert origins(config)["local"] == "file" and origins(instance.refreshed())["local"] == "cache"


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


@pytest.mark.parametrize("damage", [
    b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"format": 1}', b'{"format": 1, "files": []}',
    b'{"format": 2, "files": {}}', b"[" * 100_000, b'{"format": 1, "files": {"x": 1}}'
])  # fmt: skip
def test_a_damaged_cache_is_as_good_as_none(instance: Instance, damage: bytes) -> None:
    instance.refreshed()
    instance.cache.write_bytes(damage)
    assert instance.load().get("general.editor") == "nano"
    assert origins(instance.refreshed())["local"] == "cache"


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


@pytest.mark.parametrize("entry", [
    {"values": []},
    {"values": {"nosuch": 1}},
    {"values": {"general": {"paging": "x"}}},
    {"values": {"general": "x"}},
    {"values": {"plugins": {"trusted": ["/"]}}},
    {"warnings": [1]},
    {"warnings": "x"},
    {"text": None},
])  # fmt: skip
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


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_cache_that_is_no_file_or_never_ends_is_as_good_as_none(instance: Instance, make: Any) -> None:
    instance.cache.parent.mkdir()
    make(instance.cache)
    assert instance.load().get("general.editor") == "nano"


def test_nobody_else_can_read_the_cache(instance: Instance) -> None:
    instance.refreshed()
    assert instance.cache.stat().st_mode & 0o777 == 0o600
