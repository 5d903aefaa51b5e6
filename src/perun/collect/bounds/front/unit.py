"""What a C source file consists of, as the analysis of bounds sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
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
class Function:
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
class Unreadable:
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
class Unit:
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
    functions: tuple[Function, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    helpers: dict[str, Function] = field(default_factory=dict)
    globals: dict[str, c_ast.Decl] = field(default_factory=dict)
    prototypes: dict[str, c_ast.Decl] = field(default_factory=dict)
    typedefs: dict[str, c_ast.Typedef] = field(default_factory=dict)
    structs: dict[str, c_ast.Struct] = field(default_factory=dict)
    unions: dict[str, c_ast.Union] = field(default_factory=dict)
    enums: dict[str, c_ast.Enum] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    unknown_types: frozenset[str] = frozenset()
