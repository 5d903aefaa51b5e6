"""The trace collector: plans what to trace, chooses an engine that records it, and makes a profile of the
calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from perun.collect._calls.optimizations.applying import (
    GraphRequest,
    OptimizationResult,
    TraceCandidate,
    apply,
    is_wanted,
)
from perun.collect.trace.params import ENGINES, TraceParams
from perun.collect.trace.plan import shown_name
from perun.core.errors import CollectorUnavailable, JobFailed, PerunError, UsageError
from perun.core.process.command import find_executable
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import to_mapping

if TYPE_CHECKING:
    from perun.collect.trace.engines import TraceEngine, TraceRecording
    from perun.collect.trace.plan import TracePlan
    from perun.collect.trace.recorded_profile import WorkFolder
    from perun.profile.factory import Profile


# Which engine traces: the chosen one, or the best for a plan of those that can run here.


def choose_engine(
    run: Run, plan: TracePlan, params: TraceParams, cache: Path | None, note: Callable[[str], None]
) -> TraceEngine:
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


def suitable_engines(plan: TracePlan) -> tuple[tuple[str, ...], str]:
    """The engines that support a plan, the best first, and why it is the best."""
    if plan.pairs:
        return ("ebpf", "stap"), "it supports USDT probes and source lines"
    if plan.throws:
        return ("ebpf",), "it can trace programs that throw, panic or move their stacks, as this one may"
    return ("ebpf", "uftrace", "stap"), "it does not change the program and records every call"


def make_engine(
    name: str, environ: Mapping[str, str], cache: Path | None = None, careful: bool = False
) -> TraceEngine:
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


COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"mixed(time delta)": "us"}


class TraceCollector:
    """Records every call of chosen functions: its duration, and the size of the structure it works on."""

    name: ClassVar[str] = "trace"
    help: ClassVar[str] = (
        "Records the calls of functions of a compiled program: their times, and the sizes of the structures "
        "that they work on."
    )
    Params: ClassVar[type] = TraceParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether any engine can trace on this machine, and what each of them lacks."""
        engines = [Readiness(name, *make_engine(name, environ).unavailable()) for name in ENGINES]
        if all(engine.missing for engine in engines):
            yield Readiness("", "no engine can trace on this machine", "make one of these work")
        else:
            yield Readiness()
        yield from engines

    def collect(self, run: Run, params: TraceParams, ctx: CollectContext) -> Profile:
        """Run the command once under an engine.

        :raises UsageError: where a named function, probe or size does not exist.
        :raises CollectorUnavailable: where no engine can run on this machine, or not the chosen one.
        :raises JobFailed: where the command cannot be started, fails, or is not a compiled program.
        """
        from perun.collect.trace.recorded_profile import WorkFolder

        if params.diagnostics:
            params = dataclasses.replace(
                params, watchdog=True, verbose_trace=True, output_handling="capture", zip_temp=True
            )
        return _Session(run, params, ctx, WorkFolder(params, ctx)).profile()


