"""The document of a chart as JSON: as Perun writes it down, and by Bokeh's public models, imports included.

`python benchmarks/documents.py` prints the two and their ratio; each round is a new process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from report import Measured, Place, Row

POINTS = 2_000
GROUPS = 4


def documents(place: Place) -> Iterator[Row]:
    """CPU time of both, interleaved."""
    yield measured(max(3, place.rounds // 3))


def measured(rounds: int) -> Row:
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for name, found in times.items():
            argv = [sys.executable, __file__, name]
            found.append(float(subprocess.run(argv, check=True, capture_output=True).stdout))
    ours, theirs = (Measured(found) for found in times.values())
    name = f"document of a scatter plot, {POINTS:,} points, with imports, CPU"
    return Row(name, ours, theirs, "Bokeh's public models", 1 / 2)


def once(name: str) -> float:
    """CPU time of one document in seconds; numpy is there already, as the numbers come in it."""
    x = np.arange(float(POINTS))
    y = np.random.default_rng(1).normal(20, 5, POINTS)
    groups = [(f"function {group}", x[group::GROUPS], y[group::GROUPS]) for group in range(GROUPS)]
    before = os.times()
    made = {"ours": ours, "theirs": theirs}[name](groups)
    after = os.times()
    assert len(made) > 10 * POINTS
    return after.user + after.system - before.user - before.system


def ours(groups: list[tuple[str, np.ndarray, np.ndarray]]) -> str:
    from perun.view._common import Axis, Chart, ChartSeries
    from perun.view._common.plot_document import document

    series = [
        ChartSeries(name, kind, x, y, number)  # type: ignore[arg-type]
        for number, (name, x, y) in enumerate(groups)
        for kind in ("points", "line")
    ]
    return json.dumps(document(Chart("a chart", (), Axis("x"), Axis("y"), tuple(series))))


def theirs(groups: list[tuple[str, np.ndarray, np.ndarray]]) -> str:
    from bokeh.embed import json_item
    from bokeh.plotting import figure

    plot = figure(height=560, sizing_mode="stretch_width", tools="pan,box_zoom,wheel_zoom,reset,save,hover")
    for name, x, y in groups:
        plot.scatter(x, y, legend_label=name)
        plot.line(x, y, legend_label=name)
    return json.dumps(json_item(plot))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(once(sys.argv[1]))
    else:
        print(measured(5).line)
