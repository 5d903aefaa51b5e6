"""`perun collect memory`: programs of C, C++ and Python recorded by the real command, and what it says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.collect.memory.collector import LIBRARY
from perun.collect.memory.records import ROOM

PROGRAMS = Path(__file__).with_name("programs")
C_PROGRAM, CPP_PROGRAM, LOSING, FORKING, HISTORY = (
    (PROGRAMS / name).read_text()
    for name in ("allocating.c", "containers.cpp", "losing.c", "forking.c", "parsing.c")
)
PLACES = ("fill", "<listcomp>")
"""Where a list of `fill` is made: a function of its own before Python 3.12."""
PYTHON_PROGRAM = """\
import json, sys
def build(count):
    return [{"number": number, "text": str(number)} for number in range(count)]
def keep(store, count):
    for _ in range(count):
        store.append(bytearray(10_000))
def main():
    store = []
    keep(store, 20)
    return len(json.loads(json.dumps(build(500)))), store
sys.kept = main()
print("done", __name__, sys.argv[1:])
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""


@pytest.fixture(scope="session")
def command(command: list[str], memory_recorder: Path) -> list[str]:
    """Perun with the recorder that was built for the tests, where it is not installed."""
    return command if memory_recorder == LIBRARY else with_recorder(memory_recorder)


def with_recorder(library: Path) -> list[str]:
    """How Perun is started with another recorder."""
    code = (
        "import pathlib, sys, perun.collect.memory.collector as collector\n"
        f"collector.LIBRARY = pathlib.Path({str(library)!r})\n"
        "from perun.__main__ import main\n"
        "sys.argv[0] = 'perun'\n"
        "main()"
    )
    return [sys.executable, "-P", "-c", code]


COMPILED = {
    "list": ["cc", "-g", "-O1", "-fno-inline", "-o", "list", "list.c"],
    "stripped": ["cc", "-s", "-O1", "-fno-inline", "-o", "stripped", "list.c"],
    "static": ["cc", "-static", "-o", "static", "list.c"],
    "threads": ["c++", "-g", "-O1", "-pthread", "-o", "threads", "threads.cpp"],
}
"""How each program is compiled."""


def build(project: Any, *names: str) -> None:
    """Build these programs in the project."""
    for name in names:
        subprocess.run(COMPILED[name], cwd=project.path, check=True)


@pytest.fixture
def built(project: Any) -> Any:
    """A project with the sources of all programs, and the program `list`."""
    project.write({"list.c": C_PROGRAM, "threads.cpp": CPP_PROGRAM, "prog.py": PYTHON_PROGRAM})
    build(project, "list")
    return project


def latest(project: Any) -> dict[str, Any]:
    """The profile that was collected last; it is removed, so that the next one is the latest again."""
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    profile: dict[str, Any] = json.loads(path.read_bytes())
    path.unlink()
    return profile


def rows(profile: dict[str, Any], *fields: str) -> list[tuple[Any, ...]]:
    """The resources with a trace: their groups with their columns summed up."""
    found = []
    for key, constants in profile["resource_type_map"].items():
        if "trace" in constants:
            columns = profile["resources"][key]
            values = {**constants, **{name: sum(column) for name, column in columns.items()}}
            values["function"], values["line"] = constants["uid"]["function"], constants["uid"]["line"]
            found.append(tuple(values.get(name, 0) for name in fields))
    return found


def metrics(profile: dict[str, Any]) -> dict[str, int]:
    return {
        key.rpartition("#")[0]: profile["resources"][key]["amount"][0]
        for key, constants in profile["resource_type_map"].items()
        if "trace" not in constants
    }


