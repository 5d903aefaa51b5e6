"""Kernel regression beside statsmodels, whose estimates it must equal: 2,000 points.

python benchmarks/kernel.py [--rounds N]

CPU times of the computation alone, in this process; statsmodels takes seconds, so that it is run once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from perun.profile.models.kernel import EstimatorSettings, KernelEstimate, estimator_settings
from run import Row, table

POINTS = 2000
MANY = 100_000
Made = TypeVar("Made")
PEER = "statsmodels KernelReg"


def rows(rounds: int) -> Iterator[Row]:
    """Both criteria beside statsmodels, which has a limit, and many points, which statsmodels cannot do."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    x, y = points(POINTS)
    estimator_settings(x[:100], y[:100])  # what is imported at the first use
    for criterion in ("cv_ls", "aic"):
        settings = EstimatorSettings("ll", criterion)
        ours, made = cpu(lambda settings=settings: estimator_settings(x, y, settings), rounds)

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
        yield Row(name, ours, peer, PEER, 1 / 20)
    x, y = points(MANY)
    many, _ = cpu(lambda: estimator_settings(x, y), 1)
    yield Row(
        f"kernel-regression estimator-settings cv_ls, {MANY:,} points, CPU", many, peer, "the same", None
    )


def points(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Points with different x all over the axis: the most that there can be to do."""
    random = np.random.default_rng(1)
    x = random.uniform(0, 100, number)
    return x, 5 * np.sin(x / 10) + random.normal(size=number)


def cpu(work: Callable[[], Made], rounds: int) -> tuple[float, Made]:
    """Median CPU time in seconds, and what was made."""
    samples = []
    for _ in range(rounds):
        start = time.process_time()
        made = work()
        samples.append(time.process_time() - start)
    return statistics.median(samples), made


def main() -> int:
    """Print the rows; 1 where a limit was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    found = list(rows(parser.parse_args().rounds))
    print(table(found))
    return int(not all(row.met for row in found))


if __name__ == "__main__":
    sys.exit(main())
