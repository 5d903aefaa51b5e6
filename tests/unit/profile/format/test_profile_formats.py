"""Profiles as JSON: what is accepted, what is refused and how, and that writing loses nothing."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.factory import Profile
from perun.profile.format import bulk
from perun.profile.format import json as formats
from perun.profile.format.json import dumps_object, dumps_pending, loads
from perun.profile.head import ProfileHeader
from shared import examples

SAMPLES = Path(__file__).parents[5] / "shared" / "samples"
REGIONS: dict[str, Any] = {
    "origin": "f7f3dcea69b97f2b03c421a223a770917149cfaf",
    "header": {"type": "time", "units": {"time": "s"}, "cmd": "perun", "args": "status", "workload": "x"},
    "collector_info": {"name": "time", "params": {"warmup": 3}},
    "postprocessors": [{"name": "regression_analysis", "params": {"method": "full"}}],
    "resources": {"sys#0": {"amount": [0.59, 0.61]}, "free#0": {}},
    "resource_type_map": {"sys#0": {"type": "time", "uid": "sys"}, "free#0": {"uid": "free"}},
    "models": [{"uid": "sys", "model": "linear", "coeffs": [{"name": "b0", "value": 1}]}],
    "machine": {"system": "Linux"},
}
OLD = {
    "header": {"type": "memory", "cmd": "./test", "params": "-x"},
    "collector_info": {"name": "memory", "params": {}},
    "postprocessors": [],
    "snapshots": [
        {"time": "0.1", "resources": [{"uid": "f", "amount": 1}]},
        {"time": "0.2", "resources": []},
    ],
}
VALID = json.dumps(REGIONS, indent=2).encode()


def head_of(data: bytes, source: str) -> ProfileHeader:
    return ProfileHeader.of(formats.decode_head(data, source))


numbers = st.integers() | st.floats()
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(numbers, max_size=4)
        | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
units = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True)},
    optional={"params": st.dictionaries(st.text(max_size=5), values, max_size=3)},
)
profiles = st.fixed_dictionaries(
    {
        "header": st.fixed_dictionaries(
            {"type": st.from_regex(r"[A-Za-z0-9_.-]{1,9}", fullmatch=True), "cmd": texts},
            optional={"args": texts, "workload": texts, "label": texts},
        ),
        "collector_info": units,
        "postprocessors": st.lists(units, max_size=3),
        "origin": st.sampled_from(["", "f7f3dcea69b97f2b03c421a223a770917149cfaf"]),
        "models": st.lists(st.dictionaries(st.sampled_from(["uid", "model", "x_start"]), values), max_size=3),
        "global": st.fixed_dictionaries({
            "time": st.sampled_from(["0.0", 1.5]),
            "resources": st.lists(
                st.fixed_dictionaries({"uid": values}, optional={"amount": numbers, "trace": values}),
                max_size=8,
            ),
        }),
    },
    optional={"machine": values, "chunks": values},
)  # fmt: skip


def dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def normal(value: Any) -> str:
    """Text that is equal for equal JSON, NaN included."""
    return json.dumps(value, sort_keys=True)


def changed(path: str, value: Any) -> bytes:
    """The valid profile with another value, or none where `value` is Ellipsis, at a dotted path."""
    regions = json.loads(VALID)
    *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    place = regions
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return dump(regions)


def test_a_profile_is_read_and_written() -> None:
    profile = loads(VALID, "a.perf")
    assert dict(profile) == REGIONS
    assert json.loads(dumps_pending(profile)) == REGIONS
    body = dumps_object(profile)
    assert b"\n" not in body and body.isascii()
    assert json.loads(body) == {key: value for key, value in REGIONS.items() if key != "origin"}


def test_the_look_of_a_job_file() -> None:
    profile = Profile({"header": {"type": "žluť"}, "resources": {"f#0": {"amount": [1, 2.5]}}})
    profile["collector_info"] = {"name": "x", "params": {"files": ["a", 1], "none": []}}
    assert dumps_pending(profile).decode() == (
        "{\n"
        '  "header": {\n'
        '    "type": "\\u017elu\\u0165"\n'
        "  },\n"
        '  "collector_info": {\n'
        '    "name": "x",\n'
        '    "params": {\n'
        '      "files": [\n'
        '        "a",\n'
        "        1\n"
        "      ],\n"
        '      "none": []\n'
        "    }\n"
        "  },\n"
        '  "resources": {\n'
        '    "f#0": {\n'
        '      "amount": [1, 2.5]\n'
        "    }\n"
        "  },\n"
        '  "resource_type_map": {},\n'
        '  "models": []\n'
        "}"
    )


@given(profiles)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_writing_and_reading_change_nothing(regions: dict[str, Any]) -> None:
    profile = loads(dump(regions), "generated")
    pending, body = dumps_pending(profile), dumps_object(profile)
    assert normal(dict(loads(pending, "pending"))) == normal(dict(profile))
    assert normal({**loads(body, "object"), "origin": regions["origin"]}) == normal(dict(profile))
    assert dumps_object(loads(body, "object")) == body
    assert json.loads(pending.decode()).keys() == profile.keys()
    for data in (dump(regions), pending):
        assert head_of(data, "generated") == ProfileHeader.of(profile)


def both_ways(data: bytes) -> tuple[Profile | None, Profile]:
    """The profile as the piecewise reader sees it, where it can, and as Python's reader of JSON does."""
    lenient = formats._decode(data, "lenient", None)
    formats.validate(lenient, "lenient")
    try:
        regions = bulk.regions(data)
        formats.validate(regions, "piecewise")
        return Profile(regions), Profile(lenient)
    except bulk.Unsuitable:
        return None, Profile(lenient)


