import base64
import hashlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.store import Store, index
from perun.store.index import IndexEntry, complete, parse, resolve, serialize
from shared import examples

MakeProfile = Callable[..., Profile]


def make(
    time: int, checksum: str, path: str, type: str, cmd: str, args: str, workload: str, collector: str,
    postprocessors: tuple[str, ...] = (),
) -> IndexEntry:  # fmt: skip
    return IndexEntry(
        time, checksum, path, ProfileHeader(type, cmd, args, workload, collector, postprocessors)
    )


def changed(entry: IndexEntry, **fields: Any) -> IndexEntry:
    """The entry with other values of its head."""
    return entry._replace(head=entry.head._replace(**fields))


FIRST = make(
    1700000000, "0123456789" * 4, "a.perf", "time", "ls", "-l -a", "/tmp", "time",
    ("normalizer", "clusterizer")
)  # fmt: skip
SECOND = make(1700000001, "ab" * 20, "žluť.perf", "memory", "./app", "", "", "memory", ())


def string(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


def build(version: int, rows: list[tuple[IndexEntry, tuple[str, ...]]]) -> bytes:
    """An index as its description says, made independently of the code under test."""
    data = b"pidx" + struct.pack("<ii", version, len(rows))
    for entry, strings in rows:
        data += struct.pack("<I", entry.time) + bytes.fromhex(entry.checksum) + entry.path.encode() + b"\0"
        data += b"".join(map(string, strings))
    return data


def checked(data: bytes) -> bytes:
    return data + hashlib.sha1(data).digest()


def fields(entry: IndexEntry, *names: str) -> tuple[str, ...]:
    head = entry.head
    values = {**head._asdict(), "postprocessors": " ".join(head.postprocessors), "label": "my label"}
    return tuple(values[name] for name in names)


LAYOUT_21 = ("type", "cmd", "args", "workload", "collector", "postprocessors")
LAYOUT_2024 = ("type", "cmd", "workload", "collector", "postprocessors")
LAYOUT_28 = ("type", "cmd", "workload", "label", "collector", "postprocessors")


def layout(names: tuple[str, ...], *entries: IndexEntry) -> bytes:
    return build(2, [(entry, fields(entry, *names)) for entry in entries])


def header(type_: str, cmd: str, args: str, workload: str) -> ProfileHeader:
    return ProfileHeader(type_, cmd, args, workload, "time", ("normalizer",))


def missing(checksum: str) -> ProfileHeader:
    raise ProfileNotFound(checksum)


def test_it_is_written_in_the_layout_of_0_21_with_a_checksum() -> None:
    assert serialize([FIRST, SECOND]) == checked(layout(LAYOUT_21, FIRST, SECOND))


def test_entries_are_sorted_by_path_then_time() -> None:
    entries = [FIRST._replace(path=path, time=time) for path in ("a", "B", "é", "a b") for time in (30, 4)]
    assert [(entry.path, entry.time) for entry in parse(serialize(entries), "f").entries] == sorted(
        (entry.path, entry.time) for entry in entries
    )


@pytest.mark.parametrize("close", [bytes, checked])
def test_version_1_has_no_description(close: Callable[[bytes], bytes]) -> None:
    data = close(build(1, [(FIRST, ()), (SECOND, ())]))
    assert parse(data, "f").entries == [IndexEntry(*FIRST[:3]), IndexEntry(*SECOND[:3])]


def test_the_layout_of_0_21_without_checksum_is_read() -> None:
    entries, certain = parse(layout(LAYOUT_21, FIRST, SECOND), "f")
    assert not certain
    assert resolve(entries, lambda checksum: header("time", "ls", "-l -a", "/tmp")) == [FIRST, SECOND]
    assert resolve(entries, missing) == [FIRST, SECOND]


@pytest.mark.parametrize("close", [bytes, checked])
@pytest.mark.parametrize("collector", ["time", "a-plugin-of-mine"])
def test_the_layout_of_early_2024_is_read(close: Callable[[bytes], bytes], collector: str) -> None:
    entries = [changed(FIRST, collector=collector, args=""), changed(SECOND, collector=collector)]
    assert parse(close(layout(LAYOUT_2024, *entries)), "f") == (entries, True)


def test_the_layout_of_0_28_is_read() -> None:
    entries, certain = parse(layout(LAYOUT_28, FIRST), "f")
    assert not certain
    expected = [changed(FIRST, args="")]
    assert resolve(entries, lambda checksum: header("time", "ls", "", "/tmp")) == expected


def test_without_labels_the_layout_of_0_28_is_guessed() -> None:
    entry = make(1, "ab" * 20, "a.perf", "time", "ls", "/tmp", "", "time", ())
    entries, _ = parse(layout(LAYOUT_21, entry), "f")
    assert resolve(entries, missing) == [changed(entry, args="", workload="/tmp")]


def test_each_profile_resolves_its_own_entry() -> None:
    """0.28 added an entry to an index of 0.21."""
    heads = {"12" * 20: header("time", "ls", "-l", "old"), "34" * 20: header("time", "ls", "", "new")}
    old = changed(FIRST, args="-l", workload="old")._replace(checksum="12" * 20)
    new = changed(FIRST, args="new", workload="a label")._replace(checksum="34" * 20)
    assert resolve([old, new], heads.__getitem__) == [old, changed(new, args="", workload="new")]


@pytest.mark.parametrize("size", [0, 15, 16, 17, 36])
def test_a_last_string_as_long_as_a_checksum_is_no_checksum(size: int) -> None:
    entry = changed(FIRST, postprocessors=("p" * size,) if size else ())
    assert parse(layout(LAYOUT_21, entry), "f").entries == [entry]


def test_version_1_is_completed_from_the_profiles() -> None:
    bare = [IndexEntry(1, "ab" * 20, "a.perf"), IndexEntry(2, "cd" * 20, "b.perf")]

    def one(checksum: str) -> ProfileHeader:
        if checksum == "cd" * 20:
            raise DamagedStore("x")
        return header("memory", "ls", "-l", "w")

    assert complete(bare, one) == [
        make(1, "ab" * 20, "a.perf", "memory", "ls", "-l", "w", "time", ("normalizer",)),
        bare[1],
    ]


GOOD = layout(LAYOUT_21, FIRST, SECOND)


@pytest.mark.parametrize(("data", "message"), [
    (b"", "0 bytes"),
    (b"pidx", "4 bytes"),
    (b"qidx" + GOOD[4:], "begins with"),
    (b"pidx" + struct.pack("<ii", 0, 0), "version is 0"),
    (b"pidx" + struct.pack("<ii", 3, 0), "version is 3"),
    (b"pidx" + struct.pack("<ii", 2, -1), "-1 entries"),
    (b"pidx" + struct.pack("<ii", 2, 2**31 - 1), "2147483647 entries do not fit"),
    (b"pidx" + struct.pack("<ii", 2, 3) + GOOD[12:], "entry 3 of 3 is cut short"),
    (GOOD[:-1], "entry 2 of 2 is cut short"),
    (GOOD + b"x", "1 bytes follow"),
    (GOOD + b"x" * 20, "checksum"),
    (checked(GOOD)[:-1], "19 bytes follow"),
    (GOOD.replace(b"/tmp", b"\xff\xfe\xfd\xfc"), "entry 1 of 2 is not UTF-8"),
    (GOOD.replace(b"a.perf", b"\xff.perf"), "entry 1 of 2 is not UTF-8"),
    (b"pidx" + struct.pack("<ii", 1, 1) + b"\1" * 40, "entry 1 of 1 is cut short"),
    (GOOD[:12] + GOOD[12:].replace(struct.pack("<I", 4), struct.pack("<I", 2**32 - 1), 1), "entry 1 of 2"),
])  # fmt: skip
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(DamagedStore, match=f"the-file is not a valid index: .*{message}") as caught:
        parse(data, "the-file")
    assert caught.value.hint


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("added", [1, 3])
def test_entries_that_an_old_release_added_before_our_checksum(place: int, added: int, monkeypatch) -> None:
    """0.28 inserts into the file and leaves the checksum as it was."""
    ours = serialize([FIRST, SECOND])
    size = 12 + len(layout(LAYOUT_21, FIRST)) - 12
    bounds = [12, size, len(ours) - 20]
    new = layout(LAYOUT_28, *[FIRST._replace(path=f"new{number}") for number in range(added)])[12:]
    data = b"pidx" + struct.pack("<ii", 2, 2 + added)
    data += ours[12 : bounds[place]] + new + ours[bounds[place] :]
    entries, certain = parse(data, "f")
    assert not certain
    assert [entry.path for entry in entries if entry.path.startswith("new")] == [
        f"new{n}" for n in range(added)
    ]
    flipped = data.replace(b"/tmp", b"/tmq", 1) if place else data.replace(SECOND.path.encode(), b"zlut", 1)
    with pytest.raises(DamagedStore, match="checksum"):
        parse(flipped, "f")
    monkeypatch.setattr(index, "_MAX_HASHED", 0)  # only the first of the indexes that may be meant is tried
    if (place, added) != (0, 1):
        with pytest.raises(DamagedStore, match="checksum"):
            parse(data, "f")


def test_no_prefix_of_an_index_is_an_index() -> None:
    for data in (GOOD, build(1, [(FIRST, ()), (SECOND, ())]), layout(LAYOUT_2024, FIRST, SECOND)):
        for size in range(len(data)):
            with pytest.raises(DamagedStore):
                parse(data[:size], "f")


@settings(max_examples=examples(150))
@given(data=st.data())
def test_any_bytes_are_an_index_or_damaged(data: st.DataObject) -> None:
    base = data.draw(
        st.sampled_from(
            [
                GOOD,
                checked(GOOD),
                layout(LAYOUT_28, FIRST),
                layout(LAYOUT_2024, SECOND),
                build(1, [(FIRST, ())]),
                b"",
            ]
        )
    )
    raw = bytearray(base)
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=5)
    ):
        if position < len(raw):
            raw[position] = value
    raw = raw[: data.draw(st.integers(0, len(raw)))] + data.draw(st.binary(max_size=40))
    for content in (bytes(raw), b"pidx" + bytes(raw[4:]), data.draw(st.binary(max_size=100))):
        try:
            entries, _ = parse(content, "f")
        except DamagedStore as problem:
            assert problem.message.startswith("f ")
        else:
            assert all(len(entry.checksum) == 40 for entry in entries)


