import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.objects import FileObjects, ObjectFile, encode
from perun.store.unpacking import decode
from shared import examples

MakeProfile = Callable[..., Profile]

BODY = b'{"header":{"type":"time","cmd":"ls","args":"","workload":"","units":{"time":"s"}},"resources":{}}'


def named(content: bytes) -> tuple[bytes, str]:
    return zlib.compress(content), hashlib.sha1(content).hexdigest()


def test_an_object_is_header_and_body_named_by_their_sha1(store: Store, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile(origin="a" * 40))
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    content = zlib.decompress(path.read_bytes())
    header, _, body = content.partition(b"\0")
    assert header == b"profile time %d" % len(body)
    assert hashlib.sha1(content).hexdigest() == checksum and b"origin" not in body
    assert b"\n" not in body and body.isascii()


def test_a_stored_profile_comes_back(store: Store, make_profile: MakeProfile) -> None:
    profile = make_profile(3.5, cmd="ž", postprocessors=("normalizer", "clusterizer"))
    checksum = store.objects.put(profile)
    assert checksum in store.objects
    assert dict(store.objects.get(checksum)) == dict(profile)
    assert store.objects.head(checksum).postprocessors == ("normalizer", "clusterizer")
    assert store.objects.put(profile) == checksum and list(store.objects.ids()) == [checksum]


def test_an_existing_object_is_not_rewritten(store: Store, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile())
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    before = path.stat()
    store.objects.put(make_profile())
    after = path.stat()
    assert after.st_ino == before.st_ino
    # It may have been read in between: when it was is not compared.
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)


@pytest.mark.parametrize("place", [-1, -40])
def test_a_damaged_object_is_written_anew(store: Store, make_profile: MakeProfile, place: int) -> None:
    """The file that the profile comes from is deleted afterwards, so this may be the last whole copy."""
    checksum = store.objects.put(make_profile())
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[place] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamagedStore):
        store.objects.verify(checksum)
    assert store.objects.put(make_profile()) == checksum and path.read_bytes() == whole
    assert store.objects.get(checksum) == make_profile()


def test_put_many_keeps_the_order(store: Store, make_profile: MakeProfile) -> None:
    profiles = [make_profile(float(number)) for number in range(30)]
    checksums = store.objects.put_many(iter(profiles))
    assert [store.objects.get(checksum) for checksum in checksums] == profiles
    assert store.objects.put_many([]) == []


def test_deleted_objects_are_gone(store: Store, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile())
    store.objects.delete(checksum)
    assert checksum not in store.objects
    for action in (store.objects.delete, store.objects.get, store.objects.head):
        with pytest.raises(ProfileNotFound, match=checksum):
            action(checksum)


@pytest.mark.parametrize(
    "name", ["", "..", "../" * 13 + "x", "A" * 40, "a" * 39, "a" * 64, "a" * 40 + "\n", "/" * 40]
)
def test_a_name_that_is_no_checksum_leads_nowhere(store: Store, name: str) -> None:
    assert name not in store.objects
    for action in (store.objects.get_body, store.objects.delete):
        with pytest.raises(ProfileNotFound, match="not the checksum"):
            action(name)


def test_indexes_and_other_files_are_no_objects(store: Store, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile())
    folder = store.root / "objects" / "ab"
    folder.mkdir()
    (folder / ("c" * 38)).write_bytes(b"pidx\2\0\0\0\0\0\0\0")
    (folder / ("c" * 38 + ".changes")).write_bytes(b"")
    (folder / ".tmp-1-2").write_bytes(b"")
    other = store.root / "objects" / "HE"
    other.mkdir()
    (other / "AD.changes").write_bytes(b"")
    assert list(store.objects.ids()) == [checksum]


def test_no_store_means_no_objects(tmp_path: Path) -> None:
    assert list(FileObjects(tmp_path / "nowhere").ids()) == []


def test_a_type_that_would_break_the_header_is_refused(store: Store) -> None:
    with pytest.raises(ProfileError, match=r"header\.type"):
        store.objects.put_body("time 3", BODY)
    assert list((store.root / "objects").iterdir()) == []


