"""A git history of a small C program, some of whose commits changed what it costs.

The program counts its own work, so that what it costs is exactly known whatever the machine does:

    $ ./words 400
    fold: 2400
    checksum: 48000
    unique: 865
    label: 400
    in_use: 9600

`fold`, `checksum`, `unique` and `label` are functions, and how often their innermost loops ran; `in_use` are
the bytes that are not released when all is done. Instructions, times and allocations change with them.
"""

import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

FIRST_DATE: Final = 1_800_000_000
AUTHORS: Final = ("Ada <ada@example.org>", "Ben <ben@example.org>", "Cleo <cleo@example.org>")
FEWEST: Final = 24
"""Commits that a history has at least: fewer have no room for what happens in it."""
PATTERN: Final = r"^(?P<name>\w+): (?P<value>\d+)$"
"""What the collector `regex` reads of the output of the program."""
SETTINGS: Final = f"""\
cmds: ["./words"]
workloads: ["400"]
collectors:
  - name: regex
    params:
      pattern: '{PATTERN}'
execute:
  pre_run: [make]
"""
"""What `perun run matrix` needs of a configuration, to be added to `.perun/local.yml`."""

_MAKEFILE = """\
CFLAGS = -O1 -g -fno-inline

words: main.c words.c words.h version.h
\t$(CC) $(CFLAGS) -o words main.c words.c
"""

_HEADER = """\
#ifndef WORDS_H
#define WORDS_H

#define LONGEST 8

struct word {
    char text[LONGEST];
    unsigned long sum;
    char *label;
};

/* How often the innermost loop of each function ran. */
extern unsigned long folds, sums, compared, labels, in_use;

void fold(struct word *words, int count);
void checksum(struct word *words, int count);
int unique(struct word *words, int count);
void label(struct word *words, int count);

#endif
"""

_MAIN = """\
#include <stdio.h>
#include <stdlib.h>

#include "version.h"
#include "words.h"

/* The same words in each run: a linear congruential generator. */
static void make_words(struct word *words, int count)
{
    unsigned seed = 1;
    for (int i = 0; i < count; ++i) {
        for (int k = 0; k < LONGEST - 2; ++k) {
            seed = seed * 1103515245u + 12345u;
            words[i].text[k] = "abCD"[seed >> 16 & 3];
        }
        words[i].text[LONGEST - 2] = 0;
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 400;
    struct word *words = calloc(count, sizeof *words);
    if (!words)
        return 1;
    in_use = count * sizeof *words;
    make_words(words, count);
    fold(words, count);
    checksum(words, count);
    int different = unique(words, count);
    label(words, count);
    printf("version " VERSION ", %d different words\\n", different);
    printf("fold: %lu\\nchecksum: %lu\\nunique: %lu\\n", folds, sums, compared);
    printf("label: %lu\\nin_use: %lu\\n", labels, in_use);
    free(words);
    return 0@END@
}
"""

_WORDS = """\
#include <stdlib.h>
#include <string.h>

#include "words.h"

#define BUCKETS 4096
#define ROUNDS @ROUNDS@

unsigned long folds, sums, compared, labels, in_use;

/* Lower case. */
void fold(struct word *words, int count)
{
@FOLD@}

/* A sum of the letters of each word. */
void checksum(struct word *words, int count)
{
    for (int i = 0; i < count; ++i) {
        unsigned long sum = 5381;
        for (int round = 0; round < ROUNDS; ++round)
            for (const char *c = words[i].text; *c; ++c) {
                sum = (sum << 5) + sum + (unsigned char)*c;
                ++sums;
            }
        words[i].sum = sum;
    }
}

/* How many of the words are different. */
int unique(struct word *words, int count)
{
    int found = 0;
@UNIQUE@    return found;
}

/* A line about each word, made and thrown away. */
void label(struct word *words, int count)
{
    for (int i = 0; i < count; ++i) {
        words[i].label = malloc(2 * LONGEST);
        if (!words[i].label)
            abort();
        strcpy(words[i].label, "<");
        strcat(words[i].label, words[i].text);
        strcat(words[i].label, ">");
        ++labels;
@FREE@    }
}
"""

