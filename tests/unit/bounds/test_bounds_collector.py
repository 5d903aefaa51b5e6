"""The collector of bounds: its profile, its processes and its sources."""

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.bounds import cache, workers
from perun.bounds.front.read import read
from perun.bounds.front.unit import ReadOptions
from perun.bounds.serving import digester
from perun.bounds.sources import BoundsParams, sources_of
from perun.collect import bounds
from perun.collect.bounds import BoundsCollector
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.plugin.api import CollectContext, Run
from perun.profile.bounds import Growth, classes, unreadable
from perun.profile.factory import Profile
from perun.profile.format.json import validate

# The listing of the manual's 4.1.4, which is part of a file: its first line is the 19th of that.
PARTITIONING = """\
#include <stdlib.h>

typedef struct list {
  struct list *next;
} TList;

extern int NONDET;











int partitioning(unsigned int k) {
  TList *list, *temp;

  unsigned int list_next_NULL;
  unsigned int list_next_p;
  unsigned int p_next_NULL;
  unsigned int x_next_NULL;
  unsigned int y_next_x;
  list = malloc(sizeof(TList));
  list->next = NULL;

  // Create nondeterministic list
  TList *p = list;
  list_next_NULL = 1;
  list_next_p = 0;
  while(k > 1) {
      temp = malloc(sizeof(TList));
      temp->next = NULL;
      p->next = temp;
      p = temp;
      list_next_NULL = list_next_p + 2;
      list_next_p += 1;
      --k;
  }

  // Traverse the list
  TList* x = list;
  TList* y = x;
  x_next_NULL = list_next_NULL;
  y_next_x = 0;
  while(x_next_NULL > 0 && x != NULL) {
      x = x->next;
      x_next_NULL -= 1;
      y_next_x += 1;
      // The end will always jump out
      if(NONDET) {
          while(y_next_x > 0 && y != x) {
              y = y->next;
              y_next_x -= 1;
          }
      }
  }

  p = list;
  p_next_NULL = list_next_NULL;
  while(p_next_NULL > 0 && p != NULL) {
      temp = p;
      p = p->next;
      free(temp);
      p_next_NULL -= 1;
  }

  return 0;
}
"""
LOOP = "int {0}(int n) {{ int i; for (i = 0; i < n; i++) {{ }} return i; }}\n"


@pytest.fixture
def collect(tmp_path: Path) -> Callable[..., Profile]:
    """Collect from the folder `project`, which the test fills; `notes` and `reports` are what it tells."""
    project = tmp_path / "project"
    project.mkdir()

    def run(*sources: str, cached: Path | None = None, **params: Any) -> Profile:
        run.notes, run.reports = [], []  # type: ignore[attr-defined]
        context = CollectContext(
            tmp_path,
            lambda *one: run.reports.append(one),
            run.notes.append,
            cached,  # type: ignore[attr-defined]
        )
        measured = Run("partitioning", cwd=project, environ=dict(os.environ))
        return BoundsCollector().collect(measured, BoundsParams(source=sources, **params), context)

    run.project = project  # type: ignore[attr-defined]
    return run


def write(collect: Any, name: str, text: str) -> None:
    path = collect.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_example_of_the_manual(collect: Any) -> None:
    """Its resources have persistent properties only; the subtype is apart from the type, as 3.3.2 has it."""
    write(collect, "int_partitioning.c", PARTITIONING)
    profile = collect("int_partitioning.c")
    validate(profile, "bounds")
    expected = {
        (34, 42): ("local bound", "1 + max(0, (k + -1))"),
        (49, 60): ("local bound", "2 + max(0, (k + -1))"),
        (55, 58): ("local bound", "1 + max(0, (k + -1))"),
        (64, 69): ("local bound", "2 + max(0, (k + -1))"),
        (18, 4): ("total bound", "6 + 4 × max(0, (k + -1))"),
    }
    names = {f"int_partitioning.c:partitioning:{line}:{column}#0" for line, column in expected}
    assert profile["resources"] == {name: {} for name in names}
    assert profile["resource_type_map"] == {
        f"int_partitioning.c:partitioning:{line}:{column}#0": {
            "uid": {
                "source": "int_partitioning.c", "function": "partitioning", "line": line, "column": column
            },
            "type": "bound",
            "subtype": subtype,
            "bound": bound,
            "class": "O(n^1)",
        }
        for (line, column), (subtype, bound) in expected.items()
    }  # fmt: skip
    header = profile["header"]
    assert (header["type"], header["units"], header["cmd"]) == (
        "bound", {"bound": "iterations"}, "partitioning"
    )  # fmt: skip
    assert profile["collector_info"]["params"]["source"] == ["int_partitioning.c"]
    assert profile["bounds"]["sources"] == ["int_partitioning.c"]
    assert classes(profile) == {"partitioning": Growth.of("O(n^1)")}


