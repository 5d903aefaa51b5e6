import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.changes import ChangeRecord
from perun.store.fsck import FsckFinding
from perun.store.pending import link, unlink

MakeProfile = Callable[..., Profile]
Minor = Callable[..., str]


@pytest.fixture
def full(store: Store, minor: Minor, make_profile: MakeProfile) -> Store:
    """A store with something of everything."""
    link(store, minor(), [(make_profile(float(number)), f"{number}.perf", number) for number in range(3)])
    info = DegradationInfo(PerformanceChange.Degradation, "f", "1", "2")
    store.changes.merge(minor(), [ChangeRecord(info, "0" * 40, "ls")])
    store.pending.save(make_profile(), "waiting")
    store.stats.add(minor(), "2024-01-01 00:00:00", "calls", {"a": {"b": 1}})
    store.temp.write("a/b", "x", protect=True, compress=True)
    return store


def only(store: Store) -> FsckFinding:
    (finding,) = store.fsck()
    return finding


def test_a_good_store_has_no_findings(full: Store, tree_of: Callable[[Path], dict[str, bytes]]) -> None:
    before = tree_of(full.root)
    steps: list[tuple[int, int]] = []
    assert list(full.fsck(lambda done, total: steps.append((done, total)))) == []
    assert tree_of(full.root) == before
    assert steps[-1][0] == steps[-1][1] == len(steps) - 1


def test_an_empty_folder_is_a_good_store(tmp_path: Path) -> None:
    assert list(Store(tmp_path).fsck()) == []


@pytest.mark.on_disk
def test_every_damaged_file_is_found(full: Store) -> None:
    for path in sorted(full.root.rglob("*")):
        beside = path.parent.name in ("jobs", "sums", "cache") or path.name == ".lock"
        if path.is_file() and not beside:
            content = path.read_bytes()
            path.write_bytes(content[:-4] + b"\xff")
            findings = [finding for finding in full.fsck() if finding.severity == "error"]
            assert findings, path
            assert any(str(path) in finding.message for finding in findings), path
            path.write_bytes(content)
    assert list(full.fsck()) == []


def test_damaged_pending_profiles_are_found_and_a_damaged_cache_is_none(full: Store) -> None:
    (full.root / "jobs" / ".index").write_bytes(b"x")
    assert only(full)[:2] == ("info", full.root / "jobs" / ".index")
    full.pending.refresh()
    path = full.root / "jobs" / "waiting.perf"
    path.write_bytes(path.read_bytes()[:100])
    assert only(full)[:2] == ("error", path)


def test_a_missing_object_is_found(full: Store, minor: Minor) -> None:
    entry = full.indexes.read(minor())[1]
    full.objects.delete(entry.checksum)
    finding = only(full)
    assert finding[:2] == ("error", full.indexes.path(minor()))
    assert entry.checksum in finding.message and "1.perf" in finding.message


def test_objects_without_index_are_counted(full: Store, minor: Minor) -> None:
    unlink(full, minor(), full.indexes.read(minor())[:2])
    finding = only(full)
    assert (finding.severity, finding.message) == ("info", "no index names 2 of 3 objects")


@pytest.mark.on_disk
def test_what_is_odd_but_harmless_is_mentioned(full: Store) -> None:
    odd = full.root / "objects" / "TO"
    odd.mkdir()
    (odd / "AD.changes").write_bytes(b"")
    (full.root / "objects" / "ab").mkdir(exist_ok=True)
    (full.root / "objects" / "ab" / "README").write_bytes(b"")
    (full.root / "objects" / "ab" / ".tmp-12-34").write_bytes(b"half")
    (full.root / "jobs" / ".tmp-12-34").write_bytes(b"half")
    findings = list(full.fsck())
    assert {finding.severity for finding in findings} == {"info"}
    assert sorted(str(finding.path.relative_to(full.root)) for finding in findings) == [
        "jobs/.tmp-12-34", "objects/TO", "objects/ab/.tmp-12-34", "objects/ab/README"
    ]  # fmt: skip


def test_disagreements_are_warnings(full: Store, minor: Minor) -> None:
    from perun.store.index import serialize

    first, *rest = full.indexes.read(minor())
    other = first._replace(head=first.head._replace(type="memory"), path="a/b.perf")
    wrong = [other, rest[0], rest[0], *rest[1:]]
    full.indexes.path(minor()).write_bytes(serialize(wrong))
    full.stats.path(minor(), "calls").unlink()
    full.stats.folder(minor()).rmdir()
    (full.root / "tmp" / "a" / "b").unlink()
    findings = list(full.fsck())
    assert {finding.severity for finding in findings} == {"warning"}
    text = "\n".join(finding.message for finding in findings)
    for part in (
        "is of type time, not memory",
        "registered twice",
        "not the plain name",
        "stats sync",
        "temp sync",
    ):
        assert part in text


def test_an_unknown_type_is_a_warning(full: Store, minor: Minor, make_profile: MakeProfile) -> None:
    link(full, minor(), [(make_profile(type_="energy"), "e.perf", 1)])
    assert only(full).severity == "warning"


def test_an_object_that_holds_no_profile_is_found(full: Store) -> None:
    checksum = full.objects.put_body("time", b"{}")
    assert [finding.severity for finding in full.fsck()] == ["error", "info"]
    path = full.root / "objects" / checksum[:2] / checksum[2:]
    assert zlib.decompress(path.read_bytes()) == b"profile time 2\0{}"
