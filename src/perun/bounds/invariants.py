"""Invariants of locations: affine equalities (Karr, 1976) and inductive guards (Houdini; Flanagan, Leino,
2001)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import lcm

from perun.bounds.paths import System, Transition, afterwards, is_known
from perun.bounds.program import Linear, Location, components, variable
from perun.bounds.solver import Inequalities, Solver
from perun.bounds.steps import take

Vector = dict[str, Fraction]
MAX_CANDIDATES = 40
"""The most guards that are tried as an invariant of one location."""


class _Space:
    """An affine space, as equalities `row = 0` in echelon form; `1` is the name of the constant."""

    def __init__(self, rows: Iterable[Vector] = ()) -> None:
        self.rows: dict[str, Vector] = {}
        for row in rows:
            self.add(row)

    def reduced(self, row: Mapping[str, Fraction]) -> Vector:
        """A row with the pivots of the space eliminated."""
        take(1 + len(self.rows) // 8)
        result = {name: factor for name, factor in row.items() if factor}
        for pivot, known in self.rows.items():
            factor = result.get(pivot)
            if factor:
                take(len(known))
                for name, other in known.items():
                    result[name] = result.get(name, Fraction(0)) - factor * other
        return {name: factor for name, factor in result.items() if factor}

    def add(self, row: Mapping[str, Fraction]) -> bool:
        """Add an equality; false where it is no news."""
        rest = self.reduced(row)
        names = sorted(name for name in rest if name != "1")
        if not names:
            return False
        pivot = max(names, key=_rank)
        scaled = {name: factor / rest[pivot] for name, factor in rest.items()}
        for other, known in self.rows.items():
            factor = known.get(pivot)
            if factor:
                take(len(known) + len(scaled))
                merged = {name: known.get(name, Fraction(0)) - factor * scaled.get(name, Fraction(0))
                          for name in {*known, *scaled}}  # fmt: skip
                self.rows[other] = {name: value for name, value in merged.items() if value}
        self.rows[pivot] = scaled
        return True


def _rank(name: str) -> tuple[bool, bool, str]:
    """Which variable of an equality is replaced: unknown values first, inputs last."""
    return (name.startswith("?"), not name.endswith("@"), name)


def _row(value: Linear) -> Vector:
    row = {name: Fraction(factor) for name, factor in value.terms}
    row["1"] = Fraction(value.constant)
    return row


class Equalities:
    """The affine equalities that hold at each location."""

    def __init__(self, system: System) -> None:
        self._spaces: dict[Location, _Space] = {system.program.entry: _Space()}
        variables = sorted({name for each in system.transitions for name in each.updates})
        work = [system.program.entry]
        after: dict[Location, list[Transition]] = {}
        for each in system.transitions:
            after.setdefault(each.source, []).append(each)
        while work:
            place = work.pop(0)
            for each in after.get(place, ()):
                if self._merge(each, variables) and each.target not in work:
                    work.append(each.target)

    def _merge(self, transition: Transition, variables: list[str]) -> bool:
        """Join what holds after a transition into its target; whether that lost an equality there."""
        here = self._spaces[transition.source]
        known = self._spaces.get(transition.target)
        if known is None:
            self._spaces[transition.target] = self._image(here, transition, variables)
            return True
        if not known.rows:
            return False
        image = self._image(here, transition, variables)
        if all(not image.reduced(row) for row in known.rows.values()):
            return False
        self._spaces[transition.target] = _join(known, image)
        return True

    def _image(self, space: _Space, transition: Transition, variables: list[str]) -> _Space:
        """The equalities after a transition: those over new values that follow, with the old ones
        eliminated."""
        full = _Space()
        rows = list(space.rows.values())
        equal = {guard.terms: guard.constant for guard in transition.guards}
        for guard in transition.guards:
            if equal.get((-guard).terms) == -guard.constant:
                rows.append(_row(guard))
        renamed = [{_old(name, transition): factor for name, factor in row.items()} for row in rows]
        for name, value in transition.updates.items():
            new = {_old(each, transition): factor for each, factor in _row(-value).items()}
            new[name] = new.get(name, Fraction(0)) + 1
            renamed.append(new)
        for row in renamed:
            full.add(row)
        return _Space(row for row in full.rows.values() if not any(name.startswith("?") for name in row))

    def normal(self, place: Location, value: Linear) -> Linear:
        """An expression in its normal form at a location; the same where that has no integer coefficients."""
        space = self._spaces.get(place)
        if space is None or not space.rows:
            return value
        row = space.reduced(_row(value))
        if any(factor.denominator != 1 for factor in row.values()):
            return value
        constant = int(row.pop("1", Fraction(0)))
        return Linear(constant, ((name, int(factor)) for name, factor in row.items()))

    def facts(self, place: Location) -> list[Linear]:
        """The equalities of a location, as pairs of inequalities."""
        found = []
        space = self._spaces.get(place)
        for row in space.rows.values() if space is not None else ():
            scale = lcm(*(factor.denominator for factor in row.values()))
            constant = int(row.get("1", Fraction(0)) * scale)
            value = Linear(constant, ((name, int(f * scale)) for name, f in row.items() if name != "1"))
            found += [value, -value]
        return found


def _old(name: str, transition: Transition) -> str:
    """The name of a variable's value before a transition: one to be eliminated, if it changes."""
    return f"?old {name}" if name in transition.updates else name


