"""What is exported: the same when it is imported again, and as other tools read it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from exchanged import REGISTRY, Reader, exported, needed, run, sampled, samples, stacks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.plugin.suites import BenchmarkValue, NamedBenchmark, profiles_of
from perun.profile.calls import Frame
from perun.profile.factory import Profile
from shared import npm_package, wait_for

PROFILER = "@firefox-devtools/profiler-cli@0.10.0"
"""The code of profiler.firefox.com, for a terminal."""
SCHEMA = Path(__file__).parents[1] / "data" / "schemas" / "speedscope.json"
MAIN, WORK = Frame("main", "a.c", 3), Frame("work", "lib.so")
SMALL = {(MAIN,): 5_000_000, (MAIN, WORK): 20_000_000, (MAIN, WORK, WORK): 1_000_000}

CATEGORIES = ("Cs", "Cc", "Zs", "Zl", "Zp")
letters = st.characters(codec="utf-8", exclude_categories=CATEGORIES, exclude_characters=";()~:")
names = st.text(letters, min_size=1, max_size=8)
frames = st.builds(Frame, names, st.sampled_from(["", "a.c", "lib.so"]), st.integers(0, 9))
micros = st.integers(1, 10**9).map(lambda one: one * 1000)
amounts = st.dictionaries(st.lists(frames, min_size=1, max_size=6).map(tuple), micros, min_size=1)


def measured(*samples_: float, name: str = "BenchmarkA", parameters: str = "n=1") -> Profile:
    """A profile of a benchmark."""
    values = [BenchmarkValue("time", "", "s", samples_)]
    (profile,) = profiles_of("go", "go test -bench", NamedBenchmark(name, parameters), values)
    return profile


@pytest.mark.parametrize("name", ["pprof", "firefox", "speedscope", "folded"])
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(found=amounts)
def test_stacks_come_back(read: Reader, name: str, found: dict[tuple[Frame, ...], float]) -> None:
    profile = sampled(found)
    (again,) = read(name, exported(name, profile))
    factor = 1e6 if name == "firefox" else 1  # milliseconds
    back = {key: amount * factor for key, amount in stacks(again.profile).items()}
    assert back == pytest.approx(stacks(profile), rel=1e-9)


def test_pprof_keeps_sources_lines_and_all_values(read: Reader) -> None:
    profile = sampled(SMALL)
    (again,) = read("pprof", exported("pprof", profile))
    keys = ("uid", "trace", "amount", "samples")
    own, back = (
        sorted(
            (
                json.dumps({key: one.get(key) for key in keys})
                for _, one in each.all_resources()
                if "trace" in one
            )
        )
        for each in (profile, again.profile)
    )
    assert own == back
    assert exported("pprof", profile) == exported("pprof", profile)  # without the time of day


def test_go_reads_pprof(tmp_path: Path) -> None:
    go = needed("go")
    (tmp_path / "out.pb.gz").write_bytes(exported("pprof", sampled(SMALL)))
    printed = run([go, "tool", "pprof", "-top", "-unit=ns", "out.pb.gz"], tmp_path)
    assert re.search(r"21000000ns\s+80.77%\s+\S+\s+21000000ns\s+80.77%\s+work", printed), printed


PROTO = """
syntax = "proto3";
message Profile {
  repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; }
message Mapping { uint64 id = 1; int64 filename = 5; bool has_functions = 7; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; }
"""
"""The part of https://github.com/google/pprof/blob/main/proto/profile.proto that is written."""


def test_protoc_reads_pprof_by_its_schema(tmp_path: Path) -> None:
    protoc = needed("protoc")
    (tmp_path / "profile.proto").write_text(PROTO)
    (tmp_path / "plain").write_bytes(gzip.decompress(exported("pprof", sampled(SMALL))))
    printed = run(["sh", "-c", f"{protoc} --decode=Profile profile.proto <plain"], tmp_path)
    assert printed.count("sample {") == 3 and not re.search(r"^\s*\d+:", printed, re.MULTILINE)
    assert "value: 20000000" in printed


def test_negative_and_large_numbers_of_pprof(read: Reader) -> None:
    profile = sampled({(MAIN,): 2**62 - 1})
    (again,) = read("pprof", exported("pprof", profile))
    assert stacks(again.profile) == {"main": 2**62 - 1}


def test_firefox_has_the_columns_of_its_version() -> None:
    document = json.loads(exported("firefox", sampled(SMALL)))
    (thread,) = document["threads"]
    assert document["meta"]["preprocessedProfileVersion"] == 48 and document["meta"]["categories"]
    for name in (
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
        "samples",
        "markers",
    ):
        table = thread[name]
        assert all(len(one) == table["length"] for one in table.values() if isinstance(one, list)), name
    assert thread["samples"]["weightType"] == "tracing-ms"
    assert thread["samples"]["weight"] == [5, 20, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "each"), [("ns", 1e6), ("B", 1), ("", 1)])
