"""The options of an island, declared once: for `python -m perun.island`, and for the collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.island.stop_log import RULES
from perun.plugin.params import param

HOLDERS: Final = ("stops", "cgroup")
FORMATS: Final = ("text", "json")
TIMELINES: Final = ("none", "text", "json", "csv")


@dataclass(frozen=True)
class IslandOptions:
    """What is recorded of a program, what it may use, and how stops are accounted."""

    limit: tuple[str, ...] = param(
        (),
        short="-l",
        metavar="<name>=<value>",
        help="Limit a resource: bytes per second (filewrite=10, tcpsend=1e6), a count of what is held at one "
        "time (filesopened=5, outsockets=1, events=3) or a share of a processor (cpu=0.25). May be repeated.",
    )
    burst: float = param(
        0.0,
        metavar="<seconds>",
        minimum=0,
        help="Seconds of a rate that may be used at once, before a limit makes the program wait.",
    )
    hold_cpu_by: str = param(
        HOLDERS[0],
        choices=HOLDERS,
        help="How the share of --limit cpu is held: the program is stopped again and again (stops), or the "
        "scheduler holds its control group back (cgroup), which needs the right to make one.",
    )
    stop_rule: str = param(
        "exact",
        choices=tuple(RULES),
        help="How much of a call counts as stopped where the program was stopped in it: what the stop cost "
        "(exact), all of the stop or nothing (seed), or what exceeds the time that it was expected to take "
        "(source2010).",
    )
    all_calls: bool = param(
        False,
        help="Also record the functions of the module os that read and write past the objects of files and "
        "sockets.",
    )


@dataclass(frozen=True)
class RunnerOptions(IslandOptions):
    """The options of `python -m perun.island` itself: where the recordings are, and what is reported."""

    output: str = param(
        "", short="-o", metavar="<file>", help="Write the report to this file, not to the standard error."
    )
    format: str = param("text", choices=FORMATS, help="The format of the report.")
    timeline: str = param(
        "none", choices=TIMELINES, help="Write also the timeline of all calls and stops, behind the report."
    )
    chrome_trace: str = param(
        "", metavar="<file>", help="Write the timeline for chrome://tracing and https://ui.perfetto.dev."
    )
    speedscope: str = param("", metavar="<file>", help="Write the timeline for https://www.speedscope.app.")
    record_to: str = param(
        "",
        metavar="<folder>",
        help="Keep the recordings in this new folder, and write no report unless --output names a file.",
    )
    python: str = param(
        "",
        metavar="<path>",
        help="The Python that runs the program; without it the one that runs perun.island.",
    )
    python_option: tuple[str, ...] = param(
        (), metavar="<option>", help="An option for that Python, e.g. --python-option=-Xdev. May be repeated."
    )
