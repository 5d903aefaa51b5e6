"""What harnesses share, where the tests of one harness would test it by chance only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.harness import _common as common
from perun.plugin.registry import Registry
from perun.plugin.suites import HarnessContext
from perun.profile.head import HARNESSES, Configuration, shortest

Context = Callable[..., HarnessContext]


def test_all_harnesses_look_at_one_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/a_test.go").write_text("func BenchmarkA(b *testing.B) {}")
    (tmp_path / "test_b.py").write_text("def test_b(benchmark): benchmark(int)")
    walk, walked = os.walk, []

    def counted(folder: Path) -> object:
        walked.append(folder)
        return walk(folder)

    monkeypatch.setattr(os, "walk", counted)
    registry = Registry()

    def found() -> dict[str, list[str]]:
        every = {name: list(registry.get("harness", name).detect(tmp_path))
                 for name in registry.names("harness")}  # fmt: skip
        return {name: files for name, files in every.items() if files}

    with common.one_walk():
        assert found() == {"go": ["inner/a_test.go"], "pytest_benchmark": ["test_b.py"]}
    assert walked == [tmp_path]
    (tmp_path / "inner/a_test.go").unlink()
    assert "go" not in found()


@pytest.mark.parametrize("where", ["", "python"])
def test_what_is_installed_in_editable_mode_is_told(
    tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    copy = tmp_path / "project/.perun/copy"
    (copy / where).mkdir(parents=True)
    for name, place in {"ours": tmp_path / "project" / where, "other": tmp_path / "elsewhere"}.items():
        info = tmp_path / f"site/{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "direct_url.json").write_text(
            json.dumps({"url": place.as_uri(), "dir_info": {"editable": True}})
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    notes: list[str] = []
    (copy / "json.py").write_text("raise ValueError('a module of the project')")
    python = common.python_of(copy, sys.executable, {}, (), context(note=notes.append))
    assert python == sys.executable
    (note,) = notes
    assert f"{tmp_path / 'project' / where} is installed in editable mode" in note and "path: [src]" in note
    common.python_of(copy, sys.executable, {}, ("src",), context(note=notes.append))
    assert len(notes) == 1


def test_profiles_of_benchmarks_are_told_by_their_collector() -> None:
    """So that what is suggested can be typed: no list of commands has the names of benchmarks."""
    registry = Registry()
    built_in = {
        name for name in registry.names("harness") if registry.source("harness", name).kind == "built-in"
    }
    assert built_in == HARNESSES
    one, other = (
        Configuration.of("go", "go test -bench", "tab.BenchmarkSum", load, ()) for load in ("n=1", "")
    )
    memory = one._replace(collector="go.memory")
    command = Configuration.of("time", "./go", "test", "", ())
    assert one.options == memory.options == ["--benchmark", "tab.BenchmarkSum n=1"]
    assert command.options == ["-c", "./go", "-a", "test"] and not command.benchmark
    assert list(shortest([one, other, command]).values()) == [
        "tab.BenchmarkSum n=1",
        "tab.BenchmarkSum",
        "./go",
    ]
