"""A suite of benchmarks whose numbers a file of the version says, and its harness: no clocks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PROGRAM = """
import json, random, sys
costs = json.load(open("costs.json"))
if len(sys.argv) == 1:
    print("\\n".join(costs))
for name in sys.argv[1:]:
    if costs[name] is None:
        print(json.dumps([name, 0, 0]))
    else:
        print(json.dumps([name, 4, costs[name] * random.gauss(1, 0.003)]))
"""
HARNESS = '''
import json, sys
from dataclasses import dataclass

from perun.plugin.api import BenchmarkRound, BenchmarkValue, NamedBenchmark, SuiteProgram


@dataclass(frozen=True)
class Params:
    pass


class Made:
    """Benchmarks of costs.json."""

    name = "made"
    help = "Measures what a file says."
    command = "made bench"
    Params = Params
    together = True

    def detect(self, folder):
        return ["costs.json"] if (folder / "costs.json").is_file() else []

    def build(self, folder, params, ctx):
        return [SuiteProgram((sys.executable, "bench.py"), folder)]

    def list(self, program, params, ctx):
        names = ctx.run(program.argv, program.folder, {}).stdout.split("\\n")
        return [self._named(name) for name in names if name]

    def round(self, program, iterations, params, ctx):
        names = {" ".join(filter(None, one)): one for one in iterations}
        written = ctx.run([*program.argv, *names], program.folder, {}).stdout
        return {names[name]: self._round(count, value)
                for name, count, value in map(json.loads, written.splitlines())}

    def _named(self, name):
        return NamedBenchmark(*name.partition(" ")[::2])

    def _round(self, count, value):
        if not count:
            return BenchmarkRound(0, (), "it refused")
        counted = BenchmarkValue("memory", "allocations", "", (round(value / 1000),), is_count=True)
        return BenchmarkRound(count, (BenchmarkValue("time", "", "s", (value,)), counted))


PLUGIN = Made
'''
COSTS = {f"sort n={size}": 100.0 for size in (10, 100, 1000)} | {"parse": 1.0, "old": 1.0, "broken": None}


def made_suite(project: Any, costs: Sequence[Mapping[str, float | None]]) -> Any:
    """The project with a version for each of these costs of benchmarks, the last one the newest."""
    for one in costs:
        project.git.commit("Change costs", {"bench.py": PROGRAM, "costs.json": json.dumps(one)})
    plugins = project.path / ".perun/plugins/harness"
    plugins.mkdir(parents=True)
    (plugins / "made.py").write_text(HARNESS)
    project.configure("degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n")
    return project
