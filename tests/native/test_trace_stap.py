"""The scripts for SystemTap, which it checks against real programs without a kernel to build for."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from compiling import CompilerCache
from perun.collect.trace.engines import stap
from perun.collect.trace.engines.stap import StapEngine, script_of
from perun.collect.trace.plan import TracePlan, TraceSelection, make_plan
from perun.native.binary import Binary
from traced import COUNTS, PROGRAMS, plain

OPTIONS = (
    *("UPROBES", "ARCH_SUPPORTS_UPROBES", "UPROBE_EVENTS"),
    *("TRACEPOINTS", "MODULES", "KPROBES", "PERF_EVENTS"),
)
SOURCES = sorted({source for source, _ in COUNTS if "exceptions" not in source} | {"trace_containers.cpp"})
USDT = """#include <sys/sdt.h>
volatile int n;
int main(void) {
  for (int i = 0; i < 12; i++) {
    DTRACE_PROBE1(app, sort_begin, i);
    n += i;
    DTRACE_PROBE(app, sort_end);
  }
  return 0;
}
"""
Check = Callable[[TracePlan], str]


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that tells SystemTap enough of the running kernel to check scripts."""
    if not shutil.which("stap"):
        pytest.skip("SystemTap is not installed")
    folder = tmp_path_factory.mktemp("kernel")
    release = os.uname().release
    version, patch, sub = [*re.findall(r"\d+", release), "0", "0", "0"][:3]
    symbols = Path("/proc/kallsyms").read_text()
    if " uprobe_register\n" not in symbols or symbols.startswith("0" * 16):
        pytest.skip("the symbols of this kernel are hidden (kernel.kptr_restrict)")
    exported = ("uprobe_register", "uprobe_unregister")
    for name, content in {
        ".config": "".join(f"CONFIG_{option}=y\n" for option in OPTIONS),
        "include/generated/utsrelease.h": f'#define UTS_RELEASE "{release}"\n',
        "include/generated/autoconf.h": "",
        "include/config/kernel.release": f"{release}\n",
        "Makefile": f"VERSION = {version}\nPATCHLEVEL = {patch}\nSUBLEVEL = {sub}\n",
        "System.map": symbols,
        "Module.symvers": "".join(f"0x0\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n" for name in exported),
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


@pytest.fixture
def check(kernel: Path, tmp_path: Path) -> Check:
    """Have SystemTap resolve the probes of a plan; what it found."""

    def checked(plan: TracePlan) -> str:
        file = tmp_path / "script.stp"
        file.write_text(script_of(plan))
        command = ["stap", "-r", str(kernel), "-g", "-p2", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return checked


def places(found: str, kind: str) -> list[int]:
    """The addresses of the probes of one kind (`call`, `return`, `statement`)."""
    pattern = rf"\.{kind}(?:\([^ ]*\))? /\* pc=[^ ]*?(0x[0-9a-f]+) \*/"
    return sorted(int(one, 16) for one in re.findall(pattern, found))


@pytest.mark.parametrize("source", SOURCES)
def test_functions(compiled_once: CompilerCache, check: Check, source: str) -> None:
    with Binary(plain(compiled_once, source)) as binary:
        plan = make_plan([binary], TraceSelection("userspace"))
    found = check(plan)
    entries = places(found, "call")
    assert len(entries) == len(places(found, "return")) == len(plan.probes)
    ordered = sorted(plan.probes, key=lambda probe: probe.function.address)
    for probe, entry in zip(ordered, entries, strict=True):
        assert probe.function.address <= entry < probe.function.address + probe.function.size, probe
    assert found.count("u_register") >= any(probe.size for probe in plan.probes)


def test_sizes_and_rules(compiled_once: CompilerCache, check: Check) -> None:
    with Binary(plain(compiled_once, "trace_list.c")) as binary:
        size = "list_search=list->first.next.value"
        plan = make_plan([binary], TraceSelection("custom", func=("list_s*", "list_insert"), size=(size,)))
    assert len(places(check(plan), "call")) == 2


def test_library(check: Check, tmp_path: Path) -> None:
    (tmp_path / "lib.c").write_text("int twice(volatile int n) { n *= 2; return n; }\n")
    (tmp_path / "main.c").write_text("int twice(int);\nint main(void) { return twice(0); }\n")
    for command in ("cc -g -shared -fPIC lib.c -o libtwice.so", "cc -g main.c -o main -L. -ltwice"):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    with ExitStack() as stack:
        files = [stack.enter_context(Binary(tmp_path / name)) for name in ("main", "libtwice.so")]
        plan = make_plan(files, TraceSelection("custom", func=("libtwice.so#twice",), libs=("libtwice.so",)))
    found = check(plan)
    assert len(places(found, "call")) == 1 and "libtwice.so" in found


def test_usdt_probes(check: Check, tmp_path: Path) -> None:
    (tmp_path / "probed.c").write_text(USDT)
    program = tmp_path / "probed"
    command = ["cc", "-g", "probed.c", "-o", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    if b"sys/sdt.h" in done.stderr:
        pytest.skip("sys/sdt.h is not installed (apt-get install systemtap-sdt-dev)")
    assert done.returncode == 0, done.stderr
    with Binary(program) as binary:
        plan = make_plan([binary], TraceSelection("custom", with_usdt=True))
    (pair,) = plan.pairs
    assert places(check(plan), "statement") == sorted(one.address for one in (*pair.start, *pair.end))


def test_lines(compiled_once: CompilerCache, check: Check) -> None:
    with Binary(plain(compiled_once, "trace_sort.c")) as binary:
        first = 1 + next(
            number
            for number, line in enumerate((PROGRAMS / "trace_sort.c").read_text().splitlines())
            if "for (" in line
        )
        plan = make_plan([binary], TraceSelection("custom", dynamic=(f"trace_sort.c:{first}",)))
    (pair,) = plan.pairs
    assert places(check(plan), "statement") == [one.address for one in pair.start]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stap").write_text("")
    (tmp_path / "stap").chmod(0o755)
    engine = StapEngine({"PATH": str(tmp_path)})
    monkeypatch.setattr(stap, "_MODULES", str(tmp_path / "modules"))
    assert "loads no modules" in engine.unavailable()[0]
    (tmp_path / "modules").touch()
    if not os.path.isdir(f"/lib/modules/{os.uname().release}/build"):
        why, hint = engine.unavailable()
        assert "headers of the kernel" in why
        assert f"linux-headers-{os.uname().release}" in hint
    assert "not installed" in StapEngine({"PATH": str(tmp_path / "none")}).unavailable()[0]
