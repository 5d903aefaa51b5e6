"""The drawn history against the real one: every edge must be traceable through the characters."""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.cli.graph import CommitGraph
from shared import examples

History = list[tuple[str, list[str]]]
Edges = list[tuple[str, str]]


def drawn(history: History, text_lines: int = 0) -> list[tuple[str, str]]:
    """Rows as (characters, checksum); the checksum is empty on rows without a version."""
    graph = CommitGraph()
    rows: list[tuple[str, str]] = []
    for checksum, parents in history:
        prefix, text, links = graph.commit(checksum, parents)
        assert len(prefix) == len(text)
        assert all(link == link.rstrip() and link for link in links)
        rows.append((prefix, checksum))
        rows.extend([(text, "")] * text_lines)
        rows.extend((link, "") for link in links)
    return rows


def picture(history: History, text_lines: int = 0) -> list[str]:
    return [(row + checksum).rstrip() for row, checksum in drawn(history, text_lines)]


def edges_of(history: History) -> set[tuple[str, str]]:
    return {(child, parent) for child, parents in history for parent in parents}


class Tracer:
    """Follows lines downwards, row by row, knowing only what each character joins.

    `above` holds which versions' lines arrive at each column from above. A run of `_` ends below its last
    character and goes on in the diagonal of the next row there; such lines are `hanging`.
    """

    def __init__(self) -> None:
        self.above: dict[int, set[str]] = {}
        self.hanging: dict[int, set[str]] = {}
        self.edges: Edges = []

    def row(self, row: str, checksum: str) -> None:
        below: dict[int, set[str]] = defaultdict(set)
        hanging: dict[int, set[str]] = {}
        for position, character in enumerate(row):
            column = position // 2
            if character == "*":
                self.edges.extend((child, checksum) for child in self.above.get(column, ()))
                below[column] = {checksum}
            elif character == "|":
                below[column] |= self.above[column]
            elif character == "\\":
                assert position % 2
                below[column + 1] |= self.above[column]
            elif character == "/":
                assert position % 2
                line = self.hanging.pop(position, None) or self.above[column + 1]
                end = position
                while end >= 2 and row[end - 2] == "_":
                    end -= 2
                if end == position:
                    below[column] |= line
                else:
                    hanging[end] = line
            elif character == "_":
                assert position % 2
                assert row[position + 2] in "_/"
            else:
                assert character == " "
        assert not self.hanging
        self.above, self.hanging = dict(below), hanging


def traced(rows: Iterable[tuple[str, str]], tracer: Tracer) -> tuple[Edges, set[str]]:
    """The drawn edges, and the versions whose lines are still open at the end."""
    for row, checksum in rows:
        tracer.row(row, checksum)
    return tracer.edges, {child for line in tracer.above.values() for child in line}


