"""`perun run matrix` over the benchmarks of a suite whose numbers a file of the version says: no clocks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from made_suite import made_suite
from perun.repository.journal import SUFFIX
from perun.running.run.matrix import folder
from shared import wait_for

COSTS: dict[str, float | None] = {"sort n=10": 100.0, "parse": 1.0, "old": 1.0, "broken": None}
LATER = {name: cost for name, cost in COSTS.items() if name != "old"} | {"parse": 1.05, "new": 1.0}
MATRIX = ("run", "matrix", "--suite", "--since", "HEAD~4", "--budget", "1", "--quiet-env")
SOME_FAILED = 8


@pytest.fixture
def suite(project: Any) -> Any:
    """Four versions, in the third of which `parse` has become 5 % slower, `old` went, and `new` came."""
    made_suite(project, [COSTS, COSTS, LATER, LATER])
    judged = "degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n"
    project.configure(f"{judged}profiles: {{register_after_run: true}}\n")
    return project


def names(suite: Any, version: str) -> dict[str, int]:
    """The benchmarks whose times the version has, with how many rounds."""
    profiles = [one for one in _registered(suite, version) if one["header"]["type"] == "time"]
    assert {one["header"]["cmd"] for one in profiles} <= {"made bench"}
    return {
        f"{one['header']['args']} {one['header']['workload']}".rstrip(): len(list(one.all_resources()))
        for one in profiles
    }


def _registered(suite: Any, version: str) -> list[Any]:
    return [suite.repository.store.objects.get(entry.checksum) for entry in suite.entries(version)]


def test_each_benchmark_of_each_version_has_a_verdict(suite: Any) -> None:
    told = suite.perun(*MATRIX)
    assert told.code == SOME_FAILED, told.err
    assert told.out.count("registered 3 benchmarks") == 4
    assert told.out.count("parse") == 1 and ": Degradation" in told.out
    assert "not in all 4 versions: new (2); old (2)" in told.err
    assert "broken: it refused" in told.out and suite.leftovers == []
    assert set(names(suite, "HEAD~3")) == {"sort n=10", "parse", "old"}
    assert set(names(suite, "HEAD")) == {"sort n=10", "parse", "new"}
    assert min(names(suite, "HEAD~1").values()) >= 5


def test_what_reads_the_history_says_the_same(suite: Any) -> None:
    suite.perun(*MATRIX)
    changed = suite.git.git("rev-parse", "HEAD~1")
    (change,) = suite.perun("changes", "--json").json["changes"]
    assert change["version"] == changed
    told = suite.perun("check", "diff", "HEAD~2", "HEAD~1", "--json").json
    words = {
        one["location"]: one["result"]
        for pair in told["comparisons"]
        for one in pair["changes"]
        if one["from_value"]["unit"] == "s"
    }
    assert words == {"parse": "Degradation"}


def test_patterns_choose_benchmarks(suite: Any) -> None:
    suite.perun("run", "matrix", "--benchmark", "sort*", "--budget", "0", "--quiet-env")
    assert set(names(suite, "HEAD")) == {"sort n=10"}
    refused = suite.perun("run", "matrix", "--benchmark", "nothing")
    assert refused.code == 2, refused.err
    assert "no benchmark matches 'nothing'" in refused.err and "sort n=10" in refused.err
    assert suite.leftovers == []


def test_complete_rounds_outlive_a_kill(suite: Any) -> None:
    """What was measured before is kept by `--resume`, and each benchmark has one profile with all rounds."""
    slow = "import time; time.sleep(0.2)\n"
    program = suite.path / "bench.py"
    suite.git.commit("Take longer", {"bench.py": slow + program.read_text()})
    environ = {**os.environ, "PERUN_TRUST": "1"}
    words = ["run", "matrix", "--suite", "--since", "HEAD~2", "--budget", "0"]
    words = [sys.executable, "-P", "-m", "perun", *words]
    with subprocess.Popen(words, cwd=suite.path, env=environ, stdout=subprocess.DEVNULL) as killed:
        wait_for(lambda: _visits(suite) >= 3)
        killed.send_signal(signal.SIGKILL)
    assert not names(suite, "HEAD")
    suite.perun("run", "matrix", "--resume", "--quiet-env")
    assert set(names(suite, "HEAD").values()) == {5} and len(names(suite, "HEAD~1")) == 3


def _visits(suite: Any) -> int:
    """The visits that the journal of the batch has."""
    files = folder(suite.repository).glob(f"*{SUFFIX}")
    return sum('["measured"' in line for file in files for line in file.read_text().splitlines())


def test_the_answer_as_json(suite: Any) -> None:
    told = suite.perun(*MATRIX, "--json").json
    found = {(one["args"], one["workload"]) for one in told["results"]}
    assert ("sort", "n=10") in found and ("parse", "") in found
    assert json.dumps(told).count("it refused") >= 4
