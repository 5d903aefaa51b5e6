"""An order of growth that changed in a history: found by `perun bisect`, and told by `perun explain`.

The recorder of calls has a clock that counts what the program executes, so that all times are the same in
each run, whatever the machine does.
"""

import math
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perun.collect.complexity import ComplexityCollector
from perun.core.errors import JobFailed, PerunError
from perun.repository import trust
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.bisect.bisect import bisect
from perun.running.bisect.data import BisectRequest, BisectResult
from perun.running.explain.costs import sentence
from perun.running.explain.data import CaseReport
from perun.running.explain.explaining import explain
from perun.running.explain.plan import ExplainOptions, plan
from traced import counted

LINEAR = "for (size_t at = 1; at < n; at++, steps++) if (values[at] < values[at - 1]) values[at] = 0;"
QUADRATIC = (
    "for (size_t at = 0; at < n; at++)\n    for (size_t other = at; other < n; other++, steps++)\n"
    "      if (values[other] < values[at]) values[at] = values[other];"
)
THRICE = f"for (int again = 0; again < 3; again++)\n  {LINEAR}"
PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>

static unsigned long steps;

void tidy(int *values, size_t n)
{
  %s
}

static void fill(int *values, size_t n)
{
  for (size_t at = 0; at < n; at++) values[at] = (int)(n - at);
}

int main(int count, char **arguments)
{
  size_t most = count > 1 ? (size_t)atoi(arguments[1]) : 160;
  int *values = malloc(most * sizeof *values);
  for (size_t n = 10; n <= most; n += %s) {
    fill(values, n);
    tidy(values, n);
  }
  free(values);
  printf("steps: %%lu\\n", steps);
  return 0;
}
"""
SETTINGS = """\
cmds: [./tidy]
workloads: ["160"]
execute:
  pre_run:
    - cc -g -O1 -fno-inline -o tidy tidy.c %s
collectors:
  - name: complexity
    params:
      rules: [tidy]
  - name: regex
    params:
      pattern: '(?P<name>steps): (?P<value>[0-9]+)'
