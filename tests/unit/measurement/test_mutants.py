"""The tests of this folder fail where the code that they test is wrong: small errors, one at a time.

`mutants.json` has for each the function or the constant that it is in, whatever its module is, what is
replaced there, and by what. They were drawn from all that follow from the code by other operators, constants,
comparisons and dropped branches.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import hypothesis
import pytest

import perun

HERE: Final = Path(__file__).parent
MUTANTS: Final = [tuple(one) for one in json.loads((HERE / "mutants.json").read_text())]
PACKAGE: Final = Path(perun.__file__).parent
KILLED: Final = 0.95
PROCESSES: Final = 2
LONGEST: Final = 120
"""Seconds that the tests may take: who does not come to an end with an error has noticed it."""


def defined(path: Path) -> Iterator[tuple[str, int, int]]:
    """The functions, classes and constants of a module, with the lines from and behind which they stand."""
    open_: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text()))]
    while open_:
        prefix, parent = open_.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                name = f"{prefix}{node.name}"
                open_.append((f"{name}.", node))
            elif isinstance(node, ast.AnnAssign) and not prefix:
                name = ast.unparse(node.target)
            else:
                continue
            assert node.end_lineno is not None
            yield name, node.lineno - 1, node.end_lineno


@cache
def parts() -> list[tuple[Path, str, list[str], int, int]]:
    """Of each module its path, and of what is defined there the name, all lines, and the first and last of
    it."""
    return [
        (path, name, path.read_text().splitlines(keepends=True), first, end)
        for path in sorted((PACKAGE / "measurement").glob("*.py"))
        for name, first, end in defined(path)
    ]


def mutated(name: str, old: str, new: str) -> tuple[Path, str]:
    """The one module with that text in what has the name, and its text with the error."""
    found = []
    for path, other, lines, first, end in parts():
        own = "".join(lines[first:end]) if other == name else ""
        if own.count(old) == 1:
            found.append((path, "".join(lines[:first]) + own.replace(old, new) + "".join(lines[end:])))
    assert len(found) == 1, (name, old, [path.name for path, _ in found])
    return found[0]


@pytest.mark.parametrize(("name", "old", "new"), MUTANTS)
def test_each_mutant_is_of_this_code(name: str, old: str, new: str) -> None:
    path, text = mutated(name, old, new)
    assert text != path.read_text()
    ast.parse(text)


@pytest.mark.slow
def test_the_tests_notice_nearly_all_errors() -> None:
    """Which ones they do not notice is printed in either case; there are reasons to look at them."""
    texts = [mutated(*one) for one in MUTANTS]
    path = PACKAGE / "measurement" / "estimate.py"
    orders = [(path, path.read_text()), *texts]
    lines = "".join(f"{json.dumps([one.stem, text])}\n" for one, text in orders)
    done = subprocess.run(
        [sys.executable, __file__], input=lines, capture_output=True, text=True, check=False, cwd=HERE
    )
    passed = [line == "True" for line in done.stdout.split()]
    assert len(passed) == len(orders), done.stderr
    assert passed[0], "the tests fail without any error"
    alive = [f"{name}: {new}" for (name, _, new), one in zip(MUTANTS, passed[1:], strict=True) if one]
    print("\n".join(alive))
    assert len(alive) <= (1 - KILLED) * len(MUTANTS), alive


def serve() -> None:
    """Of each order, a module of measurement and the text for it, whether the quick tests pass with it.

    Each is run in a process of its own, a copy of this one, which has all slow libraries: so one takes a
    second, and nothing is written.
    """
    for library in ("numpy", "scipy.stats", "perun.profile.factory"):
        importlib.import_module(library)
    # Nobody wants to see the smallest example.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "unshrunk", phases=phases, derandomize=True, deadline=None, max_examples=15
    )
    assert not any(name.startswith("perun.measurement.") for name in sys.modules)
    running: list[int] = []
    codes: dict[int, int] = {}
    for line in sys.stdin:
        if len(running) - len(codes) >= PROCESSES:
            _end_of_one(codes)
        child = os.fork()
        if not child:
            _exit(*json.loads(line))
        running.append(child)
    while len(codes) < len(running):
        _end_of_one(codes)
    print(*(codes[one] == 0 for one in running), sep="\n")


def _end_of_one(codes: dict[int, int]) -> None:
    child, code = os.wait()
    codes[child] = code


def _exit(stem: str, text: str) -> None:
    """End this process by what the tests say of the module with that text, its own tests first."""
    signal.alarm(LONGEST)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    try:
        name = f"perun.measurement.{stem}"
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        exec(compile(text, spec.origin, "exec"), module.__dict__)
        setattr(sys.modules["perun.measurement"], stem, module)
        every = sorted(
            (one for one in HERE.glob("test_*.py") if one != Path(__file__)),
            key=lambda one: (one.stem != f"test_{stem}", one.stem != "test_verdict"),
        )
        options = [
            "-q",
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "--assert=plain",
            "--hypothesis-profile=unshrunk",
        ]
        code = pytest.main([*options, *map(str, every)])
    except BaseException:  # an error in a module that does not load is noticed too
        os._exit(1)
    os._exit(int(code))


if __name__ == "__main__":
    serve()
