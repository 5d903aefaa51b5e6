"""Call graphs: levels, files, graphs of recorded calls, and the name under which they are kept."""

import json
import shutil
import struct
import subprocess
import sys
from base64 import b64encode
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import capstone
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.native.binary import is_probeable
from perun.native.callgraph.decode import Disassembler
from perun.native.callgraph.difference import mixed_graph, recorded_calls, recorded_graph
from perun.native.callgraph.files import from_json, from_values, to_data, to_dot, to_json, to_values
from perun.native.callgraph.graph import Block, CallEdge, CallGraph, Fingerprints, GraphFunction, graph_name
from perun.profile.factory import Profile


def graph_of(*pairs: str, entry: str = "main") -> CallGraph:
    """A graph of pairs such as `main>work`; `@` begins callees of other files, `*` is a pointer."""
    calls, names = [], dict.fromkeys([entry])
    for pair in pairs:
        caller, _, callee = pair.partition(">")
        names[caller] = None
        if callee == "*":
            calls.append(CallEdge(caller, "", "indirect"))
        elif callee.startswith("@"):
            calls.append(CallEdge(caller, callee[1:], "plt"))
        else:
            names[callee] = None
            calls.append(CallEdge(caller, callee, "direct"))
    functions = {name: GraphFunction(name, name, name, 16 * place) for place, name in enumerate(names)}
    return CallGraph("ab12", entry, functions, tuple(calls))


def test_a_level_is_the_longest_way_from_the_entry_and_one_in_a_circle() -> None:
    graph = graph_of("main>a", "main>c", "a>b", "b>c", "c>@puts", "other>c")
    assert graph.levels() == {"main": 0, "a": 1, "b": 2, "c": 3}
    assert graph.reachable() == {"main", "a", "b", "c"} and graph.callers("c") == ("main", "b", "other")
    assert graph.callees("c") == () and graph.callers("puts") == ("c",)
    graph = graph_of("main>a", "a>b", "b>a", "b>c", "c>c", "main>c")
    assert graph.levels() == {"main": 0, "a": 1, "b": 1, "c": 2}
    graph = graph_of(*(f"f{number}>f{number + 1}" for number in range(20_000)), entry="f0")
    assert graph.levels()["f20000"] == 20_000


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40))
def test_levels_grow_along_calls_but_for_circles(pairs: list[tuple[int, int]]) -> None:
    graph = graph_of(*(f"f{one}>f{other}" for one, other in pairs), entry="f0")
    levels = graph.levels()

    def reached(start: str) -> set[str]:
        found, queue = {start}, [start]
        for name in queue:
            for callee in graph.callees(name):
                if callee not in found:
                    found.add(callee)
                    queue.append(callee)
        return found

    assert levels.keys() == reached("f0")
    for caller in levels:
        for callee in graph.callees(caller):
            in_circle = caller in reached(callee)
            assert levels[callee] == levels[caller] if in_circle else levels[callee] > levels[caller]


def test_pointers_lead_to_what_has_its_address_taken_on_request() -> None:
    graph = graph_of("main>*", "main>a", "lost>a")
    taken = {**graph.functions, "lost": graph.functions["lost"]._replace(address_taken=True)}
    graph = CallGraph("", "main", taken, graph.calls)
    assert "lost" not in graph.reachable() and graph.with_pointers().callees("main") == ("a", "lost")
    assert graph.with_pointers().reachable() == {"main", "a", "lost"}


def whole() -> CallGraph:
    graph = graph_of("main>f(int)", "main>*", "f(int)>@puts")
    prints = Fingerprints(*(str(way) * 16 for way in range(1, 5)))
    function = GraphFunction(
        "f(int)", "f", "_Z1fi", 64, 30, 7, prints, ("puts", "", "main"),
        "3>++;2>2;2", own=False, address_taken=True,
    )  # fmt: skip
    return CallGraph("ab12", "main", {**graph.functions, "f(int)": function}, graph.calls)


def test_a_graph_is_the_same_after_it_was_written_and_read() -> None:
    graph = whole()
    assert from_json(to_json(graph)) == graph
    assert from_values(json.loads(json.dumps(to_values(graph)))) == graph
    assert graph.functions["f(int)"].blocks == (Block(3, (1, 2)), Block(2, (2,)), Block(2, ()))


