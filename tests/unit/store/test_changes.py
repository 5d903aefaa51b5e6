import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import DamagedStore, ProfileNotFound
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store import Store
from perun.store.changes import ChangeRecord, parse, serialize

BASE = "0123456789abcdef" * 2 + "01234567"
Change = PerformanceChange


def record(
    location: str = "main", change: PerformanceChange = Change.Degradation, type_: str = "order",
    command: str = "./app -v input", before: str = "linear", after: str = "quadratic"
) -> ChangeRecord:  # fmt: skip
    info = DegradationInfo(change, location, before, after, type_, 1.5, "r_square", 0.95, rdr=0.25)
    return ChangeRecord(info, BASE, command)


def read_line(line: str) -> ChangeRecord:
    (one,) = parse(line.encode(), "f")
    return one


def test_the_lines_are_those_of_old_releases_sorted_without_a_break_at_the_end() -> None:
    assert serialize([record()]).decode() == (
        "main PerformanceChange.Degradation order linear quadratic 1.5 r_square 0.95 0.25 "
        f"{BASE} ./app -v input"
    )
    lines = serialize([record("b"), record("a"), record("c")]).decode().split("\n")
    assert [line[0] for line in lines] == ["a", "b", "c"] and serialize([]) == b""
    assert parse(b"", "f") == []


def test_no_change_is_not_stored(store: Store, minor: Callable[..., str]) -> None:
    store.changes.merge(minor(), [record("a", Change.NoChange), record("b")])
    assert store.changes.read(minor()) == [record("b")]
    store.changes.merge(minor(), [record("b", Change.NoChange)])
    assert store.changes.read(minor()) == [] and store.changes.path(minor()).read_bytes() == b""


def test_a_later_result_replaces_an_earlier_one(store: Store, minor: Callable[..., str]) -> None:
    kept = [record(type_="ratio"), record(command="./other"), record("other")]
    store.changes.merge(minor(), [record(), *kept])
    store.changes.merge(minor(), [record(change=Change.Optimization)])
    assert sorted(store.changes.read(minor()), key=str) == sorted(
        [record(change=Change.Optimization), *kept], key=str
    )


def test_reading_creates_nothing(store: Store, minor: Callable[..., str]) -> None:
    assert store.changes.read(minor()) == []
    assert os.listdir(store.root / "objects") == []


def test_versions_with_changes(store: Store, minor: Callable[..., str]) -> None:
    store.changes.merge(minor(), [record()])
    other = store.root / "objects" / "TO"
    other.mkdir()
    (other / "AD.changes").write_bytes(b"")
    assert list(store.changes.minors()) == [minor()]
    with pytest.raises(ProfileNotFound):
        store.changes.read("TOAD")


texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
numbers = st.floats(allow_nan=False)
infos = st.builds(
    DegradationInfo,
    res=st.sampled_from([change for change in Change if change is not Change.NoChange]),
    loc=texts, fb=texts, tt=texts, t=texts, rd=numbers, ct=texts, cr=numbers, rdr=numbers,
)  # fmt: skip
records = st.builds(
    ChangeRecord, info=infos, baseline=st.sampled_from([BASE, "ab" * 32, "HEAD"]), command=texts
)


@given(st.lists(records, max_size=4))
def test_round_trip(expected: list[ChangeRecord]) -> None:
    assert sorted(parse(serialize(expected), "f"), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "command", ["", "a  b", " a ", "x %0A y", "%250A", "%%0A%", "a\nb\rc", "curl http://x/a%20b"]
)
def test_any_command_survives(command: str) -> None:
    assert read_line(serialize([record(command=command)]).decode()).command == command


@pytest.mark.parametrize(("tail", "expected"), [
    ("1.5 r_square 0.95 0.25", (1.5, "r_square", 0.95, 0.25)),
    ("1.5 r_square 0.95", (1.5, "r_square", 0.95, 0.0)),
    ("1.5", (1.5, "no", 0.0, 0.0)),
    ("-inf no nan 0", (float("-inf"), "no", None, 0.0)),
])  # fmt: skip
@pytest.mark.parametrize("location", ["main", "a long location", ""])
@pytest.mark.parametrize("values", ["1.0 2.0", "1.0 ms 2.0 ms", "linear quadratic"])
def test_lines_of_old_releases(tail: str, expected: tuple[object, ...], location: str, values: str) -> None:
    if len(tail.split()) == 1 and " ms " in values:
        return  # `2.0 ms 1.5` reads as rate, type of confidence and confidence as well
    line = f"{location} PerformanceChange.Degradation order {values} {tail} {BASE} ./app a b"
    info, baseline, command = read_line(line)
    assert (info.location, info.type, baseline, command) == (location, "order", BASE, "./app a b")
    assert f"{info.from_baseline} {info.to_target}" == values
    assert (info.rate_degradation, info.confidence_type) == expected[:2]
    assert info.confidence_rate == expected[2] or expected[2] is None
    assert info.rate_degradation_relative == expected[3]


def test_blanks_in_a_type_of_an_old_release() -> None:
    info = read_line(f"f PerformanceChange.Optimization total amount 1 2 -0.5 no 0 {BASE} cmd").info
    assert (info.type, info.from_baseline, info.to_target) == ("total amount", "1", "2")


def test_other_line_ends_are_read() -> None:
    data = serialize([record("a"), record("b")])
    assert parse(data.replace(b"\n", b"\r\n") + b"\r\n\n", "f") == parse(data, "f")


@pytest.mark.parametrize(("line", "message"), [
    ("nonsense", "PerformanceChange"),
    ("PerformanceChange.Degradation order a b 1", "PerformanceChange"),
    (f"f PerformanceChange.Worse order a b 1.5 no 0 0 {BASE} cmd", "PerformanceChange"),
    ("f PerformanceChange.Degradation order a b 1.5 no 0 0 deadbeef cmd", "baseline"),
    (f"f PerformanceChange.Degradation order a b often no none {BASE} cmd", "rate"),
    (f"f PerformanceChange.Degradation order a 1.5 {BASE}", "baseline"),
])  # fmt: skip
def test_damage_names_file_and_line(line: str, message: str) -> None:
    data = serialize([record()]) + b"\n" + line.encode()
    with pytest.raises(DamagedStore, match=rf"the-file, line 2: .*{message}"):
        parse(data, "the-file")


def test_a_damaged_file_is_left_alone(store: Store, minor: Callable[..., str]) -> None:
    path = store.changes.path(minor())
    path.parent.mkdir()
    path.write_bytes(b"\xff")
    with pytest.raises(DamagedStore, match="UTF-8"):
        store.changes.merge(minor(), [record()])
    assert path.read_bytes() == b"\xff"


@given(st.data())
def test_any_bytes_are_changes_or_damaged(data: st.DataObject) -> None:
    raw = bytearray(serialize([record("a b"), record("b", command="x y")]))
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), max_size=6)
    ):
        raw[position] = value
    for content in (bytes(raw[: data.draw(st.integers(0, len(raw)))]), data.draw(st.binary(max_size=80))):
        try:
            parse(content, "f")
        except DamagedStore as problem:
            assert problem.message.startswith("f")