_FOLD_ONCE = """\
    for (int i = 0; i < count; ++i)
        for (char *c = words[i].text; *c; ++c) {
            if (*c >= 'A' && *c <= 'Z')
                *c += 'a' - 'A';
            ++folds;
        }
"""
_FOLD_TWICE = """\
    /* Each letter apart, so that it is seen at once which ones there are. */
    for (char letter = 'A'; letter <= 'D'; ++letter)
        for (int i = 0; i < count; ++i)
            for (char *c = words[i].text; *c; ++c) {
                if (*c == letter)
                    *c += 'a' - 'A';
                ++folds;
            }
"""
_HASHED = """\
    int heads[BUCKETS], *next = malloc(count * sizeof *next);
    if (!next)
        abort();
    memset(heads, -1, sizeof heads);
    for (int i = 0; i < count; ++i) {
        int *head = &heads[words[i].sum % BUCKETS], at;
        for (at = *head; at >= 0; at = next[at]) {
            ++compared;
            if (!strcmp(words[at].text, words[i].text))
                break;
        }
        ++compared;
        if (at >= 0)
            continue;
        next[i] = *head;
        *head = i;
        ++found;
    }
    free(next);
"""
_PAIRWISE = """\
    for (int i = 0; i < count; ++i) {
        int new = 1;
        for (int k = 0; k < i; ++k) {
            ++compared;
            if (!strcmp(words[k].text, words[i].text))
                new = 0;
        }
        found += new;
    }
"""
_FREED = """\
        free(words[i].label);
        words[i].label = 0;
"""
_LEAKED = """\
        in_use += 2 * LONGEST;
"""


@dataclass(frozen=True)
class _State:
    """What the program is like at one commit."""

    version: int = 0
    quadratic: bool = False
    five_percent: bool = False
    leak: bool = False
    slow_fold: bool = False
    broken: bool = False

    def files(self) -> dict[str, str]:
        words = (
            _WORDS.replace("@ROUNDS@", "21" if self.five_percent else "20")
            .replace("@FOLD@", _FOLD_TWICE if self.slow_fold else _FOLD_ONCE)
            .replace("@UNIQUE@", _PAIRWISE if self.quadratic else _HASHED)
            .replace("@FREE@", _LEAKED if self.leak else _FREED)
        )
        return {
            "Makefile": _MAKEFILE,
            "words.h": _HEADER,
            "version.h": f'#define VERSION "1.{self.version:04}"\n',
            "main.c": _MAIN.replace("@END@", "" if self.broken else ";"),
            "words.c": words,
            ".gitignore": "words\n",
        }


@dataclass(frozen=True)
class Made:
    """The checksums of the commits of a history.

    :ivar commits: along first parents, the oldest first; all but `side`.
    :ivar quadratic: makes `unique` quadratic. :ivar five_percent: makes `checksum` 5 % more costly.
    :ivar leak: lets `label` leak. :ivar revert: of the leak.
    :ivar merge: brings a `fold` that is four times as costly, from the commit :ivar slow_fold: of the branch
        :ivar side:.
    :ivar broken: those that do not build, along first parents.
    """

    commits: list[str]
    quadratic: str
    five_percent: str
    leak: str
    revert: str
    merge: str
    slow_fold: str
    side: list[str]
    broken: list[str] = field(default_factory=list)

    @property
    def changing(self) -> set[str]:
        """The points along first parents whose costs differ from those before."""
        return {self.quadratic, self.five_percent, self.leak, self.revert, self.merge}

    def before(self, checksum: str) -> str:
        """The first parent of a commit of `commits`."""
        return self.commits[self.commits.index(checksum) - 1]


