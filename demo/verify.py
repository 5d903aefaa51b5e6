"""Read an answer of `perun check --json` from standard input; fail unless it names just what it should.

Usage: verify.py history|hook
"""

from __future__ import annotations

import json
import subprocess
import sys

EXPECTED = {
    "history": {
        ("Write search as a loop over positions", "Degradation"),
        ("Keep the number of nodes instead of counting them", "Optimization"),
    },
    "hook": {("Let search ask first whether the value is there", "Degradation")},
}


def subject_of(version: str) -> str:
    """The first line of the message of a commit in the current directory."""
    command = ["git", "show", "--no-patch", "--format=%s", version]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Compare what was found with what is known of the history."""
    expected = EXPECTED[sys.argv[1]]
    report = json.load(sys.stdin)
    found = {  # once of a commit, though the clocks of a command are compared one by one
        (subject_of(comparison["minor_version"]), change["result"].removeprefix("Severe"))
        for comparison in report["comparisons"]
        for change in comparison["changes"]
    }
    compared = sum(comparison["baseline"] is not None for comparison in report["comparisons"])
    if found == expected:
        print(f"Of {compared} pairs of profiles, Perun names the {len(expected)} that matter:")
        for subject, result in sorted(found):
            print(f"  {result.lower():13} {subject}")
        return 0
    print("This is not what is known of the history:", file=sys.stderr)
    for subject, result in sorted(found - expected):
        print(f"  reported though nothing changed: {result} at {subject!r}", file=sys.stderr)
    for subject, result in sorted(expected - found):
        print(f"  not found: {result} at {subject!r}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
