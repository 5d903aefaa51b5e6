"""Contracts catch what is planted in programs of three languages, and keep quiet on harmless changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perun.repository.init import init
from shared import conftest_of

_cli = conftest_of("cli")
command, environment, perun = _cli.command, _cli.environment, _cli.perun

C = """#include <stdlib.h>
#include <string.h>
static volatile long sum;
static long known[64];
static long fib(long n, int memo) {
    if (n < 2) return n;
    if (memo && known[n]) return known[n];
    return known[n] = fib(n - 1, memo) + fib(n - 2, memo);
}
/* top */
int main(int count, char **words) {
    long n = atol(words[1]);
    char *text = calloc(n + 1, 1);
    for (long i = 0; i < 3000; i++) sum += i;
    /* begin */
    STEP
    return (int)fib(0, 1) + text[0] * 0;
}
"""
CPP = """#include <algorithm>
#include <cstdlib>
#include <list>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
static std::unordered_map<long, long> known;
static long ways(long n, bool memo) {
    if (n < 2) return 1;
    auto found = memo ? known.find(n) : known.end();
    if (found != known.end()) return found->second;
    return known[n] = ways(n - 1, memo) + ways(n - 2, memo) % 1000;
}
/* top */
int main(int, char **words) {
    long n = atol(words[1]), sum = 0;
    /* begin */
    STEP
    return sum + ways(1, true) < 0;
}
"""
PYTHON = """import sys
memo = {}
def ways(n, keep):
    if keep and n in memo:
        return memo[n]
    memo[n] = found = 1 if n < 2 else ways(n - 1, keep) + ways(n - 2, keep)
    return found
