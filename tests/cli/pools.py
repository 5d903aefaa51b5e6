"""What the tests of pools share: a project whose program notes when it runs, and what these notes say."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

LIMIT = 300
"""Seconds after which something never comes."""
PROGRAM = """\
echo "begin $$ {number} $*" >>"$RECORD"
sleep {seconds}
echo "end $$ {number} $*" >>"$RECORD"
"""
LOCAL = """\
vcs: {{type: git, url: ..}}
cmds: [sh run.sh]
args: [{args}]
collectors: [{{name: time, params: {{warmup: 0, repeat: 1}}}}]
execute: {{pre_run: [sh build.sh]}}
pool: {{patience: 600, attempts: 1000, drift: 0}}
"""


@dataclass(frozen=True)
class Notes:
    """What the programs of a project have noted, in their order: builds, and the begin and end of runs."""

    lines: list[list[str]]

    @property
    def begun(self) -> Counter[tuple[str, str]]:
        """How often each version was run with each argument."""
        return Counter((number, args) for word, _, number, args in self.lines if word == "begin")

    @property
    def overlapping(self) -> list[tuple[str, str]]:
        """The runs that began while another went on, which ended afterwards; with that one."""
        ends = {pid: place for place, (word, pid, *_) in enumerate(self.lines) if word == "end"}
        begins = [(place, pid) for place, (word, pid, *_) in enumerate(self.lines) if word == "begin"]
        return [
            (first, second)
            for start, first in begins
            for place, second in begins
            if start < place < ends.get(first, 0)
        ]


class PoolProject:
    """A project with versions that take some time to run, and a job matrix of them with several arguments."""

    def __init__(self, project: Any, record: Path) -> None:
        self.project = project
        self.record = record
        record.touch()

    def fill(self, versions: int, args: int, seconds: float = 0.02) -> None:
        """Commit so many versions, and configure so many arguments."""
        for number in range(versions):
            program = PROGRAM.format(number=number, seconds=seconds)
            build = f'echo "build $$ {number} -" >>"$RECORD"\n'
            self.project.commit(f"Number {number}", {"run.sh": program, "build.sh": build})
        listed = ", ".join(f"a{number}" for number in range(args))
        (self.project.path / ".perun/local.yml").write_text(LOCAL.format(args=listed))

    @property
    def notes(self) -> Notes:
        """What was noted until now."""
        return Notes([line.split() for line in self.record.read_text().splitlines()])

    def profiles(self) -> Counter[tuple[str, str]]:
        """How many pending profiles there are of each version and argument."""
        found: Counter[tuple[str, str]] = Counter()
        for path in (self.project.path / ".perun/jobs").glob("*.perf"):
            profile = json.loads(path.read_bytes())
            subject = self.project.git("log", "-1", "--format=%s", profile["origin"])
            found[subject.removeprefix("Number ").strip(), profile["header"]["args"]] += 1
        return found

    @property
    def journals(self) -> list[Path]:
        """The journals of batches."""
        return sorted((self.project.path / ".perun/batches").glob("*.jsonl"))


def run(command: list[str], environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run `perun run matrix` with these words to its end, however busy the machine is."""
    done = subprocess.run(
        [*command, "run", "matrix", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done
    return done


def wanted(versions: int, args: int) -> dict[tuple[str, str], int]:
    """One of each version and argument, as :attr:`Notes.begun` and :meth:`PoolProject.profiles` have them."""
    return {(str(number), f"a{one}"): 1 for number in range(versions) for one in range(args)}


def eventually(is_so: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until it is so; a process that has ended cannot make it so any more."""
    deadline = time.monotonic() + LIMIT
    while not is_so():
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.02)


def jobs_of(machine: str, word: str = "") -> list[int]:
    """The processes on machines whose names begin so; if there is a word, those that were called with it."""
    found = []
    for process in psutil.process_iter():
        try:
            named = process.environ().get("PERUN_POOL_MACHINE", "").startswith(machine)
            if named and (not word or word in process.cmdline()):
                found.append(process.pid)
        except psutil.Error:
            continue  # it has ended, or is of another user
    return found
