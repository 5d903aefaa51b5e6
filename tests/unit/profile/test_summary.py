"""A profile in a few numbers for each of its series."""

from __future__ import annotations

import numpy as np
import pytest

from perun.measurement.summary import summaries
from perun.profile.factory import Profile


@pytest.mark.parametrize("count", [1, 2, 5, 6, 100, 101])
def test_medians_and_spreads_are_those_of_numpy(count):
    values = np.random.default_rng(count).lognormal(size=count)
    profile = Profile({"header": {"type": "time", "units": {"time": "s"}}})
    profile.update_resources(
        {"amount": float(value), "uid": "app", "type": "time", "subtype": "real", "order": number}
        for number, value in enumerate(values)
    )
    (found,) = summaries(profile).values()
    median = np.median(values)
    spread = np.median(np.abs(values - median)) * 1.4826 if count > 1 else None
    assert found == (count, median, spread)
