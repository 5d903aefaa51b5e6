"""Programs whose loops count how often they run, to compare that with the bounds that the analysis gives."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compiling import CompilerCache
from perun.bounds.analysis import AnalysisOptions, analyse
from perun.bounds.expression import Expression, parse
from perun.bounds.front.preprocessing import LineMap, SourceLocation, Token, preprocess, tokens
from perun.bounds.front.read import loop_spans, read
from perun.bounds.front.unit import ReadOptions

HEADER = Path(__file__).parent / "bounds" / "counting.h"
DEFINITIONS = ("LESS(a, b)=((a) - (b))",)
"""What the analysis sees in place of what counting programs check."""

_OVERFLOW = (
    "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift",
    "-fsanitize-undefined-trap-on-error",
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function: its name in bounds, and how it is called with a number."""

    name: str
    type: str

    @property
    def is_pointer(self) -> bool:
        return "*" in self.type or "[" in self.type


@dataclass(frozen=True)
class Counted:
    """A function that counts: its text, and for each of its loops the first line and the index."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    loops: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Bounds:
    """The bounds of a function: back edges in total, and of the loops that begin in each line."""

    total: Expression
    loops: dict[int, list[Expression]]


def bounds_of(path: Path) -> dict[str, Bounds]:
    """The bounds of back edges of the functions of a source."""
    unit = read(str(path), ReadOptions(define=DEFINITIONS))
    assert unit.unreadable == (), path
    found = {}
    for function in unit.functions:
        answer = analyse(function, unit, AnalysisOptions(count="backedges"))
        loops: dict[int, list[Expression]] = {}
        for loop in answer.loops:
            loops.setdefault(loop.first_line, []).append(parse(loop.bound))
        found[function.name] = Bounds(parse(answer.bound), loops)
    return found


def counting_functions(path: Path) -> Iterator[Counted]:
    """The functions of a source that includes nothing, with counters in their loops."""
    text = preprocess(str(path), ReadOptions()).text
    sequence = tokens(text)
    places = LineMap(text, SourceLocation(str(path), 1))
    depth = start = 0
    for index, token in enumerate(sequence):
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text in ("}", ";"):
            end = index + 1
            if (
                token.text == "}"
                and "(" in (one.text for one in sequence[start:end])
                and sequence[start].text != "struct"
            ):
                yield _counting(text, sequence[start:end], places)
                start = end
            elif token.text == ";" and (end == len(sequence) or sequence[end].text != "{"):
                start = end


def _counting(text: str, sequence: list[Token], places: LineMap) -> Counted:
    begin, end = sequence[0].start, sequence[-1].end
    added: list[tuple[int, int, str]] = []
    loops = []
    closing = _closing(sequence)
    for number, span in enumerate(loop_spans(sequence)):
        first, last = sequence[span.first], sequence[span.last]
        loops.append((places.of(first.start).line, number))
        if first.text == "do":
            condition = max(
                at for at in closing if closing[at] < span.last and sequence[at - 1].text == "while"
            )
            added.append((sequence[condition].end, 0, "("))
            added.append((sequence[closing[condition]].start, 0, f") && head({number})"))
            continue
        added.append((first.start, -span.last, f"{{ enter({number}); "))
        added.append((last.end, -span.first, " }"))
        opened = span.first + 1
        if first.text == "while":
            added.append((sequence[opened].end, 0, f"head({number}), ("))
            added.append((sequence[closing[opened]].start, 0, ")"))
        else:
            semicolons = [at for at in range(opened, closing[opened]) if sequence[at].text == ";"]
            empty = semicolons[1] == semicolons[0] + 1
            added.append((sequence[semicolons[0]].end, 0, f"head({number}), (" + ("1" if empty else "")))
            added.append((sequence[semicolons[1]].start, 0, ")"))
    labels = {one.text: one.start for at, one in enumerate(sequence[:-1]) if _is_label(sequence, at)}
    for at, one in enumerate(sequence):
        if one.text == "goto" and labels.get(sequence[at + 1].text, end) < one.start:
            added += [(one.start, 0, "{ jump(); "), (sequence[at + 2].end, 0, " }")]
    parts, done = [], begin
    for offset, _, extra in sorted(added, key=lambda each: (each[0], each[1])):
        parts += [text[done:offset], extra]
        done = offset
    code = re.sub(r"^#.*$", "", "".join([*parts, text[done:end]]), flags=re.MULTILINE)
    name = next(sequence[at - 1].text for at, one in enumerate(sequence) if one.text == "(")
    return Counted(name, code, tuple(_parameters(sequence, closing, text)), tuple(loops))


def _is_label(sequence: list[Token], at: int) -> bool:
    return (
        sequence[at].kind == "name"
        and sequence[at + 1].text == ":"
        and sequence[at].text != "default"
        and (at == 0 or sequence[at - 1].text in (";", "{", "}", ":"))
    )


def _closing(sequence: list[Token]) -> dict[int, int]:
    found, open_ = {}, []
    for index, token in enumerate(sequence):
        if token.text == "(":
            open_.append(index)
        elif token.text == ")":
            found[open_.pop()] = index
    return found


def _parameters(sequence: list[Token], closing: dict[int, int], text: str) -> Iterator[Parameter]:
    opened = next(at for at, one in enumerate(sequence) if one.text == "(")
    inside = text[sequence[opened].end : sequence[closing[opened]].start]
    for one in inside.split(","):
        match = re.fullmatch(r"\s*(.*?)\s*(\w+)\s*((?:\[\w*\])*)\s*", one, re.DOTALL)
        if match and match[2] != "void":
            yield Parameter(match[2], (match[1] or "int") + match[3])


def program(functions: Sequence[Counted], preamble: str = "") -> str:
    """The text of a program that runs each function several times and prints what it counted.

    Its arguments are the number of runs and the begin of the random numbers. Each line of its output has the
    index of the function, its inputs, `|`, the back edges of each loop, and jumps backward.
    """
    parts = [f'#include "{HEADER}"\n{preamble}\n']
    for number, one in enumerate(functions):
        parts.append(f"{one.text}\n")
        arguments = []
        for at, parameter in enumerate(one.parameters):
            arguments.append(
                "(void *)memory" if parameter.is_pointer else f"(({parameter.type})inputs[{at}])"
            )
        parts.append(
            f"static void call_{number}(const long *inputs)\n"
            f"{{ (void){one.name}({', '.join(arguments)}); }}\n"
        )
    calls = ", ".join(f"call_{number}" for number in range(len(functions)))
    unsigned = ", ".join(
        "{"
        + ", ".join("1" if "unsigned" in p.type else "0" for p in one.parameters)
        + ("" if one.parameters else "0")
        + "}"
        for one in functions
    )
    parts.append(f"""