@settings(max_examples=examples(80))
@given(st.integers(0, len(checked(GOOD)) * 8 - 1))
def test_every_flipped_bit_of_our_own_index_is_noticed(bit: int) -> None:
    raw = bytearray(checked(GOOD))
    raw[bit // 8] ^= 1 << bit % 8
    if raw[4:8] == struct.pack("<I", 1):
        return
    with pytest.raises(DamagedStore):
        parse(bytes(raw), "f")


entries_strategy = st.builds(
    IndexEntry, time=st.integers(0, 2**32 - 1), checksum=st.binary(min_size=20, max_size=20).map(bytes.hex),
    path=st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1),
    head=st.builds(
        ProfileHeader, type=st.sampled_from(["time", "memory", "mixed", "x"]),
        cmd=st.text(st.characters(blacklist_categories=["Cs"])),
        args=st.text(st.characters(blacklist_categories=["Cs"])),
        workload=st.text(st.characters(blacklist_categories=["Cs"])),
        collector=st.sampled_from(["time", "trace", "mine"]),
        postprocessors=st.lists(st.sampled_from(["normalizer", "clusterizer"])).map(tuple)
    )
)  # fmt: skip


@given(st.lists(entries_strategy, max_size=5))
def test_round_trip(entries: list[IndexEntry]) -> None:
    expected = sorted(entries, key=lambda entry: entry.key)
    assert parse(serialize(entries), "f") == (expected, True)