@given(profiles)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(30))
def test_both_readers_of_json_agree(regions: dict[str, Any]) -> None:
    quick, lenient = both_ways(dump(regions))
    if quick is not None:
        assert normal(dict(quick)) == normal(dict(lenient))


def test_the_quick_reader_is_not_imported_for_a_small_profile(tmp_path: Path) -> None:
    import subprocess
    import sys

    file = tmp_path / "small.perf"
    file.write_bytes(VALID)
    code = (
        "import sys; from pathlib import Path; from perun.profile.head import ProfileHeader\n"
        "from perun.profile.format import json as formats\n"
        "assert not {'json', 'msgspec'} & set(sys.modules), 'imported too early'\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "print(ProfileHeader.of(formats.decode_head(data, 'x')).collector, len(formats.loads(data, 'x')))\n"
        "print('msgspec' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["time", "8", "False"]


def test_numbers_that_json_does_not_know_survive() -> None:
    data = changed("resources.sys#0.amount", [math.nan, math.inf])
    profile = loads(dumps_pending(loads(data, "a")), "b")
    first, second = profile["resources"]["sys#0"]["amount"]
    assert math.isnan(first) and math.isinf(second)
    assert b"NaN" in dumps_object(profile)
    assert head_of(data, "a").type == "time"


def test_numbers_keep_every_digit() -> None:
    amounts = [2**63, 2**64, -(2**70), 10**40, 0.1, 5e-324, 1.7976931348623157e308]
    profile = loads(changed("resources.sys#0.amount", amounts), "a")
    assert profile["resources"]["sys#0"]["amount"] == amounts


def test_duplicate_keys_and_half_surrogates_are_tolerated() -> None:
    assert loads(VALID.replace(b'"machine"', b'"models": [], "machine": 1, "machine"'), "a")["models"] == []
    half = changed("resource_type_map.sys#0.uid", "\ud800")
    assert loads(dumps_object(loads(half, "a")), "b")["resource_type_map"]["sys#0"]["uid"] == "\ud800"


@pytest.mark.parametrize(("path", "value", "message"), [
    ("header", ..., "header: expected a mapping, it is missing"),
    ("header", [], "header: expected a mapping, found a list"),
    ("header.type", ..., "header.type: expected text, it is missing"),
    ("header.type", 1, "header.type: expected text, found a number"),
    ("header.type", "two words", "header.type: expected letters"),
    ("header.type", "", "header.type: expected letters"),
    ("header.type", "time\n", "header.type: expected letters"),
    ("header.cmd", ["a"], "header.cmd: expected text, found a list"),
    ("header.workload", "\udc80", "header.workload: expected text that can be written as UTF-8"),
    ("header.units", None, "header.units: expected a mapping, found nothing"),
    ("collector_info", ..., "collector_info: expected a mapping, it is missing"),
    ("collector_info.name", ..., "collector_info.name: expected text, it is missing"),
    ("collector_info.name", "", "collector_info.name: expected a name"),
    ("collector_info.params", "x", "collector_info.params: expected a mapping, found 'x'"),
    ("postprocessors", {}, "postprocessors: expected a list, found a mapping"),
    ("postprocessors", None, "postprocessors: expected a list, found nothing"),
    ("postprocessors.0", "normalizer", r"postprocessors\[0\]: expected a mapping"),
    ("postprocessors.0.name", "two words", r"postprocessors\[0\].name: expected a name without blanks"),
    ("origin", 5, "origin: expected text, found a number"),
    ("models", {}, "models: expected a list"),
    ("models.0", [], r"models\[0\]: expected a mapping"),
    ("models.0.coeffs", {}, r"models\[0\].coeffs: expected a list"),
    ("models.0.coeffs.0.name", ..., r"models\[0\].coeffs\[0\].name: expected text"),
    ("models.0.coeffs.0.value", "1", r"models\[0\].coeffs\[0\].value: expected a number"),
    ("resources", ..., "resources: expected the measured resources, it is missing"),
    ("resources", None, "resources: expected a mapping"),
    ("resources.sys#0", [], "resources.sys#0: expected a mapping of columns"),
    ("resources.sys#0.amount", 1, "resources.sys#0.amount: expected a list"),
    (
        "resources.sys#0.order",
        [1],
        "resources.sys#0: expected columns of equal length, found 2 in amount",
    ),
    ("resources.sys#0.snapshot", [1, "2"], "resources.sys#0.snapshot: expected a whole number"),
    ("resource_type_map.sys#0", ..., "resource_type_map.sys#0: expected the constants of a group"),
    ("resource_type_map.sys#0", 1, "resource_type_map.sys#0: expected a mapping"),
    ("resource_type_map.sys#0.snapshot", "1", "resource_type_map.sys#0.snapshot: expected a whole"),
    ("resource_type_map", [], "resource_type_map: expected a mapping"),
    ("global", [], "global: expected a mapping"),
    ("global", {"time": "1"}, "global.resources: expected a list, it is missing"),
    ("snapshots", {}, "snapshots: expected a list"),
    ("snapshots", [{"resources": [1]}], r"snapshots\[0\].resources\[0\]: expected a mapping"),
    ("snapshots", [{"resources": [], "models": 1}], r"snapshots\[0\].models: expected a list"),
])  # fmt: skip
def test_what_is_wrong_is_named(path: str, value: Any, message: str) -> None:
    data = changed(path, value)
    if path == "resources" and value is ...:
        data = dump({key: item for key, item in json.loads(data).items() if key != "resource_type_map"})
    with pytest.raises(ProfileError, match="^jobs/a.perf: " + message) as caught:
        loads(data, "jobs/a.perf")
    assert caught.value.hint


@pytest.mark.parametrize(("data", "message"), [
    (b"", "not JSON"),
    (b"\xff\xfe", "not JSON in UTF-8"),
    (b"\xef\xbb\xbf" + VALID, "not JSON"),
    ("{}".encode("utf-16"), "not JSON"),
    (VALID[:-1], "not JSON"),
    (VALID + b"}", "not JSON"),
    (b"[]", "expected a mapping"),
    (b"null", "expected a mapping"),
    (b"1" * 5000, "not JSON"),
    (b"[" * 100_000, "nested too deeply"),
    (b'{"a":' * 100_000, "nested too deeply"),
])  # fmt: skip
def test_what_is_no_profile_at_all(data: bytes, message: str) -> None:
    for read in (loads, head_of):
        with pytest.raises(ProfileError, match=f"^a.perf: .*{message}"):
            read(data, "a.perf")


def test_a_profile_that_is_too_large_is_refused() -> None:
    message = r"a.perf: \d+ bytes of profile, more than the limit of 100 \(profiles.max_size\)"
    with pytest.raises(ProfileError, match=message):
        loads(VALID, "a.perf", limit=100)


@pytest.mark.parametrize("value", [{1, 2}, object(), {(1, 2): 3}, b"bytes"])
def test_what_has_no_json_is_refused(value: Any) -> None:
    for write in (dumps_object, dumps_pending):
        with pytest.raises(ProfileError, match="cannot be written as JSON"):
            write(Profile(chunks=value))


def only_profile_error(data: bytes) -> None:
    for read in (loads, head_of):
        try:
            result = read(data, "fuzzed")
        except ProfileError:
            continue
        if isinstance(result, Profile):
            use(result)


def use(profile: Profile) -> None:
    """What is accepted must also be usable."""
    copy = profile.copy()
    resources = [resource for _, resource in profile.all_resources()]
    copy.update_resources(resources, replace=True)
    list(profile.all_resources(flatten_values=True))
    list(profile.all_snapshots())
    list(profile.all_models("param"))
    assert profile.configuration and ProfileHeader.of(profile)
    loads(dumps_pending(copy), "again")
    loads(dumps_object(copy), "again")


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    only_profile_error(data)


@given(values)
def test_random_json(value: Any) -> None:
    only_profile_error(dump(value))


@given(st.sampled_from([REGIONS, OLD]), st.data())
def test_random_json_in_place_of_any_part(regions: dict[str, Any], data: st.DataObject) -> None:
    regions = json.loads(json.dumps(regions))
    place: Any = regions
    while True:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], (dict, list)) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(values)
    only_profile_error(dump(regions))


