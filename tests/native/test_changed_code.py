"""Which code two builds of a program do not have the same, and that a benchmark which executes none of it
counts the same instructions."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from perun.native.changed_code import Ranges, changed_code
from perun.plugin.api import Run
from perun.running.run.identical import executes_any, loaded_parts, opens_any, why_identical

AREAS = 5
OPERATIONS = 4
CLASSES = 3
BENCHMARKS = [
    *(f"area{n}" for n in range(AREAS)),
    "pointers",
    "other",
    "virtual0",
    "virtual1",
    "data",
    "py0",
    "py1",
]
"""The twelve: static calls (some with macros and an inline function of the header), pointers, virtual calls,
data, modules of Python."""

HEADER = "#define MIX(x) ((x) * {macro} + 1)\nstatic inline int twist(int x) {{ return x ^ {inline}; }}\n"
AREA = """#include "common.h"
static int __attribute__((noinline)) step{n}(int x) {{ {body} return x; }}
int area{n}(int x) {{ int s = 0; for (int i = 0; i < 50; i++) s += step{n}(i + x); return s; }}
"""
POINTERS = """{functions}
int (*const operations[])(int) = {{ {names} }};
int apply(int first, int last) {{
  int s = 0;
  for (int i = 0; i < 60; i++) s += operations[first + i % (last - first)](i);
  return s;
}}
"""
VIRTUAL = """struct Shape {{ virtual int area(int x) const = 0; }};
{classes}
static const C0 c0; static const C1 c1; static const C2 c2;
static const Shape *const shapes[] = {{&c0, &c1, &c2}};
extern "C" int shape(int first) {{
  int s = 0;
  for (int i = 0; i < 40; i++) s += shapes[first + i % 2]->area(i);
  return s;
}}
"""
MAIN = """#include <stdio.h>
#include <string.h>
{declarations}int apply(int, int); int shape(int); int unused(int);
static int __attribute__((noinline)) sum(const char *name) {{
  FILE *in = fopen(name, "r");
  int s = 0, one;
  if (!in) return -1;
  while (fscanf(in, "%d", &one) == 1) s += one > 50 ? one * 3 : one;
  fclose(in);
  return s;
}}
int main(int count, char **names) {{
  const char *name = count > 1 ? names[1] : "";
  int s = 0;
{calls}  if (!strcmp(name, "pointers")) s = apply(0, 2);
  if (!strcmp(name, "other")) s = apply(2, 4);
  if (!strcmp(name, "virtual0")) s = shape(0);
  if (!strcmp(name, "virtual1")) s = shape(1);
  if (!strcmp(name, "data")) s = sum("data0.txt");
  if (!strcmp(name, "unused")) s = unused(count);
  return printf("%d\\n", s) < 0;
}}
"""
COUNTING = """import runpy, sys
count = 0
def trace(frame, event, arg):
    global count
    frame.f_trace_opcodes = True
    count += event == "opcode" and not frame.f_code.co_filename.startswith("<frozen")
    return trace
