"""Suites of asv, run as they are without asv."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness.asv import AsvHarness, AsvParams, config_of
from perun.plugin.suites import BenchmarkCommand, BenchmarkRound, HarnessContext, NamedBenchmark

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
HARNESS = AsvHarness()
PARAMS = AsvParams(python=sys.executable)
CONFIG = '{\n    // comments\n    "version": 1, "repo": ".", /* and more */ "pythons": ["3.9"],\n}\n'


def project(folder: Path, modules: Mapping[str, str], config: str = CONFIG) -> Path:
    (folder / "benchmarks").mkdir()
    (folder / "asv.conf.json").write_text(config)
    for name, text in {"__init__": "", **modules}.items():
        (folder / "benchmarks" / f"{name}.py").write_text(textwrap.dedent(text))
    return folder


def measured(
    folder: Path, context: Context, iterations: int = 0, params: AsvParams = PARAMS
) -> dict[str, BenchmarkRound]:
    """One round of all that the suite lists."""
    (program,) = HARNESS.build(folder, params, context())
    names = HARNESS.list(program, params, context())
    said = HARNESS.round(program, dict.fromkeys(names, iterations), params, context())
    assert list(said) == list(names)
    return {str(name): one for name, one in said.items()}


KINDS = """
import asyncio
from asv_runner.benchmarks.mark import SkipNotImplemented, skip_for_params

def time_call(): pass
def timeraw_import(): return "import fractions"
def peakmem_list(): return bytearray(64 << 20)
def track_size(): return 7
track_size.unit = "cells"
def TimeCamel(): pass
def timeless(): pass
def helper(): pass
def mem_list(): return [0] * 256

class Suite:
    params = ([10, 1000], ["a", "b"])
    param_names = ["n", "kind"]
    def setup(self, n, kind): self.data = list(range(n))
    @skip_for_params([(1000, "b")])
    def time_sum(self, n, kind): sum(self.data)

class Odd:
    def time_error(self): raise ValueError("of no use")
    def time_skipped(self): raise SkipNotImplemented("not here")
    def time_exit(self): import os; os._exit(3)
    def time_killed(self): import os; os.kill(os.getpid(), 9)
    def time_hangs(self): import time; time.sleep(60)
    time_hangs.timeout = 0.2
    def track_nothing(self): return float("nan")
    def track_text(self): return "x"
    def time_printing(self): print('{"name": "x"}')

class NotHere:
    def setup(self): raise NotImplementedError("needs Windows")
    def time_it(self): pass
"""


def test_every_kind_of_a_suite_is_measured(tmp_path: Path, context: Context) -> None:
    folder = project(tmp_path, {"kinds": KINDS})
    assert HARNESS.detect(folder) == ["benchmarks/kinds.py"]
    said = measured(folder, context)
    for name in ("time_call", "TimeCamel", "timeraw_import"):
        (value,) = said[f"kinds.{name}"].values
        assert (value.type, value.subtype, value.unit, value.samples[0] > 0) == ("time", "", "s", True)
    assert said["kinds.timeraw_import"].iterations == 1
    (peak,) = said["kinds.peakmem_list"].values
    assert (peak.type, peak.subtype, peak.unit) == ("memory", "peak", "B")
    assert 64 << 20 < peak.samples[0] < 128 << 20
    (size,) = said["kinds.track_size"].values
    assert (size.type, size.unit, size.samples) == ("printed", "cells", (7.0,))
    assert "kinds.timeless" not in said
    assert [one for one in said if "time_sum" in one] == [
        f"kinds.Suite.time_sum {n}, {kind!r}" for n in (10, 1000) for kind in "ab"
    ]
    failures = {name.removeprefix("kinds."): one.failure for name, one in said.items() if not one.values}
    assert "pympler" in failures.pop("mem_list", "pympler")
    assert failures == {
        "Suite.time_sum 1000, 'b'": "skipped",
        "Odd.time_error": "ValueError: of no use",
        "Odd.time_skipped": "skipped: not here",
        "Odd.time_exit": "its process ended with status 3",
        "Odd.time_killed": "its process ended with signal 9",
        "Odd.time_hangs": "it took longer than 0.2 s",
        "Odd.track_nothing": "skipped",
        "Odd.track_text": "ValueError: could not convert string to float: 'x'",
        "NotHere.time_it": "skipped: needs Windows",
    }


LOGGED = """
from pathlib import Path
LOG = Path({log!r})

def log(*words):
    with LOG.open("a") as file:
        print(*words, file=file)

def setup(*values): log("module setup", *values)
def teardown(*values): log("module teardown", *values)

class Suite:
    params = [3, 5]
    repeat = 2
    warmup_time = 0
    def setup_cache(self):
        log("cache")
        Path("kept").write_text("here")
        return "cached"
    def setup(self, cache, n): log("setup", cache, n, Path("kept").read_text())
    def teardown(self, cache, n): log("teardown", cache, n)
    def time_one(self, cache, n): log("call", cache, n)
    def track_two(self, cache, n): log("track", cache, n); return n
