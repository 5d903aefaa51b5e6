"""Call stacks made of call graphs: what each function costs itself is kept, what calls cost is divided."""

import os
from itertools import pairwise
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._common.recordings import DamagedRecording
from perun.collect.instructions import names as python_functions
from perun.collect.instructions.callgrind import InclusiveCosts, read
from perun.collect.instructions.engines import PADDING, STEP, fixed_addresses, repeatable
from perun.collect.instructions.names import NO_SYMBOLS, START_UP, Names, PythonFunctions
from perun.collect.instructions.perf import StackSample, count, samples
from perun.native import callgrind
from perun.native.costs import (
    OTHER_CALLERS,
    CallArc,
    CostGraph,
    CostTree,
    FunctionFrame,
    RecordedFunction,
    components,
    grow,
    rounded,
)
from perun.plugin.api import Run

Calls = dict[tuple[str, str], int]


def graph_of(own: dict[str, int], calls: Calls) -> CostGraph:
    graph = CostGraph()
    numbers = {name: graph.node(RecordedFunction(name)) for name in own}
    for name, cost in own.items():
        graph.own[numbers[name]] = cost
    for (caller, callee), cost in calls.items():
        graph.add_call(numbers[caller], numbers[callee], 1, cost)
    return graph


def stacks(graph: CostGraph, *hidden: str) -> dict[str, int]:
    tree = CostTree()
    names = [function.name for function in graph.functions]
    grow(
        tree,
        graph,
        lambda node: None if names[node] in hidden else FunctionFrame(names[node].rstrip("0123456789")),
    )
    return {
        ";".join(frame.function for frame in reversed(tree.stack(node))): amount
        for node, amount in enumerate(tree.amounts)
        if amount
    }


def inclusive(graph: CostGraph) -> dict[str, int]:
    tree, found = CostTree(), InclusiveCosts()
    name = [FunctionFrame(function.name) for function in graph.functions].__getitem__
    grow(tree, graph, name)
    found.add(graph, name)
    sums = found.sums(tree.inclusive(), tree.exclusive())
    return {frame.function: amount for frame, amount in sums.items()}


DIAMOND = graph_of(
    {"main": 1000, "a": 2000, "b": 3000, "work": 40000},
    {("main", "a"): 12000, ("main", "b"): 33000, ("a", "work"): 10000, ("b", "work"): 30000},
)


def test_a_function_with_two_callers_is_divided_by_what_they_made_it_cost() -> None:
    assert stacks(DIAMOND) == {
        "main": 1000, "main;a": 2000, "main;b": 3000, "main;a;work": 10000, "main;b;work": 30000
    }  # fmt: skip
    assert inclusive(DIAMOND) == {"main": 46000, "a": 12000, "b": 33000, "work": 40000}


def test_nodes_of_one_function_are_its_call_chains() -> None:
    graph = graph_of({"main": 10, "a": 1, "b": 1, "work1": 100, "work2": 300, "leaf1": 50, "leaf2": 7}, {
        ("main", "a"): 151,
        ("main", "b"): 308,
        ("a", "work1"): 150,
        ("b", "work2"): 307,
        ("work1", "leaf1"): 50,
        ("work2", "leaf2"): 7,
    })  # fmt: skip
    assert stacks(graph)["main;a;work;leaf"] == 50 and stacks(graph)["main;b;work;leaf"] == 7


def test_functions_that_call_each_other() -> None:
    # The costs of calls within the circle count again what is nested in them.
    graph = graph_of(
        {"main": 100, "even": 600, "odd": 300, "leaf": 1000},
        {("main", "even"): 1900, ("even", "odd"): 9000, ("odd", "even"): 8000, ("odd", "leaf"): 1000},
    )
    assert stacks(graph) == {"main": 100, "main;even": 600, "main;even;odd": 300, "main;even;odd;leaf": 1000}
    assert inclusive(graph) == {"main": 2000, "even": 1900, "odd": 1300, "leaf": 1000}


