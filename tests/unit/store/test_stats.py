import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.core.errors import DamagedStore, ProfileNotFound, UsageError
from perun.store import Store
from perun.store.temp import TempFile

Minor = Callable[..., str]


def test_values_are_merged_by_id(store: Store, minor: Minor) -> None:
    path = store.stats.add(minor(), "2024-01-02 00:00:00", "calls", {"a": {"x": 1}, "b": {"x": 2}})
    store.stats.add(minor(), "2024-01-02 00:00:00", "calls", {"b": {"y": 3}})
    assert store.stats.get(minor(), "calls") == {"a": {"x": 1}, "b": {"y": 3}}
    assert path == store.root / "stats" / minor()[:2] / minor()[2:] / "calls"
    assert json.loads(zlib.decompress(path.read_bytes())) == {"a": {"x": 1}, "b": {"y": 3}}


def test_the_index_lists_versions_newest_first(store: Store, minor: Minor) -> None:
    for number, date in ((1, "2024-01-02 00:00:00"), (2, "2025-01-02 00:00:00"), (3, "2023-01-02 00:00:00")):
        store.stats.add(minor(number), date, "calls", {})
    assert [version for version, _ in store.stats.versions()] == [minor(2), minor(1), minor(3)]
    stored = json.loads(zlib.decompress((store.root / "stats" / ".index").read_bytes()))
    assert stored[0] == [minor(2), "2025-01-02 00:00:00"]


@pytest.mark.on_disk
def test_deleting(store: Store, minor: Minor) -> None:
    for name in ("a", "b"):
        store.stats.add(minor(), "2024", name, {})
    assert store.stats.names(minor()) == ["a", "b"]
    store.stats.delete(minor(), "a")
    assert store.stats.names(minor()) == ["b"]
    store.stats.delete(minor(), "b", keep_folder=True)
    assert store.stats.folder(minor()).is_dir()
    assert store.stats.versions() == [(minor(), "2024")]
    store.stats.delete_minor(minor())
    assert store.stats.versions() == []
    assert [path.name for path in (store.root / "stats").iterdir()] == [".index"]
    with pytest.raises(ProfileNotFound):
        store.stats.delete(minor(), "a")
    with pytest.raises(ProfileNotFound):
        store.stats.delete_minor(minor())
    with pytest.raises(ProfileNotFound, match="no statistics a"):
        store.stats.get(minor(), "a")


def test_sync_makes_the_index_anew(store: Store, minor: Minor) -> None:
    store.stats.add(minor(1), "2024", "a", {})
    store.stats.add(minor(2), "2025", "a", {})
    (store.root / "stats" / ".index").write_bytes(b"damaged")
    with pytest.raises(DamagedStore):
        store.stats.versions()
    store.stats.sync({minor(2): "2025"}.get)
    assert store.stats.versions() == [(minor(2), "2025"), (minor(1), "")]
    store.stats.add(minor(1), "2024", "a", {})
    store.stats.sync({minor(2): "2026"}.get)
    assert store.stats.versions() == [(minor(2), "2026"), (minor(1), "2024")]
    assert sorted(store.stats.found()) == sorted([minor(1), minor(2)])


@pytest.mark.parametrize("name", ["", "..", ".index", "a/b", "../../x", "a\0"])
def test_names_lead_nowhere_else(store: Store, minor: Minor, name: str) -> None:
    with pytest.raises(UsageError):
        store.stats.add(minor(), "2024", name, {})
    with pytest.raises(UsageError):
        store.stats.get(minor(), name)


@pytest.mark.parametrize("content", [
    b"",
    b"x",
    zlib.compress(b"[]"),
    zlib.compress(b"{"),
    zlib.compress(b"{}")[:-1],
    zlib.compress(b"[" * 99999),
])  # fmt: skip
def test_damage_is_named(store: Store, minor: Minor, content: bytes) -> None:
    path = store.stats.add(minor(), "2024", "a", {})
    path.write_bytes(content)
    with pytest.raises(DamagedStore, match=str(path)):
        store.stats.get(minor(), "a")


