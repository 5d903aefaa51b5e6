"""The native libraries for 64-bit ARM, crossed by the build as it is, and their tests run by an emulator."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.collect._calls.events import Calls
from perun.collect.complexity.records import processes
from perun.core.errors import JobFailed
from perun.native.image import static_graph
from recorded import PROGRAMS, Recorded, read

# These run with the fixtures of this module.
from test_recorder import (
    test_addresses_are_those_of_the_program,  # noqa: F401
    test_every_function_of_c_is_recorded_with_its_amount,  # noqa: F401
    test_small_stacks_are_enough,  # noqa: F401
    test_threads_lose_nothing,  # noqa: F401
    test_very_deep_stacks_are_cut_and_say_so,  # noqa: F401
)

PROJECT = Path(__file__).parents[2]
EMULATOR = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
COMPILER = "aarch64-linux-gnu-gcc"
PACKAGES = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the build that was crossed."""
    missing = [tool for tool in (COMPILER, EMULATOR[0]) if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed (apt-get install {PACKAGES})")
    folder = tmp_path_factory.mktemp("arm64")
    cross = Path(__file__).with_name("arm64.ini")
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    for argv in (["setup", folder, PROJECT, "--cross-file", cross], ["compile", "-C", folder]):
        done = subprocess.run([*meson, *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "src" / "perun" / "collect"


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """As the fixture for this machine, for C."""

    def compiled(source: str, *options: str) -> Path:
        path = tmp_path / Path(source).stem
        always = ["-std=gnu11", "-O2", "-g", "-fno-builtin", "-pthread"]
        subprocess.run([COMPILER, *always, *options, "-o", path, PROGRAMS / source, "-ldl"], check=True)
        return path

    return compiled


@pytest.fixture
def record(libraries: Path, tmp_path: Path) -> Callable[..., Recorded]:
    """As the fixture for this machine: run a program with the recorder, here in the emulator."""
    runs: Counter[str] = Counter()

    def run(program: Path, *arguments: str | Path, unwind: str = "auto", **environ: str) -> Recorded:
        runs["run"] += 1
        file = tmp_path / f"recorded{runs['run']}"
        library = libraries / "memory" / "native" / "libperun_memory.so"
        settings = {
            "LD_PRELOAD": str(library),
            "PERUN_MEMORY_FILE": str(file),
            "PERUN_MEMORY_UNWIND": unwind,
            **environ,
        }
        done = subprocess.run(
            [*emulated(settings), program, *arguments], capture_output=True, timeout=300, check=False
        )
        return read(file, done)

    return run


def emulated(settings: dict[str, str]) -> list[str]:
    return [*EMULATOR, *(word for name, value in settings.items() for word in ("-E", f"{name}={value}"))]


def test_stacks_follow_frame_pointers(record: Callable[..., Recorded], program: Callable[..., Path]) -> None:
    done = record(program("list.c", "-fno-omit-frame-pointer"))
    stacks = [stack for stack, (_, size) in zip(done.stacks, done.allocated, strict=False) if size == 24]
    assert stacks
    assert all(len([name for name, _ in stack if name == "list"]) >= 2 for stack in stacks)


def test_a_call_graph_is_refused_by_the_name_of_the_machine(program: Callable[..., Path]) -> None:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed (apt-get install {PACKAGES})")
    made = program("list.c")
    with pytest.raises(JobFailed) as refused:
        static_graph(made)
    assert refused.value.message == (
        f"{made} is a program for arm64: Perun reads call graphs of programs for x86-64 only"
    )
    assert "build it for x86-64" in refused.value.hint


def test_calls_are_recorded(libraries: Path, tmp_path: Path) -> None:
    source, compiled, folder = tmp_path / "calls.c", tmp_path / "calls", tmp_path / "recorded"
    folder.mkdir()
    source.write_text(
        "int leaf(int n) { return n + 1; }\nint outer(int n) { return leaf(leaf(n)); }\n"
        "int main(void) { int n = 0; for (int i = 0; i < 1000; i++) n = outer(n); return n != 2000; }\n"
    )
    subprocess.run([COMPILER, "-O1", "-finstrument-functions", source, "-o", compiled], check=True)
    settings = {
        "LD_PRELOAD": str(libraries / "complexity" / "native" / "libperun_complexity.so"),
        "PERUN_COMPLEXITY_FOLDER": str(folder),
        "PERUN_COMPLEXITY_STORAGE": "1000",
    }
    subprocess.run([*emulated(settings), compiled], check=True, timeout=300)
    (process,) = processes(folder)
    found = Calls.joined(list(process.calls(process.started)))
    assert sorted(Counter(found.function.tolist()).values()) == [1, 1000, 2000]
    assert process.gaps.open == 0