def test_a_function_that_calls_itself_is_one_frame() -> None:
    graph = graph_of({"main": 5, "f": 100}, {("main", "f"): 100, ("f", "f"): 4000})
    assert stacks(graph) == {"main": 5, "main;f": 100}
    assert inclusive(graph) == {"main": 105, "f": 100}


def test_what_has_no_frame_counts_for_its_caller() -> None:
    graph = graph_of({"main": 10, "stub": 3, "f": 100}, {("main", "stub"): 103, ("stub", "f"): 100})
    assert stacks(graph, "stub") == {"main": 13, "main;f": 100}


def test_small_stacks_are_not_lost() -> None:
    own = {"main": 10_000_000} | {f"f{number}": 2 for number in range(3)}
    graph = graph_of(own, {("main", name): 2 for name in own if name != "main"})
    assert stacks(graph) == {"main": 10_000_000, f"{OTHER_CALLERS.function};f": 6}


def test_a_long_chain_needs_no_recursion() -> None:
    names = [f"{'f' if number % 2 else 'g'}{number}" for number in range(3000)]
    own = dict.fromkeys(names, 10)
    calls = {
        (one, other): 10 * (len(names) - number - 1) for number, (one, other) in enumerate(pairwise(names))
    }
    tree = CostTree()
    grow(tree, graph_of(own, calls), lambda node: FunctionFrame(str(node)))
    assert tree.total == 30_000 and tree.inclusive()[FunctionFrame("0")] >= 10_000


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=8).flatmap(lambda own: st.tuples(
        st.just(own),
        st.lists(
            st.tuples(st.integers(0, len(own) - 1), st.integers(0, len(own) - 1), st.integers(0, 10_000)),
            max_size=20
        )
    ))
)  # fmt: skip
def test_whatever_calls_cost_functions_keep_their_own(made) -> None:
    own, edges = made
    graph = CostGraph()
    for number, cost in enumerate(own):
        graph.own[graph.node(RecordedFunction(f"f{number}"))] = cost
    for caller, callee, cost in edges:
        graph.add_call(caller, callee, 1, cost)
    tree = CostTree()
    frames = [FunctionFrame(function.name) for function in graph.functions]
    grow(tree, graph, frames.__getitem__)
    exclusive = tree.exclusive()
    assert [exclusive.get(frame, 0) for frame in frames] == own
    whole = tree.inclusive()
    assert all(exclusive[frame] <= whole[frame] <= tree.total for frame in exclusive)


@given(st.dictionaries(st.integers(0, 9), st.floats(0, 1e6)))
def test_rounded_parts_keep_their_sum(parts: dict[int, float]) -> None:
    whole = rounded(parts)
    assert sum(whole.values()) == round(sum(parts.values()))
    assert all(abs(whole[key] - parts[key]) <= 1 for key in parts)


def test_components() -> None:
    assert [sorted(one) for one in components([[1], [2, 3], [1], [4], []])] == [[4], [3], [1, 2], [0]]
    assert components([]) == []


# -- How functions are named in profiles of instructions, and what makes runs repeatable -------------


PROJECT = Path("/home/me/project")


@pytest.mark.parametrize(("function", "frame"), [
    (RecordedFunction("f", "/home/me/project/src/a.c", "/home/me/project/prog"),
     FunctionFrame("f", "src/a.c")),
    (RecordedFunction("f", "src/../a.c", "/home/me/project/prog"), FunctionFrame("f", "a.c")),
    (RecordedFunction("f", "/usr/include/list.h", "/home/me/project/prog"), FunctionFrame("f", "prog")),
    (RecordedFunction("f", "", "/home/me/project/prog"), FunctionFrame("f", "prog")),
    (
        RecordedFunction("printf@@GLIBC_2.2.5", "./stdio/printf.c", "/lib/libc.so.6"),
        FunctionFrame("printf", "libc.so.6"),
    ),
    (RecordedFunction("0x0000000000401020", "", "/usr/bin/gzip"), FunctionFrame(NO_SYMBOLS, "gzip")),
    (RecordedFunction("[unknown]", "", "/usr/bin/gzip"), FunctionFrame(NO_SYMBOLS, "gzip")),
    (RecordedFunction("0x000000000401020", "", "/lib64/ld-linux-x86-64.so.2"), START_UP),
    (RecordedFunction("(below main)", "", "/lib/libc.so.6"), START_UP),
    (RecordedFunction("__libc_start_main@@GLIBC_2.34", "", "/lib/libc.so.6"), START_UP),
    (RecordedFunction("0x00000000049479b0"), None),
    (RecordedFunction("with\x07bell", "", "/bin/x"), FunctionFrame("with�bell", "x")),
])  # fmt: skip
def test_frames(function: RecordedFunction, frame: FunctionFrame | None) -> None:
    assert Names(PROJECT, {}).frame(function) == frame


