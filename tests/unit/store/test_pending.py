import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError, ProfileNotFound
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.store import Store, tree
from perun.store.files import Files
from perun.store.index import IndexEntry, parse, serialize
from shared import examples

MakeProfile = Callable[..., Profile]


def names(store: Store) -> list[str]:
    return [info.source for info in store.pending.list()]


def cache(store: Store) -> Path:
    return store.root / "jobs" / ".index"


def age(store: Store, seconds: int = 10) -> None:
    """Make the cache newer than all that was done so far, as it is a moment after a collection."""
    now = max(path.stat().st_ctime_ns for path in (store.root / "jobs").iterdir())
    os.utime(cache(store), ns=(now + seconds * 10**9,) * 2)


def forge(store: Store, **changed: str) -> None:
    """Change what the cache says, to see whether it is believed."""
    entries = parse(cache(store).read_bytes(), "cache").entries
    entries = [entry._replace(head=entry.head._replace(**changed)) for entry in entries]
    cache(store).write_bytes(serialize(entries))
    age(store)


def test_heads_of_many_are_cached_once(store: Store, make_profile: MakeProfile) -> None:
    with store.pending.changing(), store.pending.changing():
        paths = [store.pending.save(make_profile(), "one") for _ in range(3)]
        assert not cache(store).exists() and len(names(store)) == 3
        store.pending.remove(paths[:1])
        os.utime(paths[1], (1_700_000_000,) * 2)
    entries = parse(cache(store).read_bytes(), "cache").entries
    assert (entries[0].path, entries[0].time) == ("one(1).perf", 1_700_000_000)
    assert names(store) == [one.path for one in entries] == ["one(1).perf", "one(2).perf"]


def test_saved_profiles_are_listed_by_name(store: Store, make_profile: MakeProfile) -> None:
    second = store.pending.save(make_profile(origin="a" * 40, postprocessors=("normalizer",)), "b")
    first = store.pending.save(make_profile(cmd="ls", type_="memory", collector="memory"), "a.perf")
    assert first == store.root / "jobs" / "a.perf"
    infos = store.pending.list()
    assert [info.realpath for info in infos] == [str(first), str(second)]
    assert (infos[0].type, infos[0].cmd, infos[0].collector) == ("memory", "ls", "memory")
    assert (infos[1].args, infos[1].workload, infos[1].postprocessors) == ("-v", "input.txt", ("normalizer",))
    assert infos[1].time == int(second.stat().st_mtime)
    assert (infos[1].checksum, infos[1].is_registered) == ("", False)


def test_a_saved_profile_is_loaded_with_its_origin(store: Store, make_profile: MakeProfile) -> None:
    profile = make_profile(origin="a" * 40)
    path = store.pending.save(profile, "x")
    assert store.pending.load(path) == profile
    assert store.pending.load("x.perf")["origin"] == "a" * 40
    assert json.loads(path.read_bytes())["origin"] == "a" * 40
    with pytest.raises(ProfileNotFound, match=r"y\.perf"):
        store.pending.load("y.perf")


def test_a_taken_name_is_never_overwritten(store: Store, make_profile: MakeProfile) -> None:
    made = [store.pending.save(make_profile(float(number)), "x").name for number in range(4)]
    assert made == ["x.perf", "x(1).perf", "x(2).perf", "x(3).perf"]
    (store.root / "jobs" / "x(1).perf").unlink()
    assert store.pending.save(make_profile(), "x").name == "x(1).perf"
    assert sorted(os.listdir(store.root / "jobs")) == sorted([".index", *made])


