"""What lines cost, whose they are, and which change of a diff makes others cost more."""

import pytest

from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.running.explain.causes import cause_sentence, without_effects
from perun.running.explain.costs import FunctionKey, disagreements
from perun.running.explain.data import CaseReport, Cause, CostChange, Effect, FunctionChange
from perun.running.explain.definitions import definitions_of, flags, says_the_same
from perun.running.explain.lines import bare, code_costs, renamed

HEADER = """\
#ifndef A_H
#define LIMIT 3
#define TWICE(x) \\
    ((x) + \\
     (x))
enum colour { RED, GREEN = 2 };
typedef struct pair {
    int a, b;
} pair_t;
static const int table[] = {
    1, 2,
    3,
};
extern "C" {
int f(int a);
static int count = 4; // a comment; of it
}
static int g(void) { return 1; }
struct point origin = { 1, 2 };
"""


def test_what_a_source_defines_outside_of_functions() -> None:
    found = {frozenset(one.names): (one.first, one.last) for one in definitions_of(HEADER)}
    assert found[frozenset({"LIMIT"})] == (2, 2) and found[frozenset({"TWICE"})] == (3, 5)
    assert found[frozenset({"colour", "RED", "GREEN"})] == (6, 6)
    assert found[frozenset({"pair", "pair_t"})] == (7, 9)
    assert found[frozenset({"table"})] == (10, 13) and found[frozenset({"count"})] == (16, 16)
    assert found[frozenset({"origin"})] == (19, 19)
    assert not any({"f", "g"} & names for names in found)


@pytest.mark.parametrize("text", ["", "{", "}}}", "#define", "#define \\", "enum {", "int a[", ";;;", "\0"])
def test_texts_that_define_nothing(text: str) -> None:
    assert not any("" in one.names for one in definitions_of(text))


def test_changes_that_change_nothing() -> None:
    assert says_the_same(["int a = 0, b;"], ["int b, a = 0;  // both"])
    assert says_the_same(["FILE *f;"], ["FILE *const f;"]) and says_the_same([], ["/* only", "   words */"])
    assert not says_the_same(["x = a - b;"], ["x = a + b;"]) and not says_the_same(["int a;"], ["long a;"])


def test_options_of_a_compiler() -> None:
    assert flags(["\tgcc -O2 -o p p.c"], ["\tgcc -O0 -o p p.c"]) == (True, frozenset())
    assert flags(["gcc p.c"], ["gcc -DN=3 p.c"]) == (True, frozenset({"N"}))
    assert flags(["VERSION = 1"], ["VERSION = 2"]) == (False, frozenset())


def test_bare_names() -> None:
    names = {"find": "find", "shop::Map<int, int>::find(int const&)": "find", "sort<int>(int*)": "sort",
             "std::pair<int, int> make<int>(int)": "make", "(anonymous namespace)::f(int)": "f",
             "A::operator==(A const&) const": "operator==", "Box.run": "run"}  # fmt: skip
    assert {name: bare(name) for name in names} == names


def profile(rows: list[tuple[str, int]], costs: list[list[int]], calls: list[list[int]]) -> Profile:
    """Instructions of functions of a.c, and their lines: `main`, `strlen` of libc and `walk` by number."""
    made = Profile({"lines": {
        "files": ["a.c"], "costs": costs, "calls": calls,
        "functions": [{"function": "main", "source": "a.c"}, {"function": "strlen", "source": "libc.so"},
                      {"function": "walk", "source": "a.c"}],
    }})  # fmt: skip
    main = {"function": "main", "source": "a.c"}
    made.update_resources([
        {"uid": {"function": name, "source": "libc.so" if name == "strlen" else "a.c"}, "amount": amount,
         "trace": [{"function": name, "source": "libc.so" if name == "strlen" else "a.c"}]
                  + ([] if name == "main" else [main]),
         "type": "instructions", "subtype": "exclusive"}
        for name, amount in rows
    ])  # fmt: skip
    return made


def owner(path: str, line: int) -> FunctionKey | None:
    return FunctionKey("inner" if line < 10 else "main" if line < 20 else "walk", path)


