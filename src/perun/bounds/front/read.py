"""Reading a source file: from its path to its functions and declarations."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from pycparser import c_ast

from perun.bounds.front.dialect import BUILT_IN_TYPES, KEYWORDS, StandardText, TextEdit, edited, standardised
from perun.bounds.front.parsing import (
    NotReadable,
    SourcePiece,
    as_written,
    deep_recursion,
    guess,
    needed,
    parse,
    pieces,
)
from perun.bounds.front.preprocessing import (
    LineMap,
    PreprocessedText,
    SourceLocation,
    Token,
    partners,
    preprocess,
    tokens,
    without_system_bodies,
)
from perun.bounds.front.unit import (
    LARGEST,
    CFunction,
    Declarations,
    Loop,
    ReadOptions,
    TranslationUnit,
    UnreadablePart,
    UnreadLoop,
    with_prototype,
)
from perun.core.errors import UsageError
from perun.core.regular import open_regular, read_regular

# The text of a source as its author wrote it, for columns: the preprocessor moves what follows a macro.

_LOOP = re.compile(r"\b(?:for|while|do)\b")
_INDENT = re.compile(r"\s*")


class OriginalLines:
    """The lines of a file; one that cannot be read has none, and its columns are 0."""

    def __init__(self, file: str) -> None:
        try:
            # A source may name any file as the one that it was made from, such as a device.
            text = read_regular(os.path.realpath(file), LARGEST).decode("utf-8", "replace")
            self._lines = text.split("\n")
        except (OSError, ValueError):
            self._lines = []

    def column(self, line: int, name: str) -> int:
        """The 0-based column of a name in a 1-based line; without the name that of the line's first word."""
        match = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", self._line(line))
        return match.start() if match else self._indent(line)

    def loop_column(self, line: int, number: int) -> int:
        """The column of a line's loop keyword, counted from 0; without one that of the line's first word."""
        matches = [match.start() for match in _LOOP.finditer(self._line(line))]
        return matches[number] if number < len(matches) else self._indent(line)

    def _line(self, line: int) -> str:
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""

    def _indent(self, line: int) -> int:
        match = _INDENT.match(self._line(line))
        return match.end() if match else 0


# Where loops begin and end, found by matching brackets.


class TokenSpan(NamedTuple):
    """Indexes of the first and the last token of a loop."""

    first: int
    last: int


def loop_spans(sequence: list[Token]) -> list[TokenSpan]:
    """All loops of a function definition, in the order of the text. Its body is the last pair of braces."""
    partner = partners(sequence)
    at, body = 0, None
    while at < len(sequence):
        if sequence[at].text == "{" and sequence[at].kind == "mark":
            body = at
        at = partner.get(at, at) + 1
    if body is None:
        return []
    walk = _Walk(sequence, partner)
    walk.block(body)
    return sorted(walk.found)


class _Walk:
    def __init__(self, sequence: list[Token], partner: dict[int, int]) -> None:
        self.sequence = sequence
        self.partner = partner
        self.found: list[TokenSpan] = []

    def text(self, at: int) -> str:
        return self.sequence[at].text if at < len(self.sequence) else ""

    def block(self, at: int) -> int:
        """Walk through `{ ... }`; the index behind it."""
        end = self.partner.get(at, len(self.sequence) - 1)
        at += 1
        while at < end:
            at = self.statement(at, end)
        return end + 1

    def parenthesised(self, at: int) -> int:
        """The index behind `( ... )`."""
        return self.partner.get(at, at) + 1 if self.text(at) == "(" else at

    def statement(self, at: int, end: int) -> int:
        """Walk through a statement; the index behind it."""
        begun: list[int] = []
        while at < end:
            text = self.text(at)
            if text in ("for", "while"):
                begun.append(at)
                at = self.parenthesised(at + 1)
            elif text == "switch":
                at = self.parenthesised(at + 1)
            elif text == "if":
                at = self.statement(self.parenthesised(at + 1), end)
                if self.text(at) != "else":
                    break
                at += 1
            elif text == "do":
                begun.append(at)
                at = self.statement(at + 1, end)
                at = self.parenthesised(at + 1) if self.text(at) == "while" else at
                at += self.text(at) == ";"
                break
            elif text in ("case", "default"):
                at = self._behind_label(at + 1, end)
            elif self.text(at + 1) == ":" and self.sequence[at].kind == "name":
                at += 2
            elif text == "{":
                at = self.block(at)
                break
            else:
                at = self._behind_semicolon(at, end)
                break
        self.found += [TokenSpan(one, min(at, end) - 1) for one in begun]
        return max(at, 1)

    def _behind_label(self, at: int, end: int) -> int:
        questions = 0
        while at < end:
            text = self.text(at)
            questions += text == "?"
            if text == ":":
                if not questions:
                    return at + 1
                questions -= 1
            at = self.partner.get(at, at) + 1
        return end

    def _behind_semicolon(self, at: int, end: int) -> int:
        while at < end and self.text(at) != ";":
            at = self.partner.get(at, at) + 1
        return at + 1


CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".c++", ".C", ".hh", ".hpp", ".hxx", ".h++")
_UNDEFINED_VALUES = {"NULL": "0"}
_LONG = 300
_LOOPS = (c_ast.For, c_ast.While, c_ast.DoWhile)


def read(path: str, options: ReadOptions, preprocessed: PreprocessedText | None = None) -> TranslationUnit:
    """The functions, loops and declarations of a C source file.

    What the parser does not understand is listed in `unreadable`, and the rest is read. Who has called
    `preprocess` already passes what it returned.

    :raises UsageError: if there is no such file, or it is not one of C.
    :raises CollectorUnavailable: if there is no C compiler, whose preprocessor is needed.
    """
    _refuse(path)
    preprocessed = preprocessed or preprocess(path, options)
    with deep_recursion():
        return _Reader(path, preprocessed.text, list(preprocessed.problems)).unit()


def _refuse(path: str) -> None:
    if path.endswith(CPP_SUFFIXES):
        raise UsageError(f"'{path}' is C++, and only C is analysed.", "Name sources of C, such as '*.c'.")
    if os.path.isdir(path):
        raise UsageError(f"'{path}' is a folder, not a source file.", "Name folders by '--source-dir'.")
    try:
        open_regular(os.path.realpath(path), LARGEST).close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"'{path}' cannot be read: {reason}.", "Check the path of the source.") from error


