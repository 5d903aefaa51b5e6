"""Profiles by columns in the store: objects, pending profiles, and one function without the others."""

import hashlib
import io
import random
import zlib
from array import array
from pathlib import Path

import pytest

from perun.core.errors import DamagedStore, ProfileError
from perun.profile.factory import Profile
from perun.profile.format import columnar
from perun.store import Store, unpacking
from perun.store.unpacking import BLOCK

NAMES = ("f", "g", "h")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / ".perun", columnar_from=1000)
    made.create()
    return made


@pytest.fixture(scope="module")
def profile() -> Profile:
    """Three functions with 20,000 numbers each, which do not compress: more than one block."""
    numbers = random.Random(3)
    return Profile(
        {
            "header": {"type": "mixed", "cmd": "./app", "args": "", "workload": "", "units": {"mixed": "us"}},
            "collector_info": {"name": "trace", "params": {}},
            "postprocessors": [],
            "origin": "a" * 40,
            "resources": {
                f"{name}#0": {"amount": array("d", [numbers.random() for _ in range(20_000)])}
                for name in NAMES
            },
            "resource_type_map": {f"{name}#0": {"uid": name, "type": "mixed"} for name in NAMES},
        }
    )


@pytest.mark.parametrize("length", [0, 1, BLOCK - 10, BLOCK - 9, BLOCK, 2 * BLOCK - 10, 3 * BLOCK + 17])
def test_blocks_that_are_stored(length: int) -> None:
    header, body = b"columns 1", random.Random(length).randbytes(length)
    stream = b"".join(unpacking.pieces(header, body))
    assert zlib.decompress(stream) == header + body
    content = unpacking.opened(io.BytesIO(stream), len(header), length)
    assert content is not None and content.read() == body
    for place in (0, 1, length // 2, BLOCK - len(header), length - 3):
        content.seek(max(place, 0))
        assert content.read(70_000) == body[max(place, 0) :][:70_000]
    assert unpacking.opened(io.BytesIO(stream + b" "), len(header), length) is None
    assert unpacking.opened(io.BytesIO(zlib.compress(header + body)), len(header), length) is None


def test_an_object(store: Store, profile: Profile) -> None:
    checksum = store.objects.put(profile)
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    content = zlib.decompress(path.read_bytes())
    header, _, body = content.partition(b"\0")
    assert (header, hashlib.sha1(content).hexdigest()) == (b"columns mixed %d" % len(body), checksum)
    assert path.stat().st_size < len(content) + 100
    assert store.objects.put(profile.copy()) == checksum and store.objects.read(checksum) == ("mixed", body)
    assert store.objects.head(checksum).cmd == "./app" and store.objects.check(checksum) == "mixed"
    expected = dict(profile.copy())
    del expected["origin"]
    assert dict(store.objects.get(checksum)) == expected
    # What was read is stored again as it is.
    assert store.objects.put(store.objects.get(checksum)) == checksum
    assert [finding.message for finding in store.fsck() if finding.severity == "error"] == []


@pytest.mark.parametrize("place", ["head", "chunk", "end", "cut", "length"])
def test_a_damaged_object(store: Store, profile: Profile, place: str) -> None:
    checksum = store.objects.put(profile)
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    data = path.read_bytes()
    places = {"head": 60, "chunk": len(data) // 2, "end": len(data) - 1, "length": data.index(b"\0{") - 1}
    if place == "cut":
        path.write_bytes(data[:-1000])
    else:
        at = places[place]
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for read in (store.objects.get, store.objects.check, store.objects.verify):
        with pytest.raises(DamagedStore, match=str(path)):
            read(checksum)
    assert any(finding.path == path for finding in store.fsck() if finding.severity == "error")


def test_one_function_of_an_object(store: Store, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    checksum = store.objects.put(profile)
    path = store.root / "objects" / checksum[:2] / checksum[2:]
    taken: list[int] = []
    read = unpacking._Content.readinto

    def counted(self: unpacking._Content, buffer: memoryview) -> int:
        taken.append(read(self, buffer))
        return taken[-1]

    monkeypatch.setattr(unpacking._Content, "readinto", counted)
    found = store.objects.get(checksum, {"g"})
    assert [group.key for group in found.groups()] == ["g#0"]
    assert found["resources"]["g#0"] == profile.copy()["resources"]["g#0"]
    assert 0 < sum(taken) < path.stat().st_size * 2 // 3
    # Damage in another function is not seen; that in this one is.
    data = path.read_bytes()
    for place, is_seen in ((0.15, False), (0.5, True)):
        at = int(len(data) * place)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        found = store.objects.get(checksum, {"g"})
        if is_seen:
            with pytest.raises(ProfileError, match="does not match its checksum"):
                found["resources"]
        else:
            assert len(found["resources"]["g#0"]["amount"]) == 20_000
    # Another program may have compressed the object: then it is read as a whole.
    path.write_bytes(zlib.compress(zlib.decompress(data)))
    assert [group.key for group in store.objects.get(checksum, {"g", "h"}).groups()] == ["g#0", "h#0"]


def test_one_function_of_json(tmp_path: Path, profile: Profile) -> None:
    store = Store(tmp_path / ".perun", columnar_from=0)
    store.create()
    checksum = store.objects.put(profile)
    assert [group.key for group in store.objects.get(checksum, {"g"}).groups()] == ["g#0"]
    path = store.pending.save(profile, "p")
    assert [group.key for group in store.pending.load(path, {"g"}).groups()] == ["g#0"]


def test_a_pending_profile(store: Store, profile: Profile) -> None:
    sums: list[str] = []
    path = store.pending.save(profile, "p", sums.append)
    data = path.read_bytes()
    assert columnar.is_columnar(data)
    assert [hashlib.sha1(data).hexdigest()] == sums == [store.pending.check(path)]
    assert [info.head.cmd for info in store.pending.list()] == ["./app"]
    assert store.pending.regions(path)["origin"] == "a" * 40 and store.pending.load(path) == profile.copy()
    assert [group.key for group in store.pending.load("p.perf", {"h"}).groups()] == ["h#0"]
    path.write_bytes(data[:-100])
    with pytest.raises(ProfileError, match="cut short"):
        store.pending.load(path)
    assert any(finding.path == path for finding in store.fsck() if finding.severity == "error")
