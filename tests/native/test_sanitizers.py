"""The recorder under the sanitizers of the compiler, and its compression against zlib."""

import os
import random
import shutil
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from compiling import CompilerCache, sanitized
from perun.collect._calls.events import Calls
from perun.collect.complexity.records import Gaps, processes
from perun.collect.complexity.selection import FileSelection, TableFunction, encoded
from perun.collect.memory.analysis import AllocationEvents
from perun.collect.memory.records import ExitState, MemoryRecording

SOURCES = Path(__file__).parents[2] / "src" / "perun" / "collect" / "memory" / "native"
PROGRAMS = Path(__file__).with_name("programs")
LOAD = (
    PROGRAMS / "load.c",
    *(source for source in sorted(SOURCES.glob("*.c")) if source.name != "interpose.c"),
)
"""The load with all of the recorder but its interposer."""


OPTIONS = ("-std=gnu11", "-g", "-O0", "-pthread", "-fno-omit-frame-pointer")


@pytest.fixture(scope="module")
def compiled(compiled_once: CompilerCache) -> Callable[..., Path]:
    """Compile a program or library: `compiled("-fsanitize=thread", source)`."""
    return lambda *options: sanitized(compiled_once, "cc", *OPTIONS, *options, "-ldl")


@pytest.fixture(scope="module")
def load(compiled: Callable[..., Path]) -> Path:
    """The load with all of the recorder but its interposer, under both sanitizers."""
    return compiled("-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SOURCES}", *LOAD)


@pytest.mark.slow
@pytest.mark.parametrize("follow", ["0", "1"])
@pytest.mark.parametrize("unwind", ["tables", "libunwind", "fp", "none"])
@pytest.mark.each_value("unwind", "follow")
def test_recorder_is_clean_under_load(load: Path, tmp_path: Path, unwind: str, follow: str) -> None:
    rounds, file = 1000, tmp_path / "recorded"
    settings = {
        "PERUN_MEMORY_FILE": str(file), "PERUN_MEMORY_UNWIND": unwind, "PERUN_MEMORY_FOLLOW": follow,
        "PERUN_MEMORY_REACHABLE": str(int(unwind == "tables")), "ASAN_OPTIONS": "detect_leaks=0"
    }  # fmt: skip
    done = subprocess.run(
        [load, str(rounds)], env=os.environ | settings, capture_output=True, text=True, timeout=60,
        check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    recording = MemoryRecording(file)
    events = AllocationEvents.joined(list(recording.pieces()))
    assert recording.end.state == ExitState.EXITED
    allocations, releases = int((~events.releases).sum()), int(events.releases.sum())
    assert allocations == 5 * rounds + 3000
    # A thread may wait between a realloc and that it failed for longer than the reader looks back.
    assert 0 <= releases - allocations < rounds / 50
    children = [path for path in tmp_path.glob("recorded.*") if path.suffix != ".tail"]
    assert len(children) == int(follow)
    for child in children:
        recording = MemoryRecording(child)
        events = AllocationEvents.joined(list(recording.pieces()))
        assert int((~events.releases).sum()) == rounds + 1
        assert recording.end.state == ExitState.QUICK_EXITED


@pytest.mark.slow
def test_threads_of_the_recorder_do_not_race(compiled: Callable[..., Path], tmp_path: Path) -> None:
    # Random addresses may be where the sanitizer has its own memory.
    fixed = ["setarch", "--addr-no-randomize"]
    if subprocess.run([*fixed, "true"], capture_output=True, check=False).returncode:
        pytest.skip("addresses cannot be kept from being random here")
    load = compiled("-fsanitize=thread", f"-I{SOURCES}", *LOAD)
    done = subprocess.run(
        [*fixed, load, "1000"], env=os.environ | {"PERUN_MEMORY_FILE": str(tmp_path / "recorded")},
        capture_output=True, text=True, timeout=120, check=False
    )  # fmt: skip
    assert "data race" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("source", "arguments"), [
    ("sizes.c", ["5000"]),
    ("containers.cpp", []),
    ("threads.c", []),
    ("deep.c", ["200"]),
    ("processes.c", []),
])  # fmt: skip
@pytest.mark.parametrize("unwind", ["tables", "fp"])
@pytest.mark.each_value("source", "unwind")
def test_interposer_has_no_undefined_behaviour(record, program, compiled, source, arguments, unwind) -> None:
    library = compiled(
        *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-fno-builtin", "-fPIC", "-shared"),
        *("-fvisibility=hidden", *sorted(SOURCES.glob("*.c"))),
    )
    done = record(program(source), *arguments, library=library, unwind=unwind)
    assert done.status == 0 and done.allocated


