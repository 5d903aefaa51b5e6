"""Reads from a file of callgrind, written with `--dump-instr=yes`, which instruction called what."""

import re
from collections.abc import Iterator
from pathlib import Path

_NAMED = re.compile(r"\((\d+)\)(?: (.*))?")


def calls_within(file: Path, program: str) -> set[tuple[int, int]]:
    """Addresses of instructions of a program and of the functions of the same program that they called."""
    return {(site, target) for caller, callee, site, target in _calls(file) if caller == callee == program}


def _calls(file: Path) -> Iterator[tuple[str, str, int, int]]:
    """Caller's object, callee's object, address of the call, address of the function ("Callgrind Format
    Specification", chapter "Subposition Compression")."""
    objects: dict[str, str] = {}
    caller = callee = ""
    last = target = 0
    is_call = False
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        key, equals, value = line.partition("=")
        if equals and key in ("ob", "cob"):
            found = _NAMED.fullmatch(value)
            assert found is not None, line
            name = objects.setdefault(found[1], found[2] or "")
            caller, callee = (name, callee) if key == "ob" else (caller, name)
        elif equals and key == "calls":
            target = _address(value.split()[1], last)
            is_call = True
        elif line[:1] in "0123456789+-*" and line:
            last = _address(line.split()[0], last)
            if is_call:
                yield caller, callee or caller, last, target
                is_call, callee = False, ""


def _address(text: str, last: int) -> int:
    if text[0] in "+-":
        return last + int(text, 0)
    return last if text == "*" else int(text, 0)
