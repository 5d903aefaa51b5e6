"""Which instructions the kernel can probe (x86-64).

For a vector instruction the kernel (seen with Linux 6.18) looks up the opcode in the table of instructions
without a prefix. So it takes `vmovdqa` for `outs` and refuses the probe, without a word where the program is
not running yet. It takes `vpshufd` for a conditional jump, which it emulates, and `vcmpps` for a return: then
the program computes something else, or crashes. See `arch_uprobe_analyze_insn` in arch/x86/kernel/uprobes.c.
"""

from __future__ import annotations

from typing import Final

_OPCODE_AFTER: Final = {0xC5: 2, 0xC4: 3, 0x62: 4}
"""First byte of an instruction in the encodings VEX and EVEX to the position of its opcode."""
_TAKEN_FOR_INVALID: Final = (
    "06 07 0e 16 17 1e 1f 27 2f 37 3f 60 61 62 6c 6d 6e 6f 82 9a d4 d5 d6 e4 e5 e6 e7 ec ed ee ef f1 f4 fa fb"
)
_TAKEN_FOR_JUMPS: Final = "70 71 72 73 74 75 76 77 78 79 7a 7b 7c 7d 7e 7f 90 9d c2 c3 ca cb e8 e9 ea eb ff"
_MISTAKEN: Final = frozenset(bytes.fromhex(_TAKEN_FOR_INVALID + _TAKEN_FOR_JUMPS))


def is_probeable(code: bytes) -> bool:
    """Whether a probe may be put at an instruction, which `code` begins with."""
    place = _OPCODE_AFTER.get(code[0]) if code else None
    return place is None or len(code) <= place or code[place] not in _MISTAKEN
