"""The engine uftrace leaves a program as it is: what it would change it leaves out or refuses, by name."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compiling import CompilerCache
from perun.collect.trace.engines import uftrace_safety
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.engines.uftrace_safety import (
    CHANGED,
    IN_VECTORS,
    JUMPED_INTO,
    KEPT,
    NO_DEBUG_INFORMATION,
    unsafe_functions,
    unwinds,
)
from perun.collect.trace.plan import TraceSelection, make_plan
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.native.binary import Binary
from traced import PROGRAMS, Trace, built, calls, sizes, sources

OPTIMISED = ("-g", "-O2", "-fno-inline", "-pthread")
Optimised = Callable[..., Path]


@pytest.fixture
def optimised(compiled_once: CompilerCache, tmp_path: Path) -> Optimised:
    """Compile one of the programs with -O2, and further options."""

    def build(source: str, *options: str) -> Path:
        made = compiled_once("cc", *OPTIMISED, *options, PROGRAMS / source)
        return Path(shutil.copy(made, tmp_path / source.partition(".")[0]))

    return build


@pytest.fixture
def uftrace() -> None:
    if not shutil.which("uftrace"):
        pytest.skip("uftrace is not installed")


def printed(folder: Path, command: str) -> str:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout


def shown(capfd: pytest.CaptureFixture[str]) -> str:
    return capfd.readouterr().out


def unsafe(program: Path, tool: str = "objdump") -> dict[str, str]:
    """The functions that are left out, each with the reason."""
    with Binary(program) as binary:
        probes = make_plan([binary], TraceSelection("userspace")).probes
    found = unsafe_functions(probes, tool)
    return {probes[number].function.symbol: reason for number, reason in found.items()}


@pytest.mark.usefixtures("uftrace")
def test_floating_numbers_stay_what_they_are(optimised: Optimised, trace: Trace, capfd) -> None:
    """With the registers of `main` changed the sum is 0.0."""
    program = optimised("trace_scale.c")
    try:
        notes = trace(program, engine="uftrace", output_handling="default")["trace"]["notes"]
    except CollectorUnavailable as failure:
        notes = failure.message.split("; ")
    assert shown(capfd) == "315.0\n"
    assert any(re.search(rf"scale\b.*: {IN_VECTORS}", note) for note in notes)


@pytest.mark.usefixtures("uftrace")
def test_functions_without_floating_numbers_are_traced(compiled, trace: Trace, capfd, tmp_path: Path) -> None:
    program = compiled("trace_floats.c")
    profile = trace(program, engine="uftrace", output_handling="default")
    assert shown(capfd) == printed(tmp_path, f"./{program.name}")
    assert calls(profile) == {"main": 1, "whole": 20, "longer": 20}
    assert sizes(profile, "whole") == list(range(20))


def test_what_is_unsafe(compiled: Callable[..., Path], optimised: Optimised) -> None:
    floats = {"scale", "rounded", "half", "of_mixed", "point_of", "doubled"}
    found = unsafe(compiled("trace_floats.c"))
    assert {name for name, reason in found.items() if reason == IN_VECTORS} == floats
    assert set(found) == {*floats, "sum_of"}
    # With -O2 the caller may keep its sum in a register that it knows its own functions not to use.
    assert {name for name, reason in unsafe(optimised("trace_floats.c")).items() if reason == KEPT} == {
        "whole",
        "longer",
    }
    assert set(unsafe(optimised("trace_floats.c", "-fno-ipa-ra"))) == {*floats, "sum_of"}
    assert set(unsafe(optimised("trace_pack.c")).values()) <= {CHANGED}
    program = optimised("trace_pack.c", "-fno-ipa-cp", "-fno-ipa-sra")
    assert unsafe(program) == {} and unsafe(program, tool="")["put"] == KEPT
    assert set(unsafe(optimised("trace_pack.c", "-g0")).values()) == {NO_DEBUG_INFORMATION}


def test_programs_of_perun_need_no_proof(optimised: Optimised, monkeypatch, tmp_path: Path) -> None:
    """Engines record one whose functions are written as instructions, to find what a call costs."""
    program = optimised("trace_pack.c", "-g0")
    assert unsafe(program)
    monkeypatch.setattr(uftrace_safety, "OWN", tmp_path)
    assert not unsafe(program)


def test_a_loop_to_what_is_replaced(tmp_path: Path) -> None:
    program = built(
        tmp_path / "spins", "-g -O1 -fno-inline",
        "void spins(volatile int *left) { while (--*left) ; }\n"
        "int main(void) { volatile int left = 9; spins(&left); return 0; }\n",
    )  # fmt: skip
    assert unsafe(program) == {"spins": JUMPED_INTO}


@pytest.mark.usefixtures("uftrace")
@pytest.mark.parametrize("options", [(), ("-fno-ipa-cp", "-fno-ipa-sra")])
def test_threads_with_sizes_behind_pointers(optimised, trace: Trace, capfd, options, tmp_path: Path) -> None:
    program = optimised("trace_pack.c", *options)
    profile = trace(program, engine="uftrace", output_handling="default")
    assert shown(capfd) == printed(tmp_path, f"./{program.name}")
    assert "incomplete" not in profile["header"]
    counted = calls(profile)
    assert counted["put"] == 2 * counted["update"] and counted["work"] == 8
    if options:
        assert counted["pack"] == 40
    assert sources(profile)["put"] == "call-order"
    assert any("put" in note and "behind pointers" in note for note in profile["trace"]["notes"])


@pytest.mark.usefixtures("uftrace")
@pytest.mark.parametrize("way", ["exit", "cancel"])
def test_what_leaves_functions_otherwise_is_refused(compiled, trace: Trace, way: str) -> None:
    program = compiled("trace_stacks.c")
    assert unwinds(str(program)) == "pthread_exit"
    with pytest.raises(CollectorUnavailable, match="trace_stacks uses pthread_exit") as failure:
        trace(program, way, engine="uftrace")
    assert "--engine ebpf" in failure.value.hint


@pytest.mark.usefixtures("uftrace")
def test_calls_that_the_compiler_tells_are_counted_once_or_refused(optimised, trace: Trace) -> None:
    program = optimised("trace_pack.c", "-finstrument-functions")
    with pytest.raises(
        CollectorUnavailable, match="trace_pack is built with -finstrument-functions"
    ) as failure:
        trace(program, engine="uftrace")
    assert "--engine ebpf" in failure.value.hint
    profile = trace(optimised("trace_pack.c", "-pg"), engine="uftrace")
    assert calls(profile)["work"] == 8
    assert not any("could not patch" in note for note in profile["trace"]["notes"])


@pytest.mark.usefixtures("uftrace")
def test_what_cannot_be_patched_is_told(compiled: Callable[..., Path], trace: Trace) -> None:
    profile = trace(compiled("trace_short.c"), engine="uftrace")
    found = calls(profile)
    assert found["sums"] == 15
    for name in {"add", "passes", "sums", "main"} - set(found):
        assert any(re.search(rf"did not trace .*\b{name}\b", note) for note in profile["trace"]["notes"])
    assert "add" not in found  # five bytes: lea, ret


@pytest.mark.usefixtures("uftrace")
def test_depth(trace: Trace, compiled_once: CompilerCache, tmp_path: Path) -> None:
    source = PROGRAMS / "trace_depth.c"
    made = compiled_once("cc", "-g", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", source)
    program = Path(shutil.copy(made, tmp_path / "trace_depth"))
    deep = trace(program, "5000", engine="uftrace")
    assert any("1,024 calls within each other, which deep reached" in one for one in deep["trace"]["notes"])
    assert "deeper than 1,024" in deep["header"]["incomplete"][0]["reason"]
    flat = trace(program, "500", engine="uftrace")
    assert calls(flat) == {"main": 1, "deep": 501}
    assert "incomplete" not in flat["header"]


@pytest.mark.usefixtures("uftrace")
def test_a_program_that_is_killed(trace: Trace, tmp_path: Path) -> None:
    program = built(
        tmp_path / "dies", "-g -O1 -fno-inline",
        "#include <stdlib.h>\nint twice(int n) { volatile int m = n; return m * 2; }\n"
        "int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += twice(i); if (s) abort(); }\n",
    )  # fmt: skip
    profile = trace(program, engine="uftrace")
    assert calls(profile)["twice"] == 9
    assert {"reason": "killed", "amount": 6, "unit": "signal"} in profile["header"]["incomplete"]
    assert any("the engine uftrace may be the reason" in note for note in profile["trace"]["notes"])


@pytest.mark.usefixtures("uftrace")
def test_a_program_that_cannot_be_loaded(trace: Trace, tmp_path: Path) -> None:
    built(tmp_path / "libgone.so", "-shared -fPIC", "int gone(void) { return 1; }\n")
    text = "int gone(void);\nint main(void) { return gone(); }\n"
    program = built(tmp_path / "program", "-g -O0 -L. -Wl,--no-as-needed -lgone", text)
    (tmp_path / "libgone.so").unlink()
    with pytest.raises(JobFailed, match="exited with status 127") as failure:
        trace(program, engine="uftrace", output_handling="capture")
    assert "libgone.so" in failure.value.message and "--engine" in failure.value.hint


@pytest.mark.usefixtures("uftrace")
def test_a_program_that_refuses_to_start(trace: Trace, tmp_path: Path) -> None:
    """AddressSanitizer ends where another library comes before its own."""
    program = built(tmp_path / "program", "-g -O0 -fsanitize=address", "int main(void) { return 0; }\n")
    with pytest.raises(JobFailed, match="exited with status 1") as failure:
        trace(program, engine="uftrace", output_handling="capture")
    assert "the engine is the reason" in failure.value.hint


@pytest.mark.usefixtures("uftrace")
@pytest.mark.parametrize("way", ["root", "processes"])
def test_a_program_whose_child_uftrace_does_not_hear_of(trace: Trace, tmp_path: Path, way: str) -> None:
    """The child changes its root, or has the number 1 in a namespace of its own."""
    program = built(
        tmp_path / "program", "-g -O0", """
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
int main(int count, char **words) {
  int is_root = words[1][0] == 'r';
  int has_own = unshare(is_root ? CLONE_NEWUSER : CLONE_NEWUSER | CLONE_NEWPID) == 0;
  if (has_own && is_root && chroot(".") != 0) return 1;
  pid_t child = fork();
  if (child == 0) _exit(work(3) != 3);
  waitpid(child, &count, 0);
  return work(3) != 3;
}
""",
    )  # fmt: skip
    profile = trace(program, way, engine="uftrace")
    assert calls(profile)["main"] == 1 and calls(profile)["work"] >= 1
    assert "incomplete" not in profile["header"]


@pytest.fixture
def no_ebpf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Perun as it is installed where there is no clang."""
    monkeypatch.setattr(EbpfEngine, "folder", tmp_path)


@pytest.mark.usefixtures("uftrace", "no_ebpf")
def test_auto_does_not_guess(compiled: Callable[..., Path], trace: Trace) -> None:
    with pytest.raises(CollectorUnavailable) as failure:
        trace(compiled("trace_floats.c"))
    assert "uftrace: it cannot record all functions safely: scale, rounded" in failure.value.message
    chosen = {"strategy": "custom", "func": ("whole",)}
    assert trace(compiled("trace_floats.c"), **chosen)["trace"]["engine"] == "uftrace"
    with pytest.raises(CollectorUnavailable) as failure:
        trace(compiled("trace_list.c"), "20")
    assert "uftrace: it cannot read sizes behind pointers, as those of list_insert" in failure.value.message
    assert calls(trace(compiled("trace_list.c"), "20", engine="uftrace"))["list_search"] == 20