def test_every_allocation_is_found(perun: Callable[..., Any], built: Any) -> None:
    outcome = perun("collect", "-c", "./list", "-w", "300", "memory")
    assert outcome.out.startswith("stored memory-list-[_]-[300]-") and outcome.err == ""
    shown = perun("show", "0@p", "memory").out
    for text in (
        "peak heap    103 KiB",
        "leaked       36 B in 3 blocks",
        "temporary    50 allocations",
        "leak  list.c:12",
    ):
        assert text in shown
    assert "main;push 4800\n" in perun("show", "0@p", "flamegraph", "--format", "folded").out
    profile = latest(built)
    assert profile["header"] == {
        "type": "memory", "cmd": "./list", "args": "", "workload": "300",
        "units": {"memory": "B", "memory (allocations)": "", "memory (temporary)": ""},
    }  # fmt: skip
    assert sorted(rows(profile, "function", "line", "subtype", "count", "amount", "leaked", "temporary")) == [
        ("leak", 12, "malloc", 3, 36, 36, 0),
        ("main", 20, "calloc", 1, 5000, 0, 0),
        ("main", 20, "realloc", 1, 100_000, 0, 0),
        ("main", 24, "free", 300, 0, 0, 0),
        ("main", 25, "free", 1, 0, 0, 0),
        ("push", 7, "malloc", 300, 4800, 0, 0),
        ("temporary", 14, "free", 50, 0, 0, 0),
        ("temporary", 14, "malloc", 50, 10_000, 0, 50),
    ]
    summed = metrics(profile)
    assert summed["list:leaked"] == summed["list.c:leak:leaked"] == 36
    assert summed["list:peak"] == 4800 + 100_000 + 200
    assert summed["list:allocations"] == 300 + 2 + 50 + 3
    for constants in profile["resource_type_map"].values():
        if constants["uid"].get("function") == "push" and "trace" in constants:
            assert constants["trace"] == [
                {"function": "push", "source": "list.c", "line": 7},
                {"function": "main", "source": "list.c", "line": 19},
            ]
    assert profile["memory"]["ended"] == "normally"
    assert profile["memory"]["notes"] == []


def test_what_is_lost_and_what_can_be_reached(perun: Callable[..., Any], project: Any) -> None:
    project.write({"losing.c": LOSING, "prog.py": PYTHON_PROGRAM})
    compiler = ["cc", "-g", "-O0", "-o", "losing", "losing.c"]
    subprocess.run(compiler, cwd=project.path, check=True)
    collect = ("collect", "-c", "./losing", "memory")
    assert perun(*collect, "--reachable").err == ""
    shown = perun("show", "0@p", "memory").out
    assert (
        "at the end   448 B definitely lost in 4 blocks, 120 B indirectly lost in 4 blocks, "
        "0 B possibly lost in 0 blocks, 162 B still reachable in 2 blocks\n"
    ) in shown
    profile = latest(project)
    fields = ("function", "line", "definitely-lost", "indirectly-lost", "possibly-lost", "still-reachable")
    assert sorted(rows(profile, *fields)) == [
        ("keep", 4, 0, 0, 0, 162),
        ("lose", 6, 448, 0, 0, 0),
        ("lose", 7, 0, 120, 0, 0),
    ]
    summed = metrics(profile)
    assert summed["losing:lost"] == summed["losing.c:lose:lost"] == 568
    assert "losing.c:keep:lost" not in summed
    assert (summed["losing:leaked"], profile["memory"]["still-reachable-blocks"]) == (730, 2)
    # One that is killed is not searched, and says so; without the option nothing is.
    killed = ("collect", "-c", "./losing", "-a", "abort", "memory", "--reachable", "--ignore-failure")
    assert "what the program could reach at the end is unknown: only a process" in perun(*killed).out
    assert "definitely-lost" not in latest(project)["memory"]
    perun(*collect)
    assert "losing:lost" not in metrics(latest(project))
    refused = perun(
        "collect", "-c", sys.executable, "-a", "prog.py", "memory", "--python", "--reachable", check=False
    )
    assert "--reachable searches the memory of C and C++ programs" in refused.err


def test_options_of_the_manual(perun: Callable[..., Any], built: Any) -> None:
    collect = ("collect", "-c", "./list", "memory")
    perun(*collect, "--no-func", "push", "--no-func", "temporary")
    assert {name for (name,) in rows(latest(built), "function")} == {"main", "leak"}
    perun(*collect, "--no-source", "list.c")
    assert rows(latest(built), "function") == []
    perun(*collect, "--all", "--sampling", "0.5")
    profile = latest(built)
    traces = [trace for (trace,) in rows(profile, "trace")]
    assert {trace[0]["function"] for trace in traces} >= {"malloc", "calloc", "realloc", "free"}
    assert all(trace[0]["source"] == "unreachable" for trace in traces)
    assert any(trace[-1]["function"] == "_start" for trace in traces)
    assert profile["collector_info"]["params"]["sampling"] == profile["memory"]["sampling"] == 0.5
    assert {columns["time"][0] for columns in profile["resources"].values() if "time" in columns} == {0.5}
    perun(*collect, "--raw")
    profile = latest(built)
    (orders,) = (
        profile["resources"][key]["order"]
        for key, one in profile["resource_type_map"].items()
        if one["uid"].get("function") == "push" and "trace" in one
    )
    assert len(orders) == 100 and orders == sorted(orders)


