"""The tests fail where the code that they test is wrong: small errors, one at a time.

Each room has a file of them. It has for each test, or folder of tests, those that it should notice: the
function or the constant that it is in, whatever its module is, what is replaced there, and by what. They were
drawn from all that follow from the code by other operators, constants, comparisons, and by dropped branches
and calls.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import hypothesis
import pytest

HERE: Final = Path(__file__).parent
MUTANTS: Final = {
    path.stem: [(tests, *one) for tests, some in json.loads(path.read_text()).items() for one in some]
    for path in sorted(HERE.glob("*.json"))
}
KILLED: Final = 0.95
PROCESSES: Final = 2
LONGEST: Final = 120
"""Seconds that each of the tests named may take: who does not come to an end with an error has noticed it."""


def package() -> Path:
    """The folder of the installed package, which is not imported here: each test run imports its own."""
    spec = importlib.util.find_spec("perun")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


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
def parts(room: str) -> list[tuple[Path, str, list[str], int, int]]:
    """Of each module its path, and of what is defined there the name, all lines, and the first and last of
    it."""
    return [
        (path, name, path.read_text().splitlines(keepends=True), first, end)
        for path in sorted((package() / room).rglob("*.py"))
        for name, first, end in defined(path)
    ]


def mutated(room: str, name: str, old: str, new: str) -> tuple[Path, str]:
    """The one module with that text in what has the name, and its text with the error."""
    found = []
    for path, other, lines, first, end in parts(room):
        own = "".join(lines[first:end]) if other == name else ""
        if own.count(old) == 1:
            found.append((path, "".join(lines[:first]) + own.replace(old, new) + "".join(lines[end:])))
    assert len(found) == 1, (name, old, [path.name for path, _ in found])
    return found[0]


@pytest.mark.parametrize(
    ("room", "tests", "name", "old", "new"), [(room, *one) for room, some in MUTANTS.items() for one in some]
)
def test_each_mutant_is_of_this_code(room: str, tests: str, name: str, old: str, new: str) -> None:
    path, text = mutated(room, name, old, new)
    assert text != path.read_text()
    ast.parse(text)
    file, _, test = tests.partition("::")
    assert not test or f"\ndef {test}(" in (HERE.parent / file).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("room", MUTANTS)
def test_the_tests_notice_nearly_all_errors(room: str) -> None:
    """Which ones they do not notice is printed in either case; there are reasons to look at them."""
    whole = package() / "__init__.py"
    orders = [(list(dict.fromkeys(tests for tests, *_ in MUTANTS[room])), whole, whole.read_text())]
    orders += [([tests], *mutated(room, *one)) for tests, *one in MUTANTS[room]]
    lines = "".join(
        f"{json.dumps([tests, str(path.relative_to(package())), text])}\n" for tests, path, text in orders
    )
    done = subprocess.run(
        [sys.executable, __file__], input=lines, capture_output=True, text=True, check=False, cwd=HERE
    )
    passed = [line == "True" for line in done.stdout.split()]
    assert len(passed) == len(orders), done.stderr
    assert passed[0], "the tests fail without any error"
    alive = [
        f"{name}: {new}" for (_, name, _, new), one in zip(MUTANTS[room], passed[1:], strict=True) if one
    ]
    print("\n".join(alive))
    assert len(alive) <= (1 - KILLED) * len(MUTANTS[room]), alive


def serve() -> None:
    """Of each order, which tests, a module of the package and the text for it, whether they pass with it.

    Each is run in a process of its own, a copy of this one, which has all slow libraries, and finds a package
    of links to the installed one but for that module: so do the commands that it starts.
    """
    for library in ("numpy", "scipy.stats"):
        importlib.import_module(library)
    # Nobody wants to see the smallest example.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "unshrunk", phases=phases, derandomize=True, deadline=None, max_examples=15
    )
    assert "perun" not in sys.modules
    running: list[int] = []
    codes: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, line in enumerate(sys.stdin):
            if len(running) - len(codes) >= PROCESSES:
                _end_of_one(codes)
            child = os.fork()
            if not child:
                _exit(Path(folder, str(number)), *json.loads(line))
            running.append(child)
        while len(codes) < len(running):
            _end_of_one(codes)
    print(*(codes[one] == 0 for one in running), sep="\n")


def _end_of_one(codes: dict[int, int]) -> None:
    child, code = os.wait()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it started, where it took too long
    codes[child] = code


def _exit(folder: Path, tests: list[str], module: str, text: str) -> None:
    """End this process by what the tests say of the package with that text for the module."""
    os.setsid()
    signal.alarm(LONGEST * len(tests))
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    try:
        folder.mkdir()
        _link(folder / "perun", module, text)
        sys.path.insert(0, str(folder))
        os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        options = [
            "-q",
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "--assert=plain",
            "--hypothesis-profile=unshrunk",
            f"--basetemp={folder / 'tests'}",
        ]
        code = pytest.main([*options, *(str(HERE.parent / one) for one in tests)])
    except BaseException:  # an error in a module that does not load is noticed too
        os._exit(1)
    os._exit(int(code))


def _link(there: Path, module: str, text: str) -> None:
    """Write the package there, of links to the installed one, but for one module."""
    here = package()
    for part in Path(module).parts:
        there.mkdir()
        for one in here.iterdir():
            if one.name != part:
                (there / one.name).symlink_to(one)
        here, there = here / part, there / part
    there.write_text(text)


if __name__ == "__main__":
    serve()
