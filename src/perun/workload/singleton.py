"""Singleton generator: one workload, passed to the command as it is written (manual 7.4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param


@dataclass(frozen=True)
class SingletonParams:
    """The workload itself."""

    value: str = param("", help="Singleton value that is passed as workload.")


class SingletonGenerator:
    """Yields the one given value; what a workload without a generator of its own becomes."""

    name: ClassVar[str] = "singleton"
    help: ClassVar[str] = "Generates one single value."
    Params: ClassVar[type] = SingletonParams

    def generate(self, params: SingletonParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The one workload; its size is not known."""
        yield Workload(params.value)


PLUGIN = SingletonGenerator
