"""Eleven versions of a program of a chain of functions, and which of these each version changes."""

from collections.abc import Mapping

MODES = ("soft", "semistrict", "strict", "color")
COUNT = 24
ASSEMBLY = """
__attribute__((naked, noinline)) int assembly(int one, int two) {
    __asm__("%s");
}
"""
PLAIN = r"mov %edi, %eax\n add $3, %eax\n mov %esi, %ecx\n imul %ecx, %eax\n ret"
OTHER_REGISTERS = r"mov %edi, %eax\n add $3, %eax\n mov %esi, %edx\n imul %edx, %eax\n ret"
OTHER_ORDER = r"mov %edi, %eax\n mov %esi, %edx\n add $3, %eax\n imul %edx, %eax\n ret"


def source(bodies: Mapping[str, str], names: Mapping[str, str], assembly: str, order: int = 1) -> str:
    """A program of `COUNT` functions of which each calls the next one."""
    shown = [names.get(f"f{number}", f"f{number}") for number in range(COUNT)]
    declared = "".join(f"int {name}(int x);\n" for name in shown)
    texts = []
    for number, name in enumerate(shown):
        callee = f"{shown[number + 1]}(x + {number}) + 1" if number + 1 < COUNT else "assembly(x, 2)"
        usual = f"return {callee};"
        body = bodies.get(f"f{number}", usual)
        texts.append(f"__attribute__((noinline, noipa)) int {name}(int x) {{ {body} }}\n")
    more = bodies.get("more", "")
    main = f"int main(int count, char **all) {{ (void)all; return {shown[0]}(count) == 0; }}\n"
    return ASSEMBLY % assembly + "volatile int sink;\n" + declared + more + "".join(texts[::order]) + main


MULTIPLY = {"f3": "return f4(x + 3) * 3;"}
FIVE = {"f3": "return f4(x + 3) * 5;"}
NEW = FIVE | {
    "more": "__attribute__((noinline, noipa)) int added(int x) { return x ^ 5; }\n",
    "f7": "return f8(x + 7) + added(x);",
}
BRANCH = FIVE | {"f9": "if (x > 100) sink = 2; return f10(x + 9) + 1;"}
RENAMED = {"f5": "renamed"}
HISTORY: list[tuple[str, str, dict[str, set[str]]]] = [
    ("begin", source({}, {}, PLAIN), {}),
    (
        "multiply in f3",
        source(MULTIPLY, {}, PLAIN),
        {mode: {"f3"} for mode in MODES if mode != "soft"},  # it has as many instructions as before
    ),
    ("another factor in f3", source(FIVE, {}, PLAIN), {"strict": {"f3"}, "color": {"f3"}}),
    ("say what it is", "/* a chain of functions */\n" + source(FIVE, {}, PLAIN), {}),
    ("call f5 otherwise", source(FIVE, RENAMED, PLAIN), {}),
    ("write them in another order", source(FIVE, RENAMED, PLAIN, -1), {}),
    ("call a new function", source(NEW, RENAMED, PLAIN), {mode: {"f7", "added"} for mode in MODES}),
    ("call it no more", source(FIVE, RENAMED, PLAIN), {mode: {"f7"} for mode in MODES}),
    ("branch in f9", source(BRANCH, RENAMED, PLAIN), {mode: {"f9"} for mode in MODES}),
    ("use another register", source(BRANCH, RENAMED, OTHER_REGISTERS), {"strict": {"assembly"}}),
    (
        "exchange two instructions",
        source(BRANCH, RENAMED, OTHER_ORDER),
        {"strict": {"assembly"}, "semistrict": {"assembly"}},
    ),
]
"""Subjects, sources, and by mode the functions that changed; factors are operands of one instruction."""