def test_names_of_cplusplus() -> None:
    function = RecordedFunction("_ZN4list4pushEi", "", "/usr/lib/liblist.so")
    names = Names(PROJECT, {"PATH": ""})
    names.learn([function])
    assert names.frame(function) == FunctionFrame("_ZN4list4pushEi", "liblist.so")
    assert names.mangled
    if which("c++filt") is None:
        pytest.skip("c++filt is not installed")
    names = Names(PROJECT, dict(os.environ))
    names.learn([function, RecordedFunction("plain")])
    assert names.frame(function) == FunctionFrame("list::push(int)", "liblist.so")
    assert not names.mangled


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(python_functions, "MAPS", tmp_path)
    return tmp_path


def test_functions_of_python(maps: Path) -> None:
    (maps / "perf-77.map").write_text(
        "1000 b py::old:/p/a.py\nnonsense\n1000 b py::main:/home/me/project/a.py\n"
        "100b b py::Encoder.encode:/usr/lib/python3.12/json/encoder.py\n"
        "1016 b py::get:/v/lib/python3.12/site-packages/requests/api.py\n"
    )
    known = PythonFunctions(77)
    assert known and not (maps / "perf-77.map").exists()
    names = Names(PROJECT, {}, python=True)
    frames = [
        names.frame(known.named(RecordedFunction(name)))
        for name in ("0x0000000000001000", "0x000000000000100b", "0x0000000000001020", "0x1021", "0xfff", "f")
    ]
    assert frames == [
        FunctionFrame("main", "a.py"),
        FunctionFrame("Encoder.encode", "python3.12/json/encoder.py"),
        FunctionFrame("get", "requests/api.py"),
        None,
        None,
        None,
    ]
    in_binary = RecordedFunction("0x0000000000001000", "", "/usr/bin/python3")
    assert known.named(in_binary) == in_binary


def test_a_forked_process_has_the_functions_of_its_parent(maps: Path) -> None:
    (maps / "perf-1.map").write_text("10 4 py::f:a.py\n20 4 py::g:a.py\n")
    (maps / "perf-2.map").write_text("20 4 py::h:a.py\n")
    child = PythonFunctions(2, PythonFunctions(1))
    assert [child.named(RecordedFunction(name)).name for name in ("0x10", "0x20")] == [
        "py::f:a.py",
        "py::h:a.py",
    ]


def test_maps_of_strangers_are_left_alone(maps: Path) -> None:
    assert not PythonFunctions(5)
    os.mkfifo(maps / "perf-6.map")
    assert not PythonFunctions(6)
    (maps / "target").write_text("10 4 py::f:a.py\n")
    (maps / "perf-7.map").symlink_to(maps / "target")
    assert not PythonFunctions(7) and (maps / "target").exists()


def test_environments_take_the_same_room(tmp_path: Path) -> None:
    sizes = set()
    for argument, value in (("a", ""), ("a longer argument", "x" * 500), ("a", "é")):
        run = repeatable(Run(f"./prog '{argument}'", cwd=tmp_path, environ={"A": value, "B": "1"}))
        texts = [*run.command().argv, *(f"{name}={text}" for name, text in run.environ.items())]
        sizes.add(sum(len(os.fsencode(text)) + 9 for text in texts))
        assert repeatable(run) == run
    assert sizes == {STEP}


