"""The collector of instruction counts on real programs: counts that repeat, and what they are counts of."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perun.check.hodges_lehmann_ratio import HodgesLehmannRatio
from perun.collect.instructions import InstructionsCollector
from perun.collect.instructions.callgrind import CallgrindEngine
from perun.collect.instructions.collector import ENGINES, InstructionsParams
from perun.collect.instructions.engines import CountingOptions
from perun.collect.instructions.perf import PerfEngine
from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.harness._common import CAN_MARK, copy_of
from perun.measurement.series import measurements
from perun.native.costs import OTHER_CALLERS, SMALL
from perun.plugin.api import CheckContext, CollectContext, Run
from perun.profile.factory import Profile
from perun.profile.incomplete import reasons_of
from perun.profile.stacks import stacks_of
from perun.view.flamegraph import FlameGraphView, FlameParams
from perun.view.tableof import TableOfView, TableParams
from traced import built

SOURCE = Path(__file__).parent / "programs" / "instructions.c"
_REFUSED = CallgrindEngine(os.environ).unavailable()
needs_valgrind = pytest.mark.skipif(bool(_REFUSED[0]), reason="; ".join(_REFUSED))
WORK = 20_000
Collect = Callable[..., Profile]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("instructions") / "prog"
    subprocess.run(["cc", "-g", "-O1", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture(scope="session")
def collect(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Collect:
    """Count the program with these arguments; `notes` are told to the list of that name."""

    # How many variables there are decides what the loader does.
    environ = {"PATH": os.environ["PATH"]}

    def counted(args: str, cmd: str = "./prog", notes: list[str] | None = None, **params: Any) -> Profile:
        run = Run(cmd, args, params.pop("workload", ""), params.pop("cwd", program.parent), environ)
        note = (lambda text: None) if notes is None else notes.append
        context = CollectContext(tmp_path_factory.mktemp("scratch"), note=note)
        chosen = InstructionsParams(**{"engine": "callgrind", "warmup": 0, **params})
        return InstructionsCollector().collect(run, chosen, context)

    return counted


@pytest.fixture(scope="session")
def profile(collect: Collect) -> Profile:
    return collect(str(WORK))


def resources(profile: Profile, subtype: str) -> list[dict[str, Any]]:
    return [one for _, one in profile.all_resources() if one["subtype"] == subtype]


def by_function(profile: Profile, subtype: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for one in resources(profile, subtype):
        name = one["uid"].get("function", "total")
        found[name] = found.get(name, 0) + one["amount"]
    return found


def total(profile: Profile) -> int:
    value: int = profile["instructions"]["total"]
    return value


@needs_valgrind
def test_exclusive_counts_add_up_to_the_total(profile: Profile) -> None:
    assert sum(one["amount"] for one in resources(profile, "exclusive")) == total(profile)
    assert by_function(profile, "inclusive")["total"] == total(profile)
    assert not reasons_of(profile)


@needs_valgrind
def test_children_do_not_count_what_their_parent_did_before(collect: Collect, tmp_path: Path) -> None:
    built(
        tmp_path / "parent", "-g -O1",
        "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
        "__attribute__((noinline)) int work(volatile int n) { while (n) n--; return n; }\n"
        "int main(int count, char **words) { int sum = work(200000);\n"
        "  for (int n = 0; n < atoi(words[1]); n++) { if (!fork()) _exit(0); wait(0); }\n"
        "  return count + sum - 2; }\n",
    )  # fmt: skip
    alone, with_children = (collect(str(forks), "./parent", cwd=tmp_path) for forks in (0, 3))
    assert with_children["instructions"]["processes"] == 4
    assert total(with_children) < total(alone) + 50_000
    assert by_function(with_children, "inclusive")["work"] == by_function(alone, "inclusive")["work"]


STRANGE = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(volatile int n) { while (n) n--; return n; }
int main(int count, char **words) {
  for (int n = 0; n < 5; n++) {
    pid_t child = 0;
    if (!strcmp(words[1], "vfork") && !(child = vfork())) execl(words[0], words[0], "child", NULL);
    if (!strcmp(words[1], "killed") && !(child = fork())) kill(getpid(), SIGSTOP);
    if (!strcmp(words[1], "killed")) { waitpid(child, NULL, WUNTRACED); kill(child, SIGKILL); }
    if (child) waitpid(child, NULL, 0);
  }
  if (!strcmp(words[1], "no room")) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});
  }
  return work(1000);
}
"""


