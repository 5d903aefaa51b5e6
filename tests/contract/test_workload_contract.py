"""What every workload generator keeps to: one suite, run over all of them."""

import dataclasses
import importlib
import itertools
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import perun.workload
from perun.plugin.api import GenerateContext, Workload, WorkloadGenerator
from perun.plugin.params import specs
from perun.workload.singleton import SingletonGenerator, SingletonParams

_singleton: WorkloadGenerator[SingletonParams] = SingletonGenerator()

SMALL: dict[str, Mapping[str, Any]] = {
    "external": {"cmd": "sh -c 'for n in 1 2 10; do echo $n >{folder}/$n.txt; done'"},
    "files": {"path": str(Path(__file__).parents[1] / "data" / "verdicts"), "pattern": "**/*"},
    "integer": {"min_range": 10, "max_range": 100, "step": 10},
    "singleton": {"value": "in.txt"},
    "string": {"min_len": 1, "max_len": 10},
    "textfile": {"min_lines": 0, "max_lines": 20, "step": 10},
}
"""Every built-in generator, with parameters that keep it short."""


@pytest.fixture(params=sorted(SMALL))
def generator(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"perun.workload.{request.param}").PLUGIN()


def test_every_generator_is_tried_here() -> None:
    assert {module.name for module in pkgutil.iter_modules(perun.workload.__path__)} == SMALL.keys()


def test_describes_itself(generator: Any) -> None:
    assert generator.name in SMALL
    assert generator.help
    declared: Any = generator.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(generator.Params))


def generate(generator: Any, folder: Path, seed: int = 0) -> list[Workload]:
    folder.mkdir()
    params = generator.Params(**SMALL[generator.name])
    context = GenerateContext(folder, seed, folder.parent, {"PATH": "/usr/bin:/bin"})
    return list(itertools.islice(generator.generate(params, context), 1000))


def contents(workloads: list[Workload]) -> list[tuple[str, float | None, bytes]]:
    return [(one.value, one.size, one.file.read_bytes() if one.file else b"") for one in workloads]


def test_yields_the_same_workloads_again(generator: Any, tmp_path: Path) -> None:
    first, second = (generate(generator, tmp_path / name) for name in ("first", "second"))
    assert contents(first) == contents(second)
    assert 0 < len(first) < 1000
    assert all(isinstance(workload, Workload) for workload in first)
    assert len({workload.value for workload in first}) == len(first)


def test_writes_into_its_folder_alone(generator: Any, tmp_path: Path) -> None:
    workloads = generate(generator, tmp_path / "folder")
    assert {path.name for path in tmp_path.iterdir()} == {"folder"}
    written = {path for path in (tmp_path / "folder").rglob("*") if path.is_file()}
    assert written == {workload.file for workload in workloads if workload.file}
    for workload in workloads:
        if workload.file:
            assert workload.value == str(workload.file.relative_to(tmp_path / "folder"))


def test_random_ones_follow_the_seed(generator: Any, tmp_path: Path) -> None:
    zero, seven = (contents(generate(generator, tmp_path / str(seed), seed)) for seed in (0, 7))
    assert (zero != seven) == (generator.name in ("string", "textfile"))
    assert [size for _, size, _ in zero] == [size for _, size, _ in seven]
