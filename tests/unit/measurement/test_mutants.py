"""The tests of this folder fail where the code that they test is wrong: small errors, one at a time.

`mutants.json` has for each the function or the constant that it is in, whatever its module is, what is
replaced there, and by what. They were drawn from all that follow from the code by other operators, constants,
comparisons and dropped branches.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import perun

HERE: Final = Path(__file__).parent
MUTANTS: Final = [tuple(one) for one in json.loads((HERE / "mutants.json").read_text())]
PACKAGE: Final = Path(perun.__file__).parent
KILLED: Final = 0.95
PARTS: Final = 8


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
@pytest.mark.parametrize("part", range(PARTS))
def test_the_tests_notice_nearly_all_errors(part: int, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "perun", ignore=shutil.ignore_patterns("__pycache__"))
    alive = []
    own = MUTANTS[part::PARTS]
    for name, old, new in own:
        path, text = mutated(name, old, new)
        file = site / path.relative_to(PACKAGE.parent)
        file.write_text(text)
        if _passes(site, path.stem):
            alive.append(f"{name}: {new}")
        shutil.copy(path, file)
    assert _passes(site, ""), "the tests fail without any error"
    assert len(alive) <= round(2 * (1 - KILLED) * len(own)), alive  # twice, as a part is a few of all


def _passes(site: Path, module: str) -> bool:
    """Whether the quick tests of measurement pass with the package of that folder, those of the module first."""  # noqa: E501
    every = sorted(
        HERE.glob("test_*.py"), key=lambda one: (one.stem != f"test_{module}", one.stem != "test_verdict")
    )
    tests = [str(one) for one in every if one.name != Path(__file__).name]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    environ = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    environ.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, env=environ, cwd=HERE, capture_output=True, check=False)
    return done.returncode == 0
