"""Where functions begin and end, which lines of a diff are theirs, and what a sentence says of them."""

import math
import shutil
import subprocess
from pathlib import Path

import pytest

from perun.core.process.git import GitCommand
from perun.native import scopes
from perun.plugin.api import FileDiff
from perun.running.explain.costs import sentence
from perun.running.explain.data import CostChange, FunctionChange, GrowthChange, HunkLine
from perun.running.explain.explaining import with_moved
from perun.running.explain.sources import defined_by, functions_of, is_named, kind_of, lines_of, within
from perun.vcs._common import history

C = """\
#include <stdio.h>
#define OPEN {   /* no brace of the text */

/* int hidden(void) { */
static int table[] = { 1, 2, 3 };
struct pair {
    int a, b;
};

__attribute__((noinline))
static unsigned long
first(const char *text, int (*compare)(int, int))
{
    if (text[0] == '{' || "}"[0])
        return 1;  // }
    do { ; } while (0);
    return 0;
}

int second(void) { return first("{", 0); }
enum colour { RED, GREEN };
int third(int a,
          int b)
{
#if 1
    return a + b;
#endif
}
"""
CPP = """\
namespace list {
template <typename T>
class List {
  public:
    List() : size_(0) {
    }
    int push(T one) const noexcept
    {
        for (auto &x : all) { (void)x; }
        return 1;
    }
};
void List<int>::clear() { }
}
extern "C" {
int plain(int a) {
    return [&] { return a; }();
}
}
bool operator==(const Pair &a, const Pair &b)
{
    return true;
}
"""
PYTHON = """\
import functools

@functools.cache
def first(n):
    def inner():
        return 1
    return inner()

class Box:
    async def open(self):
        pass
"""


def spans(path: str, text: str) -> dict[str, tuple[int, int]]:
    return {one.name: (one.first, one.last) for one in functions_of(path, text)}


def test_functions_of_c_with_braces_where_there_are_none() -> None:
    assert spans("a.c", C) == {"first": (10, 18), "second": (20, 20), "third": (22, 28)}


def test_functions_of_cpp_within_namespaces_and_classes() -> None:
    found = spans("a.cpp", CPP)
    assert found["push"] == (7, 11)
    assert found["List"][0] == 5
    assert found["plain"] == (16, 18)
    assert found["operator=="] == (20, 23)


def test_functions_of_python_with_decorators_and_nested_ones() -> None:
    assert spans("a.py", PYTHON) == {"first": (3, 7), "inner": (5, 6), "open": (10, 11)}
    assert spans("a.py", "def broken(:\n") == {}


@pytest.mark.parametrize("text", ["", "{", "}}}}", "f(", "f() {", "\0", "'" * 1000, "/*", "int f() { " * 50])
def test_texts_that_are_no_sources_have_no_functions(text: str) -> None:
    assert spans("a.c", text) == {}


def test_macros_are_no_names_of_functions() -> None:
    text = "FUNCTION(walk)\n{\n}\nUNUSED(n) int leaf(int n)\n{\n}\nint own(int n)\n{\n}\n"
    found = functions_of("a.c", text, {"FUNCTION", "UNUSED"})
    assert found == [("walk", 1, 3), ("leaf", 4, 6), ("own", 7, 9)]


def test_what_a_line_defines() -> None:
    lines = {"#define N 3": "N", "  # define F(x) x": "F", "LIMIT = 3": "LIMIT",
             "static const int k[] = {1};": "k", "import numpy": "numpy", "if (a == b)": "",
             "/* a comment */": ""}  # fmt: skip
    assert {line: defined_by(line) for line in lines} == lines


def test_names_of_profiles_mean_functions_of_sources() -> None:
    assert is_named("Box::sum", "app::Box::sum() const") and is_named("push", "List::push(int)")
    assert is_named("f", "f(int, char const*)") and is_named("run", "Box.run") and not is_named("f", "ff")


PATCH = """\
@@ -1,4 +1,4 @@
 a
-b
+B
 c
 d
@@ -20,3 +20,4 @@ int f()
 x
+y
 z
-w
\\ No newline at end of file
+w"""


def test_lines_have_their_numbers_on_both_sides() -> None:
    found = list(lines_of(FileDiff("a.c", "a.c", PATCH)))
    changed = [HunkLine("-", 2, 0, "b"), HunkLine("+", 0, 2, "B")]
    assert found[:4] == [HunkLine(" ", 1, 1, "a"), *changed, HunkLine(" ", 3, 3, "c")]
    assert found[-2:] == [HunkLine("-", 22, 0, "w"), HunkLine("+", 0, 23, "w")]
    assert [line.text for line in within(found, (19, 21), (19, 22))] == ["x", "y", "z"]
    assert within(found, (3, 4), (3, 4)) == []  # nothing of these has changed
    assert within(found, (0, -1), (0, -1)) == []


def test_kinds_of_files() -> None:
    names = {"Makefile": "build", "src/meson.build": "build", "a/b.c": "source", "data/words.txt": "data",
             "rules.mk": "build", "x.py": "source"}  # fmt: skip
    assert {name: kind_of(name) for name in names} == names


