"""A program of 300 functions that calls a lot: generated, also with a slowdown in one of them."""

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

LEVELS: Final = (1, 12, 30, 60, 90, 107)
"""Functions on each level, `main` the first one: 300."""
CALLEES: Final = (12, 4, 3, 3, 3)
"""How many functions of the next level each calls."""
REPEATS: Final = (1, 3, 3, 4, 5)
"""How often it calls each of them."""
WORK: Final = (20_000_000, 4_000_000, 300_000, 20_000, 1_000, 20)
"""Rounds of the own work of each call, by level: about as much on each."""
SLOWER: Final = 600_000_000
"""Rounds that a slowdown adds to all calls of a function together: some tenths of a second, also on a fast
machine. A check takes less than 100 ms of a function that is called once for an interruption."""


class Call(NamedTuple):
    """A function and its callees."""

    name: str
    level: int
    callees: tuple[str, ...]


def functions(seed: int = 1) -> list[Call]:
    """The call graph; each function is called by one of the level above at least."""
    chosen = random.Random(seed)
    names = [
        ["main"] if not level else [f"level{level}_{number}" for number in range(count)]
        for level, count in enumerate(LEVELS)
    ]
    found = []
    for level, own in enumerate(names):
        below = names[level + 1] if level + 1 < len(names) else []
        for position, name in enumerate(own):
            # Those of the level below in turn, so that each has a caller, and random ones besides.
            callees = below[position :: len(own)][: CALLEES[level]] if below else []
            while below and len(callees) < CALLEES[level]:
                callees.append(chosen.choice(below))
            found.append(Call(name, level, tuple(callees)))
    return found


def counts(calls: Sequence[Call]) -> dict[str, int]:
    """How often each function is called."""
    found = {"main": 1}
    for one in calls:
        for callee in one.callees:
            found[callee] = found.get(callee, 0) + found[one.name] * REPEATS[one.level]
    return found


def source(slower: str = "", seed: int = 1) -> str:
    """The program in C; the function `slower` does :data:`SLOWER` more."""
    calls = functions(seed)
    often = counts(calls)
    lines = ["volatile unsigned sink;", "static inline __attribute__((always_inline))"]
    lines += ["void work(unsigned n) {", "    for (unsigned i = 0; i < n; i++) sink += i;", "}"]
    lines += [f"void {one.name}(void);" for one in calls if one.name != "main"]
    for one in calls:
        own = WORK[one.level] + (SLOWER // often[one.name] if one.name == slower else 0)
        kind = "int" if one.name == "main" else "__attribute__((noinline)) void"
        body = [f"    work({own});"]
        if one.callees:
            inner = " ".join(f"{callee}();" for callee in one.callees)
            body.append(f"    for (int again = 0; again < {REPEATS[one.level]}; again++) {{ {inner} }}")
        tail = ["    return 0;"] if one.name == "main" else []
        lines += [f"{kind} {one.name}(void) {{", *body, *tail, "}"]
    return "\n".join(lines) + "\n"


def guilty(seed: int = 1) -> list[str]:
    """Ten functions to be slowed down: three of the first level, four of the second, three of the third."""
    chosen = random.Random(seed)
    by_level: dict[int, list[str]] = {}
    for one in functions(seed):
        by_level.setdefault(one.level, []).append(one.name)
    by_count = ((1, 3), (2, 4), (3, 3))
    return [name for level, count in by_count for name in chosen.sample(by_level[level], count)]
