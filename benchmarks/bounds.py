"""Bounds of the loops of published C sources: how many have one, and how long that takes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from report import Count, Measured, Place, Row

SOURCES = {
    "lz4": ("lz4libs/", "lz4/"),
    "cmarkgfm": ("third_party/cmark/src/", "third_party/cmark/extensions/"),
    "zlib-ng": ("src/zlib_ng/zlib-ng/",),
    "brotli": ("c/",),
    "ujson": ("",),
    "xxhash": ("",),
}
"""Source distributions of the Python package index that hold C libraries; the folders that are read."""

_LEFT_OUT = re.compile(r"/(tests?|fuzz|research|examples?|tools)/|/arch/(?!generic|x86)")
_FOLLOWS_NOTHING = "it depends on no number that the analysis follows"
_LONGEST, _MEDIAN = 10.0, 1.0


@dataclass
class _File:
    """What the analysis of one file took and found."""

    path: str
    seconds: float = 0.0
    megabytes: float = 0.0
    loops: int = 0
    bounded: int = 0
    counting: int = 0
    unreadable: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    failure: str = ""


def bounds(place: Place) -> Iterator[Row | Count]:
    """CPU time, memory and success for each file; the reader of a file is a process of its own."""
    folder = place.folder / "bounds"
    folder.mkdir()
    yield from rows(list(measured(fetched(folder))))


def fetched(folder: Path) -> Iterator[Path]:
    """Download and unpack the sources; the C files in them."""
    for package, wanted in SOURCES.items():
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            package,
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        archives = [one for one in folder.glob("*.tar.gz") if _is_of(one, package)]
        if not archives:
            raise SystemExit(f"the sources of {package} cannot be downloaded: {done.stderr.strip()}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(folder / package, filter="data")
        (root,) = (folder / package).iterdir()
        for path in sorted(root.rglob("*.c")):
            inside = path.relative_to(root).as_posix()
            if inside.startswith(wanted) and not _LEFT_OUT.search(f"/{inside}"):
                yield path


def _is_of(archive: Path, package: str) -> bool:
    return archive.name.lower().replace("_", "-").startswith(f"{package}-")


def measured(paths: Iterable[Path]) -> Iterator[_File]:
    """Analyse each file in a process of its own, so that its memory is seen, and a crash is one file's."""
    for path in paths:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            status = 1
            try:
                os.write(writing, json.dumps(_analysed(path).__dict__).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
        _, status, usage = os.wait4(child, 0)
        one = _File(**json.loads(answer)) if answer else _File(str(path), failure=f"status {status}")
        one.seconds, one.megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        yield one


def _analysed(path: Path) -> _File:
    from perun.bounds.analysis import analyse
    from perun.bounds.front.read import read
    from perun.bounds.front.unit import ReadOptions

    include = (str(path.parent), str(path.parent.parent), sysconfig.get_path("include"))
    found = _File(str(path))
    unit = read(str(path), ReadOptions(include=include))
    found.unreadable = [f"{one.file}:{one.line}: {one.reason}" for one in unit.unreadable]
    found.loops = sum(len(one.loops) for one in unit.unreadable)
    found.counting = found.loops
    for function in unit.functions:
        start = time.process_time()
        answer = analyse(function, unit)
        found.slowest = max(found.slowest, (time.process_time() - start, function.name))
        for loop in answer.loops:
            found.loops += 1
            found.bounded += loop.reason is None
            found.counting += loop.reason != _FOLLOWS_NOTHING
            if loop.reason is not None and loop.reason.startswith("it cannot be analysed"):
                found.failure = f"{function.name}: {loop.reason}"
    return found


def rows(files: list[_File]) -> Iterator[Row | Count]:
    """The lines of the table."""
    seconds = Measured([one.seconds for one in files])
    loops, bounded, counting = (
        sum(getattr(one, name) for one in files) for name in ("loops", "bounded", "counting")
    )
    yield Row(
        f"bounds: {len(files)} files of {', '.join(SOURCES)}: CPU, median", seconds, _MEDIAN, "limit", 1
    )
    yield Row("the slowest of them", seconds.most, _LONGEST, "limit", 1)
    yield Row("memory, the most", max(one.megabytes for one in files), 1000, "limit", 1, unit="MB")
    yield Count(
        "files without a failure", sum(not one.failure for one in files), len(files), least=len(files)
    )
    yield Count("loops with a bound", bounded, loops)
    yield Count(
        "loops with a bound, of those that count something", bounded, counting, least=counting * 2 // 5
    )


def _report(folder: Path) -> None:
    """What a developer wants to know: what each file takes, its slowest function, and what cannot be read."""
    there = [one for one in sorted(folder.glob("*/**/*.c")) if not _LEFT_OUT.search(str(one))]
    files = []
    for one in measured(there or fetched(folder)):
        files.append(one)
        seconds, name = one.slowest
        print(f"{one.seconds:6.2f} s {one.megabytes:5.0f} MB {one.bounded:3}/{one.counting:3}/{one.loops:3} "
              f"{one.path} {name} {seconds:.1f} s {one.failure}", flush=True)  # fmt: skip
        for text in one.unreadable:
            print("         ", text)
    for row in rows(files):
        print(row.line)


if __name__ == "__main__":
    _report(Path(sys.argv[1]))