def assert_all_edges_drawn(history: History) -> None:
    for text_lines in (0, 1):
        rows = drawn(history, text_lines)
        edges, _ = traced(rows, Tracer())
        assert set(edges) == edges_of(history), "\n".join(row + name for row, name in rows)
        assert len(edges) == len(set(edges)), "an edge is drawn twice"


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Versions named by numbers, children first; every parent comes later."""
    size = draw(st.integers(1, 14))
    history: History = []
    for number in range(size):
        later = list(range(number + 1, min(size, number + 7)))
        parents = draw(st.lists(st.sampled_from(later), max_size=4, unique=True)) if later else []
        history.append((str(number), [str(parent) for parent in parents]))
    return history


@settings(max_examples=examples(100), deadline=None)
@given(histories())
def test_every_edge_can_be_traced(history: History) -> None:
    assert_all_edges_drawn(history)


@settings(max_examples=examples(60), deadline=None)
@given(histories(), st.sets(st.integers(0, 13)))
def test_parents_that_never_come_keep_their_lines(history: History, missing: set[int]) -> None:
    walked = [(name, parents) for name, parents in history if int(name) not in missing]
    present = {name for name, _ in walked}
    edges, open_ends = traced(drawn(walked), Tracer())
    assert set(edges) == {edge for edge in edges_of(walked) if edge[1] in present}
    expected = {name for name, parents in walked if not set(parents) <= present}
    assert expected <= open_ends


def test_straight_history() -> None:
    history: History = [("c", ["b"]), ("b", ["a"]), ("a", [])]
    assert picture(history) == ["* c", "* b", "* a"]
    assert picture(history, text_lines=1) == ["* c", "|", "* b", "|", "* a", ""]


def test_branch_and_merge() -> None:
    history: History = [("m", ["l", "r"]), ("l", ["b"]), ("r", ["b"]), ("b", [])]
    assert picture(history) == ["* m", "|\\", "* | l", "| * r", "|/", "* b"]


def test_criss_cross_touches_the_neighbour() -> None:
    history: History = [
        ("t", ["a2", "b2"]), ("a2", ["a1", "b1"]), ("b2", ["b1", "a1"]),
        ("a1", ["o"]), ("b1", ["o"]), ("o", []),
    ]  # fmt: skip
    assert picture(history) == [
        "* t", "|\\", "* | a2", "|\\ \\", "| | * b2", "| |/|", "|_|/", "|/|", "* | a1", "| * b1", "|/", "* o",
    ]  # fmt: skip
    assert_all_edges_drawn(history)


def test_far_join_goes_below_the_columns_between() -> None:
    history: History = [("t", ["a", "b", "c"]), ("a", ["o"]), ("c", ["o"]), ("b", ["o"]), ("o", [])]
    assert picture(history) == [
        "* t", "|\\", "|\\ \\", "* | | a", "| | * c", "|_|/", "|/|", "| * b", "|/", "* o",
    ]  # fmt: skip


def test_columns_move_up_after_a_version_without_parents() -> None:
    history: History = [("t", ["a", "b", "c"]), ("a", []), ("b", ["o"]), ("c", ["o"]), ("o", [])]
    assert picture(history)[3:5] == ["* | | a", " / /"]


def test_unrelated_histories_do_not_look_like_one() -> None:
    history: History = [("b", ["a"]), ("a", []), ("y", ["x"]), ("x", []), ("z", [])]
    assert picture(history) == ["* b", "* a", "  * y", " /", "* x", "  * z"]


def test_the_same_parent_twice_is_one_line() -> None:
    assert picture([("b", ["a", "a"]), ("a", [])]) == ["* b", "* a"]


def paint(text: str, colour: str) -> str:
    return f"<{colour}:{text}>"


def test_lines_from_a_change_down_to_its_parent_have_its_colour() -> None:
    graph = CommitGraph(paint=paint)
    graph.commit("m", ["l", "r"])
    assert graph.commit("l", ["b"]).commit == "* <blue:|> "
    assert graph.commit("r", ["q"], "degradation") == ("<yellow:|> <red:*> ", "<yellow:|> <red:|> ", ())
    better = graph.commit("q", ["b"], "optimization")
    assert better.commit == "<yellow:|> <green:*> "
    assert better.links == ("<yellow:|><green:/>",)
    assert graph.commit("b", ["a"]) == ("* ", "<yellow:|> ", ())
    assert graph.commit("a", ["z"], "optimization").text == "<green:|> "
    assert graph.commit("z", ["y"]).text == "<yellow:|> "


def test_a_merge_that_degraded_colours_the_lines_to_all_parents() -> None:
    graph = CommitGraph(paint=paint)
    assert graph.commit("m", ["l", "r", "s"], "degradation").links == ("<red:|\\>", "<red:|\\> <red:\\>")
    assert graph.commit("l", ["b"]).commit == "* <red:|> <red:|> "


def test_colours_change_no_character() -> None:
    history: History = [("t", ["a", "b", "c"]), ("a", ["o"]), ("c", ["o"]), ("b", ["o"]), ("o", [])]
    plain, coloured = CommitGraph(), CommitGraph(lambda text, colour: text)
    for checksum, parents in history:
        assert plain.commit(checksum, parents) == coloured.commit(checksum, parents, "degradation")


class Repository:
    """A real repository whose commits are made by plumbing; names are subjects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checksums: dict[str, str] = {}
        self.git("init", "-q", "-b", "main")
        self.tree = self.git("mktree", stdin="")

    def git(self, *arguments: str, stdin: str | None = None, date: int = 0) -> str:
        environ = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
        environ |= {"GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(self.folder), "LC_ALL": "C"}
        for who in ("AUTHOR", "COMMITTER"):
            environ |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org"}
            environ[f"GIT_{who}_DATE"] = f"{1_500_000_000 + 60 * date} +0000"
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environ, input=stdin, text=True, capture_output=True,
            check=True
        )  # fmt: skip
        return done.stdout.rstrip("\n")

    def commit(self, name: str, *parents: str) -> None:
        flags = [flag for parent in parents for flag in ("-p", self.checksums[parent])]
        made = self.git("commit-tree", "-m", name, *flags, self.tree, date=len(self.checksums))
        self.checksums[name] = made
        self.git("update-ref", f"refs/heads/{name}", made)

    def log(self) -> History:
        lines = self.git("log", "--all", "--date-order", "--format=%h %p").splitlines()
        return [(line.split()[0], line.split()[1:]) for line in lines]

    def graph(self) -> list[str]:
        return self.git("log", "--all", "--graph", "--date-order", "--format=%h").splitlines()


