"""What is declared outside of functions: variables, types and constants."""

from __future__ import annotations

from collections.abc import Callable

from pycparser import c_ast

_OPERATIONS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "|": lambda a, b: a | b,
    "&": lambda a, b: a & b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b if 0 <= b < 64 else None,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else None, "==": lambda a, b: int(a == b), "!=": lambda a,
    b: int(a != b),
    "<": lambda a, b: int(a < b), ">": lambda a, b: int(a > b), "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b), "/": lambda a, b: int(a / b) if b else None,
    "%": lambda a, b: a - b * int(a / b) if b else None,
}  # fmt: skip


class Declarations:
    """What the pieces of a source declare, by name or tag."""

    def __init__(self) -> None:
        self.globals: dict[str, c_ast.Decl] = {}
        self.prototypes: dict[str, c_ast.Decl] = {}
        self.typedefs: dict[str, c_ast.Typedef] = {}
        self.structs: dict[str, c_ast.Struct] = {}
        self.unions: dict[str, c_ast.Union] = {}
        self.enums: dict[str, c_ast.Enum] = {}
        self.constants: dict[str, int] = {}

    def add(self, node: c_ast.Node) -> set[str]:
        """Take a declaration in; the names of types that it declares."""
        if isinstance(node, c_ast.FuncDef):
            self.prototypes.setdefault(node.decl.name, node.decl)
            self._types(node.decl)
            if _has_enum(node.body):
                self._types(node.body)
            return set()
        self._types(node)
        if isinstance(node, c_ast.Typedef):
            self.typedefs[node.name] = node
            return {node.name}
        if isinstance(node, c_ast.Decl) and node.name:
            if isinstance(node.type, c_ast.FuncDecl):
                self.prototypes[node.name] = node
            elif node.name not in self.globals or node.init is not None:
                self.globals[node.name] = node
        return set()

    def _types(self, node: c_ast.Node) -> None:
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, c_ast.Struct) and one.name and one.decls:
                self.structs[one.name] = one
            elif isinstance(one, c_ast.Union) and one.name and one.decls:
                self.unions[one.name] = one
            elif isinstance(one, c_ast.Enum) and one.values is not None:
                if one.name:
                    self.enums[one.name] = one
                self._enumerators(one)
            waiting += [child for _, child in reversed(one.children())]

    def _enumerators(self, node: c_ast.Enum) -> None:
        value: int | None = -1
        for one in node.values.enumerators:
            value = (
                self.value(one.value) if one.value is not None else value + 1 if value is not None else None
            )
            if value is not None:
                self.constants[one.name] = value

    def value(self, node: c_ast.Node) -> int | None:
        """The value of a constant expression of integers, or None where it cannot be computed."""
        if isinstance(node, c_ast.Constant):
            return constant_value(node.value)
        if isinstance(node, c_ast.ID):
            return self.constants.get(node.name)
        if isinstance(node, c_ast.UnaryOp) and node.op in ("-", "+", "~", "!"):
            value = self.value(node.expr)
            if value is None:
                return None
            return {"-": -value, "+": value, "~": ~value, "!": int(not value)}[node.op]
        if isinstance(node, c_ast.BinaryOp) and node.op in _OPERATIONS:
            left, right = self.value(node.left), self.value(node.right)
            return None if left is None or right is None else _OPERATIONS[node.op](left, right)
        return None


def with_prototype(node: c_ast.Node) -> None:
    """Give a definition in the style of K&R, with parameters declared behind it, the form of today."""
    if not isinstance(node, c_ast.FuncDef) or not node.param_decls or node.decl.type.args is None:
        return
    declared = {one.name: one for one in node.param_decls}
    arguments = node.decl.type.args
    arguments.params = [declared.get(getattr(one, "name", None), one) for one in arguments.params]
    node.param_decls = None


def _has_enum(node: c_ast.Node) -> bool:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, c_ast.Enum):
            return True
        waiting += [child for _, child in one.children()]
    return False


_ESCAPES = {
    "n": 10,
    "t": 9,
    "r": 13,
    "0": 0,
    "\\": 92,
    "'": 39,
    '"': 34,
    "a": 7,
    "b": 8,
    "f": 12,
    "v": 11,
    "e": 27,
}


def constant_value(text: str) -> int | None:
    """The value of an integer or character constant as it is written, or None where it is none.

    Suffixes are ignored; a character above 127 has none, as its sign depends on the machine.
    """
    if text.startswith(("'", "L'", "u'", "U'", "u8'")):
        return _character(text[text.index("'") + 1 : -1])
    digits = text.rstrip("uUlLzZ").replace("'", "")
    try:
        if digits[:1] == "0" and digits[1:].isdigit():
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        return None


def _character(text: str) -> int | None:
    if len(text) == 1:
        return ord(text) if ord(text) < 128 else None
    if text[:1] != "\\":
        return None
    if text[1:] in _ESCAPES:
        return _ESCAPES[text[1:]]
    try:
        value = int(text[2:], 16) if text[1] == "x" else int(text[1:], 8)
    except (ValueError, IndexError):
        return None
    return value if value < 128 else None
