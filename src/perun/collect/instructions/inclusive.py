"""What functions cost together with all that they call, from call graphs, and how often they were called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from perun.collect.instructions.graph import CallGraph
from perun.collect.instructions.tree import Frame, Namer, components


class Inclusive:
    """Sums over the call graphs of several processes.

    :ivar calls: how often each function was called, by itself too.
    """

    def __init__(self) -> None:
        self.calls: Counter[Frame] = Counter()
        self._exact: Counter[Frame] = Counter()
        self._in_circles: set[Frame | int] = set()

    def add(self, graph: CallGraph, name: Namer) -> None:
        """Take in the call graph of one process."""
        # What has no frame of its own is looked at all the same: functions may call each other through it.
        numbers: dict[Frame | int, int] = {}
        places = [numbers.setdefault(name(node) or node, len(numbers)) for node in range(len(graph.own))]
        functions = list(numbers)
        calls: list[set[int]] = [set() for _ in functions]
        for node, place in enumerate(places):
            cost = graph.own[node]
            for callee, call in graph.calls[node].items():
                other = places[callee]
                self._count(functions[other], call.times)
                if other != place:
                    cost += call.cost
                    calls[place].add(other)
            function = functions[place]
            if isinstance(function, Frame):
                self._exact[function] += cost
        for circle in components([sorted(one) for one in calls]):
            if len(circle) > 1:
                self._in_circles.update(functions[place] for place in circle)

    def _count(self, function: Frame | int, times: int) -> None:
        if isinstance(function, Frame):
            self.calls[function] += times

    def sums(self, in_tree: Mapping[Frame, int], own: Mapping[Frame, int]) -> dict[Frame, int]:
        """What each function cost with all that it called.

        Exact, but for functions that call each other in circles: of these, costs of calls in the graph
        count the same instructions more than once, so what the call stacks say is taken.

        :param in_tree: as the stacks say it. :param own: what each cost itself.
        """
        return {
            frame: max(amount, own.get(frame, 0))
            if frame in self._in_circles or frame not in self._exact
            else self._exact[frame]
            for frame, amount in in_tree.items()
        }
