"""Substitutes for headers of the C library, for machines that have a compiler and no headers.

They declare what loops depend on: the signs of types, the values of limits, and truth.
"""

from __future__ import annotations

from typing import Final

_INTEGERS = "".join(
    f"typedef signed {kind} int{bits}_t; typedef unsigned {kind} uint{bits}_t;\n"
    f"typedef signed {kind} int_least{bits}_t; typedef unsigned {kind} uint_least{bits}_t;\n"
    f"#define INT{bits}_MAX {2 ** (bits - 1) - 1}{suffix}\n#define INT{bits}_MIN (-INT{bits}_MAX - 1)\n"
    f"#define UINT{bits}_MAX {2**bits - 1}U{suffix}\n"
    for bits, kind, suffix in ((8, "char", ""), (16, "short", ""), (32, "int", ""), (64, "long", "L"))
)
_SIZES = (
    "#ifndef PERUN_SIZES\n#define PERUN_SIZES\n#define NULL ((void *)0)\n"
    "typedef unsigned long size_t; typedef long ssize_t; typedef long ptrdiff_t; typedef int wchar_t;\n"
    "#endif\n"
)
_STDINT = (
    "#ifndef PERUN_STDINT\n#define PERUN_STDINT\n" + _INTEGERS + "typedef long intptr_t, intmax_t;\n"
    "typedef unsigned long uintptr_t, uintmax_t;\n#define SIZE_MAX 18446744073709551615UL\n#endif\n"
)
_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define PATH_MAX 4096
"""

CONTENT: Final[dict[str, str]] = {
    "stddef.h": _SIZES + "#define offsetof(type, member) __builtin_offsetof(type, member)\n",
    "stdint.h": _STDINT,
    "inttypes.h": _STDINT,
    "limits.h": _LIMITS,
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "stdlib.h": _SIZES + "#define EXIT_SUCCESS 0\n#define EXIT_FAILURE 1\n#define RAND_MAX 2147483647\n"
    "void *malloc(size_t n); void *calloc(size_t n, size_t m); void *realloc(void *p, size_t n);\n"
    "void free(void *p);\n"
    "int abs(int n); int atoi(const char *s); void exit(int n); void abort(void); int rand(void);\n",
    "string.h": _SIZES + "size_t strlen(const char *s); int memcmp(const void *p, const void *q, size_t n);\n"
    "int strcmp(const char *s, const char *t);\n",
    "stdio.h": _SIZES
    + "#define EOF (-1)\ntypedef struct _perun_file FILE;\nextern FILE *stdin, *stdout, *stderr;\n",
    "stdarg.h": "typedef __builtin_va_list va_list;\n#define va_start(ap, last) __perun_va_start(&ap)\n"
    "#define va_end(ap) __perun_va_end(&ap)\n#define va_arg(ap, type) __builtin_va_arg(ap, type)\n"
    "#define va_copy(to, from) __perun_va_copy(&to, from)\n",
    "assert.h": "#define assert(condition) ((void)0)\n",
    "errno.h": "extern int errno;\n",
    "ctype.h": "",
    "math.h": "",
    "sys/types.h": _SIZES + _STDINT + "typedef long off_t; typedef long time_t; typedef int pid_t;\n",
    "time.h": _SIZES,
    "unistd.h": _SIZES,
}
"""By the name that `#include` has for it."""
