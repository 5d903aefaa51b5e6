from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from perun.core.errors import DamagedStore, ProfileNotFound, UsageError
from perun.store import Store
from perun.store.temp import TempFile


def stored_index(store: Store) -> object:
    return json.loads(zlib.decompress((store.root / "tmp" / ".index").read_bytes()))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("protect", [False, True])
def test_content_comes_back(store: Store, compress: bool, protect: bool) -> None:
    temp = store.temp
    temp.write("a/text", "žluť", compress=compress, protect=protect)
    temp.write("a/bytes", b"\xff\0", compress=compress, protect=protect)
    path = temp.write("a/b/json", {"x": [1, None]}, json_=True, compress=compress, protect=protect)
    assert temp.read("a/text") == "žluť"
    assert temp.read(store.root / "tmp" / "a" / "bytes") == b"\xff\0"
    assert temp.read(path) == {"x": [1, None]}
    assert [file.path for file in temp.files()] == ["a/b/json", "a/bytes", "a/text"]
    assert [file.path for file in temp.files("a/b")] == ["a/b/json"]
    assert temp.files("a/text")[0].protected is protect


def test_the_index_holds_only_files_with_a_flag(store: Store) -> None:
    store.temp.write("plain", "x")
    assert stored_index(store) == {}
    assert store.temp.files() == [TempFile("plain", 1, json=False, protected=False, compressed=False)]
    path = store.temp.write("flagged", {}, json_=True)
    assert stored_index(store) == {str(path): {"json": True, "protected": False, "compressed": False}}
    store.temp.write("flagged", "x")
    assert stored_index(store) == {}
    assert store.temp.read("flagged") == "x"


def test_protected_files_stay_unless_forced(store: Store) -> None:
    temp = store.temp
    temp.write("d/a", "x", protect=True)
    temp.write("d/e/b", "x", compress=True)
    assert temp.delete("d") == ["d/a"]
    assert [file.path for file in temp.files()] == ["d/a"]
    assert temp.delete("d/a") == ["d/a"]
    assert temp.delete("d", force=True) == []
    assert [path.name for path in (store.root / "tmp").iterdir()] == [".index"]
    assert stored_index(store) == {}
    with pytest.raises(ProfileNotFound):
        temp.delete("d")
    with pytest.raises(ProfileNotFound):
        temp.read("d/a")


def test_all_can_be_deleted(store: Store) -> None:
    store.temp.write("a", "x")
    store.temp.write("b/c", "x")
    assert store.temp.delete("") == []
    assert store.temp.files() == []
    assert (store.root / "tmp").is_dir()


def test_sync_forgets_what_is_gone(store: Store) -> None:
    store.temp.write("a", "x", protect=True).unlink()
    store.temp.write("b", "x", protect=True)
    assert store.temp.stale() == ["a"]
    store.temp.sync()
    assert store.temp.stale() == []
    assert [file.path for file in store.temp.files()] == ["b"]


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", ".index", "", "link/x"])
def test_paths_stay_inside(store: Store, tmp_path: Path, path: str) -> None:
    (store.root / "tmp" / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError):
        store.temp.write(path, "x")
    with pytest.raises(UsageError):
        store.temp.read(path)


def test_a_moved_repository_keeps_its_flags(store: Store, tmp_path: Path) -> None:
    store.temp.write("a", "x", protect=True)
    moved = Store(store.root.rename(tmp_path / "elsewhere"))
    assert moved.temp.files()[0].protected


def test_damage_is_named(store: Store) -> None:
    path = store.temp.write("a", {"x": 1}, json_=True, compress=True)
    for content in (b"x", zlib.compress(b"{"), path.read_bytes()[:-3]):
        path.write_bytes(content)
        with pytest.raises(DamagedStore, match=str(path)):
            store.temp.read("a")
    index = store.root / "tmp" / ".index"
    for content in (b"x", zlib.compress(b"[]"), zlib.compress(b'{"a": 1}')):
        index.write_bytes(content)
        with pytest.raises(DamagedStore, match=str(index)):
            store.temp.files()
