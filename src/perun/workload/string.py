"""String generator: random strings of growing length (manual 7.4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import ClassVar, Final

from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param

_CHARACTERS: Final = ascii_letters + digits
"""Nothing that would have to be quoted on a command line."""


@dataclass(frozen=True)
class StringParams:
    """The range of lengths, both ends included."""

    min_len: int = param(1, minimum=1, help="The minimal length of the string that shall be generated.")
    max_len: int = param(100, minimum=1, help="The maximal length of the string that shall be generated.")
    step_len: int = param(1, minimum=1, help="The step (or increment) of the lengths.")
    step: int = param(1, minimum=1, help="Another name of step_len.")

    def __post_init__(self) -> None:
        if self.min_len > self.max_len:
            raise ValueError(f"min_len ({self.min_len}) is larger than max_len ({self.max_len})")
        if 1 not in (self.step, self.step_len) and self.step != self.step_len:
            raise ValueError(f"step ({self.step}) and step_len ({self.step_len}) mean the same: give one")

    @property
    def increment(self) -> int:
        """The step by whichever of its names it was given."""
        return max(self.step, self.step_len)


class StringGenerator:
    """Yields strings of letters and digits. The string of one length depends on that and the seed alone."""

    name: ClassVar[str] = "string"
    help: ClassVar[str] = "Generates strings of changing length."
    Params: ClassVar[type] = StringParams

    def generate(self, params: StringParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The strings; their size is their length."""
        for length in range(params.min_len, params.max_len + 1, params.increment):
            yield Workload(_text(length, ctx.seed), length)


def _text(length: int, seed: int) -> str:
    from random import Random

    # Of all that Random draws only `random` is promised to be the same in every release of Python.
    draw = Random(f"{seed}:{length}").random
    return "".join([_CHARACTERS[int(draw() * len(_CHARACTERS))] for _ in range(length)])


PLUGIN = StringGenerator
