"""`perun collect island`: Python programs that are recorded by the real command, and what is told of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
import sys
import threading
import time

def work(number):
    with open(f"out{number}.txt", "w") as file:
        for _ in range(25):
            file.write("12345678")

threads = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(0.01)
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
"""


@pytest.fixture
def collected(
    project: Path, perun: Callable[..., Any], pending: Callable[[], list[Path]]
) -> Callable[..., dict[str, Any]]:
    """Collect the program with the options; the profile."""

    def collect(*options: str, program: str = PROGRAM, args: str = "") -> dict[str, Any]:
        (project / "prog.py").write_text(program)
        before = set(pending())
        perun("collect", "-c", f"{sys.executable} prog.py", "-a", args, "island", *options)
        (path,) = set(pending()) - before
        profile: dict[str, Any] = json.loads(path.read_text())
        return profile

    return collect


def rows(profile: dict[str, Any]) -> list[dict[str, Any]]:
    """The resources of the profile, one by one."""
    found = []
    for key, constants in profile["resource_type_map"].items():
        columns = profile["resources"][key]
        found += [
            constants | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return found


def test_four_threads_write_800_bytes(collected: Callable[..., dict[str, Any]]) -> None:
    profile = collected()
    written = [row for row in rows(profile) if row["subtype"] == "filewrite" and row["amount"]]
    assert sorted((row["thread"], row["uid"], row["amount"]) for row in written) == [
        (f"worker-{number}", f"out{number}.txt#1", 200) for number in range(4)
    ]
    assert sum(row["amount"] for row in rows(profile) if row["subtype"] == "filesopened") == 4
    assert profile["header"]["units"]["disk (filewrite)" if "disk (filewrite)" in profile["header"]["units"] else "disk"] == "B"
