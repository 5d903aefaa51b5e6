"""Benchmarks of a suite, one by name: `perun bisect --benchmark` on benchmarks whose times and allocations a
file of each version says, `perun explain --benchmark` on a program in C."""

from __future__ import annotations

import json
import os
import re
import shutil
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


C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned sink;

void start(void) {{ for (unsigned i = 0; i < 3000000; ++i) sink += i; }}

void weigh(void) {{ for (unsigned i = 0; i < {rounds}; ++i) sink += i % 7; }}

void copy(void) {{ for (unsigned i = 0; i < 500; ++i) sink += i; free(malloc({size})); }}

int main(int argc, char **argv) {{
    start();
    for (int i = 0; i < atoi(argv[2]); ++i) if (strcmp(argv[1], "weigh") == 0) weigh(); else copy();
    printf("%d\\n", 3);
}}
"""
ONE = """
    def build(self, folder, params, ctx):
        return [SuiteProgram((str(folder / "bench"),), folder)]

    def list(self, program, params, ctx):
        return [NamedBenchmark("weigh"), NamedBenchmark("copy")]

    def _round(self, program, one, count, ctx):
        return BenchmarkRound(count, (BenchmarkValue("time", "", "s", (1.0,)),))

    def one(self, program, benchmark, iterations, params, ctx):
        return BenchmarkCommand((*program.argv, benchmark.name, str(iterations)), iterations)


PLUGIN = Made
"""


@pytest.fixture
def compiled(make: Callable[..., History]) -> History:
    """Two versions of a program in C, whose harness runs a benchmark alone; the second one weighs longer."""
    if not (shutil.which("valgrind") and shutil.which("cc")):
        pytest.skip("there is no valgrind or no C compiler")
    history = make([{}])
    texts = C_SOURCE.format(rounds=500, size=100), C_SOURCE.format(rounds=650, size=300)
    for number, text in enumerate(texts):
        (history.path / "bench.c").write_text(text)
        (history.path / "build.sh").write_text("exec cc -g -O1 -fno-inline -fno-builtin bench.c -o bench\n")
        history.git("add", "."), history.git(*_AS, "commit", "--quiet", "-m", f"Weigh {number}")
    plugin = history.path / ".perun/plugins/harness/made.py"
    text = HARNESS.replace("\n\nPLUGIN = Made\n", ONE).replace(
        "import BenchmarkRound", "import BenchmarkCommand, BenchmarkRound"
    )
    plugin.write_text(text)
    history.perun("trust")
    return history


def test_why_a_benchmark_costs_more(compiled: History) -> None:
    told = compiled.perun(
        "explain", "HEAD", "--benchmark", "weigh", "--collect", "instructions,memory", "--json"
    )
    assert told.code == 0, told.err
    (case,) = told.json["configurations"]
    assert case["command"] == "made bench weigh"
    (function,) = case["functions"]
    (cost,) = function["costs"]
    assert (function["function"], function["path"]) == ("weigh", "bench.c") and cost["exact"]
    assert cost["ratio"] == pytest.approx(1.3, abs=0.01) and cost["share"] > 0.25  # of one operation
    total = next(one for one in case["totals"] if one["metric"] == "instructions")
    assert 500 < total["before"] < 20_000 and total["ratio"] == pytest.approx(1.3, abs=0.02)
    assert any("difference of runs with 17 and 9" in note for note in told.json["notes"])
    assert [line["text"].strip()[:12] for line in function["diff"] if line["mark"] == "+"] == ["void weigh(v"]
    assert told.json["stored"] == 0 and compiled.leftovers_but_journals == []


def test_a_gate_says_why_a_benchmark_got_slower(compiled: History) -> None:
    plugin = compiled.path / ".perun/plugins/harness/made.py"
    mean = '1.3 if "< 650" in (program.folder / "bench.c").read_text() else 1'
    costs = f'(__import__("random").gauss({mean}, .003),)'
    plugin.write_text(plugin.read_text().replace("(1.0,)", costs))
    compiled.perun("trust")
    told = compiled.perun("ci", "run", "HEAD~1", "HEAD", "--suite", "--benchmark", "weigh", "--explain")
    assert told.code == 1, told.err
    gate = json.loads((compiled.path / "perun-ci/gate.json").read_text())
    assert [(one["path"], one["sentence"][:8]) for one in gate["why"]] == [("bench.c", "weigh() ")]


def test_what_a_benchmark_allocates_is_that_of_one_operation(compiled: History) -> None:
    told = compiled.perun("explain", "HEAD", "--benchmark", "cop*", "--collect", "memory", "--json")
    assert told.code == 0, told.err
    (case,) = told.json["configurations"]
    amounts = {one["metric"]: (one["before"], one["after"]) for one in case["totals"]}
    assert amounts["allocated"] == (100, 300) and amounts["allocations"] == (1, 1)


def test_what_cannot_be_explained_is_said(make: Callable[..., History]) -> None:
    history = make([{"parse": (1.0, 5), "old": (1.0, 5)}, {"parse": (2.0, 5)}])
    for options, why in (
        (("--benchmark", "parse"), "the harness 'made' cannot run one benchmark alone"),
        (("--benchmark", "old"), "the head .* does not have the benchmark 'old'"),
        (("--benchmark", "nothing"), "there is no such benchmark\nhint: there are: parse, old"),
        (("--benchmark", "parse", "-c", "true"), "--cmd does not go with --benchmark"),
        (("--benchmark", "parse", "--no-collect"), "--no-collect does not go with --benchmark"),
    ):
        told = history.perun("explain", "HEAD", *options)
        assert told.code != 0 and re.search(why, told.err), told.err