class _Session:
    """One run of the collector."""

    def __init__(self, run: Run, params: TraceParams, ctx: CollectContext, folder: WorkFolder) -> None:
        self._run = run
        self._params = params
        self._ctx = ctx
        self._notes: list[str] = []
        self._folder = folder
        self._follow: Callable[[str], TracePlan] | None = None
        self._optimized: OptimizedPlan | None = None

    def profile(self) -> Profile:
        from perun.collect._common.runs import completed, require_recorded, shortfalls
        from perun.collect.trace.engines import EngineContext

        try:
            self._report("finding functions")
            plan = self._optimize(self._plan())
            engine = choose_engine(self._run, plan, self._params, self._ctx.cache, self._note)
            self._note_switching(plan, engine)
            self._folder.log(f"engine {engine.name}: {len(plan.probes)} functions, {len(plan.pairs)} pairs")
            self._report(f"tracing {self._run} with {engine.name}")
            context = EngineContext(
                self._run,
                self._folder.path,
                self._params.output_handling,
                self._params.timeout,
                not self._params.stap_cache_off,
                self._follow,
            )
            recorded = engine.record(plan, context)
            plan = recorded.plan or plan
            sample, limit = recorded.sample, self._params.timeout
            self._folder.log(f"ended with status {sample.status} after {sample.real:.3f} s {sample.early}")
            require_recorded(
                self._run,
                sample,
                recorded.errors,
                ignore_failure=self._params.ignore_failure,
                hint="correct the command, or trace it anyway with --ignore-failure; if it does not fail "
                f"without Perun, the engine {engine.name} may be the reason: choose another one (--engine)",
            )
            self._report("making a profile of the calls")
            profile = self._make_profile(plan, engine, recorded)
            if self._optimized is not None and not (self._params.no_profile or self._params.no_ds_update):
                self._optimized.applied.update(profile)
            return completed(profile, sample, [*shortfalls(sample, limit, engine.lost), *recorded.lacks])
        finally:
            self._folder.remove()

    def _plan(self) -> TracePlan:
        from contextlib import ExitStack

        from perun.collect.trace.params import find_library
        from perun.collect.trace.plan import TracePlan, TraceSelection, make_plan, plan_of_other
        from perun.native.binary import Binary

        run = self._run
        self._require_followable()
        program = find_executable(run.command().argv[0], run.cwd, run.environ)
        paths = [str(run.cwd / self._params.binary)] if self._params.binary else [program]
        if self._params.only_extract_cg:  # a stripped program has a call graph too, but no names to trace by
            return TracePlan((), (), False, paths[0])
        paths += [find_library(library, run, paths[0]) for library in self._params.libs]
        if not self._params.binary:
            self._note_interpreter(program)
        wanted = TraceSelection(*(getattr(self._params, name) for name in TraceSelection._fields))
        if self._params.follow_children:
            self._follow = partial(plan_of_other, wanted=wanted, cache=self._ctx.cache)
        with ExitStack() as stack:
            try:
                binaries = [stack.enter_context(Binary(path, self._ctx.cache)) for path in paths]
                plan = make_plan(binaries, wanted)
                for note in (note for binary in binaries for note in binary.notes):
                    self._note(note)
                return plan
            except (JobFailed, UsageError) as problem:
                if not self._follow or self._params.libs:
                    raise
                try:
                    return self._follow(paths[0])
                except PerunError:  # a script, or a program without the functions that others have
                    self._note(f"only programs that the command executes are traced: {problem.message}")
                    return TracePlan((), (), False, paths[0])

    def _optimize(self, plan: TracePlan) -> TracePlan:
        """The plan without what the optimisations drop.

        :raises NoProfile: where the parameters ask for a call graph or for explanations alone.
        """

        self._optimized = found = optimize(self._run, plan, self._params, self._ctx)
        if found is None:
            return plan
        for note in found.applied.notes:
            self._note(note)
        return found.plan

    def _note_switching(self, plan: TracePlan, engine: TraceEngine) -> None:
        """Say what of the optimisations the engine cannot."""

        for note in unsupported(plan, engine):
            self._note(note)

    def _note_interpreter(self, program: str) -> None:
        """Say what records the functions of a Python program, which no engine sees.

        :raises JobFailed: where the program is a script of Python, and so nothing that can be traced.
        """
        from perun.collect._common.runs import python_program_of

        try:
            python = python_program_of(self._run).python
        except PerunError:
            return
        hint = "perun collect instructions --python or perun collect memory --python"
        if python != program:
            raise JobFailed(
                f"{program} is a Python program, whose functions no engine of trace sees",
                f"record it with {hint}; or name a compiled program that it runs with --binary (-b)",
            )
        self._note(f"{self._run} is a Python program: its functions are not traced, but recorded by {hint}")

    def _require_followable(self) -> None:
        """:raises UsageError: where `--follow-children` does not go with another option."""
        params = self._params
        if not params.follow_children:
            return
        if params.engine not in ("auto", "ebpf"):
            raise UsageError(
                f"--follow-children needs the engine ebpf: {params.engine} records one program only",
                "use --engine ebpf, or name the program to trace with --binary (-b)",
            )
        if params.usdt or params.dynamic or params.with_usdt:
            raise UsageError(
                "--follow-children follows functions, but not USDT probes or lines of source",
                "leave out --usdt, --dynamic and --with-usdt, or --follow-children",
            )

    def _make_profile(self, plan: TracePlan, engine: TraceEngine, recorded: TraceRecording) -> Profile:
        from perun.collect.trace.engines import calibration
        from perun.collect.trace.recorded_profile import Trace, functions_of, notes_of, summary_of, table_of

        traced = Trace(self._run, self._params, plan, engine, recorded)
        table, constant = table_of(traced, self._folder)
        functions = functions_of(plan)
        overhead = calibration.summary(engine, [one.name for one in functions])
        for note in notes_of(traced, table.total, constant, overhead):
            self._note(note)
        summary = summary_of(traced, table.total, overhead, self._notes)
        if self._optimized is not None:
            summary["optimization"] = self._optimized.region(plan, recorded)
        info = {"name": TraceCollector.name, "params": to_mapping(self._params)}
        if not self._params.quiet:
            for note in self._notes:
                self._ctx.note(note)
        profile = table.profile(functions, self._run, info, summary)
        if self._optimized is not None:
            profile["header"]["optimization"] = self._optimized.applied.head()
        return profile

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._folder.log(text)

    def _report(self, activity: str) -> None:
        if not self._params.quiet:
            self._ctx.report(activity, 0, 0)
        self._folder.log(activity)


