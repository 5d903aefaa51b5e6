"""The regex collector: values that programs print."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.regex import RegexCollector, RegexParams, number, plain
from perun.core.errors import ConfigError, JobFailed
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import from_mapping
from perun.profile.factory import Profile

GOOGLE = """\
2026-01-05T10:00:00+00:00
Running ./bench
Run on (8 X 3000 MHz CPU s)
CPU Caches:
  L1 Data 32 KiB (x4)
Load Average: 0.52, 0.58, 0.59
-------------------------------------------------------------------
Benchmark                         Time             CPU   Iterations
-------------------------------------------------------------------
BM_Create                      3.95 ns         3.90 ns    178000000
BM_Sort/1024                   12.5 us         12.4 us        56000 bytes_per_second=3.2G/s
BM_Sort/8192                    109 us          108 us         6400
BM_Sort/8192/threads:2         60.1 us          120 us         5800
BM_Slow                    1.2e+03 ms       1.1e+03 ms            1
BM_Create_mean                 3.96 ns         3.91 ns            3
BM_Create_stddev              0.010 ns        0.009 ns            3
BM_Create_cv                   0.25 %          0.23 %             3
BM_Broken                  ERROR OCCURRED: 'no file'
"""
HYPERFINE = """\
Benchmark 1: sleep 0.1
  Time (mean ± \u03c3):     102.1 ms ±   0.4 ms    [User: 0.8 ms, System: 1.0 ms]
  Range (min … max):   101.3 ms … 103.0 ms    28 runs

Benchmark 2: ./prog --all
  Time (abs ≡):         1.234 s               [User: 930.5 ms, System: 101.0 µs]

Summary
  sleep 0.1 ran
   12.09 ± 0.05 times faster than ./prog --all
"""
PYTEST = """\
============================= test session starts ==============================
collected 3 items

test_it.py ...                                                           [100%]


-------------------------------------------- benchmark: 3 tests --------------------------------------------
Name (time in us)           Min                 Max                Mean            StdDev              Median
-------------------------------------------------------------------------------------------------------------
test_sort[10]            1.2000 (1.0)        9.8000 (1.0)       1.5000 (1.0)      0.5000 (1.0)       1.4 (1.0)
test_sort[1000]        100.2000 (83.50)    210.0000 (21.43)   120.5000 (80.33)    9.5000 (19.0)  118.0 (84.29)
test_read[big file]  1,000.0000 (833.33) 3,000.0000 (306.12) 1,500.2500 (>1000.0) 20.000 (40.0) 1,480.0 (>1.0)
-------------------------------------------------------------------------------------------------------------

Legend:
  Outliers: 1 Standard Deviation from Mean
