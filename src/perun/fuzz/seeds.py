"""The inputs that the user gives: `--input-sample` and `--workloads-filter` (manual 9.3)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import UsageError
from perun.wording import listed, plural

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest seed: each mutation is as large, and thousands are made."""


class SeedFile(NamedTuple):
    """An input. :param path: as the user names it, or as it was found in a folder that he names."""

    path: Path
    data: bytes


class SeedFiles(NamedTuple):
    """The inputs in the order of the user, each content once, and what he should know of those left out."""

    seeds: tuple[SeedFile, ...]
    notes: tuple[str, ...]


def read(samples: Sequence[str], cwd: Path, pattern: str = "") -> SeedFiles:
    """Read all files, and those of folders at any depth, in the order of their names.

    :param cwd: what relative paths are relative to. :param pattern: a regular expression that is to be found
        in the path of each file; empty for all.
    :raises UsageError: where a path does not exist, the expression is wrong, or no input is left.
    """
    chosen = _compiled(pattern)
    found: dict[bytes, SeedFile] = {}
    left_out: dict[str, list[str]] = {}
    filtered = 0
    for path in _files(samples, cwd):
        if chosen.search(os.fsdecode(path)) is None:
            filtered += 1
            continue
        try:
            data = _content(cwd / path)
        except OSError as problem:
            left_out.setdefault(problem.strerror or str(problem), []).append(str(path))
            continue
        if not data:
            left_out.setdefault("it is empty", []).append(str(path))
        elif data in found:
            left_out.setdefault(f"it is the same as {found[data].path}", []).append(str(path))
        else:
            found[data] = SeedFile(path, data)
    notes = tuple(_note(why, paths) for why, paths in left_out.items())
    if not found:
        raise _nothing(samples, pattern, filtered, notes)
    return SeedFiles(tuple(found.values()), notes)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as problem:
        place = "" if problem.pos is None else f" at character {problem.pos + 1}"
        raise UsageError(
            f"--workloads-filter {pattern!r} is no regular expression: {problem.msg}{place}",
            "e.g. --workloads-filter '[.]xml$'",
        ) from None


def _files(samples: Sequence[str], cwd: Path) -> Iterator[Path]:
    for sample in samples:
        path = Path(sample)
        if (cwd / path).is_dir():
            for folder, folders, names in os.walk(cwd / path):
                folders.sort()
                yield from (path / Path(folder, name).relative_to(cwd / path) for name in sorted(names))
        elif (cwd / path).exists():
            yield path
        else:
            raise UsageError(f"--input-sample {sample} does not exist", "give a file, or a folder of files")


def _content(path: Path) -> bytes:
    """:raises OSError: if it cannot be read, is no regular file, or is too large."""
    if not path.is_file():
        raise OSError(0, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(0, f"it has more than {MAX_BYTES} bytes")
    return data


def _note(why: str, paths: Sequence[str]) -> str:
    return f"no seed: {listed(paths)}: {why}"


def _nothing(samples: Sequence[str], pattern: str, filtered: int, notes: Sequence[str]) -> UsageError:
    named = ", ".join(samples)
    if notes:
        return UsageError(f"--input-sample {named} has no usable seed\n" + "\n".join(notes), "give others")
    if filtered:
        return UsageError(
            f"--workloads-filter {pattern!r} fits none of {plural(filtered, 'file')} in {named}",
            "it is searched in the path of each file",
        )
    return UsageError(f"--input-sample {named} holds no file", "give a file that the program reads")
