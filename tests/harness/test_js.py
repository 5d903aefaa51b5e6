"""The harnesses of JavaScript, with real scripts and libraries."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness._js import NodeScripts, round_of
from perun.harness.mitata import MitataHarness
from perun.harness.tinybench import TinybenchHarness
from perun.harness.vitest import VitestHarness
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkRound, HarnessContext, NamedBenchmark, SuiteProgram
from shared import folder_of_run, made_once

Context = Callable[..., HarnessContext]
TINYBENCH, MITATA, VITEST = TinybenchHarness(), MitataHarness(), VitestHarness()
PARAMS = NoParams()
HOME = str(Path.home())
"""Of the user, whose cache of packages the tests do not see."""
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
needs_npm = pytest.mark.skipif(not shutil.which("npm"), reason="there is no npm")
LIBRARIES = ["tinybench@6", "tinybench2@npm:tinybench@2", "mitata@1", "vitest@3"]

SUM = """
import { createHash } from 'node:crypto'; // native: V8 compiles the same loop in more than one way
const bytes = [30_000, 39_000, 9].map(size => Buffer.alloc(size));
const sum = which => createHash('sha256').update(bytes[which]).digest();
"""
SCRIPTS = {
    "tinybench": "import { Bench } from 'tinybench';\n" + SUM + """
const bench = new Bench({ time: 50_000, iterations: 7 });
for (let i = 0; i < 8; i++) bench.add(`n${i}`, () => sum(0));
bench.add('slow', () => sum(1)).add('async', async () => sum(2));
bench.add('fails', () => { throw new Error('no good'); });
await bench.run();
console.table(bench.table());
const other = new Bench({ name: 'other' });
other.add('x', () => sum(2));
await other.run();
""",
    "mitata": "import { run, bench, group, do_not_optimize } from 'mitata';\n" + SUM + """
for (let i = 0; i < 7; i++) bench(`n${i}`, () => do_not_optimize(sum(0)));
group('inner', () => {
  bench('sum $n', function* (state) {
    const n = state.get('n'); yield () => do_not_optimize(sum(n));
  }).args('n', [0, 1]);
});
bench('fails', () => { throw new Error('no good'); });
bench('manual', function* () {
  const manual = x => { const t = performance.now(); sum(x); return 1e6 * (performance.now() - t); };
  yield { manual(x) { return manual(x); }, 0() { return 2; } };
});
bench('loop', function* loop(state) { yield () => sum(2); });
bench('iterator', state => { for (const _ of state) sum(0); });
await run();
""",
    "vitest": "import { bench, describe } from 'vitest';\n" + SUM + """
for (let i = 0; i < 8; i++) bench(`n${i}`, () => { sum(0) }, { time: 50_000 });
describe('inner', () => {
  bench('slow', () => { sum(1) });
  bench('async', async () => { sum(2) });
  describe('deep', () => {
    bench.skip('skipped', () => {});
    bench('fails', () => { throw new Error('no good') });
  });
});
""",
}  # fmt: skip


def seconds_of(measured: BenchmarkRound) -> tuple[float, ...]:
    assert not measured.failure, measured.failure
    (time,) = measured.values
    assert (time.type, time.subtype, time.unit) == ("time", "", "s")
    return time.samples


def test_what_is_found(tmp_path: Path) -> None:
    for name, text in {
        "t.mjs": 'import { Bench } from "tinybench"', "m.ts": "import {\n run\n} from 'mitata';",
        "a.bench.ts": "import { bench } from 'vitest'", "globals.bench.js": "bench('a', () => {})",
        "a.bench.txt": "bench('a')", "a.test.ts": "import { test } from 'vitest'", "b.bench.js": "other",
        "node_modules/x/t.mjs": "import { Bench } from 'tinybench'", "c.js": "from 'tinybench-other'",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert TINYBENCH.detect(tmp_path) == ["t.mjs"]
    assert MITATA.detect(tmp_path) == ["m.ts"]
    assert VITEST.detect(tmp_path) == ["a.bench.ts", "globals.bench.js"]


def test_without_node(tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "t.mjs").write_text(SCRIPTS["tinybench"])
    with pytest.raises(CollectorUnavailable, match="node is not installed"):
        TINYBENCH.build(tmp_path, PARAMS, context())


@needs_node
@pytest.mark.parametrize("harness", [TINYBENCH, MITATA])
def test_packages_that_are_not_installed(tmp_path: Path, context: Context, harness: NodeScripts) -> None:
    (tmp_path / "t.mjs").write_text(SCRIPTS[harness.library])
    (program,) = harness.build(tmp_path, PARAMS, context())
    with pytest.raises(JobFailed, match=f"Cannot find package '{harness.library}'"):
        harness.list(program, PARAMS, context())


@needs_node
def test_versions_of_vitest(tmp_path: Path, context: Context) -> None:
    (tmp_path / "a.bench.js").write_text(SCRIPTS["vitest"])
    with pytest.raises(CollectorUnavailable, match="vitest is not installed"):
        VITEST.build(tmp_path, PARAMS, context())
    installed = tmp_path / "node_modules" / "vitest" / "package.json"
    installed.parent.mkdir(parents=True)
    installed.write_text('{"version": "5.1.2"}')
    with pytest.raises(CollectorUnavailable, match=r"5\.1\.2 is installed"):
        VITEST.build(tmp_path, PARAMS, context())


ODD = ["[]", "null", "1", "{", '{"listed": 3}', '{"listed": [3]}', '{"measured": []}',
       '{"listed": [], "measured": {"a": 3}}',
       '{"listed": [{"name": 3}], "measured": {"a": {"samples": 3}}}',
       '{"measured": {"a": {"samples": [null, 1e999], "iterations": "x"}}}']  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_an_odd_answer_is_a_failed_job(tmp_path: Path, context: Context, text: str) -> None:
    script = tmp_path / "odd"
    script.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        f"open(json.loads(os.environ['PERUN_HARNESS_ASKED'])['answer'], 'w').write({text!r})\n"
    )
    script.chmod(0o755)
    program = SuiteProgram((str(script),), tmp_path, "odd")
    one = NamedBenchmark("odd.a")
    try:
        assert VITEST.list(program, PARAMS, context()) == []
        assert VITEST.round(program, {one: 0}, PARAMS, context())[one].failure
    except JobFailed as problem:
        assert "wrote no answer" in problem.message or "wrote no JSON" in problem.message


json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["samples", "iterations", "failure"]), inner)
    ),
)


@given(json)
def test_odd_rounds(found: object) -> None:
    try:
        measured = round_of(found)
    except (LookupError, TypeError, ValueError, OverflowError):
        return  # the program is said to have answered nothing
    assert bool(measured.failure) != bool(measured.values)


@pytest.fixture
def libraries(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with these libraries, installed once a run, and the scripts."""

    def install(folder: Path) -> None:
        (folder / "package.json").write_text('{"type": "module"}')
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", *LIBRARIES]
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, "HOME": HOME}, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {', '.join(LIBRARIES)}: {done.stderr[-200:]}")

    folder = tmp_path / "project"
    shutil.copytree(
        made_once(folder_of_run(tmp_path_factory) / "node_libraries", install), folder, symlinks=True
    )
    (folder / "bench").mkdir()
    for name in ("tinybench", "mitata"):
        (folder / "bench" / f"{name}.mjs").write_text(SCRIPTS[name])
    (folder / "bench" / "sums.bench.ts").write_text(SCRIPTS["vitest"])
    return folder