"""


def test_setup_cache_runs_once_and_setup_and_teardown_around_each_sample(
    tmp_path: Path, context: Context
) -> None:
    log = tmp_path / "log"
    said = measured(project(tmp_path, {"suite": LOGGED.format(log=str(log))}), context, 3)
    assert said["suite.Suite.time_one 5"].iterations == 3
    assert len(said["suite.Suite.time_one 5"].values[0].samples) == 2

    def around(n: int, calls: list[str]) -> list[str]:
        before = [f"module setup cached {n}", f"setup cached {n} here"]
        return [*before, *calls, f"teardown cached {n}", f"module teardown cached {n}"]

    def timed(n: int) -> list[str]:
        return 2 * around(n, 3 * [f"call cached {n}"])

    def tracked(n: int) -> list[str]:
        return around(n, [f"track cached {n}"])

    assert log.read_text().splitlines() == ["cache", *timed(3), *timed(5), *tracked(3), *tracked(5)]


COUNTED = """
def count(name):
    with open({log!r}, "a") as file: file.write(name + "\\n")
def time_given(): count("given")
time_given.number = 4
def time_free(): count("free")
def setup_number(): time_late.number = 6
def time_late(): count("late")
time_late.setup = setup_number
"""


def test_iterations_are_those_asked_for(tmp_path: Path, context: Context) -> None:
    log = tmp_path / "log"
    folder = project(tmp_path, {"one": COUNTED.format(log=str(log))})
    assert {name: one.iterations for name, one in measured(folder, context, 7).items()} == {
        "one.time_given": 7,
        "one.time_free": 7,
        "one.time_late": 7,
    }
    lines = log.read_text().splitlines()  # one sample warms up, five share what the suite leaves free
    assert {name: lines.count(name) for name in lines} == {"given": 14, "free": 7 + 5, "late": 14}
    chosen = measured(folder, context)
    assert chosen["one.time_given"].iterations == 4
    assert chosen["one.time_late"].iterations == 6
    assert chosen["one.time_free"].iterations > 1


CLOCK = """
passed = 0
def time_second():
    global passed
    passed += 1