def test_the_profiler_of_firefox_reads_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, unit: str, each: float
) -> None:
    node = needed("node")
    program = npm_package(tmp_path_factory, PROFILER) / "node_modules" / ".bin" / "profiler-cli"
    environ = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(tmp_path), "PROFILER_CLI_NO_SYMBOLICATE": "1"}

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        words = node, str(program), *words
        return subprocess.run(words, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    (tmp_path / "p.json").write_bytes(exported("firefox", sampled(SMALL, unit)))
    ask("load", "p.json")  # it starts a process that reads it, for which it hardly waits
    try:
        wait_for(lambda: "not become ready" not in ask("thread", "functions").stderr)
        told = ask("thread", "functions", "--json")
        assert not told.returncode, told.stderr
        found = {
            one["name"]: (one["totalSamples"] * each, one["selfSamples"] * each)
            for one in json.loads(told.stdout)["functions"]
        }
        assert found == {"main": (26_000_000, 5_000_000), "work": (21_000_000, 21_000_000)}
    finally:
        ask("stop", "--all")


def test_speedscope_is_of_its_schema() -> None:
    jsonschema.validate(json.loads(exported("speedscope", sampled(SMALL))), json.loads(SCHEMA.read_text()))


def test_callgrind_annotate_reads_callgrind(tmp_path: Path) -> None:
    annotate = needed("callgrind_annotate")
    (tmp_path / "out").write_bytes(exported("callgrind", sampled(SMALL)))
    own = run([annotate, "out"], tmp_path)
    assert re.search(r"^21,000,000 \(80.77%\)\s+lib.so:work", own, re.MULTILINE), own
    inclusive = run([annotate, "--inclusive=yes", "out"], tmp_path)
    assert re.search(r"^26,000,000 \(100.0%\)\s+a.c:main", inclusive, re.MULTILINE), inclusive


def test_counts_of_instructions_come_back(read: Reader) -> None:
    (first,) = read.corpus("callgrind", "small.out")
    (again,) = read("callgrind", exported("callgrind", first.profile))
    assert stacks(again.profile) == stacks(first.profile)


def test_chrome_traces_come_back(read: Reader) -> None:
    (first,) = read.corpus("chrome", "complete.json")
    (again,) = read("chrome", exported("chrome", first.profile))
    assert stacks(again.profile) == stacks(first.profile)
    with pytest.raises(ProfileError, match="start times"):
        exported("chrome", sampled(SMALL))


# -- benchmarks


@pytest.mark.parametrize("name", ["benchstat", "hyperfine"])
@given(found=st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=9))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_samples_come_back(read: Reader, name: str, found: list[float]) -> None:
    importer = {"benchstat": "go"}.get(name, name)
    (again,) = read(importer, exported(name, measured(*found)))
    assert samples(again.profile)[""] == pytest.approx(found, rel=1e-9)
    assert again.profile.configuration.workload == "n=1"


def test_benchstat_has_all_metrics_in_a_line(read: Reader) -> None:
    values = [
        BenchmarkValue("time", "", "s", (1e-6, 2e-6)), BenchmarkValue("time", "cpu", "s", (3e-6, 4e-6)),
    ]  # fmt: skip
    (profile,) = profiles_of("google_benchmark", "google benchmark", NamedBenchmark("BM x"), values)
    text = exported("benchstat", profile).decode()
    assert text == "".join(f"BenchmarkBM_x\t1\t{one}000 ns/op\t{one + 2}000 cpu-ns/op\n" for one in (1, 2))


def test_the_format_of_bencher_has_no_samples(read: Reader) -> None:
    text = exported("bmf", measured(1e-6, 3e-6))
    assert json.loads(text) == {
        "BenchmarkA n=1": {"latency": {"value": 2000.0, "lower_value": 1000.0, "upper_value": 3000.0}}
    }
    (again,) = read("bmf", text)
    assert again.means and samples(again.profile)[""] == pytest.approx([2e-6])


def test_openmetrics() -> None:
    text = exported("openmetrics", measured(1.0, 2.0, 6.0, name='a "b"\\')).decode()
    labels = 'collector="go",cmd="go test -bench",name="a \\"b\\"\\\\",workload="n=1"'
    assert text.splitlines() == [
        "# TYPE perun_time_seconds summary", "# UNIT perun_time_seconds seconds",
        *(f'perun_time_seconds{{{labels},quantile="{share}"}} {value}'
          for share, value in (("0", 1.0), ("0.5", 2.0), ("1", 6.0))),
        f"perun_time_seconds_sum{{{labels}}} 9.0", f"perun_time_seconds_count{{{labels}}} 3", "# EOF",
    ]  # fmt: skip


@pytest.mark.parametrize("name", REGISTRY.names("exporter"))
@pytest.mark.parametrize("make", [lambda: sampled(SMALL), lambda: measured(1.0)], ids=["stacks", "samples"])
def test_a_profile_of_the_wrong_kind_is_refused(name: str, make: Callable[[], Profile]) -> None:
    try:
        assert exported(name, make())
    except ProfileError as problem:
        assert problem.hint  # what to do instead


def test_empty_profiles_are_refused() -> None:
    for name in REGISTRY.names("exporter"):
        with pytest.raises(ProfileError):
            exported(name, Profile({"header": {"type": "time"}}))
