"""What the analysis needs to know of C types: which values are integers, of which range, and what pointers
step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pycparser import c_ast

if TYPE_CHECKING:
    from perun.bounds.front.unit import TranslationUnit


INT_BITS = 32


@dataclass(frozen=True)
class Type:
    """A type as far as it matters.

    `kind` is `integer`, `pointer`, `array`, `structure`, or `other`, of which no value is tracked. `bits` and
    `signed` are those of an integer, `target` what a pointer or array leads to, `length` that of an array,
    `fields` those of a structure, and `tag` its name, or that of a type without integers.
    """

    kind: Literal["integer", "pointer", "array", "structure", "other"]
    bits: int = 0
    signed: bool = True
    target: Type | None = None
    length: int | None = None
    tag: str = ""

    @property
    def tracked(self) -> bool:
        """Whether variables of it take part in the analysis."""
        return self.kind in ("integer", "pointer")

    @property
    def narrow(self) -> bool:
        """Whether programs are expected to let it wrap around: narrower than `int`."""
        return self.kind == "integer" and self.bits < INT_BITS

    @property
    def range(self) -> tuple[int, int]:
        """The values of an integer."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    @property
    def unsigned(self) -> bool:
        """Whether its values are never negative."""
        return self.kind == "integer" and not self.signed

    @property
    def size(self) -> int | None:
        """Its size in bytes, where that is the same on all machines that we know."""
        if self.kind == "integer":
            return max(self.bits // 8, 1)
        if self.kind == "array" and self.target is not None and self.length is not None:
            inner = self.target.size
            return None if inner is None else inner * self.length
        return 8 if self.kind == "pointer" else None


OTHER = Type("other")
VOID = Type("other", tag="void")
INT = Type("integer", 32)
UNSIGNED = Type("integer", 32, signed=False)
LONG = Type("integer", 64)
SIZE = Type("integer", 64, signed=False)

_NAMED = {
    "int8_t": Type("integer", 8), "uint8_t": Type("integer", 8, signed=False),
    "int16_t": Type("integer", 16), "uint16_t": Type("integer", 16, signed=False),
    "int32_t": INT, "uint32_t": UNSIGNED, "int64_t": LONG, "uint64_t": SIZE,
    "size_t": SIZE, "ssize_t": LONG, "ptrdiff_t": LONG, "intptr_t": LONG, "uintptr_t": SIZE, "off_t": LONG,
    "time_t": LONG, "bool": Type("integer", 1, signed=False), "_Bool": Type("integer", 1, signed=False),
}  # fmt: skip
_NOT_INTEGERS = {"float", "double", "void", "_Complex"}
_DEPTH = 40
_CHANGING = {"volatile", "_Atomic"}
"""Qualifiers of what may change at any time: each read has an unknown value."""


class Types:
    """The types that a unit declares."""

    def __init__(self, unit: TranslationUnit, local: Mapping[str, Any] | None = None) -> None:
        self._typedefs = dict(unit.typedefs)
        self._typedefs.update(local or {})
        self._structures: dict[str, Any] = {**unit.unions, **unit.structs}
        self._constants = dict(unit.constants)

    def of(self, node: Any, depth: int = 0) -> Type:
        """The type of a declaration, a type name or a part of one."""
        if depth > _DEPTH or node is None:
            return OTHER
        if _CHANGING & {*(getattr(node, "quals", None) or ())}:
            return OTHER
        if isinstance(node, (c_ast.Decl, c_ast.TypeDecl, c_ast.Typename, c_ast.Typedef)):
            return self.of(node.type, depth + 1)
        if isinstance(node, c_ast.PtrDecl):
            return Type("pointer", target=self.of(node.type, depth + 1))
        if isinstance(node, c_ast.ArrayDecl):
            length = self.constant(node.dim)
            return Type("array", target=self.of(node.type, depth + 1), length=length)
        if isinstance(node, c_ast.IdentifierType):
            return self._named(node.names, depth)
        if isinstance(node, c_ast.Enum):
            return INT
        if isinstance(node, (c_ast.Struct, c_ast.Union)):
            tag = node.name or f"at {node.coord}"
            if node.decls:
                self._structures.setdefault(tag, node)
            return Type("structure", tag=tag)
        return OTHER

    @staticmethod
    def pointer_to(target: Type) -> Type:
        """The type of a pointer, which an array is as a parameter."""
        return Type("pointer", target=target)

    def declare(self, node: c_ast.Typedef) -> None:
        """A type that a function declares for itself."""
        self._typedefs[node.name] = node

    def field(self, structure: Type, name: str) -> Type:
        """The type of a field of a structure."""
        declared = self._structures.get(structure.tag)
        if isinstance(declared, c_ast.Union):
            return OTHER
        for each in getattr(declared, "decls", None) or []:
            if getattr(each, "name", None) == name:
                kind = self.of(each)
                width = self.constant(each.bitsize) if getattr(each, "bitsize", None) is not None else None
                return kind if width is None else Type("integer", width, kind.signed)
        return OTHER

    def field_names(self, structure: Type, depth: int = 0) -> set[str]:
        """The fields of a structure, with those of structures in it."""
        if structure.kind == "array" and structure.target is not None:
            return self.field_names(structure.target, depth)
        found: set[str] = set()
        declared = self._structures.get(structure.tag) if structure.kind == "structure" else None
        for each in getattr(declared, "decls", None) or [] if depth <= _DEPTH else []:
            if isinstance(getattr(each, "name", None), str):
                found.add(each.name)
            found |= self.field_names(self.of(each), depth + 1)
        return found

    def _named(self, names: list[str], depth: int) -> Type:
        if _NOT_INTEGERS & set(names):
            return Type("other", tag=" ".join(sorted(names)))
        if len(names) == 1:
            name = names[0]
            if name in _NAMED:
                return _NAMED[name]
            if name in self._typedefs:
                return self.of(self._typedefs[name], depth + 1)
        words = set(names)
        if not words <= {"int", "char", "short", "long", "signed", "unsigned", "__int128"}:
            return OTHER
        bits = 8 if "char" in words else 16 if "short" in words else 64 if "long" in words else INT_BITS
        return Type("integer", 128 if "__int128" in words else bits, signed="unsigned" not in words)

    def constant(self, node: Any) -> int | None:
        """The value of a constant expression as array bounds have it, where it is a plain one."""
        if isinstance(node, c_ast.Constant):
            return number_of(node)
        if isinstance(node, c_ast.ID):
            return self._constants.get(node.name)
        if isinstance(node, c_ast.BinaryOp):
            left, right = self.constant(node.left), self.constant(node.right)
            if left is None or right is None:
                return None
            return folded(node.op, left, right)
        if isinstance(node, c_ast.UnaryOp) and node.op == "-":
            value = self.constant(node.expr)
            return None if value is None else -value
        if isinstance(node, c_ast.UnaryOp) and node.op == "sizeof":
            return self.of(node.expr).size if isinstance(node.expr, c_ast.Typename) else None
        return None


_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}


