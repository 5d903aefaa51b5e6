"""`perun compare --suite`: benchmarks of a harness whose numbers a file of the version says: no clocks."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from made_suite import HARNESS, PROGRAM
from perun.measurement.difference import Rules
from perun.measurement.series import Metric
from perun.measurement.verdict import is_change
from perun.plugin.suites import BenchmarkRound, BenchmarkValue, NamedBenchmark
from perun.profile.changes import PerformanceChange
from perun.running.compare.decide import ARMS, InterimPlan
from perun.running.compare.instruments import Reading
from perun.running.compare.plan import CompareOptions, plan_sides
from perun.running.compare.trial import Trial
from perun.running.suite.programs import SuiteOptions
from perun.running.suite.suite import compare
from perun.running.suite.trial import BenchmarkTrial, look


def test_each_benchmark_has_a_verdict(suite: Any) -> None:
    told = suite.perun("compare", "--suite", "--budget", "200", "HEAD~1", "HEAD")
    assert told.code == 0, told.err
    rows = [re.split("  +", line.strip(" |"))[:2] for line in told.out.splitlines()[2:]]
    words = {row[1]: row[0] for row in rows if len(row) > 1}
    assert words == {"parse": "Degradation", "new": "Not in Baseline", "old": "Not in Target"}
    assert "broken (base: it refused)" in told.out
    assert "4 benchmarks" in told.out and suite.leftovers == []


def test_what_is_stored_says_the_same(suite: Any) -> None:
    told = suite.perun("compare", "--suite", "--budget", "200", "--json", "HEAD~1", "HEAD").json
    said = {
        one["location"]: (one["result"], one["interval"])
        for one in told["comparisons"][0]["changes"]
        if one["location"] not in ("old", "new")
    }
    profiles = {(one["header"]["args"], one["header"]["workload"], one["header"]["type"])
                for one in suite.registered("HEAD")}  # fmt: skip
    kinds = ("memory", "time")
    assert profiles == {("sort", f"n={n}", kind) for n in (10, 100, 1000) for kind in kinds} | {
        ("parse", "", kind) for kind in kinds
    }
    assert all(one["header"]["cmd"] == "made bench" for one in suite.registered("HEAD"))
    again = suite.perun("-v", "check", "diff", "--json", "HEAD~1", "HEAD").json
    found = {
        one["location"]: (one["result"], one["interval"])
        for pair in again["comparisons"]
        for one in pair["changes"]
        if one["method"] == "hodges_lehmann_ratio"  # beside that of the manual
    }
    assert said == found and len(said) == 8


def test_each_call_has_an_empty_folder_and_the_output_of_its_program(suite: Any) -> None:
    """Also after calls that left something there, and programs that go on, or write errors."""
    files = {"bench.py": """
import os, subprocess, sys
print("noise", file=sys.stderr)
if os.path.exists("read"):
    os.remove("read")
