"""Importers of benchmark results: files of the real tools, where these are there, and those of the fuzzer.

Of the corpus those of hyperfine 1, Google Benchmark, Go, pytest-benchmark, pyperf and Catch2 were written by
these tools; hyperfine 2, asv, JMH, Criterion, Gungraun, BenchmarkDotNet, the Bencher format and Elasticsearch
are by hand, after their schemas; those of Gungraun are valid by its `summary.v*.schema.json`. What Criterion
writes is read in `tests/harness/test_cargo.py`. hyperfine 2, JMH, Gungraun, BenchmarkDotNet and Bencher are
not in the package indexes that tests install from.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from exchanged import CORPUS, Reader, guessed, needed, python_with, run, samples

from perun.core.errors import ProfileError
from perun.plugin.interchange import Imported
from perun.plugin.registry import Registry


def configurations(found: list[Imported]) -> list[tuple[str, ...]]:
    """Collector, command, arguments and workload of each profile."""
    return [one.profile.configuration[:4] for one in found]


def of_time(found: list[Imported]) -> list[Imported]:
    return [one for one in found if one.profile.type == "time"]


@pytest.mark.parametrize(
    ("name", "harness"),
    [("pytest-benchmark", "pytest_benchmark"), ("pyperf", "pyperf"), ("go", "go"), ("asv", "asv"),
     ("google-benchmark", "google_benchmark"), ("jmh", "jmh"), ("catch2", "catch2"), ("criterion", "cargo")],
)  # fmt: skip
def test_profiles_are_those_of_the_harness(read: Reader, name: str, harness: str) -> None:
    path = next((CORPUS / f"import-{name}").iterdir())
    command = Registry().get("harness", harness).command
    for collector, cmd, *_ in configurations(read(name, path)):
        assert (collector.partition(".")[0], cmd) == (harness, command)


def test_hyperfine_1(read: Reader) -> None:
    found = read.corpus("hyperfine", "release1.json")
    assert configurations(found) == [
        ("hyperfine", "hyperfine", "sleep 0.001", "n=1"), ("hyperfine", "hyperfine", "sleep 0.002", "n=2"),
    ]  # fmt: skip
    times = json.loads((CORPUS / "import-hyperfine" / "release1.json").read_text())["results"][0]["times"]
    assert samples(found[0].profile) == {"": times} and not found[0].means


def test_hyperfine_2(read: Reader) -> None:
    printed, timed = read.corpus("hyperfine", "release2.json")
    assert samples(timed.profile) == {
        "": pytest.approx([0.1, 0.101, 0.102, 0.103, 0.104]), "user": [0.001] * 5, "sys": [0.002] * 5,
    }  # fmt: skip
    assert samples(printed.profile)["peak"] == [1234567, 1234568, 1234569, 1234570, 1234571]
    assert set(samples(printed.profile)) == {"peak", "instructions"} and timed.moment == 1791460800


def test_hyperfine_without_times_and_of_a_later_schema(read: Reader) -> None:
    (one,) = read("hyperfine", '{"results": [{"command": "a", "mean": 2.5}]}')
    assert one.means and samples(one.profile) == {"": [2.5]}
    with pytest.raises(ProfileError, match="version 3, of which 1 and 2 are known"):
        read("hyperfine", '{"schema_version": 3, "results": []}')


def test_real_hyperfine(read: Reader, tmp_path: Path) -> None:
    tool = needed("hyperfine")
    path = tmp_path / "out.json"
    run([tool, "-N", "-r", "4", "--export-json", str(path), "true"], tmp_path)
    assert guessed(path) == ["hyperfine"]
    (found,) = of_time(read("hyperfine", path))
    told = json.loads(path.read_text())["results"][0]
    assert sum(samples(found.profile)[""]) / 4 == pytest.approx(told["mean"])


def test_google_benchmark(read: Reader) -> None:
    found = of_time(read.corpus("google-benchmark", "result.json"))
    assert [one.profile.configuration.workload for one in found] == ["8", "64"]
    rows = json.loads((CORPUS / "import-google-benchmark" / "result.json").read_text())["benchmarks"]
    times = [
        row["real_time"] for row in rows if row["run_name"] == "BM_Push/8" and row["run_type"] == "iteration"
    ]
    assert samples(found[0].profile)[""] == pytest.approx([one / 1e9 for one in times])
    means = of_time(read.corpus("google-benchmark", "aggregates.json"))
    assert all(one.means for one in means) and len(samples(means[0].profile)[""]) == 1


def test_real_google_benchmark(read: Reader, tmp_path: Path) -> None:
    compiler = needed("c++")
    (tmp_path / "b.cc").write_text(
        "#include <benchmark/benchmark.h>\nstatic void BM_X(benchmark::State& s) { for (auto _ : s) "
        "benchmark::DoNotOptimize(s.range(0)); }\nBENCHMARK(BM_X)->Arg(3);\nBENCHMARK_MAIN();\n"
    )
    run([compiler, "-O1", "b.cc", "-o", "b", "-lbenchmark", "-lpthread"], tmp_path)
    words = ["--benchmark_repetitions=3", "--benchmark_out=out.json", "--benchmark_min_time=0.001"]
    run(["./b", *words], tmp_path)
    (found,) = of_time(read("google-benchmark", tmp_path / "out.json"))
    assert len(samples(found.profile)[""]) == 3 and found.profile.configuration.workload == "3"


def test_go(read: Reader) -> None:
    found = read.corpus("go", "bench.txt")
    assert samples(of_time(found)[0].profile)[""] == pytest.approx([36833e-9, 36605e-9, 36626e-9])
    assert ("go", "go test -bench", "BenchmarkAlloc", "size=big") in configurations(found)
    packages = read.corpus("go", "packages.txt")
    assert {one[2] for one in configurations(packages)} == {"a.BenchmarkX", "b/c.BenchmarkX"}
    rates = next(one.profile for one in packages if one.profile.type == "printed")
    assert rates["header"]["larger_is_better"] == ["MB/s"]


def test_real_go(read: Reader, tmp_path: Path) -> None:
    go = needed("go")
    (tmp_path / "go.mod").write_text("module x\ngo 1.19\n")
    (tmp_path / "x_test.go").write_text(
        'package x\nimport "testing"\nfunc BenchmarkA(b *testing.B) { for i := 0; i < b.N; i++ {} }\n'
    )
    text = run([go, "test", "-bench", ".", "-count", "2", "-benchtime", "100x"], tmp_path)
    (found,) = read("go", text)
    printed = [float(one) for one in re.findall(r"([\d.]+) ns/op", text)]
    assert [one * 1e9 for one in samples(found.profile)[""]] == pytest.approx(printed)


def test_pytest_benchmark(read: Reader) -> None:
    found = read.corpus("pytest-benchmark", "data.json")
    assert configurations(found)[0][2:] == ("test_b.py::test_sum", "10")
    assert len(samples(found[0].profile)[""]) == 30 and len(found[0].version) == 40
    assert found[0].profile["machine"]["cpu"]["total"] == 2
    means = read.corpus("pytest-benchmark", "means.json")
    assert [one.means for one in means] == [True, True] and len(samples(means[0].profile)[""]) == 1


def test_real_pytest_benchmark(read: Reader, tmp_path: Path) -> None:
    python = python_with("pytest_benchmark")
    (tmp_path / "test_b.py").write_text(
        "def test_sum(benchmark):\n    benchmark.pedantic(sum, ([1],), rounds=7)\n"
    )
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-json=out.json", "test_b.py"]
    run(words, tmp_path)
    (found,) = read("pytest-benchmark", tmp_path / "out.json")
    stats = json.loads((tmp_path / "out.json").read_text())["benchmarks"][0]["stats"]
    assert samples(found.profile)[""] == stats["data"] and len(stats["data"]) == 7


def test_pyperf(read: Reader) -> None:
    found = read.corpus("pyperf", "result.json")
    assert [one[2] for one in configurations(found)] == ["sum", "sort"]
    assert all(len(samples(one.profile)[""]) == 6 for one in found)
    assert found[0].profile["machine"]["architecture"] == "x86_64"


def test_real_pyperf(read: Reader, tmp_path: Path) -> None:
    python = python_with("pyperf")
    run(
        [python, "-m", "pyperf", "timeit", "-p2", "-n2", "-l3", "-w1", "-q", "-o", "out.json", "1+1"],
        tmp_path,
    )
    (found,) = read("pyperf", tmp_path / "out.json")
    shown = run([python, "-m", "pyperf", "dump", "-q", "out.json"], tmp_path)
    assert len(samples(found.profile)[""]) == 4, shown


def test_real_asv(read: Reader, tmp_path: Path) -> None:
    python = python_with("asv")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (tmp_path / "benchmarks" / "b.py").write_text(
        "class Sums:\n    params = [10, 20]\n    repeat, number, warmup_time = 3, 5, 0\n"
        "    def time_sum(self, n):\n        sum(range(n))\n"
        "    def track_size(self, n):\n        return 3 * n\n"
    )
    (tmp_path / "asv.conf.json").write_text(
        '{"version": 1, "project": "p", "repo": ".", "environment_type": "existing", "branches": ["main"]}'
    )
    for words in ("init -q -b main", "add .", "-c user.name=a -c user.email=a@b commit -q -m a"):
        run(["git", *words.split()], tmp_path)
    asv = ["env", f"HOME={tmp_path}", python, "-m", "asv"]
    run([*asv, "machine", "--yes"], tmp_path)
    head = run(["git", "rev-parse", "HEAD"], tmp_path).strip()
    run([*asv, "run", "--python=same", f"--set-commit-hash={head}", "--record-samples"], tmp_path)
    (path,) = (tmp_path / "results").glob("*/*-existing-*.json")
    assert guessed(path) == ["asv"]
    found = read("asv", path)
    told = {one.profile.configuration[2:4]: samples(one.profile)[""] for one in found}
    assert told["b.Sums.track_size", "20"] == [60] and {one.version for one in found} == {head}
    shown = re.search(r"samples: (.*)", run([*asv, "show", "--details", head], tmp_path))
    assert shown is not None
    assert [told["b.Sums.time_sum", n] for n in ("10", "20")] == json.loads(shown[1])


def test_asv(read: Reader) -> None:
    found = read.corpus("asv", "v2.json")
    told = {
        (one[2], one[3]): samples(part.profile)
        for one, part in zip(configurations(found), found, strict=True)
    }
    assert told == {
        ("bench.time_sum", "10"): {"": [1e-6, 1.1e-6, 0.9e-6]},
        ("bench.time_sum", "20"): {"": [2e-6, 2.1e-6, 1.9e-6]},
        ("bench.time_median", ""): {"": [3e-3]},
        ("bench.peakmem_list", ""): {"peak": [12345678]}, ("bench.track_size", ""): {"": [7]},
    }  # fmt: skip
    assert [one.means for one in found] == [False, False, True, True, True]
    assert {one.version for one in found} == {"0123456789abcdef0123456789abcdef01234567"}
    old = read.corpus("asv", "v1.json")
    assert [one[3] for one in configurations(old)] == ["", "'x'", "'y'"]


def test_jmh(read: Reader) -> None:
    found = read.corpus("jmh", "result.json")
    timed = of_time(found)
    assert configurations(timed)[0] == ("jmh", "jmh", "org.x.Bench.run", "kind=a size=10")
    assert samples(timed[0].profile)[""] == pytest.approx([1.5e-6, 2.5e-6, 2e-6])
    assert timed[1].means and not timed[0].means
    rate = next(one.profile for one in found if one.profile.configuration.args == "org.x.Bench.thrpt")
    assert samples(rate) == {"": [5000, 6000]}
    assert rate["header"]["larger_is_better"] == ["org.x.Bench.thrpt"]


def test_sampled_times_of_jmh_and_results_of_kotlinx_benchmark(read: Reader) -> None:
    rows = [[[[1.5, 3], [2.5, 1]], [[2, 5]]], [[[4.0, 1]]]]
    metric = {"score": 2.0, "scoreUnit": "ms/op", "rawDataHistogram": rows}
    (sampled,) = read("jmh", json.dumps([{"benchmark": "a.b", "mode": "sample", "primaryMetric": metric}]))
    assert samples(sampled.profile)[""] == pytest.approx([1.75e-3, 2e-3, 4e-3]) and not sampled.means
    metric = {"score": 2.0, "scoreUnit": "ms/op", "rawData": [1.0, 3.0]}
    (flat,) = read("jmh", json.dumps([{"benchmark": "a.b", "mode": "avgt", "primaryMetric": metric}]))
    assert samples(flat.profile)[""] == pytest.approx([1e-3, 3e-3])


def test_criterion(read: Reader, tmp_path: Path) -> None:
    folder = tmp_path / "target" / "criterion" / "fib" / "20" / "new"
    folder.mkdir(parents=True)
    for name in ("sample.json", "estimates.json"):
        shutil.copy(CORPUS / "import-criterion" / name, folder)
    (one,) = read("criterion", folder / "sample.json")
    assert one.profile.configuration.args == "20" and not one.means
    (folder / "benchmark.json").write_text('{"full_id": "fib/20"}')
    root = tmp_path / "target" / "criterion"
    assert guessed(root) == ["criterion"]
    (whole,) = read("criterion", root)
    assert whole.profile.configuration.args == "fib/20"
    assert samples(whole.profile)[""] == pytest.approx([100e-9, 105e-9, 2900e-9 / 30])
    (mean,) = read("criterion", folder / "estimates.json")
    assert mean.means and samples(mean.profile)[""] == pytest.approx([100e-9])
    (told,) = read.corpus("criterion", "messages.json")
    assert samples(told.profile)[""] == pytest.approx([100e-9, 110e-9])


def test_gungraun(read: Reader) -> None:
    counted, printed = read.corpus("gungraun", "v6.json")
    assert configurations([counted])[0][2:] == ("bench::group::run", "short")
    assert samples(counted.profile) == {"": [1734]} and not counted.means
    assert samples(printed.profile) == {"L1hits": [2359], "EstimatedCycles": [2404.5]}
    old, hits = read.corpus("gungraun", "v3.json")
    assert samples(old.profile) == {"": [1800]} and old.profile.configuration.args == "bench::group::run"
    assert samples(hits.profile) == {"L1hits": [7]}  # others only the old run had
    (oldest,) = read.corpus("gungraun", "v2.json")
    assert samples(oldest.profile) == {"": [1800]}  # of two processes


def test_catch2(read: Reader) -> None:
    found = read.corpus("catch2", "v2.xml")
    assert [one[2] for one in configurations(found)] == ["numbers/fib 12", "numbers/more/fib 14"]
    assert samples(found[0].profile)[""] == pytest.approx([1302.7e-9]) and found[0].means
    assert read("catch2", "<Catch2TestRun/>") == []
    for text in ('<!DOCTYPE a [<!ENTITY b "c">]><Catch2TestRun/>', "<Catch2TestRun>"):
        with pytest.raises(ProfileError, match="given"):
            read("catch2", text)


@pytest.mark.slow
def test_real_catch2(read: Reader, tmp_path: Path) -> None:
    compiler = needed("c++")
    if not Path("/usr/include/catch2/catch.hpp").exists():
        pytest.skip("catch2 2 is not installed")
    (tmp_path / "b.cc").write_text(
        "#define CATCH_CONFIG_MAIN\n#define CATCH_CONFIG_ENABLE_BENCHMARKING\n#include <catch2/catch.hpp>\n"
        'TEST_CASE("t") { int n = 0; BENCHMARK("b") { return n++; }; }\n'
    )
    run([compiler, "-O0", "b.cc", "-o", "b"], tmp_path)
    run(["./b", "--reporter", "xml", "--out", "out.xml", "--benchmark-samples", "5"], tmp_path)
    assert guessed(tmp_path / "out.xml") == ["catch2"]
    (found,) = read("catch2", tmp_path / "out.xml")
    told = re.search(r'<mean value="([^"]+)"', (tmp_path / "out.xml").read_text())
    assert told is not None and found.profile.configuration.args == "t/b"
    assert samples(found.profile)[""] == pytest.approx([float(told[1]) / 1e9])


def test_benchmarkdotnet(read: Reader) -> None:
    allocated, timed, brief = read.corpus("benchmarkdotnet", "full.json")
    assert configurations([timed])[0][2:] == ("Demo.Md5.Hash", "N=1000")
    assert samples(timed.profile)[""] == pytest.approx([1500.5e-9, 1510.25e-9, 1498e-9])
    assert samples(allocated.profile) == {"allocated": [80]}
    assert brief.means and samples(brief.profile)[""] == pytest.approx([2e-6])
    assert read.notes == ["Fails of full.json failed, and is left out"]


def test_csv(read: Reader) -> None:
    parse, fast = read.corpus("csv", "times.csv")
    assert [one[2] for one in configurations([parse, fast])] == ["parse", "print, fast"]
    assert samples(parse.profile) == {"value": [12.5, 12.75, 13]}
    (timed,) = read("csv", "a,5\na,6\n", unit="ms")
    assert samples(timed.profile) == {"": pytest.approx([0.005, 0.006])}
    for text in ("a,b\nc,d\n", "a,1,2\n", 'a,"1\n'):
        with pytest.raises(ProfileError, match="given"):
            read("csv", text)


def test_bencher(read: Reader) -> None:
    found = read.corpus("bmf", "result.json")
    assert all(one.means for one in found)
    (timed,) = of_time(found)
    assert samples(timed.profile)[""] == pytest.approx([3247.7288e-9])


def test_elasticsearch(read: Reader) -> None:
    (found,) = read.corpus("elk", "search.json")
    assert configurations([found])[0][2:] == ("boot", "host=a")
    assert samples(found.profile) == {"time.real": [1.5, 2.5, 3.5], "time.user": [1, 1, 1]}
    (lines,) = read.corpus("elk", "lines.json")
    assert samples(lines.profile) == {"value": [1, 2]}


def test_numbers_that_are_none_are_refused(read: Reader) -> None:
    for number in ("NaN", "1e400", "true", '"x"', "[]"):
        with pytest.raises(ProfileError, match="given"):
            read("bmf", f'{{"a": {{"latency": {{"value": {number}}}}}}}')
