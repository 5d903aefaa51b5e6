"""The harnesses of JavaScript, with real scripts and libraries."""

from __future__ import annotations

import os
import shutil
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

SUM = "const sum = n => { let s = 0; for (let i = 0; i < n; i++) s += i * i % 7; return s; };\n"
SCRIPTS = {
    "tinybench": "import { Bench } from 'tinybench';\n" + SUM + """
const bench = new Bench({ time: 50_000, iterations: 7 });
for (let i = 0; i < 8; i++) bench.add(`n${i}`, () => sum(2000));
bench.add('slow', () => sum(2600)).add('async', async () => sum(9));
bench.add('fails', () => { throw new Error('no good'); });
await bench.run();
console.table(bench.table());
const other = new Bench({ name: 'other' });
other.add('n', () => sum(10));
await other.run();
""",
    "mitata": "import { run, bench, group, do_not_optimize } from 'mitata';\n" + SUM + """
for (let i = 0; i < 7; i++) bench(`n${i}`, () => do_not_optimize(sum(2000)));
group('inner', () => {
  bench('sum $n', function* (state) {
    const n = state.get('n'); yield () => do_not_optimize(sum(n));
  }).args('n', [2000, 2600]);
});
bench('fails', () => { throw new Error('no good'); });
bench('manual', function* () {
  const manual = x => { const t = performance.now(); sum(x); return 1e6 * (performance.now() - t); };
  yield { manual(x) { return manual(x); }, 0() { return 9; } };
});
bench('loop', function* loop(state) { yield () => sum(9); });
bench('iterator', state => { for (const _ of state) sum(2000); });
await run();
""",
    "vitest": "import { bench, describe } from 'vitest';\n" + SUM + """
for (let i = 0; i < 8; i++) bench(`n${i}`, () => { sum(2000) }, { time: 50_000 });
describe('inner', () => {
  bench('slow', () => { sum(2600) });
  bench('async', async () => { sum(9) });
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


def measured(
    harness: NodeScripts | VitestHarness, folder: Path, context: Context
) -> dict[str, BenchmarkRound]:
    """All benchmarks of a project, in the best of rounds with the numbers that the first one has found."""
    (program,) = harness.build(folder, PARAMS, context())
    names = harness.list(program, PARAMS, context())
    first = harness.round(program, dict.fromkeys(names, 0), PARAMS, context(0.05))
    assert list(first) == names
    again = {one: found.iterations for one, found in first.items() if not found.failure}
    rounds = [harness.round(program, again, PARAMS, context(0.05)) for _ in range(3)]
    assert all({one: found.iterations for one, found in each.items()} == again for each in rounds)
    best = {
        one: min((each[one] for each in rounds), key=lambda found: min(seconds_of(found))) for one in again
    }
    gone = NamedBenchmark(f"{program.name}.gone")
    assert "is not there" in harness.round(program, {gone: 0}, PARAMS, context())[gone].failure
    return {str(one)[len(program.name) + 1 :]: best.get(one, found) for one, found in first.items()}


def slower(found: dict[str, BenchmarkRound], names: list[str], slow: str) -> float:
    best = {name: min(seconds_of(found[name])) for name in [*names, slow]}
    return best[slow] / min(best[name] for name in names)


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
    found = measured(TINYBENCH, libraries, context)
    last = "other/n" if version == "tinybench" else "n"
    assert list(found) == [*SAME, "slow", "async", "fails", last]
    assert found["fails"].failure == "no good"
    assert slower(found, SAME, "slow") == pytest.approx(1.3, abs=0.15)


@needs_npm
@pytest.mark.slow
def test_mitata(libraries: Path, context: Context) -> None:
    found = measured(MITATA, libraries, context)
    family = ["inner/sum $n n=2000", "inner/sum $n n=2600"]
    assert list(found) == [*SAME[:7], *family, "fails", "manual", "loop", "iterator"]
    assert found["fails"].failure == "no good"
    assert all(seconds_of(found[name]) for name in ("manual", "loop", "iterator"))
    assert slower(found, [*SAME[:7], family[0]], family[1]) == pytest.approx(1.3, abs=0.15)


@needs_npm
@pytest.mark.slow
def test_vitest(libraries: Path, context: Context) -> None:
    found = measured(VITEST, libraries, context)
    assert list(found) == [
        *SAME, "inner > slow", "inner > async", "inner > deep > skipped", "inner > deep > fails",
    ]  # fmt: skip
    assert found["inner > deep > skipped"].failure == "is skipped"
    assert found["inner > deep > fails"].failure == "no good"
    assert slower(found, SAME, "inner > slow") == pytest.approx(1.3, abs=0.15)
