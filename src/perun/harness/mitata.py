"""The benchmarks of scripts that use mitata, a library of JavaScript."""

from __future__ import annotations

from typing import ClassVar

from perun.harness._js import NodeScripts


class MitataHarness(NodeScripts):
    """Runs the benchmarks of mitata 1, one process for each; those with arguments are a family.

    A sample is exactly the number of calls. Of five samples, after a tenth of a second or longer to warm
    up, the middle one counts: mitata tells them sorted. What a benchmark with `manual` measures itself is the
    mean of so many calls.
    """

    name: ClassVar[str] = "mitata"
    help: ClassVar[str] = "Runs the benchmarks of scripts in JavaScript that use mitata."
    command: ClassVar[str] = "mitata"
    library: ClassVar[str] = "mitata"
    by_position: ClassVar[bool] = True


PLUGIN = MitataHarness
