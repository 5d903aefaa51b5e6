"""The optimisations with real programs: what diff-tracing sees of changes, and probes switched off."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from changing_program import HISTORY, MODES
from compiling import CompilerCache
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.trace.collector import TraceCollector, make_engine
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.params import ENGINES, TraceParams
from perun.core.errors import UsageError
from perun.native.callgraph.difference import difference
from perun.native.callgraph.graph import CallGraph
from perun.native.image import static_graph
from perun.plugin.api import Answer, CollectContext, NoProfile, Run
from perun.profile.factory import Profile
from perun.profile.untraced import untraced_note


@pytest.fixture(scope="module")
def programs(compiled_once: CompilerCache, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The program of each version."""
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc")
    folder = tmp_path_factory.mktemp("history")
    found = []
    for number, (_, text, _) in enumerate(HISTORY):
        file = folder / f"version{number}.c"
        file.write_text(text)
        found.append(Path(compiled_once("gcc", "-O1", "-Wl,--build-id", file)))
    return found


@pytest.fixture(scope="module")
def graphs(programs: list[Path]) -> list[CallGraph]:
    """The call graph of each version."""
    return [static_graph(program) for program in programs]


@pytest.mark.parametrize("mode", MODES)
def test_exactly_the_changed_functions_of_each_commit_are_found(graphs: list[CallGraph], mode: str) -> None:
    for (subject, _, expected), old, new in zip(HISTORY[1:], graphs, graphs[1:], strict=False):
        found = difference(new, old, mode)
        assert set(found.changed) == expected.get(mode, set()), subject
        assert found.renamed == ({"renamed": "f5"} if "otherwise" in subject else {}), subject


def test_what_an_earlier_graph_knows_changes_no_graph(graphs: list[CallGraph], programs: list[Path]) -> None:
    for old, new, program in zip(graphs, graphs[1:], programs[1:], strict=False):
        assert static_graph(program, old) == new
    # It is what is used: a wrong digest of the earlier one is found again.
    first = graphs[0]
    wrong = {
        name: one._replace(fingerprints=one.fingerprints._replace(color="wrong"))
        for name, one in first.functions.items()
    }
    again = static_graph(programs[0], replace(first, functions=wrong))
    assert {one.fingerprints.color for one in again.functions.values()} == {"wrong"}


CALLS = """
volatile int sink;
__attribute__((noinline)) int leaf(int x) { sink++; return x + 1; }
__attribute__((noinline)) int deep(int n) { sink++; return n ? deep(n - 1) + 1 : 0; }
__attribute__((noinline)) int middle(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
int main(void) {
    int s = 0;
    for (int i = 0; i < 40; i++) { s += middle(100); s += deep(80); }
    return s == 0;
}
"""


CALLS_OF_AGAIN = 1_000_000
AGAIN = f"""
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) int leaf(int x) {{ sink++; return x + 1; }}
int main(void) {{
    int s = 0;
    for (int pause = 0; pause < 10; pause++) {{
        for (int i = 0; i < {CALLS_OF_AGAIN // 10}; i++) s += leaf(i);
        usleep(150000);
    }}
    return s == 1;
}}
"""


@pytest.fixture
def calls_program(compiled_once: CompilerCache, tmp_path: Path) -> Path:
    """A program of few functions with many calls, in the folder of the test."""
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc")
    file = tmp_path / "calls.c"
    file.write_text(CALLS)
    made = compiled_once("gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id", file)
    return Path(shutil.copy(made, tmp_path / "calls"))


class Kept:
    """Statistics of a version and its ancestors, in memory."""

    def __init__(self) -> None:
        self.own: dict[str, dict[str, Any]] = {}
        self.older: dict[str, dict[str, Any]] = {}

    def load(self, name: str) -> dict[str, Any] | None:
        return self.own.get(name)

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        self.own[name] = dict(values)

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        return ("1" * 40, self.older[name]) if name in self.older else None

    def remove(self, name: str) -> None:
        self.own.pop(name, None)
        self.older.pop(name, None)

    def profile(self, collector: str, cmd: str | None) -> Profile | None:
        return None


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def answers() -> list[Answer]:
    return []


@pytest.fixture
def traced(tmp_path: Path, kept: Kept, answers: list[Answer], cache: Path) -> Callable[..., Profile]:
    """Trace a program: `traced("./calls", optimization_pipeline="basic")`."""

    def trace(command: str, **params: Any) -> Profile:
        run = Run(command, "", cwd=tmp_path, environ=dict(os.environ))
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        context = CollectContext(scratch, statistics=kept, answer=answers.append, cache=cache)
        given = {"engine": "ebpf", "output_handling": "suppress", "timeout": 60.0, **params}
        return TraceCollector().collect(run, TraceParams(**given), context)

    return trace