@pytest.mark.parametrize("largest", [255, 256, 65_536, 2**32, 2**64 - 1])
def test_numbers_of_any_size_are_kept(largest: int) -> None:
    function = GraphFunction("f", address=largest, instructions=min(largest, 70_000), sites=("f",) * 300)
    graph = CallGraph("", "f", {"f": function}, (CallEdge("f", "f", "direct"),))
    assert from_json(to_json(graph)) == graph


def test_blocks_name_those_that_come_next_by_a_plus() -> None:
    blocks = GraphFunction("f", flow="4>++;1>0,2;12>1+;7").blocks
    assert blocks == (Block(4, (1, 2)), Block(1, (0, 2)), Block(12, (1, 3)), Block(7, ()))


def packed(*numbers: int) -> str:
    return b64encode(b"I" + struct.pack(f"<{len(numbers)}I", *numbers)).decode()


NO_WIDTH = {**to_values(whole())["functions"], "sites": ""}
ENDLESS = b64encode(b"Q" + b"\xff" * 24).decode()
FEWER_DIGESTS = {**to_values(whole())["functions"], "digests": b64encode(bytes(56)).decode()}
UID_OF_NONE = {**to_values(whole())["functions"], "uid": {"2": "f"}}
FEWER_SITES = {**to_values(whole())["functions"], "sites": packed(0)}
HALF_A_NUMBER = {**to_values(whole())["functions"], "sites": b64encode(b"I123").decode()}


@pytest.mark.parametrize("damage", [
    b"",
    b"[]",
    b'{"callgraph": 1}',
    json.dumps({**to_values(whole()), "callgraph": 99}).encode(),
    json.dumps({**to_values(whole()), "callers": packed(77, 0, 1)}).encode(),
    json.dumps({**to_values(whole()), "kinds": "AA=="}).encode(),
    json.dumps({**to_values(whole()), "caller_counts": ENDLESS}).encode(),
    json.dumps({**to_values(whole()), "functions": FEWER_SITES}).encode(),
    json.dumps({**to_values(whole()), "functions": HALF_A_NUMBER}).encode(),
    json.dumps({**to_values(whole()), "functions": NO_WIDTH}).encode(),
    json.dumps({**to_values(whole()), "functions": FEWER_DIGESTS}).encode(),
    json.dumps({**to_values(whole()), "functions": UID_OF_NONE}).encode(),
    json.dumps({**to_values(whole()), "callees": [0, 1, 2]}).encode(),
    json.dumps({**to_values(whole()), "callees": "no base64"}).encode(),
])  # fmt: skip
def test_what_is_no_graph_is_refused(damage: bytes) -> None:
    with pytest.raises(ProfileError, match="no call graph that this version"):
        from_json(damage)


def test_json_for_scripts_names_its_values() -> None:
    data = json.loads(json.dumps(to_data(whole())))
    assert data["entry"] == "main"
    [found] = [one for one in data["functions"] if one["name"] == "f(int)"]
    assert (found["level"], found["instructions"], found["fingerprints"]["color"]) == (1, 7, "4" * 16)
    assert found["blocks"][0] == {"instructions": 3, "successors": [1, 2]}
    assert {"caller": "main", "callee": None, "kind": "indirect"} in data["calls"]


def test_dot_is_understood_by_graphviz() -> None:
    graph = graph_of('main>operator""_x\\', "main>*", "main>@puts")
    text = to_dot(graph)
    assert r'"main" -> "operator\"\"_x\\";' in text and '"main" -> "" [style=dotted];' in text
    assert '"puts" [color=gray, fontcolor=gray];' in text
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tplain"], input=text, check=True, capture_output=True, text=True)


def profile_of(*calls: tuple[str, str, int]) -> Profile:
    constants: dict[str, dict[str, Any]] = {}
    resources: dict[str, dict[str, Sequence[float]]] = {}
    for number, (caller, callee, count) in enumerate(calls):
        key = f"{callee}#{number}"
        constants[key] = {"type": "mixed", "subtype": "time delta", "uid": callee}
        if caller:
            constants[key]["caller"] = caller
        resources[key] = {"amount": [1.0] * count}
    return Profile(
        header={"type": "mixed", "cmd": "./app", "workload": "", "units": {"mixed(time delta)": "us"}},
        collector_info={"name": "trace", "params": {}},
        resource_type_map=constants,
        resources=resources,
    )