def number_of(node: c_ast.Constant) -> int | None:
    """The value of a literal, `None` where it is not an integer."""
    text = node.value
    if "char" in node.type:
        inner = text[text.find("'") + 1 : -1]
        if len(inner) == 1:
            return ord(inner)
        return _ESCAPES.get(inner[1:]) if inner.startswith("\\") and len(inner) == 2 else None
    if "int" not in node.type and not text.rstrip("uUlL").isdigit():
        return None
    text = text.rstrip("uUlL").lower()
    try:
        if text.startswith("0") and len(text) > 1 and text[1] not in "xb":
            return int(text, 8)
        return int(text, 0)
    except ValueError:
        return None


def folded(operator: str, left: int, right: int) -> int | None:
    """What an operator makes of two constants, `None` where C leaves it open or it is none of ours."""
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - right * quotient
    if operator in ("<<", ">>", "&", "|", "^"):
        if left < 0 or right < 0 or (operator in ("<<", ">>") and right > 63):
            return None
        return {"<<": left << min(right, 63), ">>": left >> right, "&": left & right, "|": left | right,
                "^": left ^ right}[operator]  # fmt: skip
    simple = {"+": left + right, "-": left - right, "*": left * right}
    return simple.get(operator)


# Names of a function: which variable each means, which are assigned, and which may change behind its back.

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
    """Whether a path goes through a pointer or into an array: no address of its root itself is taken then."""
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


# What is known of functions that are called: those of the C library, and what others may change.

NO_RETURN = frozenset(
    {"exit", "_exit", "_Exit", "quick_exit", "abort", "__assert_fail", "__assert", "longjmp", "siglongjmp",
     "err", "errx", "pthread_exit", "__builtin_unreachable", "__builtin_trap", "__builtin_abort"}
)  # fmt: skip
STRANGE = frozenset({"setjmp", "_setjmp", "sigsetjmp", "__perun_asm", "vfork", "getcontext", "setcontext"})
"""Calls after which nothing can be said of a function."""
HARMLESS = frozenset(
    {"malloc", "calloc", "realloc", "free", "memset", "memcpy", "memmove", "memcmp", "memchr", "strlen",
     "strcmp", "strncmp", "strcpy", "strncpy", "strcat", "strncat", "strchr", "strrchr", "strstr", "strdup",
     "strspn", "strcspn", "strpbrk", "printf", "fprintf", "sprintf", "snprintf", "puts", "fputs", "putchar",
     "putc", "fputc", "fwrite", "fread", "getc", "fgetc", "getchar", "ungetc", "fopen", "fclose", "fflush",
     "abs", "labs", "llabs", "rand", "random", "srand", "atoi", "atol", "atoll", "isalpha", "isdigit",
     "isspace", "isalnum", "isupper", "islower", "isprint", "ispunct", "iscntrl", "isgraph", "isxdigit",
     "toupper", "tolower", "sqrt", "pow", "fabs", "floor", "ceil", "exp", "log", "log2", "log10", "sin",
     "cos", "tan", "time", "clock", "getenv", "write", "read", "close", "open", "usleep", "sleep", "perror",
     "__builtin_expect", "strcasecmp", "strncasecmp", "__ctype_b_loc", "__errno_location"}
)  # fmt: skip
"""Functions of the C library that change no variable of the program but those that they get the address of.
"""


@dataclass
class SideEffects:
    """What calling a function may do: globals and fields that it writes, and calls to what is not known."""

    written: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    unknown: bool = False