@pytest.fixture
def ebpf() -> None:
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")


@pytest.fixture(params=["ebpf", *(pytest.param(one, marks=pytest.mark.slow) for one in ENGINES[1:])])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that can run here."""
    if why := ": ".join(filter(None, make_engine(request.param, os.environ).unavailable())):
        pytest.skip(f"{request.param}: {why}")
    return str(request.param)


METHODS = ("session", "multi", "perf_event")


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each method of attaching probes that the kernel has."""
    monkeypatch.setattr(EbpfEngine, "forced_method", request.param)
    if why := EbpfEngine(os.environ).unavailable()[0]:
        pytest.skip(f"{request.param}: {why}")


def counts(profile: Profile) -> Counter[str]:
    return Counter(one["uid"] for _, one in profile.all_resources())


@pytest.mark.usefixtures("method")
def test_a_function_is_detached_after_exactly_so_many_calls(calls_program: Path, traced) -> None:
    profile = traced(
        "./calls",
        optimization_on=("dynamic-probing",),
        optimization_args=(("probing-threshold", "1000"),),
    )
    # Also where calls are nested more deeply than the kernel catches returns.
    assert counts(profile) == {"main": 1, "middle": 40, "leaf": 1000, "deep": 1000}
    assert profile["trace"]["optimization"]["switched-off"] == ["deep", "leaf"]
    assert (profile["trace"]["missed-exits"], profile["trace"]["lost"]) == (0, 0)
    assert "of 2 functions calls were not recorded all the time" in untraced_note(profile)


@pytest.mark.usefixtures("ebpf")
def test_a_function_is_attached_again_later(tmp_path: Path, traced, compiled_once: CompilerCache) -> None:
    """The program goes on until it is told to stop, so that there is time enough on any machine."""
    file = tmp_path / "again.c"
    file.write_text(AGAIN)
    made = compiled_once("gcc", "-O1", "-g", "-Wl,--build-id", file)
    shutil.copy(made, tmp_path / "again")
    given = (("probing-threshold", "100"), ("probing-reattach", "1"))
    profile = traced("./again", optimization_on=("dynamic-probing",), optimization_args=given)
    found = counts(profile)
    # More than the limit, so it was attached again; but not all the time.
    assert 100 < found["leaf"] < CALLS_OF_AGAIN
    assert profile["trace"]["optimization"]["switched-off"] == ["leaf"]
    assert (profile["trace"]["missed-exits"], profile["trace"]["lost"]) == (0, 0)


@pytest.mark.usefixtures("method")
@pytest.mark.parametrize(
    "method", ["session", *(pytest.param(one, marks=pytest.mark.slow) for one in METHODS[1:])], indirect=True
)
def test_the_timer_switches_all_but_the_entry_off(calls_program: Path, traced) -> None:
    profile = traced(
        "./calls", optimization_on=("timed-sampling",), optimization_args=(("timed-sample-freq", "0.001"),)
    )
    found = counts(profile)
    assert found["main"] == 1 and set(found) <= {"main", "middle", "leaf", "deep"} and found["leaf"] <= 4000
    # What was recorded is complete: exits are recorded after the timer has switched entries off.
    assert (profile["trace"]["missed-exits"], profile["trace"]["lost"]) == (0, 0)
    assert "main" not in profile["trace"]["optimization"]["switched-off"]


WHOLE = {"main": 1, "middle": 40, "leaf": 4000, "deep": 3240}


def test_each_engine_records_so_many_calls_as_the_methods_say(calls_program, traced, engine: str) -> None:
    shaped = {
        "optimization_on": ("cg-shaping",),
        "optimization_args": (("cg-proj-levels", "2"), ("cg-proj-keep-leaf", "0")),
    }
    assert counts(traced("./calls", engine=engine, **shaped)) == {"main": 1, "middle": 40, "deep": 3240}
    # What was recorded then tells how often to sample; of leaf, not seen yet, one call in 2^2.
    sampled = {"optimization_on": ("dynamic-sampling",), "engine": engine}
    profile = traced("./calls", **sampled)
    assert profile["trace"]["optimization"]["sampling"] == {"leaf": 4, "deep": 3}
    assert counts(profile) == {"main": 1, "middle": 40, "leaf": 1000, "deep": 1080}
    assert counts(traced("./calls", **sampled)) == counts(profile)


def test_an_engine_that_cannot_switch_probes_records_everything_and_says_so(
    calls_program: Path, traced: Callable[..., Profile], engine: str
) -> None:
    if "dynamic-probing" not in make_engine(engine, os.environ).switches:
        pytest.skip(f"{engine} switches probes while the program runs")
    probing = {"optimization_on": ("dynamic-probing",), "optimization_args": (("probing-threshold", "1000"),)}
    profile = traced("./calls", engine=engine, **probing)
    assert counts(profile) == WHOLE
    assert profile["trace"]["optimization"]["switched-off"] == []
    assert any(note.startswith("dynamic-probing has no effect: ") for note in profile["trace"]["notes"])


