"""Reading C sources: places of loops, dialects, and what cannot be read."""

import json
from pathlib import Path

import pytest

from perun.bounds.front.read import read
from perun.bounds.front.unit import ReadOptions, TranslationUnit
from perun.core.errors import CollectorUnavailable, UsageError


def unit_of(folder: Path, text: str | bytes, name: str = "source.c", **options: object) -> TranslationUnit:
    """A source of this text, read."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(str(path), ReadOptions(**options))  # type: ignore[arg-type]


def places(unit: TranslationUnit) -> dict[str, list[tuple[int, int, int]]]:
    """The loops of each function: first and last line, column."""
    return {
        one.name: [(loop.first_line, loop.last_line, loop.column) for loop in one.loops]
        for one in unit.functions
    }


def test_places_are_those_of_the_original_text(tmp_path: Path) -> None:
    source = """\
#include <stdio.h>
#define EACH(i, n) for ((i) = 0; (i) < (n); (i)++)

static int f(int n)  /* for (;;) { */
{
\tint i;
    for (i = 0; i < n; i++) /* } */
        if (n)
            puts("}");
    EACH(i,
         n) {
        do
            n--;
        while (n > 0
               && i);
    }
    while (n) { while (i) i--; n--; }
    if (n) for (;;) n++; else while (i)
        i--;
    return '}';
}
"""
    unit = unit_of(tmp_path, source)
    assert [(one.name, one.line, one.column) for one in unit.functions] == [("f", 3, 11)]
    assert places(unit)["f"] == [
        (7, 9, 4), (10, 16, 4), (12, 15, 8), (17, 17, 4), (17, 17, 16), (18, 18, 11), (18, 19, 30),
    ]  # fmt: skip
    assert unit.unreadable == ()


def test_line_ends_and_encodings_of_other_systems(tmp_path: Path) -> None:
    source = (
        "int gr\u00f6\u00dfe(int n)\r\n{\r\n  // caf\u00e9\r\n  while (n)\r\n    n--;\r\n  return n;\r\n}\r\n"
    )
    assert places(unit_of(tmp_path, source)) == {"gr\u00f6\u00dfe": [(4, 5, 2)]}
    latin = b"/* caf\xe9 */ int f(int n) { while (n) n--; return '\xe9'; }"
    assert places(unit_of(tmp_path, latin)) == {"f": [(1, 1, 26)]}


@pytest.mark.parametrize("source", [
    "__attribute__((noinline)) static __inline__ int f(int n) { while (n) n--; return n; }",
    "int f(n) int n; { while (n) n--; return n; }",
    'int f(int n) { __asm__ volatile("nop" : : "r"(n) : "memory"); while (n) n--; return n ?: 1; }',
    "int f(int n) { __typeof__(n) m = ({ int t = n; t++; t; }); while (m) m--; return m; }",
    "int f(int n) { switch (n) { case 1 ... 3: case 'a' ... 'z': while (n) n--; } return n; }",
    "int f(int n, ...) { __builtin_va_list a; while (__builtin_va_arg(a, int)) n--; return n; }",
    "LIB_EXPORT size LIB_CALL f(const u8 *p, u32 n) { while (n) n -= (u8)p[0]; return (size)0; }",
    "static INLINE node_t *f(list_t *l, int n) { node_t *p = l->p; while (n) n--; return p; }",
    "struct __attribute__((packed)) s { int a; } x; int f(int n) { while (n) n--; return x.a; }",
    '_Static_assert(1, "one"); [[nodiscard]] int f(int n) { while (n) n--; return NULL == 0; }',
    "int a[] = { [0 ... 3] = 7 }; int f(int n) { while (__builtin_expect(n > 0, 1)) n--; return a[0]; }",
    "#pragma once\nint f(int n) {\n#pragma GCC unroll 4\n while (n) n--; return n; }"
])  # fmt: skip
def test_dialects_are_understood(tmp_path: Path, source: str) -> None:
    unit = unit_of(tmp_path, source)
    assert unit.unreadable == () and [len(one.loops) for one in unit.functions] == [1]


def test_a_function_that_cannot_be_read_loses_only_itself(tmp_path: Path) -> None:
    source = """\