class _Writer:
    """Writes commits by `git fast-import`."""

    def __init__(self, folder: Path) -> None:
        self._git = subprocess.Popen(
            ["git", "fast-import", "--quiet", "--force", "--cat-blob-fd=1"], cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )  # fmt: skip
        self._mark = 0
        self._files: dict[int, dict[str, str]] = {}

    def commit(self, branch: str, message: str, state: _State, *parents: int) -> int:
        """The mark of a new commit that follows the parents."""
        self._mark += 1
        known = self._files[parents[0]] if parents else {}
        files = state.files()
        self._files[self._mark] = files
        author = AUTHORS[self._mark % len(AUTHORS)]
        lines = [f"commit refs/heads/{branch}", f"mark :{self._mark}"]
        lines += [f"committer {author} {FIRST_DATE + 7200 * self._mark} +0000", _data(message)]
        lines += [f"{'merge' if number else 'from'} :{parent}" for number, parent in enumerate(parents)]
        for name, text in files.items():
            if known.get(name) != text:
                lines += [f"M 100644 inline {name}", _data(text)]
        self._write("\n".join(lines) + "\n")
        return self._mark

    def checksum(self, mark: int) -> str:
        self._write(f"get-mark :{mark}\n")
        assert self._git.stdout is not None
        return self._git.stdout.readline().decode().strip()

    def close(self) -> None:
        assert self._git.stdin is not None and self._git.stdout is not None
        self._git.stdin.close()
        self._git.stdout.close()
        assert self._git.wait() == 0

    def _write(self, text: str) -> None:
        assert self._git.stdin is not None
        self._git.stdin.write(text.encode())
        self._git.stdin.flush()


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _places(count: int) -> tuple[dict[str, int], set[int]]:
    """Where along first parents what happens, and which commits do not build."""
    shares = {"leak": 0.25, "quadratic": 0.38, "five_percent": 0.58, "merge": 0.68, "revert": 0.77}
    broken = {int(share * count) for share in (0.1, 0.3, 0.44, 0.9)}
    return {name: int(share * count) for name, share in shares.items()}, broken | {int(0.44 * count) + 1}


def make(folder: Path, commits: int = 200, *, hidden: bool = False) -> Made:
    """Make a repository with that many commits, and check out the newest one, `main`.

    :param commits: of them, two are those of the merged branch.
    :param hidden: `five_percent` does not build, as the commit before it does not: which of the two it was
        cannot be measured. Without, each changing commit builds, as does its parent.
    """
    if commits < FEWEST:
        raise ValueError(f"{commits} commits have no room for the changes; give at least {FEWEST}")
    folder.mkdir(parents=True, exist_ok=True)
    _run(folder, "init", "--quiet", "--initial-branch=main")
    count = commits - 2
    places, broken = _places(count)
    if hidden:
        broken |= {places["five_percent"] - 1, places["five_percent"]}
    happens = {place: name for name, place in places.items()}
    writer = _Writer(folder)
    states = [_State()]
    marks: list[int] = []
    side: list[int] = []
    checksums: dict[str, str] = {}
    for number in range(count):
        what = happens.get(number, "")
        state = _next(replace(states[-1], version=number, broken=number in broken), what)
        states.append(state)
        parents = [marks[-1]] if marks else []
        message = _message(what, number, number in broken, checksums)
        if what == "merge":
            side = _side(writer, marks[number - 3], states[number - 2])
            parents.append(side[-1])
        marks.append(writer.commit("main", message, state, *parents))
        if what:
            checksums[what] = writer.checksum(marks[-1])
    every = [writer.checksum(mark) for mark in marks]
    branch = [writer.checksum(mark) for mark in side]
    writer.close()
    _run(folder, "checkout", "--quiet", "--force", "main")
    unfinished = [every[number] for number in sorted(broken)]
    return Made(every, **checksums, slow_fold=branch[0], side=branch, broken=unfinished)


def _next(state: _State, what: str) -> _State:
    if what == "quadratic":
        return replace(state, quadratic=True)
    if what == "five_percent":
        return replace(state, five_percent=True)
    if what in ("leak", "revert"):
        return replace(state, leak=what == "leak")
    return replace(state, slow_fold=True) if what == "merge" else state


def _side(writer: _Writer, fork: int, state: _State) -> list[int]:
    """Two commits of the branch `letters`: the slow one, and one that only changes the version."""
    slow = replace(state, slow_fold=True, broken=False)
    first = writer.commit("letters", "Fold the letters one by one\n", slow, fork)
    return [first, writer.commit("letters", "Prepare version 2\n", replace(slow, version=9000), first)]


def _message(what: str, number: int, broken: bool, checksums: dict[str, str]) -> str:
    named = {
        "quadratic": "Compare the words themselves\n\nThe table needs memory.\n",
        "five_percent": "Sum once more\n",
        "leak": "Keep the labels for later\n",
        "merge": "Merge branch 'letters'\n",
    }
    if what == "revert":
        return f'Revert "Keep the labels for later"\n\nThis reverts commit {checksums["leak"]}.\n'
    if what:
        return named[what]
    return f"Start version 1.{number:04}{', not finished' if broken else ''}\n"


def _run(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
