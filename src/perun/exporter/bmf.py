"""Exporter of the Bencher Metric Format."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any, ClassVar

from perun.exporter._common import Note, series_of
from perun.plugin.params import NoParams
from perun.profile.factory import Profile


class BmfExporter:
    """Writes the mean of each metric, with the smallest and the largest sample: it has no samples."""

    name: ClassVar[str] = "bmf"
    help: ClassVar[str] = "Bencher Metric Format (JSON), for bencher.dev: means without samples."
    suffix: ClassVar[str] = ".json"
    Params: ClassVar[type] = NoParams

    def write(self, profile: Profile, params: NoParams, note: Note) -> Iterator[bytes]:
        """The document."""
        document: dict[str, dict[str, Any]] = {}
        for one in series_of(profile):
            name = " ".join(filter(None, [one.name, one.parameters]))
            measure = "latency" if one.is_time else one.subtype or one.type
            scale = 1e9 if one.is_time else 1
            samples = [sample * scale for sample in one.samples]
            document.setdefault(name, {})[measure] = {
                "value": statistics.fmean(samples), "lower_value": min(samples), "upper_value": max(samples),
            }  # fmt: skip
        note("the format has no samples: who imports it gets no verdict but by the history")
        yield json.dumps(document, indent=2).encode() + b"\n"


PLUGIN = BmfExporter