@pytest.mark.parametrize("path", ["", "a\0b", "a\ud800"])
def test_a_path_that_no_file_has_is_refused(path: str) -> None:
    with pytest.raises(ProfileError):
        serialize([FIRST._replace(path=path)])


@pytest.mark.parametrize("seconds", [-1, 2**32])
def test_a_time_out_of_range_is_refused(seconds: int) -> None:
    with pytest.raises(ProfileError, match="out of range"):
        serialize([FIRST._replace(time=seconds)])


def test_add_reports_what_was_new(store: Store, minor: Callable[..., str]) -> None:
    name = minor()
    assert store.indexes.read(name) == []
    assert store.indexes.add(name, [SECOND, FIRST, FIRST]) == [SECOND, FIRST]
    later = FIRST._replace(time=FIRST.time + 1)
    assert store.indexes.add(name, [FIRST._replace(checksum="9" * 40), later]) == [later]
    assert store.indexes.read(name) == [FIRST, later, SECOND]


def test_adding_nothing_new_writes_nothing(store: Store, minor: Callable[..., str]) -> None:
    store.indexes.add(minor(), [FIRST])
    before = store.indexes.path(minor()).stat()
    assert store.indexes.add(minor(), [FIRST]) == []
    after = store.indexes.path(minor()).stat()  # it may have been read
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino, before.st_mtime_ns, before.st_ctime_ns
    )  # fmt: skip
    assert store.indexes.add(minor(1), []) == [] and not store.indexes.path(minor(1)).exists()


