"""The GNU dialect of C in terms of standard C, as far as it matters to how often loops run.

All rules work on tokens of preprocessed text and keep line breaks, so that what follows stays in its place.
What has no equivalent becomes a call of a function that nothing declares and whose name begins with
`__perun`: its value and its effects are unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perun.bounds.front.preprocessing import Token, partners, tokens

UNKNOWN_TYPE = "__perun_type"
"""The type of `__auto_type` and of `__typeof__` of an expression."""
UNKNOWN = "__perun_unknown"
"""A call of this gives an unknown value, and changes only the variables whose address it is given."""
ASSEMBLER = "__perun_asm"
"""A call of this stands for inline assembler."""

BUILT_IN_TYPES = frozenset({UNKNOWN_TYPE, "__builtin_va_list"})

_WITH_ARGUMENTS = {
    "__attribute__", "__attribute", "__declspec", "_Alignas", "alignas",
}  # fmt: skip
_ALONE = {
    "__extension__", "__restrict", "__restrict__", "__thread", "_Noreturn", "__noreturn__", "_Nullable",
    "_Nonnull",
    "__cdecl", "__stdcall", "__fastcall", "__forceinline", "__real__", "__imag__", "__real", "__imag",
    "_Thread_local",
    "_Null_unspecified",
}  # fmt: skip
_SPELLING = {
    "__inline": "inline", "__inline__": "inline", "__const": "const", "__const__": "const",
    "__volatile": "volatile", "__volatile__": "volatile", "__signed": "signed", "__signed__": "signed",
    "__builtin_offsetof": "offsetof", "__int128": "long long", "__func__": '""', "__FUNCTION__": '""',
    "__PRETTY_FUNCTION__": '""', "_Float16": "float", "_Float32": "float", "_Float64": "double",
    "_Float128": "double", "__float128": "double", "__float80": "double", "_Float32x": "double",
    "_Float64x": "double",
    "_Decimal32": "float", "_Decimal64": "double", "_Decimal128": "double", "__int64": "long long",
    "__complex__": "_Complex", "__complex": "_Complex", "__alignof__": UNKNOWN, "__alignof": UNKNOWN,
    "_Alignof": UNKNOWN, "__auto_type": UNKNOWN_TYPE, "__int128_t": "long long",
    "__uint128_t": "unsigned long long",
}  # fmt: skip
_STATIC_ASSERTIONS = {"_Static_assert", "static_assert"}
_VALUES = {"__builtin_types_compatible_p", "_Generic", "__builtin_choose_expr", "__builtin_constant_p"}
_ASM = {"asm", "__asm", "__asm__"}
_TYPEOF = {"typeof", "__typeof__", "__typeof", "typeof_unqual", "__typeof_unqual__"}
TYPE_WORDS = frozenset({
    "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "_Complex",
    "struct", "union", "enum", "const", "volatile",
})  # fmt: skip
STORAGE_WORDS = frozenset(
    {"static", "extern", "register", "auto", "typedef", "inline", "restrict", "_Atomic"}
)
KEYWORDS = TYPE_WORDS | STORAGE_WORDS | {
    "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "goto", "return",
    "sizeof",
    "offsetof", "_Static_assert", "_Alignof", "_Alignas", "_Generic", "_Noreturn", "_Thread_local", "_Pragma",
}  # fmt: skip
_ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"})
_JUMPS = frozenset({"for", "while", "do", "goto", "return", "break", "continue"})
_MOST_CASES = 64


class TextEdit(NamedTuple):
    """The text between two offsets is replaced."""

    start: int
    end: int
    text: str


class StandardText(NamedTuple):
    """The edits that make a text standard C, in order, and the tokens that remain of it."""

    edits: list[TextEdit]
    rest: list[Token]


class _Rules:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.partner = partners(self.tokens)
        self.edits: list[TextEdit] = []
        self.rest: list[Token] = []
        self.braces = 0
        self.rules: dict[str, Callable[[int], int]] = {}
        for names, rule in (
            (_WITH_ARGUMENTS, self._attribute), (_ALONE, self._drop), (_SPELLING, self._respell),
            (_STATIC_ASSERTIONS, self._assertion), (_VALUES, self._value), (_ASM, self._asm), (_TYPEOF,
            self._typeof),
            ({"__builtin_va_arg"}, self._va_arg), ({"__builtin_expect"}, self._expect), ({"__label__"},
            self._labels),
            ({"case"}, self._case), ({"?"}, self._elvis), ({"&&"}, self._label_address), ({"["},
            self._bracket),
            ({"("}, self._parenthesis),
        ):  # fmt: skip
            self.rules.update(dict.fromkeys(names, rule))

    def run(self) -> StandardText:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            rule = self.rules.get(token.text) if token.kind in ("name", "mark") else None
            after = rule(at) if rule else at
            if after == at:
                self.braces += (token.text == "{") - (token.text == "}") if token.kind == "mark" else 0
                self.rest.append(token)
                after = at + 1
            at = after
        return StandardText(self.edits, self.rest)

    def is_mark(self, at: int, text: str) -> bool:
        return 0 <= at < len(self.tokens) and self.tokens[at].text == text and self.tokens[at].kind == "mark"

    def closing(self, at: int) -> int | None:
        """The index of the bracket that closes the one at `at`, or None where there is none."""
        return self.partner.get(at) if self.is_mark(at, "(") or self.is_mark(at, "[") else None

    def source(self, first: int, last: int) -> str:
        """The text from one token to another, both included."""
        return self.text[self.tokens[first].start : self.tokens[last].end] if first <= last else ""

    def replace(self, first: int, last: int, text: str, kind: str = "") -> int:
        """Replace tokens, both ends included; what takes their place counts as one token of this kind."""
        start, end = self.tokens[first].start, self.tokens[last].end
        self.edits.append(TextEdit(start, end, text + "\n" * self.text.count("\n", start, end)))
        if kind:
            self.rest.append(Token(kind, text, start))
        return last + 1

    def _attribute(self, at: int) -> int:
        end = self.closing(at + 1)
        return self.replace(at, end, "") if end is not None else at

    def _drop(self, at: int) -> int:
        return self.replace(at, at, "")

    def _respell(self, at: int) -> int:
        text = _SPELLING[self.tokens[at].text]
        return self.replace(at, at, text, "string" if text == '""' else "name")

    def _assertion(self, at: int) -> int:
        end = self.closing(at + 1)
        if end is None:
            return at
        return self.replace(at, end + self.is_mark(end + 1, ";"), "")

    def _value(self, at: int) -> int:
        end = self.closing(at + 1)
        return self.replace(at, end, f"{UNKNOWN}()", "name") if end is not None else at

    def _asm(self, at: int) -> int:
        open_ = at + 1
        while open_ < len(self.tokens) and self.tokens[open_].kind == "name":
            open_ += 1
        end = self.closing(open_)
        if end is None:
            return at
        is_statement = self.braces > 0 and (
            at == 0 or self.tokens[at - 1].text in (";", "{", "}", ":", ")", "else", "do")
        )
        return self.replace(at, end, f"{ASSEMBLER}()" if is_statement else "", "name" if is_statement else "")

    def _typeof(self, at: int) -> int:
        end = self.closing(at + 1)
        if end is None:
            return at
        inside = self.tokens[at + 2 : end]
        known = inside and inside[0].text in TYPE_WORDS and all(one.kind == "name" for one in inside)
        return self.replace(at, end, self.source(at + 2, end - 1) if known else UNKNOWN_TYPE, "name")

    def _va_arg(self, at: int) -> int:
        end = self.closing(at + 1)
        comma = self._comma(at + 2, end) if end is not None else None
        if end is None or comma is None:
            return at
        return self.replace(at, end, f"(*({self.source(comma + 1, end - 1)} *){UNKNOWN}())", "name")

    def _expect(self, at: int) -> int:
        end = self.closing(at + 1)
        comma = self._comma(at + 2, end) if end is not None else None
        if end is None or comma is None:
            return at
        inner = standardised(self.source(at + 2, comma - 1))
        return self.replace(at, end, f"({edited(self.source(at + 2, comma - 1), inner.edits)})", "name")

    def _comma(self, first: int, end: int) -> int | None:
        at = first
        while at < end:
            if self.is_mark(at, ","):
                return at
            at = self.partner.get(at, at) + 1
        return None

    def _labels(self, at: int) -> int:
        end = at
        while end < len(self.tokens) and not self.is_mark(end, ";"):
            end += 1
        return self.replace(at, end, "") if end < len(self.tokens) else at

    def _case(self, at: int) -> int:
        """`case 1 ... 5:` for a few values becomes as many labels, otherwise one whose value is unknown."""
        end = at
        while end < len(self.tokens) and self.tokens[end].text not in (":", ";", "{", "?"):
            end += 1
        dots = next((one for one in range(at, end) if self.tokens[one].text == "..."), None)
        if dots is None or not self.is_mark(end, ":"):
            return at
        low, high = _number(self.source(at + 1, dots - 1)), _number(self.source(dots + 1, end - 1))
        if low is not None and high is not None and low <= high < low + _MOST_CASES:
            labels = ": ".join(f"case {value}" for value in range(low, high + 1))
        else:
            labels = f"case {UNKNOWN}()"
        return self.replace(at, end - 1, labels, "name")

    def _elvis(self, at: int) -> int:
        if not self.is_mark(at + 1, ":"):
            return at
        return self.replace(at, at, f"? {UNKNOWN}()", "mark")

    def _label_address(self, at: int) -> int:
        before = self.tokens[at - 1] if at else None
        if before is None or before.kind != "mark" or before.text in (")", "]"):
            return at
        return self.replace(at, at, "& ", "mark")

    def _bracket(self, at: int) -> int:
        """C23's `[[attribute]]` goes, and of `[1 ... 5] = x` in an initialiser the range."""
        end = self.closing(at)
        if end is None:
            return at
        if self.is_mark(at + 1, "[") and self.partner.get(at + 1) == end - 1:
            return self.replace(at, end, "")
        dots = next((one for one in range(at, end) if self.tokens[one].text == "..."), None)
        return self.replace(at, end, self.source(at, dots - 1) + "]", "mark") if dots is not None else at

    def _parenthesis(self, at: int) -> int:
        """A statement expression is a block where its value is not used, and else an unknown value."""
        end = self.closing(at)
        if end is None or not self.is_mark(at + 1, "{"):
            return at
        inside = self.tokens[at + 1 : end]
        first = at
        while first and self.tokens[first - 1].text == "__extension__":
            first -= 1
        before = self.tokens[first - 1].text if first else ";"
        if before in (";", "{", "}", "else", "do") and self.is_mark(end + 1, ";"):
            text = self.source(at + 1, end - 1)
            return self.replace(at, end, edited(text, standardised(text).edits), "mark")
        words = {one.text for one in inside if one.kind == "name"}
        if words & _JUMPS:
            return at
        changed = ", ".join(f"&{name}" for name in _changed(inside))
        return self.replace(at, end, f"{UNKNOWN}({changed})", "name")


