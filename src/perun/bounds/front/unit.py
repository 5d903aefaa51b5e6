"""What a C source file consists of, as the analysis of bounds sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pycparser import c_ast

LARGEST: Final = 32 << 20
"""Bytes of a source that are read."""


@dataclass(frozen=True)
class ReadOptions:
    """How sources are preprocessed.

    `include` are folders of headers (`-I`), `define` macros as `NAME` or `NAME=VALUE` (`-D`).
    `compile_commands` is a `compile_commands.json`: the flags that it has for a file, as far as they
    matter to the preprocessor, come before these. `timeout` is how many seconds the preprocessor may take, 0
    for any number.
    """

    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    compile_commands: str | None = None
    timeout: float = 0.0


@dataclass(frozen=True)
class Loop:
    """A loop statement. `node` is a `For`, `While` or `DoWhile` of the function's tree.

    Lines are 1-based, of the original source, from the loop's keyword (or the macro that contains it) to the
    last token of the loop; `column` is 0-based, of the keyword or macro.
    """

    node: c_ast.Node
    first_line: int
    last_line: int
    column: int


@dataclass(frozen=True)
class CFunction:
    """A function definition. `line` and `column` are 0-based, of the function's name (manual, 4.1.4).

    `loops` are in the order of the text: a loop comes before those that it contains.
    """

    name: str
    file: str
    line: int
    column: int
    node: c_ast.FuncDef
    loops: tuple[Loop, ...]


@dataclass(frozen=True)
class UnreadLoop:
    """A loop of a function that cannot be read: its lines, as those of `Loop`."""

    first_line: int
    last_line: int
    column: int


@dataclass(frozen=True)
class UnreadablePart:
    """A part of a source that cannot be analysed: where (1-based line) and why.

    `function` is empty where no single function is concerned, as for a missing header; `name_line` and
    `name_column` are 0-based as those of `Function`.
    """

    file: str
    line: int
    reason: str
    function: str = ""
    name_line: int = 0
    name_column: int = 0
    loops: tuple[UnreadLoop, ...] = ()


@dataclass(frozen=True)
class TranslationUnit:
    """One source file after preprocessing.

    `functions` are those that the file itself defines; `helpers` those of headers that it includes, by name:
    they matter for the cost of calls. `globals` are all variables and `prototypes` all functions that are
    declared outside of functions. `typedefs`, `structs`, `unions` and `enums` are the types by name or tag
    (unnamed ones have none), `constants` the values of enumerators, as far as they can be computed.
    Identifiers that nothing declares stay as they are: such a variable has an unknown value at each read.
    Names of types that nothing declares are in `unknown_types`: nothing is known of them, not even whether
    they are numbers.
    """

    path: str
    functions: tuple[CFunction, ...] = ()
    unreadable: tuple[UnreadablePart, ...] = ()
    helpers: dict[str, CFunction] = field(default_factory=dict)
    globals: dict[str, c_ast.Decl] = field(default_factory=dict)
    prototypes: dict[str, c_ast.Decl] = field(default_factory=dict)
    typedefs: dict[str, c_ast.Typedef] = field(default_factory=dict)
    structs: dict[str, c_ast.Struct] = field(default_factory=dict)
    unions: dict[str, c_ast.Union] = field(default_factory=dict)
    enums: dict[str, c_ast.Enum] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    unknown_types: frozenset[str] = frozenset()


# What is declared outside of functions: variables, types and constants.

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
