"""Which change of the diff made functions cost more: their own lines, what they use, who calls them, or else.

What a function costs more has as its cause, the first of these that there is:

1. the lines of the diff within it, or those that define what it uses in lines that cost another amount: a
   macro, a constant, a type, a name that is given to the compiler;
2. as far as it is called more often: what is the cause of its callers, each by how much more often it calls;
3. options of the compiler in the diff;
4. the nearest function of the graph of calls that changed, and does something else than before itself: one
   that it calls, one that calls it, one beside it. It may hand over, or leave behind, other data;
5. what it uses otherwise, a file of data in the diff, another change of how the program is built, the
   nearest function that changed;
6. nothing of the diff.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from perun.core.wording import listed, plural
from perun.profile.amounts import factor, readable_pair
from perun.running.explain.costs import OUTSIDE, FunctionKey
from perun.running.explain.data import CaseReport, Cause, Effect, FunctionChange, HunkLine, OtherFile
from perun.running.explain.definitions import says_the_same
from perun.running.explain.lines import CodeCosts, bare
from perun.running.explain.sources import MOST_LINES, FunctionSource, Sources, sides_of

LEAST: Final = 0.001
"""Part of the program below which the memory of a function is not told beside its cause."""
_SMALLEST: Final = 1e-4
"""Part of the program below which the change of a function is not looked at."""
_ACTIVE: Final = 1e-3
"""Part of another change from which on a function does something else itself."""
_FAR: Final = 6
"""Steps in the graph of calls from which on functions have nothing to do with each other."""
_DIRECT: Final = 0.1
"""Part of the change of a function below which its changed lines do not make it."""
_NEARLY_ALL: Final = 0.9
"""Part of the change of a function from which on the number of its calls makes it."""
_MOST_EFFECTS: Final = 3
_DEEPEST: Final = 20
_COUNTED: Final = ("instructions", "calls")
FUNCTION, DEFINITION, BUILD, DATA, NOTHING = "function", "definition", "build", "data", "nothing"
_Key = tuple[str, str]
"""The kind and the name of a cause; the name of a function is its location."""


def causes(
    before: CodeCosts, after: CodeCosts, sources: Sources, least: float, location: str = ""
) -> list[Cause]:
    """The causes of what changed, that of the largest growth first.

    :param before: what the functions of both versions cost; :param after: the same.
    :param least: the part of the program from which on a cause is told. :param location: that of a function:
        only its causes, and what it causes.
    """
    found = _Search(before, after, sources).found()
    if location:
        name = location.rpartition(":")[2]
        return [one for one in found if name in one.name or name in _texts(one)]
    return [one for one in found if abs(one.share) >= least]


def _texts(one: Cause) -> str:
    return " ".join(effect.function for effect in one.effects)


class _Search:
    def __init__(self, before: CodeCosts, after: CodeCosts, sources: Sources) -> None:
        self._before, self._after, self._sources = before, after, sources
        self._whole = sum(one.amount for one in before.functions.values()) or 1.0
        places = list(dict.fromkeys([*before.functions, *after.functions]))
        known = {_node(place) for place in places}
        places += [place for place in sources.changed_functions if _node(place) not in known]
        self._places = [place for place in places if place.name != OUTSIDE]
        self._by_node = {_node(place): place for place in reversed(places)}
        self._source = {place: sources.find(place, self._seen(place)) for place in self._places}
        self._definitions: dict[str, list[tuple[str, HunkLine]]] = sources.definitions
        self._credits: dict[_Key, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
        self._calls: dict[FunctionKey, dict[FunctionKey, tuple[float, float]]] = defaultdict(dict)
        """How often each function is called before and after, by its caller."""
        self._calling: set[FunctionKey] = set()
        """Functions that call others another number of times."""
        for caller, callee in dict.fromkeys([*before.calls, *after.calls]):
            old, new = (side.calls.get((caller, callee), 0.0) for side in (before, after))
            self._calls[callee][caller] = old, new
            if old != new:
                self._calling.add(caller)
        self._inlined_otherwise = {_node(FunctionKey(*one)) for one in sources.inlined_otherwise()}
        self._neighbours = self._graph()
        self._weak: dict[FunctionKey, _Key] = {}
        self._own = {place: self._own_key(place) for place in self._places}
        self._build = self._builds()

    def found(self) -> list[Cause]:
        for place in self._places:
            delta = self._delta(place)
            if abs(delta) >= _SMALLEST * self._whole:
                for key, amount in self._of(place, delta, frozenset()):
                    self._credits[key][place] += amount
        made = [self._cause(key, credits) for key, credits in self._credits.items()]
        told = [one for one in made if one.share]
        worse = sorted((one for one in told if one.share > 0), key=lambda one: -one.share)
        return worse + sorted((one for one in told if one.share <= 0), key=lambda one: one.share)

    def _amounts(self, place: FunctionKey) -> tuple[float, float]:
        sides = self._before.functions.get(place), self._after.functions.get(place)
        old, new = (one.amount if one is not None else 0.0 for one in sides)
        return old, new

    def _delta(self, place: FunctionKey) -> float:
        old, new = self._amounts(place)
        return new - old

    def _of(
        self, place: FunctionKey, delta: float, above: frozenset[FunctionKey]
    ) -> Iterator[tuple[_Key, float]]:
        """What a change of a function is due to, each with its part."""
        own, rest = self._own.get(place), delta
        by_calls = self._by_calls(place, delta)
        if own and not self._is_called_by_others(own, by_calls, delta):
            by_calls = {}
        if len(above) < _DEEPEST:
            for caller, part in by_calls.items():
                if caller not in above and caller in self._own:
                    rest -= part
                    yield from self._of(caller, part, above | {place})
        if rest:
            yield own or self._elsewhere(place, rest), rest

    def _is_called_by_others(self, own: _Key, by_calls: Mapping[FunctionKey, float], delta: float) -> bool:
        """Whether a function that changed costs as much a call as before, and others that changed call it
        another number of times."""
        return abs(sum(by_calls.values())) >= _NEARLY_ALL * abs(delta) and all(
            self._own.get(caller) not in (None, own) for caller in by_calls
        )

    def _own_key(self, place: FunctionKey) -> _Key | None:
        """The cause that lies in the function itself, or in what it uses."""
        source = self._source[place]
        used = self._used(place)
        if not _is_changed(source):
            return used
        if used is not None and (delta := self._delta(place)):
            lines = self._line_changes(source)
            if abs(lines) < _DIRECT * abs(delta):
                return used
        return FUNCTION, _location(place)

    def _seen(self, place: FunctionKey) -> list[Sequence[int]]:
        return [side.seen.get(place, ()) for side in (self._before, self._after)]

    def _used(self, place: FunctionKey) -> _Key | None:
        """What a function uses that changed, where lines that do so cost another amount: a message may have
        changed in a function that is slower for another reason. What else it uses is a weaker reason."""
        of_sides = self._sources.words(place, self._seen(place))
        words = frozenset[str]().union(*(one for lines in of_sides for one in lines.values()))
        keys: dict[str, _Key] = {name: (DEFINITION, name) for name in self._definitions if name in words}
        for path, (_, given) in self._sources.builds.items():
            keys |= {name: (BUILD, path) for name in given & words}
        for name, key in keys.items():
            costs = [
                sum(side.lines.get(at, 0.0) for at, used in lines.items() if name in used)
                for side, lines in zip((self._before, self._after), of_sides, strict=True)
            ]
            if costs[0] != costs[1]:
                return key
            self._weak.setdefault(place, key)
        return None

    def _line_changes(self, source: FunctionSource) -> float:
        """How much more the changed lines of a function cost than those that they replace."""
        before, after = self._before.lines, self._after.lines
        return sum(
            after.get((source.path, line.new), 0.0) for line in source.lines if line.mark == "+"
        ) - sum(before.get((source.path, line.old), 0.0) for line in source.lines if line.mark == "-")

    def _by_calls(self, place: FunctionKey, delta: float) -> dict[FunctionKey, float]:
        """How much of the change is due to more or fewer calls, by the caller that makes them."""
        if _node(place) in self._inlined_otherwise:
            return {}
        callers = self._calls.get(place, {})
        more = {caller: new - old for caller, (old, new) in callers.items() if caller != place}
        old, new = self._amounts(place)
        calls, _ = self._called(place)
        if old and calls:
            part = sum(more.values()) * old / calls
        else:
            part = delta if new and sum(more.values()) > 0 else 0.0
        if not part * delta > 0 or abs(part) < _DIRECT * abs(delta):
            return {}
        part = max(min(part, delta), 0.0) if delta > 0 else min(max(part, delta), 0.0)
        toward = {caller: one for caller, one in more.items() if one * delta > 0}
        whole = sum(toward.values())
        return {caller: part * one / whole for caller, one in toward.items()}

    def _elsewhere(self, place: FunctionKey, delta: float) -> _Key:
        """The cause of what a function costs more that nothing of itself explains."""
        if self._build and self._build[1]:
            return BUILD, self._build[0]
        active, still = None, None
        for one in self._nearest(place):
            key = self._own.get(one) or self._weak.get(one)
            if key is None:
                continue
            if active is None and self._is_active(one, delta):
                active = key
            still = still or key
        if active:
            return active
        if place in self._weak:
            return self._weak[place]
        if data := next((one.path for one in self._sources.others(set()) if _is_data(one)), ""):
            return DATA, data
        if still:
            return still
        return (BUILD, self._build[0]) if self._build else (NOTHING, "")

    def _is_active(self, place: FunctionKey, delta: float) -> bool:
        """Whether a function does something else than before itself: costs another amount, or calls others
        another number of times."""
        return abs(self._delta(place)) >= _ACTIVE * abs(delta) or place in self._calling

    def _nearest(self, place: FunctionKey) -> Iterator[FunctionKey]:
        """Functions by their distance in the graph of calls; of equal distance those that changed most."""
        seen, ring = {_node(place)}, [_node(place)]
        for _ in range(_FAR):
            following = {other for node in ring for other in self._neighbours[node]} - seen
            seen |= following
            places = {node: self._by_node.get(node, node) for node in following}
            ring = sorted(following, key=lambda node: (-abs(self._delta(places[node])), node))
            yield from (places[node] for node in ring)

    def _graph(self) -> Mapping[FunctionKey, set[FunctionKey]]:
        """Who calls whom in either version, in both directions, also by inlining; by bare names."""
        edges = [(_node(caller), _node(callee)) for callee, known in self._calls.items() for caller in known]
        for side in (self._before, self._after):
            edges += [(_node(caller), _node(place)) for place, one in side.functions.items()
                      for caller in one.callers]  # fmt: skip
        edges += [(_node(FunctionKey(*outer)), _node(FunctionKey(*inner)))
                  for inner, outer in self._sources.inlined_into()]  # fmt: skip
        found: dict[FunctionKey, set[FunctionKey]] = defaultdict(set)
        for one, other in edges:
            found[one].add(other)
            found[other].add(one)
        return found

    def _builds(self) -> tuple[str, bool] | None:
        """The first file of the diff that says how the program is built, one with other options at best, and
        whether it has these."""
        found = [(path, options and not given) for path, (options, given) in self._sources.builds.items()]
        return max(found, key=lambda one: one[1], default=None)

    def _cause(self, key: _Key, credits: Mapping[FunctionKey, float]) -> Cause:
        kind, name = key
        share = sum(credits.values()) / self._whole
        effects = sorted(credits, key=lambda place: -abs(credits[place]))
        if kind == FUNCTION:
            place = next(one for one in self._places if _location(one) == name)
            source = self._source[place]
            ends = (source.range.first, source.range.last) if source.range else (0, 0)
            told = [self._effect(one) for one in effects if one != place]
            old, new = self._amounts(place)
            return self._made(Cause(kind, place.name, source.path, *ends, old, new, share, tuple(told),
                                    source.lines))  # fmt: skip
        told = [self._effect(one) for one in effects]
        if kind == NOTHING:
            others = [one for one in self._sources.others(set()) if not _is_document(one)]
            others.sort(key=lambda one: (_MAY_BE.index(one.kind), not one.path.endswith(_HEADERS), one.path))
            name = listed([one.path for one in others], 5)
            return Cause(kind, name, "", 0, 0, 0.0, 0.0, share, tuple(told))
        old, new = (sum(one[side] for one in map(self._amounts, credits)) for side in (0, 1))
        if kind == DEFINITION:
            lines = self._definitions[name]
            numbers = [line.new for _, line in lines if line.new] or [line.old for _, line in lines]
            found = tuple(line for _, line in lines)
            return Cause(kind, name, lines[0][0], min(numbers), max(numbers), old, new, share, tuple(told),
                         found)  # fmt: skip
        found = tuple(line for line in self._sources.changed_lines(name) if line.mark != " ")
        return Cause(kind, "", name, 0, 0, old, new, share, tuple(told), found[:MOST_LINES])

    def _made(self, cause: Cause) -> Cause:
        """The cause with what each of its lines costs."""
        before, after = self._before.lines, self._after.lines
        amounts = tuple(
            after.get((cause.path, line.new), 0.0) if line.new else before.get((cause.path, line.old), 0.0)
            for line in cause.lines
        )
        return cause._replace(amounts=amounts if any(amounts) else ())

    def _effect(self, place: FunctionKey) -> Effect:
        calls = self._called(place)
        return Effect(place.name, _location(place), *self._amounts(place), calls if all(calls) else None)

    def _called(self, place: FunctionKey) -> tuple[float, float]:
        """How often a function is called before and after; 0 where calls are inlined in one version only."""
        times = self._calls.get(place, {}).values() if _node(place) not in self._inlined_otherwise else ()
        return sum(old for old, _ in times), sum(new for _, new in times)


_DOCUMENTS: Final = (
    ".md", ".rst", ".adoc", ".html", "license", "copying", "authors", "changelog", "readme", ".gitignore",
)  # fmt: skip
_HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".inl")
_MAY_BE: Final = ("source", "data", "build")
"""Kinds of files that may be a cause that nothing else tells of, the likeliest first."""


def _is_document(one: OtherFile) -> bool:
    return one.path.lower().endswith(_DOCUMENTS)


def _is_data(one: OtherFile) -> bool:
    return one.kind == "data" and not _is_document(one)


def _is_changed(source: FunctionSource) -> bool:
    return bool(source.lines) and not says_the_same(*sides_of(source.lines))


def _node(place: FunctionKey) -> FunctionKey:
    return FunctionKey(bare(place.name), place.source)


def _location(place: FunctionKey) -> str:
    return f"{place.source}:{place.name}" if place.source else place.name


# The causes in words.


def cause_sentence(one: Cause) -> str:
    """`find_open() executes 29x, 8.88 k instr -> 260 k instr [exact]; 3 lines of it changed in a.c:16-26; so
    process() executes 8x, 0.545 M instr -> 4.36 M instr, called 8x as often`."""
    if one.kind == NOTHING:
        may = f"; it may be what changed in {one.name}" if one.name else ""
        return f"nothing in the diff touches what costs more: {_effects(one.effects)}{may}"
    where = f"{one.path}:{one.first}" if one.first else one.path
    where += f"-{one.last}" if one.last > one.first else ""
    if one.kind == FUNCTION:
        count = plural(sum(line.mark != " " for line in one.lines), "line")
        amounts = _grown(one.before, one.after)
        head = f"{_shown(one.name)} executes {amounts} [exact]; {count} of it changed in {where}"
    elif one.kind == DEFINITION:
        head = f"{one.name} changed ({where})"
    else:
        what = "how the program is built" if one.kind == BUILD else "data"
        head = f"{one.path} changed ({what})"
    so = "that may be why" if one.kind == DATA else "so"
    return f"{head}; {so} {_effects(one.effects)}" if one.effects else head


def _effects(effects: Sequence[Effect]) -> str:
    """The largest ones, and the others together: ten callees of one cause are one line."""
    largest = max((abs(one.after - one.before) for one in effects), default=0.0)
    shown = [one for one in effects if abs(one.after - one.before) >= _DIRECT * largest][:_MOST_EFFECTS]
    told = [_effect_text(one) for one in shown]
    left = [one for one in effects if one not in shown]
    if sum(abs(one.after - one.before) for one in left) >= _DIRECT**2 * largest and left:
        before, after = sum(one.before for one in left), sum(one.after for one in left)
        told.append(f"{plural(len(left), 'more function')}: {_grown(before, after)}")
    return listed(told, _MOST_EFFECTS + 1)


def _effect_text(one: Effect) -> str:
    text = f"{_shown(one.function)} executes {_grown(one.before, one.after)}"
    if one.calls is not None and one.calls[0] != one.calls[1]:
        text += f", called {factor(one.calls[1] / one.calls[0])} as often"
    return text


def _grown(before: float, after: float) -> str:
    old, new = readable_pair(before, after, "instr")
    if round(before) == round(after):
        return f"{new}, as before"
    if not before:
        return f"{new}, nothing before"
    if not after:
        return f"nothing, {old} before"
    return f"{factor(after / before)}, {old} -> {new}"


def _shown(name: str) -> str:
    plain = bare(name) if "(" in name else name
    return f"{plain}()" if plain.isidentifier() else name


def without_effects(case: CaseReport) -> list[FunctionChange]:
    """The functions that no cause tells of: others, and those of which more than instructions changed."""
    of_causes = locations(case.causes)
    told = {effect.location for one in case.causes for effect in one.effects} | of_causes.keys()
    return [
        one
        for one in case.functions
        if one.location not in told
        or (one.location not in of_causes and one.growth is not None and one.growth.changed)
        or any(cost.metric not in _COUNTED and abs(cost.share) >= LEAST for cost in one.costs)
    ]


def location_of(one: Cause) -> str:
    """The location of the function that is a cause, as functions have it; empty of any other cause."""
    return f"{one.path.rpartition('/')[2]}:{one.name}" if one.kind == FUNCTION else ""


def locations(found: Iterable[Cause]) -> dict[str, int]:
    """The rank of each function that is a cause, by its location."""
    return {location_of(one): rank for rank, one in enumerate(found) if one.kind == FUNCTION}
