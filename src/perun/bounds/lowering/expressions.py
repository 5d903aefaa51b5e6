"""Lowering of expressions: to linear values and, where they have effects or limits, to steps of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pycparser import c_ast

from perun.bounds.lowering.graph import Arithmetic, GraphBuilder
from perun.bounds.lowering.places import SymbolPlaces
from perun.bounds.lowering.types import (
    INT,
    NO_RETURN,
    OTHER,
    SIZE,
    STRANGE,
    VOID,
    Type,
    Variable,
    filled,
    folded,
    number_of,
)
from perun.bounds.program import Linear, Location, constant, variable

COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_INCREMENTS = {"++": 1, "p++": 1, "--": -1, "p--": -1}


class ExpressionValue(NamedTuple):
    """A value: linear, or `None` where nothing is known; and its type."""

    linear: Linear | None
    type: Type


UNKNOWN = ExpressionValue(None, OTHER)


class Expressions:
    """Lowers the expressions of one function.

    `costly` are the functions whose calls count, with the names of their parameters.
    """

    def __init__(
        self,
        graph: GraphBuilder,
        places: SymbolPlaces,
        costly: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._costly = costly
        self.graph = graph
        self.places = places
        self.arithmetic = Arithmetic(graph)

    def value(self, node: Any) -> ExpressionValue:
        """The value of an expression; its effects become steps."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            return method(node)  # type: ignore[no-any-return]
        for _, child in node.children() if node is not None else ():
            self.value(child)
        return UNKNOWN

    def unknown(self, kind: Type) -> ExpressionValue:
        """Any value of a type."""
        if kind.narrow:
            return ExpressionValue(self.graph.between(*kind.range), kind)
        if kind.unsigned:
            return ExpressionValue(self.graph.between(0, None), kind)
        return ExpressionValue(None, kind)

    def _constant(self, node: c_ast.Constant) -> ExpressionValue:
        number = number_of(node)
        return UNKNOWN if number is None else ExpressionValue(constant(number), INT)

    def _id(self, node: c_ast.ID) -> ExpressionValue:
        found = self.places.named(node.name)
        if isinstance(found, int):
            return ExpressionValue(constant(found), INT)
        if found is None:
            return UNKNOWN
        if found.type.kind == "array":
            self.places.external.setdefault(found.key, found.key)
            return ExpressionValue(variable(found.key), Type("pointer", target=found.type.target))
        return (
            ExpressionValue(variable(found.key), found.type)
            if found.type.tracked
            else ExpressionValue(None, found.type)
        )

    def _structref(self, node: c_ast.StructRef) -> ExpressionValue:
        found = self.places.field(node)
        if found is not None:
            return ExpressionValue(variable(found.key), found.type)
        inner: Any = node
        while isinstance(inner, c_ast.StructRef):
            inner = inner.name
        if not isinstance(inner, c_ast.ID):
            self.value(inner)
        return self.unknown(self.places.type_of_field(node))

    def _arrayref(self, node: c_ast.ArrayRef) -> ExpressionValue:
        kind = self.places.type_of(node)
        self.value(node.name)
        self.value(node.subscript)
        return self.unknown(kind)

    def _cast(self, node: c_ast.Cast) -> ExpressionValue:
        value = self.value(node.expr)
        return self.converted(value, self.places.types.of(node.to_type))

    def _exprlist(self, node: c_ast.ExprList) -> ExpressionValue:
        value = UNKNOWN
        for each in node.exprs:
            value = self.value(each)
        return value

    def _ternaryop(self, node: c_ast.TernaryOp) -> ExpressionValue:
        yes, no, end = self.graph.location(), self.graph.location(), self.graph.location()
        name = self.graph.temporary()
        self.branch(node.cond, yes, no)
        kinds = []
        for start, side in ((yes, node.iftrue), (no, node.iffalse)):
            self.graph.at = start
            value = self.value(side)
            kinds.append(value.type)
            self.graph.edge(end, (), [(name, value.linear)])
        self.graph.at = end
        if kinds[0] == kinds[1]:
            return ExpressionValue(variable(name), kinds[0])
        return ExpressionValue(variable(name), next((one for one in kinds if one.kind == "pointer"), INT))

    def _truth(self, node: Any) -> ExpressionValue:
        """The value 0 or 1 of a condition."""
        yes, no, end = self.graph.location(), self.graph.location(), self.graph.location()
        name = self.graph.temporary()
        self.branch(node, yes, no)
        for start, number in ((yes, 1), (no, 0)):
            self.graph.at = start
            self.graph.edge(end, (), [(name, constant(number))])
        self.graph.at = end
        return ExpressionValue(variable(name), INT)

    def _unaryop(self, node: c_ast.UnaryOp) -> ExpressionValue:
        if node.op in _INCREMENTS:
            return self._increment(node)
        if node.op == "!":
            return self._truth(node)
        if node.op == "sizeof":
            return self._sizeof(node.expr)
        if node.op == "*":
            kind = self.places.type_of(node)
            self.value(node.expr)
            return self.unknown(kind)
        if node.op == "&":
            return self._address(node)
        value = self.value(node.expr)
        if node.op == "+" or value.linear is None:
            return value
        if node.op in ("-", "~") and (not value.type.unsigned or value.type.narrow):
            return ExpressionValue(-value.linear if node.op == "-" else -value.linear - 1, INT)
        return self.unknown(value.type)

    def _address(self, node: c_ast.UnaryOp) -> ExpressionValue:
        if isinstance(node.expr, c_ast.ArrayRef):
            kind = self.places.type_of(node.expr)
            base, offset = self.value(node.expr.name), self.value(node.expr.subscript)
            if base.linear is not None and offset.linear is not None:
                return ExpressionValue(base.linear + offset.linear, Type("pointer", target=kind))
        elif not isinstance(node.expr, (c_ast.ID, c_ast.StructRef)):
            self.value(node.expr)
        return ExpressionValue(None, Type("pointer", target=self.places.type_of(node.expr)))

    def _sizeof(self, inner: Any) -> ExpressionValue:
        named = isinstance(inner, c_ast.Typename)
        kind = self.places.types.of(inner) if named else self.places.type_of(inner)
        return ExpressionValue(None if kind.size is None else constant(kind.size), SIZE)

    def _increment(self, node: c_ast.UnaryOp) -> ExpressionValue:
        change = _INCREMENTS[node.op]
        old = self.value(node.expr)
        moved = ExpressionValue(None if old.linear is None else old.linear + change, old.type)
        self.store(node.expr, moved, decrement=change < 0)
        if not node.op.startswith("p"):
            return self.value(node.expr) if isinstance(node.expr, c_ast.ID) else moved
        if old.linear is None or old.type.narrow or (old.type.unsigned and change < 0):
            return self._before(node, old)
        return ExpressionValue(old.linear - change, old.type)

    def _before(self, node: c_ast.UnaryOp, old: ExpressionValue) -> ExpressionValue:
        """The value before an increment that may wrap around: kept aside by `store`."""
        return ExpressionValue(None if self._kept is None else variable(self._kept), old.type)

    _kept: str | None = None

    def _binaryop(self, node: c_ast.BinaryOp) -> ExpressionValue:
        if node.op in ("&&", "||") or node.op in COMPARISONS:
            return self._truth(node)
        left, right = self.value(node.left), self.value(node.right)
        return self.operation(node.op, left, right)

    def operation(self, operator: str, left: ExpressionValue, right: ExpressionValue) -> ExpressionValue:
        """The value of an arithmetic operation."""
        a, b = left.linear, right.linear
        if left.type.kind in ("pointer", "array") or right.type.kind in ("pointer", "array"):
            return self._pointer_operation(operator, left, right)
        kind = _common(left.type, right.type)
        if kind == OTHER:
            return UNKNOWN
        if a is not None and b is not None and a.is_constant and b.is_constant:
            number = folded(operator, a.constant, b.constant)
            return ExpressionValue(None if number is None else constant(number), kind)
        if operator in ("+", "-") and a is not None and b is not None:
            return ExpressionValue(a + b if operator == "+" else a - b, kind)
        if operator == "*" and a is not None and b is not None and (a.is_constant or b.is_constant):
            return ExpressionValue(a.times(b.constant) if b.is_constant else b.times(a.constant), kind)
        if operator == "<<" and a is not None and b is not None and b.is_constant and 0 <= b.constant < 63:
            return ExpressionValue(a.times(1 << b.constant), kind)
        positive = (left.type.unsigned, right.type.unsigned)
        limited = self.arithmetic.limited(operator, a, b, positive)
        if limited is not None:
            return ExpressionValue(limited, kind)
        return self.unknown(kind) if kind.unsigned else ExpressionValue(None, kind)

    def _pointer_operation(
        self, operator: str, left: ExpressionValue, right: ExpressionValue
    ) -> ExpressionValue:
        a, b = left.linear, right.linear
        pointers = [each for each in (left, right) if each.type.kind in ("pointer", "array")]
        if operator not in ("+", "-") or a is None or b is None:
            return ExpressionValue(None, INT if len(pointers) == 2 else pointers[0].type)
        if len(pointers) == 2:
            same = left.type.target == right.type.target
            return ExpressionValue(a - b if same and operator == "-" else None, Type("integer", 64))
        return ExpressionValue(a + b if operator == "+" else a - b, pointers[0].type)

    def _assignment(self, node: c_ast.Assignment) -> ExpressionValue:
        value = self.value(node.rvalue)
        decrement = False
        if node.op != "=":
            old = self.value(node.lvalue)
            value = self.operation(node.op[:-1], old, value)
            decrement = node.op == "-="
        self.store(node.lvalue, value, decrement)
        if isinstance(node.lvalue, c_ast.ID):
            return self._id(node.lvalue)
        return value

    def store(self, target: Any, value: ExpressionValue, decrement: bool = False) -> None:
        """Assign a value to what an expression names."""
        while isinstance(target, c_ast.Cast):
            target = target.expr
        if not isinstance(target, c_ast.ID):
            self.graph.havoc(self.places.changed_as_whole(target))
        if isinstance(target, c_ast.ID):
            found = self.places.named(target.name)
            if isinstance(found, Variable):
                self.assign(found, value, decrement)
                if not found.type.tracked:
                    self._forget(found.key)
            return
        if isinstance(target, c_ast.StructRef):
            place = self.places.field(target)
            key = place.key if place is not None else None
            self.graph.havoc(self.places.changed_by_store(target.field.name) - {key})
            if place is not None:
                self.assign(place, value, decrement)
            return
        if isinstance(target, c_ast.ArrayRef):
            self.value(target.name)
            self.value(target.subscript)
            if self.places.type_of(target.name).kind == "array":
                return
        elif isinstance(target, c_ast.UnaryOp):
            self.value(target.expr)
        self.graph.havoc(self.places.changed_by_store(None))

    def _forget(self, base: str) -> None:
        """A structure is assigned as a whole."""
        self.graph.havoc(key for key, each in self.places.fields.items() if each.root == base)

    def assign(self, target: Variable, value: ExpressionValue, decrement: bool = False) -> None:
        """Assign a value to a variable, as its type takes it."""
        if not target.type.tracked:
            return
        value = self._as(value, target.type)
        self._kept = None
        if value.linear is None:
            limited = self.unknown(target.type)
            self.graph.step((), [(target.key, limited.linear)])
            return
        ways = self.arithmetic.conversion(target.key, value.linear, value.type, target.type, decrement)
        if len(ways) > 1:
            self._kept = self.graph.temporary()
            self.graph.step((), [(self._kept, variable(target.key))])
        self.graph.either(ways)

    def converted(self, value: ExpressionValue, kind: Type) -> ExpressionValue:
        """A value converted to a type, by a cast."""
        if kind.kind == "other" or (kind.kind == "integer" and value.type.kind == "other"):
            return self.unknown(kind)
        value = self._as(value, kind)
        if value.linear is None:
            return self.unknown(kind)
        ways = self.arithmetic.conversion("", value.linear, value.type, kind, False)
        if len(ways) == 1 and ways[0][1][0][1] == value.linear:
            return ExpressionValue(value.linear, kind)
        name = self.graph.temporary()
        self.graph.either(self.arithmetic.conversion(name, value.linear, value.type, kind, False))
        return ExpressionValue(variable(name), kind)

    def _as(self, value: ExpressionValue, kind: Type) -> ExpressionValue:
        """Forget the number of a pointer that from now on counts other units, or is none."""
        if kind.kind == "pointer" and value.linear is not None and not value.linear.is_constant:
            inner = value.type.target if value.type.kind in ("pointer", "array") else None
            if inner is None or not _same_unit(inner, kind.target or OTHER):
                return ExpressionValue(None, kind)
        if kind.kind == "integer" and value.type.kind in ("pointer", "array"):
            return ExpressionValue(None, kind)
        return value

    def _funccall(self, node: c_ast.FuncCall) -> ExpressionValue:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if not name:
            self.value(node.name)
        arguments = [self.value(each) for each in (node.args.exprs if node.args is not None else ())]
        if name == "__builtin_expect" and arguments:
            return arguments[0]
        if name in STRANGE:
            assembly = name == "__perun_asm"
            self.graph.program.unknown = "it has inline assembly" if assembly else f"it calls {name}"
        if name in self._costly:
            given = zip(self._costly[name], (each.linear for each in arguments), strict=False)
            self.graph.call(name, [(parameter, value) for parameter, value in given if parameter])
        for each in filled(node):
            self.graph.havoc(self.places.changed_as_whole(each))
        self.graph.havoc(self.places.changed_by_call(node))
        if name in NO_RETURN:
            self.graph.at = None
            return UNKNOWN
        kind = self.places.result_of(node)
        if name in ("strlen", "strnlen", "fread", "fwrite"):
            kind = SIZE
        if name in ("abs", "labs", "llabs") and len(arguments) == 1 and arguments[0].linear is not None:
            return ExpressionValue(self.arithmetic.absolute(arguments[0].linear), INT)
        if name in ("rand", "random"):
            return ExpressionValue(self.graph.between(0, None), INT)
        return self.unknown(kind)

    def branch(self, node: Any, yes: Location, no: Location) -> None:
        """Continue at one of two locations, by a condition."""
        if isinstance(node, c_ast.UnaryOp) and node.op == "!":
            self.branch(node.expr, no, yes)
            return
        if isinstance(node, c_ast.BinaryOp) and node.op in ("&&", "||"):
            middle = self.graph.location()
            self.branch(node.left, *((middle, no) if node.op == "&&" else (yes, middle)))
            self.graph.at = middle
            self.branch(node.right, yes, no)
            return
        if isinstance(node, c_ast.ExprList):
            for each in node.exprs[:-1]:
                self.value(each)
            self.branch(node.exprs[-1], yes, no)
            return
        if isinstance(node, c_ast.FuncCall) and getattr(node.name, "name", "") == "__builtin_expect":
            self.branch(node.args.exprs[0], yes, no)
            return
        if isinstance(node, c_ast.BinaryOp) and node.op in COMPARISONS:
            self._compare(node, yes, no)
            return
        value = self.value(node)
        if value.type.kind == "pointer" and value.linear is not None and not value.linear.is_constant:
            value = ExpressionValue(None, value.type)
        self._fork("!=", value.linear, yes, no)

    def _compare(self, node: c_ast.BinaryOp, yes: Location, no: Location) -> None:
        left, right = self.value(node.left), self.value(node.right)
        a, b = left.linear, right.linear
        pointers = [each.type.kind == "pointer" for each in (left, right)]
        if a is None or b is None or (_common(left.type, right.type) == OTHER and not any(pointers)):
            self._fork(node.op, None, yes, no)
            return
        if any(pointers) and (not all(pointers) or left.type.target != right.type.target):
            self._fork(node.op, None, yes, no)
            return
        if _common(left.type, right.type).unsigned:
            a, b = (_converted(each, _common(left.type, right.type)) for each in (a, b))
        self._fork(node.op, a - b, yes, no)

    def _fork(self, operator: str, value: Linear | None, yes: Location, no: Location) -> None:
        for op, target in ((operator, yes), (_OPPOSITE[operator], no)):
            for guards in ways(op, value):
                self.graph.edge(target, guards)
        self.graph.at = None


def ways(operator: str, value: Linear | None) -> list[list[Linear]]:
    """The guards under which `value operator 0` holds: one list for each case."""
    if value is None:
        return [[]]
    return {
        "<": [[-value - 1]], "<=": [[-value]], ">": [[value - 1]], ">=": [[value]],
        "==": [[value, -value]], "!=": [[value - 1], [-value - 1]],
    }[operator]  # fmt: skip


def _converted(value: Linear, kind: Type) -> Linear:
    """A negative constant as the large number that an unsigned type makes of it."""
    return constant(value.constant % (1 << kind.bits)) if value.is_constant else value


def _same_unit(one: Type, other: Type) -> bool:
    if one == other:
        return True
    sizes = [1 if each == VOID else each.size for each in (one, other)]
    return None not in sizes and sizes[0] == sizes[1]


def _common(left: Type, right: Type) -> Type:
    """The type of an operation on two integers (C11, 6.3.1.8), `OTHER` where one is none."""
    if left.kind != "integer" or right.kind != "integer":
        return OTHER
    bits = max(left.bits, right.bits, 32)
    signed = not any(each.unsigned and each.bits == bits for each in (left, right))
    return Type("integer", bits, signed)
