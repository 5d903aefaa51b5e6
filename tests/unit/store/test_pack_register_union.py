"""Packs, registers and their union: what is written is read, nothing hostile passes, in any order."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import RemoteError
from perun.store.remote import pack
from perun.store.remote.pack import PackSlice
from perun.store.remote.register import (
    Register,
    RegisterAddition,
    RegisterEntry,
    RegisterRemoval,
    RegisterUnion,
    parse,
    written,
)

SHA1 = st.binary(min_size=20, max_size=20).map(bytes.hex)
SHA256 = st.binary(min_size=32, max_size=32).map(bytes.hex)
NAME = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
NAMES = NAME.filter(lambda name: name not in (".", ".."))
ENTRIES = st.builds(RegisterEntry, SHA1 | SHA256 | st.just("HEAD"), SHA1, st.integers(0, 2**32 - 1), NAMES)
PLACES = st.builds(PackSlice, SHA256, st.integers(0, 2**40), st.integers(0, 2**40))
ADDED = st.builds(RegisterAddition, ENTRIES, st.integers(0, 2**62), PLACES)
REMOVED = st.builds(RegisterRemoval, ENTRIES, st.lists(SHA256, max_size=3).map(tuple))


@given(st.dictionaries(SHA1, st.binary(max_size=200), max_size=20))
def test_a_pack_has_its_objects(objects: dict[str, bytes]) -> None:
    made = pack.packed(list(objects.items()))
    found = dict(pack.unpacked(made.name, made.data))
    assert found == made.places
    for checksum, place in found.items():
        assert made.data[place.start : place.start + place.size] == objects[checksum]


@given(st.binary(max_size=300), st.booleans())
def test_what_is_no_pack_is_refused(data: bytes, with_magic: bool) -> None:
    data = b"perun-pack 1\n" + data if with_magic else data
    name = hashlib.sha256(data).hexdigest()
    try:
        places = [place for _checksum, place in pack.unpacked(name, data)]
    except RemoteError:
        return
    assert sum(place.size for place in places) <= len(data)


def test_a_pack_under_another_name_is_damaged() -> None:
    made = pack.packed([("ab" * 20, b"content")])
    with pytest.raises(RemoteError, match="damaged"):
        list(pack.unpacked(made.name, made.data[:-1] + b"x"))


@given(st.lists(ADDED, max_size=5), st.lists(REMOVED, max_size=5))
def test_a_register_is_read_as_it_was_written(
    added: list[RegisterAddition], removed: list[RegisterRemoval]
) -> None:
    made = written(added, removed, now=0.0)
    assert parse(made.name, made.data) == Register(added, removed, [])


def test_two_registers_of_the_same_are_two() -> None:
    assert written([], now=0.0).name != written([], now=0.0).name


ENTRY = ["a" * 40, "b" * 40, 1]
PLACE = ["c" * 64, 0, 1]


@pytest.mark.parametrize("line", [
    ["+", *ENTRY, 1, "../x", *PLACE],
    ["+", *ENTRY, 1, "..", *PLACE],
    ["+", *ENTRY, 1, "a\0b", *PLACE],
    ["+", *ENTRY, 1, "", *PLACE],
    ["+", *ENTRY, 1, "x" * 256, *PLACE],
    ["+", "../../x", "b" * 40, 1, 1, "x", *PLACE],
    ["+", "a" * 40, "b" * 41, 1, 1, "x", *PLACE],
    ["+", "a" * 40, "b" * 40, -1, 1, "x", *PLACE],
    ["+", "a" * 40, "b" * 40, True, 1, "x", *PLACE],
    ["+", *ENTRY, 1, "x", "../packs", 0, 1],
    ["+", *ENTRY, 1, "x", "c" * 64, -1, 1],
    ["+", *ENTRY, 1, "x", "c" * 64, 0],
    ["-", *ENTRY, "x", ["../x"]],
    ["-", *ENTRY, "x", 5],
    ["*", *ENTRY],
    [],
    5,
    {"0": "+"},
])  # fmt: skip
def test_a_register_that_lies_is_refused(line: object) -> None:
    data = f'{{"perun-register":1}}\n{json.dumps(line)}\n'.encode()
    with pytest.raises(RemoteError, match="cannot be read: line 2"):
        parse(hashlib.sha256(data).hexdigest(), data)


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_what_is_no_register_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteError):
        parse(hashlib.sha256(data).hexdigest(), data)


def test_a_register_of_a_newer_perun_is_named() -> None:
    data = b'{"perun-register":2}\n'
    with pytest.raises(RemoteError, match="format 2, this Perun reads 1"):
        parse(hashlib.sha256(data).hexdigest(), data)


FEW = st.sampled_from([RegisterEntry("a" * 40, "b" * 40, 1, name) for name in "xyz"])
REGISTERS = st.lists(st.tuples(st.lists(FEW, max_size=3), st.lists(FEW, max_size=2)), max_size=6)


@given(REGISTERS, st.randoms(use_true_random=False))
def test_the_union_does_not_depend_on_order(pairs, random: object) -> None:
    """Each writer knows what the ones before it said, as one who pulled; then all meet in any order."""
    known = RegisterUnion()
    registers: list[tuple[str, Register]] = []
    expected: set[RegisterEntry] = set()
    for number, (adding, removing) in enumerate(pairs):
        removed = [RegisterRemoval(entry, known.saying(entry)) for entry in removing]
        register = Register(
            [RegisterAddition(entry, 0, PackSlice("c" * 64, 0, 0)) for entry in adding], removed
        )
        registers.append((str(number), register))
        known.apply(str(number), register)
        expected = (expected - set(removing)) | set(adding)
    random.shuffle(registers)  # type: ignore[attr-defined]
    union = RegisterUnion()
    for name, register in registers + registers:
        union.apply(name, register)
    assert {one.entry for one in union} == expected
    for entry in expected:
        assert entry in union and not union.was_removed(entry)


def test_a_removal_does_not_take_back_what_it_did_not_know() -> None:
    entry = RegisterEntry("a" * 40, "b" * 40, 1, "x")
    place = PackSlice("c" * 64, 0, 0)
    union = RegisterUnion()
    union.apply("1", Register([RegisterAddition(entry, 0, place)], []))
    union.apply("2", Register([], [RegisterRemoval(entry, ("1",))]))
    assert entry not in union and union.was_removed(entry)
    union.apply("3", Register([RegisterAddition(entry, 0, place)], []))
    assert entry in union and not union.was_removed(entry)


def test_of_dead_packs_nothing_counts() -> None:
    entry = RegisterEntry("a" * 40, "b" * 40, 1, "x")
    union = RegisterUnion()
    union.apply("1", Register([RegisterAddition(entry, 0, PackSlice("c" * 64, 0, 0))], []))
    assert entry in union and union.lacking([entry]) == []
    union.dead.add("c" * 64)
    assert entry not in union and union.lacking([entry]) == [entry]
