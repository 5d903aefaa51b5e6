"""What is known of functions that are called: those of the C library, and what others may change."""

from __future__ import annotations

from dataclasses import dataclass, field

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
