"""What a program prints does not stand between the lines of an answer."""

from __future__ import annotations

import pytest

from perun.collect.complexity.build import ComplexityParams
from perun.collect.trace.params import TraceParams
from perun.repository.jobs import PluginConfig
from perun.running.compare.instruments import quiet


def test_output_that_would_go_to_the_terminal_is_suppressed() -> None:
    asked = PluginConfig("trace", TraceParams(func=("sort",)))
    assert quiet(asked).params == TraceParams(func=("sort",), output_handling="suppress")


@pytest.mark.parametrize("params", [TraceParams(output_handling="capture"), ComplexityParams(), None])
def test_others_stay(params: object) -> None:
    unit = PluginConfig("any", params)
    assert quiet(unit) is unit
