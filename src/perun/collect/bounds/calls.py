"""The cost of calls: what the loops of called functions cost, by the values of the arguments at each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perun.collect.bounds import expression
from perun.collect.bounds.bounding import Bounding
from perun.collect.bounds.constraints import Norm
from perun.collect.bounds.expression import INFINITY, ZERO, Expression, Maximum, number
from perun.collect.bounds.linear import Linear
from perun.collect.bounds.lowering.effects import Effects
from perun.collect.bounds.program import CallSite, Location, components

if TYPE_CHECKING:
    from perun.collect.bounds.front import Function


@dataclass(frozen=True)
class Callee:
    """A function whose calls count: the names of its parameters, and its total over them."""

    parameters: tuple[str, ...]
    cost: Expression


def parameters_of(function: Function) -> tuple[str, ...]:
    """The names of a function's parameters, empty where one has none."""
    arguments = function.node.decl.type.args
    return tuple(getattr(each, "name", None) or "" for each in getattr(arguments, "params", None) or ())


def recursive(effects: Mapping[str, Effects]) -> frozenset[str]:
    """The functions that call themselves, or others that do so for them."""
    numbers = {name: index for index, name in enumerate(sorted(effects))}
    pairs = [
        (numbers[name], numbers[called])
        for name in sorted(effects)
        for called in effects[name].calls if called in numbers
    ]  # fmt: skip
    component = components(numbers.values(), pairs)
    return frozenset(
        name for name, number in numbers.items()
        if any(source == number and component[source] == component[target] for source, target in pairs)
    )  # fmt: skip


def cost_of_calls(bounding: Bounding, called: Mapping[str, Callee]) -> Expression:
    """What all calls of a program cost: for each the times it is made, multiplied by the callee's total."""
    total = ZERO
    for site in bounding.system.program.calls:
        if total.infinite:
            break
        places = bounding.system.places(site.place)
        made = bounding.taken(
            frozenset(each.number for each in bounding.system.transitions if each.source in places)
        )
        if made != ZERO:
            total = total + made * _Cost(bounding, site, places).of(called[site.function].cost)
    return total


class _Cost:
    """The total of a callee, with the largest values that its arguments have at a call."""

    def __init__(self, bounding: Bounding, site: CallSite, places: list[Location]) -> None:
        self._bounding = bounding
        self._places = [each for each in places if any(each in pair for pair in bounding.system.pairs)]
        self._arguments = dict(site.arguments)

    def of(self, cost: Expression) -> Expression:
        """The bound of an expression over the callee's parameters, over the caller's inputs."""
        if cost.infinite:
            return INFINITY
        total = ZERO
        for monomial, coefficient in cost.terms:
            term = number(coefficient)
            for atom in monomial:
                term = term * (self._largest(atom) if isinstance(atom, Maximum) else INFINITY)
            total = total + term if coefficient > 0 else INFINITY
        return total

    def _largest(self, atom: Maximum) -> Expression:
        """The bound of a maximum of expressions, which is at least 0 in all totals."""
        found = [ZERO]
        for argument in atom.arguments:
            value = self._linear(argument)
            if value is None:
                found.append(self.of(argument))
            else:
                found += [self._bounding.value(Norm(value), place) for place in self._places]
        return expression.maximum(found)

    def _linear(self, argument: Expression) -> Linear | None:
        """A linear expression over parameters, over the variables that hold them; `None` if it is not one."""
        constant, terms = 0, []
        for monomial, coefficient in argument.terms:
            if not monomial:
                constant = coefficient
                continue
            name = monomial[0]
            if len(monomial) > 1 or not isinstance(name, str) or name not in self._arguments:
                return None
            terms.append((self._arguments[name], coefficient))
        return Linear(constant, terms)
