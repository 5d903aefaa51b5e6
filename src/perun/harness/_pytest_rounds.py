"""Lists the tests with benchmarks, or measures some, in the Python of their project (3.9 or newer).

It is a script: `rounds.py REQUEST` starts pytest with a plugin that keeps the tests and the order of the
request, and has each benchmark measured by a sample of a fixed number of iterations. pytest-benchmark has no
option for that: `benchmark(function)` becomes `benchmark.pedantic(function, rounds=1, iterations=N)`, with
one round before that warms up. What a test measures by `benchmark.pedantic` itself keeps its rounds, and its
iterations where it has a `setup`, or the request says none.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

_OPTIONS = (
    "-q", "-p", "no:cacheprovider", "--rootdir=.", "--maxfail=0", "--continue-on-collection-errors",
    "--benchmark-only", "--benchmark-enable", "-Wdefault::pytest_benchmark.logger.PytestBenchmarkWarning",
)  # fmt: skip
_OF_OTHERS = {"xdist": ("-n0", "--dist=no"), "pytest_cov": ("--no-cov",)}
"""Plugins that the configuration of a project may start, and that benchmarks cannot have beside them."""
_MOST = 10**9


class PytestRounds:
    """The plugin of pytest. `answer` has the names of the benchmarks, why some have failed, and the
    operations of those whose samples share them."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.samples = int(request["samples"])
        self.seconds = float(request["seconds"])
        marked = bool(request.get("marked"))
        self.counted = importlib.import_module("_counting").counted if marked else contextlib.nullcontext
        self.chosen: dict[str, int] = dict(request["chosen"])
        self.order: list[str] = []
        self.answer: dict[str, Any] = {"names": [], "failures": {}, "problems": [], "iterations": {}}

    def pytest_itemcollected(self, item: Any) -> None:
        """Note the order of the files, as others may shuffle them."""
        self.order.append(item.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: Any) -> None:
        """Keep the tests that have a benchmark and are wanted, in the order of the request or the files."""
        place = {name: number for number, name in enumerate(self.chosen or self.order)}
        items = [one for one in session.items if "benchmark" in getattr(one, "fixturenames", ())]
        items = sorted((one for one in items if one.nodeid in place), key=lambda one: place[one.nodeid])
        session.items[:] = items
        for one in items:
            parameters = one.callspec.id if hasattr(one, "callspec") else ""
            name, end = one.nodeid, f"[{parameters}]"
            is_whole = not parameters or not name.endswith(end)
            self.answer["names"].append([name, ""] if is_whole else [name[: -len(end)], parameters])

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_machine_info(self) -> dict[str, Any]:
        """Nothing: to find out about the processor takes longer than most rounds."""
        return {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_commit_info(self) -> dict[str, Any]:
        """Nothing: it would run git."""
        return {}

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.answer["problems"].append(f"{report.nodeid}: {_reason(report)}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails, or is skipped, in any of its phases."""
        if report.failed or report.skipped:
            self.answer["failures"].setdefault(report.nodeid, _reason(report))

    def fix(self) -> None:
        """Let the fixture run as many iterations as the request says."""
        fixture = importlib.import_module("pytest_benchmark.fixture").BenchmarkFixture
        called, pedantic = fixture.__call__, fixture.pedantic
        signature = inspect.signature(pedantic)

        @functools.wraps(called)
        def call(own: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            if not own.enabled:
                return called(own, function, *args, **kwargs)
            number, warmups = self.chosen.get(own.fullname, 0), 1
            if not number:
                number, warmups = self._calibrated(lambda: function(*args, **kwargs)), 0
            self.answer["iterations"][own.fullname] = number
            samples = min(self.samples, number)
            with self.counted():
                return pedantic(
                    own, function, args=args, kwargs=kwargs, rounds=samples, warmup_rounds=warmups,
                    iterations=number // samples,
                )  # fmt: skip

        @functools.wraps(pedantic)
        def with_setup(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            number = self.chosen.get(given["self"].fullname, 0)
            if number and not given.get("setup"):
                given["iterations"] = number
            with self.counted():
                return pedantic(**given)

        fixture.__call__, fixture.pedantic = call, with_setup

    def _calibrated(self, function: Any) -> int:
        def sample(number: int) -> float:
            started = time.perf_counter()
            for _ in range(number):
                function()
            return time.perf_counter() - started

        number = 1
        while number < _MOST:
            taken = sample(number)
            if self.seconds / 10 <= taken < self.seconds * 10:
                taken = min(taken, sample(number))  # another program may have had the processor
            if taken >= self.seconds / 10:
                return max(1, round(number * self.seconds / taken))
            number *= 10
        return number


def _reason(report: Any) -> str:
    said = report.longrepr
    if isinstance(said, tuple):  # of what is skipped: file, line and reason
        return "skipped: " + str(said[2]).replace("Skipped: ", "", 1)
    crash = getattr(said, "reprcrash", None)
    lines = [line.strip() for line in str(crash.message if crash else said).splitlines() if line.strip()]
    raised = [
        line[1:].strip() for line in lines if line.startswith("E  ")
    ]  # where the text shows the code too
    return [*raised[-1:], *lines, "it failed"][0][:300]


def main(file: str) -> int:
    """Do what a request says: `files` with tests, `chosen` pairs of the name of a test and its iterations,
    none to list them all, `json` for what pytest-benchmark writes and `out` for the answer."""
    request = json.loads(Path(file).read_text())
    os.environ.pop("PYTEST_XDIST_WORKER", None)  # of what runs Perun: pytest-benchmark would do nothing
    rounds = PytestRounds(request)  # imports what lies beside this file
    sys.path[0] = os.getcwd()  # as `python -m pytest` does
    rounds.fix()
    options = [*_OPTIONS, f"--benchmark-storage=file://{request['scratch']}"]
    for name, more in _OF_OTHERS.items():
        options += more if importlib.util.find_spec(name) else ()
    options += [f"--benchmark-json={request['json']}"] if request["chosen"] else ["--collect-only"]
    try:
        return int(pytest.main([*options, *request["files"]], plugins=[rounds]))
    finally:
        Path(request["out"]).write_text(json.dumps(rounds.answer))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