sys.argv = sys.argv[1:]
sys.path.insert(0, ".")
sys.settrace(trace)
runpy.run_path(sys.argv[0])
sys.settrace(None)
print(count)
"""


class Project:
    """Sources that change at random."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bodies = {n: [f"x = x * {3 + len(str(n))} + 7;"] for n in (*range(AREAS), "unused")}
        self._bodies[0].append("x = MIX(x);")
        self._bodies[1].append("x = MIX(x) + 2;")
        self._bodies[2].append("x = twist(x);")
        self._operations = [[f"x += {n};"] for n in range(OPERATIONS)]
        self._classes = [[f"x *= {n + 2};"] for n in range(CLASSES)]
        self._header = {"macro": 5, "inline": 9}
        self._data = [[n, 60, 3] for n in range(2)]
        self._modules = [3, 4, 5]
        self._text = 0

    def change(self) -> str:
        """Change something; what."""
        kinds = [("area", 8), ("operation", 4), ("class", 4), ("header", 1), ("unused", 4), ("data", 2),
                 ("module", 3), ("text", 3), ("constant", 1)]  # fmt: skip
        [kind] = self._random.choices([one for one, _ in kinds], [weight for _, weight in kinds])
        if kind == "area":
            self._edit(self._bodies[self._random.randrange(AREAS)])
        elif kind == "operation":
            self._edit(self._random.choice(self._operations))
        elif kind == "class":
            self._edit(self._random.choice(self._classes))
        elif kind == "header":
            self._header[self._random.choice(["macro", "inline"])] += 2
        elif kind == "unused":
            self._edit(self._bodies["unused"])
        elif kind == "data":
            self._random.choice(self._data).append(self._random.randrange(100))
        elif kind == "module":
            self._modules[self._random.randrange(3)] += 1
        elif kind == "constant":
            self._bodies["unused"].append(f'x += "{self._random.random()}"[x & 7];')
        else:
            self._text += 1
        return kind

    def _edit(self, body: list[str]) -> None:
        number = self._random.randrange(3, 1000)
        line = self._random.choice(
            [f"x += {number};", f"x = x * {number} + (x >> 3);", f"if (x & {number % 64}) x ^= {number};",
             f"for (int j = 0; j < {number % 5 + 2}; j++) x += j * x;"]
        )  # fmt: skip
        if len(body) > 2 and self._random.random() < 0.6:
            body[-1] = line
        else:
            body.append(line)

    def files(self) -> Iterator[tuple[str, str]]:
        """Names and contents."""
        yield "common.h", f"/* Text {self._text}. */\n" + HEADER.format(**self._header)
        for n, body in self._bodies.items():
            text = AREA.format(n=n, body=" ".join(body))
            yield f"area{n}.c", text.replace("areaunused", "unused")
        functions = "\n".join(
            f"static int op{n}(int x) {{ {' '.join(body)} return x; }}"
            for n, body in enumerate(self._operations)
        )
        names = ", ".join(f"op{n}" for n in range(OPERATIONS))
        yield "pointers.c", POINTERS.format(functions=functions, names=names)
        classes = "\n".join(
            f"struct C{n} : Shape {{ constexpr C{n}() {{}} int area(int x) const override "
            f"{{ {' '.join(body)} return x; }} }};"
            for n, body in enumerate(self._classes)
        )
        yield "virtual.cpp", VIRTUAL.format(classes=classes)
        yield (
            "main.c",
            MAIN.format(
                declarations="".join(f"int area{n}(int); " for n in range(AREAS)),
                calls="".join(f'  if (!strcmp(name, "area{n}")) s = area{n}(count);\n' for n in range(AREAS)),
            ),
        )
        for n, numbers in enumerate(self._data):
            yield f"data{n}.txt", "\n".join(map(str, numbers)) + "\n"
        for n, number in enumerate(self._modules):
            yield f"module{n}.py", f"def work():\n    return sum(i * 2 for i in range({number}))\n"
        for n in range(2):
            yield f"py{n}.py", f"import module{n}\nprint(module{n}.work())\n"
        yield "README", f"Text {self._text}.\n"

    def build(self, folder: Path) -> None:
        """Write and compile what changed."""
        stale = False
        for name, content in self.files():
            file = folder / name
            if not file.exists() or file.read_text() != content:
                file.write_text(content)
                stale |= name.endswith((".h", ".c", ".cpp"))
                if name == "common.h":
                    for old in folder.glob("*.o"):
                        old.unlink()
                file.with_suffix(".o").unlink(missing_ok=True)
        sources = [one for one in sorted(folder.iterdir()) if one.suffix in (".c", ".cpp")]
        if stale:
            for one in sources:
                if not one.with_suffix(".o").exists():
                    words = ["g++", "-fno-rtti"] if one.suffix == ".cpp" else ["gcc"]
                    words += ["-O1", "-g", "-fno-exceptions", "-c", one.name]
                    subprocess.run(words, cwd=folder, check=True)
            objects = [one.with_suffix(".o").name for one in sources]
            subprocess.run(["gcc", "-pie", "-o", "bench", *objects], cwd=folder, check=True)


def run_of(folder: Path, benchmark: str) -> Run:
    """One benchmark of a version."""
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    if benchmark.startswith("py"):
        return Run(sys.executable, f"{benchmark}.py", "", cwd=folder, environ=environ)
    return Run("./bench", benchmark, "", cwd=folder, environ=environ)


def count(folder: Path, benchmark: str, scratch: Path) -> int:
    """What it executes: instructions of the processor, or of Python."""
    run = run_of(folder, benchmark)
    if benchmark.startswith("py"):
        (scratch / "count.py").write_text(COUNTING)
        words = [sys.executable, str(scratch / "count.py"), f"{benchmark}.py"]
        done = subprocess.run(words, cwd=folder, env=run.environ, check=True, capture_output=True, text=True)
        return int(done.stdout.splitlines()[-1])
    words = [
        "setarch",
        "-R",
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={scratch}/out",
        "./bench",
    ]
    done = subprocess.run([*words, benchmark], cwd=folder, env=run.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.rpartition("Collected : ")[2].split()[0])


