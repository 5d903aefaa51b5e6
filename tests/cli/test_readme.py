"""The first commands of the README and of the manual's page on `perun bench`, typed as they stand there."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {{ return usleep(count > 1 ? atoi(words[1]) * {each} : 0); }}
"""
MAKEFILE = "my-program: main.c\n\tcc -o my-program main.c\n"
needs_compiler = pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("make")), reason="no C compiler or make, which the project needs"
)


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def typed(prefix: str, text: str) -> list[list[str]]:
    """The commands of a page, split as a shell does it."""
    lines = re.findall(rf"^{re.escape(prefix)}((?:perun|pip|cd) .+)$", text, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


README = typed("    ", section((ROOT / "README.md").read_text("utf-8"), "Use it"))
FIRST_MINUTES = typed("$ ", (ROOT / "docs/first-five-minutes.md").read_text("utf-8"))
BENCH = typed("$ ", (ROOT / "docs/bench.md").read_text("utf-8"))


@pytest.fixture
def my_project(perun: Any, git_repository: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The project of somebody who has a program in C, the third of six versions the slower one."""
    repository = git_repository("my-project")
    files = {"Makefile": MAKEFILE, ".gitignore": "my-program\n"}
    for number, each in enumerate((7, 7, 20, 20, 20, 20), 1):
        files |= {"main.c": PROGRAM.format(each=each), "NEWS": f"{number}\n"}
        repository.commit(f"Version {number}", files)
    subprocess.run(["make", "-s"], cwd=repository.path, check=True)
    monkeypatch.chdir(repository.path)
    return repository


@needs_compiler
def test_the_first_commands_of_the_readme(my_project: Any, perun: Any) -> None:
    assert [words[0] for words in README[:3]] == ["pip", "cd", "perun"]
    commands = [words[1:] for words in README if words[0] == "perun"]
    first, matrix, check, compare = commands
    assert re.fullmatch(r"\./my-program 1000   \S+ ms ± (?:\S+|>100 %) \(n = \d+\)", perun(*first).lines[0])
    perun("config", "--shared", "set", "execute.budget", "1")  # what more time tells is no matter here
    assert len(re.findall(r"registered \d+ profiles", perun(*matrix).out)) == 5
    assert perun(*check).out
    # What the verdicts are depends on clocks, that there are some does not.
    compared = [one for one in perun(*check, "--json").json["comparisons"] if not one["reason"]]
    assert {one["cmd"] for one in compared} == {"./my-program 1000"}
    assert len({one["minor_version"] for one in compared}) == 4
    # The program is the same before and after the last commit.
    assert "same" in perun(*compare).out


@needs_compiler
def test_the_first_five_minutes_begin_with_the_same_commands() -> None:
    assert [words for words in FIRST_MINUTES if words[0] == "perun"][:3] == [
        words for words in README if words[0] == "perun"
    ][:3]


@pytest.mark.parametrize("words", BENCH, ids=" ".join)
def test_the_commands_of_the_page_on_bench(project: Any, perun: Any, words: list[str]) -> None:
    for name in ("list_bench", "skiplist_bench"):
        (project.path / name).write_text("#!/bin/sh\necho $1\n")
        (project.path / name).chmod(0o755)
    project.write({"numbers.txt": "3\n1\n2\n"})
    # Of how many runs it makes the page says a lot, and one takes as long as another.
    few = () if "--runs" in words else ("--runs", "2")
    assert "(n = " in (shown := perun(*words[1:], *few)).out or shown.json["benchmarks"]


@pytest.mark.slow
@needs_compiler
def test_an_empty_environment_has_a_first_number_after_two_commands(my_project: Any, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    install, _, bench, *_ = README
    path = f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    source = tmp_path / "perun"
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    home = {"PATH": path, "HOME": str(tmp_path)}
    installed = subprocess.run(install, cwd=source, env=home, capture_output=True, text=True, check=False)
    if installed.returncode and "No matching distribution" in installed.stderr:
        pytest.skip("no package index can be reached, which the installation needs")
    assert installed.returncode == 0, installed.stderr
    done = subprocess.run(
        [str(environment / "bin" / bench[0]), *bench[1:]], cwd=my_project.path, env=home, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("./my-program 1000 ")
