"""What the user chooses to trace: libraries by name, programs of all kinds, options as in the manual."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from compiling import CompilerCache
from perun.cli.options import with_options_of
from perun.collect.trace import TraceCollector
from perun.collect.trace.collector import make_engine
from perun.collect.trace.params import TraceParams, find_library, kind_of, names_of
from perun.collect.trace.plan import TraceSelection, make_plan
from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.native.binary import Binary
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import from_mapping
from perun.profile.factory import Profile
from traced import PROGRAMS, Trace, built, calls, sizes, sources

LIBRARY = "int twice(volatile int n) { n *= 2; return n; }\n"
USER = """int twice(int);
int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += twice(i); return s != 72; }
"""
NAMES = ("libtwice.so", "libtwice.so.1", "libtwice.so.1.2.3", "./libtwice.so", "libtwice")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with a library that has a version and a soname, as installed libraries have."""
    (tmp_path / "lib.c").write_text(LIBRARY)
    (tmp_path / "main.c").write_text(USER)
    for command in (
        "cc -g -O1 -shared -fPIC lib.c -Wl,-soname,libtwice.so.1 -o libtwice.so.1.2.3",
        "ln -s libtwice.so.1.2.3 libtwice.so.1",
        "ln -s libtwice.so.1 libtwice.so",
        "cc -g -O1 main.c -o main -L. -ltwice -Wl,-rpath,$ORIGIN",
    ):
        subprocess.run(command.split(), cwd=tmp_path, check=True)
    return tmp_path / "main"


@pytest.fixture
def linked(compiled_once: CompilerCache) -> Callable[..., Path]:
    """Compile trace_list.c with other options of the linker."""

    def build(*options: str) -> Path:
        return compiled_once("cc", "-O1", "-fno-inline", *options, PROGRAMS / "trace_list.c")

    return build