SHAPES: dict[str, Sequence[Sequence[str]]] = {
    "linear": [("a",), ("b", "a"), ("c", "b")],
    "branch and merge": [
        ("a",), ("l", "a"), ("r", "a"), ("r2", "r"), ("l2", "l"), ("m", "l2", "r2"), ("n", "m"),
    ],
    "criss-cross": [
        ("o",), ("a1", "o"), ("b1", "o"), ("a2", "a1", "b1"), ("b2", "b1", "a1"),
        ("a3", "a2", "b2"), ("b3", "b2", "a2"), ("t", "a3", "b3"),
    ],
    "octopus": [
        ("o",), ("a", "o"), ("b", "o"), ("c", "o"), ("d", "o"), ("t", "a", "b", "c", "d"), ("u", "t"),
    ],
    "many parallel branches": [
        ("o",), *((f"x{n}", "o") for n in range(30)), *((f"y{n}", f"x{n}") for n in range(30)),
        ("m", *(f"y{n}" for n in range(0, 30, 3))),
    ],
    "disjoint roots": [("o",), ("p",), ("a", "o"), ("b", "p"), ("m", "a", "b"), ("lone",), ("n", "m")],
    "back merges": [
        ("o",), ("m1", "o"), ("f1", "o"), ("f2", "f1", "m1"), ("m2", "m1"), ("f3", "f2", "m2"),
        ("m3", "m2", "f3"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_same_versions_and_edges_as_git(shape: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for name, *parents in SHAPES[shape]:
        repository.commit(name, *parents)
    history = repository.log()
    assert_all_edges_drawn(history)
    ours = [checksum for row, checksum in drawn(history) if "*" in row]
    theirs = [line.split("*", 1)[1].strip(" |-.\\/") for line in repository.graph() if "*" in line]
    assert ours == theirs


@pytest.mark.parametrize("shape", ["linear", "branch and merge", "criss-cross", "back merges"])
def test_tracer_reads_the_graph_of_git_too(shape: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    for name, *parents in SHAPES[shape]:
        repository.commit(name, *parents)
    rows = []
    for line in repository.graph():
        row = line.rstrip("0123456789abcdef")
        rows.append((row.rstrip(), line[len(row) :]))
    assert set(traced(rows, Tracer())[0]) == edges_of(repository.log())
