"""The line map of a program: which `.gcno` files belong to it, and where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from perun.errors import PerunError, UsageError
from perun.fuzz.coverage.elf import Function
from perun.fuzz.coverage.gcno import DamagedNotes, Graph, Notes, read_notes
from perun.fuzz.coverage.lines import Lines

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


def line_map(functions: Sequence[Function], folders: Sequence[Path]) -> Lines:
    """The lines of functions whose counters lie one after the other.

    :param folders: where `.gcno` files are looked for that are not where they were written.
    :raises UsageError: if one is missing, is of another build, or cannot be read.
    """
    try:
        return Lines(_placed(functions, folders))
    except DamagedNotes as problem:
        raise UsageError(f"the notes of gcc are damaged: {problem}", "build the program again") from None


def _placed(functions: Sequence[Function], folders: Sequence[Path]) -> Iterator[tuple[Graph, int]]:
    known: dict[str, dict[tuple[int, int, int], Graph]] = {}
    first = 0
    for function in functions:
        if function.notes not in known:
            known[function.notes] = _graphs(_find(function.notes, function.stamp, folders))
        graph = known[function.notes].get(function.key)
        if graph is None:
            raise _other_build(Path(function.notes))
        yield graph, first
        first += function.counters


def _graphs(notes: Notes) -> dict[tuple[int, int, int], Graph]:
    def absolute(graph: Graph) -> Graph:
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
