"""Call stacks of one or two profiles, merged into one tree for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perun.view.flamegraph.frames import Frame
from perun.view.flamegraph.stacks import Stack


class Tree:
    """A tree of calls: a node for each call stack, callers before their callees.

    :ivar frames: the different frames.
    :ivar parents: of each node the node of its caller, -1 for an outermost call.
    :ivar frame_of: of each node the index of its frame in `frames`.
    :ivar amounts: for each profile a list with the exclusive amount of each node.
    """

    def __init__(self, profiles: Sequence[dict[Stack, float]]) -> None:
        self.frames: list[Frame] = []
        self.parents: list[int] = []
        self.frame_of: list[int] = []
        self.amounts: list[list[float]] = [[] for _ in profiles]
        self._indices: dict[Frame, int] = {}
        self._seen: dict[int, int] = {}
        self._children: dict[tuple[int, int], int] = {}
        for number, stacks in enumerate(profiles):
            for stack, amount in stacks.items():
                self.amounts[number][self._node(stack)] += amount

    def _node(self, stack: Stack) -> int:
        node = -1
        seen = self._seen
        for frame in stack:
            # Equal frames of one profile are the same object; its id is a faster key than its text.
            index = seen.get(id(frame))
            if index is None:
                index = seen[id(frame)] = self._index(frame)
            child = self._children.get((node, index))
            if child is None:
                child = self._children[node, index] = len(self.parents)
                self.parents.append(node)
                self.frame_of.append(index)
                for amounts in self.amounts:
                    amounts.append(0)
            node = child
        return node

    def _index(self, frame: Frame) -> int:
        index = self._indices.setdefault(frame, len(self.frames))
        if index == len(self.frames):
            self.frames.append(frame)
        return index

    def document(self) -> dict[str, Any]:
        """The data of the page: each name and source once, nodes as columns, parents before their children.

        `parents` holds the distance of a node to its parent, 0 for an outermost call: small numbers make a
        small page.
        """
        sources = sorted({frame.source for frame in self.frames})
        numbers = {source: number for number, source in enumerate(sources)}
        return {
            "sources": sources,
            "names": [frame.name for frame in self.frames],
            "places": [numbers[frame.source] for frame in self.frames],
            "lines": [frame.line for frame in self.frames],
            "parents": [node - parent if parent >= 0 else 0 for node, parent in enumerate(self.parents)],
            "frames": self.frame_of,
            "amounts": self.amounts,
        }
