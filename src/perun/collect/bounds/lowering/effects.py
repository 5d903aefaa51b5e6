"""What functions of a unit may change when they are called: globals and fields, through the calls they
make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perun.collect.bounds.lowering.scope import mentions

if TYPE_CHECKING:
    from perun.collect.bounds.front import Unit

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
class Effects:
    """What calling a function may do: globals and fields that it writes, and calls to what is not known."""

    written: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    unknown: bool = False


def effects_of(unit: Unit) -> dict[str, Effects]:
    """The effects of each function of a unit, those of what it calls included."""
    found: dict[str, Effects] = {}
    for each in [*unit.functions, *unit.helpers.values()]:
        read = mentions(each.node.body)
        written = {*read.assigned, *read.addressed}
        found[each.name] = Effects(written, set(read.fields), set(read.calls))
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
