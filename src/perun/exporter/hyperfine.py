"""Exporter of hyperfine's JSON, of releases 1: what plots and dashboards read."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Any, ClassVar

from perun.core.errors import ProfileError
from perun.exporter._common import Note, series_of
from perun.plugin.params import NoParams
from perun.profile.factory import Profile


class HyperfineExporter:
    """Writes the time of each run or benchmark; user and system time as means."""

    name: ClassVar[str] = "hyperfine"
    help: ClassVar[str] = "hyperfine's JSON (--export-json of releases 1)."
    suffix: ClassVar[str] = ".json"
    Params: ClassVar[type] = NoParams

    def write(self, profile: Profile, params: NoParams, note: Note) -> Iterator[bytes]:
        """The document."""
        found = list(series_of(profile))
        times = [one for one in found if one.type == "time"]
        means = {(one.name, one.subtype): statistics.fmean(one.samples) for one in times}
        results = []
        for one in times:
            if one.is_time and one.samples:
                samples = one.samples
                row: dict[str, Any] = {
                    "command": one.name, "mean": statistics.fmean(samples),
                    "stddev": statistics.stdev(samples) if len(samples) > 1 else None,
                    "median": statistics.median(samples), "user": means.get((one.name, "user"), 0.0),
                    "system": means.get((one.name, "sys"), 0.0), "min": min(samples), "max": max(samples),
                    "times": samples, "exit_codes": [0] * len(samples),
                }  # fmt: skip
                if one.parameters:
                    row["parameters"] = _parameters(one.parameters)
                results.append(row)
        if not results:
            raise ProfileError("the profile has no times", "hyperfine has times only: export it as bmf")
        yield json.dumps({"results": results}, indent=2).encode() + b"\n"


def _parameters(text: str) -> dict[str, str]:
    parts = [part.partition("=") for part in text.split(", ")]
    return (
        {key: value for key, _, value in parts} if all(sign for _, sign, _ in parts) else {"workload": text}
    )


PLUGIN = HyperfineExporter
