"""Kernel regression beside statsmodels, whose estimates it must equal: 2,000 points.

CPU times of the computation alone, in this process; statsmodels takes seconds, so that it is run once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from harness import cpu
from perun.models.kernel.estimates import EstimatorSettings, estimator_settings
from perun.models.kernel.local import KernelEstimate
from report import Place, Row

POINTS = 2000
MANY = 100_000
PEER = "statsmodels KernelReg"


def kernel(place: Place) -> Iterator[Row]:
    """Both criteria beside statsmodels, which has a limit, and 50 times as many points."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    x, y = points(POINTS)
    estimator_settings(x[:100], y[:100])  # what is imported at the first use
    theirs_for_few = []
    for criterion in ("cv_ls", "aic"):
        settings = EstimatorSettings("ll", criterion)
        ours, made = cpu(lambda settings=settings: estimator_settings(x, y, settings), place.rounds)

        def theirs(criterion: str = criterion) -> tuple[float, np.ndarray]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                regression = KernelReg([y], [x], "c", reg_type="ll", bw=criterion)
                return abs(float(regression.bw[0])), regression.fit(np.sort(x))[0]

        peer, (bandwidth, values) = cpu(theirs, 1)
        assert isinstance(made, KernelEstimate)
        assert abs(made.bandwidth / bandwidth - 1) < 1e-3, (made.bandwidth, bandwidth)
        assert np.abs(made.values - values).max() < 1e-6 * np.abs(values).max()
        name = f"kernel-regression estimator-settings {criterion}, {POINTS:,} points, CPU"
        theirs_for_few.append(peer)
        yield Row(name, ours, peer, PEER, 1 / 20)
    x, y = points(MANY)
    many, _ = cpu(lambda: estimator_settings(x, y), 1)
    name = f"kernel-regression estimator-settings cv_ls, {MANY:,} points, CPU"
    yield Row(name, many, theirs_for_few[0], f"{PEER}, {POINTS:,} points", None, is_rival=False)


def points(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Points with different x all over the axis: the most that there can be to do."""
    random = np.random.default_rng(1)
    x = random.uniform(0, 100, number)
    return x, 5 * np.sin(x / 10) + random.normal(size=number)
