"""Programs of Go and Rust under the tracer: what they print, exact counts, or a refusal by name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from perun.collect.trace import TraceCollector
from perun.collect.trace.collector import make_engine
from perun.collect.trace.params import TraceParams
from perun.core.errors import CollectorUnavailable
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from traced import PROGRAMS, calls

GOROUTINES = {"leaf": 200, "grow": 310, "work": 10, "(*list).push": 10}
"""How often each goroutine calls a function."""


@pytest.fixture(scope="module")
def goroutines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go"):
        pytest.skip("Go is not installed (golang-go)")
    folder = tmp_path_factory.mktemp("go")
    environ = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    command = ["go", "build", "-o", folder / "goroutines", PROGRAMS / "trace_goroutines.go"]
    subprocess.run(command, env=environ, check=True)
    return folder / "goroutines"


def traced(program: Path, folder: Path, notes: list[str], engine: str = "ebpf") -> Profile:
    (folder / "scratch").mkdir(exist_ok=True)
    run = Run(str(program), cwd=folder, environ=dict(os.environ))
    context = CollectContext(folder / "scratch", note=notes.append, cache=folder / "cache")
    params = TraceParams(engine=engine, output_handling="capture", timeout=60.0)
    return TraceCollector().collect(run, params, context)


def require_ebpf() -> None:
    if why := ": ".join(filter(None, make_engine("ebpf", os.environ).unavailable())):
        pytest.skip(why)


def test_goroutines_change_threads(goroutines: Path, tmp_path: Path) -> None:
    require_ebpf()
    notes: list[str] = []
    profile = traced(goroutines, tmp_path, notes)
    found: Counter[tuple[int, str]] = Counter()
    for group in profile.groups():
        found[group.constants["thread"], str(group.constants["uid"])] += group.size
    workers = {thread for thread, name in found if name == "main.leaf"}
    assert len(workers) == 4
    assert {(thread, name): found[thread, f"main.{name}"] for thread in workers for name in GOROUTINES} == {
        (thread, name): count for thread in workers for name, count in GOROUTINES.items()
    }
    # The program may end while goroutines still leave the functions that they were started with.
    assert profile["trace"]["missed-exits"] <= 2 * len(workers)
    for _, one in profile.all_resources():
        if one["uid"] == "main.leaf":
            assert one["caller"] == "main.work"
            assert one["size-source"] == "call-order"
    assert not any(str(group.constants["uid"]).startswith("runtime.") for group in profile.groups())
    assert any("Go" in note for note in notes)


def test_what_would_kill_go_refuses_it(goroutines: Path, tmp_path: Path) -> None:
    if not shutil.which("uftrace"):
        pytest.skip("uftrace is not installed")
    with pytest.raises(CollectorUnavailable, match="uftrace"):
        traced(goroutines, tmp_path, [], "uftrace")


def test_panics_of_rust_pass_traced_functions(tmp_path: Path) -> None:
    require_ebpf()
    rustc = shutil.which("rustc")
    if not rustc or subprocess.run([rustc, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("no Rust compiler works here (rustc)")
    (tmp_path / "panics.rs").write_text(
        "#[inline(never)] fn inner(n: u32) -> u32 { if n % 2 == 1 { panic!() } n }\n"
        "#[inline(never)] fn outer(n: u32) -> u32 { inner(n) + 1 }\n"
        "fn main() {\n  std::panic::set_hook(Box::new(|_| {}));\n"
        "  let good = (0..20).filter(|n| std::panic::catch_unwind(|| outer(*n)).is_ok()).count();\n"
        "  std::process::exit(if good == 10 { 0 } else { 1 });\n}\n"
    )
    subprocess.run([rustc, "-g", "-C", "opt-level=1", "panics.rs"], cwd=tmp_path, check=True)
    profile = traced(tmp_path / "panics", tmp_path, [])
    found = calls(profile)
    assert (found["panics::inner"], found["panics::outer"]) == (20, 20)
