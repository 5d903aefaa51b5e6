"""The options of the optimisations, which collectors of calls have in common (manual 3.3.1)."""

from __future__ import annotations

from dataclasses import dataclass

from perun.collect._calls.optimizations.settings import (
    GRAPH_TYPES,
    METHODS,
    PIPELINES,
    Settings,
    make_settings,
)
from perun.errors import UsageError
from perun.plugin.params import param


@dataclass(frozen=True)
class OptimizationParams:
    """Which functions are left out, and what is told of that."""

    optimization_pipeline: str = param(
        "custom",
        choices=tuple(PIPELINES),
        help="Trace less by this combination of optimizations: custom (none), basic, advanced or full.",
    )
    optimization_on: tuple[str, ...] = param(
        (), choices=METHODS, help="Also use this optimization; may be repeated."
    )
    optimization_off: tuple[str, ...] = param(
        (), choices=METHODS, help="Do not use this optimization of the pipeline; may be repeated."
    )
    optimization_args: tuple[tuple[str, str], ...] = param(
        (),
        metavar="<name> <value>",
        help="Set a parameter of an optimization, as cg-proj-levels 3; may be repeated.",
    )
    optimization_cache_off: bool = param(
        False, help="Neither use nor keep call graphs and statistics of functions of this version."
    )
    optimization_reset_cache: bool = param(
        False, help="Remove the call graphs and statistics of functions that are kept of the program."
    )
    use_cg_type: str = param(
        "static",
        choices=GRAPH_TYPES,
        help="The call graph that optimizations use: that of the machine code (static), of recorded calls "
        "(dynamic), or both (mixed).",
    )
    explain: bool = param(
        False, help="Print each function with whether it is traced, which optimization decided that, and why."
    )
    dry_run: bool = param(False, help="Only print what --explain does: nothing is run.")
    json: bool = param(False, help="With --dry-run: print it as JSON.")

    def __post_init__(self) -> None:
        settings = self.settings()
        if settings.idle and not settings.methods:
            name, method = settings.idle[0]
            raise UsageError(
                f"--optimization-args (-oa): {name} is a parameter of {method}, but no optimization is on",
                f"add --optimization-on {method} (-on), or a pipeline: --optimization-pipeline basic (-op)",
            )
        if self.json and not self.dry_run:
            raise UsageError(
                "--json needs --dry-run, as a run prints other lines too",
                "add --dry-run; a profile holds the same in its region trace, under optimization",
            )

    def settings(self) -> Settings:
        """The chosen methods with their parameters.

        :raises UsageError: names what is unknown, or of a wrong value.
        """
        return make_settings(
            self.optimization_pipeline,
            self.optimization_on,
            self.optimization_off,
            self.optimization_args,
        )
