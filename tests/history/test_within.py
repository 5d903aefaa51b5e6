"""`perun bisect --within`: the hunk of a commit that changed what a program costs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

FILES = ("alpha", "beta", "gamma")
BUILD = "cc -O1 -g -I. -o app main.c alpha.c beta.c gamma.c\n"
MAIN = (
    '#include <stdio.h>\n#include "all.h"\nint main(void) {\n  long s = 0;\n'
    + "".join(f"  s += {name}{number}(500);\n" for name in FILES for number in range(4))
    + '  printf("%ld\\n", s);\n  return 0;\n}\n'
)


def source(name: str, steps: Mapping[str, str]) -> str:
    """Four functions with room between them, so that a change of each is a hunk."""
    room = "\n" * 4 + "/* between */" + "\n" * 4
    return room.join(
        f"long {name}{number}(long n) {{\n  long s = 0;\n  for (long i = 0; i < n; i++)\n"
        f"    {steps.get(f'{name}{number}', 's += i;')}\n  return s;\n}}\n"
        for number in range(4)
    )


def files(steps: Mapping[str, str]) -> dict[str, str]:
    """All sources, with these lines in the loops of functions."""
    declared = "".join(f"long {name}{number}(long);\n" for name in FILES for number in range(4))
    return {"build.sh": BUILD, "main.c": MAIN, "all.h": declared} | {
        f"{name}.c": source(name, steps) for name in FILES
    }


@pytest.fixture
def project(git_repository: Any, perun: Any) -> Callable[..., Any]:
    """Calls `perun` in a project whose newest commit has these lines in its loops, and these files."""
    repository = git_repository(commits=0)
    repository.commit("One", files({}))
    perun("init", cwd=repository.path)
    perun("config", "set", "execute.pre_run", "[sh build.sh]", cwd=repository.path)

    def within(
        steps: Mapping[str, str], more: Mapping[str, str] | None = None, *words: str, **options: Any
    ) -> Any:
        repository.commit("Two", {**files(steps), **(more or {})})
        return perun("bisect", "--within", "HEAD", "-c", "./app", *words, cwd=repository.path, **options)

    return within


HARMLESS = {"alpha0": "s += i + 0;", "alpha2": "s += 0 + i;", "beta1": "s = s + i;", "gamma3": "s = i + s;"}


def test_the_hunk_is_named_among_harmless_ones(project: Any) -> None:
    told = project({**HARMLESS, "beta3": "s += i + n * i % 3;"}, {"notes.txt": "a new file\n"})
    assert "hunk 4 of 6 (beta.c:4" in told.out and "; without it 0.0 %" in told.out
    assert "perhaps" not in told.out


def test_parts_that_do_not_build_alone_are_passed_over(project: Any) -> None:
    steps = {**HARMLESS, "alpha1": "s += odd(i);"}
    header = files({})["all.h"] + "static inline long odd(long i) { return i * i % 7 % 5; }\n"
    changed = {"all.h": header, "alpha.c": '#include "all.h"\n' + source("alpha", steps)}
    found = project(steps, changed, "--json").json
    assert "alpha.c" in {one["path"] for one in found["named"]} and "Degradation" in found["verdict"]
    assert found["certain"]


def test_a_commit_that_changes_nothing_says_so(project: Any) -> None:
    assert "no hunk of it changes that" in project(HARMLESS).out


def test_the_working_copy_is_searched(git_repository: Any, perun: Any) -> None:
    repository = git_repository(commits=0)
    repository.commit("One", files({}))
    perun("init", cwd=repository.path)
    perun("config", "set", "execute.pre_run", "[sh build.sh]", cwd=repository.path)
    words = ("bisect", "--within", ".", "-c", "./app")
    perun(*words, cwd=repository.path, code=2, err="nothing is uncommitted")
    for name, text in files({**HARMLESS, "gamma1": "s += i * n % 7;"}).items():
        (repository.path / name).write_text(text)
    told = perun(*words, cwd=repository.path)
    assert told.out.startswith("the working copy: ") and "\nhunk 4 of 5 (gamma.c:" in told.out
    assert perun(*words, "--json", cwd=repository.path).json["commit"] is None


@pytest.mark.slow
def test_times_are_compared_in_pairs(project: Any) -> None:
    slow = {"beta3": "for (volatile long j = 0; j < 20000; j++) s += i;"}
    words = ("--metric", "cpu", "--budget", "240")
    told = project({**HARMLESS, **slow}, {"notes.txt": "a new file\n"}, *words, check=False)
    assert "hunk 4 of 6 (beta.c:4" in told.out, told.out + told.err


def test_wrong_input_is_named(project: Any) -> None:
    project({}, {"a.txt": "1"}, "--metric", "trace", code=2, err="trace is neither counted nor timed")
    project({}, {"a.txt": "2"}, "--script", "true", code=2, err="--within searches one commit")


@pytest.mark.slow
def test_one_guilty_change_of_six_squashed_commits(project: Any, tmp_path: Path) -> None:
    """Of 18 squashed commits of six changes each, one guilty; at most 12 variants, and never a wrong one."""
    rng, right = random.Random(7), 0
    names = [f"{name}{number}" for name in FILES for number in range(4)]
    before: dict[str, str] = {}
    for round in range(18):
        chosen = rng.sample(names, 6)
        steps = {**before, **{name: f"s += i + {round} - {round};" for name in chosen}}
        steps[chosen[0]] = f"s += i + n * i % {round + 3};"
        found = project(steps, None, "--json", check=False).json
        lines = {one["path"] for one in found["named"]}
        is_right = len(found["named"]) == 1 and lines == {f"{chosen[0][:-1]}.c"}
        right += is_right and found["certain"]
        assert is_right or not found["certain"], (round, chosen, found)
        assert found["builds"] <= 12
        before = {}
        project({}, None, check=False)
    assert right >= 16
