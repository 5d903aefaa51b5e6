"""Profiles by columns: the same profile as from JSON, whatever it holds; and no other from damaged files."""

import io
import json
import math
import pickle
import struct
import zlib
from array import array
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.factory import Profile, load_profile
from perun.profile.format import columnar
from perun.profile.format import columns as chunks
from perun.profile.format import columns as seven_bits
from perun.profile.format import head as layouts
from perun.profile.format import json as formats
from perun.profile.format.columns import CompressedColumn
from perun.profile.query import unique_resource_values_of
from perun.profile.series import series
from perun.profile.table import table_of
from shared import examples

HEAD = {
    "origin": "a" * 40,
    "header": {"type": "mixed", "units": {"mixed": "us"}, "cmd": "./bin", "args": "", "workload": "", "x": 1},
    "collector_info": {"name": "trace", "params": {}},
    "postprocessors": [{"name": "normalizer", "params": {}}],
    "trace": {"calls": 7, "notes": ["ž"]},
}
whole = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 300)
fractions = st.floats() | st.integers(-(10**6), 10**9).map(lambda number: number / 1000)
small = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60))


def repeated(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists long enough to be packed, and short ones."""
    some = st.lists(values, min_size=1, max_size=12)
    return st.builds(lambda own, times: own * times, some, st.sampled_from([1, 7, 30]))


uids = st.sampled_from(["f", "g(int*)", "ž"]) | st.sampled_from([{"function": "f", "line": 1}])
column = repeated(whole) | repeated(fractions) | repeated(whole | fractions | st.none() | st.text(max_size=2))
groups = st.lists(
    st.tuples(uids, st.dictionaries(st.sampled_from(["amount", "own"]), column, max_size=2)), max_size=4
)


def profile_of(found: list[tuple[Any, dict[str, list[Any]]]], **regions: Any) -> Profile:
    resources = {}
    for number, (_, columns) in enumerate(found):
        size = min(map(len, columns.values()), default=0)
        resources[f"u#{number}"] = {name: values[:size] for name, values in columns.items()}
    constants = {f"u#{number}": {"uid": uid, "type": "mixed"} for number, (uid, _) in enumerate(found)}
    profile = Profile({**HEAD, "resources": resources, "resource_type_map": constants, **regions})
    profile.pack()
    return profile


def calls(count: int = 200_000) -> Profile:
    """A profile of two functions, of which one is called once in four calls."""
    generator = np.random.default_rng(1)
    times = np.cumsum(generator.integers(100, 900, count))
    resources, constants = {}, {}
    for name, chosen in (("inner", slice(None)), ("outer", slice(None, None, 4))):
        own = times[chosen]
        durations = generator.integers(20, 2000, len(own))
        resources[f"{name}#0"] = {
            "amount": array("d", (durations / 1000).tolist()), "exclusive": array("q", durations.tolist()),
            "timestamp": array("d", (own / 1000).tolist()), "call-order": array("q", range(len(own)))
        }  # fmt: skip
        constants[f"{name}#0"] = {"uid": name, "type": "mixed", "subtype": "time delta"}
    return Profile({**HEAD, "resources": resources, "resource_type_map": constants})


def by_columns(profile: Profile) -> bytes:
    return (
        b"".join(layouts.job_pieces(profile, 1))
        if layouts.is_stored_by_columns(profile, 1)
        else b"".join(columnar.pieces(profile.regions()))
    )


def text_of(profile: Profile) -> str:
    return json.dumps(dict(profile), sort_keys=True)


@given(repeated(whole), st.integers(0, 3))
@example([-(1 << 63), (1 << 63) - 1, 0], 2)
@small
def test_whole_numbers_come_back(values: list[int], extra: int) -> None:
    numbers = np.array(values * (extra + 1), np.int64)
    assert np.array_equal(chunks.decoded(chunks.encoded(numbers), "q"), numbers)


@given(repeated(fractions))
@example([-0.0, 0.0, math.nan, math.inf, 5e-324])
@example([0.001, -0.0])
@small
def test_floats_come_back_bit_by_bit(values: list[float]) -> None:
    numbers = np.array(values, np.float64)
    assert chunks.decoded(chunks.encoded(numbers), "d").tobytes() == numbers.tobytes()


@given(repeated(whole))
@small
def test_thousandths_come_back(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    chunk = chunks.encoded_thousandths(numbers)
    assert np.array_equal(chunks.decoded_thousandths(chunk), numbers)
    assert chunks.decoded(chunk, "d").tobytes() == (numbers / 1000.0).tobytes()


@given(st.binary(max_size=60), st.sampled_from("qd"))
@small
def test_no_other_error_comes_of_any_bytes(data: bytes, kind: str) -> None:
    for head in (b"", struct.pack("<BBBxIqq", 0, 1, 2, 40, 0, 0)):
        try:
            assert len(chunks.decoded(seven_bits.packed(head + data), kind)) <= chunks.MAX_NUMBERS
        except chunks.InvalidChunk as problem:
            assert str(problem)


@given(st.binary(max_size=70))
@small
def test_any_bytes_are_written_in_ascii(data: bytes) -> None:
    text = seven_bits.packed(data)
    assert text.isascii() and b"\0" not in text
    assert seven_bits.unpacked_bits(text) == data
    for other in (text + b"\x80", text[:-1] + b"\xff", b"\0" + text, text + b"\1", b"\1\4" + text):
        assert seven_bits.unpacked_bits(other) is None


@given(groups)
@small
def test_both_layouts_hold_the_same_profile(found: list[tuple[Any, dict[str, list[Any]]]]) -> None:
    profile = profile_of(found, models=[{"uid": "f", "model": "constant", "coeffs": []}], own={"key": [1.5]})
    data = by_columns(profile)
    assert columnar.is_columnar(data) and data.isascii() and b"\0" not in data
    from_columns = formats.loads(data, "columns")
    from_json = formats.loads(formats.dumps_pending(profile), "json")
    for one in from_columns.regions()["resources"].values():
        assert all(isinstance(values, (list, CompressedColumn)) or values.typecode for values in one.values())
    assert formats.dumps_pending(from_columns) == formats.dumps_pending(profile)
    assert formats.dumps_object(from_columns) == formats.dumps_object(from_json)
    assert b"".join(columnar.pieces(from_columns.regions())) == data
    assert text_of(from_columns.copy()) == text_of(from_json)
    assert text_of(from_columns) == text_of(from_json)


def test_the_head_is_read_without_the_rest() -> None:
    data = by_columns(calls())
    head = formats.decode_head(data, "x")
    assert head == formats.decode_head(formats.dumps_pending(calls()), "x")
    assert head["header"]["x"] == 1 and head["origin"] == "a" * 40


def test_many_times_smaller_than_json() -> None:
    profile = calls()
    assert len(by_columns(profile)) * 6 < len(formats.dumps_pending(profile))
    assert profile["resources"]["outer#0"]["call-order"] == list(range(50_000))


class CountingFile(io.BytesIO):
    """A file that counts what is read of it."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def test_one_function_is_read_without_the_others() -> None:
    data = by_columns(calls())
    file = CountingFile(data)
    profile = columnar.load(file, "x", uids={"outer"})
    assert [group.key for group in profile.groups()] == ["outer#0"]
    assert file.taken < len(data) / 3
    assert profile["resources"]["outer#0"] == calls()["resources"]["outer#0"]
    assert layouts.with_uids(calls(), {"outer"}) == profile


def test_columns_are_unpacked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = formats.loads(by_columns(calls()), "x")
    taken: list[str] = []
    unpacked = CompressedColumn.unpacked

    def noted(self: CompressedColumn) -> Any:
        taken.append(self.kind)
        return unpacked(self)

    monkeypatch.setattr(CompressedColumn, "unpacked", noted)
    assert sum(group.size for group in profile.groups()) == 250_000
    assert not taken
    assert [sum(group.columns["exclusive"]) > 0 for group in profile.groups()] == [True, True]
    assert taken == ["q", "q"]
    taken.clear()
    assert [len(one.x) for one in series(profile, "exclusive", "call-order", uids={"outer"})] == [50_000]
    assert taken == ["q", "q"]
    assert len(list(unique_resource_values_of(profile, "call-order", uids={"outer"}))) == 50_000
    assert table_of(profile, {"outer"}).size == 50_000
    assert len(taken) == 2 + 1 + 4
    assert [one.key for one in profile.groups({"inner", "none"})] == ["inner#0"]


def test_profiles_by_columns_take_part_in_everything() -> None:
    profile = formats.loads(by_columns(calls(1200)), "x")
    assert pickle.loads(pickle.dumps(profile)) == deepcopy(profile) == calls(1200)
    profile = formats.loads(by_columns(calls(1200)), "x")
    points = {one.uid: len(one.x) for one in series(profile, "amount", "call-order")}
    assert points == {"inner": 1200, "outer": 300}
    other = profile.copy()
    one = {"uid": "inner", "type": "mixed", "subtype": "time delta"}
    other.update_resources([{**one, "amount": 1.5, "exclusive": 2, "timestamp": 0.0, "call-order": 9}])
    assert len(other["resources"]["inner#0"]["amount"]) == 1201
    assert len(profile["resources"]["inner#0"]["amount"]) == 1200
    # What a group gives for reading may be put into a profile again.
    groups = list(formats.loads(by_columns(calls(1200)), "x").groups())
    resources = {one.key: one.columns for one in groups}
    constants = {one.key: one.constants for one in groups}
    assert Profile({**HEAD, "resources": resources, "resource_type_map": constants}) == calls(1200)


@given(st.sampled_from(["cut", "byte", "insert"]), st.floats(0, 0.999), st.integers(1, 255), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(200))
def test_damage_is_told(how: str, place: float, change: int, seal: bool) -> None:
    data = DAMAGED
    at = int(place * len(data))
    if how == "cut":
        data = data[:at]
    elif how == "byte":
        data = data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]
    else:
        data = data[:at] + bytes([change]) * change + data[at:]
    try:
        profile = formats.loads(resealed(data) if seal else data, "damaged.perf")
        text = text_of(profile)
        assert seal or text == text_of(formats.loads(DAMAGED, "x"))
    except ProfileError as problem:
        assert "damaged.perf" in problem.message and problem.hint


