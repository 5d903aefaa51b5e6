"""What the optimisations need: call graphs, what was recorded earlier, and static bounds.

Call graphs and what was recorded are kept as statistics of versions (`perun stats`): the graph by the name of
the program, what was recorded by the command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.collect._calls.optimizations.plan import Earlier, Seen
from perun.collect._calls.optimizations.settings import COMPLEXITIES, Settings
from perun.core.errors import PerunError, ProfileError, UsageError, VersionControlError
from perun.native.callgraph.files import from_values, to_values
from perun.native.callgraph.graph import Call, CallGraph, file_name, graph_name
from perun.native.elf import read_elf
from perun.native.image import static_graph
from perun.profile.bounds import Growth, classes
from perun.profile.untraced import sampling_of

if TYPE_CHECKING:
    from perun.collect._calls.optimizations.settings import OptimizationParams
    from perun.plugin.api import Run, Statistics
    from perun.profile.factory import Profile

_CLASSES: Final = {
    "constant": "O(1)",
    "logarithmic": "O(log n)",
    "linear": "O(n)",
    "linearithmic": "O(n log n)",
    "quadratic": "O(n^2)",
    "cubic": "O(n^3)",
    "polynomial": "O(n^100)",
    "exponential": "O(2^n)",
}
"""What each of `COMPLEXITIES` is as a class of bounds."""


class Previous(NamedTuple):
    """The call graph of an earlier version."""

    version: str
    graph: CallGraph


class Resources:
    """Finds and keeps what the optimisations of one run of a program need.

    :param program: path of the program. :param note: told what cannot be used and why.
    """

    def __init__(
        self,
        run: Run,
        program: str,
        collector: str,
        params: OptimizationParams,
        statistics: Statistics | None,
        note: Callable[[str], None],
    ) -> None:
        self._run = run
        self._program = program
        self._collector = collector
        self._params = params
        self._statistics = statistics
        self._note = note
        self._graph_name = graph_name(collector, program)
        self._seen_name = "ds--" + file_name(f"{collector}-{run}")

    def reset(self) -> None:
        """Forget all that is kept of the program and the command, of all versions."""
        if self._statistics is not None:
            self._statistics.remove(self._graph_name)
            self._statistics.remove(self._seen_name)

    def graph(self) -> CallGraph:
        """The static call graph of the program; kept by its version while the program is the same.

        :raises JobFailed: where it cannot be read, or is no ELF file for x86-64.
        """

        statistics = None if self._params.optimization_cache_off else self._statistics
        if statistics is None:
            return static_graph(self._program)
        kept = _readable(statistics.load(self._graph_name))
        elf = read_elf(self._program)
        if kept is not None and elf is not None and kept.build_id and kept.build_id == elf.build_id:
            return kept
        if kept is None and (found := statistics.earlier(self._graph_name)) is not None:
            kept = _readable(found[1])
        graph = static_graph(self._program, kept)
        statistics.save(self._graph_name, to_values(graph))
        return graph

    def typed(self, graph: CallGraph, seen: Mapping[str, Seen], kind: str) -> CallGraph:
        """The graph of another type: with the calls that were recorded, in place of those of the machine code
        (`dynamic`) or besides these (`mixed`)."""
        from dataclasses import replace

        if kind == "static":
            return graph
        recorded = [
            Call(caller, name, "dynamic")
            for name, one in seen.items()
            for caller in one.callers
            if caller in graph.functions
        ]
        if not recorded:
            self._note(f"--use-cg-type {kind}: no calls were recorded earlier; the static call graph is used")
            return graph
        known = {(call.caller, call.callee) for call in graph.calls} if kind == "mixed" else set()
        more = tuple(call for call in recorded if (call.caller, call.callee) not in known)
        return replace(graph, calls=(*graph.calls, *more) if kind == "mixed" else more, source=kind)

    def previous(self, settings: Settings) -> Previous | None:
        """The call graph of the nearest ancestor that has one, or of `diff-version`.

        :raises UsageError: where that version has none, or there is no such version.
        """

        revision = str(settings.value("diff-version"))
        if self._statistics is None:
            return None
        try:
            found = self._statistics.earlier(self._graph_name, revision)
        except VersionControlError as problem:
            raise UsageError(f"diff-version: {problem.message}", problem.hint) from None
        if found is None and revision:
            raise UsageError(
                f"diff-version: no call graph of {os.path.basename(self._program)} is kept of {revision}",
                f"make it with: perun collect -m {revision} -c {str(self._run)!r} {self._collector} "
                "--only-extract-cg",
            )
        if found is None:
            return None
        try:
            return Previous(found[0], from_values(found[1]))
        except ProfileError as problem:
            self._note(f"the call graph of {found[0][:10]} is not used: {problem.message}")
            return None

    def earlier(self, graph: CallGraph) -> Earlier:
        """What is known of the functions of the graph from earlier profiles."""
        by_uid: dict[str, list[str]] = {}
        for function in graph.functions.values():
            by_uid.setdefault(function.uid or function.name, []).append(function.name)

        def named(uid: str) -> list[str]:
            return by_uid.get(uid, [])

        seen = {}
        for uid, one in self.seen().items():
            callers = {name: calls for caller, calls in one.callers.items() for name in named(caller)}
            seen.update(dict.fromkeys(named(uid), one._replace(callers=callers)))
        bounds = {name: kind for uid, kind in self._bounds().items() for name in named(uid)}
        return Earlier(seen, bounds)

    def seen(self) -> dict[str, Seen]:
        """What was recorded of functions earlier, by their uids."""
        if self._statistics is None or self._params.optimization_cache_off:
            return {}
        kept = self._statistics.load(self._seen_name)
        if kept is None:
            found = self._statistics.earlier(self._seen_name)
            kept = found[1] if found else None
        if kept is not None:
            return _from_values(kept)
        profile = self._statistics.profile(self._collector, self._run.cmd)
        return seen_of(profile) if profile is not None else {}

    def update(self, profile: Profile) -> None:
        """Keep what the profile says of each function, besides what is known of those that it does not
        have."""
        if self._statistics is None or self._params.optimization_cache_off:
            return
        seen = {**self.seen(), **seen_of(profile)}
        self._statistics.save(
            self._seen_name, {uid: [*one[:3], dict(one.callers)] for uid, one in sorted(seen.items())}
        )

    def _bounds(self) -> dict[str, str]:
        """The classes of the static bounds by uid; none where no bounds were made."""
        if self._statistics is None:
            return {}
        profile = self._statistics.profile("bounds", None)
        if profile is None:
            return {}
        try:
            growths = classes(profile)
        except PerunError as problem:
            self._note(f"the bounds are not used: {problem.message}")
            return {}
        return {name: complexity_of(growth) for name, growth in growths.items() if growth.is_bounded}


def _readable(values: object) -> CallGraph | None:
    """The graph that was kept; None where there is none, or one of another release of Perun."""
    try:
        return from_values(values) if values is not None else None
    except ProfileError:
        return None


def complexity_of(growth: Growth) -> str:
    """The lowest of the classes that parameters name which grows as fast; `growth` is bounded."""
    reached = (name for name in COMPLEXITIES if growth <= Growth.of(_CLASSES[name]))
    return next(reached, COMPLEXITIES[-1])


def seen_of(profile: Profile) -> dict[str, Seen]:
    """What a profile of calls says of each function, by its uid; of sampled ones calls are counted up."""
    import numpy as np

    sampling = sampling_of(profile)
    times: dict[str, list[Any]] = {}
    callers: dict[str, dict[str, int]] = {}
    for group in profile.groups():
        uid = str(group.constants.get("uid", ""))
        amounts = np.asarray(group.columns.get("amount", []), np.float64)
        times.setdefault(uid, []).append(amounts)
        caller = str(group.constants.get("caller", ""))
        if caller:
            own = callers.setdefault(uid, {})
            own[caller] = own.get(caller, 0) + len(amounts) * sampling.get(uid, 1)
    seen = {}
    for uid, pieces in times.items():
        amounts = np.concatenate(pieces)
        if not len(amounts):
            continue
        low, median, high = np.percentile(amounts, (25, 50, 75)).tolist()
        calls = len(amounts) * sampling.get(uid, 1)
        seen[uid] = Seen(calls, round(median, 3), round(high - low, 3), callers.get(uid, {}))
    return seen


def _from_values(values: Mapping[str, Any]) -> dict[str, Seen]:
    """What :meth:`Resources.update` kept; what is no such thing is left out."""
    found = {}
    for uid, row in values.items():
        try:
            calls, median, iqr, callers = row
            counts = {str(caller): int(count) for caller, count in callers.items()}
            found[uid] = Seen(int(calls), float(median), float(iqr), counts)
        except (TypeError, ValueError, AttributeError):
            continue
    return found
