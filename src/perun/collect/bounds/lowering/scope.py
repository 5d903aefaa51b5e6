"""Names of a function: which variable each means, which are assigned, and which may change behind its back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pycparser import c_ast

from perun.collect.bounds.lowering.types import OTHER, Type

LOOPS = (c_ast.For, c_ast.While, c_ast.DoWhile)


@dataclass(frozen=True)
class Variable:
    """A variable of the program: its unique key and its type."""

    key: str
    type: Type


class Scopes:
    """The blocks around a place, the innermost last."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, Variable]] = [{}]
        self._used: dict[str, int] = {}

    def enter(self) -> None:
        """A block begins."""
        self._blocks.append({})

    def leave(self) -> None:
        """It ends."""
        self._blocks.pop()

    def declare(self, name: str, kind: Type) -> Variable:
        """A new variable, which hides others of that name."""
        count = self._used.get(name, 0) + 1
        self._used[name] = count
        made = Variable(name if count == 1 else f"{name}#{count}", kind)
        self._blocks[-1][name] = made
        return made

    def find(self, name: str) -> Variable | None:
        """What a name means here."""
        return next((block[name] for block in reversed(self._blocks) if name in block), None)


@dataclass
class Mentions:
    """What the text of a function says of names, whatever block they are of."""

    assigned: dict[str, int] = field(default_factory=dict)
    """How often each is assigned; a declaration in a loop or after a label counts twice."""
    addressed: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    """Fields that are assigned."""
    wholes: list[Any] = field(default_factory=list)
    """What is assigned through pointers or filled by the C library: it may be a structure."""
    declared: list[Any] = field(default_factory=list)
    """The local declarations."""
    calls: set[str] = field(default_factory=set)
    """Functions that are called by name; "" for a call through a pointer."""
    labels: bool = False


def walk(node: Any) -> Iterator[Any]:
    """A node and all below it, without recursion."""
    work = [node]
    while work:
        one = work.pop()
        yield one
        work.extend(child for _, child in one.children())


def root(node: Any) -> str | None:
    """The variable that an access path starts from: `a` of `a->b.c` and of `a[1]`."""
    while isinstance(node, (c_ast.StructRef, c_ast.ArrayRef, c_ast.Cast)):
        node = node.expr if isinstance(node, c_ast.Cast) else node.name
    return node.name if isinstance(node, c_ast.ID) else None


def mentions(body: Any) -> Mentions:
    """Read a function's body for assignments, addresses and calls."""
    found = Mentions()
    found.labels = any(isinstance(node, c_ast.Label) for node in walk(body))
    _read(body, found)
    return found


def _read(body: Any, found: Mentions) -> None:
    work = [(body, found.labels)]
    while work:
        node, again = work.pop()
        times = 2 if again else 1
        if isinstance(node, c_ast.Assignment):
            _assigned(node.lvalue, found, times)
        elif isinstance(node, c_ast.UnaryOp) and node.op in ("++", "p++", "--", "p--"):
            _assigned(node.expr, found, times)
        elif isinstance(node, c_ast.Decl) and isinstance(node.name, str):
            found.declared.append(node)
            if node.init is not None:
                found.assigned[node.name] = found.assigned.get(node.name, 0) + times
        elif isinstance(node, c_ast.UnaryOp) and node.op == "&":
            name = root(node.expr)
            if name is not None and not _through(node.expr):
                found.addressed.add(name)
            if isinstance(node.expr, c_ast.StructRef):
                found.addressed.add(f".{node.expr.field.name}")
        elif isinstance(node, c_ast.FuncCall):
            found.calls.add(node.name.name if isinstance(node.name, c_ast.ID) else "")
            found.wholes += filled(node)
        inside = again or isinstance(node, LOOPS)
        work.extend((child, inside) for _, child in node.children())


def _through(node: Any) -> bool:
    """Whether a path goes through a pointer or into an array, so that its root itself has no address taken.
    """
    while isinstance(node, (c_ast.StructRef, c_ast.ArrayRef)):
        if isinstance(node, c_ast.ArrayRef) or node.type == "->":
            return True
        node = node.name
    return False


def _assigned(target: Any, found: Mentions, times: int) -> None:
    if isinstance(target, c_ast.ID):
        found.assigned[target.name] = found.assigned.get(target.name, 0) + times
    elif isinstance(target, c_ast.StructRef):
        found.fields.add(target.field.name)
    if not isinstance(target, c_ast.ID):
        found.wholes.append(target)


def filled(call: c_ast.FuncCall) -> list[Any]:
    """What a call of the C library fills with bytes: `*a` of `memset(a, 0, n)`."""
    at = _FILLING.get(call.name.name) if isinstance(call.name, c_ast.ID) else None
    if at is None or call.args is None or len(call.args.exprs) <= at:
        return []
    pointer = call.args.exprs[at]
    while isinstance(pointer, c_ast.Cast):
        pointer = pointer.expr
    return [c_ast.UnaryOp("*", pointer)]


_FILLING = {"memset": 0, "memcpy": 0, "memmove": 0, "bzero": 0, "fread": 0, "read": 1}
"""Functions of the C library that write what an argument points to, and the index of that."""


def unknown_variable(name: str) -> Variable:
    """A variable that nothing declares: nothing is known of it at any read."""
    return Variable(name, OTHER)
