"""What `perun collect bounds` is asked for: which sources, how they are preprocessed, what is counted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perun.core.errors import JobFailed
from perun.core.regular import read_regular
from perun.plugin.params import param

LARGEST_DATABASE = 256 << 20
"""Bytes of a compilation database that is read."""


@dataclass(frozen=True)
class BoundsParams:
    """The sources, and how they are read and analysed; files are named from the folder of the project."""

    source: tuple[str, ...] = param(
        (), short="-s", alias="--src", metavar="<path>", help="Analyse this C source. May be repeated."
    )
    source_dir: tuple[str, ...] = param(
        (),
        short="-d",
        metavar="<dir>",
        help="Analyse the C sources (*.c) in this folder and those below it; hidden ones are left out. "
        "May be repeated.",
    )
    include: tuple[str, ...] = param(
        (), short="-I", metavar="<dir>", help="Look for headers in this folder, too. May be repeated."
    )
    define: tuple[str, ...] = param(
        (), short="-D", metavar="<name[=value]>", help="Define this macro. May be repeated."
    )
    compile_commands: str = param(
        "",
        metavar="<file>",
        help="Take folders of headers and macros of each source from this compile_commands.json; without "
        "--source and --source-dir all C sources that it lists are analysed.",
    )
    function: tuple[str, ...] = param(
        (), short="-f", metavar="<name>", help="Analyse this function only. May be repeated."
    )
    calls: bool = param(
        False,
        help="Count what a function calls in its total bound, too, as far as that is defined in the same "
        "source.",
    )
    count: str = param(
        "iterations",
        choices=("iterations", "backedges"),
        help="What the bound of a loop counts: iterations, which is one more than its back edges where it is "
        "not in another loop, or plain back edges.",
    )

    timeout: float = param(
        10.0,
        metavar="<seconds>",
        help="Give up a function, or reading a source, that takes longer; 0 for never. The others go on.",
    )
    source_timeout: float | None = param(
        None,
        metavar="<seconds>",
        help="Do not begin with further functions of a source after that; 0 for never. By default three "
        "times --timeout, and a twentieth of it for each function.",
    )

    def __post_init__(self) -> None:
        for name, seconds in (("timeout", self.timeout), ("source-timeout", self.source_timeout or 0.0)):
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"{name}: {seconds:g} is no number of seconds; write 0 or more, as 10")
        if not (self.source or self.source_dir or self.compile_commands):
            raise ValueError("name the C sources to analyse by source, source-dir or compile-commands")

    def seconds_of_source(self, functions: int) -> float:
        """The seconds that a source of so many functions has; infinity for no limit."""
        if self.source_timeout is None:
            return self.timeout * (3 + functions / 20) or float("inf")
        return self.source_timeout or float("inf")


# Which C sources are analysed: files, what folders hold, or what a compilation database lists.

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