def resealed(data: bytes) -> bytes:
    """The file with checksums of head, directory and trailer that are right where that is possible."""
    try:
        head, at, size = (int(field, 16) for field in data[-TRAILER:].split()[2:5])
        directory = zlib.decompress(seven_bits.unpacked_bits(data[at:-TRAILER]) or b"")
    except (ValueError, zlib.error):
        return data
    ends = zlib.crc32(data[:head]), zlib.crc32(directory), head, at, size, len(data)
    return data[:-TRAILER] + columnar.trailer(*ends)


TRAILER = 104
DAMAGED = by_columns(calls(1200))


def rewritten(change: Any, data: bytes = DAMAGED) -> bytes:
    """The file with another directory."""
    head_sum, _, head, at = (int(field, 16) for field in data[-TRAILER:].split()[:4])
    directory = json.loads(zlib.decompress(seven_bits.unpacked_bits(data[at:-TRAILER]) or b""))
    change(directory)
    text = json.dumps(directory).encode()
    packed = seven_bits.packed(zlib.compress(text))
    size = at + len(packed) + TRAILER
    return data[:at] + packed + columnar.trailer(head_sum, zlib.crc32(text), head, at, len(text), size)


def numbers_of(directory: Any) -> list[Any]:
    return directory["resources"]["inner#0"]["amount"]["d"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(("change", "expected"), [
    (lambda found: numbers_of(found).append(1), "no known form"),
    (lambda found: numbers_of(found).__setitem__(0, True), "no known form"),
    (lambda found: numbers_of(found).__setitem__(0, 0), "no possible size"),
    (lambda found: numbers_of(found).__setitem__(0, 1 << 40), "no possible size"),
    (lambda found: numbers_of(found).__setitem__(1, -24), "no possible size"),
    (lambda found: numbers_of(found).__setitem__(1, 1 << 60), "outside the file"),
    (lambda found: numbers_of(found).__setitem__(2, 1), "checksum"),
    (lambda found: found["resources"].pop("outer#0"), "does not name all"),
    (lambda found: found["resources"]["inner#0"].update(amount={"z": []}), "no known form"),
    (lambda found: found["resources"]["inner#0"].update(amount={}), "no known form"),
    (lambda found: found["resources"]["inner#0"].update(own=[1]), "columns of equal length"),
    (lambda found: found["resource_type_map"].pop("inner#0"), "the constants of a group"),
    (lambda found: found.update(resources=[]), "a mapping"),
    (lambda found: numbers_of(found).__setitem__(0, 199), "equal length"),
])  # fmt: skip
def test_a_wrong_directory_is_told(change: Any, expected: str) -> None:
    with pytest.raises(ProfileError, match=expected):
        columnar.verify(io.BytesIO(rewritten(change)), "x")


def test_few_bytes_do_not_fill_the_memory() -> None:
    def change(directory: Any) -> None:
        size = len(chunks.encoded(np.zeros(1, np.int64)))
        directory["resources"] = {"inner#0": {"amount": {"q": [chunks.MAX_NUMBERS, size, 0] * 5000}}}

    with pytest.raises(ProfileError, match=r"outside the file|more numbers than"):
        formats.loads(rewritten(change), "x")
    with pytest.raises(ProfileError, match="limit of 1000"):
        columnar.load(io.BytesIO(DAMAGED), "x", limit=1000)


def test_a_newer_version_is_told() -> None:
    newer = DAMAGED.replace(b'"perun-columns":1', b'"perun-columns":3', 1)
    with pytest.raises(ProfileError, match=r"version 3, but this release .* versions 1 to 2") as caught:
        formats.loads(newer, "x")
    assert "perun show" in str(caught.value.hint)


def test_nothing_damaged_is_written_again() -> None:
    at = DAMAGED.index(b"\n") + 40
    damaged = formats.loads(DAMAGED[:at] + bytes([DAMAGED[at] ^ 1]) + DAMAGED[at + 1 :], "x")
    with pytest.raises(ProfileError, match="columns are damaged"):
        list(columnar.pieces(damaged.regions()))


def test_files_by_columns_are_profiles(tmp_path: Path) -> None:
    path = tmp_path / "p.perf"
    path.write_bytes(DAMAGED)
    assert load_profile(path) == calls(1200)
    assert [group.key for group in load_profile(path, uids=["outer"]).groups()] == ["outer#0"]


# -- call stacks ---------------------------------------------------------------------------------------------

frame = st.fixed_dictionaries(
    {"function": st.sampled_from(["main", "f", "ž"]), "source": st.just("a.c")},
    optional={"line": st.sampled_from([0, 1, 1.0, True, None])},
)
trace = st.lists(frame | st.sampled_from(["main", 7]), max_size=4)


def with_traces(traces: list[Any]) -> Profile:
    constants = {f"u#{n}": {"type": "mixed", "trace": one, "uid": "u"} for n, one in enumerate(traces)}
    resources = {key: {"amount": [1, 2]} for key in constants}
    return Profile({**HEAD, "resources": resources, "resource_type_map": constants})


@given(st.lists(trace, max_size=6))
@small
def test_stacks_come_back(traces: list[Any]) -> None:
    profile = with_traces(traces)
    data = by_columns(profile)
    assert data.startswith(b'{"perun-columns":%d' % (2 if traces else 1))
    assert formats.dumps_pending(formats.loads(data, "x")) == formats.dumps_pending(profile)


@pytest.mark.parametrize("other", ["main", 0, None])
def test_a_trace_that_is_no_list_comes_back(other: Any) -> None:
    profile = with_traces([[{"function": "f"}], other])
    assert formats.dumps_pending(formats.loads(by_columns(profile), "x")) == formats.dumps_pending(profile)


def test_each_stack_is_stored_once_in_a_job_file() -> None:
    frames = [{"function": f"function_{number}", "source": "a.c", "line": number} for number in range(64)]
    profile = with_traces([frames[number % 8 :] for number in range(80)])
    data = b"".join(layouts.job_pieces(profile, layouts.COLUMNAR_FROM))
    text = formats.dumps_pending(profile)
    assert columnar.is_columnar(data) and 100 * len(data) < len(text)
    assert formats.dumps_pending(formats.loads(data, "x")) == text
    assert b"".join(layouts.job_pieces(profile, 0)) == text
    # An object is compressed anyway, and as JSON more releases read it.
    assert layouts.object_body(profile, layouts.COLUMNAR_FROM) == formats.dumps_object(profile)
    assert len(formats.loads(data, "x")["resource_type_map"]["u#9"]["trace"]) == 63
    few = with_traces([frames])
    assert b"".join(layouts.job_pieces(few, layouts.COLUMNAR_FROM)) == formats.dumps_pending(few)


def test_a_group_does_not_share_its_list() -> None:
    profile = formats.loads(by_columns(with_traces([[1, 2], [1, 2]])), "x")
    profile.regions()["resource_type_map"]["u#0"]["trace"].append(3)
    assert profile.regions()["resource_type_map"]["u#1"]["trace"] == [1, 2]


@pytest.mark.parametrize(("change", "expected"), [
    (lambda found: found["resource_type_map"]["u#0"].update(trace=2), "does not have"),
    (lambda found: found["resource_type_map"]["u#0"].update(trace=-1), "does not have"),
    (lambda found: found["resource_type_map"]["u#0"].update(trace=True), "does not have"),
    (lambda found: found["stacks"]["stacks"][0].append(9), "does not have"),
    (lambda found: found["stacks"]["stacks"].__setitem__(0, 1), "is no list"),
    (lambda found: found["stacks"].pop("frames"), "no lists"),
    (lambda found: found.update(stacks=[]), "no lists"),
    (lambda found: found.update(resource_type_map=[]), "a mapping"),
])  # fmt: skip
def test_wrong_stacks_are_told(change: Any, expected: str) -> None:
    data = by_columns(with_traces([[{"function": "f"}], ["g"]]))
    with pytest.raises(ProfileError, match=expected):
        columnar.verify(io.BytesIO(rewritten(change, data)), "x")


def test_few_stacks_do_not_fill_the_memory() -> None:
    data = rewritten(
        lambda found: found["stacks"]["stacks"].__setitem__(0, [0] * 5000),
        by_columns(with_traces([["f"]] * 20)),
    )
    with pytest.raises(ProfileError, match="more frames than JSON"):
        columnar.load(io.BytesIO(data), "x", limit=1 << 20)
