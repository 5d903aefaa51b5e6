"""The profiles of both sides that `perun explain` looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from perun.porcelain.compare.plan import Case

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.profile.factory import Profile


class ProfilePair(NamedTuple):
    """The profiles of one collector. :param new: whether they were measured now."""

    base: Profile
    head: Profile
    new: bool = False


class SizedPair(NamedTuple):
    """Profiles of one collector with the size of the input of each."""

    base: Sequence[tuple[float, Profile]]
    head: Sequence[tuple[float, Profile]]


class Gathered(NamedTuple):
    """What is known of one configuration.

    :param pairs: by collector. :param sized: instructions over several sizes, None where there are none.
    :param graphs: the static call graphs, None where they are not known. :param unseen:
        what is missing, and why.
    """

    case: Case
    pairs: dict[str, ProfilePair]
    sized: SizedPair | None
    graphs: tuple[CallGraph, CallGraph] | None
    unseen: list[str]
