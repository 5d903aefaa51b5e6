"""Importer of Criterion.rs: `sample.json` and `estimates.json` below `target/criterion`, and the lines of
`cargo criterion --message-format=json`.

`sample.json` is no published format, but it is what all tools read: times and iterations of each sample.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, number, numbers, time
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.amounts import TIMES

_SAMPLES, _ESTIMATES, _ABOUT = "sample.json", "estimates.json", "benchmark.json"
_NEW: Final = "new"
_MOST: Final = 1 << 20
_REASON: Final = b'"benchmark-complete"'


class CriterionImporter:
    """Reads samples as the time of an iteration; of `estimates.json` alone the mean."""

    name: ClassVar[str] = "criterion"
    help: ClassVar[str] = "Criterion.rs: sample.json, a folder target/criterion, or --message-format=json."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """A file or folder that Criterion has written, by its name, or a line of its messages."""
        if not head:
            return any(True for _ in _folders(Path(path)))
        named = Path(path).name in (_SAMPLES, _ESTIMATES)
        marks = (b'"iters"', b'"point_estimate"', b'"sampling_mode"')
        return (named and any(one in head for one in marks)) or _REASON in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark."""
        if file.path is not None and file.path.is_dir():
            for folder in _folders(file.path):
                yield from self._of_folder(folder, file)
        elif _REASON in file.head:
            for line in file.lines():
                if line.strip():
                    yield from self._of_message(json.loads(line))
        else:
            name = _name(file.path) if file.path is not None else "benchmark"
            yield from self._of(name, file.json())

    def _of_folder(self, folder: Path, file: ImportFile) -> Iterator[Imported]:
        samples = folder / _SAMPLES
        found = file.beside(samples if samples.is_file() else folder / _ESTIMATES)
        yield from self._of(_name(found.path or folder), found.json())

    def _of(self, name: str, whole: Mapping[str, Any]) -> Iterator[Imported]:
        if "iters" in whole:
            yield from self._samples(name, numbers(whole["times"]), numbers(whole["iters"]), 1e-9)
        else:
            mean = number(whole["mean"]["point_estimate"]) / 1e9
            yield from benchmark("cargo", "cargo bench", *_split(name, time(mean)), means=True)

    def _of_message(self, whole: Mapping[str, Any]) -> Iterator[Imported]:
        if whole.get("reason") == "benchmark-complete":
            times, counts = numbers(whole["measured_values"]), numbers(whole["iteration_count"])
            yield from self._samples(str(whole["id"]), times, counts, TIMES[whole.get("unit", "ns")])

    def _samples(
        self, name: str, times: Sequence[float], counts: Sequence[float], scale: float
    ) -> Iterator[Imported]:
        each = [took / count * scale for took, count in zip(times, counts, strict=True)]
        found, values = _split(name, time(*each))
        yield from benchmark("cargo", "cargo bench", found, values)


def _split(name: str, *values: Any) -> tuple[str, list[Any]]:
    return name, list(values)


def _folders(root: Path) -> Iterator[Path]:
    """The folders of the newest samples below `target/criterion`."""
    for path in sorted(root.glob(f"*/**/{_NEW}")):
        if (path / _SAMPLES).is_file() or (path / _ESTIMATES).is_file():
            yield path


def _name(path: Path) -> str:
    """What Criterion calls the benchmark of a file: as it says beside it, else by the folder."""
    about = path.with_name(_ABOUT)
    if about.is_file() and about.stat().st_size < _MOST:
        found = json.loads(about.read_bytes())
        if isinstance(found, dict) and isinstance(found.get("full_id"), str):
            return str(found["full_id"])
    return path.parent.parent.name


PLUGIN = CriterionImporter