def test_remove_rewrites_the_index_and_leaves_the_object(store: Store, minor, make_profile) -> None:
    checksum = store.objects.put(make_profile())
    first = FIRST._replace(checksum=checksum)
    store.indexes.add(minor(), [first, SECOND])
    with pytest.raises(ProfileNotFound, match=r"other\.perf is not registered"):
        store.indexes.remove(minor(), [first, SECOND._replace(path="other.perf")])
    assert store.indexes.read(minor()) == [first, SECOND]
    store.indexes.remove(minor(), [first])
    assert store.indexes.read(minor()) == [SECOND]
    store.indexes.remove(minor(), [SECOND])
    assert store.indexes.read(minor()) == [] and checksum in store.objects


def test_old_indexes_are_completed_read_and_rewritten(store: Store, minor, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile(args="", workload="w", postprocessors=("normalizer",)))
    bare = IndexEntry(5, checksum, "x.perf")
    full = make(5, checksum, "x.perf", "time", "./app", "", "w", "time", ("normalizer",))
    for name, data in (
        (minor(1), build(1, [(bare, ())])),
        (minor(2), layout(LAYOUT_2024, full)),
        (minor(3), layout(LAYOUT_28, full)),
        (minor(4), layout(LAYOUT_21, full)),
    ):
        path = store.indexes.path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        assert store.indexes.read(name) == [full] and path.read_bytes() == data
        store.indexes.add(name, [SECOND])
        assert parse(path.read_bytes(), "f") == ([full, SECOND], True)


def test_a_damaged_index_is_left_alone(store: Store, minor: Callable[..., str]) -> None:
    path = store.indexes.path(minor())
    path.parent.mkdir()
    path.write_bytes(GOOD[:-5])
    for action in (store.indexes.add, store.indexes.remove):
        with pytest.raises(DamagedStore, match=str(path)):
            action(minor(), [FIRST])
    assert path.read_bytes() == GOOD[:-5]


def test_minor_versions_of_sha_256_repositories(store: Store, minor: Callable[..., str]) -> None:
    long = hashlib.sha256(b"x").hexdigest()
    store.indexes.add(long, [FIRST])
    store.indexes.add(minor(), [FIRST])
    assert store.indexes.read(long) == [FIRST] and list(store.indexes.minors()) == sorted([long, minor()])


def test_only_indexes_are_minor_versions(store: Store, minor, make_profile: MakeProfile) -> None:
    store.objects.put(make_profile())
    odd = store.root / "objects" / "TO"
    odd.mkdir()
    (odd / "AD.changes").write_text("")
    (odd / "AD").write_bytes(b"pidx")
    store.indexes.add(minor(), [FIRST])
    assert list(store.indexes.minors()) == [minor()]


@pytest.mark.parametrize("name", ["TOAD", "", "../../etc/passwd", "a" * 39, "a" * 41, "A" * 40, "a" * 63])
def test_a_name_that_is_no_minor_version_leads_nowhere(store: Store, name: str) -> None:
    with pytest.raises(ProfileNotFound, match="not the full name"):
        store.indexes.read(name)
    with pytest.raises(ProfileNotFound, match="not the full name"):
        store.indexes.add(name, [FIRST])


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_reading_changes_nothing(store: Store, minor: Callable[..., str], tree_of, data: bytes) -> None:
    path = store.indexes.path(minor())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"pidx\2\0\0\0" + data)
    before = tree_of(store.root)
    try:
        store.indexes.read(minor())
    except DamagedStore as problem:
        assert str(path) in problem.message
    assert tree_of(store.root) == before