@given(st.sampled_from([VALID, dump(OLD)]), st.data())
@settings(max_examples=examples(300))
def test_cut_and_flipped_profiles(valid: bytes, data: st.DataObject) -> None:
    only_profile_error(valid[: data.draw(st.integers(0, len(valid)))])
    flipped = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        flipped[data.draw(st.integers(0, len(valid) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    only_profile_error(bytes(flipped))


@pytest.mark.parametrize("depth", [100, 500, 800, 900, 950, 1000, 5000])
def test_deep_values_end_in_a_profile_or_a_named_error(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = opening * depth + b"1" + closing * depth
        try:
            profile = loads(VALID.replace(b'"uid": "sys"', b'"uid": ' + deep), "deep")
        except ProfileError:
            continue
        for act in (
            lambda profile: list(profile.all_resources(flatten_values=True)),
            lambda profile: profile.update_resources([{"uid": "g"}]),
            dumps_pending,
            dumps_object,
        ):
            try:
                act(profile)
            except ProfileError as error:
                assert "deep" in str(error)


needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"no folder {SAMPLES} of old profiles here")


@needs_samples
@pytest.mark.parametrize(("name", "kind", "collector", "snapshots", "resources"), [
    ("prof-1-time-2017-03-19-19-17-36", "time", "time", {0}, 3),
    ("prof-2-complexity-2017-03-20-21-40-42", "mixed", "trace", {0}, 25),
    ("prof-3-memory-2017-05-15-15-43-42", "memory", "memory", None, None),
])  # fmt: skip
def test_profiles_of_older_releases(name, kind, collector, snapshots, resources) -> None:
    data = (SAMPLES / f"{name}.perf").read_bytes()
    profile = loads(data, name)
    known = head_of(data, name)
    assert (
        (known.type, known.collector)
        == (kind, collector)
        == (profile.type, ProfileHeader.of(profile).collector)
    )
    found = list(profile.all_resources())
    assert snapshots is None or {number for number, _ in found} == snapshots
    assert len(found) == (resources or sum(len(c["amount"]) for c in json.loads(data)["resources"].values()))
    assert json.loads(dumps_pending(profile))["resources"] == json.loads(data)["resources"]
    use(profile)


@needs_samples
@pytest.mark.parametrize(("name", "message"), [
    ("corrupted-snapshots", r"snapshots\[0\].resources: expected a list, it is missing"),
    ("corrupted-global", "test: expected resources in one of the regions resources, global, snapshots"),
])  # fmt: skip
def test_damaged_profiles_of_older_releases(name: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        loads((SAMPLES / f"{name}.perf").read_bytes(), name)