n = int(sys.argv[1])
STEP
"""
FACTOR = "instructions at most +20 % of the lock"


class Planted(NamedTuple):
    """A program. :param kept: its step, and :param planted: what breaks the contract."""

    name: str
    source: str
    contract: str
    kept: str
    planted: str


PROGRAMS = [
    Planted("c-quadratic", C, "instructions grow at most n^1.2 for n 200..3200",
            "for (long i = 0; i < n; i++) text[i] = 'a';",
            "for (long i = 0; i < n; i++) for (long j = 0; j < i; j++) sum += j;"),
    Planted("c-cubic", C, "instructions grow at most n^2.2 for n 8..128",
            "for (long i = 0; i < n * n; i++) sum += i;",
            "for (long i = 0; i < n * n; i++) for (long k = 0; k < n; k++) sum += k;"),
    Planted("c-exponential", C, "instructions grow at most n^3 for n 4, 8, 12, 16, 18",
            "for (long i = 0; i < n * n; i++) sum += i;", "for (long i = 0; i < 1L << n; i++) sum += i;"),
    Planted("c-factor", C, FACTOR, "for (long i = 0; i < 100 * n; i++) sum += i;",
            "for (long i = 0; i < 130 * n; i++) sum += i;"),
    Planted("c-allocation", C, "allocations at most 20 for n 100, 1000",
            "free(malloc(16 * n));", "for (long i = 0; i < n; i++) free(malloc(16));"),
    Planted("c++-quadratic", CPP, "instructions grow at most n^1.3 for n 200..3200",
            "std::unordered_set<long> seen; for (long i = 0; i < n; i++) sum += seen.insert(i).second;",
            "std::vector<long> seen; for (long i = 0; i < n; i++) if (std::find(seen.begin(), seen.end(), i) "
            "== seen.end()) seen.push_back(i); sum += seen.size();"),
    Planted("c++-exponential", CPP, "instructions grow at most n^2 for n 4, 8, 12, 16, 20",
            "std::vector<long> best(100 * n); for (auto &one : best) sum += one + n;",
            "std::vector<long> best; for (long i = 0; i < 1L << n; i += 4) { best.push_back(i); "
            "sum += best.back(); }"),
    Planted("c++-memo", CPP, "instructions grow at most n^1.5 for n 5, 10, 15, 20, 25",
            "sum += ways(n, true);", "sum += ways(n, false);"),
    Planted("c++-allocation", CPP, "allocations grow at most n^0.5 for n 100..1600",
            "std::vector<long> all(n, 1); sum += all.size();",
            "std::list<long> all(n, 1); sum += all.size();"),
    Planted("python-quadratic", PYTHON, "instructions grow at most n^1.4 for n 100..1600",
            "seen = set()\nfor i in range(n):\n    if i not in seen:\n        seen.add(i)",
            "seen = []\nfor i in range(n):\n    if i not in seen:\n        seen.append(i)"),
    Planted("python-memo", PYTHON, "instructions grow at most n^2 for n 5, 10, 15, 20, 22",
            "ways(n, True)", "ways(n, False)"),
    Planted("python-allocation", PYTHON, "allocations grow at most n^0.5 for n 2000..32000",
            "all = bytearray(n)", "all = [[one] for one in range(n)]"),
]  # fmt: skip
HARMLESS = {
    "/* top */": ["/* more words */", "static long more(long a) { return a; }\nlong (*kept)(long) = more;"],
    "/* begin */": ["if (n < 0) return 1;", "for (volatile long i = 0; i < 500; i++) ;",
                    "volatile char room[4096]; room[0] = 1;", "volatile long twice = n * 2; n = twice / 2;"],
}  # fmt: skip


@pytest.fixture
def guarded(
    git_repository: Any, compiled_once: Any, tmp_path: Path, perun: Any, environment: dict[str, str]
) -> Callable[..., str]:
    """What `perun guard check` says of a program with this source: kept or not."""
    folder = git_repository(commits=1).path
    init(folder, environ=environment)
    source, program = tmp_path / "source", folder / "program"

    def check(planted: Planted, text: str) -> str:
        if planted.source is PYTHON:
            (folder / "program.py").write_text(text)
            run = f"{sys.executable} -S program.py"
        else:
            path = source.with_suffix(".c" if planted.source is C else ".cpp")
            path.write_text(text)
            program.unlink(missing_ok=True)
            program.hardlink_to(
                compiled_once("cc" if planted.source is C else "c++", "-O1", "-g", "-fno-builtin", path)
            )
            run = "./program"
        run += " {n}" if " for n " in planted.contract else " 3000"
        (folder / "perun-guard.yml").write_text(f"{run}: {planted.contract}\n")
        trusted = {"PERUN_TRUST": "1"}
        if planted.contract == FACTOR and not (folder / "perun.lock").exists():
            perun("lock", cwd=folder, env=trusted)
        (one,) = perun("guard", "check", "--json", cwd=folder, env=trusted, check=False).json["contracts"]
        assert not one["error"], one
        return str(one["reason"]) if one["kept"] is not False else f"BROKEN {one['reason']}"

    return check


USUAL = {"c-exponential", "c++-allocation"}
CASES = [pytest.param(one, id=one.name, marks=[] if one.name in USUAL else [pytest.mark.slow])
         for one in PROGRAMS]  # fmt: skip


@pytest.mark.parametrize("planted", CASES)
def test_what_is_planted_is_caught(planted: Planted, guarded: Any) -> None:
    told = guarded(planted, planted.source.replace("STEP", planted.kept))
    assert "BROKEN" not in told, told
    told = guarded(planted, planted.source.replace("STEP", planted.planted))
    assert told.startswith("BROKEN"), told


@pytest.mark.slow
@pytest.mark.parametrize("planted", [one for one in PROGRAMS if one.source is C], ids=lambda one: one.name)
def test_harmless_changes_are_kept(planted: Planted, guarded: Any) -> None:
    base = planted.source.replace("STEP", planted.kept)
    guarded(planted, base)
    for place, changes in HARMLESS.items():
        for change in changes:
            told = guarded(planted, base.replace(place, change))
            assert not told.startswith("BROKEN"), (change, told)