def test_recorded_calls_are_counted_and_make_a_graph() -> None:
    profile = profile_of(("", "main", 1), ("main", "work", 5), ("work", "work", 3), ("main", "work", 2))
    assert recorded_calls(profile) == {("", "main"): 1, ("main", "work"): 7, ("work", "work"): 3}
    graph = recorded_graph(profile)
    assert (graph.source, graph.entry) == ("dynamic", "main") and graph.callees("work") == ("work",)
    assert {call.kind for call in graph.calls} == {"dynamic"}


def test_a_profile_without_callers_has_no_graph() -> None:
    with pytest.raises(ProfileError, match="which function called which"):
        recorded_graph(profile_of(("", "one", 1), ("", "two", 1)))


def test_a_mixed_graph_adds_what_only_was_recorded() -> None:
    static = graph_of("main>a", "main>*")
    functions = {
        **static.functions, "x.c:b": GraphFunction("x.c:b", "b"), "y.c:b": GraphFunction("y.c:b", "b")
    }  # fmt: skip
    static = CallGraph("ab12", "main", functions, static.calls)
    profile = profile_of(("", "main", 1), ("main", "a", 1), ("a", "b", 1), ("a", "malloc", 1))
    mixed = mixed_graph(static, recorded_graph(profile))
    assert mixed.source == "mixed" and mixed.callees("a") == ("x.c:b", "y.c:b", "malloc")
    assert [call.kind for call in mixed.calls if call.caller == "main"] == ["direct", "indirect"]


def test_names_of_statistics_are_plain_files_and_differ() -> None:
    assert graph_name("trace", "/usr/bin/git") == "cg--trace-git"
    odd = [graph_name("trace", f"/x/{name}") for name in ("a b", "a\tb", "ä" * 200, "ä" * 201, "..")]
    assert len(set(odd)) == len(odd)
    assert all("/" not in name and len(name) < 100 for name in odd)


# -- Instructions are the same by the layout of capstone and by its public interface -----------------


CODE = bytes.fromhex("554889e5c5fc58c1e8000000000606c30f1f440000") * 900
"""push, mov, vaddps, call, two bytes that are no instruction, ret, nop: of more than one batch."""


def instructions() -> list[tuple[int, int, bytes, tuple[str, str]]]:
    return [
        (address, size, data[:size], batch.text(number))
        for batch in Disassembler().batches(CODE, 0x1000)
        for number, (address, size, data) in enumerate(batch)
    ]


def test_another_release_of_capstone_decodes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = instructions()
    assert len(found) > 4096 and ("vaddps", "ymm0, ymm0, ymm1") in {one[3] for one in found}
    public = {name: getattr(capstone, name) for name in ("Cs", "CS_ARCH_X86", "CS_MODE_64")}
    monkeypatch.setitem(sys.modules, "capstone", SimpleNamespace(**public))
    assert instructions() == found


# -- Instructions that the kernel takes for others are not probed ------------------------------------


REFUSED = {
    "vmovdqa %xmm0,%xmm1": "c5 f9 6f c8", "vpshufd $0x55,%xmm0,%xmm1": "c5 f9 70 c8 55",
    "vcmpeqps %xmm0,%xmm1,%xmm2": "c5 f0 c2 d0 00", "vzeroupper": "c5 f8 77",
    "vpor %xmm0,%xmm1,%xmm2": "c5 f1 eb d0", "vptest %xmm0,%xmm1": "c4 e2 79 17 c8",
    "vmovdqu64 %zmm0,%zmm1": "62 f1 fe 48 6f c8"
}  # fmt: skip
ALLOWED = {
    "vaddps %xmm0,%xmm1,%xmm2": "c5 f0 58 d0", "shlx %edi,%edx,%edx": "c4 e2 41 f7 d2",
    "movd %edi,%xmm2": "66 0f 6e d7", "outsl, a real one": "6f", "jo": "70 05", "push %rbx": "53"
}  # fmt: skip


@pytest.mark.parametrize(("code", "probeable"), [
    *(pytest.param(code, False, id=name) for name, code in REFUSED.items()),
    *(pytest.param(code, True, id=name) for name, code in ALLOWED.items()),
])  # fmt: skip
def test_vector_instructions_that_look_like_others_are_not_probed(code: str, probeable: bool) -> None:
    assert is_probeable(bytes.fromhex(code)) is probeable


def test_what_is_cut_off_is_no_error() -> None:
    assert is_probeable(b"") and is_probeable(bytes.fromhex("c5 f9"))
