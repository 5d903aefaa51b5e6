"""Variables that expressions name: plain ones, and fields that stand for one value as long as their base
does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pycparser import c_ast

from perun.bounds.lowering.types import (
    HARMLESS,
    INT,
    NO_RETURN,
    OTHER,
    Mentions,
    Scopes,
    SideEffects,
    Type,
    Types,
    Variable,
    mentions,
    root,
)

if TYPE_CHECKING:
    from perun.bounds.front.unit import CFunction, TranslationUnit


@dataclass(frozen=True)
class Field:
    """A field that is a variable: the variable that its path starts from, and the fields along it."""

    root: str
    fields: tuple[str, ...]


class SymbolPlaces:
    """What each name and field of a function means."""

    def __init__(self, unit: TranslationUnit, mentioned: Mentions, effects: dict[str, SideEffects]) -> None:
        self.unit = unit
        self.types = Types(unit)
        self.scopes = Scopes()
        self.mentioned = mentioned
        self.effects = effects
        self.globals: dict[str, Variable] = {}
        self.fields: dict[str, Field] = {}
        self.external: dict[str, str] = {}
        """Variables that have a value when the function starts, and the name of that value in bounds."""
        self.typed: dict[str, Type] = {}
        self.addressed: set[str] = set()
        """Variables whose address is known to others."""

    def local(self, name: str, kind: Type) -> Variable:
        """A new local variable."""
        made = self.scopes.declare(name, kind)
        self.typed[made.key] = kind
        if name in self.mentioned.addressed:
            self.addressed.add(made.key)
        return made

    def remember(self, earlier: SymbolPlaces) -> None:
        """Know the globals and fields that were found before."""
        self.globals.update(earlier.globals)
        self.fields.update(earlier.fields)
        self.typed.update(earlier.typed)
        self.external.update(
            (key, text) for key, text in earlier.external.items() if key in self.globals or key in self.fields
        )

    def named(self, name: str) -> Variable | int | None:
        """The variable of a name, the value of a constant; `None` where nothing declares it."""
        found = self.scopes.find(name)
        if found is not None:
            return found
        if name in self.unit.constants:
            return self.unit.constants[name]
        if name in self.globals:
            return self.globals[name]
        declared = self.unit.globals.get(name)
        if declared is None:
            return None
        kind = self.types.of(declared)
        if "const" in (declared.quals or []) and kind.kind == "integer" and declared.init is not None:
            value = self.types.constant(declared.init)
            if value is not None:
                return value
        made = Variable(name, kind)
        self.globals[name] = made
        self.typed[name] = kind
        if kind.tracked:
            self.external[name] = name
        return made

    def field(self, node: c_ast.StructRef) -> Variable | None:
        """The variable of `s.f` or `a->f`, where `a` is set but once; `None` where it may mean several
        places."""
        names: list[str] = []
        text = ""
        inner: Any = node
        pointers = 0
        while isinstance(inner, c_ast.StructRef):
            names.append(inner.field.name)
            text = f"{inner.type}{inner.field.name}{text}"
            pointers += inner.type == "->"
            if inner.type == "->" and isinstance(inner.name, c_ast.StructRef):
                between = inner.name.field.name
                if between in self.mentioned.fields or f".{between}" in self.mentioned.addressed:
                    return None
            inner = inner.name
        if not isinstance(inner, c_ast.ID):
            return None
        base = self.named(inner.name)
        if not isinstance(base, Variable) or (pointers and not self._fixed(inner.name, base)):
            return None
        kind = self.type_of_field(node)
        if not kind.tracked:
            return None
        key = f"{base.key}{text}"
        if key not in self.fields:
            self.fields[key] = Field(base.key, tuple(names))
            self.typed[key] = kind
            if pointers or base.key in self.globals or base.key in self.external:
                self.external[key] = key
        return Variable(key, kind)

    def _fixed(self, name: str, base: Variable) -> bool:
        """Whether a pointer keeps its value from its first use to the last."""
        limit = 0 if base.key in self.external or base.key in self.globals else 1
        return self.mentioned.assigned.get(name, 0) <= limit and name not in self.mentioned.addressed

    def type_of_field(self, node: c_ast.StructRef) -> Type:
        """The type of a field."""
        base = self.type_of(node.name)
        if node.type == "->" or base.kind in ("pointer", "array"):
            base = base.target or OTHER
        return self.types.field(base, node.field.name)

    def type_of(self, node: Any) -> Type:
        """The type of an expression, without evaluating it; `OTHER` where it is not known."""
        if isinstance(node, c_ast.ID):
            found = self.named(node.name)
            return found.type if isinstance(found, Variable) else INT if found is not None else OTHER
        if isinstance(node, c_ast.StructRef):
            return self.type_of_field(node)
        if isinstance(node, c_ast.ArrayRef) or (isinstance(node, c_ast.UnaryOp) and node.op == "*"):
            return self.type_of(node.name if isinstance(node, c_ast.ArrayRef) else node.expr).target or OTHER
        if isinstance(node, c_ast.Cast):
            return self.types.of(node.to_type)
        if isinstance(node, c_ast.UnaryOp):
            inner = self.type_of(node.expr)
            return Type("pointer", target=inner) if node.op == "&" else inner
        if isinstance(node, c_ast.FuncCall):
            return self.result_of(node)
        if isinstance(node, c_ast.BinaryOp):
            left, right = self.type_of(node.left), self.type_of(node.right)
            return left if left.kind in ("pointer", "array") else right
        if isinstance(node, c_ast.TernaryOp):
            return self.type_of(node.iftrue)
        return INT if isinstance(node, c_ast.Constant) and "int" in node.type else OTHER

    def result_of(self, node: c_ast.FuncCall) -> Type:
        """The type of what a call returns."""
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        declared = self.unit.prototypes.get(name)
        kind = declared.type if declared is not None else None
        if kind is None:
            for each in self.unit.functions:
                if each.name == name:
                    kind = each.node.decl.type
        return self.types.of(kind.type) if isinstance(kind, c_ast.FuncDecl) else OTHER

    def changed_by_store(self, field: str | None) -> set[str]:
        """Variables that a store through a pointer may change: all of known address, or fields of that
        name."""
        if field is None:
            return {key for key in self.addressed if self._is_variable(key)} | self._exposed_fields()
        return {key for key, each in self.fields.items() if field in each.fields}

    def changed_as_whole(self, target: Any) -> set[str]:
        """Fields that a store into a place changes because it is a structure."""
        kind = self.type_of(target)
        if kind.kind not in ("structure", "array"):
            return set()
        return {key for name in self.types.field_names(kind) for key in self.changed_by_store(name)}

    def _exposed_fields(self) -> set[str]:
        return {
            key for key, each in self.fields.items()
            if each.root in self.addressed
            or any(f".{name}" in self.mentioned.addressed for name in each.fields)
        }  # fmt: skip

    def _is_variable(self, key: str) -> bool:
        return key not in self.fields

    def changed_by_call(self, node: c_ast.FuncCall) -> set[str]:
        """Variables that a call may change."""
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        changed = self._given_addresses(node)
        if name in HARMLESS:
            return changed
        changed |= self.changed_by_store(None)
        known = self.effects.get(name)
        anything = not name or any(
            isinstance(each, c_ast.ID) and each.name in self.effects for each in self._arguments(node)
        )
        for key in self.globals:
            declared = self.unit.globals.get(key)
            shared = anything or declared is None or "static" not in (declared.storage or [])
            if (key in known.written or (known.unknown and shared)) if known is not None else shared:
                changed.add(key)
        given = [
            (root(_pointed(each)), self._part(each)) for each in self._arguments(node)
            if not self._is_number(each)
        ]  # fmt: skip
        for key, each in self.fields.items():
            base = each.root.partition("#")[0]
            passed = each.root in self.globals or any(
                name == base and (part is None or part & set(each.fields)) for name, part in given
            )
            by_unknown = (known is None or known.unknown) and passed
            by_known = known is not None and (
                known.fields & set(each.fields) or (each.root in known.written and each.root in self.globals)
            )
            if by_unknown or by_known:
                changed.add(key)
        return changed

    def _is_number(self, node: Any) -> bool:
        """Whether an argument is a number that was read from a place, which leads to nothing."""
        read = isinstance(node, (c_ast.StructRef, c_ast.ArrayRef))
        return read and self.type_of(node).kind == "integer"

    def _part(self, node: Any) -> set[str] | None:
        """The fields along the path to what an argument points to, where that is a number or an array of
        numbers: nothing else of the structure is given with it. `None` where it may be all."""
        kind = self.type_of(_pointed(node))
        if not isinstance(node, c_ast.UnaryOp) and kind.kind != "array":
            return None
        while kind.kind == "array" and kind.target is not None:
            kind = kind.target
        path, names = _pointed(node), set()
        while isinstance(path, (c_ast.StructRef, c_ast.ArrayRef)):
            if isinstance(path, c_ast.StructRef):
                names.add(path.field.name)
            path = path.name
        return names if names and kind.kind == "integer" else None

    def _given_addresses(self, node: c_ast.FuncCall) -> set[str]:
        given: set[str] = set()
        for each in self._arguments(node):
            while isinstance(each, c_ast.Cast):
                each = each.expr
            if isinstance(each, c_ast.UnaryOp) and each.op == "&":
                name = root(each.expr)
                found = self.scopes.find(name) if name else None
                key = found.key if found is not None else name
                given |= {each for each in self.addressed | set(self.globals) if each == key}
                part = self._part(each)
                given |= {
                    text for text, field in self.fields.items()
                    if field.root == key and (part is None or part & set(field.fields))
                }  # fmt: skip
        return given

    def _arguments(self, node: c_ast.FuncCall) -> list[Any]:
        return list(node.args.exprs) if node.args is not None else []


def _pointed(node: Any) -> Any:
    """What an argument points to: `s` of `&s`."""
    return node.expr if isinstance(node, c_ast.UnaryOp) else node


# What the text of a function tells of what it changes, and of what functions change that it calls.


def copied_fields(function: CFunction, unit: TranslationUnit, read: Mentions) -> set[str]:
    """The fields that a function changes with structures as a whole: by `*a = b`, or by `memset(a, ...)`."""
    if not read.wholes:
        return set()
    places = SymbolPlaces(unit, read, {})
    parameters = getattr(function.node.decl.type.args, "params", None) or ()
    for each in (*parameters, *read.declared):
        if isinstance(each, c_ast.Decl) and isinstance(each.name, str):
            places.scopes.declare(each.name, places.types.of(each))
    kinds = {places.type_of(target) for target in read.wholes}
    return {name for kind in kinds for name in places.types.field_names(kind)}


def effects_of(unit: TranslationUnit) -> dict[str, SideEffects]:
    """The effects of each function of a unit, those of what it calls included."""
    found: dict[str, SideEffects] = {}
    for each in [*unit.functions, *unit.helpers.values()]:
        read = mentions(each.node.body)
        written = {*read.assigned, *read.addressed}
        found[each.name] = SideEffects(
            written, read.fields | copied_fields(each, unit, read), set(read.calls)
        )
    changed = True
    while changed:
        changed = False
        for effects in found.values():
            before = (len(effects.written), len(effects.fields), effects.unknown)
            for called in list(effects.calls):
                inner = found.get(called)
                if inner is None:
                    effects.unknown |= called not in HARMLESS and called not in NO_RETURN
                    continue
                effects.written |= inner.written
                effects.fields |= inner.fields
                effects.unknown |= inner.unknown
            changed |= before != (len(effects.written), len(effects.fields), effects.unknown)
    return found
