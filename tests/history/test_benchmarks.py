"""`perun bisect --benchmark`: benchmarks whose times and allocations a file of each version says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from costs import History, configure

PROGRAM = """
import json, random, sys
costs = json.load(open("costs.json"))
if len(sys.argv) == 1:
    print("\\n".join(costs))
else:
    with open("RECORD", "a") as record:
        print(*sys.argv[1:], file=record)
    seconds, allocations = costs[sys.argv[1]]
    print(json.dumps([seconds * random.gauss(1, 0.003), allocations]))
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

    def detect(self, folder):
        return ["costs.json"] if (folder / "costs.json").is_file() else []

    def build(self, folder, params, ctx):
        return [SuiteProgram((sys.executable, "-I", "-S", "bench.py"), folder)]

    def list(self, program, params, ctx):
        names = ctx.run(program.argv, program.folder, {}).stdout.split("\\n")
        return [NamedBenchmark(*name.partition(" ")[::2]) for name in names if name]

    def round(self, program, iterations, params, ctx):
        return {one: self._round(program, one, count or 8, ctx) for one, count in iterations.items()}

    def _round(self, program, one, count, ctx):
        done = ctx.run([*program.argv, str(one), str(count)], program.folder, {})
        if done.status:
            return BenchmarkRound(0, (), "it crashes")
        seconds, allocations = json.loads(done.stdout)
        values = [BenchmarkValue("time", "", "s", (seconds,))]
        if allocations is not None:
            values.append(BenchmarkValue("memory", "allocations", "", (allocations,), is_count=True))
        return BenchmarkRound(count, tuple(values))


