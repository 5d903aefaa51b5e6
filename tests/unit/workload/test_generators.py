"""The generators of ranges of workloads (manual 7.4)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ConfigError, JobFailed
from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import from_mapping
from perun.workload.integer import IntegerGenerator, IntegerParams
from perun.workload.string import StringGenerator, StringParams


def generate(name: str, folder: Path, seed: int = 0, **values: Any) -> list[Workload]:
    plugin = importlib.import_module(f"perun.workload.{name}").PLUGIN()
    folder.mkdir(exist_ok=True)
    context = GenerateContext(folder, seed, folder.parent, {"PATH": "/usr/bin:/bin"})
    return list(plugin.generate(from_mapping(plugin.Params, values, "here"), context))


def test_integers_of_the_manual(tmp_path: Path) -> None:
    made = generate("integer", tmp_path, min_range=10, max_range=100, step=10)
    assert [one.value for one in made] == ["10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]
    assert [one.size for one in made] == list(range(10, 101, 10))


@given(st.integers(-1000, 1000), st.integers(0, 200), st.integers(1, 50))
def test_integers_stay_in_the_range(start: int, width: int, step: int) -> None:
    params = IntegerParams(start, start + width, step)
    sizes = [one.size for one in IntegerGenerator().generate(params, GenerateContext(Path()))]
    assert sizes == list(range(start, start + width + 1, step))


def test_strings_of_the_manual(tmp_path: Path) -> None:
    made = generate("string", tmp_path, min_len=1, max_len=10, step_len=1)
    assert [len(one.value) for one in made] == [one.size for one in made] == list(range(1, 11))
    assert all(one.value.isalnum() and one.value.isascii() for one in made)


@pytest.mark.parametrize("name", ["step", "step_len", "step-len"])
def test_both_names_of_the_step(name: str, tmp_path: Path) -> None:
    made = generate("string", tmp_path, min_len=8, max_len=24, **{name: 8})
    assert [one.size for one in made] == [8, 16, 24]


def test_string_does_not_depend_on_the_range() -> None:
    def string(**values: int) -> str:
        return next(StringGenerator().generate(StringParams(**values), GenerateContext(Path(), 3))).value

    assert string(min_len=20, max_len=20) == string(min_len=20, max_len=90, step=7)


def test_strings_are_the_same_everywhere(tmp_path: Path) -> None:
    assert [one.value for one in generate("string", tmp_path, min_len=4, max_len=5)] == ["PTTG", "qfU7s"]


def test_lines_of_files(tmp_path: Path) -> None:
    made = generate("textfile", tmp_path, min_lines=10, max_lines=50, step=20, min_chars=3, max_chars=9)
    for workload in made:
        assert workload.file is not None
        lines = workload.file.read_text().splitlines()
        assert len(lines) == workload.size
        assert {len(line) for line in lines} <= set(range(3, 10))
    assert [one.value for one in made] == ["lines_10.txt", "lines_30.txt", "lines_50.txt"]


@pytest.mark.parametrize("longest", [0, 1, 80, 100_000])
def test_rows_that_are_not_random(longest: int, tmp_path: Path) -> None:
    (made,) = generate(
        "textfile", tmp_path, min_lines=3, max_lines=3, min_chars=0, max_chars=longest, randomize_rows=False
    )
    assert made.file is not None
    assert [len(line) for line in made.file.read_text().split("\n")] == [longest] * 3 + [0]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("integer", {"min_range": 9, "max_range": 3}, r"min_range \(9\) is larger than max_range \(3\)"),
        ("integer", {"step": 0}, "step must be at least 1"),
        ("integer", {"step": -1}, "step must be at least 1"),
        ("integer", {"step": 1.5}, "step must be a whole number"),
        ("integer", {"max": 3}, "unknown parameter 'max'"),
        ("string", {"min_len": 9, "max_len": 3}, "min_len"),
        ("string", {"step_len": 0}, "step_len must be at least 1"),
        ("string", {"step": 0}, "step must be at least 1"),
        ("string", {"step": 2, "step_len": 3}, "mean the same"),
        ("textfile", {"min_lines": 9, "max_lines": 3}, "min_lines"),
        ("textfile", {"min_chars": 81}, "min_chars"),
        ("textfile", {"randomize_rows": "perhaps"}, "true or false"),
        ("external", {}, "cmd is missing"),
        ("external", {"cmd": ""}, "cmd is empty"),
        ("external", {"cmd": "'"}, "cannot be split"),
        ("external", {"cmd": "true", "size": "("}, "not a regular expression"),
        ("external", {"cmd": "true", "size": "x"}, "no group"),
    ],
)
def test_what_cannot_be(name: str, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        generate(name, tmp_path, **values)


def external(tmp_path: Path, script: str, **values: Any) -> list[Workload]:
    (tmp_path / "make").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "make").chmod(0o755)
    return generate("external", tmp_path / "folder", **{"cmd": "./make", **values})


def test_files_of_a_program(tmp_path: Path) -> None:
    script = 'for n in 10 9 2; do head -c $n /dev/zero >"$PERUN_WORKLOADS/g$n"; done; echo not used'
    made = external(tmp_path, script)
    assert [(one.value, one.size) for one in made] == [("g2", 2), ("g9", 9), ("g10", 10)]
    assert [one.file for one in made] == [tmp_path / "folder" / name for name in ("g2", "g9", "g10")]


def test_files_in_folders_with_a_size_in_their_names(tmp_path: Path) -> None:
    script = 'mkdir -p "$1/deep"; touch "$1/deep/nodes5_edges70" "$1/nodes4_edges9"'
    made = external(tmp_path, script, cmd="./make {folder}", size=r"edges(?P<size>\d+)")
    assert [(one.value, one.size) for one in made] == [("deep/nodes5_edges70", 70), ("nodes4_edges9", 9)]


def test_lines_of_a_program(tmp_path: Path) -> None:
    script = 'echo "--size 5 $1"; echo; echo 7.5; echo $PERUN_SEED'
    made = external(tmp_path, script, seed=4, cmd="./make {seed}")
    assert made == [Workload("--size 5 4"), Workload("7.5", 7.5), Workload("4", 4)]
    assert external(tmp_path, "echo --size 5", size=r"size (\d+)") == [Workload("--size 5", 5)]


@pytest.mark.parametrize(
    ("script", "values", "message"),
    [
        ("true", {}, "wrote no workloads"),
        ("echo sorry >&2; exit 3", {}, "ended with status 3\n  sorry"),
        ("kill -9 $$", {}, "ended with signal 9"),
        ("sleep 9", {"timeout": 0.1}, "did not end within 0.1 s"),
        ("true", {"cmd": "./absent"}, "cannot be started"),
        ("echo five", {"size": r"(\d+)"}, "no size in the workload 'five'"),
    ],
)
def test_programs_that_fail(script: str, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=message):
        external(tmp_path, script, **values)
