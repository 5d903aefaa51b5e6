"""Making the mutations of one iteration (manual 9.7), and remembering which rules brought something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from perun.core.errors import UsageError
from perun.fuzz import results
from perun.fuzz.corpus import Corpus, CorpusMember
from perun.fuzz.rules import MutationRule, mutate

# How many mutations a rule makes in one iteration: the four ways of `--mutations-per-rule` (manual 9.7).

LIMIT: Final = 100
"""Mutations of a rule in one iteration at most (FLPR in the manual)."""
_LEAST: Final = 0.1
"""Probability of a rule that has brought little: it may bring something later."""

Strategy = Callable[[int, int, Random], int]
"""Gets the successes of the rule, those of all rules and random numbers; the number of mutations."""


def unitary(successes: int, total: int, random: Random) -> int:
    """One, whatever the rule has brought."""
    return 1


def proportional(successes: int, total: int, random: Random) -> int:
    """One more than the rule has had successes."""
    return min(successes + 1, LIMIT)


def probabilistic(successes: int, total: int, random: Random) -> int:
    """One or none, by the share of the rule in all successes."""
    return int(random.random() <= _probability(successes, total))


def mixed(successes: int, total: int, random: Random) -> int:
    """As many as :func:`proportional` or none, by the share of the rule in all successes."""
    return proportional(successes, total, random) * probabilistic(successes, total, random)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    one.__name__: one for one in (unitary, proportional, probabilistic, mixed)
}
DEFAULT: Final = "mixed"


def _probability(successes: int, total: int) -> float:
    return max(successes / total, _LEAST) if total else 1.0


_MORE: Final = (0, 0, 0, 1, 1, 3, 7)
"""Further rules that are applied to the same mutation: some inputs are slow only where several things meet,
and what is between is not faster than the parent."""
_OTHERS: Final = 8
"""Members whose parts rules may take."""
_COST: Final = 200
"""Runs of the seeds that one iteration may cost, judged by the executed lines of the parent. A parent that
takes a second has few children, so that the others are not starved."""
_CHEAP: Final = 200_000
"""Executed lines that take less time than all around a run."""


def cut(data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
    """Rule C.1: leave out the end, up to half of it."""
    return data[: random.randrange((len(data) + 1) // 2, len(data))] if len(data) > 1 else None


CUT: Final = MutationRule("C.1", "cut", "Leave out the end of the input.", "splice", cut)
"""Where longer inputs are much slower, one of a length in between is slow but ends."""


@dataclass
class RuleTally:
    """What a rule has done. :ivar successes: `stats` of the manual."""

    rule: MutationRule
    applied: int = 0
    increases: int = 0
    degradations: int = 0

    @property
    def successes(self) -> int:
        """Increases of the coverage, and degradations."""
        return self.increases + self.degradations

    def result(self) -> results.Rule:
        """It as a part of the results."""
        rule = self.rule
        numbers = (self.applied, self.increases, self.degradations)
        return results.Rule(rule.label, rule.name, rule.description, *numbers)


class Mutation(NamedTuple):
    """A new input, and the labels of the rules that made it of its parent."""

    data: bytes
    parent: CorpusMember
    rules: tuple[str, ...]


class Mutator:
    """Makes mutations.

    :param strategy: name of one of :data:`perun.fuzz.mutating.STRATEGIES`. :param limit: bytes at most.
    """

    def __init__(self, rules: Sequence[MutationRule], strategy: str, limit: int, random: Random) -> None:
        self.tallies = {rule.label: RuleTally(rule) for rule in (*rules, CUT)}
        self._strategy = STRATEGIES[strategy]
        self._limit = limit
        self._random = random

    def mutations(self, parent: CorpusMember, corpus: Corpus, base: int) -> Iterator[Mutation]:
        """Those of one iteration; made one by one, so that they may be stopped.

        :param base: executed lines of the seeds.
        """
        others = corpus.others(self._random, _OTHERS)
        total = sum(tally.successes for tally in self.tallies.values())
        planned = [
            tally
            for tally in self.tallies.values()
            for _ in range(self._strategy(tally.successes, total, self._random))
        ]
        self._random.shuffle(planned)
        affordable = _COST * max(base, _CHEAP) / max(parent.lines, 1)
        most = int(affordable + self._random.random())
        whole = parent.data
        for tally in planned[:most]:
            made = self._mutate(whole, tally, others)
            if made is not None:
                yield Mutation(made[0], parent, made[1])

    def credit(self, rules: Sequence[str], *, degradations: bool = False) -> None:
        """A mutation that these rules made has raised the coverage, or is a degradation."""
        for label in set(rules):
            tally = self.tallies.get(label)
            if tally is not None:
                tally.increases += not degradations
                tally.degradations += degradations

    @property
    def best(self) -> list[RuleTally]:
        """The rules that brought something, the best first."""
        found = [tally for tally in self.tallies.values() if tally.successes]
        return sorted(found, key=lambda tally: (-tally.successes, tally.rule.label))

    def _mutate(
        self, whole: bytes, first: RuleTally, others: Sequence[bytes]
    ) -> tuple[bytes, tuple[str, ...]] | None:
        """A new input, and the rules that made it."""
        tallies = list(self.tallies.values())
        weights = [1 + tally.successes for tally in tallies]
        more = self._random.choices(tallies, weights, k=self._random.choice(_MORE))
        data, labels = whole, []
        for tally in (first, *more):
            made = mutate(tally.rule, data, self._random, others, self._limit)
            if made:
                data = made
                labels.append(tally.rule.label)
                tally.applied += 1
        return (data, tuple(labels)) if labels and data != whole else None


# How large mutations may get: `--max-size`, `--max-size-increase`, `--max-size-ratio` (manual 10.3.1).

INCREASE: Final = 1_000_000


class SizeLimit(NamedTuple):
    """The limit as the user gives it: at most one of these, else :data:`INCREASE` more than the seeds.

    :param absolute: bytes. :param increase: bytes more than the largest seed. :param ratio: times that.
    """

    absolute: int | None = None
    increase: int | None = None
    ratio: float | None = None

    def check(self) -> None:
        """:raises UsageError: if they contradict each other."""
        options = {
            "--max-size": self.absolute,
            "--max-size-increase": self.increase,
            "--max-size-ratio": self.ratio,
        }
        given = [name for name, value in options.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} limit the same size", "give one of them")

    def of(self, largest: int) -> int:
        """Bytes of the largest mutation, where the largest seed has so many; no less than that."""
        if self.absolute is not None:
            return max(largest, self.absolute)
        if self.ratio is not None:
            return max(largest, int(largest * self.ratio))
        return largest + (INCREASE if self.increase is None else self.increase)