@pytest.mark.parametrize(
    "unwind",
    ["fp", "none", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tables", "libunwind"))],
)
def test_unwinders(perun: Callable[..., Any], built: Any, unwind: str) -> None:
    outcome = perun("collect", "-c", "./list", "memory", "--unwind", unwind)
    profile = latest(built)
    used = profile["memory"]["unwinder"]
    assert used == unwind or f"the recorder found call stacks by {used}, not by {unwind}" in outcome.out
    assert profile["memory"]["allocations"] == 155
    if used in ("tables", "libunwind"):
        assert ("leak", 36) in rows(profile, "function", "leaked")
    if used == "none":
        assert {name for (name,) in rows(profile, "function")} == {"unknown"}
        assert metrics(profile)["list:leaked"] == 36


def test_threads_and_containers(perun: Callable[..., Any], built: Any) -> None:
    build(built, "threads")
    perun("collect", "-c", "./threads", "memory")
    profile = latest(built)
    amounts: dict[str, int] = {}
    for function, subtype, amount in rows(profile, "function", "subtype", "amount"):
        name = function.partition("(")[0]
        amounts[f"{name} {subtype}"] = amounts.get(f"{name} {subtype}", 0) + amount
    assert amounts["worker new"] >= 3 * 100 * (101 + 32)
    leaked = {name: leaked for name, leaked in rows(profile, "function", "leaked") if leaked}
    assert leaked == {"main": 8000 + 24}


def test_how_the_run_ends_is_told(perun: Callable[..., Any], built: Any) -> None:
    outcome = perun("collect", "-c", "./list 10 3", "memory", code=8, err="exited with status 3")
    assert "--ignore-failure" in outcome.err
    perun("collect", "-c", "./list 10 3", "memory", "-i")
    assert latest(built)["memory"]["ended"] == "normally"
    perun("collect", "-c", "./list 10 kill", "memory", out="the run ended early: it was killed by SIGKILL")
    profile = latest(built)
    assert profile["memory"]["ended"].startswith("early: was killed by SIGKILL")
    assert ("push", 10, 160) in rows(profile, "function", "count", "amount")


def test_children_and_what_a_script_becomes_are_recorded_on_request(perun, built) -> None:
    built.write({"both.sh": "#!/bin/sh\n./list 10\nexec ./list 20\n"})
    (built.path / "both.sh").chmod(0o755)
    hint = "--follow-children also records a program that it executed"
    assert hint in perun("collect", "-c", "./both.sh", "memory").out
    assert "push" not in {name for (name,) in rows(latest(built), "function")}
    assert hint not in perun("collect", "-c", "./both.sh", "memory", "--follow-children").out
    profile = latest(built)
    assert profile["memory"]["processes"] == 3  # before and after the script becomes the program
    assert sum(count for name, count in rows(profile, "function", "count") if name == "push") == 30


def test_what_is_missing_is_told(perun: Callable[..., Any], built: Any, environment: dict[str, str]) -> None:
    build(built, "stripped", "static")
    outcome = perun("collect", "-c", "./stripped", "memory")
    assert "sources and lines of stripped are unknown; compile with -g" in outcome.out
    assert all(name.startswith("stripped+0x") for (name,) in rows(latest(built), "function"))
    perun(
        "collect", "-c", "./static", "memory", code=8, err=("is linked statically", "link it without -static")
    )
    only = built.path / "bin"
    only.mkdir()
    (only / "git").symlink_to("/usr/bin/git")
    outcome = perun("collect", "-c", "./list", "memory", env={"PATH": str(only)})
    assert "neither addr2line nor llvm-symbolizer is installed" in outcome.out
    assert "apt-get install binutils" in outcome.out


@pytest.mark.parametrize(
    "lacking", [1, *(pytest.param(one, marks=pytest.mark.slow) for one in (4096, 8192, 1 << 20)), ROOM]
)
def test_a_full_disk_is_named(perun: Callable[..., Any], built: Any, small_disk: Any, lacking: int) -> None:
    """Where the disk has less room than the recorder needs, and where it has just enough."""
    scratch = built.path / ".perun" / "tmp"
    small_disk(scratch, 3)
    filler = scratch / "filler"

    def leave(room: int) -> None:
        filler.unlink(missing_ok=True)
        disk = os.statvfs(scratch)
        filler.write_bytes(bytes(disk.f_bfree * disk.f_frsize - room))

    whole = -(-ROOM // 4096) * 4096
    leave(max(whole - lacking, 0) // 4096 * 4096)
    outcome = perun("collect", "-c", "./list", "memory", check=False)
    assert outcome.code == 3 and list(scratch.iterdir()) == [filler]
    assert f"error: cannot read or write {scratch}/collect-" in outcome.err
    assert "/allocations: No space left on device\nhint: check the free disk space" in outcome.err
    assert not list((built.path / ".perun" / "jobs").glob("*.perf"))
    leave(whole + (64 << 10))
    assert perun("collect", "-c", "./list", "memory").err == ""
    assert latest(built)["memory"]["allocations"] == 155


GROWING = "import os, sys\nif sys.argv[1] == 'fork' and os.fork():\n    os.wait()\n    os._exit(0)\n"
GROWING += (
    "for i in range(60000):\n    str(i) * 100\nif sys.argv[1] == 'exit':\n    os._exit(0)\nsys.exit()\n"
)


@pytest.mark.parametrize("words", ["filler", "filler freed"])
def test_a_full_disk_at_a_fork_is_named(perun, built, small_disk, words) -> None:
    """What a child process does is not left out without a word, also where there is room again in the end."""
    built.write({"forking.c": FORKING})
    subprocess.run(["cc", "-g", "forking.c", "-o", "forking"], cwd=built.path, check=True)
    scratch = built.path / ".perun" / "tmp"
    small_disk(scratch, 5)
    collect = ("collect", "-c", "./forking", "memory", "--follow-children")
    arguments = ("-a", words.replace("filler", f"{scratch}/filler"))
    outcome = perun(*collect[:3], *arguments, *collect[3:], check=False)
    if words == "filler":
        assert outcome.code == 3 and "/allocations: No space left on device\n" in outcome.err
    else:
        assert outcome.code == 8
        assert "error: a process that the command started was not recorded: there was no room" in outcome.err
    assert not [one for one in scratch.iterdir() if one.name != "filler"]
    assert not list((built.path / ".perun" / "jobs").glob("*.perf"))
    (scratch / "filler").unlink(missing_ok=True)
    assert perun(*collect).err == "" and latest(built)["memory"]["processes"] == 2


@pytest.mark.parametrize("how", ["end", pytest.param("exit", marks=pytest.mark.slow), "fork"])
@pytest.mark.parametrize(
    "room", [*(pytest.param(one, marks=pytest.mark.slow) for one in (0, 4096)), 400 << 10]
)
def test_a_full_disk_is_named_for_python(perun, built, small_disk, room, how) -> None:
    pytest.importorskip("memray")
    built.write({"growing.py": GROWING})
    scratch = built.path / ".perun" / "tmp"
    small_disk(scratch, 24)
    disk = os.statvfs(scratch)
    filler = scratch / "filler"
    filler.write_bytes(bytes(disk.f_bfree * disk.f_frsize - room))
    collect = ("collect", "-c", f"{sys.executable} growing.py", "-a", how, "memory", "--python")
    outcome = perun(*collect, "--follow-children", check=False)
    assert outcome.code in (3, 8), outcome
    assert "No space left on device\n" in outcome.err or "there was no room for it in" in outcome.err
    assert list(scratch.iterdir()) == [filler] and not list((built.path / ".perun" / "jobs").glob("*.perf"))
    filler.unlink()
    perun(*collect, "--follow-children")
    assert latest(built)["memory"]["processes"] == 1 + (how == "fork")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_programs_with_other_rights(perun: Callable[..., Any], built: Any) -> None:
    os.chown(built.path / "list", 65534, 65534)
    (built.path / "list").chmod(0o4755)
    perun("collect", "-c", "./list", "memory", check=False, err="runs with other privileges than yours")


def test_the_recorder_was_not_built(built: Any, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [*with_recorder(built.path / "nowhere.so"), "collect", "-c", "./list", "memory"], cwd=built.path,
        env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode != 0
    assert "the recorder of allocations is missing" in done.stderr and "hint: " in done.stderr


# -- a history ----------------------------------------------------------------------------------------------


def test_a_history_with_a_leak_and_a_larger_buffer(perun: Callable[..., Any], project: Any) -> None:
    leaking = HISTORY.replace("        free(line);", "        if (i % 100) free(line);")
    makefile = "prog: prog.c\n\tcc -g -O1 -fno-inline -o $@ $<\n"
    project.commit("Start", {"prog.c": HISTORY, "Makefile": makefile, ".gitignore": "prog\n.perun\n"})
    leak = project.commit("Parse", {"prog.c": leaking})
    larger = project.commit("Buffer", {"prog.c": leaking.replace("65536", "131072")})
    for key, value in (
        ("cmds", "[./prog]"),
        ("collectors", "[{name: memory, params: {}}]"),
        ("execute.pre_run", "[make]"),
        ("profiles.register_after_run", "true"),
    ):
        perun("config", "set", key, value)
    perun("run", "matrix", "--since", "HEAD~3")
    outcome = perun("check", "--json", "--fail-on", "degradation", "all", code=1)
    found = {
        (pair["minor_version"], change["location"], change["from"], change["to"])
        for pair in outcome.json["comparisons"]
        for change in pair["changes"]
        if change["result"] in ("Degradation", "SevereDegradation")
    }
    assert found == {
        (leak, "prog:peak", "65616B", "66416B"),  # a count needs no limit of what noise may be
        (leak, "prog:leaked", "0B", "800B"),
        (leak, "prog.c:read_line:leaked", "0B", "800B"),
        (leak, "prog.c:read_line:peak", "80B", "880B"),
        (larger, "prog:allocated", "145536B", "211072B"),
        (larger, "prog:peak", "66416B", "131952B"),
        (larger, "prog.c:make_buffer:18", "65536B", "131072B"),
        (larger, "prog.c:make_buffer:allocated", "65536B", "131072B"),
        (larger, "prog.c:make_buffer:peak", "65536B", "131072B"),
    }
    shown = perun("check", "all").out
    assert "Severe Degradation  prog.c:read_line:leaked" in shown


# -- much ---------------------------------------------------------------------------------------------------


def many_places(places: int) -> str:
    """A program that allocates by some thousand call stacks, a number of times that is its argument."""
    lines = [
        "#include <stdlib.h>",
        "#define A __attribute__((noinline))",
        "static void *slots[100000];",
        "static unsigned seed = 1;",
        "static unsigned any(void) { seed = seed * 1664525u + 1013904223u; return seed >> 8; }",
    ]
    for one in range(places):
        lines.append(f"A void *f0_{one}(unsigned n) {{ return malloc({16 + one} + n % 64); }}")
    for depth in range(1, 4):
        for one in range(places):
            first, second = f"f{depth - 1}_{one}(n)", f"f{depth - 1}_{(one * 7 + 3) % places}(n)"
            lines.append(
                f"A void *f{depth}_{one}(unsigned n) {{ void *p = n & {1 << depth} ? {first} : {second}; "
                '__asm__ volatile(""); return p; }'
            )
    lines.append("typedef void *(*F)(unsigned);")
    lines.append(f"static F table[] = {{{','.join(f'f3_{one}' for one in range(places))}}};")
    lines.append(
        "int main(int count, char **words) { for (long i = atol(words[count - 1]); i; i--) {"
        "unsigned slot = any() % 100000; free(slots[slot]);"
        f"slots[slot] = table[any() % {places}](any()); }} return 0; }}"
    )
    return "\n".join(lines)


@pytest.mark.slow
def test_ten_million_events_are_a_small_profile(perun, project, command, environment) -> None:
    project.write({"many.c": many_places(400)})
    subprocess.run(["cc", "-g", "-O1", "-o", "many", "many.c"], cwd=project.path, check=True)
    pid = os.spawnve(
        os.P_NOWAIT,
        command[0],
        [*command, "collect", "-c", "./many", "-w", "5050000", "memory"],
        {**environment, "PWD": str(project.path)},
    )
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    shown = perun("show", "0@p", "raw")
    profile = shown.json
    assert 9_990_000 < profile["memory"]["events"] < 10_010_000
    assert len(shown.out) < 5_000_000
    assert path.stat().st_size < 500_000  # each call stack is stored once
    assert usage.ru_maxrss < 700_000  # kB; it does not grow with the number of events
    assert sum(count for (count,) in rows(profile, "count")) == profile["memory"]["events"]
    assert sum(amount for (amount,) in rows(profile, "amount")) == profile["memory"]["allocated"]
    assert "allocated " in perun("show", "0@p", "memory").out


# -- Python -----------------------------------------------------------------------------------------


def test_a_python_program(perun: Callable[..., Any], built: Any) -> None:
    pytest.importorskip("memray")
    perun("collect", "-c", f"{sys.executable} prog.py", "memory", "--python", "-s", "0.01")
    profile = latest(built)
    assert profile["memory"]["unwinder"] == "python"
    found = {
        (function, line): amount
        for function, line, subtype, amount in rows(profile, "function", "line", "subtype", "amount")
        if subtype == "object"
    }
    assert found["keep", 6] >= 20 * 10_000
    assert any(name == "main" and line == 10 for name, line in found)  # what json does for it
    assert metrics(profile)["prog.py:keep:leaked"] >= 20 * 10_000
    assert not any("python_agent" in json.dumps(one) for one in profile["resource_type_map"].values())
    assert profile["memory"]["peak"] > 200_000
    assert profile["memory"]["releases"] > 500
    outcome = perun(
        "collect", "-c", f"{sys.executable} prog.py", "-a", "4", "memory", "--python", check=False
    )
    assert "exited with status 4" in outcome.err


def test_python_scripts_and_modules(perun: Callable[..., Any], built: Any) -> None:
    pytest.importorskip("memray")
    built.write({"script": f"#!{sys.executable}\nkept = [bytes(5000) for _ in range(9)]\n"})
    (built.path / "script").chmod(0o755)
    for command in ("./script", f"{sys.executable} -X utf8 -m prog"):
        perun("collect", "-c", command, "memory", "--python")
        assert max(amount for (amount,) in rows(latest(built), "amount")) > 45_000


def test_a_program_that_takes_the_clock_from_itself(perun: Callable[..., Any], built: Any) -> None:
    source = Path(__file__).parents[1] / "native/programs/confined.c"
    subprocess.run(["cc", "-g", source, "-o", "confined"], cwd=built.path, check=True)
    outcome = perun("collect", "-c", "./confined seccomp", "memory")
    assert "the program took system calls or the clock from itself" in outcome.out
    assert "ended early" not in outcome.out
    profile = latest(built)
    assert profile["memory"]["ended"] == "normally"
    assert profile["header"]["incomplete"] == [{"reason": "lost", "amount": 11, "unit": "events"}]
    outcome = perun("collect", "-c", "./confined bare", "memory")
    assert "what the recorder does within it may be the reason" in outcome.out
    assert "measure it without its seccomp, or by what does nothing within it" in outcome.out
    assert latest(built)["memory"]["ended"].startswith("early: was killed by SIG")


@pytest.mark.slow
def test_python_programs_that_are_killed_fork_and_have_threads(perun: Callable[..., Any], built: Any) -> None:
    pytest.importorskip("memray")
    start = "import os, sys, threading\ndef fill():\n    sys.kept = [bytes(5000) for _ in range(9)]\n"
    programs = {
        "forked.py": "if os.fork():\n    os.wait()\nelse:\n    fill()\n",
        "killed.py": (
            "assert threading.active_count() == 1\n"
            "one = threading.Thread(target=fill)\none.start()\none.join()\nos.kill(os.getpid(), 9)\n"
        ),
    }
    built.write({name: start + rest for name, rest in programs.items()})
    for name in programs:
        perun("collect", "-c", f"{sys.executable} {name}", "memory", "--python", "--follow-children")
        profile = latest(built)
        filled = [amount for name, amount in rows(profile, "function", "amount") if name in PLACES]
        assert max(filled) > 45_000
        assert profile["memory"]["processes"] == (2 if name == "forked.py" else 1)
        assert profile["memory"]["ended"].startswith("early" if name == "killed.py" else "normally")


def test_python_is_refused_where_it_cannot_be(perun: Callable[..., Any], built: Any, tmp_path: Path) -> None:
    assert "'./list' is not one" in perun("collect", "-c", "./list", "memory", "--python", check=False).err
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    outcome = perun("collect", "-c", f"{bare} prog.py", "memory", "--python", check=False)
    assert f"memray, which is not installed for {bare}" in outcome.err
    assert "-m pip install memray" in outcome.err