@pytest.mark.parametrize(("content", "message"), [
    (b"", "does not begin"),
    (b"profile time 2", "does not begin"),
    (b"profile  2\0{}", "does not begin"),
    (b"profile time 02\0{}", "does not begin"),
    (b"profile time -2\0{}", "does not begin"),
    (b"profile time +2\0{}", "does not begin"),
    (b"profile time two\0{}", "does not begin"),
    (b"profile time  2\0{}", "does not begin"),
    (b"profile ti/me 2\0{}", "does not begin"),
    (b"Profile time 2\0{}", "does not begin"),
    (b"profile time 2 \0{}", "does not begin"),
    (b"profile time " + b"9" * 400 + b"\0{}", "does not begin"),
    (b"profile time 3\0{}", "has 2 characters, but its header says 3"),
    (b"profile time 1\0{ }", "has 3 characters, but its header says 1"),
    (b"profile time 1\0" + b"x" * 9, "longer"),
    (b"profile time 0\0{}", "longer"),
    (b"profile time 3\0{\xff}", "UTF-8"),
    (b"profile time 99999999999\0{}", "more than the limit"),
])  # fmt: skip
def test_a_wrong_header_or_length_is_named(content: bytes, message: str) -> None:
    data, checksum = named(content)
    with pytest.raises(DamagedStore, match=f"the-file.*{message}"):
        decode(data, checksum, "the-file")


def test_length_counts_characters_and_any_type_is_read() -> None:
    body = '{"č": 1}'.encode()
    assert encode("time", body)[1].startswith(b"profile time 8\0")
    data, checksum = named(b"profile time 8\0" + body)
    assert decode(data, checksum, "f") == ("time", body)
    data, checksum = named(b"profile time 9\0" + body)
    with pytest.raises(DamagedStore):
        decode(data, checksum, "f")
    data, checksum = named(b"profile energy-v2.1_x 2\0{}")
    assert decode(data, checksum, "f") == ("energy-v2.1_x", b"{}")


def test_what_surrounds_the_compressed_data_counts() -> None:
    checksum, content = encode("time", BODY)
    data = zlib.compress(content)
    with pytest.raises(DamagedStore, match="followed by 3 bytes"):
        decode(data + b"abc", checksum, "f")
    with pytest.raises(DamagedStore, match="does not match its name"):
        decode(data, "0" * 40, "f")
    with pytest.raises(DamagedStore, match="zlib"):
        decode(content, checksum, "f")
    for size in range(len(data)):
        with pytest.raises(DamagedStore):
            decode(data[:size], checksum, "f")


def test_a_bomb_is_not_unpacked(store: Store) -> None:
    size = 1 << 23
    header = b"profile time %d\0" % size
    packer = zlib.compressobj(9)
    piece = b" " * (1 << 20)
    data = (
        packer.compress(header) + b"".join(packer.compress(piece) for _ in range(size >> 20)) + packer.flush()
    )
    with pytest.raises(DamagedStore, match=r"^f holds 8388608 characters, more than the limit [^']*$"):
        decode(data, "0" * 40, "f", limit=1 << 20)
    lying = zlib.compress(b"profile time 10\0" + piece * 8)
    with pytest.raises(DamagedStore, match="longer than the 10 characters"):
        decode(lying, "0" * 40, "f")


@pytest.mark.parametrize("letter", ["a", "\U0001f600"])
def test_the_room_of_an_object_is_what_its_header_allows(letter: str) -> None:
    """A character has at most four bytes: exactly as many are unpacked as an honest header can mean."""
    body = (letter * 300).encode()
    content = b"profile time 300\0" + body
    checksum = hashlib.sha1(content).hexdigest()
    assert decode(zlib.compress(content), checksum, "f", limit=len(body)) == ("time", body)
    with pytest.raises(DamagedStore, match=r"longer than|more than the limit"):
        decode(zlib.compress(content), checksum, "f", limit=len(body) - 1)
    with pytest.raises(DamagedStore, match="longer than the 300 characters"):
        decode(zlib.compress(b"profile time 300\0" + b"a" * 1201), "0" * 40, "f")
    with pytest.raises(DamagedStore, match="has 1200 characters, but its header says 300"):
        decode(zlib.compress(b"profile time 300\0" + b"a" * 1200), "0" * 40, "f")


def test_unpacking_a_bomb_stops_after_a_piece() -> None:
    """Of what a small file unpacks to, no more is held than the header allows, and a piece."""
    import tracemalloc

    packed = zlib.compress(b"profile time 10\0" + b" " * (1 << 24), 9)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedStore, match="longer than the 10 characters"):
            decode(packed, "0" * 40, "f")
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.on_disk
def test_what_lies_in_the_place_of_an_object_is_named(store: Store) -> None:
    place = store.root / "objects" / "ab" / ("c" * 38)
    place.mkdir(parents=True)
    with pytest.raises(DamagedStore, match="cannot be read"):
        store.objects.get("ab" + "c" * 38)


