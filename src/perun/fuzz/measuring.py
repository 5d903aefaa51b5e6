"""Measuring what was found beside its seed (manual 9.5): the best first, in a share of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from perun.fuzz.corpus import Member
from perun.fuzz.findings import Findings, Test
from perun.fuzz.mutating import Mutator
from perun.fuzz.results import Confirmation
from perun.fuzz.seeds import Settings

_ASIDE: Final = 0.25
"""Share of the time for tests of a campaign that goes on."""
_ROUNDS: Final = 2
"""Times as many inputs are measured at the end as are enough for a round before."""
_RUNS: Final = 6
"""Runs of an input that a test takes at least."""


class Measuring:
    """Measures members; what that says raises their scores, and those of the rules that made them.

    :param test: measures one. :param seconds: since the campaign began.
    """

    def __init__(
        self, found: Findings, mutator: Mutator, test: Test, settings: Settings, seconds: Callable[[], float]
    ) -> None:
        self._found = found
        self._mutator = mutator
        self._test = test
        self._settings = settings
        self._seconds = seconds
        self._spent = 0.0

    def between(self) -> Iterator[Member]:
        """Measure the best of what is new; each once it was, as long as all tests take their share of the
        time at most."""
        for member in self._candidates()[: self._settings.interesting]:
            now = self._seconds()
            allowed = min(_ASIDE * now - self._spent, self._settings.seconds - now)
            if allowed <= 0:
                return
            if _RUNS * member.seconds > allowed:
                continue
            self.measure(member, allowed)
            yield member

    def rest(self, seconds: float) -> Iterator[Member]:
        """Measure what was not yet for about so many seconds; each once it was."""
        deadline = self._seconds() + seconds
        for member in self._candidates()[: _ROUNDS * self._settings.interesting]:
            left = deadline - self._seconds()
            if left <= 0:
                return
            if _RUNS * member.seconds > left / 2:
                continue  # others can be measured in that time
            self.measure(member, left)
            yield member

    def measure(self, member: Member, seconds: float) -> None:
        """Measure one for about so many seconds; one that fails then is a fault, or a hang."""
        confirmation = self._tested(member, seconds)
        if confirmation is not None:
            self._confirm(member, confirmation)

    def try_one(self, member: Member, seconds: float) -> bool:
        """Measure one that nothing is known of; whether it is slower, and so one of those that were found."""
        confirmation = self._tested(member, seconds)
        if confirmation is None or confirmation.rate <= 0:
            return False
        self._found.add(member)
        self._confirm(member, confirmation)
        return True

    def _tested(self, member: Member, seconds: float) -> Confirmation | None:
        begun = self._seconds()
        tested = self._test(member, self._found.seeds[member.seed], seconds)
        self._spent += self._seconds() - begun
        if tested.outcome != "ok":
            member.ending = tested.ending
            self._found.add_failure(tested.outcome, member)
            return None
        return tested.confirmation

    def _confirm(self, member: Member, confirmation: Confirmation) -> None:
        self._found.confirm(member, confirmation)
        if member.pcr > 0:
            self._mutator.credit(member.rules, degradations=True)

    def _candidates(self) -> list[Member]:
        """What is to be measured, the best first; of the same ratio the smaller one."""
        found = self._found.interesting
        new = [one for one in found if one.confirmation is None and not one.ending]
        return sorted(new, key=lambda one: (-one.icov, one.size, one.number))
