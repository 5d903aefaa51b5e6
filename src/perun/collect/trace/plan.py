"""The plan of a trace: functions with their sizes and sampling, and pairs of USDT probes or lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.collect._calls.optimizations.plan import ProbeSwitching
from perun.collect._calls.sizes import Size, find_size, size_of
from perun.collect.trace.params import kind_of, names_of
from perun.core.errors import UsageError
from perun.native.binary import Binary, Function, Usdt
from perun.native.function_names import is_own, profile_name
from perun.plugin.params import nearest

if TYPE_CHECKING:
    from pathlib import Path


# Rules of the user: which function, probe or line in which of the traced files is meant.


class SelectionRule(NamedTuple):
    """The parts of `<lib>#<what>#<sampling>`; empty or 0 if left out."""

    library: str
    what: str
    sampling: int


def parse_rule(text: str) -> SelectionRule:
    """A rule of `--func`: `f`, `lib#f`, `f#10` or `lib#f#10`.

    :raises UsageError: where it has no name, or too many parts.
    """
    parts = text.split("#")
    sampling = 0
    if len(parts) > 1 and parts[-1].isdecimal():
        sampling = int(parts.pop())
    elif len(parts) == 3 and not parts[-1]:
        parts.pop()
    library = parts.pop(0) if len(parts) == 2 else ""
    if len(parts) != 1 or not parts[0]:
        raise UsageError(f"cannot parse the rule {text!r}", "write <name> or <lib>#<name>#<sampling>")
    return SelectionRule(library, parts[0], sampling)


class BinaryFiles(NamedTuple):
    """The program and the libraries in which names are searched.

    :param libs: what the user wrote for each library.
    """

    binaries: Sequence[Binary]
    libs: Sequence[str]

    def functions(self, rule: SelectionRule) -> tuple[Binary, list[Function]]:
        """The functions that a rule means, and the first file that has any.

        :raises UsageError: where no file has any; names the most similar ones.
        """
        problem: UsageError | None = None
        for binary in [self.library(rule.library)] if rule.library else self.binaries:
            try:
                return binary, binary.find(rule.what)
            except UsageError as unknown:
                problem = problem or unknown
        assert problem is not None
        if kind_of(self.binaries[0].path).stripped and not rule.library:
            why, hint = stripped(self.binaries[0].path)
            raise UsageError(f"{problem.message}: {why}", hint)
        raise problem

    def library(self, name: str) -> Binary:
        """The file that the user calls so: by path, file name or soname, with the version or without.

        :raises UsageError: where it is not among the traced files.
        """
        given = ["", *self.libs]
        known = [
            (binary, names_of(binary.path, given[place] if place < len(given) else ""))
            for place, binary in enumerate(self.binaries)
        ]
        for wanted in (name, os.path.basename(name), os.path.basename(name).partition(".so")[0]):
            for binary, names in known:
                if wanted in names:
                    return binary
        raise UsageError(
            f"{name!r} is not among the traced files",
            f"{nearest(name, {one for _, names in known for one in names if '/' not in one})}; "
            "add a library with --libs (-l)",
        )


def stripped(path: str) -> tuple[str, str]:
    """What is wrong with a program without symbols, and what to do."""
    return (
        f"{os.path.basename(path)} is stripped: the names of its own functions were removed from it",
        "build it without strip and -s; or trace a library with --libs (-l), whose exported functions stay",
    )


SAMPLED: Final = 20
"""Default sampling of the sampled strategies: they keep one in so many calls."""
_ENDINGS: Final = ("_end", "_END", "_exit", "_return", "_done", "_stop", "_finish")
_BEGINNINGS: Final = ("_start", "_begin", "_entry", "_START", "_BEGIN")


class TraceSelection(NamedTuple):
    """The functions and probes to trace, as the user selects them by parameters of the same names."""

    strategy: str = "custom"
    func: tuple[str, ...] = ()
    usdt: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    global_sampling: int = 0
    with_usdt: bool = False
    libs: tuple[str, ...] = ()


class Probe(NamedTuple):
    """A traced function; its number is its position in the plan. `named`: the user named it by a rule."""

    path: str
    function: Function
    size: Size | None
    sampling: int
    named: bool = False


class ProbePair(NamedTuple):
    """Two USDT probes or lines of source between which time is measured; without `end` from hit to hit.

    A line is a probe without a provider.
    """

    path: str
    start: tuple[Usdt, ...]
    end: tuple[Usdt, ...]
    name: str
    sampling: int


class TracePlan(NamedTuple):
    """All that is traced in `program` and its libraries; pairs are numbered after the probes.

    :ivar switching: what the engine does with the probes while the program runs.
    :ivar entry: the number of the probe that stays when the others are switched off; -1 for none.
    """

    probes: tuple[Probe, ...]
    pairs: tuple[ProbePair, ...]
    throws: bool
    program: str
    switching: ProbeSwitching = ProbeSwitching()
    entry: int = -1

    @property
    def sampling(self) -> list[int]:
        """For each number its sampling: one in how many calls is kept."""
        return [probe.sampling for probe in self.probes] + [pair.sampling for pair in self.pairs]

    @property
    def stripped(self) -> bool:
        """Whether the program has no symbols: of its own functions, only those that it exports are known."""
        return kind_of(self.program).stripped


def make_plan(binaries: Sequence[Binary], wanted: TraceSelection) -> TracePlan:
    """The plan of what the parameters select.

    :param binaries: the program, and then the libraries of `wanted.libs`.
    :raises UsageError: where a function, probe or member does not exist; names the most similar ones.
    """
    files = BinaryFiles(binaries, wanted.libs)
    sampled = wanted.strategy.endswith("sampled")
    everywhere = wanted.global_sampling or (SAMPLED if sampled else 1)
    chosen: dict[tuple[str, int], tuple[Binary, Function, int]] = {}
    named: set[tuple[str, int]] = set()
    rules = [(rule, *files.functions(rule)) for rule in map(parse_rule, wanted.func)]
    if wanted.strategy != "custom":
        whole = wanted.strategy in ("all", "a_sampled")
        for binary in binaries if whole else [binaries[0], *_only_named(binaries, wanted, rules)]:
            is_own = binary is binaries[0] and not whole
            for function in _own_functions(binary) if is_own else binary.functions:
                chosen[binary.path, function.address] = (binary, function, everywhere)
    for rule, binary, functions in rules:
        for function in functions:
            chosen[binary.path, function.address] = (binary, function, rule.sampling or everywhere)
            named.add((binary.path, function.address))
    sizes = _sizes(files, wanted.size)
    probes = tuple(
        Probe(
            binary.path,
            function,
            sizes.get((binary.path, function.address)) or find_size(binary, function),
            sampling,
            (binary.path, function.address) in named,
        )
        for binary, function, sampling in chosen.values()
    )
    pairs = tuple(_pairs(files, wanted, everywhere))
    if not probes and not pairs:
        if wanted.strategy != "custom" and kind_of(binaries[0].path).stripped:
            raise UsageError(*stripped(binaries[0].path))
        raise UsageError(
            "no function or probe is selected",
            "name functions with --func (-f), or choose the strategy userspace with --strategy (-s)",
        )
    return TracePlan(probes, pairs, any(binary.throws for binary in binaries), binaries[0].path)


def _only_named(
    binaries: Sequence[Binary], wanted: TraceSelection, rules: Iterable[tuple[Any, Binary, object]]
) -> list[Binary]:
    """The libraries of `--libs` of which no rule names anything: all of them is wanted then."""
    if wanted.usdt or wanted.dynamic or wanted.with_usdt:
        return []
    used = {binary.path for _, binary, _ in rules}
    return [binary for binary in binaries[1:] if binary.path not in used]


def plan_of_other(path: str, wanted: TraceSelection, cache: Path | None) -> TracePlan:
    """The plan of a program that the command executes: what it has of what the parameters select.

    :param cache: as of :class:`Binary`.
    :raises UsageError: where it has nothing of that. :raises JobFailed: where it is no compiled program.
    """
    with Binary(path, cache) as binary:
        return _plan_of_what_is_there(binary, wanted)


def _plan_of_what_is_there(binary: Binary, wanted: TraceSelection) -> TracePlan:
    files = BinaryFiles([binary], ())
    wanted = wanted._replace(usdt=(), dynamic=(), with_usdt=False, libs=())
    sizes = tuple(text for text in wanted.size if _has_size(files, text))
    parts = [wanted._replace(strategy="custom", func=(text,), size=sizes) for text in wanted.func]
    if wanted.strategy != "custom":
        parts.insert(0, wanted._replace(func=(), size=sizes))
    found: dict[int, Probe] = {}
    problem = UsageError("no function of it is selected")
    for part in parts:
        try:
            found |= {probe.function.address: probe for probe in make_plan([binary], part).probes}
        except UsageError as missing:
            problem = missing
    if not found:
        raise problem
    return TracePlan(tuple(found.values()), (), binary.throws, binary.path)


def _has_size(files: BinaryFiles, text: str) -> bool:
    try:
        return bool(_sizes(files, (text,)))
    except UsageError:
        return False


def _own_functions(program: Binary) -> list[Function]:
    """The functions of the program's own source.

    :raises UsageError: where they cannot be told from those of the libraries that are linked into it.
    """
    own = [function for function in program.functions if is_own(function.symbol, function.name)]
    if not kind_of(program.path).static:
        return own
    # Libraries to be linked statically are distributed without debug information.
    described = [function for function in own if function.entry >= 0]
    if not described:
        raise UsageError(
            f"{os.path.basename(program.path)} is linked statically and has no debug information, so "
            "that its own functions cannot be told from those of the libraries in it",
            "compile with -g, or name functions with --strategy custom --func",
        )
    return described


def _sizes(files: BinaryFiles, expressions: Iterable[str]) -> dict[tuple[str, int], Size]:
    sizes = {}
    for text in expressions:
        name, equals, expression = text.partition("=")
        if not equals or not name.strip() or not expression.strip():
            raise UsageError(f"cannot parse --size {text!r}", "write it as 'List_search=l->size'")
        rule = parse_rule(name.strip())
        binary, functions = files.functions(rule)
        for function in functions:
            sizes[binary.path, function.address] = size_of(binary, function, expression)
    return sizes


def _pairs(files: BinaryFiles, wanted: TraceSelection, sampling: int) -> Iterable[ProbePair]:
    done: set[tuple[str, str]] = set()
    for text in wanted.usdt:
        pair = _pair_of(files, text, sampling)
        done.add((pair.path, pair.name))
        yield pair
    for text in wanted.dynamic:
        yield _dynamic(files, text, sampling)
    if wanted.with_usdt:
        for binary in files.binaries:
            probes = _by_name(binary)
            ends = {end for name in probes if (end := _end_of(name, probes))}
            for name in probes:
                pair = _pair(binary, name, _end_of(name, probes), sampling)
                if name not in ends and (pair.path, pair.name) not in done:
                    yield pair


def _pair_of(files: BinaryFiles, text: str, sampling: int) -> ProbePair:
    """The pair of `<lib>#<name>#<sampling>` or `<name1>#<name2>`."""
    parts = [part for part in text.split("#") if part]
    if len(parts) > 1 and parts[-1].isdecimal():
        sampling = int(parts.pop())
    candidates = list(files.binaries)
    known = {name for binary in files.binaries for name in _by_name(binary)}
    if len(parts) > 1 and parts[0] not in known:
        candidates = [files.library(parts.pop(0))]
    if not 1 <= len(parts) <= 2:
        raise UsageError(
            f"cannot parse --usdt {text!r}", "write <lib>#<probe>#<sampling>, or <probe1>#<probe2>"
        )
    for binary in candidates:
        probes = _by_name(binary)
        if all(part in probes for part in parts):
            end = parts[1] if len(parts) == 2 else _end_of(parts[0], probes)
            return _pair(binary, parts[0], end, sampling)
    missing = next((part for part in parts if part not in known), parts[0])
    raise UsageError(
        f"there is no USDT probe {missing!r} in {', '.join(one.path for one in candidates)}",
        nearest(missing, known),
    )


def _dynamic(files: BinaryFiles, text: str, sampling: int) -> ProbePair:
    """The pair of `<lib>#<source>:<line>#<sampling>` or `<source>:<line>#<source>:<line>`."""
    parts = [part for part in text.split("#") if part]
    if len(parts) > 1 and parts[-1].isdecimal():
        sampling = int(parts.pop())
    binary = files.library(parts.pop(0)) if parts and ":" not in parts[0] else files.binaries[0]
    if not 1 <= len(parts) <= 2:
        raise UsageError(
            f"cannot parse --dynamic {text!r}",
            "write <lib>#<source>:<line>#<sampling>, or <source>:<line>#<source>:<line>",
        )
    places = [tuple(binary.places(part)) for part in parts]
    return ProbePair(binary.path, places[0], places[1] if len(places) == 2 else (), "#".join(parts), sampling)


def _pair(binary: Binary, start: str, end: str, sampling: int) -> ProbePair:
    probes = _by_name(binary)
    name = f"{start}#{end}" if end else start
    return ProbePair(binary.path, tuple(probes[start]), tuple(probes.get(end, ())), name, sampling)


def _by_name(binary: Binary) -> dict[str, list[Usdt]]:
    found: dict[str, list[Usdt]] = {}
    for probe in binary.probes:
        found.setdefault(probe.name, []).append(probe)
    return found


def _end_of(name: str, probes: Iterable[str]) -> str:
    """The probe that closes the pair of `name`: `sort_end` for `sort` or `sort_start`; empty without one."""
    known = set(probes)
    stems = [name, *(name.removesuffix(ending) for ending in _BEGINNINGS if name.endswith(ending))]
    for stem in stems:
        for ending in _ENDINGS:
            if stem + ending in known and stem + ending != name:
                return stem + ending
    return ""


def shown_name(function: Function) -> str:
    """The name of a function in a profile, without the result type that templates have in their names."""
    return profile_name(function.name)
