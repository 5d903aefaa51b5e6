"""What the optimisations work on, and what comes out: functions kept or dropped, and how often they are
recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.settings import Settings

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Seen(NamedTuple):
    """What was recorded of a function: all its calls, the median and the interquartile range of their times
    in microseconds, and how many came from which caller."""

    calls: int
    median: float = 0.0
    iqr: float = 0.0
    callers: Mapping[str, int] = NOTHING


class Earlier(NamedTuple):
    """What is known of functions from earlier profiles, by their names in the graph.

    :ivar seen: what was recorded. :ivar bounds: the class of the static bound, one of `COMPLEXITIES`.
    """

    seen: Mapping[str, Seen] = NOTHING
    bounds: Mapping[str, str] = NOTHING


class Switching(NamedTuple):
    """What an engine does while the program runs.

    :ivar threshold: recorded calls after which a function is no longer probed; 0 for no limit.
    :ivar reattach: whether it is probed again later.
    :ivar period: seconds after which all probes but that of the entry are switched off, or on again; 0 for
        never.
    """

    threshold: int = 0
    reattach: bool = False
    period: float = 0.0


class Effect(NamedTuple):
    """What one method wants: functions to drop with the reasons, functions to sample, and what the engine
    does."""

    dropped: Mapping[str, str] = NOTHING
    sampling: Mapping[str, int] = NOTHING
    switching: Switching = Switching()


Optimization = Callable[["CallGraph", "CallGraph | None", Earlier, "Settings"], Effect]
"""A method: from the graph of the version, that of the earlier version (None where none is known), what
earlier profiles say, and the settings."""


class Decision(NamedTuple):
    """Whether a function is traced, by which method that was decided, and why; one call in `sampling` is
    recorded."""

    kept: bool
    method: str = ""
    reason: str = ""
    sampling: int = 1


class Choice(NamedTuple):
    """All decisions by the names of functions, and what the engine does while the program runs.

    :ivar changed: the functions that changed since the earlier version, with what changed; no method drops
        these.
    :ivar renamed: new names to old ones. :ivar notes: what a method lacked.
    """

    decisions: Mapping[str, Decision] = NOTHING
    switching: Switching = Switching()
    changed: Mapping[str, str] = NOTHING
    renamed: Mapping[str, str] = NOTHING
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the functions to trace."""
        return tuple(name for name, one in self.decisions.items() if one.kept)
