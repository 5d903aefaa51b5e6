"""What a process of :mod:`perun.bounds.workers` does: analyse the sources it is told of."""

from __future__ import annotations

import math
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final

from pycparser import c_ast

from perun.bounds import cache
from perun.bounds.analysis import OUT_OF_STEPS, AnalysisOptions, Count, analyse, needed
from perun.bounds.answer import NOT_REACHED, FunctionBounds, Gap, SourceBounds, of_unreadable, unbounded
from perun.bounds.front.preprocessing import PreprocessorFailed, preprocess
from perun.bounds.front.read import read
from perun.bounds.front.unit import LARGEST, CFunction, ReadOptions, TranslationUnit
from perun.bounds.lowering.places import effects_of
from perun.bounds.lowering.types import SideEffects
from perun.bounds.sources import BoundsParams
from perun.bounds.steps import PER_SECOND
from perun.bounds.workers import AnalysisProgress, AnalysisRefusal, AnalysisTask, Answer, Setup
from perun.core.errors import PerunError
from perun.core.regular import read_regular

# What the bounds of one function depend on, as a digest.
#
# A function with the digest of an earlier one has its bounds, wherever in the file it stands now.


def digester(unit: TranslationUnit, options: object) -> Callable[[CFunction], str]:
    """What makes the digests of the functions of a unit.

    :param options: of the analysis.
    """
    constants, unknown = sorted(unit.constants.items()), sorted(unit.unknown_types)
    context = cache.key_of(_declarations(unit), constants, unknown, options)
    effects = effects_of(unit)

    def digest(function: CFunction) -> str:
        others = sorted(_names(function.node) & effects.keys())
        known = [(name, _plain(effects[name])) for name in others]
        places = [
            (loop.first_line - function.line, loop.last_line - function.line, loop.column)
            for loop in function.loops
        ]
        return cache.key_of(context, _tree(function.node), function.column, places, known)

    return digest


def at(known: FunctionBounds, function: CFunction) -> FunctionBounds:
    """The bounds that are known of a function, which stands elsewhere now."""
    moved = function.line - known.line
    loops = tuple(
        replace(loop, first_line=loop.first_line + moved, last_line=loop.last_line + moved)
        for loop in known.loops
    )
    return replace(known, line=function.line, column=function.column, loops=loops)


def by_digest(found: SourceBounds | None) -> Mapping[str, FunctionBounds]:
    """The functions of an earlier version of a source by their digests."""
    if found is None:
        return {}
    return {digest: one for digest, one in zip(found.digests, found.functions, strict=True) if digest}


def _declarations(unit: TranslationUnit) -> list[Any]:
    named = (unit.globals, unit.prototypes, unit.typedefs, unit.structs, unit.unions, unit.enums)
    return [[(name, _tree(node)) for name, node in sorted(group.items())] for group in named]


def _plain(effects: SideEffects) -> list[Any]:
    sets: Iterable[set[str]] = (effects.written, effects.fields, effects.calls)
    return [*map(sorted, sets), effects.unknown]


def _names(node: Any) -> set[str]:
    """The names that occur in a syntax tree, those of called functions among them."""
    found = {str(node.name)} if isinstance(node, c_ast.ID) else set()
    for _, child in node.children():
        found |= _names(child)
    return found


def _tree(node: Any) -> Any:
    """A syntax tree without the places of its nodes."""
    values = [getattr(node, name) for name in node.attr_names]
    return [type(node).__name__, values, [(name, _tree(child)) for name, child in node.children()]]


_DEPTH: Final = 40_000
"""Calls that parsing a deeply nested expression may take, for which the stack below is large enough."""
_STACK: Final = 512 << 20
_MEMORY: Final = 3 << 30
"""Bytes of address space of this process, and of the preprocessor that it starts."""
_WRITTEN: Final = 64 << 20
"""Bytes of a preprocessed source."""


