"""Levels of a graph with circles: longest ways from an entry in the graph of strongly connected components.

Components are found by Tarjan's algorithm (SIAM Journal on Computing 1, 1972), without recursion: call
graphs are deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def components_from(entry: str, callees: Callable[[str], Iterable[str]]) -> list[list[str]]:
    """The strongly connected components that can be reached from `entry`, callers before their callees."""
    number: dict[str, int] = {entry: 0}
    lowest: dict[str, int] = {entry: 0}
    stack, open_nodes = [entry], {entry}
    walk: list[tuple[str, Iterator[str]]] = [(entry, iter(callees(entry)))]
    found: list[list[str]] = []
    while walk:
        node, rest = walk[-1]
        callee = next(rest, None)
        if callee is None:
            walk.pop()
            if walk:
                parent = walk[-1][0]
                lowest[parent] = min(lowest[parent], lowest[node])
            if lowest[node] == number[node]:
                component = [stack.pop()]
                while component[-1] != node:
                    component.append(stack.pop())
                open_nodes.difference_update(component)
                found.append(component[::-1])
        elif callee not in number:
            number[callee] = lowest[callee] = len(number)
            stack.append(callee)
            open_nodes.add(callee)
            walk.append((callee, iter(callees(callee))))
        elif callee in open_nodes:
            lowest[node] = min(lowest[node], number[callee])
    return found[::-1]


def levels_from(entry: str, callees: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """The level of each node that can be reached: the longest way from `entry` to its component."""
    components = components_from(entry, callees)
    component_of = {node: place for place, nodes in enumerate(components) for node in nodes}
    level = [0] * len(components)
    for place, nodes in enumerate(components):
        for node in nodes:
            for callee in callees(node):
                other = component_of[callee]
                if other != place:
                    level[other] = max(level[other], level[place] + 1)
    return {node: level[place] for node, place in component_of.items()}