@pytest.mark.parametrize(("given", "seed"), [({}, "0"), ({"PYTHONHASHSEED": "random"}, "0")])
def test_hashes_of_python_are_the_same(given: dict[str, str], seed: str) -> None:
    assert repeatable(Run("p", environ=given)).environ["PYTHONHASHSEED"] == seed
    assert repeatable(Run("p", environ={"PYTHONHASHSEED": "7"})).environ["PYTHONHASHSEED"] == "7"
    assert PADDING in repeatable(Run("p")).environ


def test_addresses_stay_random_without_setarch(tmp_path: Path) -> None:
    assert fixed_addresses({"PATH": str(tmp_path)}) == []
    (tmp_path / "setarch").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "setarch").chmod(0o755)
    assert fixed_addresses({"PATH": f"{tmp_path}:/usr/bin:/bin"}) == []


# -- What the reader of callgrind's files understands, and what it refuses ---------------------------


CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "callgrind"


def of(text: str, tmp_path: Path) -> CostGraph:
    (tmp_path / "out").write_text(text)
    return read(tmp_path / "out")


def by_name(graph: CostGraph) -> dict[str, int]:
    return {function.name: own for function, own in zip(graph.functions, graph.own, strict=True)}


def calls(graph: CostGraph) -> dict[tuple[str, str], CallArc]:
    names = [function.name for function in graph.functions]
    found = enumerate(graph.calls)
    return {(names[one], names[other]): call for one, by in found for other, call in by.items()}


def test_names_that_are_compressed_and_code_that_is_inlined() -> None:
    graph = read(CORPUS / "compressed")
    assert by_name(graph) == {"main": 160, "even": 600, "odd": 200, "0x0000000000001150": 440}
    assert graph.total == graph.expected == 1400 and graph.lost == 0
    assert (graph.pid, graph.command) == (4711, "./prog 7")
    assert calls(graph) == {
        ("main", "even"): CallArc(3, 1200),
        ("even", "odd"): CallArc(5, 900),
        ("odd", "0x0000000000001150"): CallArc(2, 440),
        ("odd", "even"): CallArc(4, 800),
    }
    assert graph.functions[0] == RecordedFunction("main", "/project/prog.c", "/project/prog")
    assert graph.functions[-1] == RecordedFunction("0x0000000000001150", "", "/usr/lib/libc.so.6")


def test_plain_names_several_events_addresses_and_jumps() -> None:
    graph = read(CORPUS / "plain")
    # The second event is the one that counts; costs that are left out are 0.
    assert by_name(graph) == {"main": 20, "func1": 100, "func2": 700}
    assert calls(graph) == {
        ("main", "func1"): CallArc(1, 400), ("main", "func2"): CallArc(3, 400),
        ("func1", "func2"): CallArc(2, 300)
    }  # fmt: skip
    assert [function.file for function in graph.functions] == ["file1.c", "file1.c", "file2.c"]
    assert graph.expected is None


def test_parts_of_a_file_add_up() -> None:
    graph = read(CORPUS / "two-parts")
    assert graph.total == graph.expected == 2800
    assert calls(graph)["main", "even"] == CallArc(6, 2400)


def test_a_file_that_was_cut_off_says_what_it_lost() -> None:
    graph = read(CORPUS / "cut-off")
    assert graph.lost == 440 and graph.total == 960


def test_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(CORPUS / "compressed")
    monkeypatch.setattr(callgrind, "_PIECE", 7)
    assert read(CORPUS / "compressed") == whole


def test_the_function_stands_first_in_a_call_chain(tmp_path: Path) -> None:
    text = "events: Ir\nfn=(1) leaf'a'main\n0 1\nfn=(2) leaf'b'main\n0 2\nfn=(1)\n0 4\n"
    graph = of(text, tmp_path)
    assert [function.name for function in graph.functions] == ["leaf", "leaf"]
    assert graph.own == [5, 2]