goes_on = "while [ -e bench.py ] && [ ! -e read ]; do sleep 0.02; done; echo wrong; echo wrong >&2"
subprocess.Popen(["sh", "-c", goes_on], start_new_session=True)
""" + PROGRAM, "costs.json": json.dumps({"parse": 1.0, "sort n=1": 2.0})}  # fmt: skip
    for _ in range(2):
        files["bench.py"] += "# the same\n"
        suite.git.commit("Write errors", files)
    dirty = """        (ctx.scratch / "inner").mkdir()
        (ctx.scratch / "inner" / "file").write_text("x")
        (ctx.scratch / "file").write_text("x")
        (program.folder / "read").touch()
        return {names"""
    plugin = suite.path / ".perun/plugins/harness/made.py"
    plugin.write_text(HARNESS.replace("    together = True\n", "").replace("        return {names", dirty))
    options = ("compare", "--suite", "--budget", "200", "--max-pairs", "12", "HEAD~1", "HEAD")
    told = suite.perun("-v", *options)
    assert told.code == 0, told.err
    assert "2 benchmarks, " in told.out and "not measured" not in told.out and suite.leftovers == []


def test_samples_are_shorter_where_the_budget_is_short() -> None:
    options = SuiteOptions()
    assert options.sampled(10, 60) == options.seconds == options.sampled(0, 60)
    assert 0.001 < options.sampled(200, 60) < options.seconds
    assert 200 * 3 * 10 * options.sampled(200, 60) < 60 / 3
    assert options.sampled(100_000, 60) == 0.001


def test_a_metric_counts_where_all_rounds_have_it() -> None:
    one = BenchmarkTrial(NamedBenchmark("b"), Trial("made"))
    time, size = (BenchmarkValue(kind, "", "", (1.0,)) for kind in ("time", "size"))
    for values, left in (((time, size), {"time", "size"}), ((time,), {"time"}), ((size,), set())):
        assert not one.failure
        one.add({arm: BenchmarkRound(1, values) for arm in ARMS}, lambda _: True)
        assert {metric.type for metric in one.trial.series} == left
    assert "no value that all" in one.failure


def test_what_an_interruption_leaves_open_is_unknown(suite: Any) -> None:
    """And nothing is stored, as it ended by what somebody saw."""
    repo = suite.repository
    options = CompareOptions("HEAD~1", "HEAD", budget=200.0)

    def interrupt(activity: str, done: int, total: int) -> None:
        if ": round 12" in activity:
            raise KeyboardInterrupt

    found = compare(repo, plan_sides(repo, options), options, SuiteOptions(), interrupt, rng=random.Random(1))
    assert isinstance(found.interruption, KeyboardInterrupt)
    (comparison,) = found.report.comparisons
    words = {change.location: change.result for result in comparison.results for change in result.changes}
    assert PerformanceChange.Unknown in words.values()
    assert suite.registered("HEAD") == [] and suite.leftovers == []


def test_some_benchmarks_of_it(suite: Any) -> None:
    told = suite.perun("-v", "compare", "--benchmark", "sort n=1*", "--budget", "200", "HEAD~1", "HEAD")
    assert told.code == 0 and "No Change" in told.out
    assert "sort n=1000" in told.out and "parse" not in told.out and "new" not in told.out
    refused = suite.perun("compare", "--benchmark", "nothing", "HEAD~1", "HEAD")
    assert refused.code == 2 and "matches 'nothing'" in refused.err and "sort n=10" in refused.err


def test_what_does_not_go(suite: Any) -> None:
    refused = suite.perun("compare", "--suite", "-c", "./prog")
    assert refused.code == 2 and "--cmd does not go with --suite" in refused.err
    unknown = suite.perun("compare", "--harness", "unknown", "HEAD~1", "HEAD")
    assert unknown.code != 0 and "there is no harness 'unknown'" in unknown.err
    (suite.path / ".perun/plugins/harness/made.py").unlink()
    none = suite.perun("compare", "--suite", "HEAD~1", "HEAD")
    assert none.code == 2 and "no benchmarks are found" in none.err
    assert "perun config set harnesses" in none.err


def _simulated(rng: random.Random, factors: list[float], rounds: int) -> list[BenchmarkTrial]:
    found = []
    for number, factor in enumerate(factors):
        metric = Metric(f"b{number}", "time", "", "s", False)
        one = BenchmarkTrial(NamedBenchmark(metric.uid), Trial("made"))
        for _ in range(rounds):
            own = dict(zip(ARMS, (1.0, factor, 1.0), strict=True))
            values = {arm: level * rng.lognormvariate(0, 0.02) for arm, level in own.items()}
            one.trial.pairs.append({arm: Reading({metric: value}) for arm, value in values.items()})
        found.append(one)
    return found


def test_chance_among_many_is_no_change() -> None:
    """Of 200 benchmarks, ten times, some p-values are small by chance alone."""
    rng, looks, rules = random.Random(40), InterimPlan(10), Rules(threshold=0.001)
    wrong, small = 0, 0
    for _ in range(10):
        trials = _simulated(rng, [1.0] * 200, 10)
        look(trials, looks, rules, ends=True)
        verdicts = [one.trial.decisions[0].verdict for one in trials]
        wrong += any(map(is_change, verdicts))
        small += sum(one.difference.p_value < 0.01 for one in verdicts)
    assert not wrong and small > 8


def test_a_change_among_many_is_found() -> None:
    trials = _simulated(random.Random(41), [1.0] * 60 + [1.15], 20)
    look(trials, InterimPlan(20), Rules())
    changed = [one.benchmark.name for one in trials if is_change(one.trial.decisions[0].verdict)]
    assert changed == ["b60"] and trials[-1].settled


@pytest.mark.parametrize(
    ("option", "hint"),
    [("--always", "is measured whatever"), ("--metric=cpu", "wall, memory"),
     ("--duet", "leave one")],
)  # fmt: skip
def test_options_of_commands_are_refused_by_name(suite: Any, option: str, hint: str) -> None:
    refused = suite.perun("compare", "--suite", option, "HEAD~1", "HEAD")
    assert refused.code == 2
    assert f"{option.replace('=', ' ')} does not go with --suite" in refused.err and hint in refused.err


def test_the_order_is_random_by_its_seed_or_mirrored(suite: Any) -> None:
    """Each call writes down which costs it has measured, which tell the side."""
    log = suite.path / "log"
    noting = f"""
import pathlib, sys
if len(sys.argv) > 1:
    side = "head" if '"new"' in open("costs.json").read() else "base"
    open({str(log)!r}, "a").write(side + " " + str(pathlib.Path.cwd())[-40:] + "\\n")
random_seed = None
"""
    plugin = suite.path / ".perun/plugins/harness/made.py"
    plugin.write_text(HARNESS.replace('(sys.executable, "bench.py")', f"(sys.executable, '-c', {noting!r}"
                                      " + 'exec(open(\"bench.py\").read())')"))  # fmt: skip
    orders = {}
    for name, options in {"one": ["--seed", "7"], "again": ["--seed", "7"], "other": ["--seed", "8"],
                          "mirrored": ["--order", "abba"]}.items():  # fmt: skip
        log.unlink(missing_ok=True)
        told = suite.perun("compare", "--benchmark", "sort*", "--max-pairs", "6", "--json", *options,
                           "HEAD~1", "HEAD")  # fmt: skip
        assert told.code == 0, told.err
        orders[name] = [line.split()[0] for line in log.read_text().splitlines()]
    assert orders["one"] == orders["again"] != orders["other"]
    pairs = [orders["mirrored"][place : place + 3] for place in range(3, 3 + 6 * 3, 3)]
    assert pairs == [["base", "head", "base"]] * 6