@pytest.mark.on_disk
def test_a_file_larger_than_the_limit_is_named(store: Store, make_profile: MakeProfile) -> None:
    checksum = store.objects.put(make_profile())
    small = FileObjects(store.objects.root, limit=20)
    for action in (small.get, small.head, small.verify):
        with pytest.raises(DamagedStore, match=f"{checksum[2:]}.* 20 "):
            action(checksum)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_always_noticed(store: Store, data: st.DataObject) -> None:
    checksum, content = encode("time", BODY)
    packed = bytearray(zlib.compress(content))
    kind = data.draw(st.sampled_from(["bits", "cut", "random", "unpacked"]))
    if kind == "bits":
        for position in data.draw(
            st.lists(st.integers(0, len(packed) * 8 - 1), min_size=1, max_size=4, unique=True)
        ):
            packed[position // 8] ^= 1 << position % 8
    elif kind == "cut":
        del packed[data.draw(st.integers(0, len(packed) - 1)) :]
    elif kind == "random":
        packed = bytearray(data.draw(st.binary(max_size=200)))
    else:
        packed = bytearray(zlib.compress(data.draw(st.binary(max_size=200))))
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(packed)
    try:
        assert store.objects.get_body(checksum) == BODY
    except DamagedStore as problem:
        assert str(path) in problem.message and problem.hint
    assert path.read_bytes() == packed and os.listdir(path.parent) == [path.name]


def _object_file(content: bytes, checksum: str = "", end: bytes = b"") -> ObjectFile:
    data, right = named(content)
    return ObjectFile(checksum or right, data + end, 1_700_000_000 * 10**9)


def test_small_and_large_objects_from_elsewhere_are_taken_in(store: Store, make_profile: MakeProfile) -> None:
    profiles = [make_profile(float(number), cmd=f"c{number}") for number in range(30)]
    profiles.append(make_profile(99.0, cmd="ž", workload="w" * 50_000))
    elsewhere = FileObjects(store.root / "elsewhere")
    checksums = elsewhere.put_many(profiles)
    files = [ObjectFile(one, elsewhere.exported(one), 10**18) for one in checksums]
    assert store.objects.lacking(checksums) == sorted(checksums)
    assert store.objects.take_in(files) == {one: elsewhere.head(one) for one in checksums}
    assert store.objects.lacking(checksums) == []
    for one, profile in zip(checksums, profiles, strict=True):
        assert store.objects.get(one).get("header") == profile.get("header")
    assert store.objects.time(checksums[0]) == 10**18


def test_many_objects_that_are_lacking(store: Store) -> None:
    bodies = [BODY.replace(b'"ls"', b'"%d"' % number) for number in range(12)]
    there = [store.objects.put_body("time", body) for body in bodies]
    others = [one[:2] + f"{number:038x}" for one in there for number in range(9)]  # listed with those there
    assert store.objects.lacking([*there, *others]) == sorted(others)
    assert store.objects.lacking(there) == []


@pytest.mark.parametrize(
    "file",
    [
        _object_file(b"profile time %d\0" % len(BODY) + BODY, checksum="0" * 40),
        _object_file(b"profile time %d\0" % (len(BODY) - 1) + BODY),
        _object_file(b"profile time %d\0" % len(BODY) + BODY, end=b"more"),
        _object_file(b"profile time 5\0{\xff\xff\xff}"),
        _object_file(b"profile time 2\0[]"),
        _object_file(b"index time 2\0{}"),
        ObjectFile("1" * 40, b"no zlib", 1),
        ObjectFile("1" * 40, b"", 1),
        ObjectFile("1" * 40, zlib.compress(BODY * 10)[:-5], 1),
    ],
    ids=["checksum", "length", "surplus", "no UTF-8", "no profile", "no object", "no zlib", "empty", "cut"],
)
def test_what_is_damaged_is_not_taken_in(store: Store, file: ObjectFile) -> None:
    found = store.objects.take_in([file])[file.checksum]
    assert isinstance(found, ProfileError)
    with pytest.raises(ProfileError) as problem:  # what is in the store is read otherwise, and told alike
        path = store.root / "objects" / file.checksum[:2] / file.checksum[2:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        store.objects.head(file.checksum)
    told = problem.value.message.removeprefix(str(path))
    assert found.message.removeprefix(f"the object {file.checksum[:10]}") == told


def test_a_small_object_may_be_too_large(store: Store) -> None:
    small = FileObjects(store.root / "objects", limit=50)
    file = _object_file(b"profile time %d\0" % len(BODY) + BODY)
    found = small.take_in([file])[file.checksum]
    assert isinstance(found, ProfileError) and "50" in found.message
