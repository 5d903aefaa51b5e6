"""The profiles that a check compares: kept in memory for a while, and pooled where a version has several."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import PerunError, ProfileError
from perun.core.wording import plural
from perun.measurement.comparable import WITHOUT_RUNS, differences
from perun.profile import incomplete
from perun.profile.format.json import loads
from perun.profile.helpers import ProfileInfo
from perun.profile.session import count_of, pool
from perun.repository.repository import Repository
from perun.store import tree

if TYPE_CHECKING:
    from perun.profile.factory import Profile

KEPT_PROFILES: Final = 4096
KEPT_BYTES: Final = 16 << 20
"""Profiles that stay in memory at most, and bytes of their JSON, of which memory takes about three times as
many: in a history each profile is the target once and the baseline about once, soon afterwards, and shows the
noise of the versions after it."""
POOLED_PROFILES: Final = 64
POOLED_BYTES: Final = 64 << 20
"""Profiles that are pooled into one at most, and bytes of their JSON: the newest ones."""
_CHANGING_RESOURCES: Final = ("normalizer", "clusterizer")
"""Postprocessors that change resources, which those of a stored profile are already."""


class Pools:
    """Pools the profiles of one version and configuration.

    :param postprocess: makes the models of a pooled profile.
    """

    def __init__(
        self, profiles: Profiles, postprocess: Callable[[Profile, str, Mapping[str, Any]], Profile]
    ) -> None:
        self._profiles = profiles
        self._postprocess = postprocess
        self._left_out: Counter[str] = Counter()

    def pooled(self, newest: ProfileInfo, others: Sequence[ProfileInfo]) -> Profile:
        """The newest profile, and with it those others that were measured alike.

        Where nothing runs, a second profile tells nothing new. Left out are incomplete profiles, those of
        other machines or builds, and what exceeds :data:`POOLED_PROFILES` or :data:`POOLED_BYTES`, the
        oldest first.

        :raises ProfileError: where a profile is missing or damaged.
        """
        like = self._profiles.get(newest.checksum)
        if not others or incomplete.text_of(like) or like.type in WITHOUT_RUNS:
            return like
        key = "+".join(info.checksum for info in (newest, *others))
        known = self._profiles.known(key)
        if known is not None:
            return known
        chosen, size = self._alike(like, others)
        if not chosen:
            return like

        def oldest_first() -> Iterator[Profile]:
            for checksum in reversed(chosen):
                yield self._profiles.read(checksum)[1]
            yield like

        made = self._with_models(pool(oldest_first()), like)
        self._profiles.keep(key, size, made)
        return made

    def notes(self, baseline: Profile, target: Profile) -> tuple[str, ...]:
        """What to tell of the pooled profiles."""
        counts = count_of(baseline), count_of(target)
        notes = []
        if max(counts) > 1:
            notes.append(f"pooled profiles: {counts[0]} of the baseline, {counts[1]} of the target")
        if self._left_out:
            count, reasons = self._left_out.total(), ", ".join(self._left_out)
            notes.append(f"{plural(count, 'older profile')} not pooled: {reasons}")
        return tuple(notes)

    def _alike(self, like: Profile, others: Sequence[ProfileInfo]) -> tuple[list[str], int]:
        """Checksums of the profiles to pool, the newest first, and the bytes of their JSON in all; counts the
        others by the reason."""
        chosen: list[str] = []
        total = 0
        looked = 0
        for info in others[: POOLED_PROFILES - 1]:
            size, profile = self._profiles.read(info.checksum)
            reason = _reason_against(profile, like)
            if reason:
                self._left_out[reason] += 1
            elif total + size > POOLED_BYTES:
                break
            else:
                chosen.append(info.checksum)
                total += size
            looked += 1
        if looked < len(others):
            self._left_out["too many"] += len(others) - looked
        return chosen, total

    def _with_models(self, pooled: Profile, like: Profile) -> Profile:
        """The pooled profile with models of all its points, made as those of `like` were; its own else."""
        if not like.get("models"):
            return pooled
        units = list(like.get("postprocessors") or ())
        try:
            for unit in units:
                if unit["name"].replace("-", "_") not in _CHANGING_RESOURCES:
                    pooled = self._postprocess(pooled, unit["name"], unit.get("params") or {})
        except PerunError:  # as a plugin that is not installed here
            pooled["models"] = like["models"]
        pooled["postprocessors"] = units
        return pooled


def _reason_against(profile: Profile, like: Profile) -> str:
    """Why it is not pooled with `like`; empty if it is."""
    if incomplete.text_of(profile):
        return "incomplete"
    return next((f"{one.name} differs" for one in differences(profile, like)), "")


class Profiles:
    """Registered profiles, of which those used last stay in memory."""

    def __init__(self, repo: Repository) -> None:
        self._objects = repo.store.objects
        self._kept: OrderedDict[str, tuple[int, Profile]] = OrderedDict()
        self._made: dict[int, dict[Callable[[Profile], Any], Any]] = {}
        self._bytes = 0

    def get(self, checksum: str, most: int | None = None) -> Profile:
        """The profile, from memory or from the store; parameters and errors as of :meth:`read`."""
        known = self.known(checksum)
        if known is not None:
            return known
        size, profile = self.read(checksum, most)
        self.keep(checksum, size, profile)
        return profile

    def read(self, checksum: str, most: int | None = None) -> tuple[int, Profile]:
        """The profile from the store, which does not stay in memory, with the bytes of its JSON.

        :param most: bytes that it may have.
        :raises ProfileError: where it is missing, damaged, or larger.
        """
        body = self._objects.get_body(checksum)
        if most is not None and len(body) > most:
            raise ProfileError(f"the profile {checksum} has more than {most} bytes")
        source = str(tree.object_path(self._objects.root, checksum))
        return len(body), loads(body, source, limit=self._objects.limit)

    def known(self, key: str) -> Profile | None:
        """The profile that was kept under the key, if it is in memory."""
        known = self._kept.get(key)
        if known is None:
            return None
        self._kept.move_to_end(key)
        return known[1]

    def keep(self, key: str, size: int, profile: Profile) -> None:
        """Keep the profile in memory, in place of those that were not used for the longest time."""
        # One stays, however large it is: that which the new one is compared with.
        while len(self._kept) > 1 and self._is_full(size):
            _, (freed, oldest) = self._kept.popitem(last=False)
            self._made.pop(id(oldest), None)
            self._bytes -= freed
        self._kept[key] = size, profile
        self._made[id(profile)] = {}
        self._bytes += size

    def cached(self, profile: Profile, make: Callable[[Profile], Any]) -> Any:
        """What `make` makes of the profile, kept as long as the profile stays in memory."""
        made = self._made.get(id(profile))
        if made is None:
            return make(profile)
        if make not in made:
            made[make] = make(profile)
        return made[make]

    def _is_full(self, size: int) -> bool:
        """Whether there is no room for a profile with so many bytes of JSON."""
        return len(self._kept) >= KEPT_PROFILES or self._bytes + size > KEPT_BYTES