def _join(one: _Space, other: _Space) -> _Space:
    """The smallest affine space around two: combinations of rows of the first that hold in the second."""
    names = sorted({name for space in (one, other) for row in space.rows.values() for name in row})
    rows = list(one.rows.values())
    residues = [other.reduced(row) for row in rows]
    # Eliminate the residues: what remains of the rows with none holds in both.
    combined: list[tuple[Vector, Vector]] = list(zip(residues, rows, strict=True))
    for name in names:
        pivot = next((pair for pair in combined if pair[0].get(name)), None)
        if pivot is None:
            continue
        combined.remove(pivot)
        combined = [_eliminated(pair, pivot, name) for pair in combined]
    return _Space(row for residue, row in combined if not residue)


def _eliminated(
    pair: tuple[Vector, Vector], pivot: tuple[Vector, Vector], name: str
) -> tuple[Vector, Vector]:
    factor = pair[0].get(name, Fraction(0)) / pivot[0][name]
    if not factor:
        return pair
    result = []
    take(sum(map(len, (*pair, *pivot))))
    for value, other in zip(pair, pivot, strict=True):
        merged = {each: value.get(each, Fraction(0)) - factor * other.get(each, Fraction(0))
                  for each in {*value, *other}}  # fmt: skip
        result.append({each: number for each, number in merged.items() if number})
    return result[0], result[1]


class Invariants:
    """What holds at each location, of which the paths there say nothing themselves."""

    def __init__(self, system: System, solver: Solver) -> None:
        self.equalities = Equalities(system)
        self._solver = solver
        self._ranges = _range_facts(system)
        self._equal = {place: self.equalities.facts(place) for place in _places(system)}
        self._guards: dict[Location, list[Linear]] = {place: [] for place in _places(system)}
        self._facts: dict[int, Inequalities] = {}
        self._houdini(system)

    def at(self, place: Location) -> list[Linear]:
        """Facts at a location."""
        return [*self._equal.get(place, ()), *self._guards.get(place, ()), *self._ranges]

    def before(self, transition: Transition) -> Inequalities:
        """Facts that hold where a transition is taken."""
        if transition.number not in self._facts:
            self._facts[transition.number] = Inequalities([*transition.guards, *self.at(transition.source)])
        return self._facts[transition.number]

    def _houdini(self, system: System) -> None:
        """Start with all candidates and delete those that a transition into their location does not keep."""
        candidates = _candidates(system)
        self._guards = {
            place: [] if place == system.program.entry else list(candidates.get(place, ()))
            for place in self._guards
        }
        changed = True
        while changed:
            changed = False
            for each in system.transitions:
                wanted = self._guards[each.target]
                if not wanted:
                    continue
                kept = self._kept(each, wanted)
                if len(kept) < len(wanted):
                    self._guards[each.target] = kept
                    changed = True

    def _kept(self, transition: Transition, wanted: list[Linear]) -> list[Linear]:
        """Those guards that hold after a transition."""
        assumed = set(self._guards[transition.source])
        facts: Inequalities | None = None
        kept = []
        for guard in wanted:
            after = transition.after(guard)
            if after not in assumed:
                if facts is None:
                    facts = Inequalities([*transition.guards, *self.at(transition.source)])
                if not self._solver.entails(facts, after, exact=False):
                    continue
            kept.append(guard)
        return kept


def _places(system: System) -> list[Location]:
    return sorted({place for pair in system.pairs for place in pair})


def _range_facts(system: System) -> list[Linear]:
    mentioned = {name for each in system.transitions for name in each.updates}
    mentioned |= {name for each in system.transitions for guard in each.guards for name, _ in guard.terms}
    for each in system.transitions:
        mentioned |= {name for value in each.updates.values() for name, _ in value.terms}
    found = []
    for name in sorted(mentioned & set(system.ranges)):
        low, high = system.ranges[name]
        if low is not None:
            found.append(variable(name) - low)
        if high is not None:
            found.append(-variable(name) + high)
    return found


def _candidates(system: System) -> dict[Location, list[Linear]]:
    """Guards that may hold at locations other than those where they are tested, weaker ones by one, and the
    order of variables; for each location those first that come from its own loops."""
    component = components([system.program.entry], system.pairs)
    found: dict[int, dict[Linear, None]] = {each: {} for each in component.values()}
    for each in system.transitions:
        if each.source != system.program.entry:
            for guard in each.guards:
                if is_known(guard) or is_known(guard := afterwards(each, guard)):
                    found[component[each.source]].update({guard: None, guard + 1: None})
    for each in system.transitions:
        own = found[component[each.target]]
        for name, value in each.updates.items():
            if value.is_constant and 0 <= value.constant <= 1:
                own[variable(name) - value.constant] = None
            elif len(value.terms) == 1 and value.terms[0][1] == 1:
                own.update(dict.fromkeys(_ordered(name, value, each)))
    everything = [each for own in found.values() for each in own]
    chosen = {
        number: list(dict.fromkeys([*own, *everything]))[:MAX_CANDIDATES] for number, own in found.items()
    }
    return {place: chosen[component[place]] for place in _places(system)}


def _ordered(name: str, value: Linear, transition: Transition) -> list[Linear]:
    """That a variable which gets the value of another, and a number, is at least that one, or at most."""
    [(other, _)] = value.terms
    if other == name or other.startswith("?"):
        return []
    distance = value - transition.updates.get(other, variable(other))
    if not distance.is_constant:
        return []
    order = variable(name) - variable(other)
    return [*([order] if distance.constant >= 0 else []), *([-order] if distance.constant <= 0 else [])]
