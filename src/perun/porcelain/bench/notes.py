"""What is odd about the runs of a command, in sentences for the user.

A series is odd by the modified z-score of :mod:`perun.models.outliers`. Iglewicz and Hoaglin call a score
above 3.5 an outlier where values are normally distributed; times have a long tail, and nearly every series
would have one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from perun.models.outliers import NORMAL_MAD, Spread
from perun.porcelain.bench.measuring import Measurement, Series, precision_of
from perun.porcelain.bench.options import FIRST_LOOK, BenchOptions
from perun.process.execution import Sample
from perun.process.outcome import outcome
from perun.profile.amounts import readable
from perun.wording import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

OUTLIER: Final = 10.0
"""Modified z-score from which a run is an outlier."""
MIN_RUNS: Final = 5
"""Runs below which nothing is called an outlier of the others."""
_RESOLUTION: Final = 1e-3
"""Share of the median below which the spread of times tells nothing."""


def of(one: Series, whole: Measurement, options: BenchOptions) -> tuple[str, ...]:
    """The notes on one series of the measurement."""
    odd = [*_failures(one.samples), *_outliers(one.samples, options)]
    return (*odd, *_uncertain(one, whole, options))


def _failures(samples: Sequence[Sample]) -> Iterator[str]:
    failed = [sample.status for sample in samples if sample.status]
    if failed:
        yield f"{len(failed)} of {plural(len(samples), 'run')} failed: the first of them {outcome(failed[0])}"


def _outliers(samples: Sequence[Sample], options: BenchOptions) -> Iterator[str]:
    seconds = [sample.real for sample in samples]
    # An outlier is as far as this from the median at least: mostly numpy need not be loaded.
    if len(seconds) < MIN_RUNS or max(seconds) <= median(seconds) * (1 + OUTLIER * _RESOLUTION / NORMAL_MAD):
        return
    import numpy as np

    times: NDArray[np.float64] = np.array(seconds)
    spread = Spread.of(times, max(1e-6, _RESOLUTION * float(np.median(times))))
    slow = (spread.modified_z(times) > OUTLIER) & (times > spread.median)
    if slow[0]:
        usual = readable(spread.median, "s")
        more = f"--warmup {options.warmup + 1} leaves it out" if not options.prepare else "see --prepare"
        yield f"the first run took {readable(float(times[0]), 's')}, the others about {usual}: {more}"
    elif slow.any():
        most = readable(float(times.max()), "s")
        yield (
            f"{int(slow.sum())} of {times.size} runs took much longer than the others, up to {most}: "
            "something else was at work; measure again on a quiet machine"
        )


def _uncertain(one: Series, whole: Measurement, options: BenchOptions) -> Iterator[str]:
    if one.value is None or whole.interruption is not None or options.runs is not None:
        return
    reached = precision_of(one.value)
    if len(one.samples) < FIRST_LOOK or (reached is not None and reached > options.precision):
        known = "" if reached is None else f"the time is known to ±{100 * reached:.2g} %, not to "
        wanted = f"±{100 * options.precision:.2g} %"
        limit = f"{readable(whole.budget, 's')} were over after {plural(len(one.samples), 'run')}"
        if options.max_runs is not None and len(one.samples) >= options.max_runs:
            limit = f"--max-runs {options.max_runs} ended it"
        yield f"{known}{wanted}: {limit}; more time: --budget" if known else f"{limit}; more time: --budget"