PLUGIN = Made
'''
Costs = Mapping[str, Any]


@pytest.fixture
def make(tmp_path: Path, perun: Callable[..., Any]) -> Callable[[Sequence[Costs | None]], History]:
    """Makes a history whose commits have these benchmarks; one of None does not build."""

    def made(costs: Sequence[Costs | None]) -> History:
        folder, record = tmp_path / "history", tmp_path / "record"
        folder.mkdir()
        found = History(folder, record, (), {**os.environ, "RECORD": str(record)}, perun)
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main"], cwd=folder, check=True)
        (folder / "bench.py").write_text(PROGRAM.replace("RECORD", str(record)))
        for number, one in enumerate(costs):
            (folder / "costs.json").write_text(json.dumps(one))
            (folder / "build.sh").write_text(f"exit {int(one is None)} # {number}\n")
            found.git("add", ".")
            found.git(*_AS, "commit", "--quiet", "-m", f"Commit {number}")
        configure(found, "execute: {pre_run: [sh build.sh]}\n")
        plugins = folder / ".perun/plugins/harness"
        plugins.mkdir(parents=True)
        (plugins / "made.py").write_text(HARNESS)
        commits = found.git("rev-list", "--reverse", "main").split()
        return History(folder, record, commits, found.environ, perun)

    return made


_AS = ("-c", "user.name=Jane Doe", "-c", "user.email=j@example.org")
OTHERS = {f"sort n={size}": (10.0, 5) for size in (10, 100)}


def runs(history: History) -> list[str]:
    return history.record.read_text().splitlines() if history.record.exists() else []


def test_the_version_that_changed_the_time(make: Callable[..., History]) -> None:
    history = make([{**OTHERS, "parse": (1.0 if number < 2 else 1.2, 5)} for number in range(4)])
    found = history.bisect(0, 3, benchmark="parse", metric="")
    assert found.first is not None and found.first.subject == "Commit 2" and found.confirmed
    assert found.what == "time: made bench parse" and found.kind == "time"
    assert found.ratio is not None and found.ratio.low < 1.2 < found.ratio.high < 1.25
    assert {line.split()[-1] for line in runs(history)} == {"8"} and "sort" not in " ".join(runs(history))
    assert history.leftovers == []
    indexes = history.repository.store.indexes
    stored = {entry.info().configuration[1:4] for entry in indexes.read(history.commits[2])}
    assert stored == {("made bench", "parse", "")}


def test_one_round_of_what_is_counted_decides(make: Callable[..., History]) -> None:
    costs = [(1.0, 50)] * 4 + [(1.0, 57)] * 5
    history = make([{**OTHERS, "parse": cost} for cost in costs])
    told = history.perun("bisect", history.commits[0], "--benchmark", "par*")
    assert told.code == 0, told.err
    assert f"first bad commit: {history.commits[4][:7]} Commit 4" in told.out and "50 -> 57" in told.out
    assert "memory:allocations: made bench parse" in told.out
    assert "perun explain" in told.err and "--benchmark parse" in told.err
    # Three rounds of the ends beside one that warms up, of each arm; and one run of each other version.
    assert len(runs(history)) == 3 * 4 + 3


def test_what_cannot_be_measured_is_skipped(make: Callable[..., History]) -> None:
    there = {**OTHERS, "parse": (1.0, 5)}
    slow = {**OTHERS, "parse": (1.0, 9)}
    history = make([there, there, OTHERS, None, {**OTHERS, "parse": ()}, slow, slow])
    found = history.bisect(0, 6, benchmark="parse", metric="")
    assert found.first is None and found.parent is not None and found.parent.subject == "Commit 1"
    assert [one.subject for one in found.range] == [f"Commit {number}" for number in (2, 3, 4, 5)]
    whys = {one.version.subject: one.why for one in found.seen if one.why}
    assert "it has no benchmark 'parse'" in whys["Commit 2"] and "crashes" in whys["Commit 4"]
    assert history.leftovers == []


def test_a_spent_budget_is_resumed_and_shown(make: Callable[..., History]) -> None:
    history = make([{**OTHERS, "parse": (1.0, 5 + (number > 2))} for number in range(5)])
    nothing = history.bisect(0, 4, benchmark="parse", metric="", budget=1e-9)
    assert (nothing.first, nothing.range) == (None, ()) and "perun bisect --resume" in nothing.why
    assert ", parse; go on" in history.perun("status").err
    found = history.bisect(resume=True)
    assert found.first is not None and found.first.subject == "Commit 3"


def test_a_change_that_is_stored_names_the_benchmark(make: Callable[..., History]) -> None:
    """What `perun changes` tells of a suite is not run as a command."""
    history = make([{**OTHERS, "parse": (1.0, 5 + (number > 2))} for number in range(5)])
    compared = history.perun("compare", "--benchmark", "parse", history.commits[1], history.commits[4])
    assert compared.code == 0, compared.err
    told = history.perun("bisect", "--json")
    assert told.code == 0, told.err
    assert told.json["first"]["subject"] == "Commit 3" and "made bench parse" in told.json["what"]


WRONG = (
    (("--benchmark", "pars"), "there is no such benchmark\nhint: there are: parse"),
    (("--benchmark", "sort"), "2 benchmarks are meant: sort n=10, sort n=100"),
    (("--benchmark", "old"), "the bad end, .{7}, does not have the benchmark 'old'"),
    (("--benchmark", "parse", "-c", "true"), "--cmd does not go with --benchmark"),
    (("--harness", "made"), "--harness made says whose benchmark is meant"),
    (("--benchmark", "parse", "--harness", "mode"), "there is no harness 'mode'"),
    (("--benchmark", "parse", "--metric", "peak"), "does not tell it\nhint: it tells memory:alloc"),
    (("--benchmark", "parse"), "parse: .* (do not|is not certain that .*) differ"),
)


def test_what_is_wrong_is_said(make: Callable[..., History]) -> None:
    history = make([{**OTHERS, "parse": (1.0, 5), "old": (1.0, 1)}, {**OTHERS, "parse": (1.0, 5)}])
    for options, why in WRONG:
        told = history.perun("bisect", history.commits[0], "--max-pairs", "10", *options)
        assert told.code != 0 and re.search(why, told.err + told.out), told.err + told.out
        left = [*history.path.glob(".perun/tmp/*"), *history.path.glob(".perun/bisections/*")]
        assert left == []
