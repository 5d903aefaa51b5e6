"""Perun beside the released `perun-toolsuite`, git and libraries, in the same run: `make bench`.

    python benchmarks/run.py --peer PATH/TO/perun [--rounds N] [--only NAME ...] [--write docs/benchmarks.md]

Prints tables of medians, their spread and ratios; a ratio above its limit ends the run with status 1. Names
are those of the modules and of the functions in them. With `--only` what is written takes the place of the
sections of these modules, whose scenarios all run; the rest of the file stays as it is.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import bench_start
import bounds
import callgraph
import changes
import check
import documents
import duet
import fuzz
import fuzz_speed
import history
import imports
import instructions
import island
import kernel
import large_store
import memory
import moving_average
import optimizations
import profiles
import regression
import rounds
import sampling
import sharing
import sharing_git
import stores
import tables
import tracing
import verdicts
import versions
import views
import web
from report import Count, Place, Row, renewed, table, written

SCENARIOS: Mapping[ModuleType, tuple[Callable[[Place], Iterator[Row | Count]], ...]] = {
    versions: (
        versions.start,
        versions.small,
        versions.history,
        versions.collect,
        versions.add,
        versions.index,
    ),
    stores: (stores.stores,),
    large_store: (large_store.large_store,),
    profiles: (profiles.columns, profiles.dataframe, profiles.rows, profiles.ten_million),
    regression: (regression.regression,),
    moving_average: (moving_average.moving_average,),
    kernel: (kernel.kernel,),
    bench_start: (bench_start.bench,),
    check: (check.check_all, check.check_memory, check.check_many),
    views: (views.scatter, views.flamegraph),
    documents: (documents.documents,),
    tables: (tables.tables,),
    memory: (memory.memory,),
    instructions: (instructions.instructions,),
    island: (island.island,),
    fuzz_speed: (fuzz_speed.fuzz_speed,),
    fuzz: (fuzz.fuzz,),
    tracing: (tracing.complexity, tracing.engines),
    bounds: (bounds.bounds,),
    callgraph: (callgraph.callgraphs,),
    changes: (changes.vote, changes.many),
    history: (history.history,),
    web: (web.web,),
    imports: (imports.imports,),
    sampling: (sampling.sampling,),
    sharing: (sharing.few_among_many, sharing.first_pull),
    sharing_git: (sharing_git.git_repository,),
    optimizations: (optimizations.optimizations,),
    verdicts: (
        verdicts.unchanged,
        verdicts.slowed,
        verdicts.loaded,
        verdicts.loaded_default,
        verdicts.powers,
    ),
    duet: (duet.duet,),
    rounds: (rounds.rounds,),
}


def preamble(peer: str) -> str:
    """Date, machine and versions."""
    version = once_output([peer, "--version"])
    git = once_output(["git", "--version"])
    return (
        "# Benchmarks\n\n"
        "Made by `make bench`, which measures Perun, the released `perun-toolsuite` and git in the same run: "
        "interleaved rounds, medians of wall time unless CPU is named, in brackets the least and the most of "
        "the rounds. `missed`: the ratio is above its limit, or above 1 where none is promised. `behind`: "
        "it is within the limit, and above 1.\n\n"
        f"{datetime.date.today()}, {os.cpu_count()} cores ({platform.machine()}), "
        f"Linux {platform.release().split('-')[0]}, Python {platform.python_version()}, {git}, "
        f"compared with {version} from PyPI.\n"
    )


def once_output(argv: list[str]) -> str:
    """The standard output of a command."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def chosen(names: Sequence[str]) -> list[Callable[[Place], Iterator[Row | Count]]]:
    """The scenarios of these names, each that of a module or a function; all where there are none."""
    named = [
        (scenario, {module.__name__, scenario.__name__})
        for module, scenarios in SCENARIOS.items()
        for scenario in scenarios
    ]
    unknown = set(names) - set().union(*(own for _, own in named))
    if unknown:
        raise SystemExit(f"no benchmark is called {', '.join(sorted(unknown))}")
    return [scenario for scenario, own in named if not names or own.intersection(names)]


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
    scenarios = chosen(options.only)
    if options.write and options.only:
        scenarios = chosen([one.__module__ for one in scenarios])
    rows: defaultdict[str, list[Row | Count]] = defaultdict(list)
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        home = Path(folder, "home")
        (home / "perun").mkdir(parents=True)  # the peer does not make it
        os.environ |= {
            "HOME": str(home),
            "PERUN_CONFIG_DIR": str(home / "perun"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        place = Place(options.perun, options.peer, Path(folder), options.rounds)
        introduction = preamble(options.peer)
        failed = []
        for scenario in scenarios:
            try:
                for row in scenario(place):
                    print(row.line, flush=True)
                    rows[scenario.__module__].append(row)
                    loads.append(os.getloadavg()[0])
            except (Exception, SystemExit):  # the other rows, of an hour, are not lost for it
                traceback.print_exc()
                failed.append(f"{scenario.__module__}.{scenario.__name__}")
    run = f"{datetime.date.today()}, load of the machine {min(loads):.1f} to {max(loads):.1f}"
    made = {name: f"{run}\n\n{table(own)}\n" for name, own in rows.items()}
    print("\n" + written(introduction, made))
    if options.write and options.only:
        options.write.write_text(renewed(options.write.read_text("utf-8"), made), encoding="utf-8")
    elif options.write:
        options.write.write_text(written(introduction, made), encoding="utf-8")
    for name in failed:
        print(f"failed, see above: {name}", file=sys.stderr)
    return int(bool(failed) or not all(row.met for own in rows.values() for row in own))


if __name__ == "__main__":
    sys.exit(main())