@needs_valgrind
def test_what_counts_of_processes_cannot_say_is_noted(collect: Collect, tmp_path: Path) -> None:
    built(tmp_path / "strange", "-g -O1", STRANGE)
    found: dict[str, list[str]] = {"vfork": [], "killed": []}
    profiles = {
        args: collect(args, "./strange", cwd=tmp_path, notes=notes) for args, notes in found.items()
    }  # fmt: skip
    work = [one for one in resources(profiles["vfork"], "inclusive") if one["uid"].get("function") == "work"]
    assert [one["calls"] for one in work] == [6] and not reasons_of(profiles["vfork"])
    assert ["uses vfork" in note for note in found["vfork"]] == [True]
    assert [str(one) for one in reasons_of(profiles["killed"])] == ["5 processes lost"]
    (note,) = found["killed"]
    assert note.startswith("5 of the processes of './strange killed' left no counts")


@needs_valgrind
def test_code_that_valgrind_knows_no_file_of_is_noted(collect: Collect, tmp_path: Path) -> None:
    """It reads the symbols of a program when that maps a part that may be written."""
    end = '__asm__ volatile("mov $231, %eax; xor %edi, %edi; syscall");'
    work = "__attribute__((noinline)) int work(volatile int n) { while (n) n--; return n; }"
    source = f"{work}\nvoid _start(void) {{ work(1000); {end} }}\n"
    built(tmp_path / "bare", "-g -O1 -static -nostdlib", source)
    notes: list[str] = []
    collect("", "./bare", cwd=tmp_path, notes=notes)
    assert ["code that Valgrind knows no file of" in note for note in notes] == [True]


@needs_valgrind
@pytest.mark.parametrize(("options", "args", "said"), [
    ("-g -gsplit-dwarf", "", "cannot read its debug information"),
    ("-g", '"no room"', "the file of the counts could not be written"),
])  # fmt: skip
def test_what_callgrind_cannot_run_is_refused_by_name(collect, options, args, said, tmp_path: Path) -> None:
    built(tmp_path / "strange", f"-O1 {options}", STRANGE)
    try:
        collect(args or "x", "./strange", cwd=tmp_path)
    except JobFailed as refused:
        assert said in refused.message and "SIGKILL" not in f"{refused.message}{refused.hint}"
    else:
        assert "split" in options  # a newer Valgrind reads it


@needs_valgrind
def test_functions_count_what_they_do(profile: Profile) -> None:
    own, whole = by_function(profile, "exclusive"), by_function(profile, "inclusive")
    calls = {one["uid"].get("function"): one.get("calls") for one in resources(profile, "inclusive")}
    # Five instructions or so in each step of the loop, however it is compiled; four times so many steps.
    assert 3 * 4 * WORK < own["work"] < 12 * 4 * WORK and whole["work"] == own["work"]
    assert calls["work"] == 4 and whole["often"] == own["often"] + own["work"] * 3 // 4
    assert whole["seldom"] == own["seldom"] + own["work"] // 4
    called = own["main"] + sum(whole[one] for one in ("seldom", "often", "even"))
    assert called < whole["main"] < called + WORK  # it writes a line, too
    # These two call each other: nothing is counted twice.
    assert whole["even"] == own["even"] + own["odd"]


@needs_valgrind
def test_call_stacks(profile: Profile) -> None:
    stacks = stacks_of(profile)
    shares = {
        caller: sum(
            amount
            for stack, amount in stacks.amounts.items()
            if [frame.name for frame in stack[-3:]] == ["main", caller, "work"]
        )
        for caller in ("seldom", "often")
    }
    assert shares["often"] == 3 * shares["seldom"] > 0
    assert sum(stacks.amounts.values()) == total(profile)
    sources = {frame.source for stack in stacks.amounts for frame in stack if frame.name == "work"}
    assert len(sources) == 1