def test_folders_are_searched_without_hidden_ones(collect: Any) -> None:
    for name in ("src/b.c", "src/deep/a.c", "src/.hidden/c.c", "src/notes.txt", "other.c"):
        write(collect, name, LOOP.format("in_" + Path(name).stem))
    assert set(classes(collect(source_dir=("src",)))) == {"in_a", "in_b"}
    twice = BoundsParams(source=("src/../src/b.c",), source_dir=("src",))
    assert sources_of(twice, collect.project) == ["src/b.c", "src/deep/a.c"]  # each once


def test_the_cache_is_by_content(collect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    write(collect, "limit.h", "#define LIMIT n\n")
    loop = "int f(int n) { int i; for (i = 0; i < LIMIT; i++); return i; }"
    write(collect, "a.c", f'#include "limit.h"\n{loop}\n')
    first = collect("a.c", cached=folder)
    (kept,) = folder.glob("*.json")
    text = kept.read_text()
    kept.write_text(text.replace("O(n^1)", "O(n^7)"))  # what is there is taken
    assert classes(collect("a.c", cached=folder)) == {"f": Growth.of("O(n^7)")}
    kept.write_text("{")
    assert collect("a.c", cached=folder)["resource_type_map"] == first["resource_type_map"]
    write(collect, "limit.h", "#define LIMIT 10\n")
    assert classes(collect("a.c", cached=folder)) == {"f": Growth.of("O(1)")}
    assert len(list(folder.glob("*.json"))) == 2
    monkeypatch.setattr(cache, "MAX_ENTRIES", 1)
    cache.prune(folder)
    assert len(list(folder.iterdir())) == 1


def test_of_a_changed_source_only_what_changed_is_analysed(collect: Any, tmp_path: Path) -> None:
    """The bounds that the cache has of a function are taken, wherever it stands now."""
    folder = tmp_path / "cache"
    write(collect, "a.c", LOOP.format("f") + LOOP.format("h"))
    collect("a.c", cached=folder)
    (kept,) = folder.glob("*.json")
    kept.write_text(kept.read_text().replace("O(n^1)", "O(n^7)"))
    write(collect, "a.c", "/* moved */\n\n" + LOOP.format("f") + LOOP.format("h").replace("n;", "2 * n;"))
    profile = collect("a.c", cached=folder)
    assert classes(profile) == {"f": Growth.of("O(n^7)"), "h": Growth.of("O(n^1)")}
    places = [one["uid"] for one in profile["resource_type_map"].values() if one["uid"]["function"] == "f"]
    assert {(uid["line"], uid["column"]) for uid in places} == {(3, 3), (2, 4)}


@pytest.mark.parametrize(("old", "new", "is_same"), [
    ("int count;", "int count;  /* of all */\n\n", True),
    ("int other(void) { return 1; }", "int other(void) { return 2; }", True),
    ("void set(int *p) { count = 1; }", "void set(int *p) { }", False),  # what it calls
    ("int count;", "unsigned count;", False),
    ("typedef int number;", "typedef unsigned char number;", False),
    ("i < n", "i <= n", False),
    ("i++) {", "i++) {\n", False),  # its loop ends elsewhere
])  # fmt: skip
def test_what_the_bounds_of_a_function_depend_on(tmp_path: Path, old: str, new: str, is_same: bool) -> None:
    source = tmp_path / "a.c"
    text = (
        "typedef int number;\nint count;\nvoid set(int *p) { count = 1; }\nint other(void) { return 1; }\n"
        "int f(number n) { int i; for (i = 0; i < n; i++) { set(&i); } return i; }\n"
    )
    digests = []
    for one in (text, text.replace(old, new)):
        source.write_text(one)
        unit = read(str(source), ReadOptions())
        function = next(each for each in unit.functions if each.name == "f")
        digests.append(digester(unit, "options")(function))
    assert (digests[0] == digests[1]) is is_same


def test_several_processes_find_the_same(collect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"f{number}" for number in range(5)]
    write(collect, "a.c", "".join(LOOP.format(name) for name in names))
    alone = collect("a.c")
    monkeypatch.setattr(bounds, "LARGE", 0)
    monkeypatch.setattr(bounds, "usable_processors", lambda: 3)
    together = collect("a.c")
    assert together.serialize() == alone.serialize()
    assert list(classes(together)) == names
    told = [activity for activity, _, _ in collect.reports]
    assert sorted(one for one in told if one.startswith("analysing")) == [
        f"analysing {name} of a.c" for name in names
    ]


def test_a_killed_process_loses_its_source_only(collect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        write(collect, f"{name}.c", LOOP.format(name))
    start = workers._Processes.start

    def killing(self: Any, task: Any) -> None:
        start(self, task)
        if task.path == "a.c":
            process = next(one for one, of in self.working.values() if of is task)
            os.kill(process._process.pid, signal.SIGSEGV)

    monkeypatch.setattr(workers._Processes, "start", killing)
    profile = collect("a.c", "b.c")
    assert set(classes(profile)) == {"b"}
    (gap,) = unreadable(profile)
    assert (gap.source, gap.reason) == ("a.c", "the analysis of it was ended by SIGSEGV")
    assert collect.notes == ["a.c:1: the analysis of it was ended by SIGSEGV"]


def test_why_a_process_ends_is_told(collect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a library is there but cannot be loaded."""
    write(collect, "a.c", LOOP.format("f"))
    monkeypatch.setattr(workers, "_START", "raise ImportError('libz3.so cannot be loaded')")
    with pytest.raises(JobFailed, match=r"ended with status 1: ImportError: libz3\.so cannot be loaded"):
        collect("a.c")


def test_an_interruption_ends_all_processes(collect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    program = workers.programs.Program

    def noted(*arguments: Any, **options: Any) -> Any:
        started.append(program(*arguments, **options))
        return started[-1]

    def interrupted(connections: Any, seconds: float | None) -> Any:
        raise KeyboardInterrupt

    write(collect, "a.c", LOOP.format("f"))
    monkeypatch.setattr(workers.programs, "Program", noted)
    monkeypatch.setattr(workers, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect("a.c")
    assert [process.returncode for process in started] == [-signal.SIGKILL]


BOMB = "#define A0 x x x x\n" + "".join(f"#define A{n + 1} {f'A{n} ' * 8}\n" for n in range(12)) + "A12\n"
ROUNDS = "for (i = 0; i < {of}; i++) for (j = 0; j < {of}; j++) for (k = 0; k < {of}; k++) {to}++; "


def slow(name: str, inputs: str = "abc") -> str:
    """A function whose bound is a polynomial of degree 9: with 3 inputs in 30,000 steps."""
    loops = "".join(f"for (i = 0; i < {each}; i++) s++; " for each in inputs)
    loops += ROUNDS.format(of="s", to="q") + ROUNDS.format(of="q", to="s")
    parameters = ", ".join(f"int {each}" for each in inputs)
    return f"int {name}({parameters}) {{ int i, j, k, s = 0, q = 0; {loops} return s; }}\n"


def with_time_enough(collect: Any, *sources: str, timeout: float) -> tuple[Profile, float]:
    """The profile within the limit, or a longer one where the machine is too busy; and the limit."""
    while timeout < 200:
        with contextlib.suppress(JobFailed):
            profile = collect(*sources, timeout=timeout)
            if len(list(unreadable(profile))) == 1:
                return profile, timeout
        timeout *= 5
    raise AssertionError("more than one source or function takes too long")


@pytest.mark.parametrize(
    ("text", "reason", "timeout"),
    [
        ('#include "pipe.h"\n', r"did not end within [\d.]+ s", 0.5),
        pytest.param('#include "/dev/zero"\n', "the preprocessor", 10.0, marks=pytest.mark.slow),
        pytest.param(BOMB, "the preprocessor|more than 64 MiB", 10.0, marks=pytest.mark.slow),
        ("/*" + "x" * (33 << 20) + "*/\n", "cannot be read", 10.0),
    ],
    ids=["a pipe", "a device", "macros that grow", "a huge source"],
)
def test_a_source_that_takes_too_much_is_named(text: str, reason: str, timeout: float, collect: Any) -> None:
    write(collect, "a.c", text + LOOP.format("lost"))
    write(collect, "b.c", LOOP.format("f"))
    os.mkfifo(collect.project / "pipe.h")
    profile, _ = with_time_enough(collect, "a.c", "b.c", timeout=timeout)
    assert set(classes(profile)) == {"f"}
    (gap,) = unreadable(profile)
    assert gap.source == "a.c" and re.search(reason, gap.reason)


OUT_OF_STEPS = "its analysis takes more steps than --timeout gives it"
NOT_REACHED = "what is before it in the source takes all that --source-timeout gives"


def test_a_function_that_takes_too_many_steps_is_given_up(collect: Any) -> None:
    write(collect, "a.c", LOOP.format("f") + slow("g", "abcd") + LOOP.format("h"))
    profiles = [collect("a.c", timeout=timeout) for timeout in (1, 1, 100)]
    assert profiles[0].serialize() == profiles[1].serialize()
    assert [(gap.function, gap.reason) for gap in unreadable(profiles[0])] == [("g", OUT_OF_STEPS)]
    assert classes(profiles[0])["h"] == Growth.of("O(n^1)")
    assert not list(unreadable(profiles[2]))
    assert classes(profiles[2])["g"] == Growth.of("O(n^9)")


@pytest.mark.parametrize("processes", [1, 3])
def test_the_functions_of_a_source_have_steps_together(processes: int, collect: Any, monkeypatch) -> None:
    """Which are not reached is the same with any number of processes, and none is lost."""
    monkeypatch.setattr(bounds, "LARGE", 0)
    monkeypatch.setattr(bounds, "usable_processors", lambda: processes)
    names = [f"f{number}" for number in range(5)]
    write(collect, "a.c", "".join(slow(name) for name in names) + LOOP.format("last"))
    profile = collect("a.c", timeout=10.0, source_timeout=1.25)
    assert list(classes(profile)) == [*names, "last"]
    reached = [name for name in classes(profile) if classes(profile)[name] != Growth.of("O(∞)")]
    assert reached == names[:3]
    assert [(gap.function, gap.reason) for gap in unreadable(profile)] == [
        (name, NOT_REACHED) for name in [*names[3:], "last"]
    ]


def test_each_function_that_is_called_has_the_time_of_one(collect: Any) -> None:
    text = "int g(int, int, int); void f(int n) { int i; for (i = 0; i < n; i++) g(n, n, n); }\n"
    write(collect, "a.c", text + slow("g"))
    profile = collect("a.c", timeout=60, calls=True)
    assert list(classes(profile).values()) == [Growth.of("O(n^10)"), Growth.of("O(n^9)")]
    assert "analysing g of a.c" in [activity for activity, _, _ in collect.reports]


@pytest.mark.parametrize("instead", ["time.sleep(3600)", "all(iter(int, 1)) or [0 for _ in iter(int, 1)]"])
def test_a_function_that_takes_too_long_is_given_up(instead: str, collect: Any, monkeypatch) -> None:
    """One that takes no steps, whether it works or waits."""
    start = (
        "import sys; sys.path[:] = sys.argv[2:]; import time; from perun.bounds import serving; "
        "one = serving.analyse; "
        f"serving.analyse = lambda f, *rest: {instead} if f.name == 'g' else one(f, *rest); "
        "serving.main(int(sys.argv[1]))"
    )
    write(collect, "a.c", LOOP.format("f") + LOOP.format("g") + LOOP.format("h"))
    monkeypatch.setattr(workers, "_START", start)
    profile, limit = with_time_enough(collect, "a.c", timeout=1)
    assert list(classes(profile)) == ["f", "g", "h"] and classes(profile)["g"] == Growth.of("O(∞)")
    assert [(gap.function, gap.reason) for gap in unreadable(profile)] == [
        ("g", f"the analysis of it takes longer than {limit:g} s; --timeout gives it more")
    ]


def test_nothing_that_could_be_read(collect: Any) -> None:
    write(collect, "a.c", "int broken(int n) { @ }\n")
    profile = collect("a.c")
    assert classes(profile) == {"broken": Growth.of("O(∞)")}
    assert [(gap.line, gap.function) for gap in unreadable(profile)] == [(1, "broken")]


def test_only_some_functions(collect: Any) -> None:
    write(collect, "a.c", LOOP.format("f") + LOOP.format("g"))
    assert set(classes(collect("a.c", function=("g",)))) == {"g"}
    with pytest.raises(JobFailed, match=r"a\.c defines no function 'h'"):
        collect("a.c", function=("h",))


def test_macros_folders_of_headers_and_what_is_counted(collect: Any) -> None:
    write(collect, "include/size.h", "#define SIZE (2 * FACTOR)\n")
    write(collect, "a.c", "#include <size.h>\nvoid f(void) { int i; for (i = 0; i < SIZE; i++) { } }\n")
    options = {"include": ("include",), "define": ("FACTOR=5",)}
    backedges = collect("a.c", **options, count="backedges")
    assert {one["bound"] for one in backedges["resource_type_map"].values()} == {"10"}


def test_without_a_compiler(collect: Any, tmp_path: Path) -> None:
    write(collect, "a.c", LOOP.format("f"))
    run = Run("", cwd=collect.project, environ={"PATH": str(tmp_path)})
    (found,) = BoundsCollector().readiness(run.environ)
    assert "no C compiler" in found.missing
    with pytest.raises(CollectorUnavailable, match="no C compiler"):
        BoundsCollector().collect(run, BoundsParams(source=("a.c",)), CollectContext(tmp_path))


def test_what_lacks_in_a_header_is_told_with_its_name_and_once(collect: Any) -> None:
    write(collect, "include/half.h", "\n\n#include <absent.h>\n")
    for name in ("a.c", "b.c"):
        write(collect, name, "#include <half.h>\n" + LOOP.format("f"))
    profile = collect("a.c", "b.c", include=("include",))
    assert collect.notes == ["include/half.h:3: there is no header 'absent.h'"]
    assert [(one["source"], one["header"], one["line"]) for one in profile["bounds"]["unreadable"]] == [
        ("a.c", "include/half.h", 3), ("b.c", "include/half.h", 3)
    ]  # fmt: skip


def test_a_source_that_the_compilation_database_lacks_is_told(collect: Any) -> None:
    """Without the macros of the build other loops may be seen than those that run."""
    for name in ("a.c", "b.c"):
        write(collect, name, LOOP.format("f"))
    entry = {"directory": str(collect.project), "file": "a.c", "command": "cc -c a.c"}
    write(collect, "commands.json", json.dumps([entry]))
    collect("a.c", "b.c", compile_commands="commands.json")
    assert [note.partition(", ")[0] for note in collect.notes] == ["b.c:1: commands.json does not list it"]


def test_a_compilation_database_names_the_sources(collect: Any) -> None:
    write(collect, "src/a.c", "void f(void) { int i; for (i = 0; i < SIZE; i++) { } }\n")
    entry = {"directory": str(collect.project / "src"), "file": "a.c", "command": "cc -DSIZE=7 -c a.c"}
    write(collect, "commands.json", json.dumps([entry]))
    profile = collect(compile_commands="commands.json")
    assert profile["bounds"]["sources"] == ["src/a.c"]
    assert classes(profile) == {"f": Growth.of("O(1)")}
