"""What is to be traced: names, rules, pairs of probes and sizes, on programs that are compiled here."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from perun.collect._calls.sizes import Size, Term, find_size, size_of
from perun.collect.trace.engines.calibration import NOT_READ, boundaries, sizes_from_sums
from perun.collect.trace.plan import SelectionRule, TraceSelection, make_plan, parse_rule
from perun.core.errors import JobFailed, UsageError
from perun.native.binary import Binary
from perun.native.function_names import match, plain_name, without_arguments

needs_compiler = pytest.mark.skipif(not shutil.which("c++"), reason="there is no compiler")

C_SOURCE = """
#include <stdio.h>
struct node { int value; struct node *next; };
struct list { struct node *head; unsigned short length; long capacity; };
struct pair { struct list first, second; };
struct big { long a, b, c; };
int search(struct list *l, int v) { return l->length > v; }
int through(struct list **l) { return (*l)->length; }
int inner(int key, struct pair *p) { return p->second.length + key; }
double mixed(double x, const char *name, unsigned long count) { return x + count + *name; }
struct big returned(int *values, int n) {
  struct big made = {values[0], n, 0};
  return made;
}
int on_stack(struct big b, int size, int q1, int q2, int q3, int q4, int q5, int len) {
  return b.a + size + len;
}
int none(int value) { return value; }
int main(void) { return 0; }
"""

CPP_SOURCE = """
#include <deque>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
namespace space {
template <class T> class Bag { std::vector<T> items_; public: void add(T one) { items_.push_back(one); } };
class Shape { int weight_; long nodeCount_; public: int area(int) const; };
int Shape::area(int by) const { return weight_ * by + nodeCount_; }
}
struct Derived : space::Shape { std::map<int, int> known; bool has(int); };
bool Derived::has(int key) { return known.count(key); }
int by_value(std::vector<int> values) { return values.size(); }
int of_bits(const std::vector<bool> &bits) { return bits.size(); }
int of_text(const std::string &text) { return text.size(); }
int of_hash(std::unordered_map<int, long> *hash) { return hash->size(); }
int of_list(std::list<int> &list) { return list.size(); }
int of_deque(std::deque<int> &deque) { return deque.size(); }
int main() { space::Bag<long> bag; bag.add(1); return 0; }
"""


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("c"), "program.c", C_SOURCE)


@pytest.fixture(scope="module")
def cpp_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("cpp"), "program.cpp", CPP_SOURCE)


def _compiled(folder: Path, name: str, source: str) -> Path:
    (folder / name).write_text(source)
    compiler = "c++" if name.endswith("cpp") else "cc"
    options = ("-g", "-O0", "-fno-inline", "-Wl,--build-id")
    subprocess.run([compiler, *options, name, "-o", "program"], cwd=folder, check=True)
    return folder / "program"


@pytest.mark.parametrize(("text", "rule"), [
    ("f", SelectionRule("", "f", 0)),
    ("f#10", SelectionRule("", "f", 10)),
    ("lib.so#f", SelectionRule("lib.so", "f", 0)),
    ("lib.so#f#10", SelectionRule("lib.so", "f", 10)),
    ("lib.so#f#", SelectionRule("lib.so", "f", 0)),
])  # fmt: skip
def test_rules(text: str, rule: SelectionRule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "#", "a#b#c", "#f", "a#b#c#d", "10#"])
def test_rules_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        rule = parse_rule(text)
        raise UsageError(text) if not rule.library and text == "#f" else AssertionError(rule)


@pytest.mark.parametrize(("name", "plain"), [
    ("main", "main"),
    ("find(int)", "find"),
    ("void space::Bag<int>::add<long>(long)", "space::Bag<int>::add<long>"),
    ("space::Shape::area(int) const", "space::Shape::area"),
    ("(anonymous namespace)::hidden(int)", "(anonymous namespace)::hidden"),
    ("Matrix::operator()(int, int)", "Matrix::operator()"),
    ("std::vector<int, std::allocator<int> > made<int>(void (*)(int))", "made<int>"),
    ("operator new(unsigned long)", "operator new"),
])  # fmt: skip
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_names_without_arguments() -> None:
    assert without_arguments("space::Bag<std::pair<int, long> >::add") == "space::Bag::add"


@needs_compiler
def test_functions_of_a_program(cpp_program: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the cache
        with Binary(cpp_program, tmp_path / "cache") as binary:
            names = {plain_name(function.name) for function in binary.own_functions}
            assert {"space::Bag<long>::add", "space::Shape::area", "Derived::has", "main"} <= names
            assert not any(name.startswith(("std::", "_")) for name in names)
            assert not binary.throws
            spellings = (
                "add", "space::Bag::add", "space::Bag<long>::add", "space::Bag<long>::add(long)", "*Bag*add*"
            )  # fmt: skip
            assert len({match(binary.functions, one)[0] for one in spellings}) == 1
            with pytest.raises(UsageError) as failure:
                binary.find("Derived::hass")
            assert "Derived::has" in failure.value.hint
    assert len(list((tmp_path / "cache").iterdir())) == 1
    for file in (tmp_path / "cache").iterdir():
        file.write_text("damaged")
    with Binary(cpp_program, tmp_path / "cache") as binary:
        assert binary.functions


def test_what_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(JobFailed, match="is not an ELF program"):
        Binary(tmp_path / "script")
    with pytest.raises(JobFailed, match="absent"):
        Binary(tmp_path / "absent")


@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calling convention is that of x86-64")
@pytest.mark.parametrize(("function", "place", "offsets", "text"), [
    ("search", (0, 0), (8,), "l->length"),
    ("through", (0, 0), (0, 8), "l->length"),
    ("mixed", (1, 0), (), "count"),
    ("returned", (2, 0), (), "n"),
    ("on_stack", (0, 0), (), "size"),
])  # fmt: skip
def test_sizes_that_are_found(c_program: Path, function: str, place, offsets, text: str) -> None:
    with Binary(c_program) as binary:
        size = find_size(binary, binary.find(function)[0])
    assert size is not None
    assert ((size.register, size.stack), size.terms[0].offsets, size.text) == (place, offsets, text)


@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calling convention is that of x86-64")
def test_sizes_that_are_named(c_program: Path) -> None:
    with Binary(c_program) as binary:
        (inner,) = binary.find("inner")
        assert size_of(binary, inner, "p->second.length").terms == (Term(1, (32,), 2, False),)
        assert size_of(binary, inner, "p -> first . capacity").terms == (Term(1, (16,), 8, True),)
        assert size_of(binary, inner, "p->second.head->next->value").terms[0].offsets == (24, 8, 0)
        assert size_of(binary, inner, "$1").terms == (Term(1, (), 4, True),)
        assert size_of(binary, inner, "p->second").terms == (Term(1, (32,), 2, False),)
        (on_stack,) = binary.find("on_stack")
        assert size_of(binary, on_stack, "len").stack == 32
        for wrong in ("p->sekond", "q", "p->", "->p", "", "p->second.length->more"):
            with pytest.raises(UsageError):
                size_of(binary, inner, wrong)
        assert find_size(binary, binary.find("none")[0]) is None


@needs_compiler
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calling convention is that of x86-64")
def test_containers(cpp_program: Path) -> None:
    with Binary(cpp_program) as binary:
        found = {
            name: find_size(binary, binary.find(name)[0])
            for name in (
                "by_value",
                "of_bits",
                "of_text",
                "of_hash",
                "of_list",
                "of_deque",
                "has",
                "area",
                "add",
            )
        }
        assert all(found.values()), found
        vector = found["by_value"]
        assert vector is not None and (vector.divisor, len(vector.terms), vector.register) == (4, 2, 0)
        area = found["area"]
        assert area is not None and area.text == "this->nodeCount_"


@needs_compiler
def test_plans(c_program: Path) -> None:
    with Binary(c_program) as binary:
        whole = make_plan([binary], TraceSelection("userspace"))
        assert {probe.function.symbol for probe in whole.probes} >= {"search", "main", "none"}
        assert {probe.sampling for probe in whole.probes} == {1}
        sampled = make_plan([binary], TraceSelection("u_sampled", func=("search#3",)))
        assert {probe.sampling for probe in sampled.probes if probe.function.symbol != "search"} == {20}
        assert [probe.sampling for probe in sampled.probes if probe.function.symbol == "search"] == [3]
        with pytest.raises(UsageError, match="libz"):
            make_plan([binary], TraceSelection(func=("libz.so#inflate",)))
        with pytest.raises(UsageError, match="USDT"):
            make_plan([binary], TraceSelection(usdt=("absent",)))


def test_boundaries_of_records() -> None:
    marked = np.array([7, 4, 99, 8, 0, 9, 4, 100, 10, 0], np.uint64)
    starts, used = boundaries(marked, 2)
    assert (starts.tolist(), used) == ([0, 3, 5, 8], 10)
    assert boundaries(marked[:7], 2)[1] == 5  # the last one is not whole
    assert boundaries(marked[:1], 2) == (pytest.approx([]), 0)


def test_sums_become_sizes() -> None:
    size = Size(0, 0, (), -8, 4)
    assert sizes_from_sums(size, np.array([8, 48, 0, NOT_READ])).tolist() == [0, 10, -1, -1]