static void (*const calls[])(const long *) = {{ {calls} }};
static const int is_unsigned[][8] = {{ {unsigned} }};
static const int loops[] = {{ {", ".join(str(len(one.loops)) for one in functions)} }};
static const int parameters[] = {{ {", ".join(str(len(one.parameters)) for one in functions)} }};

int main(int argc, char **argv)
{{
    int runs = atoi(argv[1]);
    signal(SIGILL, stopped); signal(SIGTRAP, stopped); signal(SIGABRT, stopped); signal(SIGFPE, stopped);
    signal(SIGSEGV, stopped);
    state = argc > 2 ? strtoull(argv[2], 0, 10) : 1;
    for (int number = 0; number < {len(functions)}; number++)
        for (int run = 0; run < runs; run++) {{
            long inputs[8];
            for (int at = 0; at < 8; at++)
                inputs[at] = input(is_unsigned[number][at]);
            for (int at = 0; at < 1 << 16; at += run % 8 ? 997 : 1)
                memory[at] = next_number() % 40;
            memset(heads, 0, sizeof heads); memset(entries, 0, sizeof entries); jumps = steps = 0;
            printf("%d", number);
            for (int at = 0; at < parameters[number]; at++)
                printf(" %ld", inputs[at]);
            if (!sigsetjmp(out, 1))
                calls[number](inputs);
            printf(" |");
            for (int at = 0; at < loops[number]; at++)
                printf(" %ld", heads[at] > entries[at] ? heads[at] - entries[at] : 0);
            printf(" %ld\\n", jumps);
        }}
    return 0;
}}
""")
    return "".join(parts)


@dataclass(frozen=True)
class Violation:
    """A run in which a loop, or a function as a whole, ran more often than its bound says."""

    function: str
    line: int
    inputs: dict[str, int]
    observed: int
    bound: str


@dataclass
class Comparison:
    """How many bounds were compared with what was observed, how many were finite, and which do not hold."""

    compared: int
    finite: int
    violations: list[Violation]


def compare(
    functions: Sequence[Counted], bounds: dict[str, Bounds], build: Path, compile_once: CompilerCache,
    runs: int, preamble: str = ""
) -> Comparison:  # fmt: skip
    """Run all functions on random inputs and compare each count with its bound."""
    source = build / f"counting_{functions[0].name}.c"
    source.write_text(program(functions, preamble))
    compiled = compile_once("cc", "-std=gnu11", "-O1", "-w", *_OVERFLOW, source)
    done = subprocess.run([compiled, str(runs), "7"], capture_output=True, text=True, check=True, timeout=600)
    result = Comparison(0, 0, [])
    for line in done.stdout.splitlines():
        left, _, right = line.partition(" | ")
        number, *values = map(int, left.split())
        *counts, jumped = map(int, right.split())
        function = functions[number]
        inputs = {
            p.name: value for p, value in zip(function.parameters, values, strict=True) if not p.is_pointer
        }
        _compare_run(function, bounds[function.name], inputs, counts, jumped, result)
    return result


def _compare_run(
    function: Counted, bounds: Bounds, inputs: dict[str, int], counts: list[int], jumped: int,
    result: Comparison
) -> None:  # fmt: skip
    seen: dict[int, int] = {}
    checks = [(0, sum(counts) + jumped, bounds.total)]
    for (line, _), count in zip(function.loops, counts, strict=True):
        at = seen.get(line, 0)
        seen[line] = at + 1
        checks.append((line, count, bounds.loops[line][at]))
    for line, observed, bound in checks:
        result.compared += 1
        if bound.infinite or not bound.names <= inputs.keys():
            continue
        result.finite += 1
        if observed > bound.evaluate(inputs):
            result.violations.append(Violation(function.name, line, inputs, observed, str(bound)))
