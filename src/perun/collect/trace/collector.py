"""The trace collector: plans what to trace, has an engine record it, and makes a profile of the calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from perun.collect.trace.engines.choosing import choose_engine, make_engine
from perun.collect.trace.params import ENGINES, TraceParams
from perun.core.errors import JobFailed, PerunError, UsageError
from perun.core.process.command import find_executable
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import to_mapping

if TYPE_CHECKING:
    from perun.collect.trace.engines import Engine, Recorded
    from perun.collect.trace.optimized import Optimized
    from perun.collect.trace.plan import Plan
    from perun.collect.trace.recorded_profile import WorkFolder
    from perun.profile.factory import Profile

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
        self._follow: Callable[[str], Plan] | None = None
        self._optimized: Optimized | None = None

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

    def _plan(self) -> Plan:
        from contextlib import ExitStack

        from perun.collect.trace.params import find_library
        from perun.collect.trace.plan import Plan, Wanted, make_plan, plan_of_other
        from perun.native.binary import Binary

        run = self._run
        self._require_followable()
        program = find_executable(run.command().argv[0], run.cwd, run.environ)
        paths = [str(run.cwd / self._params.binary)] if self._params.binary else [program]
        if self._params.only_extract_cg:  # a stripped program has a call graph too, but no names to trace by
            return Plan((), (), False, paths[0])
        paths += [find_library(library, run, paths[0]) for library in self._params.libs]
        if not self._params.binary:
            self._note_interpreter(program)
        wanted = Wanted(*(getattr(self._params, name) for name in Wanted._fields))
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
                    return Plan((), (), False, paths[0])

    def _optimize(self, plan: Plan) -> Plan:
        """The plan without what the optimisations drop.

        :raises NoProfile: where the parameters ask for a call graph or for explanations alone.
        """
        from perun.collect.trace.optimized import optimize

        self._optimized = found = optimize(self._run, plan, self._params, self._ctx)
        if found is None:
            return plan
        for note in found.applied.notes:
            self._note(note)
        return found.plan

    def _note_switching(self, plan: Plan, engine: Engine) -> None:
        """Say what of the optimisations the engine cannot."""
        from perun.collect.trace.optimized import unsupported

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

    def _make_profile(self, plan: Plan, engine: Engine, recorded: Recorded) -> Profile:
        from perun.collect.trace.engines import calibration
        from perun.collect.trace.recorded_profile import Traced, functions_of, notes_of, summary_of, table_of

        traced = Traced(self._run, self._params, plan, engine, recorded)
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