# Written by the released 0.28.3: an index of `collect` and `add`, the second profile with a label ...
RELEASED = base64.b64decode(
    "cGlkeAIAAAACAAAAJl8Ba2KBCkrJCZvNmlCGBUudXEQYG4endGltZS1bbHNdLVt0bXBdLTIwMjYtMTEtMjEtMDktMDYtNDUu"
    "cGVyZgAEAAAAdGltZQIAAABscwQAAAAvdG1wAAAAAAQAAAB0aW1lAAAAAOBgAWttfVyuBtwN1J0r/6pC9rdrgICDhXRpbWUt"
    "W3NsZWVwXS1bMC4xXS0yMDI2LTExLTIxLTA5LTE0LTA3LnBlcmYABAAAAHRpbWUFAAAAc2xlZXADAAAAMC4xCAAAAG15IGxh"
    "YmVsBAAAAHRpbWUAAAAA"
)
# ... and an index of ours, of two profiles, to which it added one.
ADDED_TO_OURS = base64.b64decode(
    "cGlkeAIAAAADAAAAAPFTZZHJnqQ5E+SRYnenrtafjdINoTr1b3Vycy1beF0ucGVyZgAEAAAAdGltZQUAAAAuL25ldwIAAAAt"
    "eAMAAABhIGIEAAAAdGltZQAAAAB1ZwFr7lKH83F7d4j8LYQUYaQYZ3emJe1vdXJzLXBlbmRpbmcucGVyZgAEAAAAdGltZQUA"
    "AAAuL25ldwMAAABhIGIAAAAABAAAAHRpbWUAAAAAeWEBawMXrQLm1x+Dgz0YnxZiAtWCPCxRdGltZS1bdy5zaF0tW2FfYl0t"
    "MjAyNi0xMS0yMS0wOS0xNi0zOS5wZXJmAAQAAAB0aW1lBgAAAC4vdy5zaAAAAAADAAAAYSBiBAAAAHRpbWUAAAAA6DjsEIMw"
    "t+mXoqsw5PPXp+3vPb4="
)


def test_an_index_of_the_released_0_28_is_read() -> None:
    entries, certain = parse(RELEASED, "f")
    assert not certain
    heads = {
        "62810a4ac9099bcd9a5086054b9d5c44181b87a7": header("time", "ls", "", "/tmp"),
        "6d7d5cae06dc0dd49d2bffaa42f6b76b80808385": header("time", "sleep", "", "0.1"),
    }
    assert resolve(entries, heads.__getitem__) == [
        make(
            1795252006, min(heads), "time-[ls]-[tmp]-2026-11-21-09-06-45.perf", "time", "ls", "", "/tmp",
            "time"
        ),
        make(
            1795252448, max(heads), "time-[sleep]-[0.1]-2026-11-21-09-14-07.perf", "time", "sleep", "", "0.1",
            "time"
        ),
    ]  # fmt: skip


def test_an_index_that_the_released_0_28_added_to_is_read() -> None:
    entries, certain = parse(ADDED_TO_OURS, "f")
    assert not certain
    ours = header("time", "./new", "-x", "a b")
    heads = {entry.checksum: ours for entry in entries if entry.head.cmd == "./new"}
    heads["0317ad02e6d71f83833d189f166202d5823c2c51"] = header("time", "./w.sh", "", "a b")
    resolved = resolve(entries, heads.__getitem__)
    assert [(entry.path, entry.head.args, entry.head.workload) for entry in resolved] == [
        ("ours-[x].perf", "-x", "a b"),
        ("ours-pending.perf", "-x", "a b"),
        ("time-[w.sh]-[a_b]-2026-11-21-09-16-39.perf", "", "a b"),
    ]


@pytest.mark.parametrize("older", [0, 1])
def test_an_entry_that_an_old_release_added_behind_our_checksum(older: int) -> None:
    """Its name is the last one, so 0.28 writes it at the end of the file; `older` ones it has inserted."""
    ours = serialize([FIRST, SECOND])
    inserted = layout(LAYOUT_28, *[FIRST._replace(path="A")] * older)[12:]
    last = layout(LAYOUT_28, FIRST._replace(path="ž"))[12:]
    entries = ours[12:-20] if not older else inserted + ours[12:-20]
    data = b"pidx" + struct.pack("<ii", 2, 3 + older) + entries + ours[-20:] + last
    found, certain = parse(data, "f")
    assert not certain
    assert [entry.path for entry in found] == ["A"] * older + [FIRST.path, SECOND.path, "ž"]
    assert found[older : older + 2] == [FIRST, SECOND]
    with pytest.raises(DamagedStore):
        parse(data.replace(b"/tmp", b"/tmq", 1) if not older else data.replace(b"./app", b"./apq"), "f")


@pytest.mark.on_disk
def test_a_file_in_the_place_of_a_folder_is_named(store: Store, minor: Callable[..., str]) -> None:
    place = store.indexes.path(minor()).parent
    place.write_bytes(b"")
    with pytest.raises(DamagedStore, match=f"{place}.* cannot be read: Not a directory"):
        store.indexes.read(minor())