def test_inlined_functions_have_costs_of_their_own() -> None:
    found = code_costs(
        profile([("main", 100), ("strlen", 40), ("walk", 7)], [[0, 0, 3, 60], [0, 0, 12, 40], [2, 0, 25, 7]],
                [[0, 0, 4, 1, 2, 30], [0, 0, 13, 1, 1, 10], [0, 0, 4, 2, 9, 7]]),
        lambda place: place.source == "a.c", owner,
    )  # fmt: skip
    main, inner = FunctionKey("main", "a.c"), FunctionKey("inner", "a.c")
    assert {place: one.amount for place, one in found.functions.items()} == {
        main: 40 + 10, inner: 60 + 30, FunctionKey("walk", "a.c"): 7,
    }  # fmt: skip
    assert found.functions[inner].parts == {FunctionKey("strlen", "libc.so"): 30}
    assert found.calls == {(inner, FunctionKey("walk", "a.c")): 9}
    assert found.lines["a.c", 4] == 30 and found.seen[inner] == [3]


@pytest.mark.parametrize("lines", [
    None, [], {}, {"files": 3}, {"files": ["a.c"], "functions": [3], "costs": [[0, 0, 1, 5]]},
    {"files": [], "functions": [], "costs": [[0, 0, 1, 2], "abcd", [1, 2], [0, 0, -1, 2]],
     "calls": [[9] * 6]},
])  # fmt: skip
def test_lines_of_another_form_are_none(lines: object) -> None:
    made = profile([("main", 100)], [], [])
    made["lines"] = lines
    found = code_costs(made, lambda place: place.source == "a.c", owner)
    assert {place.name: one.amount for place, one in found.functions.items()} == {"main": 100}


def test_a_function_with_other_parameters_is_the_same() -> None:
    plain = code_costs(profile([("f(int)", 5)], [], []), lambda _: True, owner)
    other = code_costs(profile([("f(long)", 9)], [], []), lambda _: True, owner)
    assert list(renamed(plain, other).functions) == [FunctionKey("f(long)", "a.c")]
    assert renamed(plain, plain) is plain


def test_ten_effects_of_one_cause_are_one_line() -> None:
    effects = tuple(Effect(f"f{number}", f"a.c:f{number}", 100.0, 300.0) for number in range(10))
    cause = Cause("definition", "N", "a.h", 3, 3, 1000, 3000, 2.0, effects)
    assert cause_sentence(cause) == (
        "N changed (a.h:3); so "
        + ", ".join(f"f{number}() executes 3x, 100 instr -> 300 instr" for number in range(3))
        + ", 7 more functions: 3x, 0.700 k instr -> 2.10 k instr"
    )
    data = cause._replace(kind="data", name="", path="a.txt", effects=effects[:1])
    assert cause_sentence(data).startswith("a.txt changed (data); that may be why f0() executes 3x")
    nothing = Cause("nothing", "a.h, README", "", 0, 0, 0, 0, 0.5, effects[:1])
    assert cause_sentence(nothing).startswith("nothing in the diff touches what costs more: f0()")
    assert "it may be what changed in a.h, README" in cause_sentence(nothing)
    cost = CostChange("instructions", "instr", 100, 300, 1000)
    functions = tuple(FunctionChange(f"f{number}", "a.c", "a.c", 1, 2, (cost,)) for number in range(12))
    case = CaseReport("./a", (), functions, 0, (), (), (cause,))
    assert [one.name for one in without_effects(case)] == ["f10", "f11"]


def test_where_counts_and_times_disagree_both_are_said() -> None:
    counted = CostChange("instructions", "instr", 100, 150, 100)
    verdict = PerformanceChange.NoChange
    time = CostChange("time cpu", "s", 2.0, 1.98, 2.0, 0.97, 1.01, "./a [cpu]", verdict, 0.99)
    (said,) = disagreements([counted, time])
    assert "50 % more instructions are executed, and time cpu says -1.0 %" in said
    assert not list(disagreements([counted, time._replace(low=1.2, high=1.6, reported=1.4)]))
    assert not list(disagreements([time])) and not time._replace(after=9.0).amounts_fit
