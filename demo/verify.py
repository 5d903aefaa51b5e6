"""Ask each command for the changes; fail unless all name just those that are known, with one ratio.

`perun check` has to be certain of them. What the others show of the whole command may be a Maybe on a busy
machine; of no other version may any of them be certain.

Usage, in the demo project: verify.py history|hook|dashboard
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DIRECTIONS = {
    "SevereDegradation": "degradation",
    "Degradation": "degradation",
    "MaybeDegradation": "degradation",
    "MaybeOptimization": "optimization",
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
    """A change of the measured lengths: in which version, how large, and whether that is certain."""

    version: str
    direction: str
    ratio: float
    certain: bool


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
    """What `perun check` says, of all clocks."""
    for one in answer("check", *arguments)["comparisons"]:
        for change in one["changes"]:
            if one["workload"] == FAMILY and change["result"] in DIRECTIONS:
                certain = not change["result"].startswith("Maybe")
                yield Found(one["minor_version"], DIRECTIONS[change["result"]], change["factor"], certain)


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
    """The change, if the verdict is one of the lengths."""
    if verdict is not None and workload == FAMILY and (word := verdict["verdict"]) in DIRECTIONS:
        yield Found(version, DIRECTIONS[word], verdict["ratio"], not word.startswith("Maybe"))


def on_the_dashboard() -> list[str]:
    """What the first page of the dashboard lacks."""
    page = Path("dashboard/data/overview.js").read_text("utf-8")
    wrong = [f"the dashboard does not name {subject!r}" for subject in HISTORY | HOOK if subject not in page]
    if not re.search('"worse":[1-9]', page):
        wrong.append("the headline of the dashboard says that nothing is slower")
    return wrong


def main() -> int:
    """Compare what the commands say with what is known of the history, and with each other."""
    if sys.argv[1] == "dashboard":
        wrong = on_the_dashboard()
        for one in wrong:
            print(one, file=sys.stderr)
        return bool(wrong)
    whole = sys.argv[1] == "history"
    expected = HISTORY if whole else HOOK
    told = {"check": list(by_check("all" if whole else "head"))}
    told |= {"log": list(by_log()), "trend": list(by_trend()), "changes": list(by_changes())}
    wrong = []
    for command, found in told.items():
        certain = {subject_of(one.version): one.direction for one in found if one.certain}
        maybe = {subject_of(one.version): one.direction for one in found}
        for subject, direction in expected.items():
            said = (certain if command == "check" else maybe).get(subject, "nothing")
            if said != direction:
                wrong.append(f"perun {command} says {said} of {subject!r}, where {direction} is known")
        wrong += [
            f"perun {command} says {direction} of {subject!r}, where nothing changed"
            for subject, direction in certain.items()
            if subject not in HISTORY | HOOK
        ]
    ratios = {one.version: f"{one.ratio:.{DIGITS}g}" for one in told["log"] if one.certain}
    for command, found in told.items():
        for version, ratio in ratios.items():
            own = {f"{one.ratio:.{DIGITS}g}" for one in found if one.version == version}
            if own and ratio not in own:
                wrong.append(f"perun {command} says {', '.join(own)} of {version[:7]}, perun log {ratio}")
    if wrong:
        print("This is not what is known of the history:", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{', '.join(told)} name the {len(expected)} that matter:")
    for one in told["log"]:
        if subject_of(one.version) in expected:
            print(f"  {one.direction:13} {one.ratio:.3g}x  {subject_of(one.version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
