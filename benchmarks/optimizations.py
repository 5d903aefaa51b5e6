"""A program of 300 functions traced whole and with each pipeline of optimisations, in the same run.

    python benchmarks/optimizations.py [--slowdowns N] [--pipelines NAME ...]

Calls that are recorded, how much slower the program is, and the size of the profile; then whether `perun
check` names the function that was made slower, also where hardly anything else is traced. All versions of a
history are traced with one pipeline, three times each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.profile.factory import load_profile
from report import Count, Measured, Place, Row, table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "native"))

from many_functions import guilty, source  # noqa: E402

PIPELINES: Final = ("basic", "advanced", "full")
WHOLE: Final = "whole"
ALONE_RUNS: Final = 5
RUNS: Final = 3
"""Traces of each version: `check` takes the medians of the runs."""
CONFIG = "vcs: {type: git, url: ..}\ndegradation: {strategies: [{method: exclusive_time_outliers}]}\n"
AUTHOR = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
FLAGS = ("-O1", "-g", "-Wl,--build-id")
SLOWDOWNS: Final = 10


class Traced(NamedTuple):
    """What a trace recorded: calls, seconds that the program took, bytes of its profile."""

    calls: int
    seconds: float
    size: int


class Project:
    """A repository with the program, all of whose versions are traced with one pipeline."""

    def __init__(self, perun: str, folder: Path, pipeline: str) -> None:
        self._perun = perun
        self._pipeline = pipeline
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")
        (folder / ".gitignore").write_text(".perun\nprogram\n")
        self.commit("")
        self.perun("init")
        (folder / ".perun/local.yml").write_text(CONFIG)
        self.traces("base")

    def git(self, *argv: str) -> None:
        """Run git."""
        subprocess.run(["git", *AUTHOR, *argv], cwd=self.folder, check=True, capture_output=True)

    def perun(self, *argv: str) -> str:
        """What a command of Perun prints."""
        command = [self._perun, *argv]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"perun {' '.join(argv)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def commit(self, slower: str) -> None:
        """Compile and commit the program with a slower function."""
        if slower:
            self.git("checkout", "-q", "-b", f"slower-{slower}", "main")
        (self.folder / "program.c").write_text(source(slower))
        subprocess.run(["cc", *FLAGS, "-o", "program", "program.c"], cwd=self.folder, check=True)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"Make {slower} slower" if slower else "Begin")

    def traces(self, name: str) -> list[Traced]:
        """Trace the committed program :data:`RUNS` times, and register the profiles."""
        return [self._trace(f"{name}-{number}") for number in range(RUNS)]

    def _trace(self, name: str) -> Traced:
        options = [] if self._pipeline == WHOLE else ["-op", self._pipeline]
        path = self.folder / ".perun" / "jobs" / f"{name}.perf"
        command = ("collect", "-c", "./program", *options, "-pn", path.name)
        self.perun(*command, "trace", "-e", "ebpf", "-o", "suppress")
        region = load_profile(path)["trace"]
        found = Traced(region["calls"], region["duration"], path.stat().st_size)
        self.perun("add", path.name)
        return found

    def alone(self) -> Measured:
        """Seconds of the program alone."""
        times = []
        for _ in range(ALONE_RUNS):
            start = time.perf_counter()
            subprocess.run(["./program"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        return Measured(times)

    def named(self) -> str:
        """The function whose exclusive time `perun check` says to be worse by most; if it can say that of
        none, the one whose calls became slower by the largest ratio. Empty for none."""
        answer: dict[str, Any] = json.loads(self.perun("check", "head", "--json"))
        changes = [
            change
            for comparison in answer["comparisons"]
            for change in comparison["changes"]
            if "Degradation" in change["result"] and not change["result"].startswith("Total")
        ]
        worst = max(changes, key=lambda change: (change["type"] == "time", change["rate"]), default=None)
        return str(worst["location"]).rpartition(":")[2].partition(" [")[0] if worst else ""


def optimizations(place: Place) -> Iterator[Row | Count]:
    """Calls, slow-down and size with each pipeline beside everything traced, and what `check` names."""
    if why := EbpfEngine(os.environ).unavailable()[0]:
        print(f"optimizations: left out: the engine ebpf cannot run: {why}", file=sys.stderr)
        return
    yield from measured(place.perun, place.folder / "optimizations", SLOWDOWNS)


def measured(
    perun: str, folder: Path, slowdowns: int, pipelines: Sequence[str] = PIPELINES
) -> Iterator[Row | Count]:
    """The rows of all projects."""
    names = guilty()[:slowdowns]
    projects = {pipeline: Project(perun, folder / pipeline, pipeline) for pipeline in (WHOLE, *pipelines)}
    found: dict[str, list[Traced]] = {pipeline: [] for pipeline in projects}
    right = dict.fromkeys(found, 0)
    slower: dict[str, list[float]] = {pipeline: [] for pipeline in found}
    done = 0
    try:
        for name in names:
            for pipeline, project in projects.items():
                project.commit(name)
                alone = project.alone()
                traced = project.traces(name)
                found[pipeline] += traced
                slower[pipeline] += [one.seconds / alone for one in traced]
                told = project.named()
                right[pipeline] += told == name
                if told != name:
                    what = told or "nothing"
                    print(f"optimizations: {pipeline}: {what} is named, not {name}", file=sys.stderr)
            done += 1
    except (KeyboardInterrupt, SystemExit) as stop:  # what was measured by then is told, as a limit missed
        print(f"optimizations: ended after {done} of {len(names)} slowdowns: {stop}", file=sys.stderr)
        if not done:
            raise
    for pipeline in pipelines:
        limit = 0.1 if pipeline == "basic" else None
        for what, field, unit, most in (("calls", "calls", "", limit), ("profile", "size", "B", None)):
            ours, all_ = (
                Measured([getattr(one, field) for one in found[which]]) for which in (pipeline, WHOLE)
            )
            yield Row(f"trace 300 functions, {pipeline}: {what}", ours, all_, "traced whole", most, unit)
        ours, all_ = (Measured(slower[which]) for which in (pipeline, WHOLE))
        yield Row(f"trace 300 functions, {pipeline}: slow-down", ours, all_, "traced whole", None, "x")
    for pipeline, count in right.items():
        least = len(names) if pipeline == "basic" else None
        whole = f"{right[WHOLE]} traced whole"
        yield Count(f"check names the slower function, {pipeline}", count, len(names), least, others=whole)


def main() -> int:
    """Print the table; 1 where a limit is missed. Where it is interrupted, of what was measured by then."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--perun", default=str(Path(sys.executable).with_name("perun")))
    parser.add_argument("--slowdowns", type=int, default=SLOWDOWNS)
    parser.add_argument("--pipelines", nargs="+", choices=PIPELINES, default=PIPELINES)
    options = parser.parse_args()
    if not shutil.which("cc"):
        raise SystemExit("there is no compiler: install one with: apt-get install gcc")
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        os.environ |= {"HOME": folder, "PERUN_CONFIG_DIR": folder, "GIT_CONFIG_GLOBAL": "/dev/null"}
        rows = list(measured(options.perun, Path(folder, "projects"), options.slowdowns, options.pipelines))
    print(table(rows))
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
