"""Exporter of OpenMetrics, the text that Prometheus reads: https://prometheus.io/docs/specs/om/open_metrics_spec."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from typing import ClassVar, Final

from perun.exporter._common import BenchmarkSeries, Note, series_of
from perun.plugin.params import NoParams
from perun.profile.factory import Profile

_UNITS: Final = {"s": "seconds", "B": "bytes"}


class OpenmetricsExporter:
    """Writes each metric as a summary: quantiles, sum and count of its samples."""

    name: ClassVar[str] = "openmetrics"
    help: ClassVar[str] = "OpenMetrics text, for Prometheus: summaries of the samples."
    suffix: ClassVar[str] = ".txt"
    Params: ClassVar[type] = NoParams

    def write(self, profile: Profile, params: NoParams, note: Note) -> Iterator[bytes]:
        """The text."""
        about = profile.configuration
        families: dict[str, list[BenchmarkSeries]] = {}
        for one in series_of(profile):
            families.setdefault(_family(one), []).append(one)
        for family, own in families.items():
            unit = _UNITS.get(own[0].unit)
            lines = [f"# TYPE {family} summary"]
            if unit:
                lines.append(f"# UNIT {family} {unit}")
            for one in own:
                labels = {"collector": about.collector, "cmd": about.cmd, "name": one.name}
                if one.parameters:
                    labels["workload"] = one.parameters
                plain = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
                ordered = sorted(one.samples)
                for share in (0.0, 0.5, 1.0):
                    value = statistics.median(ordered) if share == 0.5 else ordered[-1 if share else 0]
                    lines.append(f'{family}{{{plain},quantile="{share:g}"}} {value!r}')
                lines.append(f"{family}_sum{{{plain}}} {float(sum(ordered))!r}")
                lines.append(f"{family}_count{{{plain}}} {len(ordered)}")
            yield ("\n".join(lines) + "\n").encode()
        yield b"# EOF\n"


def _family(one: BenchmarkSeries) -> str:
    """The name of a metric; that of a unit is its end."""
    words = ["perun", one.type, one.subtype]
    if unit := _UNITS.get(one.unit):
        words.append(unit)
    return re.sub(r"[^a-zA-Z0-9_]", "_", "_".join(filter(None, words)))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


PLUGIN = OpenmetricsExporter
