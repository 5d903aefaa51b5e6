"""What harnesses share: tools that must be there, what they answer, and where benchmarks are looked for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.plugin.suites import HarnessContext

_LEFT_OUT: Final = frozenset({
    "node_modules", "target", "vendor", "build", "dist", "third_party", "__pycache__", "venv",
})  # fmt: skip
"""Folders of what was built or belongs to others."""
MOST_FOUND: Final = 300
_MOST_LOOKED_AT: Final = 20_000
_MOST_READ: Final = 1 << 20
_LINES: Final = 10
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def files_with(folder: Path, suffixes: tuple[str, ...], defines: Callable[[str, str], bool]) -> list[str]:
    """The paths of the files that define benchmarks, relative to the folder, sorted, some hundred at most.

    :param suffixes: of the names that are looked at. :param defines: whether a file with this relative path
        and this text does.
    """
    found: list[str] = []
    for path in _files(folder, suffixes):
        relative = path.relative_to(folder).as_posix()
        if defines(relative, text_of(path)):
            found.append(relative)
            if len(found) == MOST_FOUND:
                break
    return sorted(found)


def text_of(path: Path) -> str:
    """The beginning of a regular file, a mebibyte at most; empty where it cannot be read."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    looked_at = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _LEFT_OUT and not one.startswith("."))
        for name in sorted(names):
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            if name.endswith(suffixes):
                yield Path(parent, name)


def needed(tool: str, hint: str) -> str:
    """The path of a program that must be there.

    :raises CollectorUnavailable: where it is not; the hint says what installs it.
    """
    if path := shutil.which(tool):
        return path
    raise CollectorUnavailable(f"{tool} is not installed", hint)


def output_of(
    ctx: HarnessContext,
    argv: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] = _NOTHING,
    hint: str = "run it by hand to see more",
) -> str:
    """What a program writes to its standard output.

    :raises JobFailed: where it ends with a status other than 0, with the last lines of what it wrote.
    """
    done = ctx.run(argv, folder, environ)
    if done.status:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_LINES:]
        shown = ":\n" + "\n".join("  " + line for line in lines) if lines else ""
        raise JobFailed(f"{' '.join(argv)!r} ended with status {done.status}{shown}", hint)
    return done.stdout


def json_of(text: str, what: str) -> Any:
    """The value of a JSON text.

    :param what: has written it, for the message. :raises JobFailed: where it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise JobFailed(f"{what} wrote no JSON: {problem}", "is this version of it supported?") from None
