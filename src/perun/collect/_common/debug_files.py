"""Finds the debug information that packages keep in files of their own.

It is named by the build-id, or by the section `.gnu_debuglink`, as debuggers know it (gdb's manual,
"Debugging Information in Separate Files"). A file of another build does not count.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import BinaryIO, Final

from perun.collect._common.elf import Elf, read_elf
from perun.elf import Damaged, ElfFile

DEBUG_FOLDER: Final = "/usr/lib/debug"
"""The folder of the debug information of packages."""


def with_debug_file(elf: Elf | None, path: str) -> Elf | None:
    """An ELF file with the place of its debug information, where that is in another file."""
    if elf is None or elf.has_lines:
        return elf
    return elf._replace(debug_file=debug_file(path, elf.build_id))


def debug_file(path: str, build_id: str) -> str:
    """Path of the separate debug information of the file at `path`; empty where there is none."""
    by_id = os.path.join(DEBUG_FOLDER, ".build-id", build_id[:2], build_id[2:] + ".debug")
    if build_id and _is_of(by_id, build_id, None):
        return by_id
    name, checksum = _debug_link(path)
    folder = os.path.dirname(os.path.realpath(path))
    for place in (folder, os.path.join(folder, ".debug"), DEBUG_FOLDER + folder):
        found = os.path.join(place, name)
        if name and not _is_same(found, path) and _is_of(found, build_id, checksum):
            return found
    return ""


def _debug_link(path: str) -> tuple[str, int]:
    """Name and checksum of the file that `.gnu_debuglink` names; an empty name where there is none."""
    with contextlib.suppress(OSError, Damaged), open(path, "rb") as file:
        elf = ElfFile(file)
        section = elf.section(".gnu_debuglink")
        if section is not None and 5 < section.size < 4096:
            data = elf.content(section)
            name, _, _ = data.partition(b"\0")
            return os.path.basename(os.fsdecode(name)), int.from_bytes(data[-4:], "little")
    return "", 0


def _is_of(path: str, build_id: str, checksum: int | None) -> bool:
    """Whether a file is an ELF file of the same build: by its build-id, else by the checksum of its bytes."""
    found = read_elf(path) if os.path.isfile(path) else None
    if found is None:
        return False
    if build_id and found.build_id:
        return found.build_id == build_id
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return checksum is not None and _checksum(file) == checksum
    return False


def _checksum(file: BinaryIO) -> int:
    found = 0
    while piece := file.read(1 << 20):
        found = zlib.crc32(piece, found)
    return found


def _is_same(one: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False