time_second.timer = lambda: passed
def time_none(): pass
time_none.timer = lambda: 0
"""


def test_a_sample_takes_the_time_that_there_is(tmp_path: Path, context: Context) -> None:
    folder = project(tmp_path, {"one": CLOCK})
    (program,) = HARNESS.build(folder, PARAMS, context())
    one, none = NamedBenchmark("one.time_second"), NamedBenchmark("one.time_none")
    said = HARNESS.round(program, {one: 0}, PARAMS, context(1000.0))[one]
    assert (said.iterations, said.values[0].samples) == (1000, (1.0,) * 25)
    said = HARNESS.round(program, {none: 0}, PARAMS, context())[none]
    assert (said.iterations > 1, said.values[0].samples) == (True, (0.0,) * 5)


def test_what_cannot_be_imported_is_noted_and_the_rest_measured(
    tmp_path: Path, context: Context, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {"bad": "import nothing_like_this\n", "good": "def time_it(): pass\n"}
    said = measured(project(tmp_path, modules), context)
    assert list(said) == ["good.time_it"]
    assert "benchmarks.bad cannot be imported: ModuleNotFoundError" in capsys.readouterr().out
    (tmp_path / "benchmarks" / "good.py").unlink()
    with pytest.raises(JobFailed, match=r"benchmarks\.bad cannot be imported"):
        measured(tmp_path, context)


def test_names_that_are_gone_and_names_that_repeat(tmp_path: Path, context: Context) -> None:
    suite = """
    def time_it(x): pass
    time_it.params = [object(), object(), 1, 1]
    def time_other(): pass
    time_other.benchmark_name = "pretty.time_thing"
    """
    folder = project(tmp_path, {"one": suite, "two": "from .one import time_it\n"})
    said = measured(folder, context)
    labels = ["<object object> (0)", "<object object> (1)", "1 (0)", "1 (1)"]
    expected = [f"{module}.time_it {label}" for module in ("one", "two") for label in labels]
    assert sorted(said) == sorted([*expected, "pretty.time_thing"])
    assert not any(one.failure for one in said.values())
    (program,) = HARNESS.build(folder, PARAMS, context())
    gone = NamedBenchmark("one.time_gone")
    (answer,) = HARNESS.round(program, {gone: 1}, PARAMS, context()).values()
    assert answer == BenchmarkRound(0, (), "the suite does not have it")


def test_a_suite_that_ends_its_process_is_an_error(tmp_path: Path, context: Context) -> None:
    with pytest.raises(JobFailed, match="ended"):
        measured(project(tmp_path, {"one": "import os\nos._exit(0)\n"}), context)


def test_modules_of_the_working_copy_come_first_where_they_are_named(
    tmp_path: Path, context: Context
) -> None:
    folder = project(tmp_path, {"one": "import mine\ndef track_it(): return mine.VALUE\n"})
    (folder / "src").mkdir()
    (folder / "src" / "mine.py").write_text("VALUE = 5\n")
    with pytest.raises(JobFailed, match="No module named 'mine'"):
        measured(folder, context)
    said = measured(folder, context, 1, AsvParams(python=sys.executable, path=("src",)))
    assert said["one.track_it"].values[0].samples == (5.0,)


@pytest.mark.parametrize(
    ("matrix", "wrong"),
    [
        ({"numpy": ["1.8", "1.9"]}, "asks for numpy 1.8, 1.9"),
        ({"req": {"numpy": ["1.8"]}}, "asks for numpy 1.8"),
        ({"env": {"THREADS": ["1", "2"]}}, "asks for THREADS 1, 2"),
        (["numpy"], ""),
        ({"req": {"numpy": [], "scipy": [""], "six": None}, "env_nobuild": {"THREADS": ["3"]}}, ""),
        ({}, ""),
    ],
)
def test_a_matrix_is_refused_where_it_asks_for_environments(
    tmp_path: Path, context: Context, matrix: Any, wrong: str
) -> None:
    suite = "import os\ndef track_it(): return int(os.environ.get('THREADS', 0))\n"
    folder = project(tmp_path, {"one": suite}, json.dumps({"version": 1, "matrix": matrix}))
    if wrong:
        with pytest.raises(JobFailed, match=wrong) as caught:
            HARNESS.build(folder, PARAMS, context())
        assert "ignore_matrix" in caught.value.hint
        HARNESS.build(folder, AsvParams(python=sys.executable, ignore_matrix=True), context())
    elif "env_nobuild" in matrix:
        assert measured(folder, context)["one.track_it"].values[0].samples == (3.0,)
    else:
        HARNESS.build(folder, PARAMS, context())


def test_what_is_missing_is_said(tmp_path: Path, context: Context) -> None:
    assert HARNESS.detect(tmp_path) == []
    with pytest.raises(JobFailed, match=r"there is no asv\.conf\.json"):
        HARNESS.build(tmp_path, PARAMS, context())
    (tmp_path / "asv.conf.json").write_text("{}")
    assert HARNESS.detect(tmp_path) == []
    with pytest.raises(JobFailed, match="there is no folder"):
        HARNESS.build(tmp_path, PARAMS, context())
    with pytest.raises(CollectorUnavailable, match="there is no Python 'none/python'"):
        HARNESS.build(tmp_path, AsvParams(python="none/python"), context())
    (tmp_path / "asv.conf.json").write_text("[")
    assert HARNESS.detect(tmp_path) == []
    with pytest.raises(JobFailed, match=r"asv\.conf\.json is no JSON"):
        HARNESS.build(tmp_path, PARAMS, context())


def test_each_benchmark_has_a_fresh_process_where_the_suite_wants_it(
    tmp_path: Path, context: Context
) -> None:
    suite = """
    import os
    class Suite:
        def setup_cache(self): return os.getpid()
        def track_own(self, other): return os.getpid() != other and len(open("/proc/self/cmdline").read())
    def track_suite(): return len(open("/proc/self/cmdline").read())
    """
    plain = measured(project(tmp_path, {"one": suite}), context)
    (tmp_path / "asv.conf.json").write_text('{"launch_method": "spawn"}')
    spawned = measured(tmp_path, context)
    for name in ("one.Suite.track_own", "one.track_suite"):
        assert spawned[name].values[0].samples != plain[name].values[0].samples


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_old_and_new_pythons_run_suites(tmp_path: Path, context: Context, version: str) -> None:
    words = [Path(__file__).parents[2] / "tools" / "pythons.sh", version]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    if not found:
        pytest.skip(f"there is no Python {version}")
    said = measured(project(tmp_path, {"kinds": KINDS}), context, 0, AsvParams(python=found[1]))
    assert said["kinds.time_call"].values
    assert said["kinds.peakmem_list"].values


TEXTS = st.text(alphabet='{}[]",:/*\\\n a1', max_size=40)


@given(TEXTS)
def test_any_configuration_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(config_of(text, "asv.conf.json"), dict)
    except JobFailed as error:
        assert "asv.conf.json" in error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)


@given(st.dictionaries(TEXTS, JSON), st.sampled_from(["// x\n", "/* ] */", ""]))
def test_comments_change_nothing(config: dict[str, Any], comment: str) -> None:
    text = json.dumps(config, indent=1).replace("\n", f"{comment}\n")
    assert config_of(text, "asv.conf.json") == config


ALONE = """
def time_it():
    with open({log!r}, "a") as file: file.write("x")
time_it.repeat = 5
def time_other(): 1 / 0
def track_it(): return 3
"""


def test_one_makes_so_many_operations_however_often_it_runs(
    tmp_path: Path, context: Context, alone: Alone
) -> None:
    log = tmp_path / "log"
    (program,) = HARNESS.build(project(tmp_path, {"bench": ALONE.format(log=str(log))}), PARAMS, context())

    def one(name: str, number: int) -> BenchmarkCommand:
        return HARNESS.one(program, NamedBenchmark(f"bench.{name}"), number, PARAMS, context())

    for number in (0, 3):
        command = one("time_it", number)
        for _ in range(2):
            log.write_text("")
            alone(command, program.folder)
            assert len(log.read_text()) == command.iterations == number
    assert one("track_it", 3).iterations == 1
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        alone(one("time_other", 3), program.folder)