@pytest.fixture
def needs_ebpf() -> None:
    if why := ": ".join(filter(None, make_engine("ebpf", os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")


def run_in(folder: Path, cmd: str = "./main", args: str = "") -> Run:
    return Run(cmd, args, cwd=folder, environ=dict(os.environ))


@pytest.mark.parametrize("name", NAMES)
def test_libraries_by_their_names(program: Path, name: str) -> None:
    found = find_library(name, run_in(program.parent), str(program))
    assert os.path.realpath(found) == str(program.parent / "libtwice.so.1.2.3")
    assert names_of(os.path.realpath(found), name) >= {"libtwice", "libtwice.so.1", "libtwice.so.1.2.3", name}


def test_libraries_where_the_linker_finds_them(program: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = run_in(elsewhere, str(program))
    assert find_library("libtwice", run, str(program)) == str(tmp_path / "libtwice.so")  # by its RUNPATH
    libc = find_library("libc.so.6", run, str(program))
    assert kind_of(libc).soname == "libc.so.6"
    with pytest.raises(UsageError, match="there is no library 'libtwicee'") as failure:
        find_library("libtwicee", run, str(program))
    assert "libtwice" in failure.value.hint
    with pytest.raises(UsageError, match=r"there is no library .*/absent/lib\.so"):
        find_library("absent/lib.so", run, str(program))


@pytest.mark.parametrize("rule", NAMES)
def test_rules_by_the_names_of_libraries(program: Path, rule: str) -> None:
    with ExitStack() as stack:
        files = [stack.enter_context(Binary(path)) for path in (program, program.parent / "libtwice.so")]
        plan = make_plan(files, TraceSelection(func=(f"{rule}#twice",), libs=("./libtwice.so",)))
        assert [probe.function.symbol for probe in plan.probes] == ["twice"]
        plan = make_plan(files, TraceSelection("userspace", func=(f"{rule}#twice",), libs=("./libtwice.so",)))
        assert [probe.function.symbol for probe in plan.probes if probe.path == files[1].path] == ["twice"]
        with pytest.raises(UsageError, match=r"'libtwces\.so' is not among the traced files") as failure:
            make_plan(files, TraceSelection(func=("libtwces.so#twice",)))
        assert "libtwice" in failure.value.hint


def test_a_library_of_which_nothing_is_named_is_traced(program: Path) -> None:
    with ExitStack() as stack:
        files = [stack.enter_context(Binary(path)) for path in (program, program.parent / "libtwice.so")]
        plan = make_plan(files, TraceSelection("userspace", libs=("./libtwice.so",)))
        assert {"main", "twice"} <= {probe.function.symbol for probe in plan.probes}


@pytest.mark.usefixtures("needs_ebpf")
def test_a_library_by_its_name(program: Path, trace: Trace) -> None:
    chosen = {"strategy": "custom", "libs": ("libtwice",), "func": ("libtwice.so.1#twice",)}
    assert calls(trace(program, engine="ebpf", **chosen)) == {"twice": 9}


@pytest.mark.slow  # all that is known of the library is read, where its debug information is installed
@pytest.mark.usefixtures("needs_ebpf")
def test_functions_of_the_c_library(compiled: Callable[..., Path], trace: Trace) -> None:
    """Several symbols may have one address: any of them names the function."""
    chosen = {"strategy": "custom", "libs": ("libc.so.6",), "func": ("libc#malloc", "libc.so.6#__libc_free")}
    counted = calls(trace(compiled("trace_list.c"), "50", engine="ebpf", **chosen))
    assert counted["malloc"] >= 50 and counted["__libc_free"] >= 50


def test_a_stripped_program_says_so(linked: Callable[..., Path]) -> None:
    program = linked("-s")
    assert kind_of(str(program)).stripped
    with Binary(program) as binary:
        for wanted in (TraceSelection("userspace"), TraceSelection(func=("list_search",))):
            with pytest.raises(UsageError, match="is stripped: the names of its own functions") as failure:
                make_plan([binary], wanted)
            assert "without strip" in failure.value.hint


@pytest.mark.usefixtures("needs_ebpf")
def test_a_stripped_program_of_which_nothing_is_seen_says_so(linked, trace: Trace, tmp_path: Path) -> None:
    """What it exports keeps its name, so that there is something to trace, but it may not be called."""
    chosen = {"strategy": "custom", "func": ("list_search",)}
    for options, told in ((("-s", "-rdynamic"), True), ((), False)):
        program = Path(shutil.copy(linked(*options), tmp_path / "list"))
        notes = trace(program, "0", engine="ebpf", **chosen)["trace"]["notes"]
        (note,) = [one for one in notes if "called none of the traced functions" in one]
        assert ("it is stripped" in note) is told


def test_a_static_program_has_its_own_functions_only(linked: Callable[..., Path]) -> None:
    program = linked("-static", "-g")
    assert kind_of(str(program)).static
    with Binary(program) as binary:
        found = {probe.function.symbol for probe in make_plan([binary], TraceSelection("userspace")).probes}
        assert found == {"main", "list_insert", "list_search", "list_destroy"}
        whole = {probe.function.symbol for probe in make_plan([binary], TraceSelection("all")).probes}
        assert whole > found
    with Binary(linked("-static")) as binary:
        with pytest.raises(UsageError, match="is linked statically and has no debug information") as failure:
            make_plan([binary], TraceSelection("userspace"))
        assert "-g" in failure.value.hint
        assert len(make_plan([binary], TraceSelection(func=("list_search",))).probes) == 1
    assert not kind_of(str(linked())).static and not kind_of(str(linked("-no-pie"))).static


def test_the_size_of_an_element_is_no_size(tmp_path: Path) -> None:
    program = built(
        tmp_path / "array", "-g -O1 -fno-inline",
        "int walk(const char *base, int n, int size) {\n"
        "  int s = 0; for (int i = 0; i < n; i++) s += base[i * size]; return s; }\n"
        'int main(void) { return walk("a", 0, 4); }\n',
    )  # fmt: skip
    with Binary(program) as binary:
        (probe,) = make_plan([binary], TraceSelection(func=("walk",))).probes
    assert probe.size is not None and probe.size.text == "n"


@pytest.mark.usefixtures("needs_ebpf")
def test_a_size_that_is_always_the_same_is_told(trace: Trace, tmp_path: Path) -> None:
    program = built(
        tmp_path / "box", "-g -O1 -fno-inline",
        "struct box { int size; };\nint sum(struct box *box, int n) {\n"
        "  int s = 0; for (int i = 0; i < n; i++) s += box->size; return s; }\n"
        "int main(void) { struct box box = {16}; int s = 0;\n"
        "  for (int i = 0; i < 20; i++) s += sum(&box, i); return s == 0; }\n",
    )  # fmt: skip
    profile = trace(program, engine="ebpf")
    assert any("the same in all calls of sum (box->size = 16)" in note for note in profile["trace"]["notes"])
    named = trace(program, engine="ebpf", size=("sum=n",))
    assert sizes(named, "sum") == list(range(20)) and sources(named)["sum"] == "n"
    assert not any("the same in all calls" in note for note in named["trace"]["notes"])


@pytest.mark.usefixtures("needs_ebpf")
def test_a_time_limit_shorter_than_attaching(compiled: Callable[..., Path], trace: Trace) -> None:
    with pytest.raises(CollectorUnavailable, match="the time limit ended the run") as failure:
        trace(compiled("trace_list.c"), engine="ebpf", timeout=1e-4)
    assert "--timeout" in failure.value.hint


def test_a_python_program_has_other_collectors(trace: Trace, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{sys.executable}\nprint(1)\n")
    script.chmod(0o755)
    with pytest.raises(JobFailed, match="is a Python program") as failure:
        trace(script)
    assert "--python" in failure.value.hint


@pytest.mark.parametrize("spelling", ["ebpf", "eBPF", "EBPF"])
def test_options_as_the_manual_spells_them(spelling: str) -> None:
    import click

    given: list[TraceParams] = []

    @click.command()
    @with_options_of(TraceParams, "params")
    def command(params: TraceParams) -> None:
        given.append(params)

    for usdt in ("--with-usdt", "--no-usdt"):
        done = CliRunner().invoke(command, ["-e", spelling, usdt])
        assert done.exit_code == 0, done.output
    assert [(one.engine, one.with_usdt) for one in given] == [("ebpf", True), ("ebpf", False)]
    assert from_mapping(TraceParams, {"engine": spelling}, "trace").engine == "ebpf"


# -- Programs of Go and Rust under the tracer: what they print, exact counts, or a refusal by name ---


GOROUTINES = {"leaf": 200, "grow": 310, "work": 10, "(*list).push": 10}
"""How often each goroutine calls a function."""


@pytest.fixture(scope="module")
def goroutines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go"):
        pytest.skip("Go is not installed (golang-go)")
    folder = tmp_path_factory.mktemp("go")
    environ = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    command = ["go", "build", "-o", folder / "goroutines", PROGRAMS / "trace_goroutines.go"]
    subprocess.run(command, env=environ, check=True)
    return folder / "goroutines"


def traced(program: Path, folder: Path, notes: list[str], engine: str = "ebpf") -> Profile:
    (folder / "scratch").mkdir(exist_ok=True)
    run = Run(str(program), cwd=folder, environ=dict(os.environ))
    context = CollectContext(folder / "scratch", note=notes.append, cache=folder / "cache")
    params = TraceParams(engine=engine, output_handling="capture", timeout=60.0)
    return TraceCollector().collect(run, params, context)


@pytest.mark.usefixtures("needs_ebpf")
def test_goroutines_change_threads(goroutines: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    profile = traced(goroutines, tmp_path, notes)
    found: Counter[tuple[int, str]] = Counter()
    for group in profile.groups():
        found[group.constants["thread"], str(group.constants["uid"])] += group.size
    workers = {thread for thread, name in found if name == "main.leaf"}
    assert len(workers) == 4
    assert {(thread, name): found[thread, f"main.{name}"] for thread in workers for name in GOROUTINES} == {
        (thread, name): count for thread in workers for name, count in GOROUTINES.items()
    }
    # The program may end while goroutines still leave the functions that they were started with.
    assert profile["trace"]["missed-exits"] <= 2 * len(workers)
    for _, one in profile.all_resources():
        if one["uid"] == "main.leaf":
            assert one["caller"] == "main.work" and one["size-source"] == "call-order"
    assert not any(str(group.constants["uid"]).startswith("runtime.") for group in profile.groups())
    assert any("Go" in note for note in notes)


def test_what_would_kill_go_refuses_it(goroutines: Path, tmp_path: Path) -> None:
    if not shutil.which("uftrace"):
        pytest.skip("uftrace is not installed")
    with pytest.raises(CollectorUnavailable, match="uftrace"):
        traced(goroutines, tmp_path, [], "uftrace")


@pytest.mark.usefixtures("needs_ebpf")
def test_panics_of_rust_pass_traced_functions(tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if not rustc or subprocess.run([rustc, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("no Rust compiler works here (rustc)")
    (tmp_path / "panics.rs").write_text(
        "#[inline(never)] fn inner(n: u32) -> u32 { if n % 2 == 1 { panic!() } n }\n"
        "#[inline(never)] fn outer(n: u32) -> u32 { inner(n) + 1 }\n"
        "fn main() {\n  std::panic::set_hook(Box::new(|_| {}));\n"
        "  let good = (0..20).filter(|n| std::panic::catch_unwind(|| outer(*n)).is_ok()).count();\n"
        "  std::process::exit(if good == 10 { 0 } else { 1 });\n}\n"
    )
    subprocess.run([rustc, "-g", "-C", "opt-level=1", "panics.rs"], cwd=tmp_path, check=True)
    profile = traced(tmp_path / "panics", tmp_path, [])
    found = calls(profile)
    assert (found["panics::inner"], found["panics::outer"]) == (20, 20)
