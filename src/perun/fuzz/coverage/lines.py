"""From counters of arcs to executions of lines.

gcc counts only some arcs of the graph of a function; the others, a spanning tree, follow since what enters a
block also leaves it (Knuth, The Art of Computer Programming 1, 2.3.4.1). All of this is linear, so it is
worked out once, as two sparse matrices, and applied to the counters of each run.

A line is executed as often as its block that is executed most, or as it is entered from other lines,
whichever is more: the first counts loops that are within one line, the second lines whose parts have nothing
in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy

from perun.core.errors import PerunError, UsageError
from perun.fuzz.coverage.gcno import ON_TREE, ArcFunction, BlockGraph, DamagedNotes, Notes, read_notes

if TYPE_CHECKING:
    from numpy.typing import NDArray


Terms = dict[int, int]
"""A count as a sum: how often each counter is in it."""


class SourceLine(NamedTuple):
    """A line of a source file."""

    file: str
    number: int


class LineCounts:
    """How often each line is executed, of functions whose counters lie one after the other in an array.

    :ivar lines: the lines, in the order of the results of :meth:`counts`. A line that is in several
        functions, e.g. in instances of a template, is in it once.
    """

    def __init__(self, graphs: Iterable[tuple[BlockGraph, int]]) -> None:
        """:param graphs: each function with the place of its first counter."""
        rows: dict[tuple[tuple[int, int], ...], int] = {}
        groups: dict[SourceLine, list[tuple[int, ...]]] = defaultdict(list)
        for graph, first in graphs:
            for place, sums in _sums(graph, first):
                numbers = {rows.setdefault(tuple(sorted(one.items())), len(rows)) for one in sums}
                groups[place].append(tuple(sorted(numbers)))
        self.lines = list(groups)
        every = [group for line in groups.values() for group in line]
        self._matrix = _Matrix([dict(row) for row in rows])
        self._rows = numpy.asarray([row for group in every for row in group], numpy.intp)
        self._groups = _starts(len(group) for group in every)
        self._line_starts = _starts(len(line) for line in groups.values())

    def counts(self, counters: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        """Executions of each line; never below 0, also if counters are of a run that was cut short."""
        if not len(self.lines):
            return numpy.zeros(0, numpy.int64)
        sums = self._matrix.times(counters)
        most = numpy.maximum.reduceat(sums[self._rows], self._groups)
        found: NDArray[numpy.int64] = numpy.add.reduceat(numpy.maximum(most, 0), self._line_starts)
        return found


def _starts(sizes: Iterable[int]) -> NDArray[numpy.intp]:
    """Where parts of these sizes start that lie one after the other."""
    return numpy.cumsum([0, *sizes], dtype=numpy.intp)[:-1]


class _Matrix:
    """Rows of a sparse matrix; a row without terms is 0."""

    def __init__(self, rows: Sequence[Terms]) -> None:
        self._starts = _starts(max(len(row), 1) for row in rows)
        self._columns = numpy.asarray([c for row in rows for c in (row or {0: 0})], numpy.intp)
        self._factors = numpy.asarray([f for row in rows for f in (row or {0: 0}).values()], numpy.int64)

    def times(self, vector: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
        found: NDArray[numpy.int64] = numpy.add.reduceat(vector[self._columns] * self._factors, self._starts)
        return found


def _sums(graph: BlockGraph, first: int) -> Iterable[tuple[SourceLine, list[Terms]]]:
    """For each line of a function the sums of which the largest one is its count, as terms of counters."""
    arcs = _solve(graph, first)
    entering: list[list[int]] = [[] for _ in range(graph.blocks)]
    leaving: list[list[int]] = [[] for _ in range(graph.blocks)]
    for index, arc in enumerate(graph.arcs):
        leaving[arc.source].append(index)
        entering[arc.target].append(index)
    blocks_of: dict[SourceLine, list[int]] = defaultdict(list)
    for block, places in enumerate(graph.lines):
        for place in dict.fromkeys(places):
            blocks_of[SourceLine(*place)].append(block)
    for line, blocks in blocks_of.items():
        sums = [_add(arcs[arc] for arc in entering[block] or leaving[block]) for block in blocks]
        if len(blocks) > 1:
            inside = set(blocks)
            sums.append(
                _add(
                    arcs[arc]
                    for block in blocks
                    for arc in entering[block]
                    if graph.arcs[arc].source not in inside
                )
            )
        yield line, sums


def _solve(graph: BlockGraph, first: int) -> list[Terms]:
    """The count of each arc as terms of counters, the first of which is number `first`.

    :raises DamagedNotes: if arcs without counters are no tree, so that their counts do not follow.
    """
    if graph.blocks < 2:
        raise DamagedNotes(f"the function {graph.name} has no blocks")
    ends = [(arc.source, arc.target) for arc in graph.arcs]
    found: list[Terms | None] = []
    counter = first
    for arc in graph.arcs:
        if arc.flags & ON_TREE:
            found.append(None)
        else:
            found.append({counter: 1})
            counter += 1
    ends.append((1, 0))  # from the exit back to the entry: what enters the function also leaves it
    found.append(None)
    at: list[list[int]] = [[] for _ in range(graph.blocks)]
    missing = [0] * graph.blocks
    for index, (source, target) in enumerate(ends):
        for block in {source, target}:
            at[block].append(index)
            missing[block] += found[index] is None
    ready = [block for block in range(graph.blocks) if missing[block] == 1]
    while ready:
        block = ready.pop()
        if missing[block] != 1:
            continue
        unknown = next(index for index in at[block] if found[index] is None)
        found[unknown] = _balance(block, unknown, at[block], ends, found)
        for end in set(ends[unknown]):
            missing[end] -= 1
            if missing[end] == 1:
                ready.append(end)
    if any(one is None for one in found):
        raise DamagedNotes(f"the arcs of the function {graph.name} do not belong together")
    return [one for one in found[:-1] if one is not None]


def _balance(
    block: int,
    unknown: int,
    at: Sequence[int],
    ends: Sequence[tuple[int, int]],
    found: Sequence[Terms | None],
) -> Terms:
    """The count of the one arc at a block that is unknown: what enters the block leaves it."""
    sign = 1 if ends[unknown][0] == block else -1
    terms: Terms = defaultdict(int)
    for index in at:
        known = found[index]
        source, target = ends[index]
        if known is None or source == target:
            continue
        direction = sign if target == block else -sign
        for counter, factor in known.items():
            terms[counter] += direction * factor
    return {counter: factor for counter, factor in terms.items() if factor}


def _add(parts: Iterable[Terms]) -> Terms:
    terms: Terms = defaultdict(int)
    for part in parts:
        for counter, factor in part.items():
            terms[counter] += factor
    return {counter: factor for counter, factor in terms.items() if factor}


# The line map of a program: which `.gcno` files belong to it, and where they are.

HOW_TO_COMPILE: Final = (
    "compile and link it with `gcc --coverage`, or with clang and the flags that `perun fuzz --build` uses; "
    "`perun fuzz --build 'make CFLAGS={flags}'` does it"
)


def not_compiled(program: Path) -> PerunError:
    """The error for a program that has no counters."""
    return UsageError(
        f"{program} is not compiled with coverage: nothing counts what it executes",
        HOW_TO_COMPILE + "; --skip-coverage-testing does without",
    )


def line_map(functions: Sequence[ArcFunction], folders: Sequence[Path]) -> LineCounts:
    """The lines of functions whose counters lie one after the other.

    :param folders: where `.gcno` files are looked for that are not where they were written.
    :raises UsageError: if one is missing, is of another build, or cannot be read.
    """
    try:
        return LineCounts(_placed(functions, folders))
    except DamagedNotes as problem:
        raise UsageError(f"the notes of gcc are damaged: {problem}", "build the program again") from None


def _placed(functions: Sequence[ArcFunction], folders: Sequence[Path]) -> Iterator[tuple[BlockGraph, int]]:
    known: dict[str, dict[tuple[int, int, int], BlockGraph]] = {}
    first = 0
    for function in functions:
        if function.notes not in known:
            known[function.notes] = _graphs(_find(function.notes, function.stamp, folders))
        graph = known[function.notes].get(function.key)
        if graph is None:
            raise _other_build(Path(function.notes))
        yield graph, first
        first += function.counters


def _graphs(notes: Notes) -> dict[tuple[int, int, int], BlockGraph]:
    def absolute(graph: BlockGraph) -> BlockGraph:
        lines = [[(str(Path(notes.folder, file)), number) for file, number in block] for block in graph.lines]
        return graph._replace(lines=lines)

    return {graph.key: absolute(graph) for graph in notes.functions}


def _find(path: str, stamp: int, folders: Sequence[Path]) -> Notes:
    """The notes of an object: where it was compiled, else a file of that name with the same stamp."""
    recorded = Path(path)
    candidates = [recorded, *(file for folder in folders for file in folder.rglob(recorded.name))]
    other = False
    for candidate in candidates:
        try:
            notes = read_notes(candidate)
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise UsageError(f"cannot read {candidate}: {problem.strerror}") from None
        except DamagedNotes as problem:
            hint = "build the program again, with GCC 8 or newer"
            raise UsageError(f"cannot read {problem}", hint) from None
        if notes.stamp == stamp:
            return notes
        other = True
    if other:
        raise _other_build(recorded)
    raise UsageError(
        f"the notes of gcc are missing: {recorded}",
        "they are made when the program is compiled; name their folder with --gcno-path (-g)",
    )


def _other_build(path: Path) -> UsageError:
    return UsageError(
        f"{path} is of another build than the program", "build the program again, all of its objects"
    )
