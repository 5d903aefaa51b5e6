"""The harness of JMH, with a real project of Maven."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness.jmh import JmhHarness, JmhParams, kinds_of, names_of, parsed
from perun.plugin.suites import BenchmarkRound, HarnessContext, NamedBenchmark, SuiteProgram

Context = Callable[..., HarnessContext]
JMH = JmhHarness()
PARAMS = JmhParams()
PINNED = {"resources": "3.3.1", "compiler": "3.13.0", "surefire": "3.2.5", "jar": "3.4.1"}
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>thing</artifactId><version>1.0</version>
<properties>
  <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
  <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
</properties>
<dependencies>
  <dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-core</artifactId>
    <version>1.37</version></dependency>
  <dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-generator-annprocess</artifactId>
    <version>1.37</version><scope>provided</scope></dependency>
</dependencies>
<build><plugins>
{
    "".join(
        f"<plugin><artifactId>maven-{name}-plugin</artifactId><version>{version}</version></plugin>"
        for name, version in PINNED.items()
    )
}
<plugin><artifactId>maven-shade-plugin</artifactId><version>3.5.1</version>
  <executions><execution><phase>package</phase><goals><goal>shade</goal></goals><configuration>
    <finalName>benchmarks</finalName>
    <transformers><transformer
      implementation="org.apache.maven.plugins.shade.resource.ManifestResourceTransformer">
      <mainClass>org.openjdk.jmh.Main</mainClass></transformer></transformers>
  </configuration></execution></executions></plugin>
</plugins></build></project>
"""
SOURCE = """package org.example;
import java.util.*;
import org.openjdk.jmh.annotations.*;
import org.openjdk.jmh.infra.Blackhole;
@State(Scope.Thread)
public class First {
    int seed = 17;
    @State(Scope.Thread) @AuxCounters(AuxCounters.Type.EVENTS) public static class Count { public long work; }
    int work(int times, Count count) {
        for (int i = 0; i < times; i++) seed = seed * 31 + (seed >>> 7);
        count.work += times;
        return seed;
    }
    @Benchmark public int one(Count c, Blackhole hole) {
        for (int i = 0; i < TIMES; i++) hole.consume(new byte[100]);
        return work(TIMES, c);
    }
    @Benchmark @BenchmarkMode(Mode.AverageTime) public int two(Count c) { return work(100, c); }
    @Benchmark @BenchmarkMode({Mode.SampleTime, Mode.Throughput})
    public int three(Count c) { return work(100, c); }
    @Benchmark @OperationsPerInvocation(10) public int four(Count c) { return work(100, c); }
    @Benchmark @BenchmarkMode(Mode.SingleShotTime) @Measurement(batchSize = 7) @Fork(3)
    public int five(Count c) { return work(100, c); }
    @Benchmark @Threads(2) public int six(Count c) { return work(100, c); }
    @Benchmark public void seven(Blackhole hole) {
        for (int i = 0; i < 100; i++) hole.consume(new byte[100]);
    }
    @Benchmark public int fails() { throw new IllegalStateException("no such thing"); }
    @Benchmark public int crashes() { Runtime.getRuntime().halt(3); return 0; }
    @State(Scope.Benchmark) public static class Sized {
        @Param({"10", "20"}) int size;
        @Param({"a", "b c", "d=e f=g", ""}) String kind;
    }
    @Benchmark public int sized(Sized s, Count c) { return work(s.size + s.kind.length(), c); }
    @State(Scope.Group) public static class Shared { volatile int x; }
    @Benchmark @Group("pair") public int reader(Shared s) { return s.x; }
    @Benchmark @Group("pair") public void writer(Shared s) { s.x++; }
}
"""
LISTED = """Benchmarks: 
org.example.First.both
org.example.First.sized
  param "flag" = {false}
  param "size" = {10, 1000}
  param "kind" = {a, b c, d=e f=g, , x.*|y}
org.example.First.both
"""
ENTRIES = """\
JMH S 17 org.example.First S 44 org.example.First_both_jmhTest S 4 both S 10 Throughput E A 1 1 1 E
JMH S 17 org.example.First S 44 org.example.First_pair_jmhTest S 4 pair S 10 Throughput E A 2 1 1 1 1 L 2 6 reader 6 writer E
JMH S 17 org.example.First S 47 org.example.First_threads_jmhTest S 7 threads S 10 Throughput I 1 2 A 1 1 1 E
JMH S 17 org.example.First S 46 org.example.First_single_jmhTest S 6 single S 14 SingleShotTime E A 1 1 1 E E E E I 1 3 E I 1 7 E
JMH S 17 org.example.First S 44 org.example.First_both_jmhTest S 4 both S 14 SingleShotTime E A 1 1 1 E
"""  # noqa: E501
RECORDED: dict[str, Any] = {
    "jmhVersion": "1.37", "benchmark": "org.example.First.counting", "mode": "ss", "threads": 1, "forks": 1,
    "measurementIterations": 5, "measurementTime": "single-shot", "measurementBatchSize": 5000,
    "primaryMetric": {
        "score": 683790.6, "scoreError": 353107.3876641321, "scoreUnit": "ns/op",
        "rawData": [[729072.0, 719782.0, 724161.0, 726076.0, 519862.0]],
    },
    "secondaryMetrics": {
        "gc.alloc.rate": {"score": 2.012, "scoreUnit": "MB/sec", "rawData": [[2.9, 5.4, 0.8, 0.67, 0.2]]},
        "gc.alloc.rate.norm": {
            "score": 5889.6, "scoreUnit": "B/op", "rawData": [[5864.0, 5896.0, 5960.0, 5864.0, 5864.0]],
        },
        "gc.count": {"score": 0.0, "scoreError": "NaN", "scoreUnit": "counts", "rawData": [[0.0] * 5]},
        "hits": {"score": 75000.0, "scoreError": "NaN", "scoreUnit": "#", "rawData": [[15000.0] * 5]},
    },
}  # fmt: skip
NAME = RECORDED["benchmark"]
COUNTED = ("one", "two", "three", "four", "five", "sized")