============================== 3 passed in 3.21s ===============================
"""
TIME_V = """\
\tCommand being timed: "sort file"
\tUser time (seconds): 1.25
\tSystem time (seconds): 0.50
\tPercent of CPU this job got: 99%
\tElapsed (wall clock) time (h:mm:ss or m:ss): 1:01.75
\tAverage shared text size (kbytes): 0
\tMaximum resident set size (kbytes): 2048
\tMajor (requiring I/O) page faults: 3
\tMinor (reclaiming a frame) page faults: 400
\tVoluntary context switches: 5
\tInvoluntary context switches: 17
\tSwaps: 0
\tFile system inputs: 8
\tFile system outputs: 16
\tPage size (bytes): 4096
\tExit status: 0
"""


def collect(tmp_path: Path, script: str, **values: Any) -> Profile:
    project, scratch = tmp_path / "project", tmp_path / "scratch"
    for folder in (project, scratch):
        folder.mkdir(exist_ok=True)
    (project / "prog").write_text(f"#!/bin/sh\n{script}\n")
    (project / "prog").chmod(0o755)
    run = Run("./prog", cwd=project, environ={"PATH": "/usr/bin:/bin"})
    return RegexCollector().collect(run, params(**values), CollectContext(scratch))


def params(**values: Any) -> RegexParams:
    made = from_mapping(RegexParams, values, "here")
    assert isinstance(made, RegexParams)
    return made


def printed(tmp_path: Path, text: str, **values: Any) -> Profile:
    (tmp_path / "text").write_text(text)
    return collect(tmp_path, f"cat '{tmp_path}/text'", **values)


def amounts(profile: Profile) -> dict[str, Any]:
    return {str(one["uid"]): pytest.approx(one["amount"]) for _, one in profile.all_resources()}


def test_all_four_groups(tmp_path: Path) -> None:
    text = "sort of 100 items: 12.5 ms\nsort of 200 items: 30 ms\nread of 7 items: 1 us\n"
    regex = r"^(?P<name>\w+) of (?P<size>\d+) items: (?P<value>[\d.]+) (?P<unit>\w+)$"
    profile = printed(tmp_path, text, pattern=regex)
    assert [one for _, one in profile.all_resources()] == [
        {"amount": 0.0125, "uid": "sort", "type": "time", "structure-unit-size": 100, "order": 1},
        {"amount": 0.03, "uid": "sort", "type": "time", "structure-unit-size": 200, "order": 1},
        {"amount": 1e-6, "uid": "read", "type": "time", "structure-unit-size": 7, "order": 1},
    ]
    assert profile["header"]["type"] == "time" and profile["header"]["units"] == {"time": "s"}


def test_more_of_a_metric_is_better(tmp_path: Path) -> None:
    text = "rate 120 req/s, p99 3 ms"
    rate, p99 = r"rate (?P<value>\d+) (?P<unit>\S+),", r"p99 (?P<value>\d+) (?P<unit>ms)"
    values = {"metric": {"rate": rate, "p99": p99}}
    assert "larger_is_better" not in printed(tmp_path, text, **values)["header"]
    for name in ("rate", "req/s"):
        profile = printed(tmp_path, text, larger_is_better=[name], **values)
        assert profile["header"]["larger_is_better"] == [name]
    with pytest.raises(JobFailed, match="larger_is_better names 'rtae', but no value has") as error:
        printed(tmp_path, text, larger_is_better=["rtae"], **values)
    assert error.value.hint == "found were rate, p99, req/s"


def test_metrics_with_names_and_units(tmp_path: Path) -> None:
    values = {
        "metric": {
            "p99": r"p99=(?P<value>\d+)",
            "rate": r"(?P<value>[\d,]+) requests",
            "peak": r"peak (?P<value>\d+)",
        },
        "unit": {"p99": "ms", "rate": "req/s", "peak": "MiB"},
    }
    profile = printed(tmp_path, "p99=250\n1,500 requests in a second, peak 3\n", **values)
    assert amounts(profile) == {"p99": 0.25, "rate": 1500, "peak": 3 * 2**20}
    assert profile["header"]["type"] == "mixed"
    assert profile["header"]["units"] == {"time": "s", "mixed(req/s)": "req/s", "memory": "B"}


def test_headings_hold_for_what_is_behind_them(tmp_path: Path) -> None:
    text = "0 items\n# one (ms)\n1 items\n2 items\n# two (s)\n3 items\n"
    profile = printed(
        tmp_path, text, pattern=r"^(?P<value>\d+) items", heading=r"^# (?P<name>\w+) \((?P<unit>\w+)\)"
    )
    found = [(one["uid"], one["amount"], one["type"]) for _, one in profile.all_resources()]
    assert sorted(found) == [
        ("./prog", 0, "mixed"), ("one", 0.001, "time"), ("one", 0.002, "time"), ("two", 3, "time")
    ]  # fmt: skip


def test_runs(tmp_path: Path) -> None:
    script = 'echo x >>../count; echo "n=$(wc -l <../count)"'
    profile = collect(tmp_path, script, pattern=r"n=\s*(?P<value>\d+)", warmup=2, repeat=3)
    assert [(one["order"], one["amount"]) for _, one in profile.all_resources()] == [(1, 3), (2, 4), (3, 5)]


@pytest.mark.parametrize(("stream", "expected"), [("stdout", [1]), ("stderr", [2]), ("both", [1, 2])])
def test_streams(stream: str, expected: list[int], tmp_path: Path) -> None:
    profile = collect(tmp_path, "echo n=1; echo n=2 >&2", pattern=r"n=(?P<value>\d)", stream=stream)
    assert [one["amount"] for _, one in profile.all_resources()] == expected


def test_google_benchmark(tmp_path: Path) -> None:
    profile = printed(tmp_path, GOOGLE, ready=["google-benchmark"])
    real = [
        (one["uid"], one.get("structure-unit-size"), pytest.approx(one["amount"]))
        for _, one in profile.all_resources()
        if "(cpu)" not in one["uid"]
    ]
    assert real == [
        ("BM_Create", None, 3.95e-9),
        ("BM_Sort", 1024, 12.5e-6),
        ("BM_Sort", 8192, 109e-6),
        ("BM_Sort/8192/threads:2", None, 60.1e-6),
        ("BM_Slow", None, 1.2),
        ("BM_Create_mean", None, 3.96e-9),
    ]
    assert amounts(profile)["BM_Create (cpu)"] == 3.9e-9 and profile.type == "time"


def test_hyperfine(tmp_path: Path) -> None:
    assert amounts(printed(tmp_path, HYPERFINE, ready=["hyperfine"])) == {
        "sleep 0.1": 0.1021, "sleep 0.1 (user)": 0.0008, "sleep 0.1 (system)": 0.001, "./prog --all": 1.234,
        "./prog --all (user)": 0.9305, "./prog --all (system)": 101e-6
    }  # fmt: skip


def test_pytest_benchmark(tmp_path: Path) -> None:
    profile = printed(tmp_path, PYTEST, ready=["pytest-benchmark"])
    found = [
        (one["uid"], one.get("structure-unit-size"), pytest.approx(one["amount"]))
        for _, one in profile.all_resources()
    ]
    assert found == [
        ("test_sort", 10, 1.5e-6), ("test_sort", 1000, 120.5e-6), ("test_read[big file]", None, 1500.25e-6)
    ]  # fmt: skip


def test_time_v(tmp_path: Path) -> None:
    assert amounts(printed(tmp_path, TIME_V, ready=["time-v"])) == {
        "User time": 1.25, "System time": 0.5, "Elapsed": 61.75, "Maximum resident set size": 2 * 2**20,
        "Major page faults": 3, "Minor page faults": 400, "Voluntary context switches": 5,
        "Involuntary context switches": 17, "Swaps": 0, "File system inputs": 8, "File system outputs": 16
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("time"), reason="GNU time is not installed")
def test_time_v_itself(tmp_path: Path) -> None:
    found = amounts(collect(tmp_path, "exec time -v true", ready=["time-v"]))
    assert {"User time", "Elapsed", "Maximum resident set size", "Minor page faults"} <= found.keys()


@pytest.mark.parametrize(("values", "message"), [
    ({}, "one of pattern, metric and ready is needed"),
    ({"pattern": "n=1"}, r"pattern 'n=1' needs the group \(\?P<value>"),
    ({"pattern": r"n=(\d)"}, "needs the group"),
    ({"pattern": r"(?P<name>\w)"}, "needs the group"),
    ({"pattern": "("}, "not a regular expression"),
    ({"pattern": r"(?P<valeu>\d)"}, "unknown group 'valeu'; groups are value, name, unit, size"),
    ({"pattern": [r"a(?P<value>\d)", r"b(?P<value>\d)"]}, "have no names"),
    ({"metric": {"a": "b"}}, "metric 'b' needs the group"),
    ({"metric": ["ab"]}, "a mapping"),
    ({"pattern": r"(?P<value>\d)", "unit": {"a": "s"}}, "unit names the metric 'a'"),
    ({"pattern": r"(?P<value>\d)", "heading": "x"}, "heading 'x' needs the group"),
    ({"ready": "criterion"}, "ready must be one of google-benchmark"),
    ({"pattern": r"(?P<value>\d)", "stream": "stdin"}, "stream must be one of"),
])  # fmt: skip
def test_what_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        params(**values)


@pytest.mark.parametrize(("script", "values", "message"), [
    ("echo n=x", {"pattern": r"n=(?P<value>\d)"}, "finds nothing in the output(.|\n)*n=x"),
    ("true", {"metric": {"p99": r"n=(?P<value>\d)"}}, "'p99' finds nothing(.|\n)*the output is empty"),
    ("echo n=1.2.3", {"pattern": r"n=(?P<value>\S+)"}, "the value that the .* is not a number: '1.2.3'"),
    ("echo 1/a", {"pattern": r"(?P<value>\d)/(?P<size>\w)"}, "the size that the .* is not a number: 'a'"),
    ("echo hello", {"ready": ["hyperfine"]}, "no results of hyperfine(.|\n)*hello"),
    ("echo n=1; echo sorry >&2; exit 4", {"pattern": r"n=(?P<value>\d)"}, "status 4(.|\n)*sorry"),
    ("sleep 9", {"pattern": r"n=(?P<value>\d)", "timeout": 0.1}, "did not end within"),
])  # fmt: skip
def test_runs_that_fail(script: str, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=message):
        collect(tmp_path, script, **values)


def test_a_failure_that_is_ignored(tmp_path: Path) -> None:
    profile = collect(tmp_path, "echo n=1; exit 4", pattern=r"n=(?P<value>\d)", ignore_failure=True)
    assert [(one["amount"], one["exitcode"]) for _, one in profile.all_resources()] == [(1, 4)]


@pytest.mark.parametrize(("text", "expected"), [
    ("5", 5),
    ("-1.5e-3", -0.0015),
    ("1,234,567.5", 1234567.5),
    ("0:01.5", 1.5),
    ("1:02:03", 3723),
    ("1,5", None),
    ("nan", None),
    ("inf", None),
    ("", None),
])  # fmt: skip
def test_numbers(text: str, expected: float | None) -> None:
    assert number(text) == expected


@given(st.text())
def test_any_text_is_a_number_or_not(text: str) -> None:
    value = number(text)
    assert value is None or abs(value) < float("inf")


def test_colours_and_line_ends() -> None:
    assert plain("\x1b[1;32mok\x1b[0m\r\n50%\r100%\n") == "ok\n50%\n100%\n"
