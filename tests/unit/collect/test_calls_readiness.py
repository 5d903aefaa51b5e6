"""What the collectors of calls say of the machine they are asked about."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from perun.collect.complexity import ComplexityCollector
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.ebpf import EbpfEngine
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
    assert list(found) == ["", *ENGINES]
    assert all(one.missing for one in found.values())
    assert "apt-get install uftrace" in found["uftrace"].hint
    if os.uname().machine == "x86_64":
        assert found["ebpf"].missing == "its probes were not built when Perun was installed"
        assert re.search(r"apt-get install clang libbpf-dev; .*: \S+ .*install .*\.$", found["ebpf"].hint)


def test_one_engine_is_enough(no_probes: None, tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "uftrace")
    found = parts(TraceCollector(), {"PATH": str(tmp_path)})
    assert found[""] == Readiness()
    assert found["uftrace"] == Readiness("uftrace")
    assert found["ebpf"].missing and found["stap"].missing


def test_a_missing_runtime_is_all_that_is_told(tmp_path: Path) -> None:
    collector = ComplexityCollector(tmp_path / "none.so")
    found = parts(collector, dict(os.environ))
    assert list(found) == [""]
    assert "pip install --force-reinstall" in found[""].hint
    with pytest.raises(CollectorUnavailable, match=r"runtime that records calls is missing: .*none\.so"):
        collector.collect(Run("true"), ComplexityCollector.Params(), CollectContext(tmp_path))


@pytest.mark.skipif(not shutil.which("cc") or not shutil.which("c++"), reason="there is no compiler")
def test_missing_compilers_are_told(complexity_runtime: Path, tmp_path: Path) -> None:
    collector = ComplexityCollector(complexity_runtime)
    assert list(parts(collector, dict(os.environ))) == [""]
    found = parts(collector, {"PATH": str(tmp_path)})
    assert not found[""].missing
    assert found[NEED_OF_COMPILERS].missing == "no C compiler is installed"
    assert "build-essential" in found[NEED_OF_COMPILERS].hint
    (tmp_path / "gcc").symlink_to(shutil.which("cc") or "")
    assert "C++" in parts(collector, {"PATH": str(tmp_path)})[NEED_OF_COMPILERS].missing
    wrong = parts(collector, {**os.environ, "CXX": "c++-of-old -O2"})[NEED_OF_COMPILERS]
    assert "cannot start the compiler c++-of-old -O2" in wrong.missing
    assert "CXX" in wrong.hint
