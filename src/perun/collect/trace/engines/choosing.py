"""Which engine traces: the chosen one, or the best for a plan of those that can run here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perun.core.errors import CollectorUnavailable

if TYPE_CHECKING:
    from perun.collect.trace.engines import Engine
    from perun.collect.trace.params import TraceParams
    from perun.collect.trace.plan import Plan
    from perun.plugin.api import Run


def choose_engine(
    run: Run, plan: Plan, params: TraceParams, cache: Path | None, note: Callable[[str], None]
) -> Engine:
    """The engine to use: the chosen one, or the best that can run on this machine.

    :param note: tells the user why it is this one.
    :raises CollectorUnavailable: where none can run on this machine, or not the chosen one.
    """
    wanted = params.engine
    if wanted != "auto":
        engine = make_engine(wanted, run.environ, cache)
        why, hint = engine.unavailable(plan)
        if why:
            raise CollectorUnavailable(f"--engine {wanted} cannot trace {str(run)!r}: {why}", hint)
        return engine
    order, reason = suitable_engines(plan)
    if params.follow_children:
        order, reason = ("ebpf",), "it follows the programs that the command executes"
    refused: list[tuple[str, str, str]] = []
    for name in order:
        engine = make_engine(name, run.environ, cache, careful=True)
        why, hint = engine.unavailable(plan)
        if not why:
            others = "".join(f"; {other} cannot: {problem}" for other, problem, _ in refused)
            note(f"traced with {name}: {reason if not refused else 'the next best engine'}{others}")
            return engine
        refused.append((name, why, hint))
    raise CollectorUnavailable(
        "no engine can trace on this machine: " + "; ".join(f"{name}: {why}" for name, why, _ in refused),
        next((hint for _, _, hint in refused if hint), ""),
    )


def suitable_engines(plan: Plan) -> tuple[tuple[str, ...], str]:
    """The engines that support a plan, the best first, and why it is the best."""
    if plan.pairs:
        return ("ebpf", "stap"), "it supports USDT probes and source lines"
    if plan.throws:
        return ("ebpf",), "it can trace programs that throw, panic or move their stacks, as this one may"
    return ("ebpf", "uftrace", "stap"), "it does not change the program and records every call"


def make_engine(
    name: str, environ: Mapping[str, str], cache: Path | None = None, careful: bool = False
) -> Engine:
    """The engine of that name.

    :param careful: it refuses plans of which it can record a part only.
    """
    if name == "uftrace":
        from perun.collect.trace.engines.uftrace import UftraceEngine

        return UftraceEngine(environ, cache, careful)
    if name == "stap":
        from perun.collect.trace.engines.stap import StapEngine

        return StapEngine(environ, cache)
    from perun.collect.trace.engines.ebpf import EbpfEngine

    return EbpfEngine(environ, cache)
