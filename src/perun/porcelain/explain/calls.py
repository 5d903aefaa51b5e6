"""The calls of functions that are suspected: which functions these are, and what a recording says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from perun.porcelain.explain import costs
from perun.porcelain.explain.costs import OUTSIDE, Place
from perun.porcelain.explain.data import Cost
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.porcelain.explain.gathered import Gathered, ProfilePair
    from perun.porcelain.explain.plan import ExplainOptions
    from perun.porcelain.explain.sources import Sources
    from perun.profile.factory import Profile

MOST: Final = 8
"""Functions whose calls are recorded."""


def suspects(found: Gathered, sources: Sources, options: ExplainOptions) -> list[Place]:
    """The functions of the project whose instructions changed, the largest change first; where instructions
    are not known, those that lines of the diff are in. Only those of the location, where there is one."""
    pair = found.pairs.get("instructions")
    if pair is None:
        return [one for one in sources.changed_functions if options.means(one)][:MOST]
    before, after = (costs.instructions(profile, sources.is_own) for profile in pair[:2])
    whole = sum(spent.amount for spent in before.values())
    nothing = costs.Spent(0.0, {}, {})
    changes = {
        place: abs(after.get(place, nothing).amount - before.get(place, nothing).amount)
        for place in dict.fromkeys([*before, *after])
        if place.name != OUTSIDE and options.means(place)
    }
    least = 0.0 if options.location else options.threshold * whole
    ranked = sorted(changes, key=lambda place: -changes[place])
    return [place for place in ranked if changes[place] and changes[place] >= least][:MOST]


def named(found: Gathered, places: Sequence[Place], side: int) -> list[str]:
    """Those of the functions that the program of a side has, by its call graph where it is known, else by its
    instructions. :param side: 0 for the base, 1 for the head."""
    if found.graphs is not None:
        functions = found.graphs[side].functions.values()
        known = {name for one in functions for name in (one.uid, one.symbol, one.name)}
    elif "instructions" in found.pairs:
        pair = found.pairs["instructions"]
        groups = (pair.base, pair.head)[side].groups()
        known = {costs.place_of(group.constants.get("uid", "")).name for group in groups}
    else:
        return [place.name for place in places]
    return [place.name for place in places if place.name in known]


def covers(pair: ProfilePair, places: Sequence[Place]) -> bool:
    """Whether recordings have calls of all these functions, those that one side does not have left out."""
    sides = [set(counts(profile)) for profile in pair[:2]]
    return all(place.name in sides[0] or place.name in sides[1] for place in places)


def counts(profile: Profile) -> Counter[str]:
    """How often each function was called."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        found[str(flatten(group.constants.get("uid", "")))] += group.size
    return found


def changed_counts(pair: ProfilePair) -> Iterator[tuple[str, Cost]]:
    """The functions that both sides have and that are called more or less often; by name."""
    before, after = (counts(profile) for profile in pair[:2])
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            yield name, Cost("calls", "", before[name], after[name], before[name])
