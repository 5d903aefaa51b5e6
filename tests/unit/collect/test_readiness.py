"""What the collectors of calls say of the machine they are asked about."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from perun.collect.complexity import ComplexityCollector
from perun.collect.memory import MemoryCollector
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.engines.stap import StapEngine
from perun.collect.trace.engines.uftrace import UftraceEngine
from perun.collect.trace.params import ENGINES
from perun.core.errors import CollectorUnavailable
from perun.plugin.api import CollectContext, Readiness, Run

NEED_OF_COMPILERS = "--files and --build"


def parts(collector: TraceCollector | ComplexityCollector, environ: dict[str, str]) -> dict[str, Readiness]:
    return {one.part: one for one in collector.readiness(environ)}


@pytest.fixture
def no_probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Perun as it is installed where there is no clang."""
    monkeypatch.setattr(EbpfEngine, "folder", tmp_path)


def test_without_any_engine_nothing_can_be_traced(no_probes: None, tmp_path: Path) -> None:
    found = parts(TraceCollector(), {"PATH": str(tmp_path)})
    assert list(found) == ["", *ENGINES] and all(one.missing for one in found.values())
    assert "apt-get install uftrace" in found["uftrace"].hint
    if os.uname().machine == "x86_64":
        assert found["ebpf"].missing == "its probes were not built when Perun was installed"
        assert re.search(r"apt-get install clang libbpf-dev; .*: \S+ .*install .*\.$", found["ebpf"].hint)


def test_one_engine_is_enough(no_probes: None, tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "uftrace")
    found = parts(TraceCollector(), {"PATH": str(tmp_path)})
    assert found[""] == Readiness() and found["uftrace"] == Readiness("uftrace")
    assert found["ebpf"].missing and found["stap"].missing


def test_a_missing_runtime_is_all_that_is_told(tmp_path: Path) -> None:
    collector = ComplexityCollector(tmp_path / "none.so")
    found = parts(collector, dict(os.environ))
    assert list(found) == [""] and "pip install --force-reinstall" in found[""].hint
    with pytest.raises(CollectorUnavailable, match=r"runtime that records calls is missing: .*none\.so"):
        collector.collect(Run("true"), ComplexityCollector.Params(), CollectContext(tmp_path))


@pytest.mark.skipif(not shutil.which("cc") or not shutil.which("c++"), reason="there is no compiler")
def test_missing_compilers_are_told(complexity_runtime: Path, tmp_path: Path) -> None:
    collector = ComplexityCollector(complexity_runtime)
    assert list(parts(collector, dict(os.environ))) == [""]
    found = parts(collector, {"PATH": str(tmp_path)})
    assert not found[""].missing and found[NEED_OF_COMPILERS].missing == "no C compiler is installed"
    assert "build-essential" in found[NEED_OF_COMPILERS].hint
    (tmp_path / "gcc").symlink_to(shutil.which("cc") or "")
    assert "C++" in parts(collector, {"PATH": str(tmp_path)})[NEED_OF_COMPILERS].missing
    wrong = parts(collector, {**os.environ, "CXX": "c++-of-old -O2"})[NEED_OF_COMPILERS]
    assert "cannot start the compiler c++-of-old -O2" in wrong.missing and "CXX" in wrong.hint


# -- What the memory collector says of the machine it is asked about ---------------------------------


def memory_parts(collector: MemoryCollector, environ: dict[str, str]) -> dict[str, Readiness]:
    return {one.part: one for one in collector.readiness(environ)}


def test_a_missing_recorder_is_all_that_is_told(tmp_path: Path) -> None:
    found = memory_parts(MemoryCollector(tmp_path / "none.so"), dict(os.environ))
    assert list(found) == [""] and "pip install --force-reinstall" in found[""].hint


def test_a_missing_symboliser_is_told(tmp_path: Path) -> None:
    library = tmp_path / "recorder.so"
    library.touch()
    collector = MemoryCollector(library)
    found = memory_parts(collector, {"PATH": str(tmp_path)})
    assert not found[""].missing and "binutils" in found["functions and lines"].hint
    tool = tmp_path / "addr2line"
    shutil.copy("/bin/true", tool)
    assert "functions and lines" not in memory_parts(collector, {"PATH": str(tmp_path)})
    assert ("--python" in found) == (find_spec("memray") is None)


# -- Engines that know one processor say so, and nothing is started ----------------------------------


@pytest.mark.parametrize("engine", [EbpfEngine, StapEngine, UftraceEngine])
def test_other_processors_are_refused(engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    (tmp_path / "uftrace").touch(0o755)
    why, _ = engine({"PATH": str(tmp_path)}).unavailable()
    assert why == "it needs x86-64, but this machine is aarch64"