int before(int n) { while (n) n--; return n; }
int jumps(int n) {
    void *to[] = { &&one };
    for (;;)
        if (n)
            goto *to[n];
one:
    return n;
}
int after(int n) { while (n) n--; return n; }
"""
    unit = unit_of(tmp_path, source)
    assert list(places(unit)) == ["before", "after"]
    (lost,) = unit.unreadable
    assert (lost.function, lost.name_line, lost.name_column, lost.line) == ("jumps", 1, 4, 6)
    assert [(one.first_line, one.last_line) for one in lost.loops] == [(4, 6)]
    assert "'*'" in lost.reason


def test_missing_headers_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    source = (
        '#include "../generated/config.h"\n#include <no/such.h>\nint f(int n) { while (n) n--; return n; }\n'
    )
    unit = unit_of(tmp_path, source)
    assert places(unit) == {"f": [(3, 3, 15)]}
    assert [(one.line, one.reason) for one in unit.unreadable] == [
        (1, "there is no header '../generated/config.h'"),
        (2, "there is no header 'no/such.h'"),
    ]


def test_an_error_of_the_preprocessor_is_reported(tmp_path: Path) -> None:
    unit = unit_of(tmp_path, "#error not here\nint f(int n) { while (n) n--; return n; }\n")
    assert [(one.line, one.reason) for one in unit.unreadable] == [(1, "#error not here")]
    assert list(places(unit)) == ["f"]


def test_options_reach_the_preprocessor(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "limits_of.h").write_text("enum { LIMIT = SIZE * 2 };\n")
    source = "#include <limits_of.h>\nint f(int n) { while (n < LIMIT) n++; return n; }\n"
    unit = unit_of(tmp_path, source, include=(str(tmp_path / "include"),), define=("SIZE=4",))
    assert unit.unreadable == () and unit.constants == {"LIMIT": 8}


def test_flags_come_from_a_compilation_database(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "size.h").write_text("#define SIZE 3\n")
    database = tmp_path / "compile_commands.json"
    command = "cc -O2 -Iinclude -DHALF=1 -c source.c -o source.o"
    database.write_text(json.dumps([{"directory": str(tmp_path), "file": "source.c", "command": command}]))
    source = "#include <size.h>\nenum { WHOLE = SIZE + HALF };\nint f(void) { return WHOLE; }\n"
    unit = unit_of(tmp_path, source, compile_commands=str(database))
    assert unit.unreadable == () and unit.constants == {"WHOLE": 4}


@pytest.mark.parametrize("content", [None, "{", "[1]", "{}"])
def test_a_wrong_compilation_database_is_named(tmp_path: Path, content: str | None) -> None:
    database = tmp_path / "compile_commands.json"
    if content is not None:
        database.write_text(content)
    with pytest.raises(UsageError, match=r"compile_commands\.json"):
        unit_of(tmp_path, "int x;", compile_commands=str(database))


def test_what_is_no_c_source_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is C\+\+"):
        unit_of(tmp_path, "int x;", "source.cpp")
    with pytest.raises(UsageError, match="is a folder"):
        read(str(tmp_path), ReadOptions())
    with pytest.raises(UsageError, match="No such file"):
        read(str(tmp_path / "none.c"), ReadOptions())


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\x00\xff\xfe", b"}}}} )( {", b'"', b"int f(int n) { while (n"]
)
def test_what_is_empty_or_broken_does_not_fail(tmp_path: Path, content: bytes) -> None:
    assert unit_of(tmp_path, content).functions == ()


def test_no_compiler_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorUnavailable, match="No C compiler") as refused:
        unit_of(tmp_path, "int x;")
    assert "gcc" in refused.value.hint


def test_deep_nesting_is_read_or_reported(tmp_path: Path) -> None:
    nested = "if (n) { " * 600 + "while (n) n--; " + "} " * 600
    assert list(places(unit_of(tmp_path, f"int f(int n) {{ {nested} return n; }}"))) == ["f"]
    chain = " else ".join(f"if (n == {value}) n++;" for value in range(600))
    assert list(places(unit_of(tmp_path, f"int f(int n) {{ {chain} while (n) n--; return n; }}"))) == ["f"]
    unit = unit_of(
        tmp_path, f"int f(int n) {{ return {'(' * 30_000}n{')' * 30_000}; }}\nint g(void) {{ return 1; }}\n"
    )
    assert "g" in places(unit)


def test_declarations_are_known_by_name(tmp_path: Path) -> None:
    source = (
        "#include <stdint.h>\nenum color { RED, GREEN = 5, BLUE };\nstruct box { uint32_t n; };\n"
        "static unsigned limit; int f(struct box *b);\ntypedef struct box box_t; missing_t *other;\n"
    )
    unit = unit_of(tmp_path, source)
    assert unit.constants == {"RED": 0, "GREEN": 5, "BLUE": 6} and {"limit", "other"} <= unit.globals.keys()
    assert "f" in unit.prototypes and "box" in unit.structs and {"box_t", "uint32_t"} <= unit.typedefs.keys()
    assert "missing_t" in unit.unknown_types