@pytest.mark.parametrize(("text", "message"), [
    ("", "no line 'events:'"),
    ("events: Dr Dw\nfn=f\n0 1\n", "does not count Ir"),
    ("version: 2\nevents: Ir\n", "not version 1"),
    ("events: Ir\n0 1\n", "a line has no meaning: 0 1"),
    ("fn=f\n0 1\n", "a line has no meaning"),
    ("events: Ir\nfn=(3)\n", "a line has no meaning: \\(3\\)"),
    ("events: Ir\nfn=f\ncalls=1 0\n", "a line has no meaning: calls=1 0"),
    ("events: Ir\nfn=f\n0 -5\n", "a line has no meaning"),
    ("events: Ir\nfn=f\n0 0xg\n", "a line has no meaning"),
    (f"events: Ir\nfn=f\n0 {'9' * 5000}\n", "a line has no meaning"),
    (f"events: Ir\nfn=f\n0 {1 << 64}\n", "a line has no meaning"),
    ("events: Ir\nnonsense\n", "a line has no meaning: nonsense"),
    ("events: Ir\nsummary: 3\nfn=f\n0 4\n", "cost more than their sum"),
    ("events: Ir\nfn=" + "x" * (1 << 20 | 5), "a line is longer"),
])  # fmt: skip
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedRecording, match=message):
        of(text, tmp_path)


def test_what_grows_beyond_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = "events: Ir\n" + "".join(f"fn=f{number}\n0 1\ncfn=g\ncalls=1 0\n0 1\n" for number in range(20))
    assert of(many, tmp_path).total == 20
    for limit in ("MAX_NODES", "MAX_CALLS", "MAX_NAMES"):
        with monkeypatch.context() as patch:
            patch.setattr(callgrind, limit, 10)
            with pytest.raises(DamagedRecording, match="more call chains") as refusal:
                of(many, tmp_path)
        assert "--callers 0" in refusal.value.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecording, match="cannot read"):
        read(tmp_path / "none")


# -- What is read of the text that perf prints -------------------------------------------------------


@pytest.mark.parametrize(("text", "value", "why"), [
    ("# started on ...\n\n123456,,instructions:u,1000,100.00,,\n", 123456, ""),
    ("0.48,msec,instructions:u,485711,100.00,0.355,CPUs utilized\n", 1, ""),
    ("<not supported>,,instructions:u,0,100.00,,\n", None, "not supported"),
    ("<not counted>,,instructions:u,0,100.00,,\n", None, "not counted"),
    ("12,,cycles:u,0,100.00,,\n", None, "perf printed no count"),
    ("Error:\nNo permission to enable instructions:u event.\n", None, "perf printed no count"),
    ("", None, "perf printed no count"),
    (f"{'9' * 20},,instructions:u,,,\n", 1 << 64, ""),
    (f"{'9' * 21},,instructions:u,,,\n", None, "9" * 21),
])  # fmt: skip
def test_counts(text: str, value: int | None, why: str) -> None:
    assert count(text, "instructions:u") == (value, why)


def test_samples() -> None:
    text = """
25810     100000 instructions:u:u:\x20
\t           18ffb leaf (/usr/lib/libx.so)
\t           1913f inlined_one (inlined)
\t           1913f std::map<int, (lambda)>::find(int) const (/tmp/a prog (deleted))
\t    ffffffff8001 [unknown] ([unknown])

a strange line
25811/25812     7 instructions:u:
\t           18ffb main+0x12 (/tmp/prog)
"""
    assert list(samples(text.splitlines())) == [
        StackSample(
            25810,
            100000,
            (
                RecordedFunction("leaf", "", "/usr/lib/libx.so"),
                RecordedFunction("inlined_one", "", "/tmp/a prog (deleted)"),
                RecordedFunction("std::map<int, (lambda)>::find(int) const", "", "/tmp/a prog (deleted)"),
                RecordedFunction("[unknown]", "", ""),
            ),
        ),
        StackSample(25811, 7, (RecordedFunction("main", "", "/tmp/prog"),)),
    ]


def test_no_samples() -> None:
    assert list(samples([])) == [] and list(samples(["\t 12 main (/x)", "", "no sample"])) == []
