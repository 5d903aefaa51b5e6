"""Instructions that the kernel takes for others are not probed."""

from __future__ import annotations

import pytest

from perun.native.binary import is_probeable

REFUSED = {
    "vmovdqa %xmm0,%xmm1": "c5 f9 6f c8",
    "vpshufd $0x55,%xmm0,%xmm1": "c5 f9 70 c8 55",
    "vcmpeqps %xmm0,%xmm1,%xmm2": "c5 f0 c2 d0 00",
    "vzeroupper": "c5 f8 77",
    "vpor %xmm0,%xmm1,%xmm2": "c5 f1 eb d0",
    "vptest %xmm0,%xmm1": "c4 e2 79 17 c8",
    "vmovdqu64 %zmm0,%zmm1": "62 f1 fe 48 6f c8",
}
ALLOWED = {
    "vaddps %xmm0,%xmm1,%xmm2": "c5 f0 58 d0",
    "shlx %edi,%edx,%edx": "c4 e2 41 f7 d2",
    "movd %edi,%xmm2": "66 0f 6e d7",
    "outsl, a real one": "6f",
    "jo": "70 05",
    "push %rbx": "53",
}


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_vector_instructions_that_look_like_others(code: str) -> None:
    assert not is_probeable(bytes.fromhex(code))


@pytest.mark.parametrize("code", ALLOWED.values(), ids=ALLOWED)
def test_others(code: str) -> None:
    assert is_probeable(bytes.fromhex(code))


def test_what_is_cut_off_is_no_error() -> None:
    assert is_probeable(b"")
    assert is_probeable(bytes.fromhex("c5 f9"))
