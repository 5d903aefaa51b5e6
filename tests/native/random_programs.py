"""Random functions of C with structured loops, and jumps, whose bounds are compared with what they do."""

from hypothesis import strategies as st

PARAMETERS = ("a", "b", "n")
SIGNED = ("i", "j", "k", "x", "y")
UNSIGNED = ("v", "w")
_DEPTH = 2


class _Program:
    """A function while it is drawn: its lines, and labels that jumps may go back to."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.made = 0

    def line(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def one(self, *values: str) -> str:
        return self.draw(st.sampled_from(values))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def small(self) -> str:
        """An expression that is often an input."""
        kind = self.number(0, 6)
        if kind <= 2:
            return self.one(*PARAMETERS, "u")
        if kind == 3:
            return str(self.number(-2, 9))
        if kind == 4:
            return f"{self.one(*SIGNED)} {self.one('+', '-')} {self.number(0, 3)}"
        if kind == 5:
            return f"{self.one(*SIGNED, *PARAMETERS)} {self.one('+', '-')} {self.one(*SIGNED, *PARAMETERS)}"
        return self.one(
            f"{self.one(*SIGNED)} / {self.number(1, 3)}", f"{self.one(*PARAMETERS)} % {self.number(2, 5)}",
            f"{self.one(*SIGNED)} >> 1", f"{self.one(*SIGNED)} & 7", f"2 * {self.one(*PARAMETERS)}",
            f"{self.one(*SIGNED)} > {self.one(*SIGNED)} ? {self.one(*SIGNED)} : {self.one(*PARAMETERS)}"
        )  # fmt: skip

    def condition(self) -> str:
        kind = self.number(0, 5)
        if kind <= 1:
            return "NONDET"
        simple = f"{self.one(*SIGNED)} {self.one('<', '<=', '>', '>=', '!=', '==')} {self.small()}"
        if kind == 2:
            return f"{simple} {self.one('&&', '||')} {self.one(*SIGNED)} > 0"
        if kind == 3:
            return f"!({simple})"
        return simple

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        if self.number(0, 9) == 0:
            label = f"l{self.made}"
            self.made += 1
            self.line(indent, f"{label}: ;")
            self.labels.append(label)
            for _ in range(self.number(1, 2)):
                self.statement(indent, depth, in_loop)
            self.labels.remove(label)
            return
        for _ in range(self.number(1, 2)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: int, depth: int, in_loop: bool) -> None:
        choices = [self.assignment, self.assignment, self.branch]
        if depth < _DEPTH:
            choices += [self.loop, self.loop, self.loop, self.loop]
        if self.labels:
            choices.append(self.jump)
        if in_loop:
            choices.append(self.leave)
        choices[self.number(0, len(choices) - 1)](indent, depth, in_loop)

    def assignment(self, indent: int, depth: int, in_loop: bool) -> None:
        kind = self.number(0, 7)
        name = self.one(*SIGNED)
        if kind <= 2:
            self.line(indent, f"{name} {self.one('+=', '-=')} {self.number(1, 3)};")
        elif kind == 3:
            unsigned = self.one(*UNSIGNED)
            self.line(
                indent,
                self.one(
                    f"{unsigned} = LESS({unsigned}, {self.number(1, 2)});",
                    f"{unsigned}++;",
                    f"{unsigned} /= 2;",
                    f"{unsigned} = u;",
                ),
            )
        elif kind == 4:
            other = self.one(*SIGNED)
            self.line(indent, f"t = {name}; {name} = {other}; {other} = t;")
        else:
            self.line(indent, f"{name} = {self.small()};")

    def branch(self, indent: int, depth: int, in_loop: bool) -> None:
        if self.number(0, 4) == 0:
            self.switch(indent, depth, in_loop)
            return
        self.line(indent, f"if ({self.condition()}) {{")
        self.block(indent + 1, depth + 1, in_loop)
        if self.number(0, 1):
            self.line(indent, "} else {")
            self.block(indent + 1, depth + 1, in_loop)
        self.line(indent, "}")

    def switch(self, indent: int, depth: int, in_loop: bool) -> None:
        self.line(indent, f"switch ({self.one('NONDET', 'i & 3', 'x', 'n % 3')}) {{")
        for case in ("case 0:", "case 1:", "default:"):
            self.line(indent, case)
            self.assignment(indent + 1, depth, in_loop)
            if self.number(0, 1):
                self.line(indent + 1, "break;")
        self.line(indent, "}")

    def jump(self, indent: int, depth: int, in_loop: bool) -> None:
        name = self.one(*SIGNED)
        step = f"{name}{self.one('--', '++')};"
        limit, label = self.one("0", *PARAMETERS), self.one(*self.labels)
        self.line(indent, f"if ({name} > {limit} && NONDET) {{ {step} goto {label}; }}")

    def leave(self, indent: int, depth: int, in_loop: bool) -> None:
        self.line(indent, f"if ({self.condition()}) {self.one('break', 'break', 'continue', 'return 1')};")

    def loop(self, indent: int, depth: int, in_loop: bool) -> None:
        name, other = self.one(*SIGNED), self.one(*SIGNED, *PARAMETERS)
        unsigned = self.one(*UNSIGNED)
        step = self.number(1, 3)
        limit = self.small()
        last = ""
        kind = self.number(0, 10)
        if kind <= 1:
            start = self.one("0", "1", other)
            self.line(
                indent, f"for ({name} = {start}; {name} {self.one('<', '<=')} {limit}; {name} += {step}) {{"
            )
        elif kind == 2:
            self.line(
                indent,
                f"for ({name} = {limit}; {name} > {self.one('0', '-1', other)}; {name} -= {step}) {{",
            )
        elif kind == 3:
            self.line(indent, f"while ({name} > {self.one('0', other)}{self.one('', ' && NONDET')}) {{")
            last = f"{name} -= {step};"
        elif kind == 4:
            self.line(indent, f"while ({unsigned} {self.one('> 0', '!= 0', '>= 2')}) {{")
            last = self.one(
                f"{unsigned} = LESS({unsigned}, {step});", f"{unsigned} /= 2;", f"{unsigned} >>= 1;"
            )
        elif kind == 5:
            self.line(indent, f"while ({name} > {self.number(0, 2)}) {{")
            last = self.one(f"{name} /= 2;", f"{name} >>= 1;", f"{name} = {name} - 1;", f"{name} /= 3;")
        elif kind == 6:
            self.line(indent, f"for ({name} = 0; {name} != {self.one(*PARAMETERS, 'u')}; {name}++) {{")
        elif kind == 7:
            self.line(indent, "do {")
            self.block(indent + 1, depth + 1, True)
            self.line(indent + 1, self.one(f"{name}--;", f"{name}++;", ";"))
            self.line(indent, f"}} while ({self.one(f'{name} > 0', f'{name} < {other}', self.condition())});")
            return
        elif kind == 8:
            self.line(indent, f"while ({name} < {limit}) {{")
            last = self.one(f"{name}++;", f"{name} += {step};", f"if (NONDET) {name}++; else {name} += 2;")
        elif kind == 9:
            self.line(
                indent, f"while ({name} > 0 && {self.one(*SIGNED)} {self.one('<', '>', '!=')} {other}) {{"
            )
            last = self.one(f"{name}--;", f"{name}--; {self.one(*SIGNED)}++;")
        else:
            self.line(indent, f"while ({self.condition()}) {{")
        first = bool(last) and self.number(0, 1) == 1
        if first:
            self.line(indent + 1, last)
        self.block(indent + 1, depth + 1, True)
        if last and not first:
            self.line(indent + 1, last)
        self.line(indent, "}")


@st.composite
def functions(draw: st.DrawFn) -> str:
    """The body of a function of `a`, `b`, `n` (signed) and `u` (unsigned), with a loop at least."""
    program = _Program(draw)
    for name in SIGNED:
        program.line(1, f"int {name} = {program.one('0', '0', *PARAMETERS)};")
    program.line(1, "unsigned v = u, w = u;")
    program.line(1, "int t;")
    if program.number(0, 1):
        program.assignment(1, 0, False)
    program.loop(1, 0, False)
    for _ in range(program.number(0, 2)):
        program.statement(1, 0, False)
    program.line(1, "return 0;")
    return "\n".join(program.lines)


def function(name: str, body: str) -> str:
    """A body as a whole function."""
    return f"int {name}(int a, int b, int n, unsigned u)\n{{\n{body}\n}}\n"
