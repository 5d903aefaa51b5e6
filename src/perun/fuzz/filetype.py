"""What kind of file a seed is, and so which rules are for it (manual 9.4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal, NamedTuple

Format = Literal["", "xml", "json"]

_XML_NAMES: Final = frozenset((".xml", ".svg", ".xhtml", ".xul", ".html", ".htm"))
_XML_BEGINNINGS: Final = (b"<?xml", b"<!doctype", b"<html", b"<svg", b"<!--")
_CONTROL: Final = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\b\x1b")
_LOOKED_AT: Final = 64 * 1024
_SURE: Final = 0.5
"""Confidence of puremagic above which a file that might be text is what it says."""
_STRANGE: Final = 0.05
"""The share of control characters above which bytes in no known encoding are not text."""


class FileType(NamedTuple):
    """The kind of a file.

    :ivar mime: its MIME type, as far as it can be told.
    :ivar binary: whether the rules for binary files are for it; otherwise those for text.
    :ivar format: the format that has rules of its own.
    """

    mime: str
    binary: bool
    format: Format


def file_type(data: bytes, path: Path) -> FileType:
    """The kind of a file with this content; its name decides only what the content leaves open."""
    mime = _mime(data, path)
    if not _is_text(data):
        return FileType(mime or "application/octet-stream", True, "")
    if _is_xml(data, path, mime):
        return FileType(mime if "xml" in mime or "html" in mime else "application/xml", False, "xml")
    if _is_json(data, path):
        return FileType("application/json", False, "json")
    return FileType(mime if mime.startswith("text/") else "text/plain", False, "")


def _mime(data: bytes, path: Path) -> str:
    import puremagic

    try:
        found = puremagic.magic_string(data[:_LOOKED_AT], filename=path.name)
    except (puremagic.PureError, ValueError):
        return ""
    return next((str(one.mime_type) for one in found if one.mime_type and one.confidence >= _SURE), "")


def _is_text(data: bytes) -> bool:
    """Whether it is UTF-8 without zero bytes, or in an encoding of one byte, with few control characters."""
    start = data[:_LOOKED_AT]
    if b"\0" in start:
        return False
    try:
        start.decode()
        return True
    except UnicodeDecodeError as problem:
        if problem.start > len(start) - 4 and len(data) > len(start):  # a character was cut in two
            return True
    return sum(byte in _CONTROL for byte in start) <= _STRANGE * len(start)


def _is_xml(data: bytes, path: Path, mime: str) -> bool:
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if start.startswith(_XML_BEGINNINGS) or (mime.endswith("xml") and start.startswith(b"<")):
        return True
    return path.suffix.lower() in _XML_NAMES


def _is_json(data: bytes, path: Path) -> bool:
    if path.suffix.lower() == ".json":
        return True
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