class _Reader:
    """The state while the pieces of one source are parsed, in order."""

    def __init__(self, path: str, text: str, problems: list[UnreadablePart]) -> None:
        self.path = path
        self.text = text = without_system_bodies(text)
        self.problems = problems
        standard: StandardText = standardised(text)
        self.edits = standard.edits
        self.pieces = pieces(standard.rest, LineMap(text, SourceLocation(path, 1)))
        self.types = set(BUILT_IN_TYPES)
        self.unknown_types: set[str] = set(BUILT_IN_TYPES)
        self.declarations = Declarations()
        self.originals: dict[str, OriginalLines] = {}
        self.functions: list[CFunction] = []
        self.helpers: dict[str, CFunction] = {}

    def unit(self) -> TranslationUnit:
        own = {index for index, piece in enumerate(self.pieces) if _is_own(piece)}
        wanted = sorted(needed(self.pieces, own))
        declaring = [self.pieces[index] for index in wanted if not self.pieces[index].is_typedef]
        self.declared = {name for piece in declaring for name in piece.declares} | KEYWORDS
        self.starts = [edit.start for edit in self.edits]
        for index in wanted:
            behind = self.pieces[index + 1].start if index + 1 < len(self.pieces) else len(self.text)
            self.read_piece(self.pieces[index], behind, index in own)
        found = self.declarations
        return TranslationUnit(
            self.path, tuple(self.functions), tuple(self.problems), self.helpers, found.globals,
            found.prototypes,
            found.typedefs, found.structs, found.unions, found.enums, found.constants,
            frozenset(self.unknown_types),
        )  # fmt: skip

    def read_piece(self, piece: SourcePiece, behind: int, own: bool) -> None:
        text = self.standard_text(piece, behind)
        try:
            nodes = parse(text, piece.place, sorted(self.types & piece.uses))
        except NotReadable as problem:
            if own:
                self.problems.append(self.unreadable(piece, text, problem))
            return
        for node in nodes:
            with_prototype(node)
            self.types |= self.declarations.add(node)
            if isinstance(node, c_ast.FuncDef):
                function = self.function(piece, node, text)
                if own:
                    self.functions.append(function)
                else:
                    self.helpers[function.name] = function

    def standard_text(self, piece: SourcePiece, behind: int) -> str:
        """The piece in standard C, without macros that nothing defines."""
        guessed = guess(piece.tokens, piece.body, self.declared, self.types - self.unknown_types)
        self.types |= guessed.types
        self.unknown_types |= guessed.types
        extra = [TextEdit(one.start, one.end, " " * len(one.text)) for one in guessed.words]
        for name in _UNDEFINED_VALUES.keys() & piece.uses - self.declared:
            value = _UNDEFINED_VALUES[name]
            extra += [TextEdit(one.start, one.end, value) for one in piece.tokens if one.text == name]
        extra += _shortened(piece)
        here = self.edits[bisect_left(self.starts, piece.start) : bisect_left(self.starts, behind)]
        known = [one for one in here if not _overlaps(one, extra)]
        changes = sorted([*known, *extra])
        return edited(self.text[piece.start : behind], changes, piece.start)

    def function(self, piece: SourcePiece, node: c_ast.FuncDef, text: str) -> CFunction:
        name = as_written(node.decl.name or "")
        place = self.place_of_name(piece, name)
        original = self.original(place.file)
        loops = tuple(self.loops(piece, node, text, original))
        return CFunction(name, place.file, place.line - 1, original.column(place.line, name), node, loops)

    def loops(
        self, piece: SourcePiece, node: c_ast.FuncDef, text: str, original: OriginalLines
    ) -> Iterator[Loop]:
        nodes = list(_loop_nodes(node.body))
        lines = list(_lines(text, piece.place))
        if len(lines) != len(
            nodes
        ):  # a loop whose text the parser and the matching of brackets see differently
            lines = [(one.coord.line, _last_line(one)) for one in nodes]
        seen: dict[int, int] = {}
        for one, (first, last) in zip(nodes, lines, strict=True):
            column = original.loop_column(first, seen.setdefault(first, 0))
            seen[first] += 1
            yield Loop(one, first, last, column)

    def unreadable(self, piece: SourcePiece, text: str, problem: NotReadable) -> UnreadablePart:
        token = piece.function_name()
        if token is None:
            return UnreadablePart(problem.file, problem.line, problem.reason)
        place = self.place_of_name(piece, token.text)
        original = self.original(place.file)
        loops = tuple(
            UnreadLoop(first, last, original.loop_column(first, 0))
            for first, last in _lines(text, piece.place)
        )
        column = original.column(place.line, token.text)
        return UnreadablePart(
            problem.file, problem.line, problem.reason, token.text, place.line - 1, column, loops
        )

    def place_of_name(self, piece: SourcePiece, name: str) -> SourceLocation:
        start = next((one.start for one in piece.tokens[: piece.body] if one.text == name), piece.start)
        return LineMap(self.text[piece.start : start], piece.place).of(start - piece.start)

    def original(self, file: str) -> OriginalLines:
        if file not in self.originals:
            self.originals[file] = OriginalLines(file)
        return self.originals[file]


def _is_own(piece: SourcePiece) -> bool:
    """Whether a piece belongs to the source: to the file itself, or to code that it includes as its own."""
    return piece.place.depth == 0 or (not piece.place.system and not piece.place.file.endswith((".h", ".H")))


def _shortened(piece: SourcePiece) -> list[TextEdit]:
    """A long table loses its content, which is not needed, and would take most of the time."""
    if piece.body is not None or len(piece.tokens) < _LONG:
        return []
    for index, token in enumerate(piece.tokens[:-1]):
        if token.text == "=" and piece.tokens[index + 1].text == "{":
            last = max(at for at, one in enumerate(piece.tokens) if one.text == "}")
            return [TextEdit(token.end, piece.tokens[last].end, " {0}")]
    return []


def _overlaps(edit: TextEdit, others: list[TextEdit]) -> bool:
    return any(edit.start < one.end and one.start < edit.end for one in others)


def _loop_nodes(node: c_ast.Node) -> Iterator[c_ast.Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _LOOPS):
            yield one
        waiting += [child for _, child in reversed(one.children())]


def _last_line(node: c_ast.Node) -> int:
    last = node.coord.line
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.coord:
            last = max(last, one.coord.line)
        waiting += [child for _, child in one.children()]
    return int(last)


def _lines(text: str, start: SourceLocation) -> Iterator[tuple[int, int]]:
    """First and last line of each loop of a function; nothing where it is nested too deeply."""
    sequence = tokens(text)
    places = LineMap(text, start)
    try:
        spans = loop_spans(sequence)
    except RecursionError:
        return
    for span in spans:
        yield _line(places, sequence[span.first].start), _line(places, sequence[span.last].start)


def _line(places: LineMap, offset: int) -> int:
    return places.of(offset).line
