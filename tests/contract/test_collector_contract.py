"""What every collector keeps to: one suite, run over all of them."""

import contextlib
import dataclasses
import importlib
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import perun.collect
from perun.collect.instructions.collector import ENGINES as COUNTERS
from perun.collect.time import TimeCollector, TimeParams
from perun.collect.trace.collector import make_engine
from perun.collect.trace.params import ENGINES
from perun.core.errors import JobFailed
from perun.core.process.ending import guard
from perun.plugin.api import CollectContext, Collector, Run
from perun.plugin.params import specs
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads, validate

_typed: Collector[TimeParams] = TimeCollector()

QUICK: dict[str, Mapping[str, Any]] = {
    "bounds": {"source": ("prog.c",)}, "complexity": {}, "instructions": {"callers": 1, "warmup": 0},
    "island": {}, "memory": {}, "regex": {"pattern": (r"out (?P<value>\d+)",), "repeat": 2}, "sample": {},
    "time": {"warmup": 1, "repeat": 2}, "trace": {"output_handling": "suppress"}
}  # fmt: skip
"""Every built-in collector, with parameters that keep its run short."""


OF_PYTHON = frozenset({"island"})
"""Those that record Python programs alone."""
RUN_NOTHING = frozenset({"bounds"})
"""Those that look at sources, so that no command of theirs can fail."""


@pytest.fixture(params=sorted(QUICK))
def collector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "memory":
        recorder = request.getfixturevalue("memory_recorder")
        monkeypatch.setattr("perun.collect.memory.collector.LIBRARY", recorder)
    if request.param == "complexity":
        runtime = request.getfixturevalue("complexity_runtime")
        monkeypatch.setattr("perun.collect.complexity.collector.LIBRARY", runtime)
    if request.param == "instructions":
        refusals = [make(os.environ).unavailable()[0] for make in COUNTERS.values()]
        if all(refusals):
            pytest.skip("; ".join(refusals))
    if request.param == "trace":
        refusals = [make_engine(name, os.environ).unavailable()[0] for name in ENGINES]
        if all(refusals):
            pytest.skip("; ".join(refusals))
        monkeypatch.setitem(
            QUICK, "trace", {**QUICK["trace"], "binary": str(request.getfixturevalue("calling"))}
        )
    return importlib.import_module(f"perun.collect.{request.param}").PLUGIN()


@pytest.fixture(scope="session")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that tells of its calls, for a script to run."""
    program = tmp_path_factory.mktemp("calling") / "calling"
    options = ["-g", "-O1", "-fno-omit-frame-pointer", "-finstrument-functions", "-x", "c", "-"]
    subprocess.run(["cc", "-o", program, *options], input=b"int main(void) { return 0; }", check=True)
    return program


SHELL = "#!/bin/sh\necho out 7; echo err >&2; {calling}; exit ${{1:-0}}\n"
PYTHON = """#!{python}
import sys
print("out 7")
print("err", file=sys.stderr)
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
"""
"""The same for collectors that record Python programs."""


@pytest.fixture
def run(tmp_path: Path, calling: Path, collector: Any) -> Run:
    project = tmp_path / "project"
    project.mkdir()
    script = project / "prog"
    text = PYTHON if collector.name in OF_PYTHON else SHELL
    script.write_text(text.format(calling=calling, python=sys.executable))
    script.chmod(0o755)
    (project / "prog.c").write_text("int f(int n) { int i; for (i = 0; i < n; i++) {} return i; }\n")
    return Run("./prog", cwd=project, environ={"PATH": "/usr/bin:/bin"})


def collect(collector: Any, run: Run, tmp_path: Path, **params: Any) -> Profile:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    profile = collector.collect(
        run, collector.Params(**QUICK[collector.name], **params), CollectContext(scratch)
    )
    assert isinstance(profile, Profile)
    return profile


def test_every_collector_is_tried_here() -> None:
    found = {module.name for module in pkgutil.iter_modules(perun.collect.__path__)}
    assert {name for name in found if name[0] != "_"} == QUICK.keys()


def test_describes_itself(collector: Any) -> None:
    assert collector.name in QUICK
    assert collector.help
    assert "\n" not in collector.help
    declared: Any = collector.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(collector.Params))
    collector.Params(**QUICK[collector.name])


def test_constants_of_the_manual(collector: Any) -> None:
    module = importlib.import_module(f"perun.collect.{collector.name}")
    assert module.COLLECTOR_TYPE in ("time", "memory", "mixed", "bound", "island", "sample")
    assert module.COLLECTOR_DEFAULT_UNITS


def descriptors() -> set[tuple[str, str]]:
    """Number and target of each open descriptor (what tests before left behind may be closed meanwhile)."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def test_a_valid_profile_is_made_and_nothing_else_is_done(collector, run, tmp_path, capfd) -> None:
    """One collection, which may take seconds, shows what it makes and leaves alone; then another is made."""
    guard()  # opened once for a process, by its first run
    before, opened = (os.getcwd(), dict(os.environ)), descriptors()
    profile = collect(collector, run, tmp_path)
    assert (os.getcwd(), dict(os.environ)) == before
    assert not descriptors() - opened
    assert sorted(os.listdir(run.cwd)) == ["prog", "prog.c"]
    assert capfd.readouterr() == ("", "")
    validate(profile, collector.name)
    module = importlib.import_module(f"perun.collect.{collector.name}")
    assert profile.type == module.COLLECTOR_TYPE
    assert profile["header"]["units"]
    assert profile.configuration[:4] == (collector.name, run.cmd, run.args, run.workload)
    assert next(profile.all_resources(), None)
    assert "origin" not in profile
    assert loads(dumps_pending(profile), "again").serialize() == profile.serialize()
    again = collect(collector, run, tmp_path)
    assert again is not profile
    assert again["header"] == profile["header"]


def test_failing_command(collector: Any, run: Run, tmp_path: Path) -> None:
    if collector.name in RUN_NOTHING:
        assert collector.without_command
        return
    with pytest.raises(JobFailed, match="err") as failure:
        collect(collector, run._replace(args="3"), tmp_path)
    assert "3" in failure.value.message


def test_missing_command(collector: Any, run: Run, tmp_path: Path) -> None:
    if collector.name in RUN_NOTHING:
        assert collector.without_command
        return
    with pytest.raises(JobFailed, match="absent"):
        collect(collector, run._replace(cmd="./absent"), tmp_path)