def built(folder: Path, times: int) -> Path:
    """A project whose jar Maven has made."""
    if not shutil.which("mvn") or not shutil.which("java"):
        pytest.skip("there is no mvn, or no java")
    source = folder / "src/main/java/org/example/First.java"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE.replace("TIMES", str(times)))
    (folder / "pom.xml").write_text(POM)
    for words in (("-o",), ()):  # what is there already, or else what can be had
        done = subprocess.run(("mvn", "-q", "-B", *words, "package"), cwd=folder, capture_output=True,
                              text=True, timeout=400, check=False)  # fmt: skip
        if done.returncode == 0:
            return folder
    if re.search(r"[Cc]ould not (?:be resolved|resolve|transfer|find artifact)", done.stdout):
        pytest.skip("Maven has no JMH here, and reaches no repository that has")
    raise AssertionError(done.stdout + done.stderr)


def jar(path: Path, entries: str = ENTRIES, manifest: str = "Main-Class: org.openjdk.jmh.Main\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("META-INF/MANIFEST.MF", manifest)
        made.writestr("META-INF/BenchmarkList", entries)
    return path


def sample(one: BenchmarkRound, subtype: str) -> float:
    (value,) = (value for value in one.values if value.subtype == subtype)
    return sorted(value.samples)[len(value.samples) // 2]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with ten benchmarks, of which one does its work a hundred times."""
    return built(tmp_path_factory.mktemp("jmh") / "before", 100)


@pytest.mark.slow
def test_each_benchmark_is_measured(before: Path, context: Context) -> None:
    (program,) = JMH.build(before, PARAMS, context())
    assert JMH.detect(before) == ["src/main/java/org/example/First.java"]
    names = JMH.list(program, PARAMS, context())
    assert [str(one).removeprefix("org.example.First.") for one in sorted(names)] == sorted([
        "one", "two", "three", "four", "five", "six", "seven", "fails", "crashes", "pair",
        *(f"sized kind={kind} size={size}" for kind in ("a", "b c", "d=e f=g", "") for size in (10, 20)),
    ])  # fmt: skip
    chosen = {one.name.split(".")[-1]: one for one in names if one.parameters in ("", "kind=d=e f=g size=20")}
    assert len(chosen) == 11
    rounds = JMH.round(program, dict.fromkeys(chosen.values(), 3000), PARAMS, context())
    assert list(rounds) == list(chosen.values())
    found = {short: rounds[one] for short, one in chosen.items()}
    assert (found.pop("fails").failure, found.pop("crashes").failure) == (
        "java.lang.IllegalStateException: no such thing", "forked VM failed with exit code 3"
    )  # fmt: skip
    assert not [one.failure for one in found.values() if one.failure]
    assert {short: len(one.values[0].samples) for short, one in found.items()} == {
        **dict.fromkeys(found, 5), "five": 1
    }  # fmt: skip
    timed = {"six", "pair"}
    assert {one.iterations for short, one in found.items() if short not in timed} == {3000}
    assert all(one.iterations > 0 for one in found.values())
    counted = {short: sample(found[short], "work") for short in COUNTED}
    assert counted == {**dict.fromkeys(COUNTED, 100), "five": 700, "sized": 27}
    assert {value.subtype for value in found["pair"].values} == {"", "allocated", "reader", "writer"}
    assert all(0 < sample(one, "") < 0.01 for one in found.values())
    gone = NamedBenchmark("org.example.First.none")
    assert JMH.round(program, {gone: 1}, PARAMS, context())[gone].failure == "it is not there"


@pytest.mark.slow
def test_more_work_is_counted(before: Path, tmp_path: Path, context: Context) -> None:
    names = [NamedBenchmark(f"org.example.First.{short}") for short in (*COUNTED[:5], "seven")]
    names.append(NamedBenchmark("org.example.First.sized", "kind=a size=10"))
    rounds = []
    for folder in (before, built(tmp_path / "after", 130)):
        (program,) = JMH.build(folder, PARAMS, context())
        rounds.append(JMH.round(program, dict.fromkeys(names, 1000), PARAMS, context()))
    for metric, steady in (("work", names[1:5] + names[6:]), ("allocated", names[5:6])):
        ratios = [
            sample(rounds[1][one], metric) / sample(rounds[0][one], metric) for one in names[:1] + steady
        ]
        assert ratios == [pytest.approx(1.3, rel=0.01), *[pytest.approx(1, rel=0.001)] * len(steady)]


@pytest.mark.slow
def test_without_a_number_it_finds_one(before: Path, context: Context) -> None:
    (program,) = JMH.build(before, PARAMS, context())
    for short, work in (("two", 100), ("five", 700)):
        name = NamedBenchmark(f"org.example.First.{short}")
        one = JMH.round(program, {name: 0}, PARAMS, context(0.05))[name]
        assert one.iterations > 1
        assert sample(one, "work") == work


def test_it_finds_the_files_with_benchmarks(tmp_path: Path) -> None:
    for name, text in {
        "a/First.java": SOURCE, "Other.java": "import org.openjdk.jmh.annotations.State;\n@BenchmarkMode(x)",
        "Own.java": "@Benchmark void x() {}",
        "K.kt": "import org.openjdk.jmh.annotations.*\n@Benchmark\nfun x() {}",
        "target/First.java": SOURCE,
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert JMH.detect(tmp_path) == ["K.kt", "a/First.java"]


def test_jars_say_how_their_benchmarks_are_measured(tmp_path: Path) -> None:
    assert kinds_of(jar(tmp_path / "x.jar")) == {
        "org.example.First.both": "fixed", "org.example.First.pair": "timed",
        "org.example.First.threads": "timed", "org.example.First.single": "shots",
    }  # fmt: skip
    assert kinds_of(jar(tmp_path / "thin.jar", manifest="Created-By: x\n")) == {}
    assert kinds_of(jar(tmp_path / "empty.jar", entries="")) == {}
    (tmp_path / "broken.jar").write_bytes((tmp_path / "x.jar").read_bytes()[:-9])
    assert kinds_of(tmp_path / "broken.jar") == kinds_of(tmp_path / "none.jar") == {}


def test_what_is_missing_is_said(tmp_path: Path, context: Context) -> None:
    with pytest.raises(CollectorUnavailable, match="no-such-java"):
        JMH.build(tmp_path, JmhParams(java="no-such-java"), context())
    with pytest.raises(JobFailed, match="no runnable jar") as raised:
        JMH.build(tmp_path, JmhParams(java="true"), context())
    assert "mvn package" in str(raised.value.hint)
    jar(tmp_path / "target" / "thin.jar", manifest="")
    with pytest.raises(JobFailed, match=r"thin\.jar is no runnable jar"):
        JMH.build(tmp_path, JmhParams(java="true", jars=("target/thin.jar",)), context())


def test_programs_have_the_names_of_their_modules(tmp_path: Path, context: Context) -> None:
    for name in ("target/a.jar", "core/target/b.jar", "tool/build/libs/c.jar", "tool/build/libs/d.jar"):
        jar(tmp_path / name)
    programs = JMH.build(tmp_path, JmhParams(java="echo"), context())
    assert [one.name for one in programs] == ["core", "", "tool/build/libs/c.jar", "tool/build/libs/d.jar"]


def test_a_program_that_writes_nothing_fails_its_benchmarks(tmp_path: Path, context: Context) -> None:
    name = NamedBenchmark("a.B.c")
    for tool, why in (("true", "it is not there"), ("false", "it ended with status 1")):
        program = SuiteProgram((tool,), tmp_path, "", {"names": {name: ()}, "kinds": {"a.B.c": "fixed"}})
        for wanted in (0, 7):
            assert JMH.round(program, {name: wanted}, PARAMS, context())[name].failure == why


def test_names_and_their_parameters() -> None:
    names = names_of(LISTED)
    assert len(names) == 11
    assert names[NamedBenchmark("org.example.First.both")] == ()
    odd = NamedBenchmark("org.example.First.sized", "flag=false kind=d=e f=g size=10")
    assert names[odd] == ("-p", "flag=false", "-p", "kind=d=e f=g", "-p", "size=10")
    assert NamedBenchmark("org.example.First.sized", "flag=false kind= size=10") in names


def test_what_it_has_measured_is_of_one_operation() -> None:
    text = json.dumps([{**RECORDED, "benchmark": "a.B.c"}, RECORDED])
    one = parsed(text, NAME, 5000, False)
    assert one.iterations == 5000
    assert [(value.type, value.subtype, value.unit, value.samples) for value in one.values] == [
        ("time", "", "s", pytest.approx((1.458144e-7, 1.439564e-7, 1.448322e-7, 1.452152e-7, 1.039724e-7))),
        ("memory", "allocated", "B", (1,) * 5), ("printed", "hits", "", (3,) * 5),
    ]  # fmt: skip
    shots = parsed(text, NAME, 5, True)
    assert [value.samples for value in shots.values] == [(pytest.approx(6.837906e-4),), (5890,), (15000,)]
    old = {**RECORDED, "secondaryMetrics": {
        "\u00b7" + name: metric for name, metric in RECORDED["secondaryMetrics"].items()}}  # fmt: skip
    assert parsed(json.dumps([old]), NAME, 5000, False) == one
    assert parsed(text, "a.B", 1, False).failure == "it is not there"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["NaN", "ns/op", "B/op", "#"]),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=4,
)
METRIC = ODD | st.fixed_dictionaries({
    "scoreUnit": ODD | st.sampled_from(["ns/op", "B/op", "#"]),
    "rawData": ODD | st.lists(st.lists(st.floats() | ODD, max_size=2), max_size=2),
})  # fmt: skip
ROW = ODD | st.fixed_dictionaries({
    "benchmark": st.just(NAME) | ODD, "primaryMetric": METRIC,
    "secondaryMetrics": ODD | st.dictionaries(st.sampled_from(["hits", "gc.alloc.rate.norm"]), METRIC),
})  # fmt: skip


@given(st.lists(ROW, max_size=2) | ODD, st.integers(1, 10**9), st.booleans())
def test_whatever_is_written_is_a_result_or_a_named_error(rows: Any, operations: int, shots: bool) -> None:
    try:
        one = parsed(json.dumps(rows), NAME, operations, shots)
    except JobFailed:
        return
    assert bool(one.values) != bool(one.failure)
    assert bool(one.values) == (one.iterations > 0)


@given(st.text(alphabet='ab. \n{},="', max_size=60), st.booleans())
def test_whatever_is_listed_is_names(text: str, one: bool) -> None:
    for name, words in names_of(f'a.B\n  param "x" = {{{text}}}' if one else text).items():
        assert " ".join(words[1::2]) == name.parameters


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", '{"a": 1}'])
def test_no_answer_fails_by_name(text: str) -> None:
    with pytest.raises(JobFailed, match="JMH wrote"):
        parsed(text, NAME, 1, False)
