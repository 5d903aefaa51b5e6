"""Perun beside the released `perun-toolsuite` and git, in the same run: `make bench`.

    python benchmarks/run.py --peer PATH/TO/perun [--rounds N] [--write docs/benchmarks.md]

Prints a table of medians and ratios; a ratio above its limit ends the run with status 1.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import repositories
from harness import Contestant, compete
from perun.store import Store
from perun.store.linking import link

BARE_LOOP = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.wait4(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
"""


@dataclass(frozen=True)
class Row:
    """One comparison: ours and the peer's median, and how large their ratio may be."""

    what: str
    ours: float
    peer: float
    peer_name: str
    limit: float | None
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("nan")

    @property
    def met(self) -> bool:
        return self.limit is None or self.ratio <= self.limit


class Bench:
    """The scenarios; each yields its rows."""

    def __init__(self, perun: str, peer: str, folder: Path, rounds: int) -> None:
        self.perun = perun
        self.peer = peer
        self.folder = folder
        self.rounds = rounds

    def scenarios(self) -> list[Callable[[], Iterator[Row]]]:
        return [self.start, self.history, self.collect, self.add, self.index]

    def repository(self, name: str, commits: int) -> Path:
        folder = self.folder / name
        repositories.history(folder, commits)
        subprocess.run([self.perun, "init", str(folder)], check=True, capture_output=True)
        return folder

    def start(self) -> Iterator[Row]:
        folder, theirs = self.repository("start", 2000), self.folder / "start-peer"
        repositories.register(folder, 500, every=4)
        shutil.copytree(folder, theirs)  # the peer leaves a file for each version it shows
        for arguments, limit in (
            (["--version"], 1 / 5),
            (["--help"], 1 / 5),
            (["--no-pager", "status"], 1 / 4),
            (["--no-pager", "log", "--short"], 1 / 4),
        ):
            result = compete(
                {
                    "ours": Contestant([self.perun, *arguments], folder),
                    "peer": Contestant([self.peer, *arguments], theirs),
                },
                self.rounds,
            )
            name = "perun " + " ".join(arguments).removeprefix("--no-pager ")
            yield Row(name, result["ours"].wall, result["peer"].wall, "0.28.3", limit)

    def history(self) -> Iterator[Row]:
        folder, small = self.repository("history", 100_000), self.repository("start-up", 1)
        log = [self.perun, "--no-pager", "log", "--short"]
        result = compete(
            {
                "ours": Contestant(log, folder),
                "start": Contestant(log, small),
                "one": Contestant(["git", "log", "-1"], folder),
                "git": Contestant(["git", "log", "--oneline"], folder),
            },
            max(3, self.rounds // 3),
        )
        first = result["ours"].first_output - result["start"].first_output
        name = "log --short, 100,000 commits: "
        yield Row(
            name + "first line, beyond that of one commit", max(first, 0), result["one"].wall, "git log -1", 3
        )
        whole, git = result["ours"], result["git"]
        yield Row(name + "whole, wall", whole.wall, git.wall, "git log --oneline", 3)
        yield Row(name + "whole, CPU", whole.cpu, git.cpu, "git log --oneline", 3)

    def collect(self) -> Iterator[Row]:
        folder = self.repository("collect", 1)
        once_each = ["collect", "-c", "true", "time", "--warmup", "1", "--repeat", "1"]
        result = compete(
            {
                "ours": Contestant([self.perun, *once_each], folder),
                "peer": Contestant([self.peer, *once_each], folder),
            },
            max(3, self.rounds // 2),
        )
        yield Row("collect -c true time, one run", result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 10)
        runs = 500
        many = ["collect", "-c", "true", "time", "--warmup", "0", "--repeat"]
        result = compete(
            {
                "few": Contestant([self.perun, *many, "1"], folder),
                "many": Contestant([self.perun, *many, str(runs + 1)], folder),
                "bare few": Contestant([sys.executable, "-c", BARE_LOOP, "1"], folder),
                "bare many": Contestant([sys.executable, "-c", BARE_LOOP, str(runs + 1)], folder),
            },
            max(3, self.rounds // 3),
        )
        ours = (result["many"].wall - result["few"].wall) / runs
        bare = (result["bare many"].wall - result["bare few"].wall) / runs
        yield Row("time collector, one run more", ours, bare, "posix_spawn + wait4", (bare + 0.001) / bare)

    def add(self) -> Iterator[Row]:
        ours, peer = self.repository("add", 1), self.folder / "add-peer"
        shutil.copytree(ours, peer)

        def refill(folder: Path) -> Callable[[], None]:
            contents = list(repositories.pending(folder, 100))

            def prepare() -> None:
                shutil.rmtree(folder / ".perun" / "objects")
                (folder / ".perun" / "objects").mkdir()
                for path, content in contents:
                    path.write_bytes(content)

            return prepare

        result = compete(
            {
                "ours": Contestant([self.perun, "add", "0@p-99@p"], ours, refill(ours)),
                "peer": Contestant([self.peer, "add", "0@p-99@p"], peer, refill(peer)),
            },
            max(3, self.rounds // 3),
        )
        yield Row("add of 100 profiles", result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 4)

    def index(self) -> Iterator[Row]:
        folder = self.repository("index", 1)
        head = repositories.checksums(folder)[0]
        profile = repositories.time_profile(0.1)
        items = [(profile, f"time-{number}.perf", number) for number in range(10_000)]
        link(Store(folder / ".perun"), head, items)
        status = Contestant([self.perun, "status", "--json"], folder)
        result = compete({"ours": status}, max(3, self.rounds // 3))
        yield Row("status --json of 10,000 profiles, CPU", result["ours"].cpu, 0.2, "limit", 1)
        start = os.times()
        count = len(Store(folder / ".perun").indexes.read(head))
        spent = os.times()
        assert count == 10_000
        cpu = spent.user + spent.system - start.user - start.system
        yield Row("listing an index of 10,000 entries, CPU", cpu, 0.2, "limit", 1)


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| what | Perun | compared with | there | ratio | limit |", "|---|---|---|---|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.2f}" + ("" if row.met else " (missed)")
        lines.append(
            f"| {row.what} | {row.ours * 1000:.1f} ms | {row.peer_name} | {row.peer * 1000:.1f} ms "
            f"| {row.ratio:.3f} | {limit} |"
        )
    return "\n".join(lines)


def preamble(peer: str) -> str:
    """Date, machine and versions."""
    version = once_output([peer, "--version"])
    git = once_output(["git", "--version"])
    return (
        "# Benchmarks\n\n"
        "Made by `make bench`, which measures Perun, the released `perun-toolsuite` and git in the same run: "
        "interleaved rounds, medians of wall time unless CPU is named.\n\n"
        f"{datetime.date.today()}, {os.cpu_count()} cores ({platform.machine()}), "
        f"Linux {platform.release().split('-')[0]}, Python {platform.python_version()}, {git}, "
        f"compared with {version} from PyPI.\n"
    )


def once_output(argv: list[str]) -> str:
    """The standard output of a command."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Run the scenarios, print and write the table; 1 where a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the perun command of perun-toolsuite 0.28.3")
    parser.add_argument("--perun", default=str(Path(sys.executable).with_name("perun")))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    options.peer, options.perun = os.path.abspath(options.peer), os.path.abspath(options.perun)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        home = Path(folder, "home")
        (home / "perun").mkdir(parents=True)  # the peer does not make it
        os.environ |= {
            "HOME": str(home),
            "PERUN_CONFIG_DIR": str(home / "perun"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        bench = Bench(options.perun, options.peer, Path(folder), options.rounds)
        introduction = preamble(options.peer)
        for scenario in bench.scenarios():
            if options.only and scenario.__name__ not in options.only:
                continue
            for row in scenario():
                print(table([row]).splitlines()[-1], flush=True)
                rows.append(row)
    text = introduction + "\n" + table(rows) + "\n"
    print("\n" + text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return int(not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
