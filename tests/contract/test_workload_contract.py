"""What every workload generator keeps to: one suite, run over all of them."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import pkgutil
from collections.abc import Mapping
from typing import Any

import pytest

import perun.workload
from perun.plugin.api import Workload, WorkloadGenerator
from perun.plugin.params import specs
from perun.workload.singleton import SingletonGenerator, SingletonParams

_singleton: WorkloadGenerator[SingletonParams] = SingletonGenerator()

SMALL: dict[str, Mapping[str, Any]] = {"singleton": {"value": "in.txt"}}
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


def test_yields_the_same_workloads_again(generator: Any) -> None:
    params = generator.Params(**SMALL[generator.name])
    first, second = (list(itertools.islice(generator.generate(params), 1000)) for _ in range(2))
    assert first == second
    assert 0 < len(first) < 1000
    assert all(isinstance(workload, Workload) for workload in first)