def followed(scratch: Path, seed: int, commits: int) -> tuple[int, int, list[str]]:
    """The pairs of versions and benchmarks, how many are skipped, and those of them that changed."""
    project = Project(seed)
    old, new = scratch / "old", scratch / "new"
    new.mkdir(parents=True)
    project.build(new)
    pairs, skipped, wrong = 0, 0, []

    def key_of(folder: Path) -> tuple[str, ...]:
        texts = [one.read_text() for one in sorted(folder.glob("*.txt")) + sorted(folder.glob("*.py"))]
        return (loaded_parts(folder / "bench"), *texts)

    counts: dict[tuple[tuple[str, ...], str], int] = {}

    def amount(side: str, benchmark: str) -> int:
        key = key_of(scratch / side), benchmark
        if key not in counts:
            counts[key] = count(scratch / side, benchmark, scratch)
        return counts[key]

    def opens(run: Run, names: Collection[str]) -> bool | None:
        return opens_any(run, names, scratch, 60)

    def executes(run: Run, code: Ranges) -> bool | None:
        return executes_any(run, code, scratch, 60)

    for number in range(commits):
        rmtree(old, ignore_errors=True)
        copytree(new, old, symlinks=True)
        kind = project.change()
        project.build(new)
        for benchmark in BENCHMARKS:
            pairs += 1
            why = why_identical(run_of(old, benchmark), run_of(new, benchmark), opens, executes, False)
            if why:
                skipped += 1
                if amount("old", benchmark) != amount("new", benchmark):
                    wrong.append(f"{number} {kind} {benchmark}: {why}")
    return pairs, skipped, wrong


TWO = """#include <stdio.h>
#include <stdlib.h>
const int table[] = {1, 2, 3};
static int __attribute__((noinline)) used(int x) { return x * table[x & 1]; }
static int __attribute__((noinline)) other(int x) { return x * 5; }
int main(int count, char **names) { return printf("%d\\n", count > 1 ? other(count) : used(count)) < 0; }
"""


def built(folder: Path, source: str, *options: str) -> Path:
    """A program of a source."""
    folder.mkdir()
    (folder / "two.c").write_text(source)
    subprocess.run(["gcc", "-O1", *options, "-o", "two", "two.c"], cwd=folder, check=True)
    return folder / "two"


@pytest.mark.parametrize(
    ("before", "after", "options"),
    [
        ("{1, 2, 3}", "{1, 2, 4}", ()),
        ("x * 5", 'x * 5 + atoi(getenv("A"))', ()),
        ("x * 5", "x * 5 + x * x * x / 3 + x % 7 + x / 9", ("-no-pie",)),
        ("x * 5", "x * 6", ("-s",)),
        ("x * 5", "x * 6 + (int)__builtin_ia32_rdtsc()", ()),
        ("int main(", "#include <time.h>\nlong now(void) { return time(0); }\nint main(", ()),
    ],
)
def test_what_differs_in_more_than_code_is_not_known(
    tmp_path: Path, before: str, after: str, options: tuple[str, ...]
) -> None:
    old = built(tmp_path / "old", TWO, *options)
    assert changed_code(old, built(tmp_path / "new", TWO.replace(before, after), *options)) is None


def test_what_runs_is_told_from_what_does_not(tmp_path: Path) -> None:
    old = built(tmp_path / "old", TWO)
    new = built(tmp_path / "new", TWO.replace("x * 5", "x * 5 + x * x * x / 3 + x % 7"))
    code = changed_code(old, new)
    assert code
    runs = [Run("./two", args, "", cwd=old.parent, environ=dict(os.environ)) for args in ("", "1")]
    assert [executes_any(run, code, tmp_path, 60) for run in runs] == [False, True]
    assert executes_any(runs[0]._replace(cmd="./none"), code, tmp_path, 60) is None
    assert executes_any(runs[0]._replace(environ={"PATH": "/none"}), code, tmp_path, 60) is None


def test_a_damaged_program_is_not_known(tmp_path: Path) -> None:
    old = built(tmp_path / "old", TWO)
    cut = tmp_path / "cut"
    data = old.read_bytes()
    for size in range(0, len(data), 997):
        cut.write_bytes(data[:size])
        assert changed_code(old, cut) is None
    assert changed_code(old, tmp_path / "none") is None


def test_benchmarks_that_a_change_cannot_reach_are_skipped(tmp_path: Path) -> None:
    pairs, skipped, wrong = followed(tmp_path / "few", 1, 1)
    assert not wrong
    assert 0 < skipped < pairs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_none_is_skipped_whose_instructions_changed(tmp_path: Path, seed: int) -> None:
    pairs, skipped, wrong = followed(tmp_path / "many", seed, 50)
    assert not wrong
    assert skipped >= 0.6 * pairs, (skipped, pairs)
