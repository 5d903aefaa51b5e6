"""What the memory collector says of the machine it is asked about."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from perun.collect.memory import MemoryCollector
from perun.plugin.api import Readiness


def parts(collector: MemoryCollector, environ: dict[str, str]) -> dict[str, Readiness]:
    return {one.part: one for one in collector.readiness(environ)}


def test_a_missing_recorder_is_all_that_is_told(tmp_path: Path) -> None:
    found = parts(MemoryCollector(tmp_path / "none.so"), dict(os.environ))
    assert list(found) == [""]
    assert "pip install --force-reinstall" in found[""].hint


def test_a_missing_symboliser_is_told(tmp_path: Path) -> None:
    library = tmp_path / "recorder.so"
    library.touch()
    collector = MemoryCollector(library)
    found = parts(collector, {"PATH": str(tmp_path)})
    assert not found[""].missing
    assert "binutils" in found["functions and lines"].hint
    tool = tmp_path / "addr2line"
    shutil.copy("/bin/true", tool)
    assert "functions and lines" not in parts(collector, {"PATH": str(tmp_path)})
    assert ("--python" in found) == (find_spec("memray") is None)
