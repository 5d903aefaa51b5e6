"""The generator of one workload."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ConfigError
from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import from_mapping
from perun.workload.singleton import PLUGIN, SingletonParams

CONTEXT = GenerateContext(Path("/nowhere"))


@given(st.text())
def test_the_value_as_it_is(value: str) -> None:
    assert list(PLUGIN().generate(SingletonParams(value), CONTEXT)) == [Workload(value)]


def test_from_a_configuration() -> None:
    params = from_mapping(SingletonParams, {"value": 42}, "workload 'answer'")
    assert list(PLUGIN().generate(params, CONTEXT)) == [Workload("42")]
    with pytest.raises(ConfigError, match="valeu"):
        from_mapping(SingletonParams, {"valeu": 42}, "workload 'answer'")
