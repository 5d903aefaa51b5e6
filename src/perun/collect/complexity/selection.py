"""Selects the functions to record and how to read their sizes, and names them in the profile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perun.collect._calls.optimizations.applying import Applied, Candidate, apply, is_wanted
from perun.collect._calls.profile import CalledFunction
from perun.collect._calls.sizes import find_size, size_of
from perun.collect.complexity.programs import Module, TableFunction, encoded, programs
from perun.core.errors import JobFailed, UsageError
from perun.native.binary import Binary
from perun.native.function_names import plain_name, without_arguments

if TYPE_CHECKING:
    from perun.collect._calls.sizes import Size
    from perun.collect.complexity.build import ComplexityParams
    from perun.collect.complexity.records import FunctionAddress
    from perun.native.binary import Function as Symbol
    from perun.plugin.api import CollectContext, Run


class Selection(NamedTuple):
    """What the runtime records.

    :param table: the table for it. :param path: real path of the program; empty if it is a script.
    :param sizes: address of a function to the expression of its size. :param notes: for the user.
    :param applied: what the optimisations decided; None where there are none.
    """

    table: bytes
    path: str
    sizes: dict[int, str]
    notes: list[str]
    applied: Applied | None = None

    def functions(
        self, places: Sequence[FunctionAddress], cwd: Path, ctx: CollectContext
    ) -> list[CalledFunction]:
        """The functions at the places, by their numbers."""
        names: dict[str, dict[int, str]] = {}
        for path in {place.path for place in places}:
            names[path] = {}
            if os.path.isfile(path):
                with Binary(path, ctx.cache) as binary:
                    names[path] = {function.address: function.name for function in binary.functions}
        return [
            CalledFunction(
                names[place.path].get(place.address, f"{place.address:#x}"),
                _location(place.path, cwd, ctx.scratch),
                self.sizes.get(place.address, "") if place.path == self.path else "",
            )
            for place in places
        ]


def select(program: str, params: ComplexityParams, ctx: CollectContext, run: Run | None = None) -> Selection:
    """Select the functions of a program.

    :param run: what is measured; without one the optimisations choose nothing.
    :raises NoProfile: where the parameters ask for explanations alone.
    :raises UsageError: where none of the functions of the rules exists; names the most similar ones.
    :raises JobFailed: where the program cannot be read.
    """
    if not _is_elf(program):
        if params.rules or params.sampling or params.size:
            raise UsageError(
                f"--rules, --sampling and --size need an ELF program, but {program} is something else",
                "name the program that the command runs with --binary (-b)",
            )
        if is_wanted(params):
            raise UsageError(
                f"optimizations need an ELF program, but {program} is something else",
                "name the program that the command runs with --binary (-b)",
            )
        return Selection(encoded([], only_listed=False), "", {}, [])
    with Binary(program, ctx.cache) as binary:
        notes: list[str] = []
        if not binary.functions:
            notes.append(
                f"{os.path.basename(program)} has no symbols: its functions are named by addresses, and have "
                "no sizes; build it without -s (strip)"
            )
        listed = _listed(binary, params, notes)
        sizes = _sizes(binary, listed, params, notes)
        every = _sampling(binary, params, notes)
        applied = _optimized(binary, listed, every, params, ctx, run)
        if applied is not None:
            listed = _kept(listed, applied, every)
            notes += applied.notes + _unsupported(applied)
        functions = [
            TableFunction(one.address, one.size, one in listed, every.get(one.address, 1))
            for one in binary.functions
        ]
        table = encoded(
            [Module(binary.path, functions, programs(binary, sizes))], only_listed=bool(params.rules)
        )
        texts = {one.address: size.text for one, size in sizes.items()}
        return Selection(table, binary.path, texts, [*binary.notes, *notes], applied)


def _optimized(
    binary: Binary,
    listed: frozenset[Symbol],
    every: Mapping[int, int],
    params: ComplexityParams,
    ctx: CollectContext,
    run: Run | None,
) -> Applied | None:
    """What the optimisations decide on the functions, in the order of their addresses."""
    if run is None or not is_wanted(params):
        return None
    candidates = [
        Candidate(one.name, one.symbol, one.address, bool(params.rules), every.get(one.address, 1))
        for one in _ordered(listed)
    ]
    return apply(run, binary.path, "complexity", candidates, params, ctx)


def _kept(listed: frozenset[Symbol], applied: Applied, every: dict[int, int]) -> frozenset[Symbol]:
    """The functions that stay; `every` gets how they are sampled."""
    kept = set()
    for one, decision in zip(_ordered(listed), applied.decisions, strict=True):
        if decision.kept:
            kept.add(one)
            every[one.address] = decision.sampling
    return frozenset(kept)


def _ordered(listed: frozenset[Symbol]) -> list[Symbol]:
    return sorted(listed, key=lambda one: one.address)


def _unsupported(applied: Applied) -> tuple[str, ...]:
    """What of the optimisations acts while a program runs, which the recorder cannot."""
    threshold, _, period = applied.switching
    names = {"dynamic-probing": threshold > 0, "timed-sampling": period > 0}
    return tuple(
        f"{name} has no effect: what the compiler added stays in the program; use perun collect trace"
        for name, is_asked in names.items()
        if is_asked
    )


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError as problem:
        raise JobFailed(
            f"cannot read the program {path}: {problem.strerror}", "check the path and its permissions"
        ) from None


def _listed(binary: Binary, params: ComplexityParams, notes: list[str]) -> frozenset[Symbol]:
    if not params.rules:
        return frozenset(binary.own_functions)
    found = _found(binary, params.rules, notes)
    if not found:
        raise UsageError("; ".join(notes), "name functions of the program with --rules (-r)")
    return frozenset(found)


def _found(binary: Binary, names: Iterable[str], notes: list[str]) -> list[Symbol]:
    """The functions of these names; a note names each one that does not exist, because others may."""
    found: list[Symbol] = []
    for name in names:
        try:
            found += binary.find(name)
        except UsageError as problem:
            notes.append(": ".join(filter(None, (problem.message, problem.hint))))
    return found


def _sampling(binary: Binary, params: ComplexityParams, notes: list[str]) -> dict[int, int]:
    return {
        function.address: every
        for name, every in params.sampling
        for function in _found(binary, [name], notes)
    }


def _sizes(
    binary: Binary, listed: Iterable[Symbol], params: ComplexityParams, notes: list[str]
) -> dict[Symbol, Size]:
    wanted = [function for function in listed if not _is_without_size(function)]
    sizes = {function: find_size(binary, function) for function in wanted}
    for text in params.size:
        name, _, expression = text.partition("=")
        for function in _found(binary, [name.strip()], notes):
            sizes[function] = size_of(binary, function, expression.strip())
    return {function: size for function, size in sizes.items() if size is not None}


def _is_without_size(function: Symbol) -> bool:
    """Whether it is `main`, whose parameters are no sizes, or a constructor, whose object has no size yet."""
    *scopes, name = without_arguments(plain_name(function.name)).split("::")
    return function.symbol == "main" or scopes[-1:] == [name]


def _location(path: str, cwd: Path, scratch: Path) -> str:
    """The path of a binary, made the same for every run: relative to the project or to the build folder."""
    for folder in (scratch / "target", cwd):
        real = os.path.realpath(folder)
        if path.startswith(real + os.sep):
            return os.path.relpath(path, real)
    return path
