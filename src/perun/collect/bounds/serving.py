"""What a process of :mod:`perun.collect.bounds.workers` does: analyse the sources it is told of."""

from __future__ import annotations

import math
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Final

from perun.collect.bounds import cache
from perun.collect.bounds.analysis import (
    OUT_OF_STEPS,
    AnalysisOptions,
    Count,
    analyse,
    needed,
)
from perun.collect.bounds.answer import FunctionBounds, unbounded
from perun.collect.bounds.digests import at, by_digest, digester
from perun.collect.bounds.found import NOT_REACHED, Gap, SourceBounds, of_unreadable
from perun.collect.bounds.front import (
    LARGEST,
    Function,
    PreprocessorFailed,
    ReadOptions,
    Unit,
    preprocess,
    read,
)
from perun.collect.bounds.params import BoundsParams
from perun.collect.bounds.steps import PER_SECOND
from perun.collect.bounds.workers import Answer, Progress, Refused, Setup, Task
from perun.errors import PerunError
from perun.regular import read_regular

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


def answers(task: Task, setup: Setup) -> Iterator[Answer]:
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
        yield Refused(problem.message, problem.hint)
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
            yield Progress(other.name, number)
            _analysed(other, unit, wanted)
        yield Progress(function.name, number)
        digest = digest_of(function)
        before = earlier.get(digest)
        known = at(before, function) if before else task.known.get(number)
        bounds = known or _analysed(function, unit, wanted)
        if bounds.reason == OUT_OF_STEPS:
            gaps.append(Gap(function.line + 1, function.name, OUT_OF_STEPS))
        found.append(bounds)
        digests.append(digest)
        yield Progress(function.name, number, bounds)
    key = "" if lost else key
    yield SourceBounds(task.path, tuple(found), tuple(gaps), key, name, tuple(digests), limit)


def _analysis_options(params: BoundsParams) -> AnalysisOptions:
    count: Count = "backedges" if params.count == "backedges" else "iterations"
    return AnalysisOptions(params.calls, count, params.timeout * PER_SECOND or math.inf)


def _is_wanted(name: str, params: BoundsParams) -> bool:
    return not params.function or name in params.function


def _analysed(function: Function, unit: Unit, options: AnalysisOptions) -> FunctionBounds:
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
