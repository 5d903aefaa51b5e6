"""Integer generator: the numbers of a range (manual 7.4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param


@dataclass(frozen=True)
class IntegerParams:
    """The range, both ends included."""

    min_range: int = param(1, help="The minimal integer value that shall be generated.")
    max_range: int = param(100, help="The maximal integer value that shall be generated.")
    step: int = param(1, minimum=1, help="The step (or increment) of the range.")

    def __post_init__(self) -> None:
        if self.min_range > self.max_range:
            raise ValueError(f"min_range ({self.min_range}) is larger than max_range ({self.max_range})")


class IntegerGenerator:
    """Yields `min_range`, and then `step` more each time until `max_range` would be passed."""

    name: ClassVar[str] = "integer"
    help: ClassVar[str] = "Generates the range of the integers."
    Params: ClassVar[type] = IntegerParams

    def generate(self, params: IntegerParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The numbers; each is its own size."""
        for number in range(params.min_range, params.max_range + 1, params.step):
            yield Workload(str(number), number)


PLUGIN = IntegerGenerator
