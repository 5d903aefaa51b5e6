"""What the reader of callgrind's files understands, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from perun.collect._common.recordings import DamagedRecording
from perun.collect.instructions import callgrind_file
from perun.collect.instructions.callgrind_file import read
from perun.collect.instructions.tree import Call, CallGraph, RecordedFunction

CORPUS = Path(__file__).parents[2] / "data" / "corpus" / "callgrind"


def of(text: str, tmp_path: Path) -> CallGraph:
    (tmp_path / "out").write_text(text)
    return read(tmp_path / "out")


def by_name(graph: CallGraph) -> dict[str, int]:
    return {function.name: own for function, own in zip(graph.functions, graph.own, strict=True)}


def calls(graph: CallGraph) -> dict[tuple[str, str], Call]:
    names = [function.name for function in graph.functions]
    found = enumerate(graph.calls)
    return {(names[one], names[other]): call for one, by in found for other, call in by.items()}


def test_names_that_are_compressed_and_code_that_is_inlined() -> None:
    graph = read(CORPUS / "compressed")
    assert by_name(graph) == {"main": 160, "even": 600, "odd": 200, "0x0000000000001150": 440}
    assert graph.total == graph.expected == 1400
    assert graph.lost == 0
    assert (graph.pid, graph.command) == (4711, "./prog 7")
    assert calls(graph) == {
        ("main", "even"): Call(3, 1200),
        ("even", "odd"): Call(5, 900),
        ("odd", "0x0000000000001150"): Call(2, 440),
        ("odd", "even"): Call(4, 800),
    }
    assert graph.functions[0] == RecordedFunction("main", "/project/prog.c", "/project/prog")
    assert graph.functions[-1] == RecordedFunction("0x0000000000001150", "", "/usr/lib/libc.so.6")


def test_plain_names_several_events_addresses_and_jumps() -> None:
    graph = read(CORPUS / "plain")
    # The second event is the one that counts; costs that are left out are 0.
    assert by_name(graph) == {"main": 20, "func1": 100, "func2": 700}
    assert calls(graph) == {
        ("main", "func1"): Call(1, 400),
        ("main", "func2"): Call(3, 400),
        ("func1", "func2"): Call(2, 300),
    }
    assert [function.file for function in graph.functions] == ["file1.c", "file1.c", "file2.c"]
    assert graph.expected is None


def test_parts_of_a_file_add_up() -> None:
    graph = read(CORPUS / "two-parts")
    assert graph.total == graph.expected == 2800
    assert calls(graph)["main", "even"] == Call(6, 2400)


def test_a_file_that_was_cut_off_says_what_it_lost() -> None:
    graph = read(CORPUS / "cut-off")
    assert graph.lost == 440
    assert graph.total == 960


def test_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(CORPUS / "compressed")
    monkeypatch.setattr(callgrind_file, "_PIECE", 7)
    assert read(CORPUS / "compressed") == whole


def test_the_function_stands_first_in_a_call_chain(tmp_path: Path) -> None:
    text = "events: Ir\nfn=(1) leaf'a'main\n0 1\nfn=(2) leaf'b'main\n0 2\nfn=(1)\n0 4\n"
    graph = of(text, tmp_path)
    assert [function.name for function in graph.functions] == ["leaf", "leaf"]
    assert graph.own == [5, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
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
    ],
)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedRecording, match=message):
        of(text, tmp_path)


def test_what_grows_beyond_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = "events: Ir\n" + "".join(f"fn=f{number}\n0 1\ncfn=g\ncalls=1 0\n0 1\n" for number in range(20))
    assert of(many, tmp_path).total == 20
    for limit in ("MAX_NODES", "MAX_CALLS", "MAX_NAMES"):
        with monkeypatch.context() as patch:
            patch.setattr(callgrind_file, limit, 10)
            with pytest.raises(DamagedRecording, match="more call chains") as refusal:
                of(many, tmp_path)
        assert "--callers 0" in refusal.value.hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecording, match="cannot read"):
        read(tmp_path / "none")