def _changed(inside: list[Token]) -> list[str]:
    """Variables and members that a block assigns, or takes the address of, and does not declare."""
    found: dict[str, None] = {}
    declared: set[str] = set()
    for index, token in enumerate(inside):
        if token.kind != "name" or token.text in KEYWORDS:
            continue
        first = index
        while first >= 2 and inside[first - 1].text in (".", "->") and inside[first - 2].kind == "name":
            first -= 2
        before = inside[first - 1] if first else None
        after = inside[index + 1].text if index + 1 < len(inside) else ""
        if (
            before is not None
            and before.kind == "name"
            and before.text not in ("return", "else", "case", "sizeof")
        ):
            declared.add(token.text)
        elif after in _ASSIGNING or (before is not None and before.text in ("++", "--", "&")):
            found["".join(one.text for one in inside[first : index + 1])] = None
    return [name for name in found if name.replace("-", ".").split(".")[0] not in declared]


def _number(text: str) -> int | None:
    text = text.strip().rstrip("uUlL")
    if len(text) == 3 and text[0] == text[2] == "'":
        return ord(text[1])
    try:
        return int(text, 0)
    except ValueError:
        return None


def standardised(text: str) -> StandardText:
    """The edits that make preprocessed text standard C."""
    return _Rules(text).run()


def edited(text: str, edits: list[TextEdit], start: int = 0) -> str:
    """Text after edits whose offsets count from `start` characters before its begin."""
    parts = []
    done = 0
    for edit in edits:
        parts += [text[done : edit.start - start], edit.text]
        done = edit.end - start
    return "".join([*parts, text[done:]])
