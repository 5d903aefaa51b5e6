"""How this project is built: by meson-python, whose wheels get the tag that fits what is in them.

What is native here are programs, and libraries that are loaded into programs, which know nothing of Python's
interface, and one extension module, which knows its stable part only. meson-python tags a wheel with native
files beside its modules for one version of Python; one wheel does for all. Without the extension module,
which is not built where the headers of Python are missing, it does for Pythons other than CPython, too.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from mesonpy import build_editable, build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel
from mesonpy import build_wheel as _build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel in the folder, and answer with its name (PEP 517)."""
    built = Path(wheel_directory, _build_wheel(wheel_directory, config_settings, metadata_directory))
    project, version, _, _, platform = built.stem.split("-")
    tag = f"{_python(built)}-{platform}"
    tagged = built.with_name(f"{project}-{version}-{tag}.whl")
    if tagged != built:
        _retag(built, tagged, tag, f"{project}-{version}.dist-info")
        built.unlink()
    return tagged.name


def _python(wheel: Path) -> str:
    """The Pythons that the wheel is for, and their binary interface."""
    with zipfile.ZipFile(wheel) as archive:
        extended = any(name.endswith(".abi3.so") for name in archive.namelist())
    return "cp311-abi3" if extended else "py3-none"


def _retag(source: Path, target: Path, tag: str, folder: str) -> None:
    """Copy a wheel with another tag in its metadata, and with the checksum of that."""
    told = b""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        # The record of all files is the last one.
        for entry in sorted(old.infolist(), key=lambda entry: entry.filename == f"{folder}/RECORD"):
            content = old.read(entry)
            if entry.filename == f"{folder}/WHEEL":
                told = content = re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), content)
            elif entry.filename == f"{folder}/RECORD":
                digest = base64.urlsafe_b64encode(hashlib.sha256(told).digest()).rstrip(b"=").decode()
                line = f"{folder}/WHEEL,sha256={digest},{len(told)}"
                content = re.sub(rf"(?m)^{re.escape(folder)}/WHEEL,.*$", line, content.decode()).encode()
            new.writestr(entry, content)