def main(descriptor: int) -> None:
    """Answer tasks until the other side is gone, with a stack for deeply nested sources."""
    connection = Connection(descriptor)
    for what, limit in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, _WRITTEN)):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (limit if hard < 0 else min(limit, hard), hard))
    for part in (1, 8):
        sys.setrecursionlimit(_DEPTH // part)
        threading.stack_size(_STACK // part)
        thread = threading.Thread(target=_serve, args=(connection,))
        try:
            thread.start()
        except RuntimeError:  # the memory of the process is limited
            continue
        thread.join()
        return


def _serve(connection: Connection) -> None:
    try:
        setup: Setup = connection.recv()
        while True:
            for answer in answers(connection.recv(), setup):
                connection.send(answer)
    except (EOFError, OSError):
        return


def answers(task: AnalysisTask, setup: Setup) -> Iterator[Answer]:
    """What is found of the task: its functions as they are done, and in the end all of it."""
    params = setup.params
    begun = time.process_time() - task.spent
    options = ReadOptions(params.include, params.define, params.compile_commands or None, params.timeout)
    wanted = _analysis_options(params)
    try:
        content = read_regular(os.path.realpath(task.path), LARGEST)
        preprocessed = preprocess(task.path, options)
        chosen = (params.source_timeout, sorted(params.function))
        key = cache.key_of(task.path, content, preprocessed, wanted, *chosen)
        cached = cache.read(setup.cache, key, task.path)
        if cached is not None:
            yield cached if task.part == 0 else cached._replace(functions=(), gaps=(), digests=())
            return
        unit = read(task.path, options, preprocessed)
    except PerunError as problem:
        yield AnalysisRefusal(problem.message, problem.hint)
        return
    except Exception as problem:  # one source that cannot be read must not end the others
        yield SourceBounds(task.path, (), (Gap(1, "", _failure(problem)),))
        return
    name = cache.key_of("latest", task.path, wanted)
    earlier = by_digest(cache.latest(setup.cache, name, task.path))
    digest_of = digester(unit, wanted) if not wanted.calls else lambda function: ""
    unread, gaps = of_unreadable(unit.unreadable, task.path)
    found = [one for one in unread if task.part == 0 and _is_wanted(one.name, params)]
    digests = [""] * len(found)
    seconds = params.seconds_of_source(len(unit.functions))
    limit = seconds * PER_SECOND
    lost = dict(task.lost)
    for number, function in enumerate(unit.functions[task.part :: task.parts]):
        if not _is_wanted(function.name, params):
            continue
        if number not in lost and time.process_time() - begun > seconds:
            lost[number] = NOT_REACHED
        if number in lost:  # on a faster machine it might not be
            found.append(unbounded(function, lost[number]))
            gaps.append(Gap(function.line + 1, function.name, lost[number]))
            digests.append("")
            continue
        if sum(one.steps for one in found) > limit:
            found.append(unbounded(function, NOT_REACHED))
            digests.append("")
            continue
        for other in needed(function, unit, wanted):
            yield AnalysisProgress(other.name, number)
            _analysed(other, unit, wanted)
        yield AnalysisProgress(function.name, number)
        digest = digest_of(function)
        before = earlier.get(digest)
        known = at(before, function) if before else task.known.get(number)
        bounds = known or _analysed(function, unit, wanted)
        if bounds.reason == OUT_OF_STEPS:
            gaps.append(Gap(function.line + 1, function.name, OUT_OF_STEPS))
        found.append(bounds)
        digests.append(digest)
        yield AnalysisProgress(function.name, number, bounds)
    key = "" if lost else key
    yield SourceBounds(task.path, tuple(found), tuple(gaps), key, name, tuple(digests), limit)


def _analysis_options(params: BoundsParams) -> AnalysisOptions:
    count: Count = "backedges" if params.count == "backedges" else "iterations"
    return AnalysisOptions(params.calls, count, params.timeout * PER_SECOND or math.inf)


def _is_wanted(name: str, params: BoundsParams) -> bool:
    return not params.function or name in params.function


def _analysed(function: CFunction, unit: TranslationUnit, options: AnalysisOptions) -> FunctionBounds:
    try:
        return analyse(function, unit, options)
    except Exception as problem:  # what is wrong with one function must not lose the others
        return unbounded(function, _failure(problem))


def _failure(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, OSError):
        return f"it cannot be read: {problem.strerror}"
    if isinstance(problem, MemoryError):
        return f"it needs more memory than {_MEMORY >> 30} GiB"
    if isinstance(problem, PreprocessorFailed):
        return str(problem)
    return f"the analysis failed: {type(problem).__name__}: {problem}"