def test_what_was_recorded_decides_on_the_next_run(calls_program, traced, kept, answers, engine: str) -> None:
    # Only leaf is called more often than this, so that the times of the others do not matter.
    often = (("dyn-base-soft-threshold", "3500"),)
    basic = {"optimization_pipeline": "basic", "optimization_args": often, "engine": engine}
    first = traced("./calls", **basic)
    assert counts(first)["leaf"] == 4000
    second = traced("./calls", **basic, explain=True)
    assert counts(second) == {"main": 1, "middle": 40, "deep": 3240}
    region = second["trace"]["optimization"]
    assert region["dropped"] == {"baseline-dynamic": 1}
    assert region["not-traced"]["leaf"][0] == "baseline-dynamic"
    assert second["header"]["optimization"] == {
        "pipeline": "basic", "methods": ["cg-shaping", "baseline-dynamic"], "functions": 4, "traced": 3
    }  # fmt: skip
    assert "dropped  leaf    baseline-dynamic: it was called 4,000 times, more than 3,500" in answers[0].text
    # What was not traced keeps what was recorded of it before, so that it stays dropped.
    assert counts(traced("./calls", **basic)) == counts(second)
    # Without what is kept everything is traced.
    assert counts(traced("./calls", **basic, optimization_reset_cache=True))["leaf"] == 4000
    assert sorted(name[:4] for name in kept.own) == ["cg--", "ds--"]


@pytest.mark.usefixtures("ebpf")
def test_a_changed_function_stays_whatever_is_known_of_it(
    calls_program: Path, traced: Callable[..., Profile], kept: Kept, tmp_path: Path,
    compiled_once: CompilerCache
) -> None:  # fmt: skip
    traced("./calls", optimization_pipeline="basic")
    kept.older = {name: values for name, values in kept.own.items()}
    kept.own = {}
    file = tmp_path / "changed.c"
    file.write_text(CALLS.replace("return x + 1;", "sink++; return x + 2;"))
    flags = ("-O1", "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id")
    shutil.copy(compiled_once("gcc", *flags, file), tmp_path / "calls")
    profile = traced("./calls", optimization_pipeline="basic", optimization_on=("diff-tracing",))
    assert counts(profile)["leaf"] == 4000
    region = profile["trace"]["optimization"]
    assert region["changed"] == {"leaf": "its control flow changed (color)"}
    assert region["previous"] == "1" * 40


def test_a_dry_run_runs_nothing_and_answers_in_json(calls_program, traced, answers, tmp_path: Path) -> None:
    with pytest.raises(NoProfile):
        traced(
            "./calls", optimization_on=("cg-shaping",),
            optimization_args=(("cg-proj-levels", "1"), ("cg-proj-keep-leaf", "0")), dry_run=True, json=True,
            callgraph=str(tmp_path / "graph.dot")
        )  # fmt: skip
    rows = {row["uid"]: row for row in answers[0].data["functions"]}
    assert {uid for uid, row in rows.items() if row["traced"]} == {"main"}
    assert rows["leaf"]["method"] == "cg-shaping" and "level 2 of 3" in rows["leaf"]["reason"]
    assert '"middle"' in (tmp_path / "graph.dot").read_text() and not (tmp_path / "scratch/trace").exists()


def test_a_version_without_a_graph_is_named_with_what_makes_one(calls_program: Path, traced) -> None:
    with pytest.raises(UsageError, match="no call graph of calls is kept of v1") as problem:
        traced("./calls", optimization_on=("diff-tracing",), optimization_args=(("diff-version", "v1"),))
    assert "--only-extract-cg" in problem.value.hint


def test_complexity_leaves_functions_out_too(calls_program, tmp_path: Path, kept: Kept, answers) -> None:
    run = Run("./calls", "", cwd=tmp_path, environ=dict(os.environ))
    context = CollectContext(tmp_path / "scratch", statistics=kept, answer=answers.append)
    context.scratch.mkdir()
    params = ComplexityParams(
        files=(str(tmp_path / "calls.c"),),
        compile_flags="-O1 -g",
        optimization_on=("cg-shaping", "dynamic-probing"),
        optimization_args=(("cg-proj-levels", "2"), ("cg-proj-keep-leaf", "0")),
    )
    profile = ComplexityCollector().collect(run, params, context)
    assert set(counts(profile)) == {"main", "middle", "deep"}
    assert profile["trace"]["optimization"]["not-traced"].keys() == {"leaf"}
    assert any("dynamic-probing has no effect" in note for note in profile["trace"]["notes"])
