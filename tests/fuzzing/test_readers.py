"""Files of compilers that are damaged, or of other releases: a named error, or what can be read of them."""

import struct
from pathlib import Path
from random import Random

import numpy
import pytest

from compiling import CompilerCache
from perun.fuzz.coverage.gcno import DamagedNotes, NotElf, read_module, read_notes
from perun.fuzz.coverage.gcov import CounterFiles
from perun.fuzz.coverage.lines import LineCounts

SOURCE = Path(__file__).parent / "programs" / "counting.c"


@pytest.fixture(scope="module")
def program(compile_once: CompilerCache) -> Path:
    return compile_once("gcc", "-O0", "--coverage", SOURCE)


def notes_of(program: Path) -> Path:
    return Path(read_module(program).functions[0].notes)


def damaged(data: bytes, random: Random) -> bytes:
    made = bytearray(data)
    for _ in range(random.randint(1, 8)):
        made[random.randrange(len(made))] = random.choice((0, 1, 0x7F, 0xFF, random.randrange(256)))
    return bytes(made[: random.choice((len(made), random.randrange(len(made))))])


def test_damaged_notes_are_an_error_or_notes(program: Path, tmp_path: Path) -> None:
    data = notes_of(program).read_bytes()
    file = tmp_path / "file.gcno"
    refused = 0
    for seed in range(400):
        file.write_bytes(damaged(data, Random(seed)))
        try:
            for graph in read_notes(file).functions:
                LineCounts([(graph, 0)])
        except DamagedNotes as problem:
            assert str(problem)
            refused += 1
    assert refused > 50


def test_notes_with_the_blocks_of_a_function_twice_are_refused(program: Path, tmp_path: Path) -> None:
    """Arcs that were read before would lead to blocks that there are no more."""
    data = notes_of(program).read_bytes()
    tag, order = (0x01410000).to_bytes(4, "little"), "little"
    start = data.index(tag)
    arcs = data.index((0x01430000).to_bytes(4, "little"), start)
    end = arcs + 8 + int.from_bytes(data[arcs + 4 : arcs + 8], order) * (1 if data[4:8][::-1] >= b"B2" else 4)
    fewer = data[start : start + 8] + (2).to_bytes(4, "little")
    file = tmp_path / "file.gcno"
    file.write_bytes(data[:end] + fewer + data[end:])
    with pytest.raises(DamagedNotes, match="blocks twice"):
        read_notes(file)


def test_a_damaged_program_is_none_or_has_fewer_functions(program: Path, tmp_path: Path) -> None:
    data = program.read_bytes()
    file = tmp_path / "program"
    for seed in range(150):
        random = Random(seed)
        made = bytearray(data)
        start = random.choice((0, len(data) - 3000, random.randrange(len(data))))
        for _ in range(6):
            made[min(start + random.randrange(64), len(made) - 1)] = random.randrange(256)
        file.write_bytes(made)
        try:
            assert len(read_module(file).functions) <= 10
        except NotElf:
            continue


def test_damaged_counters_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "counters"
    files = CounterFiles(folder)
    files.clear()
    header = struct.pack("<4sIII", b"adcg", 0x42323252, 7, 0)
    function = struct.pack("<IIIII", 0x01000000, 12, 1, 2, 3)
    counters = struct.pack("<Iiqq", 0x01A10000, 16, 40, 2)
    zeros = struct.pack("<Ii", 0x01A10000, -16)
    (folder / "a.gcda").write_bytes(header + function + counters)
    (folder / "b.gcda").write_bytes(header + function + zeros)
    (folder / "c.gcda").write_bytes(header + function + counters[:-3])
    (folder / "d.gcda").write_bytes(b"")
    functions = files.functions()
    assert [(one.notes, one.stamp, one.key, one.counters) for one in functions] == [
        ("/a.gcno", 7, (1, 2, 3), 2),
        ("/b.gcno", 7, (1, 2, 3), 2),
    ]
    files.expect(functions)
    assert numpy.array_equal(files.counters(), [40, 2, 0, 0])
    files.clear()
    assert numpy.array_equal(files.counters(), [0, 0, 0, 0])


def notes(version: bytes, unit: int, extra: int) -> bytes:
    """Notes of one function with a loop, as a release writes them: `unit` is what lengths are counted in."""

    def record(tag: int, body: bytes) -> bytes:
        return struct.pack("<II", tag, len(body) // unit) + body

    def string(text: bytes) -> bytes:
        text += b"\0" * (4 - len(text) % 4 if unit == 4 else 1)
        return struct.pack("<I", len(text) // unit) + text

    def words(*numbers: int) -> bytes:
        return struct.pack(f"<{len(numbers)}I", *numbers)

    function = words(1, 2, 3) + string(b"work") + words(0) + string(b"w.c") + words(1, 1, 9, 9)[: 4 * extra]
    return (
        b"oncg" + version + words(7)
        + (words(0) if unit == 1 else b"") + string(b"/folder") + words(1)
        + record(0x01000000, function)
        + record(0x01410000, words(5))
        + record(0x01430000, words(0, 2, 5)) + record(0x01430000, words(2, 3, 0, 4, 0))
        + record(0x01430000, words(3, 2, 5)) + record(0x01430000, words(4, 1, 5))
        + record(0x01450000, words(2, 0) + string(b"w.c") + words(5, 0, 0))
        + record(0x01470000, words(1, 2, 3))
        + record(0x01450000, words(3, 0) + string(b"w.c") + words(6, 0, 0))
    )  # fmt: skip


@pytest.mark.parametrize(
    "version, unit, extra", [(b"*39A", 4, 4), (b"*22B", 1, 4), (b"*33B", 1, 4), (b"*14B", 1, 4)]
)
def test_notes_of_other_releases(tmp_path: Path, version: bytes, unit: int, extra: int) -> None:
    file = tmp_path / "w.gcno"
    if unit == 4:
        version = b"*39A"  # 9.3
    file.write_bytes(notes(version, unit, extra))
    found = read_notes(file)
    assert (found.stamp, found.folder) == (7, "/folder")
    (graph,) = found.functions
    assert (graph.name, graph.key, graph.blocks) == ("work", (1, 2, 3), 5)
    lines = LineCounts([(graph, 0)])
    # Counted are the two ways out of the head of the loop: into its body, and to the end.
    assert [line.number for line in lines.lines] == [5, 6]
    assert lines.counts(numpy.asarray([7, 1], numpy.int64)).tolist() == [8, 7]


def test_other_compilers_are_named(tmp_path: Path) -> None:
    file = tmp_path / "w.gcno"
    for version, text in ((b"*804", "GCC 4"), (b"ab?z", "unknown")):
        file.write_bytes(notes(version, 4, 4))
        with pytest.raises(DamagedNotes, match=text):
            read_notes(file)