def test_without_hard_links_names_are_still_not_shared(store: Store, make_profile, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert [store.pending.save(make_profile(), "x").name for _ in range(2)] == ["x.perf", "x(1).perf"]
    assert names(store) == ["x(1).perf", "x.perf"]


@pytest.mark.parametrize("name", ["", ".perf", "a/b", "../a", "a\0b", "a\ud800"])
def test_a_name_that_is_no_file_name_is_refused(store: Store, make_profile: MakeProfile, name: str) -> None:
    with pytest.raises(ProfileError):
        store.pending.save(make_profile(), name)
    assert os.listdir(store.root / "jobs") == []


def test_a_long_name_is_cut(store: Store, make_profile: MakeProfile) -> None:
    for _ in range(2):
        assert len(store.pending.save(make_profile(), "é" * 300).name.encode()) <= 255
    assert len(names(store)) == 2


def test_removed_profiles_are_gone(store: Store, make_profile: MakeProfile) -> None:
    paths = [store.pending.save(make_profile(), name) for name in "abc"]
    store.pending.remove([paths[0], "b.perf"])
    assert names(store) == ["c.perf"]
    assert [entry.path for entry in parse(cache(store).read_bytes(), "").entries] == ["c.perf"]


@pytest.mark.parametrize("other", ["missing.perf", "../local.yml", "../objects/x.perf", ".index"])
def test_only_pending_profiles_are_removed(store: Store, make_profile: MakeProfile, other: str) -> None:
    path = store.pending.save(make_profile(), "a")
    (store.root / "local.yml").write_text("x")
    (store.root / "objects" / "x.perf").write_text("x")
    with pytest.raises(ProfileNotFound):
        store.pending.remove([path, other])
    assert path.exists() and (store.root / "objects" / "x.perf").exists()


@pytest.mark.on_disk
def test_a_profile_taken_away_during_the_scan_is_neither_listed_nor_damaged(
    store: Store, make_profile: MakeProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = store.pending.save(make_profile(), "a")
    store.pending.save(make_profile(), "b")
    listing = tree.listing

    def then_taken_away(folder: Path, files: Files) -> list[str]:
        found = [*listing(folder, files)]
        gone.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(tree, "listing", then_taken_away)
    profiles, damaged = store.pending.scan()
    assert ([info.source for info in profiles], damaged) == (["b.perf"], [])


@pytest.mark.on_disk
def test_damaged_profiles_are_told_apart(store: Store, make_profile: MakeProfile) -> None:
    good = store.pending.save(make_profile(), "good")
    jobs = store.root / "jobs"
    (jobs / "cut.perf").write_bytes(good.read_bytes()[:50])
    (jobs / "empty.perf").write_bytes(b"")
    (jobs / "folder.perf").mkdir()
    (jobs / "loop.perf").symlink_to("loop.perf")
    (jobs / "dangling.perf").symlink_to("nowhere")
    (jobs / "notes.txt").write_text("not a profile")
    profiles, damaged = store.pending.scan()
    assert [info.source for info in profiles] == ["good.perf"]
    assert [problem.path.name for problem in damaged] == [
        "cut.perf", "empty.perf", "folder.perf", "loop.perf"
    ]  # fmt: skip
    assert all(str(problem.path) in problem.message for problem in damaged)
    store.pending.save(make_profile(), "another")
    assert names(store) == ["another.perf", "good.perf"]
    store.pending.remove(["cut.perf"])
    assert len(store.pending.scan().damaged) == 3


def test_the_cache_is_in_the_layout_of_an_index(store: Store, make_profile: MakeProfile) -> None:
    import hashlib

    path = store.pending.save(make_profile(postprocessors=("normalizer",)), "a")
    (entry,), certain = parse(cache(store).read_bytes(), "cache")
    checksum = hashlib.sha1(str(path).encode()).hexdigest()
    seconds = int(path.stat().st_mtime)
    assert certain
    assert entry == IndexEntry(
        seconds, checksum, "a.perf",
        ProfileHeader("time", "./app", "-v", "input.txt", "time", ("normalizer",))
    )  # fmt: skip


def test_a_valid_cache_spares_reading(store: Store, make_profile: MakeProfile) -> None:
    store.pending.save(make_profile(), "a")
    forge(store, cmd="from the cache")
    assert [info.cmd for info in store.pending.list()] == ["from the cache"]


@pytest.mark.on_disk
def test_the_cache_is_not_older_than_what_was_saved(store: Store, make_profile: MakeProfile) -> None:
    path = store.pending.save(make_profile(), "a")
    assert path.stat().st_ctime_ns <= cache(store).stat().st_mtime_ns


def test_a_profile_touched_with_or_after_the_cache_is_read_anew(store: Store, make_profile) -> None:
    path = store.pending.save(make_profile(), "a")
    forge(store, cmd="from the cache")
    changed = path.stat().st_ctime_ns
    os.utime(cache(store), ns=(changed, changed))
    assert [info.cmd for info in store.pending.list()] == ["./app"]


def test_a_profile_changed_within_the_same_second_is_noticed(store: Store, make_profile: MakeProfile) -> None:
    path = store.pending.save(make_profile(), "a")
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"./app", b"./new"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [info.cmd for info in store.pending.list()] == ["./new"]


@pytest.mark.on_disk
def test_a_profile_put_there_with_an_old_date_is_noticed(store: Store, make_profile: MakeProfile) -> None:
    path = store.pending.save(make_profile(), "a")
    status = path.stat()
    other = store.root / "other"
    other.write_bytes(path.read_bytes().replace(b"./app", b"./new"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, path)
    assert [info.cmd for info in store.pending.list()] == ["./new"]


def test_a_profile_with_another_date_is_read_anew(store: Store, make_profile: MakeProfile) -> None:
    path = store.pending.save(make_profile(), "a")
    forge(store, cmd="from the cache")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    age(store)
    (info,) = store.pending.list()
    assert (info.cmd, info.time) == ("./app", 1_600_000_000)
    assert store.pending.info(path).time == 1_600_000_000


@pytest.mark.parametrize(
    "content", [b"", b"pidx", b"pidx\2\0\0\0\0\0\0\0", b"pidx\7\0\0\0\0\0\0\0" + b"x" * 20]
)
def test_a_damaged_or_foreign_cache_is_no_trouble(store: Store, make_profile, content: bytes) -> None:
    store.pending.save(make_profile(), "a")
    cache(store).write_bytes(content)
    assert names(store) == ["a.perf"] and cache(store).read_bytes() == content
    store.pending.save(make_profile(), "b")
    assert [entry.path for entry in parse(cache(store).read_bytes(), "").entries] == ["a.perf", "b.perf"]


def test_a_cache_without_checksum_is_not_believed(store: Store, make_profile: MakeProfile) -> None:
    store.pending.save(make_profile(), "a")
    forge(store, cmd="from the cache")
    cache(store).write_bytes(cache(store).read_bytes()[:-20])
    age(store)
    assert [info.cmd for info in store.pending.list()] == ["./app"]


def test_reading_changes_nothing(store: Store, make_profile: MakeProfile, tree_of) -> None:
    store.pending.save(make_profile(), "a")
    (store.root / "jobs" / "bad.perf").write_bytes(b"x")
    cache(store).unlink()
    before = tree_of(store.root)
    store.pending.scan()
    assert tree_of(store.root) == before


@pytest.mark.on_disk
def test_odd_names_and_dates_are_listed_though_not_cached(store: Store, make_profile: MakeProfile) -> None:
    path = store.pending.save(make_profile(), "a")
    odd = os.fsencode(store.root / "jobs") + b"/\xff.perf"
    with open(odd, "wb") as file:
        file.write(path.read_bytes())
    os.utime(path, (-5, -5))
    store.pending.save(make_profile(), "b")
    assert names(store) == ["a.perf", "b.perf", os.fsdecode(b"\xff.perf")]
    assert store.pending.list()[0].time == -5


def test_without_jobs_there_is_nothing_pending(tmp_path: Path) -> None:
    assert Store(tmp_path / "nowhere").pending.list() == []


SAVER = """
import json, sys
from pathlib import Path
from perun.profile.format.json import loads
from perun.store import Store
store, data = Store(Path(sys.argv[1]), url=sys.argv[2]), Path(sys.argv[3]).read_bytes()
for _ in range(10):
    print(store.pending.save(loads(data, "seed"), "same").name)
"""


def test_processes_never_take_the_same_name(store: Store, make_profile, tmp_path: Path, spawn) -> None:
    seed = tmp_path / "seed"
    seed.write_bytes(store.pending.save(make_profile(), "seed").read_bytes())
    processes = [spawn(SAVER, store.root, store.url, seed) for _ in range(4)]
    made: list[str] = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        made += out.split()
    assert len(set(made)) == 40 and set(names(store)) == {"seed.perf", *made}


@pytest.mark.on_disk
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes_are_a_profile_or_damaged(store: Store, make_profile: MakeProfile, data) -> None:
    path = store.root / "jobs" / "a.perf"
    if not (store.root / "seed").exists():
        path.unlink(missing_ok=True)
        os.rename(store.pending.save(make_profile(), "a"), store.root / "seed")
    raw = bytearray((store.root / "seed").read_bytes())
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=3)
    ):
        raw[position] = value
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    profiles, damaged = store.pending.scan()
    assert len(profiles) + len(damaged) == 1
