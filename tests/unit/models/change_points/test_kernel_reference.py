"""The search with a Gaussian kernel beside `ruptures`, which searches all places for the same cost."""

from __future__ import annotations

import numpy as np
import pytest
import ruptures

from perun.models.change_detectors import (
    BANDWIDTH,
    KERNEL_PRICE,
    SHORTEST,
    deviation_of_differences,
    kernel_changes,
)


def reference(values: np.ndarray) -> list[int]:
    width = BANDWIDTH * deviation_of_differences(values)
    search = ruptures.KernelCPD(kernel="rbf", params={"gamma": 0.5 / width**2}, min_size=SHORTEST)
    found = search.fit(values.reshape(-1, 1)).predict(pen=KERNEL_PRICE * np.log(len(values)))
    return [int(place) for place in found[:-1]]


@pytest.mark.parametrize("seed", range(12))
def test_the_places_are_those_of_the_reference(seed: int) -> None:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(20, 60, int(chance.integers(1, 5)))
    levels = np.cumsum(chance.choice([-1, 1], len(sizes)) * chance.uniform(4, 12, len(sizes)))
    values = np.repeat(levels, sizes) + chance.standard_normal(int(sizes.sum()))
    assert kernel_changes(values) == reference(values)
