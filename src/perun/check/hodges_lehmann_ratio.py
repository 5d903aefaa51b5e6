"""Hodges-Lehmann ratio: how many times the baseline the target is, with an interval (docs/verdicts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from perun.core.errors import ConfigError, ProfileError
from perun.measurement.comparison import Measurements, changes
from perun.measurement.difference import Rules
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo
from perun.profile.factory import Profile


@dataclass(frozen=True)
class RatioParams:
    """Where the labels begin; see :class:`perun.measurement.difference.Rules`."""

    threshold: float = param(
        0.02, metavar="<share>", minimum=0, help="A growth up to this share, or what undoes it, is no change."
    )
    severe: float = param(0.25, metavar="<share>", minimum=0, help="A growth above this share is severe.")
    confidence: float = param(
        0.99, metavar="<probability>", minimum=0, help="Confidence of the interval that decides."
    )
    weaker: float = param(
        0.95, metavar="<probability>", minimum=0, help="Confidence of the interval that makes a maybe."
    )
    apart: float = param(
        1.0,
        metavar="<share>",
        minimum=0,
        help="What the machine may make of two measurements made apart, where nothing tells it.",
    )
    exact_threshold: float = param(
        0.0,
        metavar="<share>",
        minimum=0,
        help="A growth up to this share of what is counted, not timed, is no change.",
    )

    def __post_init__(self) -> None:
        for name in ("confidence", "weaker"):
            if not 0.5 <= getattr(self, name) < 1:
                raise ConfigError(
                    f"degradation.{HodgesLehmannRatio.name}.{name}: {getattr(self, name):g} is no confidence",
                    "write a number from 0.5 to below 1, e.g. 0.99",
                )


class HodgesLehmannRatio:
    """Reports each series of repeated measurements, also the unchanged ones; the rate is target / baseline.

    Versions that were visited in the same rounds are compared round by round, others by the values of both
    and the noise that is known of them. What ran on several workloads is compared workload by workload.
    """

    name: ClassVar[str] = "hodges_lehmann_ratio"
    short: ClassVar[str] = "HLR"
    help: ClassVar[str] = (
        "Compares repeated measurements by the interval of their ratio; too wide a one is Unknown."
    )
    Params: ClassVar[type] = RatioParams
    knows_larger_is_better: ClassVar[bool] = True

    def compare(
        self, baseline: Profile, target: Profile, params: RatioParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change of type `ratio` for each series, in the order of their locations.

        A location is the uid, and behind it in brackets what of it was measured: `./prog [cpu]`. What was
        timed only once, or as a call too few times, is left out: nothing is known of its noise.

        :raises ProfileError: where that holds for all of both profiles.
        """
        rules = Rules(
            params.threshold,
            params.severe,
            params.confidence,
            params.weaker,
            params.apart,
            params.exact_threshold,
        )
        old, new = ctx.cached(baseline, Measurements), ctx.cached(target, Measurements)
        found = changes(old, new, rules, ctx.line, ctx.both, ctx.again, turned=ctx.turned)
        if not found and (old.series or new.series):
            raise ProfileError(
                "the profiles have no repeated measurements", "measure more often, e.g. time with repeat: 20"
            )
        yield from found


PLUGIN = HodgesLehmannRatio
