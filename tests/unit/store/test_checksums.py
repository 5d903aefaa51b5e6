"""Checksums beside files whose own format has no room for one."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perun.store.objects import Checksums, NotedChecksum, NotedChecksums


@pytest.fixture
def there(tmp_path: Path) -> Iterator[set[str]]:
    """The names of the files that exist; a test adds those that it needs."""
    yield {"a.perf"}


@pytest.fixture
def checksums(tmp_path: Path, there: set[str]) -> Checksums:
    return Checksums(tmp_path / ".perun" / "sums" / "jobs", there.__contains__)


@pytest.fixture
def store_exists(tmp_path: Path) -> None:
    (tmp_path / ".perun").mkdir()


def sha1(content: str) -> str:
    return hashlib.sha1(content.encode()).hexdigest()


pytestmark = pytest.mark.usefixtures("store_exists")


def test_what_is_noted_is_read(checksums: Checksums) -> None:
    checksums.note("a.perf", sha1("old"), 1)
    checksums.note("a.perf", sha1("new"), 2)
    checksums.note("name with blanks \n ž.perf", sha1("b"), 3)
    assert checksums.read() == NotedChecksums(
        {
            "a.perf": [NotedChecksum(sha1("old"), 1), NotedChecksum(sha1("new"), 2)],
            "name with blanks \n ž.perf": [NotedChecksum(sha1("b"), 3)],
        },
        0,
    )


def test_without_a_file_there_are_none(checksums: Checksums) -> None:
    assert checksums.read() == NotedChecksums({}, 0)


def test_a_checksum_that_cannot_be_noted_is_no_failure(checksums: Checksums) -> None:
    checksums.path.mkdir(parents=True)
    checksums.note("a.perf", sha1("a"), 1)
    assert checksums.read() == NotedChecksums({}, 0)


def test_no_link_is_followed(checksums: Checksums, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"text")
    checksums.path.parent.mkdir()
    checksums.path.symlink_to(other)
    checksums.note("a.perf", sha1("a"), 1)
    assert other.read_bytes() == b"text"


@pytest.mark.parametrize(
    ("content", "time", "verdict"),
    [("new", 7, "intact"), ("old", 7, "intact"), ("rotten", 2, "damaged"), ("edited", 3, "changed")],
)
def test_verdicts(checksums: Checksums, content: str, time: int, verdict: str) -> None:
    checksums.note("a.perf", sha1("old"), 1)
    checksums.note("a.perf", sha1("new"), 2)
    assert checksums.read().verdict("a.perf", sha1(content), time) == verdict
    assert checksums.read().verdict("b.perf", sha1(content), time) == "unknown"


def test_a_line_that_a_killed_writer_left_costs_no_other(checksums: Checksums) -> None:
    checksums.note("a.perf", sha1("old"), 1)
    checksums.note("a.perf", sha1("lost"), 2)
    checksums.path.write_bytes(checksums.path.read_bytes()[:-9])
    checksums.note("a.perf", sha1("new"), 3)
    noted = checksums.read()
    assert noted.checksums == {"a.perf": [NotedChecksum(sha1("old"), 1), NotedChecksum(sha1("new"), 3)]}
    assert noted.damaged == 1


def test_compacting_keeps_the_two_newest_of_the_files_that_are_there(checksums: Checksums) -> None:
    for number in range(4):
        checksums.note("a.perf", sha1(str(number)), number)
    checksums.note("gone.perf", sha1("gone"), 1)
    with checksums.path.open("ab") as file:
        file.write(b"half a li")
    checksums.compact()
    assert checksums.read() == NotedChecksums(
        {"a.perf": [NotedChecksum(sha1(str(one)), one) for one in (2, 3)]}, 0
    )
    head, _, lines = checksums.path.read_bytes().partition(b"\n")
    assert head == b"# %d" % len(lines)


@pytest.fixture
def compacted_at(checksums: Checksums, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the file at which it was compacted."""
    sizes: list[int] = []
    compact = checksums.compact

    def watched() -> None:
        sizes.append(checksums.path.stat().st_size)
        compact()

    monkeypatch.setattr(checksums, "compact", watched)
    return sizes


def fill(checksums: Checksums, size: int) -> None:
    """Make the file so long by old checksums of a file that is there."""
    checksums.path.unlink(missing_ok=True)
    checksums.note("a.perf", sha1("a"), 1)
    line = checksums.path.read_bytes()
    checksums.path.write_bytes(line * (size // len(line)))


def test_a_file_is_compacted_once_it_is_large(checksums: Checksums, compacted_at: list[int]) -> None:
    fill(checksums, 2 * 65_536 - 200)
    checksums.note("a.perf", sha1("b"), 2)
    assert compacted_at == []
    fill(checksums, 2 * 65_536)
    checksums.note("a.perf", sha1("b"), 2)
    assert len(compacted_at) == 1 and checksums.path.stat().st_size < 300


def test_a_large_file_is_compacted_once_it_has_doubled(checksums, compacted_at, there: set[str]) -> None:
    names = [f"{number}.perf" for number in range(2200)]
    there.update(names)
    for name in names:
        checksums.note(name, sha1(name), 1)
    checksums.compact()
    after, before = checksums.path.stat().st_size, len(compacted_at)
    assert after > 2 * 65_536
    content = checksums.path.read_bytes()
    checksums.path.write_bytes(content + b"\n" * (after - 200))
    checksums.note("a.perf", sha1("a"), 1)
    assert len(compacted_at) == before
    checksums.path.write_bytes(content + b"\n" * after)
    checksums.note("a.perf", sha1("a"), 1)
    assert len(compacted_at) == before + 1
    assert set(checksums.read().checksums) == {*names, "a.perf"}


@pytest.mark.parametrize("time", ["x", "1.5"])
def test_lines_that_make_no_sense_are_damaged(checksums: Checksums, time: str, crc) -> None:
    checksums.path.parent.mkdir()
    checksums.path.write_bytes(crc(f'{sha1("a")} {time} "a.perf"'.encode()) + crc(b"short") + b"# 9\n\n")
    assert checksums.read() == NotedChecksums({}, 2)


@pytest.fixture
def crc() -> Callable[[bytes], bytes]:
    """Makes a line whose own checksum is right."""
    from zlib import crc32

    return lambda content: b"%08x %s\n" % (crc32(content), content)
