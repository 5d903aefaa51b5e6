"""Stacks of one or two profiles as one tree, in the form that the page reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perun.view.flamegraph.frames import Frame
from perun.view.flamegraph.stacks import Stack


class Tree:
    """Calls within calls, each with what it consumed itself in each profile.

    :ivar frames: the different frames.
    :ivar parents: for each node the node that it was called by, -1 where none.
    :ivar places: for each node the position of its frame.
    :ivar amounts: for each profile the amount of each node itself.
    """

    def __init__(self, profiles: Sequence[dict[Stack, float]]) -> None:
        self.frames: list[Frame] = []
        self.parents: list[int] = []
        self.places: list[int] = []
        self.amounts: list[list[float]] = [[] for _ in profiles]
        self._numbers: dict[Frame, int] = {}
        self._seen: dict[int, int] = {}
        self._children: dict[tuple[int, int], int] = {}
        for number, stacks in enumerate(profiles):
            for stack, amount in stacks.items():
                self.amounts[number][self._node(stack)] += amount

    def _node(self, stack: Stack) -> int:
        node = -1
        seen = self._seen
        for frame in stack:
            # Frames of one profile are the same objects, of which the number is found faster than of equals.
            place = seen.get(id(frame))
            if place is None:
                place = seen[id(frame)] = self._place(frame)
            child = self._children.get((node, place))
            if child is None:
                child = self._children[node, place] = len(self.parents)
                self.parents.append(node)
                self.places.append(place)
                for amounts in self.amounts:
                    amounts.append(0)
            node = child
        return node

    def _place(self, frame: Frame) -> int:
        place = self._numbers.setdefault(frame, len(self.frames))
        if place == len(self.frames):
            self.frames.append(frame)
        return place

    def document(self) -> dict[str, Any]:
        """What the page reads: names and sources once, nodes as columns; a parent comes before its children.

        `parents` holds the distance to the parent, 0 where there is none.
        """
        sources = sorted({frame.source for frame in self.frames})
        numbers = {source: number for number, source in enumerate(sources)}
        return {
            "sources": sources,
            "names": [frame.name for frame in self.frames],
            "places": [numbers[frame.source] for frame in self.frames],
            "lines": [frame.line for frame in self.frames],
            "parents": [node - parent if parent >= 0 else 0 for node, parent in enumerate(self.parents)],
            "frames": self.places,
            "amounts": self.amounts,
        }
