"""What a version measured, beside what was measured before: the same series in its ancestors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import DamagedStore, PerunError, VersionControlError
from perun.measurement.difference import Rules
from perun.measurement.estimate import Estimate, Headline, Kind, Point, estimate, point_of_headlines
from perun.measurement.noise import WINDOW, Kept
from perun.measurement.verdict import Verdict, along, confirmed, never
from perun.profile.head import Configuration, ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.repository import walking
from perun.repository.repository import Repository
from perun.store.summaries import READ_BY_LISTS, ProfileSummary, key_of, profile_summary_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# What is known of listed profiles: from the cache of facts, else read from the profiles themselves.
#
# A store of an old release has no facts, nor has one whose caches were deleted. So that lists show values
# there too, a bounded number of profiles is read, and noted: the next list reads the next ones.

MOST_READ: Final = 1000
"""Profiles that one command reads for their facts."""
MOST_BYTES: Final = 32 * READ_BY_LISTS
"""Bytes of their files, as they are stored. One of more than :data:`READ_BY_LISTS` stays unknown until `perun
fsck --repair`."""


class KnownSummaries:
    """The facts of profiles for one command. It takes no lock, and never waits.

    :param most: profiles that are read at most because the cache lacks them.
    :ivar unread: how many profiles stayed unknown.
    """

    def __init__(self, repo: Repository, most: int = MOST_READ, most_bytes: int = MOST_BYTES) -> None:
        self._store = repo.store
        self._most = most
        self._bytes = most_bytes
        self.unread = 0

    def of(self, infos: Iterable[ProfileInfo]) -> dict[ProfileInfo, ProfileSummary]:
        """The facts of profiles, as far as they are known or the bounds allow to read them."""
        keys = {info: key_of(info) for info in infos}
        noted = self._store.profile_summaries.of(keys.values())
        found: dict[ProfileInfo, ProfileSummary] = {}
        new: dict[str, ProfileSummary] = {}
        for info, key in keys.items():
            fact = noted.get(key)
            if fact is None:
                fact = self._read(info) if self._most > 0 else None
                if fact is None:
                    self.unread += 1
                    continue
                new[key] = fact
            found[info] = fact
        self._store.profile_summaries.keep(new)
        return found

    def _read(self, info: ProfileInfo) -> ProfileSummary | None:
        store = self._store
        path = str(store.object_path(info.checksum)) if info.checksum else info.realpath
        try:
            size = store.files.state(path).st_size
            if size > min(self._bytes, READ_BY_LISTS):
                return None
            self._most -= 1
            self._bytes -= size
            return profile_summary_of(
                store.objects.get(info.checksum) if info.checksum else store.pending.load(path)
            )
        except (PerunError, OSError):
            return None  # whoever needs the profile itself says what is wrong with it


MOST_VERSIONS: Final = 2000
"""Versions of the history that are looked at before the search ends."""


class HeadlineSeries(NamedTuple):
    """A series of a configuration on machines of one class; of what is counted, on any machine."""

    configuration: Configuration
    machine: str
    metric: str
    unit: str


class SeriesValue(NamedTuple):
    """What one version measured of a series: the point of all its profiles.

    :param processor: of a command that the processor limits, what it used of that.
    """

    metric: str
    unit: str
    larger_is_better: bool
    point: Point
    processor: Point | None = None

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return estimate(self.point)

    @property
    def by_processor(self) -> SeriesValue:
        """The same by the clock that the processor has of it, if there is one."""
        if self.processor is None:
            return self
        return self._replace(metric="cpu time", point=self.processor)


Line = Sequence[tuple[str, SeriesValue]]
"""The ancestors that have a series, by their checksums and with its values: the nearest first, in the order
of :func:`perun.repository.walking.ancestors`."""


class BaselineComparison(NamedTuple):
    """A value beside the version before.

    :param verdict: None where no version before has the series. :param since: that version.
    :param confirmed: as of :func:`perun.measurement.verdict.confirmed`.
    """

    value: SeriesValue
    verdict: Verdict | None = None
    since: str = ""
    confirmed: bool = True


def rules_of(repo: Repository) -> Rules:
    """Where the words begin in this repository."""
    return Rules.of(repo.config.section("degradation"))


def compare_with_line(
    value: SeriesValue,
    line: Line,
    rules: Rules,
    *,
    again: Callable[[], bool] = never,
    kept: Kept | None = None,
    tested: bool = False,
) -> BaselineComparison:
    """The value beside the first one of the line, with what the others tell of the noise.

    Where the processor limits both, its clock is asked, which is the more precise one.

    :param again: whether a newer version has seen the same.
    :param kept: and :param tested: as of :func:`perun.measurement.verdict.along`.
    """
    if value.processor is not None and (not line or line[0][1].processor is not None):
        value = value.by_processor
        points = [one.processor for _, one in line if one.processor is not None]
    else:
        points = [one.point for _, one in line]
    if not points:
        return BaselineComparison(value)
    verdict = along(
        value.point, points, rules, larger_is_better=value.larger_is_better, kept=kept, tested=tested
    )
    sure = verdict is None or confirmed(verdict, points[0], value.point, points, again)
    return BaselineComparison(value, verdict, line[0][0], sure)


def limiting_processor_times(facts: Sequence[ProfileSummary]) -> list[Headline] | None:
    """The processor times of profiles of a version that have a value, where the processor limits the command.

    Else None. On a busy machine few runs may not show that it does: one profile shows it for all.
    """
    found = [one.processor for one in facts if one.processor is not None]
    return found if len(found) == len(facts) and any(one.limits for one in found) else None


def value_of(facts: Sequence[ProfileSummary]) -> SeriesValue:
    """That of profiles of one version that have one, one at least, in the order of measuring."""
    headlines = [one.headline for one in facts if one.headline is not None]
    limits, last = limiting_processor_times(facts), headlines[-1]
    processor = None if limits is None else point_of_headlines(limits)
    return SeriesValue(
        last.metric, last.unit, last.larger_is_better, point_of_headlines(headlines), processor
    )


def headline_series_of(configuration: Configuration, fact: ProfileSummary) -> HeadlineSeries | None:
    """The series of a profile; None if it has no value, or is incomplete."""
    found = fact.headline
    if found is None or fact.incomplete:
        return None
    machine = "" if found.kind is Kind.COUNTED else fact.machine
    return HeadlineSeries(configuration, machine, found.metric, found.unit)


def values_of_version(
    repo: Repository,
    minor_version: str,
    known: KnownSummaries | None = None,
    of: Container[Configuration] | None = None,
) -> dict[HeadlineSeries, SeriesValue]:
    """The values of the complete profiles that are registered in the version.

    They are in the order in which the profiles were made.

    :param known: reads what the cache of facts lacks; its bounds are those of the command.
    :param of: only those of these configurations, of which alone anything is read.
    :raises DamagedStore: if its index cannot be read.
    """
    infos = [entry.info() for entry in repo.store.indexes.read(minor_version)]
    if of is not None:
        infos = [info for info in infos if info.configuration in of]
    facts = (known or KnownSummaries(repo)).of(infos)
    return {wanted: value_of(found) for wanted, found in summaries_by_series(infos, facts).items()}


def summaries_by_series(
    infos: Iterable[ProfileInfo], facts: Mapping[ProfileInfo, ProfileSummary]
) -> dict[HeadlineSeries, list[ProfileSummary]]:
    """The facts of the complete ones among profiles of one version, in the order of measuring."""
    found: dict[HeadlineSeries, list[ProfileSummary]] = {}
    for info in sorted(infos, key=lambda info: info.time):
        fact = facts.get(info)
        wanted = None if fact is None else headline_series_of(info.configuration, fact)
        if wanted is not None and fact is not None:
            found.setdefault(wanted, []).append(fact)
    return found


def lines_of_ancestors(
    repo: Repository,
    minor_version: str,
    wanted: Iterable[HeadlineSeries],
    known: KnownSummaries | None = None,
    most: int = MOST_VERSIONS,
    *,
    itself: bool = False,
) -> Mapping[HeadlineSeries, Line]:
    """The values in the ancestors of the version, as many as verdicts look at.

    What cannot be read is passed over: these values are shown beside others, `perun fsck` names the damage.

    :param known: as in :func:`values_of_version`. :param most: versions of the history that are looked at.
    :param itself: begin with the version itself; else it is left out.
    """
    found: dict[HeadlineSeries, list[tuple[str, SeriesValue]]] = {one: [] for one in wanted}
    open_ = set(found)
    configurations = {one.configuration for one in open_}
    known = known or KnownSummaries(repo)
    indexes = repo.store.indexes
    try:
        versions = [minor_version] if itself else []
        for checksum in itertools.chain(versions, _ancestors(repo, minor_version, most)):
            if not open_:
                break
            if not indexes.has(checksum):
                continue
            try:
                values = values_of_version(repo, checksum, known, configurations)
            except DamagedStore:
                continue
            for one in open_ & values.keys():
                found[one].append((checksum, values[one]))
                if len(found[one]) == WINDOW:
                    open_.discard(one)
                    configurations = {one.configuration for one in open_}
    except VersionControlError:
        pass  # there is no history yet
    return found


def comparison_of_profile(
    repo: Repository, minor_version: str, profile: Profile, *, registering: bool, itself: bool = False
) -> BaselineComparison | None:
    """The value of a profile that is not stored yet, beside the version before; None if it has none.

    :param registering: whether it will be one of the version's own, which are one point together.
    :param itself: whether the version itself is the one before, as where uncommitted changes were measured.
    """
    fact = profile_summary_of(profile)
    if fact.headline is None:
        return None
    wanted = headline_series_of(ProfileHeader.of(profile).configuration, fact)
    if wanted is None:
        return compare_with_line(value_of([fact]), (), rules_of(repo))
    others: list[ProfileSummary] = []
    if registering:
        with suppress(DamagedStore):
            infos = [entry.info() for entry in repo.store.indexes.read(minor_version)]
            others = summaries_by_series(infos, KnownSummaries(repo).of(infos)).get(wanted, [])
    line = lines_of_ancestors(repo, minor_version, [wanted], itself=itself)[wanted]
    return compare_with_line(value_of([*others, fact]), line, rules_of(repo))


def _ancestors(repo: Repository, head: str, most: int) -> Iterator[str]:
    return (version.checksum for version in walking.ancestors(repo, head, most))
