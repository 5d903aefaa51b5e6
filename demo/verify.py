"""Ask each command for the definite changes; fail unless all name just those that are known, with one ratio.

Usage, in the demo project: verify.py history|hook
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

DIRECTIONS = {
    "SevereDegradation": "degradation",
    "Degradation": "degradation",
    "Optimization": "optimization",
    "SevereOptimization": "optimization",
}
HISTORY = {
    "Write search as a loop over positions": "degradation",
    "Keep the number of nodes instead of counting them": "optimization",
}
HOOK = {"Let search ask first whether the value is there": "degradation"}
FAMILY = "lengths"
DIGITS = 4


class Found(NamedTuple):
    """A definite change of the headline of the measured lengths: in which version, and how large."""

    version: str
    direction: str
    ratio: float


def answer(*arguments: str) -> dict[str, Any]:
    """What a command answers as JSON."""
    made = subprocess.run(["perun", *arguments, "--json"], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def subject_of(version: str) -> str:
    """The first line of the message of a commit in the current directory."""
    command = ["git", "show", "--no-patch", "--format=%s", version]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def by_check(*arguments: str) -> Iterator[Found]:
    """What `perun check` says, of all clocks: a definite word of any is about its version."""
    for one in answer("check", *arguments)["comparisons"]:
        for change in one["changes"]:
            if one["workload"] == FAMILY and change["result"] in DIRECTIONS:
                yield Found(one["minor_version"], DIRECTIONS[change["result"]], change["factor"])


def by_log() -> Iterator[Found]:
    """What `perun log` says."""
    for version in answer("log")["versions"]:
        for value in version["values"]:
            yield from judged(version["checksum"], value["workload"], value["difference"])


def by_trend() -> Iterator[Found]:
    """What `perun trend` says."""
    for series in answer("trend")["series"]:
        for point in series["points"]:
            yield from judged(point["version"], series["workload"], point["difference"])


def by_changes() -> Iterator[Found]:
    """What `perun changes` says of the headlines."""
    for version in answer("changes")["changes"]:
        for step in version["steps"]:
            if step["headline"]:
                yield from judged(version["version"], step["workload"], step)


def judged(version: str, workload: str, verdict: dict[str, Any] | None) -> Iterator[Found]:
    """The change, if the verdict is a definite one of the lengths."""
    if verdict is not None and workload == FAMILY and verdict["verdict"] in DIRECTIONS:
        yield Found(version, DIRECTIONS[verdict["verdict"]], verdict["ratio"])


def main() -> int:
    """Compare what the commands say with what is known of the history, and with each other."""
    whole = sys.argv[1] == "history"
    expected = HISTORY if whole else HOOK
    told = {"check": list(by_check("all" if whole else "head"))}
    told |= {"log": list(by_log()), "trend": list(by_trend()), "changes": list(by_changes())}
    wrong = []
    for command, found in told.items():
        named = {subject_of(one.version): one.direction for one in found}
        if command != "check" and not whole:
            named = {subject: direction for subject, direction in named.items() if subject not in HISTORY}
        for subject in sorted(named.keys() | expected.keys()):
            if named.get(subject) != expected.get(subject):
                known, one = expected.get(subject, "nothing"), named.get(subject, "nothing")
                wrong.append(f"perun {command} says {one} of {subject!r}, where {known} is known")
    ratios = {one.version: f"{one.ratio:.{DIGITS}g}" for one in told["log"]}
    for command, found in told.items():
        for version, ratio in ratios.items():
            own = {f"{one.ratio:.{DIGITS}g}" for one in found if one.version == version}
            if own and ratio not in own:
                wrong.append(f"perun {command} says {', '.join(own)} of {version[:7]}, perun log {ratio}")
    if wrong:
        print("This is not what is known of the history:", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{', '.join(told)} name the {len(expected)} that matter, each with the same ratio:")
    for one in told["log"]:
        if subject_of(one.version) in expected:
            print(f"  {one.direction:13} {one.ratio:.3g}x  {subject_of(one.version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
