"""Pictures of the manual: what the tests saw when they opened pages in a browser (`make screenshots`)."""

from __future__ import annotations

import re
import struct
import sys
import zlib
from pathlib import Path

TAKEN = Path(__file__).parents[1] / "build" / "screenshots"
FOLDER = "generated/screenshots"
_REFERENCE = re.compile(re.escape(FOLDER) + r"/([\w.-]+\.png)")


def collect_screenshots(docs: Path, taken: Path = TAKEN) -> list[str]:
    """Put every picture that a page of `docs` refers to where it is looked for; the names of those missing.

    A picture that nobody took is an empty one, so that the manual can be built without a browser.
    """
    names = {name for page in docs.glob("*.md") for name in _REFERENCE.findall(page.read_text("utf-8"))}
    folder = docs / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    missing = sorted(name for name in names if not (taken / name).is_file())
    for name in sorted(names):
        picture = _empty() if name in missing else (taken / name).read_bytes()
        target = folder / name
        if not target.is_file() or target.read_bytes() != picture:
            target.write_bytes(picture)
    if missing:
        print(f"{len(missing)} pictures are left empty; make screenshots takes them", file=sys.stderr)
    return missing


def _empty() -> bytes:
    """A PNG of one transparent pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(bytes(5))), chunk(b"IEND", b"")]
    )
