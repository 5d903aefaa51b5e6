"""The methods, the pipelines that combine them, and their parameters (manual 3.3.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from perun.core.errors import UsageError
from perun.plugin.params import nearest, param

if TYPE_CHECKING:
    from perun.native.callgraph.graph import CallGraph


Method = Literal[
    "diff-tracing",
    "cg-shaping",
    "baseline-static",
    "baseline-dynamic",
    "dynamic-sampling",
    "dynamic-probing",
    "timed-sampling",
]
METHODS: Final[tuple[Method, ...]] = (
    "diff-tracing",
    "cg-shaping",
    "baseline-static",
    "baseline-dynamic",
    "dynamic-sampling",
    "dynamic-probing",
    "timed-sampling",
)
"""All methods, in the order in which they are applied."""
_BASIC: Final[tuple[Method, ...]] = ("cg-shaping", "baseline-dynamic")
_ADVANCED: Final[tuple[Method, ...]] = (*_BASIC, "diff-tracing", "dynamic-sampling")
PIPELINES: Final[Mapping[str, tuple[Method, ...]]] = {
    "custom": (),
    "basic": _BASIC,
    "advanced": _ADVANCED,
    "full": (*_ADVANCED, "baseline-static", "dynamic-probing"),
}
"""The methods of each pipeline."""
GRAPH_TYPES: Final = ("static", "dynamic", "mixed")
"""Where the call graph comes from: machine code, recorded calls, or both."""
COMPLEXITIES: Final = (
    "constant",
    "logarithmic",
    "linear",
    "linearithmic",
    "quadratic",
    "cubic",
    "polynomial",
    "exponential",
)
"""Classes of bounds, the lowest first."""
SMALL: Final = 20
"""A program of so many functions at most keeps its leaves."""
_SOFT: Final = 10_000
_SOFT_OF_BASIC: Final = 1_000
_HARD: Final = 100
AUTOMATIC: Final = -1
"""A number that is chosen from the graph."""


class OptimizationParameter(NamedTuple):
    """A parameter of `--optimization-args`.

    :ivar default: its type is that of the values. :ivar choices: the values that a text may have.
    :ivar minimum: the smallest number. :ivar automatic: what the default is made from, where it has no fixed
        one.
    """

    method: Method
    default: int | float | str
    help: str
    choices: tuple[str, ...] = ()
    minimum: float = 0
    automatic: str = ""


PARAMETERS: Final[Mapping[str, OptimizationParameter]] = {
    "diff-version": OptimizationParameter(
        "diff-tracing", "", "the version to compare with", automatic="nearest with a call graph"
    ),
    "diff-cfg-mode": OptimizationParameter(
        "diff-tracing",
        "color",
        "what of two control-flow graphs must be equal",
        ("soft", "semistrict", "strict", "color"),
    ),
    "diff-inspect-all": OptimizationParameter(
        "diff-tracing", 1, "compare control-flow graphs too, not only callees", ("0", "1")
    ),
    "diff-keep-leaf": OptimizationParameter(
        "diff-tracing",
        AUTOMATIC,
        "keep unchanged functions that call no other",
        ("0", "1"),
        0,
        "0, or 1 with at most 20 functions",
    ),
    "cg-mode": OptimizationParameter(
        "cg-shaping",
        "top-down",
        "which part of the graph is kept",
        ("match", "bottom-up", "top-down"),
    ),
    "cg-proj-levels": OptimizationParameter(
        "cg-shaping", AUTOMATIC, "how many levels are kept", (), 1, "max(round(levels / 2), 2)"
    ),
    "cg-proj-keep-leaf": OptimizationParameter(
        "cg-shaping",
        AUTOMATIC,
        "keep functions that call no other",
        ("0", "1"),
        0,
        "0, or 1 with at most 20 functions",
    ),
    "static-complexity": OptimizationParameter(
        "baseline-static", "constant", "the highest bound that is not traced", COMPLEXITIES
    ),
    "static-keep-top": OptimizationParameter(
        "baseline-static",
        AUTOMATIC,
        "how many levels from the top are kept in any case",
        (),
        0,
        "max(ceil(levels / 10), first branching level + 1)",
    ),
    "dyn-base-soft-threshold": OptimizationParameter(
        "baseline-dynamic",
        AUTOMATIC,
        "calls from which on short or regular functions are dropped",
        (),
        1,
        "1000 with the pipeline basic, else 10000",
    ),
    "dyn-base-hard-threshold": OptimizationParameter(
        "baseline-dynamic", AUTOMATIC, "calls from which on any function is dropped", (), 1, "100 x soft"
    ),
    "dyn-sample-step": OptimizationParameter(
        "dynamic-sampling", 2.0, "a function of level n, not seen yet, is sampled 1 in step^n", (), 1
    ),
    "dyn-sample-threshold": OptimizationParameter(
        "dynamic-sampling", 1_000, "about so many calls of a function are recorded", (), 1
    ),
    "probing-threshold": OptimizationParameter(
        "dynamic-probing", 100_000, "calls after which a function is no longer probed", (), 1
    ),
    "probing-reattach": OptimizationParameter(
        "dynamic-probing", 0, "probe it again, for 20,000 calls each time", ("0", "1")
    ),
    "timed-sample-freq": OptimizationParameter(
        "timed-sampling", 1.0, "seconds after which probes are switched on or off", (), 0.001
    ),
}
"""All parameters by their names."""


_COMPARING: Final = ("diff-version", "diff-cfg-mode", "diff-inspect-all")
"""The parameters that tell which functions changed."""


class OptimizationSettings(NamedTuple):
    """What the user chose.

    :ivar methods: the chosen ones, in the order of :data:`METHODS`. :ivar values: parameters that he gave.
    :ivar pipeline: a key of :data:`PIPELINES`.
    """

    methods: tuple[Method, ...] = ()
    values: Mapping[str, Any] = {}
    pipeline: str = "custom"

    def value(self, name: str) -> Any:
        """The value of a parameter, or its default, which may be :data:`AUTOMATIC`."""
        return self.values.get(name, PARAMETERS[name].default)

    def flag(self, name: str, otherwise: bool = False) -> bool:
        """A parameter that is 0 or 1, or `otherwise` where that is chosen from the graph."""
        value = self.value(name)
        return otherwise if value == AUTOMATIC else bool(value)

    def number(self, name: str, otherwise: int) -> int:
        """A number, or `otherwise` where that is chosen from the graph."""
        value = self.value(name)
        return otherwise if value == AUTOMATIC else int(value)

    @property
    def soft(self) -> int:
        """Calls from which on short or regular functions are dropped."""
        default = _SOFT_OF_BASIC if self.pipeline == "basic" else _SOFT
        return self.number("dyn-base-soft-threshold", default)

    @property
    def hard(self) -> int:
        """Calls from which on any function is dropped."""
        return self.number("dyn-base-hard-threshold", _HARD * self.soft)

    @property
    def idle(self) -> tuple[tuple[str, Method], ...]:
        """The parameters that the user gave of methods that he did not choose, with these.

        How functions of two versions are compared matters to all methods, as none drops a changed one.
        """
        return tuple(
            (name, PARAMETERS[name].method)
            for name in self.values
            if PARAMETERS[name].method not in self.methods and not (self.methods and name in _COMPARING)
        )

    def to_mapping(self) -> dict[str, Any]:
        """The settings as JSON."""
        return {"pipeline": self.pipeline, "methods": list(self.methods), "args": dict(self.values)}


def make_settings(
    pipeline: str = "custom",
    on: Sequence[str] = (),
    off: Sequence[str] = (),
    arguments: Iterable[tuple[str, str]] = (),
) -> OptimizationSettings:
    """The settings that options mean: the methods of the pipeline, those of `on`, without those of `off`.

    :param arguments: names and values of :data:`PARAMETERS`; of several of one name the last counts.
    :raises UsageError: names what is unknown, of a wrong value, or contradicts, and what is nearest.
    """
    if pipeline not in PIPELINES:
        raise UsageError(f"there is no optimization pipeline {pipeline!r}", nearest(pipeline, PIPELINES))
    for name in (*on, *off):
        if name not in METHODS:
            raise UsageError(f"there is no optimization {name!r}", nearest(name, METHODS))
    both = sorted(set(on) & set(off))
    if both:
        raise UsageError(
            f"the optimization {both[0]} is both on and off",
            "leave out --optimization-on (-on) or --optimization-off (-off)",
        )
    chosen = {*PIPELINES[pipeline], *on} - set(off)
    values = {name: _value(name, text) for name, text in arguments}
    return OptimizationSettings(tuple(one for one in METHODS if one in chosen), values, pipeline)


def is_small(graph: CallGraph) -> bool:
    """Whether a program has so few functions of its own that the leaves of its graph are kept by default."""
    return sum(one.own for one in graph.functions.values()) <= SMALL


def _value(name: str, text: str) -> Any:
    known = PARAMETERS.get(name)
    if known is None:
        raise UsageError(f"--optimization-args (-oa): unknown parameter {name!r}", nearest(name, PARAMETERS))
    if known.choices:
        if text not in known.choices:
            raise _wrong(name, text, "one of " + ", ".join(known.choices), nearest(text, known.choices))
        return text if isinstance(known.default, str) else int(text)
    if isinstance(known.default, str):
        return text
    kind = "a number" if isinstance(known.default, float) else "a whole number"
    try:
        number = type(known.default)(text)
    except ValueError:
        raise _wrong(name, text, kind) from None
    if not math.isfinite(number) or number < known.minimum:
        raise _wrong(name, text, f"{kind} of at least {known.minimum:g}")
    return number


def _wrong(name: str, text: str, expected: str, hint: str = "") -> UsageError:
    if hint.startswith("known are"):
        hint = ""
    return UsageError(f"--optimization-args (-oa): {name} must be {expected}, not {text!r}", hint)


# The options of the optimisations, which collectors of calls have in common (manual 3.3.1).


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

    def settings(self) -> OptimizationSettings:
        """The chosen methods with their parameters.

        :raises UsageError: names what is unknown, or of a wrong value.
        """
        return make_settings(
            self.optimization_pipeline,
            self.optimization_on,
            self.optimization_off,
            self.optimization_args,
        )
