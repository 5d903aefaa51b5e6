"""Files generator: the files of a folder of the user, such as the inputs that `perun fuzz --keep` keeps."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from perun.core.errors import JobFailed
from perun.core.regular import read_regular
from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param

_LARGEST: Final = 1 << 30


@dataclass(frozen=True)
class FilesParams:
    """The folder, and which of its files."""

    path: str = param(dataclasses.MISSING, help="The folder, relative to that of the project.")
    pattern: str = param("*", help="Which files of it: a pattern as of the shell, ** for all folders below.")
    content: bool = param(
        False, help="Give the content of a file as one argument, instead of the name of the file."
    )

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path is empty")
        if not self.pattern or self.pattern.startswith("/") or ".." in Path(self.pattern).parts:
            raise ValueError(f"pattern {self.pattern!r} must name files below the folder")


class FilesGenerator:
    """Yields copies of the files, in the order of their names.

    All versions are measured on the files as they are when the batch begins, whether or not their version has
    them. Links and names that begin with a dot are left out.
    """

    name: ClassVar[str] = "files"
    help: ClassVar[str] = "Generates copies of the files of a folder."
    Params: ClassVar[type] = FilesParams

    def generate(self, params: FilesParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The files by their names; their size is that in bytes.

        :raises JobFailed: if the folder has no such file, or one cannot be read.
        """
        folder = Path(os.path.normpath(ctx.cwd / params.path))
        names = sorted(_names(folder, params.pattern))
        if not names:
            raise JobFailed(f"{folder} holds no file {params.pattern}", "put the files there, or change path")
        for name in names:
            try:
                data = read_regular(folder / name, _LARGEST)
            except OSError as problem:
                raise JobFailed(f"{folder / name} cannot be read: {problem.strerror}") from None
            if params.content:
                yield Workload(_argument(folder / name, data), len(data))
                continue
            path = ctx.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            yield Workload(name, len(data), path)


def _names(folder: Path, pattern: str) -> Iterator[str]:
    for path in folder.glob(pattern):
        name = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in name.parts)
        if not is_hidden and not path.is_symlink() and path.is_file():
            yield name.as_posix()


def _argument(path: Path, data: bytes) -> str:
    if b"\0" in data:
        raise JobFailed(f"{path} holds a zero byte, which no argument can have", "give it as a file")
    return shlex.quote(os.fsdecode(data))


PLUGIN = FilesGenerator
