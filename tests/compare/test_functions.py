"""A verdict on each function by samples of its CPU time: what is found, what is stored, and what it needs."""

import json
import random
from typing import Any

import numpy as np
import pytest

from perun.measurement.difference import Rules
from perun.measurement.many import Plan
from perun.measurement.series import Metric
from perun.measurement.verdict import is_change
from perun.profile.changes import PerformanceChange
from perun.running.compare.decide import InterimPlan
from perun.running.compare.instruments import CollectorMetric, Reading
from perun.running.compare.trial import LATE, Trial, look

WHOLE = Metric("prog:(total)", "sample", "cpu", "s", False)
SHARES = (0.25, 0.15, 0.1, 0.1, 0.09, 0.06, 0.05, 0.04, 0.03, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.006)
SAMPLER = '''
import json
import random
from dataclasses import dataclass

from perun.profile.factory import Profile
from perun.plugin.params import param, to_mapping


@dataclass(frozen=True)
class SamplerParams:
    frequency: int = param(499, help="Samples a second.")


class Sampler:
    """Draws samples of the costs that a file of the version gives by function, in seconds."""

    name = "sampler"
    help = "Draws samples."
    Params = SamplerParams

    def collect(self, run, params, ctx):
        costs = json.loads((run.cwd / "cost").read_text())
        cpu = sum(costs.values()) * random.lognormvariate(0, 0.02)
        drawn = random.choices(list(costs), list(costs.values()), k=round(cpu * params.frequency))
        profile = Profile({
            "header": {"type": "sample", "units": {"sample": "s"}, "cmd": run.cmd, "args": run.args,
                       "workload": run.workload},
            "collector_info": {"name": self.name, "params": to_mapping(params)},
            "postprocessors": [],
        })
        common = {"type": "sample", "subtype": "cpu"}
        found = [{"uid": {"source": "prog", "sample": "(total)"}, "amount": cpu, **common}]
        for place in dict.fromkeys(drawn):
            source, name = place.split(":")
            amount = drawn.count(place) / len(drawn) * cpu
            uid = {"source": source, "function": name}
            found.append({"uid": uid, "trace": [uid], "amount": amount, **common})
            found.append({"uid": {**uid, "sample": "inclusive"}, "amount": amount, **common})
        profile.update_resources(found)
        return profile


PLUGIN = Sampler
'''
COSTS = {
    "a.c:slow": 0.2,
    "a.c:other": 0.3,
    "b.c:old": 0.2,
    "b.c:still": 0.2,
    "c.c:rest": 0.1,
    "c.c:tiny": 0.002,
}


def drawn(rng: np.random.Generator, costs: np.ndarray, samples: float) -> dict[Metric, float]:
    """What one run of a program with these costs would give."""
    cpu = float(costs.sum() * rng.lognormal(0, 0.01))
    counts = rng.multinomial(rng.poisson(samples * costs.sum()), costs / costs.sum())
    seconds = (counts / max(counts.sum(), 1) * cpu).tolist()
    return {WHOLE: cpu} | {
        WHOLE._replace(uid=f"a.c:f{number}"): own for number, own in enumerate(seconds) if own
    }


def simulated(rng: np.random.Generator, slower: float, pairs: int, samples: float) -> list[str]:
    """The functions that change in a comparison whose third function takes more. :param samples: of a run."""
    base = np.array(SHARES)
    head = base * np.where(np.arange(base.size) == 2, 1 + slower, 1)
    trial = Trial("sample:*")
    trial.pairs = [
        {
            arm: Reading(drawn(rng, own, samples))
            for arm, own in (("base", base), ("head", head), ("noise", base))
        }
        for _ in range(pairs)
    ]
    look(trial, InterimPlan(pairs, LATE), Rules(), ends=True)
    return [one.metric.uid for one in trial.parts if is_change(one.verdict)]


def test_the_formula_is_that_of_the_literature() -> None:
    """21,000 samples of each side, and a twentieth more for ranks."""
    assert 21_000 < Plan().samples_needed() < 24_000
    assert Plan().samples_needed() < Plan(parts=30).samples_needed() < 50_000
    assert Plan().samples_needed() < Plan(threshold=0.02).samples_needed()
    assert Plan(pairs=10).smallest(0.02) > Plan(pairs=100).smallest(0.02) > Plan(pairs=100).smallest(0.01)


