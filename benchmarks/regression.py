"""Regression analysis beside the released `perun-toolsuite`: 100,000 points of 20 uids.

python benchmarks/regression.py --peer PATH/TO/perun [--perun PATH/TO/perun] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import repositories
from harness import Contestant, compete
from perun.plugin.api import PostprocessContext
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.factory import Profile
from perun.profile.formats import dumps_object, loads
from perun.profile.models.selection import Plan, full
from perun.profile.series import series
from run import Row, table

POINTS = 100_000
UIDS = 20
CPU_LIMIT = 0.05
COMMAND = ["postprocessby", "./trace.perf", "regression-analysis", "-m", "full"]


def rows(perun: str, peer: str, folder: Path, rounds: int) -> Iterator[Row]:
    """Wall time of the command beside that of the peer, and CPU time of the computation alone."""
    place = folder / "regression"
    repositories.history(place, 1)
    subprocess.run([perun, "init", str(place)], check=True, capture_output=True)
    content = dumps_object(profile())
    (place / "trace.perf").write_bytes(content)
    result = compete(
        {
            "ours": Contestant([perun, *COMMAND], place, _empty(place)),
            "peer": Contestant([peer, *COMMAND], place, _empty(place)),
        },
        max(3, rounds // 5),
    )
    name = f"regression-analysis -m full, {POINTS:,} points"
    yield Row(name, result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 10)

    loaded = loads(content, "trace.perf")
    groups = list(series(loaded))
    assert sum(len(group.x) for group in groups) == POINTS
    plan = Plan()
    alone = _cpu(lambda: [full(group.x, group.y, plan) for group in groups], rounds)
    yield Row(f"the computation alone, {UIDS} uids, CPU", alone, CPU_LIMIT, "limit", 1)
    params, context = RegressionParams("full"), PostprocessContext()
    plugin = _cpu(lambda: RegressionAnalysis().process(loaded, params, context), rounds)
    yield Row("with the points taken from the profile, CPU", plugin, CPU_LIMIT, "limit", None)


def profile() -> Profile:
    """Times of functions depending on the size of a structure, in columns as the trace collector has them."""
    random = np.random.default_rng(1)
    resources, constants = {}, {}
    for number in range(UIDS):
        uid = f"SLList_search{number}(SLList*, int)"
        x = random.integers(0, 12_000, POINTS // UIDS)
        y = np.abs(0.004 * x + random.normal(5, 1, x.size)).round(3)
        resources[f"{uid}#0"] = {"amount": y.tolist(), "structure-unit-size": x.tolist()}
        constants[f"{uid}#0"] = {"uid": uid, "type": "mixed", "subtype": "time delta"}
    units = {"mixed(time delta)": "us"}
    return Profile(
        {
            "header": {"type": "mixed", "cmd": "./mybin", "args": "", "workload": "", "units": units},
            "collector_info": {"name": "trace", "params": {}},
            "postprocessors": [],
            "resource_type_map": constants,
            "resources": resources,
        }
    )


def _empty(place: Path) -> Callable[[], None]:
    def prepare() -> None:
        for path in (place / ".perun" / "jobs").iterdir():
            path.unlink()

    return prepare


def _cpu(work: Callable[[], object], rounds: int) -> float:
    samples = []
    for _ in range(rounds + 1):
        start = time.process_time()
        work()
        samples.append(time.process_time() - start)
    return statistics.median(samples[1:])


def main() -> int:
    """Print the rows; 1 where a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the perun command of perun-toolsuite 0.28.3")
    parser.add_argument("--perun", default=str(Path(sys.executable).with_name("perun")))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perun-bench-") as folder:
        home = Path(folder, "home")
        (home / "perun").mkdir(parents=True)  # the peer does not make it
        os.environ |= {
            "HOME": str(home),
            "PERUN_CONFIG_DIR": str(home / "perun"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        found = list(
            rows(os.path.abspath(options.perun), os.path.abspath(options.peer), Path(folder), options.rounds)
        )
    print(table(found))
    return int(not all(row.met for row in found))


if __name__ == "__main__":
    sys.exit(main())
