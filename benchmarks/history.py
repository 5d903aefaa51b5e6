"""The history of a small C program with known changes: what `changes`, `bisect` and `explain` say of it.

Of 200 commits, one makes a function quadratic, one makes another 5 % more costly, one leaks, one reverts
that, a merge brings a slower function, and five do not build. Instructions and bytes are counted, so that the
answers do not depend on the machine, nor on what else it does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perun.core.errors import JobFailed
from report import Count, Place

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "history"))

import project

COMMITS = 200
SIZES = "50,100,200,400,800"
SETTINGS = """\
cmds: ["./words"]
workloads: ["400"]
collectors:
  - name: instructions
  - name: memory
profiles:
  register_after_run: true
execute:
  pre_run: [make]
"""


class Change(NamedTuple):
    """One change.

    :param question: options of `bisect`; :param bad: its bad end. :param commit: the answer.
    :param function: that `explain` names; :param lines: a text of the lines that it has to show.
    """

    name: str
    question: Sequence[str]
    bad: str
    commit: str
    function: str
    lines: str


def changes_of(made: project.Made) -> list[Change]:
    """The changes of the history, each with what finds it."""
    last, leaking = made.commits[-1], made.before(made.revert)
    at = ("--location", "unique")
    return [
        Change("quadratic", ("--metric", "instructions", *at), last,
               made.quadratic, "unique", "int new = 1;"),
        Change("its order of growth", ("--metric", "instructions:growth", *at, "--sizes", SIZES), last,
               made.quadratic, "unique", "int new = 1;"),
        Change("5 %", ("--metric", "instructions", "--location", "checksum"), last, made.five_percent,
               "checksum", "#define ROUNDS 21"),
        Change("leak", ("--metric", "memory:leaked", "--location", "label"), leaking, made.leak, "label",
               "free(words[i].label);"),
        Change("merge", ("--metric", "instructions", "--location", "fold"), last, made.slow_fold, "fold",
               "for (char letter = 'A'"),
    ]  # fmt: skip


def history(place: Place, commits: int = COMMITS) -> Iterator[Count]:
    """What is found of the changes, and the time for it."""
    folder = place.folder / "history"
    made = project.make(folder, commits)
    known = changes_of(made)
    perun = _Perun(place.perun, folder)
    what = f"history of {commits} commits of a C program with {len(made.changing)} changes"

    begun = time.monotonic()
    answers = [perun.json("bisect", made.commits[0], one.bad, *one.question) for one in known]
    seconds = time.monotonic() - begun
    found = [
        one for one, answer in zip(known, answers, strict=True)
        if answer["first"] and answer["first"]["version"] == one.commit and answer["confirmed"]
    ]  # fmt: skip
    each = ", ".join(
        f"{one.name}: {answer['measured']} measured, {answer['skipped']} skipped, {answer['stored']} known"
        for one, answer in zip(known, answers, strict=True)
    )
    yield Count(f"{what}: found alone by `bisect`, from both ends, in {seconds:.0f} s",
                len(found), len(known), least=len(known), others=each)  # fmt: skip

    begun = time.monotonic()
    explained = []
    for one in known:
        grows = one.commit == made.quadratic
        answer = perun.json("explain", one.commit, *(("--sizes", SIZES) if grows else ()))
        first = answer["configurations"][0]["functions"][0]
        texts = [line["text"] for line in (*first["diff"], *first["near"])]
        is_named = first["function"] == one.function and any(one.lines in text for text in texts)
        if is_named and (not grows or first["growth"]["after"].endswith("n^2")):
            explained.append(one.name)
    seconds = time.monotonic() - begun
    yield Count(f"{what}: `explain` names function and lines first, in {seconds:.0f} s", len(explained),
                len(known), least=len(known), others=", ".join(explained))  # fmt: skip

    begun = time.monotonic()
    perun.run("run", "--crawl-parents", "matrix", codes=(0, JobFailed.exit_code))
    seconds = time.monotonic() - begun
    named = {one["version"] for one in perun.json("changes")["changes"] if one["steps"]}
    yield Count(f"{what}: named by `changes`, of all commits measured in {seconds:.0f} s",
                len(named & made.changing), len(made.changing), least=len(made.changing))  # fmt: skip
    others = len(named - made.changing)
    yield Count(f"{what}: other commits that `changes` names", others, len(made.commits), most=0)


class _Perun:
    """The command in the folder, with a repository there."""

    def __init__(self, perun: str, folder: Path) -> None:
        self._perun = perun
        self._folder = folder
        self.run("init")
        with open(folder / ".perun" / "local.yml", "a", encoding="utf-8") as file:
            file.write(SETTINGS)
        self.run("trust")

    def run(self, *arguments: str, codes: Sequence[int] = (0,)) -> str:
        done = subprocess.run(
            [self._perun, *arguments], cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode not in codes:
            raise SystemExit(f"perun {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))
