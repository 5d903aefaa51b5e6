"""Instructions are the same by the layout of capstone and by its public interface."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import capstone
import pytest

from perun.native.callgraph.decode import Disassembler

CODE = bytes.fromhex("554889e5c5fc58c1e8000000000606c30f1f440000") * 900
"""push, mov, vaddps, call, two bytes that are no instruction, ret, nop: of more than one batch."""


def instructions() -> list[tuple[int, int, bytes, tuple[str, str]]]:
    return [
        (address, size, data[:size], batch.text(number))
        for batch in Disassembler().batches(CODE, 0x1000)
        for number, (address, size, data) in enumerate(batch)
    ]


def test_another_release_of_capstone_decodes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = instructions()
    assert len(found) > 4096 and ("vaddps", "ymm0, ymm0, ymm1") in {one[3] for one in found}
    public = {name: getattr(capstone, name) for name in ("Cs", "CS_ARCH_X86", "CS_MODE_64")}
    monkeypatch.setitem(sys.modules, "capstone", SimpleNamespace(**public))
    assert instructions() == found
