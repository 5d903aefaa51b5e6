"""The baselines of the profiles of a version: those of the same configuration in the nearest ancestor.

All profiles of a version are looked for in one walk, as history may be long and a version may have thousands.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from perun.errors import DamagedStore, ProfileError
from perun.plugin.api import MinorVersion
from perun.porcelain import lookup
from perun.porcelain.check.compare import Pair
from perun.porcelain.repository import Repository
from perun.profile.factory import Configuration
from perun.profile.helpers import ProfileInfo
from perun.profile.session import are_pairs

Candidates = Callable[[], Iterable[MinorVersion]]
"""The versions that may hold the baseline, the nearest first."""
COUNT_CONFIGURATIONS_AFTER: Final = 500
"""Versions with profiles that a walk looks at before it pays to find out what all the others have."""
KEPT_LISTS: Final = 4096
"""Versions whose lists of profiles stay in memory."""

K = TypeVar("K")


class Baselines:
    """Looks for baselines among the registered profiles of a repository.

    :param force: whether a profile of the same collector does where a version has none of the configuration.
    :param among: the versions that are asked for, by their checksums; without them, all are looked through.
    :ivar with_profiles: those of the versions that have profiles.
    """

    def __init__(self, repo: Repository, *, force: bool, among: Collection[str] | None = None) -> None:
        self._repo = repo
        self._force = force
        self._among = among
        self.refresh()

    def refresh(self) -> None:
        """Read again which versions have profiles, after some were registered."""
        indexes = self._repo.store.indexes
        asked = indexes.minors() if self._among is None else filter(indexes.has, self._among)
        self.with_profiles = frozenset(asked)
        self._listed: OrderedDict[str, _Listed] = OrderedDict()
        self._gone: set[str] = set()
        self._others: _ConfigurationCounts | None = None

    def profiles(self, checksum: str) -> list[ProfileInfo]:
        """The profiles of the version.

        :raises DamagedStore: where its index cannot be read.
        """
        return self._list(checksum).profiles if checksum in self.with_profiles else []

    def _list(self, checksum: str) -> _Listed:
        known = self._listed.get(checksum)
        if known is None:
            profiles = self._without_superseded(checksum)
            by_configuration = newest_first((info.configuration, info) for info in profiles)
            known = self._listed[checksum] = _Listed(profiles, by_configuration)
            if len(self._listed) > KEPT_LISTS:
                self._listed.popitem(last=False)
        return known

    def _without_superseded(self, checksum: str) -> list[ProfileInfo]:
        """The profiles of the version without incomplete ones that were measured again."""
        infos = lookup.registered(self._repo, checksum)
        if len(infos) < 2:
            return infos
        facts = self._repo.store.facts.of_version(checksum)
        lacking = {info for info in infos if info.checksum in facts and facts[info.checksum].incomplete}
        whole = {info.configuration for info in infos if info not in lacking} if lacking else ()
        return [info for info in infos if info not in lacking or info.configuration not in whole]

    def exclude(self, checksum: str) -> None:
        """The version is no candidate from now on."""
        if checksum in self.with_profiles and checksum not in self._gone:
            self._gone.add(checksum)
            if self._others is not None:
                self._others.remove(checksum)
            self._listed.pop(checksum, None)

    def find(
        self, targets: Sequence[ProfileInfo], candidates: Candidates
    ) -> list[Pair | DamagedStore | None]:
        """For each target its pair, what is damaged before one was found, or None where there is none.

        Of several profiles of the configuration in one version that is the baseline that was measured side by
        side with the target; else the newest is, and the others are pooled with it.
        """
        found: list[Pair | DamagedStore | None] = [None] * len(targets)
        waiting = _OpenTargets(targets, self._force)
        left = len(self.with_profiles) - len(self._gone)
        looked_at = 0
        for version in candidates() if waiting and left else ():
            if version.checksum not in self.with_profiles:
                continue
            looked_at += 1
            if looked_at == COUNT_CONFIGURATIONS_AFTER:
                self._drop_without_baseline(waiting)
            if not waiting:
                break
            try:
                listed = self._list(version.checksum)
            except DamagedStore as problem:
                # What is beyond may not be the nearest: nothing is better than a wrong answer.
                for number in waiting.numbers():
                    found[number] = problem
                break
            for number, (newest, *others) in waiting.take(listed):
                beside = self._side_by_side(targets[number], listed.profiles)
                chosen = beside or newest
                more = tuple(one for one in (newest, *others) if one is not chosen)
                found[number] = Pair(targets[number], chosen, version, more_baselines=more)
            left -= 1
            if not waiting or not left:  # of a long history most may have no profile
                break
        return found

    def _side_by_side(self, target: ProfileInfo, profiles: Sequence[ProfileInfo]) -> ProfileInfo | None:
        """The one of several profiles of the configuration that is of the same session as the target."""
        alike = [info for info in profiles if info.configuration == target.configuration]
        if len(alike) < 2:
            return None
        try:
            head = lookup.head(self._repo, target)
            return next((one for one in alike if are_pairs(lookup.head(self._repo, one), head)), None)
        except ProfileError:
            return None  # the comparison says what cannot be read

    def _drop_without_baseline(self, waiting: _OpenTargets) -> None:
        """Drop the targets that no version has a baseline for."""
        if self._force:
            return
        if self._others is None:
            self._others = _ConfigurationCounts(self.with_profiles - self._gone, self.profiles)
        waiting.drop(self._others.lack)


class _Listed(NamedTuple):
    """The profiles of a version, and those of each configuration, the newest first."""

    profiles: list[ProfileInfo]
    by_configuration: dict[Configuration, list[ProfileInfo]]


class _OpenTargets:
    """Targets whose baseline is looked for, by their configurations."""

    def __init__(self, targets: Sequence[ProfileInfo], force: bool) -> None:
        self._all = targets
        self._force = force
        self._targets: dict[Configuration, list[int]] = {}
        for number, target in enumerate(targets):
            self._targets.setdefault(target.configuration, []).append(number)

    def __len__(self) -> int:
        return len(self._targets)

    def numbers(self) -> Iterator[int]:
        """The positions of the targets without a baseline so far."""
        return chain.from_iterable(self._targets.values())

    def drop(self, condition: Callable[[Configuration], bool]) -> None:
        """Forget the targets whose configuration fulfils the condition."""
        self._targets = {key: numbers for key, numbers in self._targets.items() if not condition(key)}

    def take(self, listed: _Listed) -> Iterator[tuple[int, list[ProfileInfo]]]:
        """The targets that find baselines among these profiles, with them, the newest first.

        These targets are no longer open.
        """
        for configuration, baselines in listed.by_configuration.items():
            if configuration in self._targets:
                for number in self._targets.pop(configuration):
                    yield number, baselines
        if self._force and self._targets:
            alike = newest_first((info.head.collector, info) for info in listed.profiles)
            for number in list(self.numbers()):
                target = self._all[number]
                if target.head.collector in alike:
                    self._targets.pop(target.configuration, None)
                    yield number, alike[target.head.collector][:1]


class _ConfigurationCounts:
    """How many of the versions that may still be candidates have a profile of each configuration.

    :ivar _unreadable: versions of them whose profiles are not known, as their index is damaged.
    """

    def __init__(self, versions: Iterable[str], profiles: Callable[[str], list[ProfileInfo]]) -> None:
        self._profiles = profiles
        self._counts: Counter[Configuration] = Counter()
        self._unreadable = 0
        for checksum in versions:
            self._change(checksum, 1)

    def remove(self, checksum: str) -> None:
        """The version is a candidate no more."""
        self._change(checksum, -1)

    def lack(self, configuration: Configuration) -> bool:
        """Whether none of them can have such a profile."""
        return not self._unreadable and not self._counts[configuration]

    def _change(self, checksum: str, by: int) -> None:
        try:
            profiles = self._profiles(checksum)
        except DamagedStore:
            self._unreadable += by
            return
        for configuration in {info.configuration for info in profiles}:
            self._counts[configuration] += by


def newest_first(profiles: Iterable[tuple[K, ProfileInfo]]) -> dict[K, list[ProfileInfo]]:
    """The profiles with each key, those keys first that come first.

    Of the same second the one that was listed last is the newest.
    """
    found: dict[K, list[ProfileInfo]] = {}
    for key, info in profiles:
        found.setdefault(key, []).append(info)
    for several in found.values():
        several.reverse()
        several.sort(key=lambda info: info.time, reverse=True)
    return found
