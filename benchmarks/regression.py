"""Regression analysis beside the released `perun-toolsuite`: 100,000 points of 20 uids."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import repositories
from harness import Contestant, compete, cpu
from perun.models.regression.methods import RegressionOptions, full
from perun.plugin.api import PostprocessContext
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object, loads
from perun.profile.series import series
from report import Place, Row

POINTS = 100_000
UIDS = 20
CPU_LIMIT = 0.05
COMMAND = ["postprocessby", "./trace.perf", "regression-analysis", "-m", "full"]


def regression(place: Place) -> Iterator[Row]:
    """Wall time of the command beside that of the peer, and CPU time of the computation alone."""
    folder = place.folder / "regression"
    repositories.history(folder, 1)
    subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
    content = dumps_object(profile())
    (folder / "trace.perf").write_bytes(content)
    result = compete(
        {
            "ours": Contestant([place.perun, *COMMAND], folder, _empty(folder)),
            "peer": Contestant([place.peer, *COMMAND], folder, _empty(folder)),
        },
        max(5, place.rounds // 3),
    )
    name = f"regression-analysis -m full, {POINTS:,} points"
    yield Row(name, result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 10)

    loaded = loads(content, "trace.perf")
    groups = list(series(loaded))
    assert sum(len(group.x) for group in groups) == POINTS
    plan = RegressionOptions()
    alone, _ = cpu(lambda: [full(group.x, group.y, plan) for group in groups], place.rounds)
    yield Row(f"the computation alone, {UIDS} uids, CPU", alone, CPU_LIMIT, "limit", 1)
    params, context = RegressionParams("full"), PostprocessContext()
    plugin, _ = cpu(lambda: RegressionAnalysis().process(loaded, params, context), place.rounds)
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


def _empty(folder: Path) -> Callable[[], None]:
    def prepare() -> None:
        for path in (folder / ".perun" / "jobs").iterdir():
            path.unlink()

    return prepare
