"""Engines that know one processor say so, and nothing is started."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.engines.stap import StapEngine


@pytest.mark.parametrize("engine", [EbpfEngine, StapEngine])
def test_other_processors_are_refused(
    engine: type[EbpfEngine | StapEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    why, _ = engine({"PATH": os.defpath}).unavailable()
    assert why == "it needs x86-64, but this machine is aarch64"