@pytest.mark.parametrize("value", [{}, [1], [["a"]], [["a", 1]], "x"])
def test_a_damaged_index_is_named(store: Store, value: object) -> None:
    (store.root / "stats" / ".index").write_bytes(zlib.compress(json.dumps(value).encode()))
    if value == {}:
        with pytest.raises(DamagedStore, match="list"):
            store.stats.versions()
    else:
        with pytest.raises(DamagedStore, match=r"\.index"):
            store.stats.versions()


@pytest.mark.on_disk
def test_cleaning_removes_what_is_no_statistics_and_nothing_else(store, minor: Minor, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        store.stats.add(minor(number), "2024", "calls", {"a": {"x": number}})
    root = store.root / "stats"
    kept = [store.stats.folder(minor(1)) / "calls", root / ".index"]
    unknown = store.stats.folder(minor(2))
    damaged = store.stats.folder(minor(3)) / "calls"
    damaged.write_bytes(b"not compressed")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("x")
    (root / "link").symlink_to(outside)
    (root / "notes.txt").write_text("x")
    (root / "folder" / "deep").mkdir(parents=True)
    (root / "folder" / "deep" / "file").write_text("x")
    empty = root / "ee" / ("0" * 38)
    empty.mkdir(parents=True)
    dates = {minor(1): "2024", minor(3): "2025", "ee" + "0" * 38: "2026"}

    assert store.stats.clean(dates.get, keep_foreign=True, keep_empty=True) == []
    assert empty.is_dir() and unknown.is_dir() and damaged.is_file()

    removed = store.stats.clean(dates.get, keep_empty=True, keep_unknown=False)
    assert set(removed) == {unknown, damaged, root / "link", root / "notes.txt", root / "folder"}
    assert empty.is_dir()
    removed = store.stats.clean(dates.get)
    assert {empty, damaged.parent} <= set(removed)
    assert sorted(path for path in root.rglob("*") if path.is_file()) == sorted(kept)
    assert store.stats.versions() == [(minor(1), "2024")]
    assert (outside / "mine").read_text() == "x"  # links are not followed
    assert store.stats.clean(dates.get) == []


# -- temp --------------------------------------------------------------------------------------------


def stored_index(store: Store) -> object:
    return json.loads(zlib.decompress((store.root / "tmp" / ".index").read_bytes()))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("protect", [False, True])
def test_content_comes_back(store: Store, compress: bool, protect: bool) -> None:
    temp = store.temp
    temp.write("a/text", "žluť", compress=compress, protect=protect)
    temp.write("a/bytes", b"\xff\0", compress=compress, protect=protect)
    path = temp.write("a/b/json", {"x": [1, None]}, json_=True, compress=compress, protect=protect)
    assert temp.read("a/text") == "žluť" and temp.read(store.root / "tmp" / "a" / "bytes") == b"\xff\0"
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
    assert stored_index(store) == {} and store.temp.read("flagged") == "x"


def test_protected_files_stay_unless_forced(store: Store) -> None:
    temp = store.temp
    temp.write("d/a", "x", protect=True)
    temp.write("d/e/b", "x", compress=True)
    assert temp.delete("d") == ["d/a"]
    assert [file.path for file in temp.files()] == ["d/a"]
    assert temp.delete("d/a") == ["d/a"] and temp.delete("d", force=True) == []
    assert [path.name for path in (store.root / "tmp").iterdir()] == [".index"]
    assert stored_index(store) == {}
    with pytest.raises(ProfileNotFound):
        temp.delete("d")
    with pytest.raises(ProfileNotFound):
        temp.read("d/a")


def test_all_can_be_deleted(store: Store) -> None:
    store.temp.write("a", "x")
    store.temp.write("b/c", "x")
    assert store.temp.delete("") == [] and store.temp.files() == [] and (store.root / "tmp").is_dir()


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
    assert Store(store.root.rename(tmp_path / "elsewhere")).temp.files()[0].protected


def test_damage_of_temporary_files_is_named(store: Store) -> None:
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