def test_the_difference_of_commits_with_odd_files(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()

    def commit() -> str:
        git("add", "--all")
        git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
        return git("rev-parse", "HEAD")

    git("init", "-q")
    odd = 'žluť "quoted"\n name.c'
    (tmp_path / odd).write_text("1\n2\n")
    (tmp_path / "binary").write_bytes(b"\0\1\2")
    (tmp_path / "link").write_text("diff --git a/x b/x\n@@ -1 +1 @@\n")
    (tmp_path / "old.c").write_text("\n".join(map(str, range(50))))
    (tmp_path / "gone.c").write_text("gone\n")
    first = commit()
    (tmp_path / odd).write_text("1\n3\n")
    (tmp_path / "binary").write_bytes(b"\0\1\3")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("old.c")
    (tmp_path / "old.c").rename(tmp_path / "renamed.c")
    (tmp_path / "gone.c").unlink()
    (tmp_path / "new.c").write_text("diff --git a/gone.c b/gone.c\n")
    second = commit()
    found = {one.new or one.old: one for one in history.between(GitCommand(tmp_path, {}), first, second)}
    assert found.keys() == {odd, "binary", "link", "renamed.c", "gone.c", "new.c"}
    changed = [(line.mark, line.text) for line in lines_of(found[odd]) if line.mark != " "]
    assert changed == [("-", "2"), ("+", "3")]
    assert found["binary"].patch == ""
    assert (found["renamed.c"].old, found["renamed.c"].patch) == ("old.c", "")
    assert (found["gone.c"].old, found["gone.c"].new) == ("gone.c", "")
    assert [line.text for line in lines_of(found["new.c"])] == ["diff --git a/gone.c b/gone.c"]
    assert {line.mark for line in lines_of(found["link"])} == {"+", "-"}


INLINED = """\
static inline __attribute__((always_inline)) int twice(int a)
{
    return 2 * a;
}

int __attribute__((noinline)) outer(int a)
{
    a = twice(a);

    return a + 1;
}

int main(int count, char **words) { return outer(count); }
"""


def test_debug_information_has_lines_and_inlined_functions(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    source, program = tmp_path / "inlined.c", tmp_path / "inlined"
    source.write_text(INLINED)
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
    found = scopes.read(program, {"inlined.c"})
    assert found.has_lines and found.inlined == {"twice"}
    outer = found.ranges["inlined.c", "outer"]
    assert (outer.first, outer.last) == (6, 11)
    assert scopes.read(program, {"other.c"}) == ({}, frozenset(), True, {}, {})
    data = program.read_bytes()
    half, wrong = data[: len(data) // 2], data.replace(b"GNU C", b"\xff" * 5)
    for damaged in (data[:200], half, wrong, b"", b"#!/bin/sh\n"):
        (tmp_path / "damaged").write_bytes(damaged)
        scopes.read(tmp_path / "damaged", {"inlined.c"})  # has nothing, and raises nothing


def function(name: str, before: float, after: float, **others: object) -> FunctionChange:
    cost = CostChange("instructions", "instr", before, after, 1000)
    return FunctionChange(name, "a.c", "a.c", 3, 9, (cost,), **others)  # type: ignore[arg-type]


def test_the_interval_of_a_cost() -> None:
    counted = CostChange("instructions", "instr", 2, 3, 10)
    assert counted.bounds == (1.5, 1.5) and counted._replace(before=0).bounds is None
    assert counted._replace(low=1.4, high=1.7).bounds == (1.4, 1.7)
    assert counted._replace(low=1.4, high=math.inf).bounds is None


def test_sentences() -> None:
    grown = GrowthChange(True, True, "3instr + 2instr * n log n", "3instr + 2instr * n^2", "")
    lines = (HunkLine("+", 0, 4, "x"), HunkLine(" ", 4, 5, "y"))
    assert sentence(function("sort", 100, 190, growth=grown, lines=lines)) == (
        "sort() executes 1.9x the instructions [exact], 100 instr -> 190 instr; "
        "1 line of it changed in a.c:3-9; its order of growth went from n log n to n^2"
    )
    new = sentence(function("new", 0, 5))
    assert new.startswith("new() executes instructions that it did not before [exact]")
    assert "no line of it changed in a.c:3-9" in sentence(function("other", 5, 6))
    unknown = sentence(function("other", 5, 6)._replace(first=0, last=0))
    assert unknown.endswith("its lines are not known") and "no line" not in unknown


def test_cost_that_moved_from_one_function_to_another() -> None:
    both = [function("callee", 100, 300), function("caller", 400, 200), function("third", 10, 500)]
    flat = [CostChange("instructions", "instr", 1000, 1010, 1000)]
    found = {one.name: one.moved_with for one in with_moved(both, flat)}
    assert found == {"callee": ("a.c:caller",), "caller": ("a.c:callee",), "third": ()}
    more = [CostChange("instructions", "instr", 1000, 1490, 1000)]
    assert not any(one.moved_with for one in with_moved(both, more))
