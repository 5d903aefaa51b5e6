"""Engines that know one processor say so, and nothing is started."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.engines.stap import StapEngine
from perun.collect.trace.engines.uftrace import UftraceEngine


@pytest.mark.parametrize("engine", [EbpfEngine, StapEngine, UftraceEngine])
def test_other_processors_are_refused(
    engine: type[EbpfEngine | StapEngine | UftraceEngine],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    (tmp_path / "uftrace").touch(0o755)
    why, _ = engine({"PATH": str(tmp_path)}).unavailable()
    assert why == "it needs x86-64, but this machine is aarch64"
