"""The call graph of one process: what each function costs itself, and what its calls of others cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Function(NamedTuple):
    """A function as the recording names it.

    :param name: its symbol, not demangled. :param file: source file. :param object: path of its binary.
        Each is empty where it is not known.
    """

    name: str
    file: str = ""
    object: str = ""


class Call(NamedTuple):
    """All calls of one function by another one.

    :param times: how many. :param cost: of them, with the calls that they make in turn.
    """

    times: int
    cost: int


@dataclass
class CallGraph:
    """Functions and their calls. A node is a function, or one of the call chains that lead to it.

    :ivar functions: of each node. Several nodes of one function differ in the callers.
    :ivar own: of each node what it cost itself.
    :ivar calls: of each node, by the number of the node that it calls.
    :ivar expected: what all nodes cost together, as the recording says it; None where it does not.
    :ivar pid: number of the process. :ivar command: its command line.
    """

    functions: list[Function] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    calls: list[dict[int, Call]] = field(default_factory=list)
    expected: int | None = None
    pid: int = 0
    command: str = ""

    @property
    def total(self) -> int:
        """What all nodes cost together."""
        return sum(self.own)

    @property
    def lost(self) -> int:
        """How much of the cost that the recording speaks of is missing in it; 0 for a whole recording."""
        return max(0, (self.expected or 0) - self.total)

    def node(self, function: Function) -> int:
        """A new node; its number."""
        self.functions.append(function)
        self.own.append(0)
        self.calls.append({})
        return len(self.own) - 1

    def add_call(self, caller: int, callee: int, times: int, cost: int) -> None:
        """Add calls of one node by another."""
        known = self.calls[caller].get(callee)
        before = known or Call(0, 0)
        self.calls[caller][callee] = Call(before.times + times, before.cost + cost)