@needs_valgrind
def test_the_same_program_counts_the_same_twice_and_elsewhere(profile, collect, program, tmp_path) -> None:
    assert abs(total(collect(str(WORK))) / total(profile) - 1) < 1e-5
    elsewhere = tmp_path / "a-folder-with-a-longer-name"
    elsewhere.mkdir()
    os.link(program, elsewhere / "prog")
    again = collect(str(WORK), cwd=elsewhere)
    # The loader looks at words whose place depends on the length of the path.
    assert abs(total(again) / total(profile) - 1) < 1e-4
    assert by_function(again, "exclusive")["work"] == by_function(profile, "exclusive")["work"]


@needs_valgrind
def test_half_a_percent_more_work_is_found(profile: Profile, collect: Collect) -> None:
    more = collect(str(WORK * 1005 // 1000))
    found = {
        change.location: change.result.name
        for change in HodgesLehmannRatio().compare(
            profile, more, HodgesLehmannRatio.Params(exact_threshold=0.001), CheckContext()
        )
    }
    changed = {location for location, result in found.items() if result != "NoChange"}
    assert {location for location in changed if location.endswith(":work")}
    assert "prog:total" in changed
    assert not [location for location in changed if "libc" in location or "ld-linux" in location]
    same = HodgesLehmannRatio().compare(profile, profile, HodgesLehmannRatio.Params(), CheckContext())
    assert {change.result.name for change in same} == {"NoChange"}


@needs_valgrind
def test_series_are_exact_and_one_for_each_function(profile: Profile) -> None:
    series = measurements(profile)
    work = next(one for location, one in series.items() if location.endswith(":work"))
    assert work.metric.exact and work.values.tolist() == [by_function(profile, "exclusive")["work"]]
    assert series["prog:total"].values.tolist() == [total(profile)]


@needs_valgrind
def test_views_show_it(profile: Profile, collect: Collect, tmp_path: Path) -> None:
    page, out = tmp_path / "graph.html", io.StringIO()
    FlameGraphView().render(profile, FlameParams(filename=str(page)), out)
    assert "seldom" in page.read_text("utf-8")
    table = io.StringIO()
    chosen = TableParams(
        kind="resources", headers=("uid", "amount", "calls"), filter_by=(("subtype", "inclusive"),)
    )
    TableOfView().render(profile, chosen, table)
    row = next(line for line in table.getvalue().splitlines() if ":work:inclusive" in line)
    assert row.split()[1:] == [str(by_function(profile, "inclusive")["work"]), "4"]


@needs_valgrind
@pytest.mark.slow
def test_fewer_callers_lose_no_instruction(profile: Profile, collect: Collect) -> None:
    short = collect(str(WORK), callers=0)
    assert total(short) == total(profile)
    assert by_function(short, "exclusive")["work"] == by_function(profile, "exclusive")["work"]


@needs_valgrind
@pytest.mark.skipif(not CAN_MARK, reason="the mark of scripts is code for x86-64")
def test_only_what_is_marked_counts(collect: Collect, tmp_path: Path) -> None:
    """As scripts of harnesses mark it; without Valgrind that does nothing."""
    copy_of("_counting.py", tmp_path)
    long, short = "sum(range(100_000))", "sum(range(1000))"
    text = f"from _counting import counted\n{long}\nwith counted(): {short}\n{long}"
    (tmp_path / "run.py").write_text(text)
    subprocess.run([sys.executable, "run.py"], cwd=tmp_path, check=True)
    found = collect("run.py", sys.executable, cwd=tmp_path, marked=True)
    assert 1000 < total(found) < 1_000_000 and found["collector_info"]["params"]["marked"]
    with pytest.raises(JobFailed, match="did not ask to count"):
        collect(str(WORK), marked=True)


@needs_valgrind
def test_children_count_unless_they_are_left_out(profile: Profile, collect: Collect) -> None:
    forking = collect(f"{WORK} fork")
    work = by_function(profile, "exclusive")["work"]
    assert by_function(forking, "exclusive")["work"] == work * 7 // 4
    assert forking["instructions"]["processes"] == 2
    assert {stack[0].name for stack in stacks_of(forking).amounts} <= {
        "process prog", OTHER_CALLERS.function, SMALL.function
    }  # fmt: skip
    alone = collect(f"{WORK} fork", no_children=True)
    assert by_function(alone, "exclusive")["work"] == work
    assert alone["instructions"]["processes"] == 1


@needs_valgrind
@pytest.mark.slow
def test_a_command_that_becomes_another_program(profile: Profile, collect: Collect, program: Path) -> None:
    started = collect(f"{program} {WORK}", cmd="env", no_children=True)
    assert by_function(started, "exclusive")["work"] == by_function(profile, "exclusive")["work"]


@needs_valgrind
def test_the_program_reads_its_input_and_fails_as_it_does(collect: Collect) -> None:
    with pytest.raises(JobFailed, match="exited with status 3") as failure:
        collect("10 fail")
    assert "done" in failure.value.message
    assert "==" not in failure.value.message  # nothing that valgrind says
    notes: list[str] = []
    kept = collect("10 fail", ignore_failure=True, notes=notes)
    assert not reasons_of(kept) and any("status 3" in note for note in notes)
    assert collect("10 read", workload='<< "a line"')["header"]["workload"] == '<< "a line"'


@needs_valgrind
def test_a_killed_program_leaves_an_incomplete_profile(collect: Collect) -> None:
    killed = collect(f"{WORK} abort")
    assert [str(one) for one in reasons_of(killed)] == ["killed by SIGABRT"]
    assert by_function(killed, "exclusive")["work"] > WORK
    killed = collect(f"{WORK} kill")
    assert [str(one) for one in reasons_of(killed)] == ["killed by SIGKILL"]


@needs_valgrind
def test_a_time_limit_leaves_an_incomplete_profile(collect: Collect) -> None:
    limit = 0.7
    while True:
        try:
            stopped = collect("10 forever", timeout=limit)
        except JobFailed as problem:
            # A busy machine did not come to the program.
            assert "no instructions were counted" in problem.message and limit < 60
            limit *= 4
        else:
            break
    assert [one.reason for one in reasons_of(stopped)] == ["timeout"]
    assert total(stopped) > 0


@needs_valgrind
def test_a_command_is_run_before_it_is_counted(collect: Collect, program: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nprintf x >> {tmp_path}/runs\n")
    script.chmod(0o755)
    collect("", cmd=str(script), warmup=2)
    assert (tmp_path / "runs").read_text() == "xxx"
    script.write_text("#!/bin/sh\nexit 4\n")
    with pytest.raises(JobFailed, match="exited with status 4"):
        collect("", cmd=str(script), warmup=1)


@needs_valgrind
@pytest.mark.slow
def test_a_program_that_valgrind_cannot_run(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x7fELF not really")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(JobFailed):
        collect("", cmd="./odd", cwd=tmp_path)


def test_a_missing_engine_says_what_installs_it(tmp_path: Path) -> None:
    run = Run("true", cwd=tmp_path, environ={"PATH": str(tmp_path)})
    for engine, package in (("auto", "valgrind"), ("callgrind", "valgrind"), ("perf", "linux-perf")):
        with pytest.raises(CollectorUnavailable) as refusal:
            InstructionsCollector().collect(run, InstructionsParams(engine=engine), CollectContext(tmp_path))
        assert f"apt-get install {package}" in refusal.value.hint
    parts = {one.part: one for one in InstructionsCollector().readiness({"PATH": str(tmp_path)})}
    assert list(parts) == ["", *ENGINES]
    assert all(one.missing and one.hint for one in parts.values())


def test_python_functions_need_a_python_program(collect: Collect, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a Python program"):
        collect("1", python=True, engine="auto")
    if sys.version_info < (3, 12):
        (tmp_path / "prog.py").write_text("pass\n")
        with pytest.raises(CollectorUnavailable, match=r"needs Python 3\.12"):
            collect("prog.py", cmd=sys.executable, cwd=tmp_path, python=True)


def test_perf_counts_and_samples(program: Path, tmp_path: Path) -> None:
    # The processor's counter is missing in most virtual machines; that of the kernel's clock is everywhere.
    engine = PerfEngine(os.environ, event="cpu-clock:u")
    why, hint = engine.unavailable()
    if why:
        pytest.skip(f"{why}; {hint}")
    run = Run("./prog", "2000000", cwd=program.parent, environ=dict(os.environ))
    assert engine.record(run, CountingOptions(), CollectContext(tmp_path)).sample.status == 0
    costs = engine.counted().costs
    own = {frame.function: amount for frame, amount in costs.tree.exclusive().items()}
    assert costs.tree.total > 0 and own["work"] > costs.tree.total / 2
    assert costs.inclusive[next(one for one in costs.inclusive if one.function == "main")] >= own["work"]


@needs_valgrind
@pytest.mark.slow
def test_python_programs_repeat(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        "words = {str(i) * 3 for i in range(300)}\nprint(sorted(words)[:3], hash('x'), id(words) and 1)\n"
    )
    again = partial(collect, "prog.py", cmd="python3", cwd=tmp_path, callers=0, warmup=1)
    first, second = total(again()), total(again())
    assert abs(second / first - 1) < 1e-3


@needs_valgrind
@pytest.mark.slow
def test_functions_of_python(collect: Collect, tmp_path: Path) -> None:
    pythons = Path(__file__).parents[2] / "tools" / "pythons.sh"
    found = subprocess.run([pythons, "3.12", "3.13"], capture_output=True, text=True, check=True).stdout
    if not found.split():
        pytest.skip("no Python 3.12 or 3.13 is installed, which tell their functions")
    python = found.splitlines()[0].split()[1]
    (tmp_path / "prog.py").write_text(
        "def leaf(n):\n    return sum(i * i for i in range(n))\ndef once():\n    return leaf(1000)\n"
        "def thrice():\n    return [leaf(1000) for _ in range(3)]\ndef main():\n    once()\n    thrice()\n"
        "main()\n"
    )
    before = set(Path("/tmp").glob("perf-*.map"))
    profile = collect("prog.py", cmd=python, cwd=tmp_path, python=True)
    assert set(Path("/tmp").glob("perf-*.map")) <= before
    assert sum(one["amount"] for one in resources(profile, "exclusive")) == total(profile)
    inclusive = {
        one["uid"]["function"]: one
        for one in resources(profile, "inclusive")
        if one["uid"].get("source") == "prog.py" and "function" in one["uid"]
    }
    counts = {name: one["amount"] for name, one in inclusive.items()}
    assert inclusive["leaf"]["calls"] == 4 and inclusive["leaf.<locals>.<genexpr>"]["calls"] >= 4000
    assert 2.9 < counts["thrice"] / counts["once"] < 3.1
    assert counts["<module>"] > counts["main"] > counts["thrice"] + counts["once"]
    stacks = {tuple(frame.name for frame in stack) for stack in stacks_of(profile).amounts}
    assert ("(interpreter)", "<module>", "main", "once", "leaf") in stacks
    again = collect("prog.py", cmd=python, cwd=tmp_path, python=True)
    assert abs(total(again) / total(profile) - 1) < 1e-3


@needs_valgrind
@pytest.mark.slow
@pytest.mark.parametrize("command", ["gzip -c prog.c", "sort prog.c", "python3 -c pass", "sha256sum prog.c"])
def test_programs_of_the_system(collect: Collect, command: str, tmp_path: Path) -> None:
    (tmp_path / "prog.c").write_bytes(SOURCE.read_bytes() * 30)
    first, second = (collect("", cmd=command, cwd=tmp_path, warmup=1) for _ in range(2))
    assert abs(total(second) / total(first) - 1) < 1e-4
    assert sum(one["amount"] for one in resources(first, "exclusive")) == total(first)
