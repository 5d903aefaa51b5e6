"""Which C sources are analysed: files, what folders hold, or what a compilation database lists."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from perun.collect.bounds.front.commands import LARGEST_DATABASE
from perun.collect.bounds.params import BoundsParams
from perun.errors import JobFailed
from perun.regular import read_regular

SUFFIX = ".c"


def sources_of(params: BoundsParams, folder: Path) -> list[str]:
    """The sources, each once, as the user names them, those of folders sorted.

    :param folder: of the project, which paths are relative to.
    :raises JobFailed: names the file or folder that is missing, or a folder without C sources.
    """
    found = [_file(path, folder) for path in params.source]
    for path in params.source_dir:
        found += _in_folder(path, folder)
    if not found:
        found = _listed(params.compile_commands, folder)
    return list(dict.fromkeys(found))


def _file(path: str, folder: Path) -> str:
    place = folder / path
    if place.is_dir():
        raise JobFailed(f"the source {path!r} is a folder", f"analyse what it holds: --source-dir {path}")
    if not place.is_file():
        if place.exists():
            raise JobFailed(f"the source {path!r} is a pipe, a device or the like", "name a regular file")
        hint = f"paths are relative to the folder of the project, here {folder}"
        raise JobFailed(f"there is no source {path!r}", hint)
    return os.path.normpath(path)


def _in_folder(path: str, folder: Path) -> list[str]:
    place = folder / path
    if not place.is_dir():
        what = "is a file, name it with --source" if place.exists() else f"does not exist in {folder}"
        raise JobFailed(f"the source folder {path!r} {what}")
    found = sorted(_walk(place))
    if not found:
        raise JobFailed(f"the source folder {path!r} has no C sources (*{SUFFIX})")
    return [os.path.normpath(os.path.join(path, one)) for one in found]


def _walk(place: Path) -> Iterator[str]:
    for root, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield os.path.relpath(os.path.join(root, name), place)


def _listed(path: str, folder: Path) -> list[str]:
    """The C sources of a compilation database (clang's `JSONCompilationDatabase`)."""
    try:
        entries = json.loads(read_regular(os.path.realpath(folder / path), LARGEST_DATABASE))
    except OSError as problem:
        raise JobFailed(
            f"cannot read {path}: {problem.strerror}",
            "make it with: cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ..., or: bear -- make",
        ) from None
    except ValueError as problem:
        raise JobFailed(f"{path} is no compilation database: {problem}") from None
    if not isinstance(entries, list):
        raise JobFailed(f"{path} is no compilation database: it holds no list of commands")
    found = []
    for entry in entries:
        name = entry.get("file") if isinstance(entry, dict) else None
        if isinstance(name, str) and name.endswith(SUFFIX):
            # Clang's rule is that `directory` is absolute; one that is not is seen from the database.
            place = Path(os.path.normpath((folder / path).parent / str(entry.get("directory", "")) / name))
            inside = place.is_relative_to(folder)
            found.append(str(place.relative_to(folder) if inside else place))
    missing = [one for one in found if not (folder / one).is_file()]
    if missing:
        raise JobFailed(f"{path} lists the source {missing[0]!r}, which does not exist", "make it anew")
    if not found:
        raise JobFailed(f"{path} lists no C sources (*{SUFFIX})")
    return sorted(found)