@pytest.fixture(scope="module")
def deflate(compiled: Callable[..., Path]) -> Path:
    """A program that compresses its input in pieces of as many bytes as its argument says."""
    return compiled(
        *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{SOURCES}"),
        *(PROGRAMS / "deflate.c", SOURCES / "deflate.c"),
    )


def inputs() -> dict[str, bytes]:
    source = random.Random(1)
    fibonacci = [1, 1]
    while len(fibonacci) < 24:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    skewed = bytearray(b"".join(bytes([i]) * count for i, count in enumerate(fibonacci)))
    source.shuffle(skewed)
    return {
        "nothing": b"",
        "one byte": b"x",
        "one byte often": bytes(100_000),
        "noise": source.randbytes(70_000),
        "longest codes": bytes(skewed),
        "text": b"".join(b"%d bottles hang on the wall, " % (i % 99) for i in range(6000)),
        "periods": bytes(i % 251 for i in range(40_000)) * 2,
        "far matches": (noise := source.randbytes(32_768)) + noise + noise[1:],
    }


@pytest.mark.parametrize("piece", [1, 300, 16_384, 1_000_000])
@pytest.mark.parametrize("name", inputs())
@pytest.mark.each_value("name", "piece")
def test_zlib_reads_what_is_compressed(deflate: Path, name: str, piece: int) -> None:
    data = inputs()[name][: 3000 if piece == 1 else None]
    done = subprocess.run([deflate, str(piece)], input=data, capture_output=True, check=True)
    checksum, packed = int.from_bytes(done.stdout[:4], "little"), done.stdout[4:]
    reader = zlib.decompressobj(-15)
    assert reader.decompress(packed) == data and reader.eof and not reader.unused_data
    assert checksum == zlib.crc32(data)
    if piece >= 16_384 and name not in ("noise", "nothing", "one byte"):
        assert len(packed) < 1.4 * len(zlib.compress(data, 1)) + 50 * (1 + len(data) // piece)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc"), reason="no compiler for 64-bit ARM")
def test_compiles_for_other_processors(tmp_path: Path) -> None:
    options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-fPIC", "-shared"]
    subprocess.run(
        ["aarch64-linux-gnu-gcc", *options, "-o", tmp_path / "recorder.so", *SOURCES.glob("*.c"), "-ldl"],
        check=True,
    )


# -- The runtime that records calls under the sanitizers of the compiler -----------------------------


RUNTIME = Path(__file__).parents[2] / "src" / "perun" / "collect" / "complexity" / "native"
INSTRUMENT = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-finstrument-functions")


Built = Callable[[str, str], Path]


@pytest.fixture
def built(compiled_once: CompilerCache) -> Built:
    """Compile a program with the runtime in it: `built("trace_list.c", "thread")`."""

    def build(source: str, sanitizer: str) -> Path:
        common = ("cc", "-std=gnu11", "-g", "-O1", "-pthread")
        common = (*common, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")
        # The runtime itself is not instrumented: it is compiled apart.
        runtime = [compiled_once(*common, "-c", path) for path in sorted(RUNTIME.glob("*.c"))]
        # The linker tells objects from scripts by what is in them.
        return sanitized(compiled_once, *common, *INSTRUMENT, PROGRAMS / source, *runtime)

    return build


# The sanitizer of threads loses track of inlined frames that longjmp leaves.
@pytest.mark.parametrize(("source", "args", "calls", "sanitizer"), [
    ("trace_list.c", "300", 602, "address,undefined"),
    pytest.param("trace_list.c", "300", 602, "thread", marks=pytest.mark.slow),
    pytest.param(
        "trace_recursion.c", "3000", 1973 + 11 + 3001 + 1, "address,undefined", marks=pytest.mark.slow
    ),
    pytest.param("trace_recursion.c", "3000", 1973 + 11 + 3001 + 1, "thread", marks=pytest.mark.slow),
    ("trace_threads.c", "500", 4 * (1 + 500 * 4) + 1, "address,undefined"),
    ("trace_threads.c", "500", 4 * (1 + 500 * 4) + 1, "thread"),
    ("trace_longjmp.c", "100", 1 + 100 + 400 + 50 + 150, "address,undefined"),
    ("trace_fork.c", "50", 1 + 2 + 2 + 150, "address,undefined"),
    pytest.param("trace_fork.c", "50", 1 + 2 + 2 + 150, "thread", marks=pytest.mark.slow),
])  # fmt: skip
def test_clean(built: Built, tmp_path: Path, source: str, args: str, calls: int, sanitizer: str) -> None:
    process_count = 3 if "fork" in source else 1
    found = recorded(built(source, sanitizer), args, tmp_path, [])
    assert len(found) == process_count and sum(len(made) for _, made in found) == calls
    for gaps, _ in found:
        assert gaps._replace(missed=0) == Gaps()


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
@pytest.mark.parametrize("outer", [1, 3])
@pytest.mark.each_value("outer", "sanitizer")
def test_clean_where_calls_are_left_out(built: Built, tmp_path: Path, outer: int, sanitizer: str) -> None:
    program = built("trace_threads.c", sanitizer)
    every = {"outer": outer, "inner": 7}
    shown = subprocess.run(["nm", "-S", program], check=True, capture_output=True, text=True).stdout
    symbols = [line.split() for line in shown.splitlines() if line.split()[-1] in ("work", "outer", "inner")]
    listed = sorted(
        TableFunction(int(address, 16), int(size, 16), True, every.get(name, 1))
        for address, size, _, name in symbols
    )
    ((gaps, calls),) = recorded(program, "500", tmp_path, listed)
    assert gaps == Gaps()
    per_thread = 1 + -(-500 // outer) + -(-1500 // 7)
    assert len(calls) == 4 * per_thread + 1
    for thread in np.unique(calls.thread):
        own = calls.where(calls.thread == thread)
        assert len(np.unique(own.order)) == len(own)
        if len(own) > 1:  # work, and all that is within, which counts though it is left out
            assert 1 + 500 * 4 - 12 <= int(own.order.max()) < 1 + 500 * 4
            assert (own.start[np.argsort(own.order)][1:] >= own.start[np.argsort(own.order)][:-1]).all()


def recorded(
    program: Path, args: str, folder: Path, listed: Sequence[TableFunction]
) -> list[tuple[Gaps, Calls]]:
    """What each process of the program records, which must end well and without a word of the sanitizer."""
    into = folder / "recorded"
    into.mkdir()
    (folder / "table").write_bytes(encoded([FileSelection(str(program), listed)], only_listed=False))
    settings = {
        "PERUN_COMPLEXITY_FOLDER": str(into),
        "PERUN_COMPLEXITY_TABLE": str(folder / "table"),
        "PERUN_COMPLEXITY_STORAGE": "100",
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    }
    done = subprocess.run(
        [program, args], env={**os.environ, **settings}, capture_output=True, text=True, timeout=120,
        check=False
    )  # fmt: skip
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer cannot run on this kernel")
    assert (done.returncode, done.stderr) == (0, "")
    found = []
    for process in processes(into):
        calls = Calls.joined(list(process.calls(process.started)))
        found.append((process.gaps, calls))
    return found
