"""The benchmarks of scripts that use tinybench, a library of JavaScript."""

from __future__ import annotations

from typing import ClassVar

from perun.harness._js import NodeScripts


class TinybenchHarness(NodeScripts):
    """Runs the tasks of tinybench (2 to 6), one process for each.

    The options of a `Bench` for times, iterations, warming up and concurrency are replaced: a task is warmed
    up for a tenth of a second at least, then run five times; each run is a sample, the mean of its calls.
    tinybench reads the clock around each call, which counts where one takes less than a microsecond.
    """

    name: ClassVar[str] = "tinybench"
    help: ClassVar[str] = "Runs the benchmarks of scripts in JavaScript that use tinybench."
    command: ClassVar[str] = "tinybench"
    library: ClassVar[str] = "tinybench"


PLUGIN = TinybenchHarness