# The plan of a trace after the optimisations: which probes stay, and how they are sampled and switched.


class OptimizedPlan(NamedTuple):
    """A plan, and what was decided for it."""

    plan: TracePlan
    applied: OptimizationResult

    def region(self, plan: TracePlan, recorded: TraceRecording) -> dict[str, Any]:
        """The entry `optimization` of the region `trace` of the profile."""
        off = sorted(shown_name(plan.probes[one].function) for one in recorded.switched_off)
        return {**self.applied.report.region(), "switched-off": off}


def optimize(run: Run, plan: TracePlan, params: TraceParams, ctx: CollectContext) -> OptimizedPlan | None:
    """Drop and sample probes of a plan as the parameters say; None where they ask for nothing.

    :raises NoProfile: where they ask for a call graph or for explanations alone.
    :raises UsageError: where nothing is left to trace, or a parameter means a version without a call graph.
    """
    request = GraphRequest(params.callgraph, params.only_extract_cg, params.extract_mixed_cg)
    if not is_wanted(params, request):
        return None
    candidates = [
        TraceCandidate(
            shown_name(probe.function),
            probe.function.symbol,
            probe.function.address if probe.path == plan.program else -1,
            probe.named,
            probe.sampling,
        )
        for probe in plan.probes
    ]
    ctx.report("making the call graph", 0, 0)
    applied = apply(run, plan.program, "trace", candidates, params, ctx, request)
    kept = [
        probe._replace(sampling=decision.sampling)
        for probe, decision in zip(plan.probes, applied.decisions, strict=True)
        if decision.kept
    ]
    if not kept and not plan.pairs:
        raise UsageError(
            f"the optimizations {', '.join(applied.report.settings.methods)} leave no function to trace",
            "see why with --dry-run, or name functions with --func (-f)",
        )
    mains = [number for number, probe in enumerate(kept) if probe.function.symbol == "main"]
    entry = mains[0] if mains else -1
    if params.follow_children:
        applied = applied._replace(
            notes=(*applied.notes, "the functions of programs that the command executes are all traced")
        )
    return OptimizedPlan(plan._replace(probes=tuple(kept), switching=applied.switching, entry=entry), applied)


def unsupported(plan: TracePlan, engine: TraceEngine) -> list[str]:
    """What the engine does not do of the switching that a plan asks for."""
    wanted = {
        "dynamic-probing": plan.switching.threshold > 0,
        "timed-sampling": plan.switching.period > 0,
    }
    return [
        f"{method} has no effect: {engine.switches[method]}"
        for method, is_asked in wanted.items()
        if is_asked and method in engine.switches
    ]