def measured(harness: NodeScripts | VitestHarness, folder: Path, context: Context, slow: str) -> list[str]:
    """The benchmarks of a project, after what is true of all of them: `slow` takes 1.3 times as long as those
    that begin with n, in the best of so many rounds as the load of the machine makes necessary."""
    (program,) = harness.build(folder, PARAMS, context())
    names = harness.list(program, PARAMS, context())
    first = harness.round(program, dict.fromkeys(names, 0), PARAMS, context())
    assert list(first) == names
    assert {found.failure for found in first.values()} <= {"", "no good", "is skipped"}
    again = {one: found.iterations for one, found in first.items() if not found.failure}
    gone = NamedBenchmark(f"{program.name}.gone")
    assert "is not there" in harness.round(program, {gone: 0}, PARAMS, context())[gone].failure
    best: dict[str, float] = {}
    for _ in range(MOST_ROUNDS):
        found = harness.round(program, again, PARAMS, context())
        assert {one: each.iterations for one, each in found.items()} == again
        for one, each in found.items():
            best[str(one)] = min(*seconds_of(each), 1.0, best.get(str(one), 1.0))
            assert len(set(each.values[0].samples)) == len(each.values[0].samples)
        same = [time for name, time in best.items() if name.startswith(f"{program.name}.n")]
        ratio = best[f"{program.name}.{slow}"] / statistics.median(same)
        if ratio == pytest.approx(1.3, abs=0.15):
            break
    assert len(same) >= 7
    assert ratio == pytest.approx(1.3, abs=0.15)
    return [
        ": ".join(filter(None, (str(one).removeprefix(f"{program.name}."), found.failure)))
        for one, found in first.items()
    ]


MOST_ROUNDS = 12
SAME = [f"n{number}" for number in range(8)]


@needs_npm
@pytest.mark.slow
@pytest.mark.parametrize("version", ["tinybench", "tinybench2"])
def test_tinybench(libraries: Path, context: Context, version: str) -> None:
    if version != "tinybench":
        script = libraries / "bench" / "tinybench.mjs"
        script.write_text(script.read_text().replace("await", "await bench.warmup();\nawait", 1))
        shutil.rmtree(libraries / "node_modules" / "tinybench")
        (libraries / "node_modules" / version).rename(libraries / "node_modules" / "tinybench")
    last = "other/x" if version == "tinybench" else "x"
    assert measured(TINYBENCH, libraries, context, "slow") == [*SAME, "slow", "async", "fails: no good", last]


@needs_npm
@pytest.mark.slow
def test_mitata(libraries: Path, context: Context) -> None:
    names = ["inner/sum $n n=0", "inner/sum $n n=1", "fails: no good", "manual", "loop", "iterator"]
    assert measured(MITATA, libraries, context, names[1]) == [*SAME[:7], *names]


@needs_npm
@pytest.mark.slow
def test_vitest(libraries: Path, context: Context) -> None:
    names = ["slow", "async", "deep > skipped: is skipped", "deep > fails: no good"]
    found = measured(VITEST, libraries, context, "inner > slow")
    assert found == [*SAME, *(f"inner > {name}" for name in names)]
