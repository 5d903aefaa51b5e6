"""`perun run matrix` and `perun bench` with suites: each benchmark of each version, without clocks."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from made_suite import COSTS, HARNESS
from perun.profile.factory import Profile
from perun.repository import registering
from perun.repository.journal import SUFFIX
from perun.running.run import matrix as batch
from perun.running.run.matrix import BatchOptions
from perun.running.run.schedule import ROUNDS
from perun.running.suite.versions import suites_of
from shared import wait_for

REGISTERED = "profiles: {register_after_run: true}\nexecute: {budget: 0}\nharnesses: [made]\n"
WORKING = [name for name, cost in COSTS.items() if cost is not None and name != "old"]
SINCE = ("run", "matrix", "--since", "HEAD~3", "--quiet-env")


@pytest.fixture
def versions(suite: Any) -> Any:
    """Three versions with benchmarks: `parse` becomes slower in the second one, `old` goes, `new` comes."""
    costs = json.loads((suite.path / "costs.json").read_text())
    suite.git.commit("Go on", {"costs.json": json.dumps({**costs, "parse": 1.051})})
    suite.configure(REGISTERED + "degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n")
    return suite


def stored(project: Any, revision: str, kind: str = "time") -> Counter[str]:
    """How many profiles there are of each benchmark."""
    heads = (one["header"] for one in project.registered(revision) if one["header"]["type"] == kind)
    return Counter(f"{one['args']} {one['workload']}".rstrip() for one in heads)


def sizes(project: Any, revision: str) -> set[int]:
    """How many values the profiles have."""
    return {sum(group.size for group in Profile(one).groups()) for one in project.registered(revision)}


def test_each_benchmark_of_each_version_has_one_profile(versions: Any) -> None:
    told = versions.perun(*SINCE)
    assert told.code == 8 and "it refused" in told.out
    assert "2 benchmarks are not in all 3 versions: new (2); old (1)" in told.err
    assert stored(versions, "HEAD") == Counter([*WORKING, "new"])
    assert stored(versions, "HEAD~2", "memory") == Counter([*WORKING, "old"])
    assert len({one["header"]["session"]["id"] for one in versions.registered("HEAD~1")}) == 1
    assert sizes(versions, "HEAD") == {ROUNDS}
    assert {one["collector_info"]["params"]["iterations"] for one in versions.registered("HEAD")} == {4}
    assert "registered 5 benchmarks: made bench, 5 rounds: 3 No Change, " in told.out
    (line,) = [line for line in told.out.splitlines() if "Degradation" in line and "since" in line]
    assert "parse" in line and versions.leftovers == []


def test_all_commands_say_the_same_of_them(versions: Any) -> None:
    told = versions.perun(*SINCE, "--json").json
    said = {(one["minor_version"], one["args"], one["workload"]): one["difference"] for one in told["results"]
            if one["difference"]}  # fmt: skip
    assert len(said) == 9 and len(told["failures"]) == 3
    found = {}
    for version in versions.perun("log", "--json").json["versions"]:
        for one in version["values"]:
            if one["difference"] and not one["collector"].endswith(".memory"):
                found[version["checksum"], one["args"], one["workload"]] = one["difference"]
    assert found == said
    changes = versions.perun("changes", "--json").json["changes"]
    ((version, change),) = [(one["version"], own) for one in changes for own in one["steps"]]
    assert change["location"] == "parse" and version == versions.git.git("rev-parse", "HEAD~1")
    rows = versions.perun("check", "head", "HEAD~1")
    assert "|   Degradation  parse" in rows.out


def test_a_batch_that_was_interrupted_goes_on(versions: Any) -> None:
    repo = versions.repository
    wanted = BatchOptions(since="HEAD~3")
    planned = batch.plan(repo, wanted, suites_of=suites_of)
    seen = []

    def interrupt(activity: str, done: int, total: int) -> None:
        seen.append(activity)
        if sum(one.endswith("benchmarks") for one in seen) == 8:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        for _ in batch.run(repo, planned, report=interrupt):
            pass
    assert versions.registered("HEAD") == [] and versions.leftovers == []
    told = versions.perun("run", "matrix", "--resume")
    assert told.code == 8, told.err
    for number, names in enumerate(([*WORKING, "new"], [*WORKING, "new"], [*WORKING, "old"])):
        assert stored(versions, f"HEAD~{number}") == Counter(names)
    assert sizes(versions, "HEAD") == {ROUNDS}
    assert versions.perun("run", "matrix", "--missing").code == 8  # what has refused does so again
    assert stored(versions, "HEAD") == Counter([*WORKING, "new"])


@pytest.mark.parametrize("place", range(3))
def test_what_was_stored_before_a_kill_is_not_stored_again(
    versions: Any, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """The first versions are registered, or none; the profiles of the others are pending."""
    repo = versions.repository
    planned = batch.plan(repo, BatchOptions(since="HEAD~3"), suites_of=suites_of)
    register, registered = registering.register_all, []

    def killed(*arguments: Any) -> Any:
        if len(registered) == place:
            raise SystemExit
        registered.append(register(*arguments))
        return registered[-1]

    monkeypatch.setattr(registering, "register_all", killed)
    with contextlib.suppress(SystemExit):
        for _ in batch.run(repo, planned):
            pass
    monkeypatch.undo()
    assert len(versions.pending) > 0
    versions.perun("run", "matrix", "--resume")
    for number, names in enumerate(([*WORKING, "new"], [*WORKING, "new"], [*WORKING, "old"])):
        for kind in ("time", "memory"):
            assert stored(versions, f"HEAD~{number}", kind) == Counter(names)
    assert versions.pending == []


def test_complete_rounds_outlive_a_kill(versions: Any) -> None:
    slow = "import time; time.sleep(0.2)\n"
    versions.git.commit("Take longer", {"bench.py": slow + (versions.path / "bench.py").read_text()})
    words = ["run", "matrix", "--since", "HEAD~2", "--budget", "0"]
    words = [sys.executable, "-P", "-m", "perun", *words]
    environ = {**os.environ, "PERUN_TRUST": "1"}
    with subprocess.Popen(words, cwd=versions.path, env=environ, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: _visits(versions) >= 3)
        process.kill()
    assert not stored(versions, "HEAD")
    versions.perun("run", "matrix", "--resume", "--quiet-env")
    assert sizes(versions, "HEAD") == {ROUNDS} and len(stored(versions, "HEAD~1")) == len(WORKING) + 1


def _visits(project: Any) -> int:
    """The visits that the journal of the batch has."""
    files = batch.folder(project.repository).glob(f"*{SUFFIX}")
    return sum('["measured"' in line for file in files for line in file.read_text().splitlines())


def test_some_benchmarks_in_place_of_commands(versions: Any) -> None:
    versions.configure(f"{REGISTERED}cmds: [sh run.sh]\ncollectors: [counter]\n")
    dry = versions.perun(*SINCE, "--dry-run").out
    assert "the benchmarks of made bench in 3 versions, which are known when" in dry and "sh run.sh" in dry
    told = versions.perun(*SINCE, "--benchmark", "sort*", "--rounds", "2")
    assert told.code == 0, told.out + told.err
    assert stored(versions, "HEAD") == Counter(f"sort n={size}" for size in (10, 100, 1000))
    assert {one["collector_info"]["name"] for one in versions.registered("HEAD")} == {"made", "made.memory"}
    assert "registered 3 benchmarks: made bench, 2 rounds" in told.out
    refused = versions.perun("run", "matrix", "--on", "local:2")
    assert refused.code == 2 and "--on does not go with benchmarks" in refused.err
    none = versions.perun(*SINCE, "--benchmark", "nothing")
    assert none.code == 2 and "no benchmark matches 'nothing'" in none.err and "sort n=10" in none.err
    assert "no batch was interrupted" in versions.perun("run", "matrix", "--resume").err
    both = versions.perun("run", "matrix", "--alone", "--harness", "nothing")
    assert both.code != 0 and "nothing" in both.err
    versions.configure("harnesses: [made, made]\n")
    twice = versions.perun("compare", "--suite")
    assert twice.code == 5 and "harnesses: made is there 2 times" in twice.err


def test_commands_and_benchmarks_are_one_session(versions: Any) -> None:
    versions.configure(
        f"{REGISTERED}cmds: [sh run.sh]\ncollectors: [{{name: time, params: {{repeat: 5}}}}]\n"
    )
    versions.perun(*SINCE, "--no-share")
    own = versions.registered("HEAD")
    assert Counter(one["collector_info"]["name"] for one in own)["time"] == ROUNDS
    assert len({one["header"]["session"]["id"] for one in own}) == 1
    assert stored(versions, "HEAD")["parse"] == 1


def test_one_version_is_measured_beside_the_one_before(versions: Any) -> None:
    before = versions.git.git("rev-parse", "HEAD~2")
    versions.perun("run", "-m", "HEAD~2", "matrix", "--benchmark", "parse")
    told = versions.perun("run", "matrix", "--benchmark", "parse", "--quiet-env")
    assert f"measured beside {before[:10]}" in told.err and "Degradation" in told.out
    assert stored(versions, "HEAD~2") == {"parse": 2} and stored(versions, "HEAD") == {"parse": 1}


def test_a_version_whose_benchmarks_cannot_be_built_is_told(versions: Any) -> None:
    versions.git.commit("Break", {"bench.py": "raise SystemExit(3)"})
    refusing = """        if (folder / "bench.py").read_text().startswith("raise"):
            raise errors.JobFailed("it does not compile")
        return [SuiteProgram"""
    plugin = HARNESS.replace("        return [SuiteProgram", refusing)
    plugin = plugin.replace("import json, sys\n", "import json, sys\nfrom perun.core import errors\n")
    (versions.path / ".perun/plugins/harness/made.py").write_text(plugin)
    told = versions.perun("run", "matrix", "--since", "HEAD~2", "--benchmark", "parse", "--quiet-env")
    assert told.code == 8 and "made bench: it does not compile" in told.out
    assert stored(versions, "HEAD~1") == {"parse": 1} and versions.registered("HEAD") == []


def test_a_history_is_searched_by_benchmarks(versions: Any) -> None:
    told = versions.perun(*SINCE, "--find-changes", "--benchmark", "parse")
    assert "1 change found by measuring 3 versions of 4" in told.out or "1 change found" in told.out, told.out
    assert "made bench parse" in told.out


def test_bench_finds_the_suite_and_measures_it(versions: Any) -> None:
    versions.configure("")
    missing = versions.perun("bench")
    assert missing.code == 2 and "Missing argument" in missing.err
    told = versions.perun("bench", "--init", "--yes", "--budget", "0.1")
    assert "harnesses: made" in told.err and "benchmarks: " in told.out, told.err
    assert "harnesses:" in (versions.path / ".perun/local.yml").read_text()
    assert stored(versions, "HEAD") == Counter([*WORKING, "new"])
    again = versions.perun("bench", "--json").json
    assert again["schema"] == "perun.run/1" and stored(versions, "HEAD")["parse"] == 2
    refused = versions.perun("bench", "--warmup", "3")
    assert refused.code == 2 and "--warmup is of commands" in refused.err
    (versions.path / "costs.json").unlink()
    versions.configure("")
    nothing = versions.perun("bench", "--init")
    assert nothing.code == 2 and "no benchmarks are found" in nothing.err


TESTS = """
import pytest

@pytest.mark.parametrize("size", [10, 20])
def test_sum(benchmark, size):
    benchmark(sum, range(size * 100))

def test_sorted(benchmark):
    benchmark(sorted, list(range({count})))
"""


def test_a_real_suite_of_pytest(project: Any) -> None:
    own = Path(__file__).parents[2] / "build" / "harnesses" / "bin" / "python"
    for python in (str(own), sys.executable):
        words = [python, "-c", "import pytest_benchmark"]
        if Path(python).exists() and not subprocess.run(words, capture_output=True, check=False).returncode:
            break
    else:
        pytest.skip("there is no pytest-benchmark: `make build/harnesses/.made` installs it")
    for count in (100, 5000):
        project.git.commit(f"Sort {count}", {"test_speed.py": TESTS.format(count=count)})
    unit = json.dumps({"name": "pytest_benchmark", "params": {"python": python}})
    project.configure(f"{REGISTERED}harnesses: [{unit}]\n".replace("harnesses: [made]\n", ""))
    told = project.perun("run", "matrix", "--since", "HEAD~3", "--quiet-env")
    assert told.code == 0, told.out + told.err
    assert "versions such as" in told.err  # the oldest has no benchmarks
    names = {"test_speed.py::test_sum 10", "test_speed.py::test_sum 20", "test_speed.py::test_sorted"}
    assert set(stored(project, "HEAD")) == set(stored(project, "HEAD~1")) == names
    (line,) = [one for one in told.out.splitlines() if "test_sorted" in one and "since" in one]
    assert "Degradation" in line
    checked = project.perun("check", "head").out
    assert "test_speed.py::test_sorted" in checked and "-c" not in checked.split(), checked
    refused = project.perun("explain", "HEAD")
    assert refused.code == 2 and "these changed: test_speed.py::test_sorted (" in refused.err
    assert "--benchmark test_speed.py::test_sorted" in refused.err