def test_a_plan_is_kept() -> None:
    rng, pairs = np.random.default_rng(5), 40
    level = InterimPlan(pairs, LATE).level(0.01, pairs, ends=True)
    needed = Plan(level, len(SHARES), 0.02, pairs).samples_needed()
    found = [simulated(rng, 0.1, pairs, needed / pairs) for _ in range(25)]
    assert sum("a.c:f2" in one for one in found) >= 18
    assert sum(bool(set(one) - {"a.c:f2"}) for one in found) <= 1
    assert not any(simulated(rng, 0.0, pairs, needed / pairs) for _ in range(25))


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("sample", ["x.cpp:ns::f", "ns::g", "cart.py:total"]),
        ("sample:*", ["x.cpp:ns::f", "ns::g", "cart.py:total"]),
        ("sample:ns::f", ["x.cpp:ns::f"]),
        ("sample:ns::*", ["x.cpp:ns::f", "ns::g"]),
        ("sample:x.cpp:*", ["x.cpp:ns::f"]),
        ("sample:ns::f:inclusive", ["x.cpp:ns::f:inclusive"]),
        ("sample:f", []),
        ("sample:total", ["cart.py:total"]),
    ],
)
def test_names_of_functions(pattern: str, meant: list[str]) -> None:
    names = ("x.cpp:ns::f", "x.cpp:ns::f:inclusive", "ns::g", "cart.py:total")
    metrics = [WHOLE, *(WHOLE._replace(uid=one) for one in names)]
    wanted = CollectorMetric(pattern, ())
    assert [one.uid for one in metrics if wanted.matches(one, "sample")] == meant


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 9))]
)
def test_compare_check_and_changes_say_the_same(project: Any, seed: int) -> None:
    """Of what is slower, new, gone, renamed with its file, and moved to another function."""
    (project.path / ".perun/plugins/collect/sampler.py").write_text(SAMPLER)
    others = "{method: average_amount_threshold, instead_of: hodges_lehmann_ratio}"
    rules = f"degradation: {{strategies: [{{method: hodges_lehmann_ratio}}, {others}]}}\n"
    project.configure(f"cmds: [sh run.sh]\ncollectors: [{{name: sampler}}]\n{rules}")
    rng = random.Random(seed)
    random.seed(seed)  # of the collector
    factor = rng.choice((1.0, 1.2, 1.5, 0.6))
    after = {**COSTS, "a.c:slow": 0.2 * factor}
    if seed % 2:
        after["z.c:still"] = after.pop("b.c:still")
        after["b.c:new"] = after.pop("b.c:old") * rng.choice((1, 2))
    for costs in (COSTS, after):
        project.git.commit("Cost", {"cost": f"{json.dumps(costs)}\n"})
    found = project.only("HEAD~1", "HEAD", metrics=("sampler:*",), always=True, most_pairs=40)
    said = {one.location: one.result for one in found.results[0].changes}
    definite = {one: result for one, result in said.items() if abs(result.value) in (2, 3)}
    assert ("a.c:slow" in definite) == (factor != 1) or any("moved" in one for one in found.notes)
    assert not {"a.c:other", "b.c:still", "z.c:still", "c.c:tiny"} & set(definite)
    assert found.session is not None
    assert found.session["functions"] == {"judged": len(said) - 1, "small": 1}, (said, found.notes)
    answer = json.loads(project.perun("check", "diff", "HEAD~1", "HEAD", "--json").out)
    (compared,) = answer["comparisons"]
    assert {one["location"]: one["result"] for one in compared["changes"]} == {
        one: result.name for one, result in said.items() if result is not PerformanceChange.NoChange
    }
    assert [one for one in compared["notes"] if "moved" in one] == [
        one for one in found.notes if "moved" in one
    ]
    told = json.loads(project.perun("changes", "--json").out)
    steps = {
        one["location"]: one["verdict"]
        for version in told["changes"] for one in version["steps"] if not one["moved_with"]
    }  # fmt: skip
    assert steps == {one: result.name for one, result in definite.items()}