"""
HISTORY = [(LINEAR, 10), (LINEAR, 10), (THRICE, 10), (THRICE, 10), (QUADRATIC, 10), (QUADRATIC, 5)]
"""Of each commit the body of `tidy`, and the distance of the sizes that it is called with."""


class Project:
    """A repository whose commits are those of :data:`HISTORY`."""

    def __init__(self, folder: Path, options: str = "") -> None:
        self.folder = folder
        self.commits: list[str] = []
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        for number, what in enumerate(HISTORY):
            (folder / "tidy.c").write_text(PROGRAM % what)
            (folder / "number").write_text(str(number))
            self.git("add", ".")
            who = ("-c", "user.name=Jane Doe", "-c", "user.email=j@example.org")
            self.git(*who, "commit", "--quiet", "-m", f"Commit {number}")
            self.commits.append(self.git("rev-parse", "HEAD"))
        init(folder, os.environ, vcs_type="git")
        with open(folder / ".perun/local.yml", "a") as file:
            file.write(SETTINGS % options)
        trust.grant(self.repository.root, self.repository.config, self.repository.environ)

    @property
    def repository(self) -> Repository:
        return open_repository(self.folder, os.environ)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def bisect(self, good: int = 2, bad: int = 4, **asked: Any) -> BisectResult:
        ends = self.commits[good], self.commits[bad]
        return bisect(self.repository, BisectRequest(*ends, **asked), rng=random.Random(1))

    def explain(self, number: int, **asked: Any) -> CaseReport:
        options = ExplainOptions(self.commits[number], **asked)
        found = explain(self.repository, plan(self.repository, options), options)
        (case,) = found.cases
        return case


@pytest.fixture
def made(counting_runtime, tmp_path, isolated_environment, monkeypatch) -> Project:
    monkeypatch.setattr(ComplexityCollector.__init__, "__defaults__", (counting_runtime,))
    recorded = "-fno-omit-frame-pointer -fno-optimize-sibling-calls -finstrument-functions"
    return Project(tmp_path / "project", f"{recorded} {counted(counting_runtime)}")


def test_the_commit_that_changed_the_order_by_the_sizes_of_calls(made: Project) -> None:
    found = made.bisect(3, 4, metric="growth", location="tidy")
    assert found.first is not None and found.first.subject == "Commit 4" and found.confirmed
    assert found.ratio is not None and found.ratio.orders == ("n", "n^2")
    assert found.is_degradation
    assert found.what == "complexity:growth of tidy: ./tidy 160"


@pytest.mark.slow
def test_the_time_of_a_function(made: Project) -> None:
    found = made.bisect(1, 2, metric="complexity", location="tidy")
    assert found.first is not None and found.first.subject == "Commit 2" and found.confirmed
    assert found.ratio is not None and 2 < found.ratio.value < 3.5


SIZES = ("20", "40", "80", "160", "320")


@pytest.mark.parametrize(("metric", "location", "what"), [
    ("regex:growth", "steps", "regex:growth of steps"),
    pytest.param("growth", "tidy", "instructions:growth of tidy", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_order_over_workloads(tmp_path, isolated_environment, metric, location, what) -> None:
    """In all, `tidy` takes n^2 where one call takes n, as it is called for each size."""
    if metric == "growth" and shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind, which counts instructions; as root: apt-get install valgrind")
    made = Project(tmp_path / "project")
    found = made.bisect(metric=metric, location=location, sizes=SIZES)
    assert found.first is not None and found.first.subject == "Commit 4" and found.confirmed
    assert found.ratio is not None and found.ratio.is_exact
    exponents = [math.log2(cost) for cost in found.ratio.costs]
    assert exponents == [pytest.approx(2, abs=0.2), pytest.approx(3, abs=0.2)]
    assert found.what == f"{what}: ./tidy 160 over 20, 40, 80, 160, 320"


def test_wrong_questions(made: Project) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"metric": "growth"}, "the sizes of calls are those of a function"),
        ({"metric": "cpu:growth", "sizes": SIZES}, "cpu is measured of whole runs"),
        ({"metric": "instructions", "sizes": SIZES}, "--sizes: instructions is measured with the workload"),
        ({"sizes": SIZES}, "--sizes: cpu is measured with the workload"),
        ({"metric": "complexity:growth", "location": "tidy", "sizes": SIZES}, "complexity measures times"),
        ({"metric": "growth", "location": "tydi"}, "has nothing of it"),
    ]
    for asked, message in wrong:
        with pytest.raises(PerunError, match=message):
            made.bisect(**asked)
    assert not list((made.folder / ".perun" / "tmp").iterdir())
    assert not list((made.folder / ".perun" / "bisections").iterdir())


def test_explaining_records_the_calls_of_what_is_suspected(made: Project) -> None:
    """Without instructions, the functions are those of the diff."""
    case = made.explain(4, what=("calls",))
    (tidy,) = case.functions
    assert (tidy.name, tidy.path) == ("tidy", "tidy.c")
    assert tidy.growth is not None and tidy.growth.changed and tidy.growth.worse
    assert tidy.growth.before.endswith("* n") and tidy.growth.after.endswith("* n^2")
    assert any("other" in line.text for line in tidy.lines if line.mark == "+")
    assert "instructions: not measured, as --collect does not name it" in "\n".join(case.unseen)
    # What was recorded is stored, and used again.
    assert made.explain(4, collects=False).functions[0].growth == tidy.growth


def test_how_often_it_is_called(made: Project) -> None:
    """Its instructions changed, and none of its lines."""
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind, which counts instructions; as root: apt-get install valgrind")
    case = made.explain(5, location="tidy", what=("instructions", "calls"))
    (tidy,) = case.functions
    assert tidy.changed_lines == 0
    calls = next(cost for cost in tidy.costs if cost.metric == "calls")
    assert (calls.before, calls.after, calls.exact) == (16, 31, True)
    assert "it is called 1.94x as often [exact], 16 -> 31" in sentence(tidy)
    assert tidy.growth is None or not tidy.growth.changed


def test_explaining_within_a_budget(made: Project) -> None:
    with pytest.raises(JobFailed, match="the budget of 1e-09 s was spent"):
        made.explain(4, budget=1e-9)
